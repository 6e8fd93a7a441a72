//! The head of a request to the proxy: where it goes, and what is passed on.

use crate::host::{Way, plain_name, split_port};

/// A request that the proxy understands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub way: Way,
    /// In small letters.
    pub host: String,
    pub port: u16,
    /// The first line and the fields as they are passed on; empty for a tunnel.
    line: String,
    fields: Vec<String>,
}

/// Fields that concern this connection only, or that say again where it goes.
const DROPPED: [&str; 8] = [
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

fn is_token(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

impl Request {
    /// Reads a head; nothing where it is not plainly one of the two kinds.
    pub(super) fn parse(head: &[u8]) -> Option<Request> {
        let text = std::str::from_utf8(head).ok()?.strip_suffix("\r\n\r\n")?;
        if text
            .chars()
            .any(|c| c.is_control() && !matches!(c, '\r' | '\n' | '\t'))
        {
            return None;
        }
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_http = matches!(version, "HTTP/1.1" | "HTTP/1.0");
        if words.next().is_some() || !is_token(method) || !is_http {
            return None;
        }
        let fields: Vec<&str> = lines.collect();
        let whole = |line: &&str| {
            line.split_once(':').is_some_and(|(name, _)| is_token(name))
                && !line.contains(['\r', '\n'])
        };
        if !fields.iter().all(whole) {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = authority(target)?;
            return Some(Request {
                way: Way::Connect,
                host,
                port: port?,
                line: String::new(),
                fields: Vec::new(),
            });
        }
        let (scheme, rest) = target.split_once("://")?;
        if !scheme.eq_ignore_ascii_case("http") {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        let (host, port) = authority(place)?;
        let path = match path.chars().next() {
            Some('/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        let name = |line: &str| {
            line.split(':')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase()
        };
        let kept = fields
            .iter()
            .filter(|line| !DROPPED.contains(&name(line).as_str()));
        let mut fields: Vec<String> =
            vec![format!("Host: {place}"), "Connection: close".to_owned()];
        fields.extend(kept.map(|line| (*line).to_owned()));
        Some(Request {
            way: Way::Plain,
            host,
            port: port.unwrap_or(Way::Plain.usual_port()),
            line: format!("{method} {path} {version}"),
            fields,
        })
    }

    /// The head as the host gets it: for itself, and for this one request.
    pub(super) fn forwarded(&self) -> Vec<u8> {
        let mut text = self.line.clone();
        for field in &self.fields {
            text.push_str("\r\n");
            text.push_str(field);
        }
        text.push_str("\r\n\r\n");
        text.into_bytes()
    }
}

/// A host and its port, without a user's name, which nobody needs and which makes a host look like another.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    if text.contains(['@', '%', '\\']) {
        return None;
    }
    let (host, port) = split_port(text)?;
    let host = plain_name(host);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    (!host.is_empty() && host.chars().all(plain)).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Request> {
        Request::parse(text.replace('\n', "\r\n").as_bytes())
    }

    #[test]
    fn tunnels_and_plain_requests_are_read() {
        let tunnel = parse("CONNECT API.example.com:443 HTTP/1.1\nHost: x\n\n").unwrap();
        assert_eq!(
            (tunnel.way, tunnel.host.as_str(), tunnel.port),
            (Way::Connect, "api.example.com", 443)
        );
        let sixth = parse("CONNECT [::1]:8443 HTTP/1.1\n\n").unwrap();
        assert_eq!((sixth.host.as_str(), sixth.port), ("::1", 8443));
        let plain = parse("GET http://a.example:81/x?y HTTP/1.1\nHost: evil.example\nProxy-Authorization: z\nA: b\n\n").unwrap();
        assert_eq!((plain.host.as_str(), plain.port), ("a.example", 81));
        let passed = String::from_utf8(plain.forwarded()).unwrap();
        assert_eq!(
            passed,
            "GET /x?y HTTP/1.1\r\nHost: a.example:81\r\nConnection: close\r\nA: b\r\n\r\n"
        );
        let bare = parse("GET HTTP://a.example?q HTTP/1.1\n\n").unwrap();
        assert!(bare.forwarded().starts_with(b"GET /?q HTTP/1.1"));
        assert_eq!(bare.port, 80);
    }

    #[test]
    fn what_is_not_plain_is_not_served() {
        for text in [
            "GET / HTTP/1.1\n\n",
            "GET https://a.example/ HTTP/1.1\n\n",
            "GET ftp://a.example/ HTTP/1.1\n\n",
            "CONNECT a.example HTTP/1.1\n\n",
            "CONNECT a.example:443\n\n",
            "CONNECT a.example:443 HTTP/2\n\n",
            "CONNECT user@a.example:443 HTTP/1.1\n\n",
            "GET http://a.example@evil.example/ HTTP/1.1\n\n",
            "GET http://a.example%2eevil/ HTTP/1.1\n\n",
            "GET http:///x HTTP/1.1\n\n",
            "GET http://a.example/ HTTP/1.1\n continued: x\n\n",
            "GET http://a.example/ HTTP/1.1\nbroken\n\n",
            "GET http://a.example/  HTTP/1.1\n\n",
            "CONNECT a.example:443 HTTP/1.1\nX: \u{0}\n\n",
            "CONNECT a.example:99999 HTTP/1.1\n\n",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(Request::parse(b"GET http://a.example/\n\n"), None);
    }
}
