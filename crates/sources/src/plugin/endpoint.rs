//! An http tool's URL: where placeholders may stand, and how values are put there without changing where it leads.

use std::collections::HashSet;

use toolcrib_core::{CallError, Json, Object};
use url::{Host, Url};

use super::reach::host_of;
use super::slots::{self, BadSlot, Piece};

/// Longer URLs are refused by most servers anyway.
const MAX_URL: usize = 32_000;

/// Which part of a URL a placeholder stands in, and so what its value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    Start,
    Host,
    Port,
    Path,
    Query,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Slot { name: String, zone: Zone },
}

/// A URL with placeholders.
#[derive(Debug)]
pub struct Endpoint {
    parts: Vec<Part>,
}

/// Why a URL is refused when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("must begin with `http://`, `https://` or a placeholder for a base URL")]
    Scheme,
    #[error("contains a space, a backslash or a control character")]
    Character,
    #[error("contains credentials")]
    Credentials,
    #[error("contains a fragment (`#…`), which is never sent")]
    Fragment,
    #[error(
        "continues right after the base URL `{{{{{0}}}}}` without a `/` or `?`, which could change the host"
    )]
    AfterBase(String),
    #[error("has the placeholder `{{{{{0}}}}}` in its host, so an agent would choose the host")]
    HostSlot(String),
    #[error("mixes the placeholder `{{{{{0}}}}}` with other text in its port")]
    PortSlot(String),
    #[error("can't be read as a URL: {0}")]
    Url(String),
    #[error(transparent)]
    Slot(#[from] BadSlot),
}

impl EndpointError {
    pub fn hint(&self) -> &'static str {
        match self {
            EndpointError::Scheme => {
                "write \"https://host/path\", or \"{{url}}/path\"; other schemes are not called"
            }
            EndpointError::Character => "percent-encode the character, such as `%20` for a space",
            EndpointError::Credentials => {
                "send them in `headers`, such as \"Authorization\": \"Bearer ${TOKEN}\""
            }
            EndpointError::Fragment => "remove the `#` and what follows, or write `%23`",
            EndpointError::AfterBase(_) => "put a `/` after it, such as \"{{url}}/path\"",
            EndpointError::HostSlot(_) => {
                "write the host itself, or list the hosts in `allowedHosts`"
            }
            EndpointError::PortSlot(_) => {
                "make the placeholder the whole port, such as \"http://localhost:{{port}}/\""
            }
            EndpointError::Url(_) => "write \"https://host/path\"",
            EndpointError::Slot(_) => BadSlot::HINT,
        }
    }
}

