//! How an http tool asks, and where each argument of an http tool goes: into the query, the body or a header, beside those that stand in the URL.

use std::collections::BTreeMap;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolcrib_core::{CallError, Json, Object};

use super::headers::CARRIAGE;
use crate::fields::{Fields, Report, nearest};

const HINT: &str =
    "write \"query\", \"body\", \"header:X-Name\", or \"path\" for one that stands in the URL";

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// Where an argument goes.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Destination {
    Query,
    Body,
    Header(HeaderName),
}

/// Where arguments go whose place the tool's author has chosen.
#[derive(Debug, Default)]
pub struct Destinations(BTreeMap<String, Destination>);

/// The arguments of one call, each in its place.
pub struct Sorted {
    pub query: Vec<(String, Json)>,
    pub body: Option<Object>,
    pub headers: HeaderMap,
}

impl Destinations {
    /// `in_url` are the arguments that stand in the URL.
    pub fn read(
        fields: &Fields,
        method: &Method,
        in_url: &[&str],
        report: &mut Report,
    ) -> Destinations {
        let mut send = Destinations::default();
        let Some(map) = fields.object(report, "send") else {
            return send;
        };
        for (name, value) in map {
            let shown: String = name.chars().take(60).collect();
            let field = format!("{}.{shown}", fields.at("send"));
            let placed = in_url.contains(&name.as_str());
            let destination = match value.as_str() {
                Some("path") if placed => continue,
                Some("path") => {
                    let what = format!("is `path`, but `{{{{{shown}}}}}` is not in the URL");
                    report.invalid(&field, &what, HINT);
                    continue;
                }
                Some(_) if placed => {
                    report.invalid(
                        &field,
                        "is in the URL already",
                        "write \"path\", or leave it out",
                    );
                    continue;
                }
                Some("query") => Some(Destination::Query),
                Some("body") if [Method::GET, Method::HEAD].contains(method) => {
                    let what = format!("is `body`, and a {method} has none");
                    report.invalid(&field, &what, "take \"query\", or another method");
                    continue;
                }
                Some("body") => Some(Destination::Body),
                Some(text) => text.strip_prefix("header:").and_then(header),
                None => None,
            };
            match destination {
                Some(destination) => _ = send.0.insert(name.clone(), destination),
                None => report.invalid(&field, "is no place that an argument can go to", HINT),
            }
        }
        send
    }

    /// The arguments that it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Each argument in its place. Those that nobody placed go into the body where the method has one, else into the query.
    pub fn sort(
        &self,
        method: &Method,
        arguments: Vec<(String, Json)>,
    ) -> Result<Sorted, CallError> {
        let by_default = match [Method::POST, Method::PUT, Method::PATCH].contains(method) {
            true => Destination::Body,
            false => Destination::Query,
        };
        let (mut query, mut body) = (Vec::new(), Vec::new());
        let mut headers = HeaderMap::new();
        for (name, value) in arguments {
            match self.0.get(&name).unwrap_or(&by_default) {
                Destination::Query => query.push((name, value)),
                Destination::Body => body.push((name, value)),
                Destination::Header(header) => {
                    let text = value.as_str().unwrap_or_else(|| value.compact());
                    let text = HeaderValue::from_str(&text).map_err(|_| {
                        CallError::invalid(format!("`{name}` holds a character that headers can't"))
                            .hint(format!("give `{name}` as plain text on one line"))
                    })?;
                    headers.insert(header.clone(), text);
                }
            }
        }
        let has_body = by_default == Destination::Body || !body.is_empty();
        let members = body.iter().map(|(name, json)| (name.as_str(), json));
        Ok(Sorted {
            query,
            body: has_body.then(|| Object::from_iter(members)),
            headers,
        })
    }
}

/// A header that is not the client's own.
fn header(name: &str) -> Option<Destination> {
    let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
    let own = CARRIAGE.contains(&name.as_str());
    (!own).then_some(Destination::Header(name))
}

/// The method that a tool's file names.
pub fn method(fields: &Fields, report: &mut Report) -> Method {
    let named = fields.text(report, "method").unwrap_or("POST");
    let known = METHODS.contains(&named).then(|| named.parse().ok());
    match known.flatten() {
        Some(method) => method,
        None => {
            let hint = match nearest(named, &METHODS) {
                Some(meant) => format!("did you mean \"{meant}\"?"),
                None => format!("take one of {}", METHODS.join(", ")),
            };
            report.invalid(
                &fields.at("method"),
                "is not a method that tools may use",
                &hint,
            );
            Method::POST
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};
    use toolcrib_core::SourceKind;

    fn read(method: Method, send: Value) -> (Destinations, Vec<String>) {
        let map: Map<String, Value> = Map::from_iter([("send".to_owned(), send)]);
        let mut report = Report::without_file(SourceKind::Plugin);
        let found = Destinations::read(&Fields::new("", &map), &method, &["id"], &mut report);
        let problems = report.finish().into_iter();
        (found, problems.map(|one| one.message).collect())
    }

    fn arguments() -> Vec<(String, Json)> {
        let all = [("page", "2"), ("token", "\"t\""), ("name", "\"n\"")];
        let each = all.map(|(name, value)| (name.to_owned(), Json::parse(value).unwrap()));
        each.into()
    }

    #[test]
    fn each_argument_goes_where_it_is_sent() {
        let places =
            json!({"id": "path", "page": "query", "token": "header:X-Token", "name": "body"});
        for method in [Method::POST, Method::PATCH, Method::DELETE] {
            let (send, problems) = read(method.clone(), places.clone());
            assert_eq!(problems, [] as [String; 0]);
            let sorted = send.sort(&method, arguments()).unwrap();
            assert_eq!(sorted.query[0].0, "page");
            assert_eq!(sorted.headers["x-token"], "t");
            let body = serde_json::to_string(&sorted.body).unwrap();
            assert_eq!(body, "{\"name\":\"n\"}", "{method}");
        }
        let nowhere = Destinations::default();
        for (method, query) in [
            (Method::GET, 3),
            (Method::HEAD, 3),
            (Method::DELETE, 3),
            (Method::PUT, 0),
            (Method::PATCH, 0),
        ] {
            let sorted = nowhere.sort(&method, arguments()).unwrap();
            assert_eq!(
                (sorted.query.len(), sorted.body.is_some()),
                (query, query == 0)
            );
        }
        let (send, _) = read(Method::GET, json!({"token": "header:X-Token"}));
        let broken = vec![("token".to_owned(), Json::parse("\"a\\nb\"").unwrap())];
        assert!(send.sort(&Method::GET, broken).is_err());
    }

    #[test]
    fn a_place_that_can_not_be_is_told() {
        for (method, send, words) in [
            (Method::GET, json!({"a": "body"}), "a GET has none"),
            (Method::POST, json!({"a": "path"}), "is not in the URL"),
            (
                Method::POST,
                json!({"id": "query"}),
                "is in the URL already",
            ),
            (Method::POST, json!({"a": "header:Host"}), "no place"),
            (Method::POST, json!({"a": "header:x y"}), "no place"),
            (Method::POST, json!({"a": 1}), "no place"),
        ] {
            let (_, problems) = read(method, send);
            assert!(problems[0].contains(words), "{problems:?}");
        }
    }
}
