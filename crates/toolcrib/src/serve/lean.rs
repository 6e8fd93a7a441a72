//! The short way for the two requests that matter most: stateless `tools/list` and `tools/call` over HTTP.
//!
//! It takes a request only when everything about it is as the 2026-07-28 revision says and nothing in it needs the
//! library: no progress, no parameter headers, no earlier rounds. All else, every error among it, goes the long way,
//! so that there is one place that knows the protocol. The tests hold both answers against each other.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::body::Bytes;
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcrib_core::{Caller, Request};

use super::Served;
use super::convert::{self, TTL_MS, Told};

/// The revision whose requests stand alone.
pub const STATELESS: &str = "2026-07-28";
const META: &str = "io.modelcontextprotocol/";

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
    params: Params,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(rename = "_meta")]
    meta: Map<String, Value>,
    name: Option<String>,
    arguments: Option<Map<String, Value>>,
}

/// Bytes of the tool list, made once per catalog version.
#[derive(Default)]
pub struct Lean {
    listed: ArcSwapOption<(u64, Bytes)>,
}

impl Lean {
    /// Answers a request that fits, or gives nothing and leaves it to the library.
    pub async fn answer(
        &self,
        served: &Arc<Served>,
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
            "tools/list" if message.params.name.is_none() && message.params.arguments.is_none() => {
                Some(reply(message.id, &self.list(served)))
            }
            "tools/call" if message.params.name.as_deref() == text("mcp-name") => {
                self.call(served, message).await
            }
            _ => None,
        }
    }

    fn list(&self, served: &Served) -> Bytes {
        let catalog = served.crib.tools();
        if let Some(listed) = self.listed.load().as_deref()
            && listed.0 == catalog.version()
        {
            return listed.1.clone();
        }
        let result = complete(json!({
            "tools": convert::tools(&catalog),
            "ttlMs": TTL_MS,
            "cacheScope": "private",
        }));
        let bytes = Bytes::from(result.to_string());
        self.listed
            .store(Some(Arc::new((catalog.version(), bytes.clone()))));
        bytes
    }

    /// Dropping this future, as the server does when the client hangs up, cancels the call: so says this revision.
    async fn call(&self, served: &Arc<Served>, message: Message<'_>) -> Option<Response> {
        let Params {
            meta,
            name,
            arguments,
        } = message.params;
        let catalog = served.crib.tools();
        let tool = catalog.get(name.as_deref()?)?;
        let schema = tool.spec.input_schema.value();
        if mentions(schema, "x-mcp-header") {
            return None;
        }
        let context = convert::context(|key| meta.get(key), served.project.clone());
        let client = meta
            .get(&format!("{META}clientInfo"))
            .and_then(|info| info.get("name"));
        let client: String = client
            .and_then(Value::as_str)
            .unwrap_or("mcp")
            .chars()
            .take(64)
            .collect();
        let request = Request {
            tool: tool.name().to_owned(),
            arguments: arguments.unwrap_or_default(),
            caller: Caller::new(&client),
            context,
        };
        let _running = served.begin_call();
        let value = match served.crib.call(request).await {
            Ok(outcome) => convert::outcome(outcome, tool),
            Err(error) => match convert::error(&error) {
                Told::Result(value) => value,
                Told::Protocol(code, said) => return Some(refuse(message.id, code, &said)),
            },
        };
        Some(reply(message.id, complete(value).to_string().as_bytes()))
    }
}

/// Is the request whole, and nothing in it but what this way understands?
fn fits(message: &Message) -> bool {
    let meta = &message.params.meta;
    let id = message.id.get();
    let simple_id = id.starts_with('"') || id.bytes().all(|byte| byte.is_ascii_digit());
    let version = meta
        .get(&format!("{META}protocolVersion"))
        .and_then(Value::as_str);
    let whole = ["clientInfo", "clientCapabilities"].iter().all(|key| {
        meta.get(&format!("{META}{key}"))
            .is_some_and(Value::is_object)
    });
    let named = meta.get(&format!("{META}clientInfo")).is_some_and(|info| {
        info.get("name").is_some_and(Value::is_string)
            && info.get("version").is_some_and(Value::is_string)
    });
    simple_id && version == Some(STATELESS) && whole && named && !meta.contains_key("progressToken")
}

/// Does a schema use this keyword anywhere? Looked for on every call, so nothing is written out for it.
fn mentions(schema: &Value, keyword: &str) -> bool {
    match schema {
        Value::Object(map) => {
            map.contains_key(keyword) || map.values().any(|inner| mentions(inner, keyword))
        }
        Value::Array(items) => items.iter().any(|inner| mentions(inner, keyword)),
        _ => false,
    }
}

/// Every result of this revision says what it is.
fn complete(mut value: Value) -> Value {
    value["resultType"] = "complete".into();
    value
}

fn reply(id: &RawValue, result: &[u8]) -> Response {
    let mut body = Vec::with_capacity(result.len() + 64);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.extend_from_slice(id.get().as_bytes());
    body.extend_from_slice(br#","result":"#);
    body.extend_from_slice(result);
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