impl Endpoint {
    /// `hosts_listed` says that `allowedHosts` decides on hosts, so that a placeholder may stand in one.
    pub fn parse(text: &str, hosts_listed: bool) -> Result<Endpoint, EndpointError> {
        let pieces = slots::pieces(text)?;
        let outside_slots =
            |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains(unfit));
        if pieces.iter().any(outside_slots) {
            return Err(EndpointError::Character);
        }
        let mut zone = match pieces.first() {
            Some(Piece::Slot(_)) => Zone::Start,
            // Parsers pass over further slashes and take what follows for the host.
            Some(Piece::Text(text)) if after_scheme(text).is_some_and(|t| t.starts_with('/')) => {
                return Err(EndpointError::Url("it names no host".into()));
            }
            Some(Piece::Text(text)) if after_scheme(text).is_some() => Zone::Host,
            _ => return Err(EndpointError::Scheme),
        };
        let mut parts = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Slot(name) => {
                    if let (Zone::Start, Some(Part::Slot { name: base, .. })) = (zone, parts.last())
                    {
                        return Err(EndpointError::AfterBase(base.clone()));
                    }
                    if zone == Zone::Host && !hosts_listed {
                        return Err(EndpointError::HostSlot(name.clone()));
                    }
                    let before_ends =
                        matches!(parts.last(), Some(Part::Text(text)) if text.ends_with(':'));
                    let next_ends = match pieces.get(index + 1) {
                        None => true,
                        Some(Piece::Text(text)) => text.starts_with(['/', '?', '#']),
                        Some(Piece::Slot(_)) => false,
                    };
                    if zone == Zone::Port && !(before_ends && next_ends) {
                        return Err(EndpointError::PortSlot(name.clone()));
                    }
                    parts.push(Part::Slot {
                        name: name.clone(),
                        zone,
                    });
                }
                Piece::Text(text) => {
                    if let (Zone::Start, Some(Part::Slot { name, .. })) = (zone, parts.last())
                        && !text.starts_with(['/', '?', '#'])
                    {
                        return Err(EndpointError::AfterBase(name.clone()));
                    }
                    let literal = if index == 0 {
                        after_scheme(text).unwrap_or(text)
                    } else {
                        text
                    };
                    zone = walk(zone, literal)?;
                    parts.push(Part::Text(text.clone()));
                }
            }
        }
        let endpoint = Endpoint { parts };
        endpoint.sample()?;
        Ok(endpoint)
    }

    /// The URL with harmless values everywhere: if that is none, no call could work.
    fn sample(&self) -> Result<Url, EndpointError> {
        let value = |zone| match zone {
            Zone::Start => "http://localhost",
            Zone::Port => "1",
            Zone::Host | Zone::Path | Zone::Query => "x",
        };
        let arguments = self
            .slots()
            .map(|(name, zone)| (name.to_owned(), value(zone).into()))
            .collect();
        self.build(&arguments)
            .map_err(|error| EndpointError::Url(error.message))
    }

    fn slots(&self) -> impl Iterator<Item = (&str, Zone)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Slot { name, zone } => Some((name.as_str(), *zone)),
            Part::Text(_) => None,
        })
    }

    /// The names of its placeholders.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots().map(|(name, _)| name)
    }

    /// The host, where no value can change it.
    pub fn literal_host(&self) -> Option<Host<String>> {
        let chosen = |zone| matches!(zone, Zone::Start | Zone::Host);
        if self.slots().any(|(_, zone)| chosen(zone)) {
            return None;
        }
        self.sample().ok().and_then(|url| host_of(&url))
    }

    /// A URL of the server that is called, where no value can change host or port.
    pub fn literal_server(&self) -> Option<Url> {
        let chosen = |zone| matches!(zone, Zone::Start | Zone::Host | Zone::Port);
        if self.slots().any(|(_, zone)| chosen(zone)) {
            return None;
        }
        self.sample().ok()
    }

    /// The URL for these arguments.
    pub fn build(&self, arguments: &Object) -> Result<Url, CallError> {
        let mut text = String::new();
        for (index, part) in self.parts.iter().enumerate() {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Slot { name, zone } => {
                    let value =
                        slots::value_of(arguments, name)?.ok_or_else(|| slots::unset(name))?;
                    match zone {
                        Zone::Start => {
                            check_base(name, &value)?;
                            let joined = matches!(self.parts.get(index + 1), Some(Part::Text(t)) if t.starts_with('/'));
                            text.push_str(if joined {
                                value.trim_end_matches('/')
                            } else {
                                &value
                            });
                        }
                        Zone::Host => text.push_str(check_host(name, &value)?),
                        Zone::Port => text.push_str(check_port(name, &value)?),
                        Zone::Path | Zone::Query => encode(&value, &mut text),
                    }
                }
            }
        }
        if text.len() > MAX_URL {
            return Err(CallError::invalid(format!(
                "the URL would be longer than {MAX_URL} characters"
            ))
            .hint("give shorter arguments"));
        }
        if has_dot_segment(&text) {
            return Err(CallError::invalid(
                "the URL's path would hold `.` or `..`, which leads elsewhere",
            )
            .hint("give arguments that are not `.` or `..`"));
        }
        Url::parse(&text).map_err(|error| {
            CallError::invalid(format!("the arguments make no URL: {error}"))
                .hint("check the values that go into the URL")
        })
    }

    /// The arguments that did not go into the URL, each as it is written.
    pub fn remaining(&self, arguments: &Object) -> Vec<(String, Json)> {
        let used: HashSet<&str> = self.names().collect();
        let members = arguments.members();
        members
            .filter(|(name, value)| !used.contains(&**name) && *value != "null")
            .filter_map(|(name, value)| Some((name.into_owned(), Json::parse(value).ok()?)))
            .collect()
    }
}

