//! An http tool's headers: literal text and `${NAME}` from the allowed environment, and which survive a redirect.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use toolcrib_core::CallError;

use crate::fields::Report;
use crate::options::is_variable;

/// Headers that say how the message is carried; the client sets them.
const CARRIAGE: [&str; 9] = [
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
    Variable(String),
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

    /// The variables that it takes.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .flat_map(|(_, parts)| parts)
            .filter_map(|part| match part {
                Part::Variable(name) => Some(name.as_str()),
                Part::Text(_) => None,
            })
    }

    /// The headers as they are sent, with variables that may be read. No error ever holds a value.
    pub fn filled<'v>(
        &self,
        variable: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<HeaderMap, CallError> {
        let mut map = HeaderMap::new();
        for (name, parts) in &self.0 {
            let mut text = String::new();
            for part in parts {
                match part {
                    Part::Text(literal) => text.push_str(literal),
                    Part::Variable(name) => {
                        text.push_str(variable(name).ok_or_else(|| missing(name))?);
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
            "write the value itself, or `${NAME}` for an environment variable",
        ));
    }
    if HeaderValue::from_str(text).is_err() {
        return Err((
            "holds a character that headers can't",
            "write plain text on one line",
        ));
    }
    let mut parts = Vec::new();
    while let Some(start) = text.find("${") {
        let bad = (
            "has a `${` that is no variable",
            "write `${NAME}`: letters, digits and `_`",
        );
        let (name, rest) = text[start + 2..]
            .split_once('}')
            .filter(|(name, _)| is_variable(name))
            .ok_or(bad)?;
        parts.push(Part::Text(text[..start].to_owned()));
        parts.push(Part::Variable(name.to_owned()));
        text = rest;
    }
    parts.push(Part::Text(text.to_owned()));
    Ok(parts)
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
    fn variables_come_from_the_environment_only() {
        let environment = |name: &str| {
            [("LANG", "C"), ("TZ", "a\nb")]
                .into_iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v)
        };
        let (headers, problems) =
            read(serde_json::json!({"X-A": "l=${LANG}; $x", "Accept": "*/*"}));
        assert!(problems.is_empty());
        assert_eq!(headers.variables().collect::<Vec<_>>(), ["LANG"]);
        let filled = headers.filled(environment).unwrap();
        assert_eq!(filled["x-a"], "l=C; $x");
        let kept = for_another_server(filled);
        assert_eq!(
            kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["accept"]
        );

        let error = read(serde_json::json!({"X-A": "${NO_SUCH}"}))
            .0
            .filled(environment)
            .unwrap_err();
        assert!(error.message.contains("NO_SUCH"));
        let error = read(serde_json::json!({"X-A": "${TZ}"}))
            .0
            .filled(environment)
            .unwrap_err();
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
