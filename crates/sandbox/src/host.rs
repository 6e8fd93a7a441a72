//! Which hosts a tool may reach: rules as people write them, and what they match.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `host`, `host:port`, `*.suffix`, `*.suffix:port`, or an address in place of the name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule {
    name: Name,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Name {
    Exactly(String),
    /// Any name that ends so; the dot is part of it.
    Below(String),
    Address(IpAddr),
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host: write `api.example.com`, `api.example.com:8443`, `*.example.com` or an address"
)]
pub struct NotAHost(String);

/// How a request reaches its host; it decides which port is meant when a rule names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A tunnel, as for TLS.
    Connect,
    /// One plain HTTP request.
    Plain,
}

impl Transport {
    fn of(tls: bool) -> Transport {
        match tls {
            true => Transport::Connect,
            false => Transport::Plain,
        }
    }

    pub(crate) fn usual_port(self) -> u16 {
        match self {
            Transport::Connect => 443,
            Transport::Plain => 80,
        }
    }
}

/// A name as it is compared: small letters, no dot at its end.
pub(crate) fn plain_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        let fits = (1..=63).contains(&label.len()) && !label.starts_with('-');
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        fits && !label.ends_with('-') && label.chars().all(plain)
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Splits `host:port`, `[address]:port`, and either without the port.
pub(crate) fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port_number(port)?),
            None if rest.is_empty() => None,
            None => return None,
        };
        return Some((address, port));
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => Some((host, Some(port_number(port)?))),
        // More than one colon: an address of the sixth version without brackets.
        _ => Some((text, None)),
    }
}

fn port_number(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| plain && *port != 0)
}

impl FromStr for HostRule {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<HostRule, NotAHost> {
        let wrong = || NotAHost(text.to_owned());
        let (host, port) = split_port(text.trim()).ok_or_else(wrong)?;
        let host = plain_name(host);
        let name = if let Ok(address) = host.parse() {
            Name::Address(address)
        } else if let Some(suffix) = host.strip_prefix("*.") {
            Name::Below(format!(".{suffix}"))
        } else {
            Name::Exactly(host.clone())
        };
        let looks_like_number = |name: &str| name.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let good = match &name {
            Name::Address(_) => true,
            Name::Below(suffix) => is_name(&suffix[1..]) && suffix[1..].contains('.'),
            Name::Exactly(name) => is_name(name) && !looks_like_number(name),
        };
        if good {
            Ok(HostRule { name, port })
        } else {
            Err(wrong())
        }
    }
}

impl TryFrom<String> for HostRule {
    type Error = NotAHost;

    fn try_from(text: String) -> Result<HostRule, NotAHost> {
        text.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> String {
        rule.to_string()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.port) {
            (Name::Exactly(name), _) => write!(f, "{name}")?,
            (Name::Below(suffix), _) => write!(f, "*{suffix}")?,
            (Name::Address(IpAddr::V6(address)), Some(_)) => write!(f, "[{address}]")?,
            (Name::Address(address), _) => write!(f, "{address}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl HostRule {
    /// May the crib itself send a request to a host of this name or address, over TLS or in the open?
    pub fn permits(&self, host: &str, port: u16, tls: bool) -> bool {
        self.allows(host, port, Transport::of(tls))
    }

    /// May it send one to this very address, private as it may be?
    pub fn permits_address(&self, address: IpAddr, port: u16, tls: bool) -> bool {
        self.lists(address, port, Transport::of(tls))
    }

    /// Whether a request to this name or address and port is meant by the rule.
    pub(crate) fn allows(&self, host: &str, port: u16, way: Transport) -> bool {
        let host = plain_name(host);
        let named = match &self.name {
            Name::Exactly(name) => *name == host,
            Name::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Name::Address(address) => host.parse() == Ok(*address),
        };
        named && port == self.port.unwrap_or(way.usual_port())
    }

    /// Whether the rule says that this very address may be reached, private as it may be. `localhost` says so of the
    /// machine itself; no other name does, because whoever owns a name decides where it leads.
    pub(crate) fn lists(&self, address: IpAddr, port: u16, way: Transport) -> bool {
        let listed = match &self.name {
            Name::Address(listed) => *listed == address,
            Name::Exactly(name) => name == "localhost" && address.is_loopback(),
            Name::Below(_) => false,
        };
        listed && port == self.port.unwrap_or(way.usual_port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().unwrap()
    }

    #[test]
    fn rules_read_back() {
        for text in [
            "example.com",
            "example.com:8443",
            "*.example.com",
            "*.example.com:80",
            "127.0.0.1:8080",
            "10.0.0.5",
            "::1",
            "[::1]:443",
            "localhost:3000",
        ] {
            assert_eq!(rule(text).to_string(), text);
        }
        assert_eq!(rule("EXAMPLE.com.").to_string(), "example.com");
        let json = serde_json::to_string(&rule("a.example:1")).unwrap();
        assert_eq!(json, "\"a.example:1\"");
        assert_eq!(
            serde_json::from_str::<HostRule>(&json).unwrap(),
            rule("a.example:1")
        );
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "*.com",
            "a b",
            "http://a.example",
            "a.example/",
            "a.example:0",
            "a.example:70000",
            "a.example:+1",
            "-a.example",
            "a..example",
            "0x7f.1/",
            "127.1",
            "2130706433",
            "a@b.example",
            "[::1",
            "[::1]x",
        ] {
            assert!(text.parse::<HostRule>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_and_ports_match_exactly() {
        let exact = rule("api.example.com");
        assert!(exact.allows("API.example.com.", 443, Transport::Connect));
        assert!(exact.allows("api.example.com", 80, Transport::Plain));
        for (host, port, way) in [
            ("api.example.com", 80, Transport::Connect),
            ("api.example.com", 22, Transport::Connect),
            ("api.example.com", 443, Transport::Plain),
            ("xapi.example.com", 443, Transport::Connect),
            ("api.example.com.evil.example", 443, Transport::Connect),
            ("example.com", 443, Transport::Connect),
        ] {
            assert!(!exact.allows(host, port, way), "{host}:{port}");
        }
        let below = rule("*.example.com:8443");
        assert!(below.allows("a.b.example.com", 8443, Transport::Connect));
        for host in [
            "example.com",
            ".example.com",
            "badexample.com",
            "a.example.com.evil",
        ] {
            assert!(!below.allows(host, 8443, Transport::Connect), "{host}");
        }
        assert!(rule("::1").allows("0:0:0:0:0:0:0:1", 443, Transport::Connect));
    }

    #[test]
    fn only_addresses_and_localhost_list_private_ones() {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(rule("127.0.0.1:80").lists(loopback, 80, Transport::Plain));
        assert!(rule("localhost:80").lists(loopback, 80, Transport::Plain));
        assert!(!rule("localhost:81").lists(loopback, 80, Transport::Plain));
        assert!(!rule("evil.example:80").lists(loopback, 80, Transport::Plain));
        assert!(!rule("localhost").lists("10.0.0.1".parse().unwrap(), 80, Transport::Plain));
    }
}