/// Adds arguments to the query: a list repeats its name, an object is JSON.
pub fn add_query(url: &mut Url, arguments: &[(String, Json)]) {
    let text = |json: &Json| match json.text() {
        "null" => None,
        _ => Some(json.as_str().unwrap_or_else(|| json.compact()).into_owned()),
    };
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (name, value) in arguments {
        let name = name.as_str();
        match value.text().starts_with('[') {
            true => pairs.extend(value.items().filter_map(|item| Some((name, text(&item)?)))),
            false => pairs.extend(text(value).map(|text| (name, text))),
        }
    }
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
}

fn unfit(c: char) -> bool {
    c.is_whitespace() || c.is_control() || c == '\\'
}

/// What follows the scheme of an http(s) URL.
fn after_scheme(text: &str) -> Option<&str> {
    ["http://", "https://"].into_iter().find_map(|scheme| {
        let (front, rest) = text.split_at_checked(scheme.len())?;
        front.eq_ignore_ascii_case(scheme).then_some(rest)
    })
}

/// In which part of the URL the text ends.
fn walk(mut zone: Zone, text: &str) -> Result<Zone, EndpointError> {
    let mut bracketed = false;
    for character in text.chars() {
        zone = match (zone, character) {
            (_, '#') => return Err(EndpointError::Fragment),
            (Zone::Host | Zone::Port, '@') => return Err(EndpointError::Credentials),
            (Zone::Query, _) | (_, '?') => Zone::Query,
            (Zone::Start | Zone::Host | Zone::Port, '/') => Zone::Path,
            (Zone::Host, '[' | ']') => {
                bracketed = character == '[';
                Zone::Host
            }
            (Zone::Host, ':') if !bracketed => Zone::Port,
            (same, _) => same,
        };
    }
    Ok(zone)
}

fn check_base(name: &str, value: &str) -> Result<(), CallError> {
    let refuse = |why: &str| {
        Err(CallError::invalid(format!("`{name}` {why}"))
            .hint("give a base URL such as `https://example.com` or `http://localhost:8080`"))
    };
    let Some(rest) = after_scheme(value) else {
        return refuse("must be a URL that begins with `http://` or `https://`");
    };
    if value.contains(unfit) {
        return refuse("contains a space, a backslash or a control character");
    }
    if rest.contains(['?', '#']) {
        return refuse("must have no query (`?…`) and no fragment (`#…`)");
    }
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    // Parsers pass over further slashes and take what follows for the host, credentials included.
    if authority.is_empty() {
        return refuse("names no host");
    }
    if authority.contains('@') {
        return refuse("must hold no user name and no password");
    }
    match Url::parse(value) {
        Ok(url) if url.host().is_some() => Ok(()),
        Ok(_) => refuse("names no host"),
        Err(error) => refuse(&format!("is not a URL: {error}")),
    }
}

fn check_host<'a>(name: &str, value: &'a str) -> Result<&'a str, CallError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
    if !value.is_empty() && value.chars().all(fits) {
        return Ok(value);
    }
    Err(CallError::invalid(format!(
        "`{name}` is part of a host's name and holds other characters"
    ))
    .hint("give letters, digits, `-` and `.` only"))
}

fn check_port<'a>(name: &str, value: &'a str) -> Result<&'a str, CallError> {
    let digits = value.chars().all(|c| c.is_ascii_digit());
    match value.parse::<u16>() {
        Ok(1..) if digits => Ok(value),
        _ => Err(CallError::invalid(format!("`{name}` is not a port"))
            .hint("give a whole number from 1 to 65535")),
    }
}

/// As JavaScript's `encodeURIComponent`: all but letters, digits and `-_.!~*'()`.
fn encode(value: &str, text: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            text.push(char::from(HEX[usize::from(byte >> 4)]));
            text.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Does a segment of the path mean "here" or "up"? Parsers resolve those silently, encoded dots too.
fn has_dot_segment(text: &str) -> bool {
    let rest = after_scheme(text).unwrap_or(text);
    let path = rest.split('?').next().unwrap_or_default();
    path.split('/').skip(1).any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
