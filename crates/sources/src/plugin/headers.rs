//! An http tool's headers: literal text, `${NAME}` from the allowed environment, `${secret://NAME}`, and which survive a
//! redirect.

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use toolcrib_core::CallError;
use toolcrib_core::permit::{SECRET, secret_name};

use crate::fields::Report;
use crate::options::is_variable;

/// Headers that say how the message is carried; the client sets them.
pub const CARRIAGE: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-authorization",
];
/// Headers that tell another server nothing it could misuse.
const HARMLESS: [&str; 3] = ["accept", "accept-language", "user-agent"];

#[derive(Debug)]
enum Part {
    Text(String),
    /// A variable's name, or a secret as `secret://NAME`.
    Wanted(String),
}

/// The headers of one tool.
#[derive(Debug, Default)]
pub struct Headers(Vec<(HeaderName, Vec<Part>)>);

impl Headers {
    pub fn read(map: &Map<String, Value>, field: &str, report: &mut Report) -> Headers {
        let mut headers = Headers::default();
        for (name, value) in map {
            let shown: String = name.chars().take(60).collect();
            let field = format!("{field}.{shown}");
            let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else {
                report.invalid(
                    &field,
                    "can't be a header's name",
                    "write a name such as \"Accept\" or \"X-Api-Key\"",
                );
                continue;
            };
            if CARRIAGE.contains(&header.as_str()) {
                report.invalid(&field, "is set by the client itself", "remove this header");
                continue;
            }
            let Some(text) = value.as_str() else {
                report.invalid(&field, "must be a string", "write the value in quotes");
                continue;
            };
            match parts(text) {
                Ok(parts) => headers.0.push((header, parts)),
                Err((what, hint)) => report.invalid(&field, what, hint),
            }
        }
        headers
    }

    /// What it takes: names of variables, and secrets as `secret://NAME`.
    pub fn wanted(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .flat_map(|(_, parts)| parts)
            .filter_map(|part| match part {
                Part::Wanted(name) => Some(name.as_str()),
                Part::Text(_) => None,
            })
    }

    /// The headers as they are sent, with these values of what they take. No error ever holds a value.
    pub fn filled(&self, values: &BTreeMap<&str, String>) -> Result<HeaderMap, CallError> {
        let mut map = HeaderMap::new();
        for (name, parts) in &self.0 {
            let mut text = String::new();
            for part in parts {
                match part {
                    Part::Text(literal) => text.push_str(literal),
                    Part::Wanted(name) => {
                        let value = values.get(name.as_str()).ok_or_else(|| missing(name))?;
                        text.push_str(value);
                    }
                }
            }
            let mut value = HeaderValue::from_str(text.trim()).map_err(|_| {
                CallError::unavailable(format!(
                    "the header `{name}` would hold a character that headers can't"
                ))
                .hint("look at the variables it takes: a line break is the usual cause")
            })?;
            value.set_sensitive(true);
            map.insert(name.clone(), value);
        }
        Ok(map)
    }
}

/// Keeps what may go to a server other than the one the headers were meant for.
pub fn for_another_server(headers: HeaderMap) -> HeaderMap {
    let harmless = |name: &HeaderName| HARMLESS.contains(&name.as_str());
    headers
        .into_iter()
        .filter_map(|(name, value)| Some((name.filter(harmless)?, value)))
        .collect()
}

fn missing(variable: &str) -> CallError {
    CallError::unavailable(format!(
        "the environment variable `{variable}` is not set for this tool"
    ))
    .hint(format!(
        "set `{variable}` before Toolcrib starts, and grant it to the tool"
    ))
}

