//! The short way for the two requests that matter most: stateless `tools/list` and `tools/call` over HTTP.
//!
//! It takes a request only when everything about it is as the 2026-07-28 revision says and nothing in it needs the
//! library: no progress, no parameter headers, no earlier rounds. All else, every error among it, goes the long way,
//! so that there is one place that knows the protocol. The tests hold both answers against each other.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcrib_core::{Catalog, Object, Request};

use super::auth::{Scope, Who};
use super::convert::{self, ErrorReply, ResultView, TTL_MS};
use super::{PerVersion, Served};

/// The revision whose requests stand alone.
pub const STATELESS: &str = "2026-07-28";
const COMPLETE: &str = "complete";
/// The longest name of a client that is taken as it is.
const MAX_CLIENT: usize = 64;

/// A request that is taken the short way.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    #[serde(borrow)]
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    method: &'a str,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Meta<'a>,
    name: Option<String>,
    arguments: Option<Object>,
}

/// What every request of this revision says about itself, read without a tree; only the rest of it becomes one.
#[derive(Debug, Default)]
struct Meta<'a> {
    version: Option<Cow<'a, str>>,
    client: Option<Client<'a>>,
    capabilities: Option<AnyObject>,
    rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Client<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, rename = "version")]
    _version: Cow<'a, str>,
}

/// Some object, whatever is in it.
#[derive(Debug)]
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<AnyObject, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = AnyObject;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyObject, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(AnyObject)
            }
        }
        from.deserialize_map(Any)
    }
}

/// Text that is borrowed where it can be.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Meta<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Meta<'a>, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Meta<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the `_meta` of a request")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Meta<'de>, A::Error> {
                let mut meta = Meta::default();
                while let Some(Text(key)) = map.next_key()? {
                    match &*key {
                        "io.modelcontextprotocol/protocolVersion" => {
                            meta.version = Some(map.next_value::<Text>()?.0);
                        }
                        "io.modelcontextprotocol/clientInfo" => {
                            meta.client = Some(map.next_value()?);
                        }
                        "io.modelcontextprotocol/clientCapabilities" => {
                            meta.capabilities = Some(map.next_value()?);
                        }
                        _ => {
                            meta.rest.insert(key.into_owned(), map.next_value()?);
                        }
                    }
                }
                Ok(meta)
            }
        }
        from.deserialize_map(Keys)
    }
}

/// What is made once per catalog version, for all requests of it.
#[derive(Default)]
pub struct Lean {
    /// The bytes of the tool list.
    listed: PerVersion<Bytes>,
    /// Tools whose arguments travel in headers too, which only the library understands.
    in_headers: PerVersion<HashSet<String>>,
}

