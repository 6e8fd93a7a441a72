//! The head of a request to the proxy: where it goes, and what is passed on.

use super::body::Body;
use crate::host::{Transport, plain_name, split_port};

/// A request that the proxy understands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub way: Transport,
    /// In small letters.
    pub host: String,
    pub port: u16,
    pub body: Body,
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
        let mut lines = text.split("\r\n");
        // What is left in a line is no line's end: some servers would take it for one.
        let plain = |line: &str| !line.chars().any(|c| c.is_control() && c != '\t');
        if !lines.clone().all(plain) {
            return None;
        }
        let mut words = lines.next()?.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        let is_http = matches!(version, "HTTP/1.1" | "HTTP/1.0");
        let visible = target.bytes().all(|byte| byte.is_ascii_graphic());
        if words.next().is_some() || !is_token(method) || !visible || !is_http {
            return None;
        }
        let fields = Fields::read(lines)?;
        let body = fields.body(version)?;
        if method == "CONNECT" {
            let (host, port) = authority(target)?;
            fields.one("host")?;
            if body != Body::Length(0) {
                return None;
            }
            return Some(Request {
                way: Transport::Connect,
                host,
                port: port?,
                body,
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
        let port = port.unwrap_or(Transport::Plain.usual_port());
        // What it says is not passed on: the target's own host takes its place.
        fields.one("host")?;
        let path = match path.chars().next() {
            Some('/') => path.to_owned(),
            _ => format!("/{path}"),
        };
        let kept = fields.0.iter();
        let kept = kept.filter(|field| !DROPPED.contains(&field.name.as_str()));
        let mut fields: Vec<String> =
            vec![format!("Host: {place}"), "Connection: close".to_owned()];
        fields.extend(kept.map(|field| field.line.to_owned()));
        Some(Request {
            way: Transport::Plain,
            host,
            port,
            body,
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

/// The fields of a head.
struct Fields<'a>(Vec<Field<'a>>);

struct Field<'a> {
    /// In small letters.
    name: String,
    value: &'a str,
    line: &'a str,
}

impl<'a> Fields<'a> {
    /// Nothing where one of the lines is no field; a line that goes on with the one before is none.
    fn read(lines: impl Iterator<Item = &'a str>) -> Option<Fields<'a>> {
        let field = |line: &'a str| {
            let (name, value) = line.split_once(':')?;
            is_token(name).then(|| Field {
                name: name.to_ascii_lowercase(),
                value: value.trim_matches([' ', '\t']),
                line,
            })
        };
        lines.map(field).collect::<Option<_>>().map(Fields)
    }

    /// The value of a field that may be there once; nothing where it is there twice.
    fn one(&self, name: &str) -> Option<Option<&'a str>> {
        let mut found = self.0.iter().filter(|field| field.name == name);
        let first = found.next().map(|field| field.value);
        found.next().is_none().then_some(first)
    }

    /// How long the body is; nothing where that can be read in more than one way.
    fn body(&self, version: &str) -> Option<Body> {
        match (self.one("content-length")?, self.one("transfer-encoding")?) {
            (None, None) => Some(Body::Length(0)),
            (Some(length), None) => {
                let plain = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
                length.parse().ok().filter(|_| plain).map(Body::Length)
            }
            (None, Some(encoding)) => (encoding.eq_ignore_ascii_case("chunked")
                && version == "HTTP/1.1")
                .then_some(Body::Chunked),
            (Some(_), Some(_)) => None,
        }
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
            (Transport::Connect, "api.example.com", 443)
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
        for text in [
            "GET http://a.example/\nX: HTTP/1.1\r\n\r\n",
            "GET http://a.example/\rX: HTTP/1.1\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\nHost: evil.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\nHost: evil.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\rHost: evil.example\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: b\r\n\tc\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA: \0\r\n\r\n",
            "GET http://a.example/ HTTP/1.1\r\nA : b\r\n\r\n",
            "GET http://a.example/\t HTTP/1.1\r\n\r\n",
            "GET http://a.example/\u{e4} HTTP/1.1\r\n\r\n",
            "CONNECT a.example:443 HTTP/1.1\nX: y\r\n\r\n",
        ] {
            assert_eq!(Request::parse(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn what_says_two_things_is_not_served() {
        let ask = |fields: &str| parse(&format!("POST http://a.example/ HTTP/1.1\n{fields}\n"));
        for fields in [
            "Host: a.example\nHost: a.example\n",
            "Host: a.example\nhost: evil.example\n",
            "Content-Length: 1\nContent-Length: 1\n",
            "Content-Length: 1\nContent-Length: 2\n",
            "Content-Length: 1, 1\n",
            "Content-Length: +1\n",
            "Content-Length: 0x1\n",
            "Content-Length:\n",
            "Content-Length: 99999999999999999999\n",
            "Content-Length: 1\nTransfer-Encoding: chunked\n",
            "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n",
            "Transfer-Encoding: gzip, chunked\n",
            "Transfer-Encoding: identity\n",
            "Transfer-Encoding: xchunked\n",
        ] {
            assert_eq!(ask(fields), None, "{fields:?}");
        }
        let body = |fields: &str| ask(fields).unwrap().body;
        assert_eq!(body("Host: A.EXAMPLE:80\n"), Body::Length(0));
        assert_eq!(body("content-length: 12\n"), Body::Length(12));
        assert_eq!(body("Transfer-Encoding: Chunked\n"), Body::Chunked);
        for text in [
            "POST http://a.example/ HTTP/1.0\nTransfer-Encoding: chunked\n\n",
            "CONNECT a.example:443 HTTP/1.1\nContent-Length: 1\n\n",
            "CONNECT a.example:443 HTTP/1.1\nTransfer-Encoding: chunked\n\n",
            "CONNECT a.example:443 HTTP/1.1\nHost: a\nHost: a\n\n",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