fn parts(mut text: &str) -> Result<Vec<Part>, (&'static str, &'static str)> {
    if text.contains("{{") {
        return Err((
            "holds a placeholder, so an agent could write headers",
            "write the value itself, `${NAME}` for an environment variable, or `${secret://NAME}` for a secret",
        ));
    }
    if HeaderValue::from_str(text).is_err() {
        return Err((
            "holds a character that headers can't",
            "write plain text on one line",
        ));
    }
    // Alone it needs no brackets, as in a program's `env`.
    if secret_name(text).is_some() {
        return Ok(vec![Part::Wanted(text.to_owned())]);
    }
    let mut parts = Vec::new();
    while let Some(start) = text.find("${") {
        let bad = (
            "has a `${` that is neither a variable nor a secret",
            "write `${NAME}`: letters, digits and `_`; or `${secret://NAME}`",
        );
        let (name, rest) = text[start + 2..]
            .split_once('}')
            .filter(|(name, _)| is_variable(name) || secret_name(name).is_some())
            .ok_or(bad)?;
        parts.push(Part::Text(text[..start].to_owned()));
        parts.push(Part::Wanted(name.to_owned()));
        text = rest;
    }
    parts.push(Part::Text(text.to_owned()));
    let bare = |part: &Part| matches!(part, Part::Text(text) if text.contains(SECRET));
    match parts.iter().any(bare) {
        true => Err((
            "contains a reference to a secret, which would be sent as plain text",
            "write `${secret://NAME}` within a text; names take letters, digits, `_`, `-` and `.`",
        )),
        false => Ok(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(value: Value) -> (Headers, Vec<toolcrib_core::Problem>) {
        let mut report = Report::new(Path::new("f.json"), toolcrib_core::SourceKind::Plugin);
        let headers = Headers::read(value.as_object().unwrap(), "headers", &mut report);
        (headers, report.finish())
    }

    #[test]
    fn variables_and_secrets_are_filled_in() {
        let (headers, problems) = read(serde_json::json!({
            "X-A": "l=${LANG}; $x", "Accept": "*/*", "X-B": "Bearer ${secret://api.key}!",
            "X-C": "secret://whole",
        }));
        assert!(problems.is_empty());
        let wanted = ["LANG", "secret://api.key", "secret://whole"];
        assert_eq!(headers.wanted().collect::<Vec<_>>(), wanted);
        let values = BTreeMap::from(wanted.map(|name| (name, format!("<{}>", name.len()))));
        let filled = headers.filled(&values).unwrap();
        assert_eq!(filled["x-a"], "l=<4>; $x");
        assert_eq!(filled["x-b"], "Bearer <16>!");
        assert_eq!(filled["x-c"], "<14>");
        assert!(filled["x-b"].is_sensitive());
        let kept = for_another_server(filled);
        assert_eq!(
            kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["accept"]
        );
        let without = |value: serde_json::Value| {
            let values = BTreeMap::from([("TZ", "a\nb".to_owned())]);
            read(value).0.filled(&values).unwrap_err()
        };
        let error = without(serde_json::json!({"X-A": "${NO_SUCH}"}));
        assert!(error.message.contains("NO_SUCH"));
        let error = without(serde_json::json!({"X-A": "${TZ}"}));
        assert!(!format!("{error:?}").contains("a\\nb"));
    }

    #[test]
    fn bad_headers_are_named() {
        for (value, field) in [
            (serde_json::json!({"X-A": "{{token}}"}), "headers.X-A"),
            (serde_json::json!({"X A": "x"}), "headers.X A"),
            (serde_json::json!({"X-A": "a\r\nX-B: c"}), "headers.X-A"),
            (serde_json::json!({"X-A": 1}), "headers.X-A"),
            (serde_json::json!({"Host": "x"}), "headers.Host"),
            (serde_json::json!({"X-A": "${"}), "headers.X-A"),
            (serde_json::json!({"X-A": "${A-B}"}), "headers.X-A"),
            (serde_json::json!({"X-A": "${secret://}"}), "headers.X-A"),
            (
                serde_json::json!({"X-A": "Bearer secret://a"}),
                "headers.X-A",
            ),
        ] {
            let (headers, problems) = read(value);
            assert!(headers.0.is_empty());
            assert!(
                problems[0].message.contains(field),
                "{}",
                problems[0].message
            );
            assert!(!problems[0].hint.is_empty());
        }
    }
}
