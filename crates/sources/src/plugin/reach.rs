//! Which hosts an http tool may call: its own literal one, those of `allowedHosts`, and what a redirect may keep.

use url::{Host, Url};

/// One entry of `allowedHosts`: `host`, `host:port` or `*.suffix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: Host<String>,
    port: Option<u16>,
    below: bool,
}

/// Why an entry of `allowedHosts` is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a host, `host:port` or `*.suffix`")]
pub struct BadPattern;

impl HostPattern {
    pub const HINT: &'static str = "write a host without scheme and path: \"api.example.com\", \"localhost:8080\", \"*.example.com\"";

    pub fn parse(text: &str) -> Result<HostPattern, BadPattern> {
        let (below, rest) = match text.strip_prefix("*.") {
            Some(suffix) => (true, suffix),
            None => (false, text),
        };
        let end_of_host = if rest.starts_with('[') {
            rest.find(']').map_or(0, |at| at + 1)
        } else {
            0
        };
        let (host, port) = match rest[end_of_host..].find(':') {
            None => (rest, None),
            Some(at) => {
                let port = rest[end_of_host + at + 1..]
                    .parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or(BadPattern)?;
                (&rest[..end_of_host + at], Some(port))
            }
        };
        let host = Host::parse(host.trim_end_matches('.')).map_err(|_| BadPattern)?;
        match &host {
            Host::Domain(name) if name.is_empty() || name.contains(['*', '{', '}', '/']) => {
                Err(BadPattern)
            }
            Host::Domain(_) => Ok(HostPattern { host, port, below }),
            _ if below => Err(BadPattern),
            _ => Ok(HostPattern { host, port, below }),
        }
    }

    fn matches(&self, url: &Url) -> bool {
        let Some(host) = host_of(url) else {
            return false;
        };
        let fits = match (&self.host, &host) {
            (Host::Domain(suffix), Host::Domain(name)) if self.below => name
                .strip_suffix(suffix.as_str())
                .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
            (ours, theirs) => !self.below && ours == theirs,
        };
        fits && self
            .port
            .is_none_or(|port| url.port_or_known_default() == Some(port))
    }
}

/// The hosts a tool may call.
#[derive(Debug, Default)]
pub struct Reach {
    /// The host that is written in the tool's URL.
    pub literal: Option<Host<String>>,
    /// `handler.allowedHosts`: further hosts, or all there are where the URL names none.
    pub allowed: Option<Vec<HostPattern>>,
    /// `sandbox.allowedHosts`: nothing outside these, whatever else is said.
    pub walls: Vec<HostPattern>,
}

impl Reach {
    /// May this URL's host be called? A tool whose URL names a host declares that host and no other.
    pub fn permits(&self, url: &Url) -> bool {
        let listed = |list: &[HostPattern]| list.iter().any(|pattern| pattern.matches(url));
        let own = self.literal.is_some() && self.literal == host_of(url);
        let declared = match &self.allowed {
            Some(allowed) => own || listed(allowed),
            None => own || self.literal.is_none(),
        };
        declared && (self.walls.is_empty() || listed(&self.walls))
    }
}

/// The host, without the dot that a full name may end in.
pub fn host_of(url: &Url) -> Option<Host<String>> {
    Some(match url.host()? {
        Host::Domain(name) => Host::Domain(name.trim_end_matches('.').to_owned()),
        Host::Ipv4(ip) => Host::Ipv4(ip),
        Host::Ipv6(ip) => Host::Ipv6(ip),
    })
}

/// May the second URL be given the headers that were meant for the first? Only the same server may, or its TLS side.
pub fn same_server(first: &Url, second: &Url) -> bool {
    let ports = (
        first.port_or_known_default(),
        second.port_or_known_default(),
    );
    let upgraded =
        first.scheme() == "http" && second.scheme() == "https" && ports == (Some(80), Some(443));
    host_of(first) == host_of(second)
        && (upgraded || (first.scheme() == second.scheme() && ports.0 == ports.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn patterns(list: &[&str]) -> Vec<HostPattern> {
        list.iter()
            .map(|text| HostPattern::parse(text).unwrap())
            .collect()
    }

    #[test]
    fn patterns_match_hosts_exactly() {
        let table = [
            ("example.com", "http://example.com/", true),
            ("example.com", "https://EXAMPLE.com.:8443/x", true),
            ("example.com", "http://a.example.com/", false),
            ("example.com", "http://example.com.evil.org/", false),
            ("example.com:80", "http://example.com/", true),
            ("example.com:80", "https://example.com/", false),
            ("example.com:8080", "http://example.com:8080/", true),
            ("*.example.com", "http://a.example.com/", true),
            ("*.example.com", "http://a.b.example.com/", true),
            ("*.example.com", "http://example.com/", false),
            ("*.example.com", "http://evilexample.com/", false),
            ("*.example.com:81", "http://a.example.com:81/", true),
            ("127.0.0.1", "http://0x7f.1/", true),
            ("[::1]", "http://[0:0::1]:9/", true),
            ("[::1]:9", "http://[::1]:8/", false),
            ("bücher.example", "http://xn--bcher-kva.example/", true),
        ];
        for (pattern, target, expected) in table {
            assert_eq!(
                HostPattern::parse(pattern).unwrap().matches(&url(target)),
                expected,
                "{pattern} {target}"
            );
        }
        for bad in [
            "",
            "*",
            "*.",
            "http://x",
            "x/y",
            "x:",
            "x:0",
            "x:99999",
            "a.*.b",
            "*.127.0.0.1",
            "[::1",
            "a b",
            "{{x}}",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_literal_host_declares_itself_and_no_other() {
        let literal = Reach {
            literal: host_of(&url("http://a.test/")),
            ..Reach::default()
        };
        assert!(literal.permits(&url("https://a.test:8443/x")));
        assert!(!literal.permits(&url("http://b.test/")));

        let more = Reach {
            allowed: Some(patterns(&["b.test"])),
            literal: literal.literal.clone(),
            walls: Vec::new(),
        };
        assert!(more.permits(&url("http://a.test/")) && more.permits(&url("http://b.test/")));
        assert!(!more.permits(&url("http://c.test/")));

        assert!(Reach::default().permits(&url("http://anything.test/")));
        let narrowed = Reach {
            allowed: Some(patterns(&["b.test"])),
            ..Reach::default()
        };
        assert!(!narrowed.permits(&url("http://a.test/")));

        let walled = Reach {
            walls: patterns(&["b.test"]),
            ..Reach::default()
        };
        assert!(walled.permits(&url("http://b.test/")) && !walled.permits(&url("http://a.test/")));
    }

    #[test]
    fn headers_stay_with_their_server() {
        let table = [
            ("http://a.test/x", "http://a.test/y", true),
            ("http://a.test/", "https://a.test/", true),
            ("https://a.test/", "http://a.test/", false),
            ("http://a.test:8080/", "https://a.test/", false),
            ("http://a.test/", "http://a.test:81/", false),
            ("http://a.test/", "http://b.test/", false),
            ("http://127.0.0.1/", "http://localhost/", false),
        ];
        for (first, second, expected) in table {
            assert_eq!(
                same_server(&url(first), &url(second)),
                expected,
                "{first} {second}"
            );
        }
    }
}