impl Lean {
    /// Answers a request that fits, or gives nothing and leaves it to the library.
    pub async fn answer(
        &self,
        served: &Arc<Served>,
        who: &Who,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Option<Response> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let method = text("mcp-method")?;
        let plain = text("mcp-protocol-version") == Some(STATELESS)
            && text(ACCEPT.as_str())
                .is_some_and(|a| a.contains("application/json") && a.contains("text/event-stream"))
            && text(CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"))
            && !headers.contains_key("mcp-session-id")
            && !headers
                .keys()
                .any(|name| name.as_str().starts_with("mcp-param-"));
        if !plain {
            return None;
        }
        let message: Message = serde_json::from_slice(body).ok()?;
        if message.jsonrpc != "2.0" || message.method != method || !fits(&message) {
            return None;
        }
        match method {
            "tools/list" if !who.may(Scope::Read) => None,
            "tools/call" if !who.may(Scope::Call) => None,
            "tools/list" if message.params.name.is_none() && message.params.arguments.is_none() => {
                Some(reply(message.id, &self.list(served)))
            }
            "tools/call" if message.params.name.as_deref() == text("mcp-name") => {
                self.call(served, who, message).await
            }
            _ => None,
        }
    }

    fn list(&self, served: &Served) -> Bytes {
        let catalog = served.crib.tools();
        let listed = self.listed.of(&catalog, || {
            let result = json!({
                "tools": convert::tools(&catalog),
                "ttlMs": TTL_MS,
                "cacheScope": "private",
                "resultType": COMPLETE,
            });
            Bytes::from(result.to_string())
        });
        listed.1.clone()
    }

    /// Dropping this future, as the server does when the client hangs up, cancels the call: so says this revision.
    async fn call(
        &self,
        served: &Arc<Served>,
        who: &Who,
        message: Message<'_>,
    ) -> Option<Response> {
        let Params {
            meta,
            name,
            arguments,
        } = message.params;
        let name = name?;
        let catalog = served.crib.tools();
        let tool = catalog.get(&name)?;
        let in_headers = self.in_headers.of(&catalog, || in_headers(&catalog));
        if in_headers.1.contains(&name) {
            return None;
        }
        let request = Request {
            tool: name,
            arguments: arguments.unwrap_or_default(),
            caller: who.caller(shortened(&meta.client?.name)),
            context: convert::context(|key| meta.rest.get(key), served.project.clone()),
        };
        let _running = served.begin_call();
        let ended = served.crib.call(request).await;
        Some(match ended {
            Ok(outcome) => reply_with(message.id, convert::outcome(outcome, tool)),
            Err(error) => match convert::error(&error) {
                ErrorReply::Result(view) => reply_with(message.id, *view),
                ErrorReply::Protocol(code, said) => refuse(message.id, code, &said),
            },
        })
    }
}

/// Is the request whole, and nothing in it but what this way understands?
fn fits(message: &Message) -> bool {
    let meta = &message.params.meta;
    let id = message.id.get();
    let simple_id = id.starts_with('"') || id.bytes().all(|byte| byte.is_ascii_digit());
    simple_id
        && meta.version.as_deref() == Some(STATELESS)
        && meta.client.is_some()
        && meta.capabilities.is_some()
        && !meta.rest.contains_key("progressToken")
}

/// The beginning of a client's name.
fn shortened(name: &str) -> &str {
    let end = name.char_indices().nth(MAX_CLIENT);
    end.map_or(name, |(end, _)| &name[..end])
}

fn in_headers(catalog: &Catalog) -> HashSet<String> {
    let tools = catalog.tools();
    let tools = tools.filter(|tool| mentions(tool.spec.input_schema.value(), "x-mcp-header"));
    tools.map(|tool| tool.name().to_owned()).collect()
}

/// Does a schema use this keyword anywhere?
fn mentions(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key(keyword) || map.values().any(|inner| mentions(inner, keyword))
        }
        Value::Array(items) => items.iter().any(|inner| mentions(inner, keyword)),
        _ => false,
    }
}

/// An answer up to its result.
fn begin(id: &RawValue, room: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(room + id.get().len() + 64);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.extend_from_slice(id.get().as_bytes());
    body.extend_from_slice(br#","result":"#);
    body
}

fn reply(id: &RawValue, result: &[u8]) -> Response {
    let mut body = begin(id, result.len());
    body.extend_from_slice(result);
    body.push(b'}');
    json_response(body)
}

/// Writes a result straight into the answer. Every result of this revision says that it is complete.
fn reply_with(id: &RawValue, mut view: ResultView) -> Response {
    view.result_type = Some(COMPLETE);
    let mut body = begin(id, 256);
    if let Err(error) = serde_json::to_writer(&mut body, &view) {
        return refuse(id, -32603, &format!("the outcome is no JSON: {error}"));
    }
    body.push(b'}');
    json_response(body)
}

fn refuse(id: &RawValue, code: i32, message: &str) -> Response {
    let error = json!({"code": code, "message": message});
    json_response(format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, id.get()).into_bytes())
}

fn json_response(body: Vec<u8>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(CONTENT_TYPE, kind)], body).into_response()
}
