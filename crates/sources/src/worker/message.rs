//! What goes over the pipes: JSON-RPC 2.0, with the fields each method has.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolcrib_core::Json;

/// The error of a host that could not load its file; `data` says more.
pub const NOT_LOADED: i64 = -32002;

/// The protocol versions that are spoken.
pub const SUPPORTED: [&str; 2] = ["1.0", "1.1"];

/// A request or notification to the worker.
#[derive(Debug, Serialize)]
pub struct Outgoing<'a, P> {
    pub jsonrpc: &'static str,
    /// A string, as the protocol says. Left out in a notification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    pub method: &'a str,
    pub params: P,
}

impl<'a, P: Serialize> Outgoing<'a, P> {
    /// One line, newline included.
    pub fn line(id: Option<&'a str>, method: &'a str, params: P) -> serde_json::Result<Vec<u8>> {
        let mut line = Vec::with_capacity(256);
        let message = Outgoing {
            jsonrpc: "2.0",
            id,
            method,
            params,
        };
        serde_json::to_writer(&mut line, &message)?;
        line.push(b'\n');
        Ok(line)
    }
}

/// What a worker says.
#[derive(Debug, PartialEq)]
pub enum Message {
    /// The answer to a request; an error without an id belongs to the one call in flight.
    Answer {
        id: Option<u64>,
        result: Result<Json, RpcError>,
    },
    /// A notification, or a request that nobody here answers.
    Notice { method: String, params: Value },
}

/// What a worker answers when it can't do what it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
    /// What the worker said beside its answers while it worked on this.
    pub said: Box<str>,
}

impl RpcError {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const TIMEOUT: i64 = -32000;
    /// What the tool's own failures are called.
    pub const FAILED: i64 = -32001;

    /// A result came without an id that could be somebody's.
    pub fn nobodys() -> RpcError {
        RpcError {
            code: RpcError::FAILED,
            message: "the tool's answer has no `id` that was asked for".to_owned(),
            data: None,
            said: Box::default(),
        }
    }

    /// An error as it is written. One that can't be read is an error all the same, or its caller would wait in vain.
    fn written(raw: &RawValue) -> RpcError {
        match serde_json::from_str(raw.get()) {
            Ok(value) => RpcError::read(value),
            Err(error) => RpcError {
                code: RpcError::FAILED,
                message: format!("the tool failed, and what it says of it can't be read: {error}"),
                data: None,
                said: Box::default(),
            },
        }
    }

    /// Any value is an error where one is expected: a caller who waits is better served by odd words than by none.
    fn read(value: Value) -> RpcError {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let Value::Object(mut map) = value else {
            let message = text(&value);
            return RpcError {
                code: 0,
                message,
                data: None,
                said: Box::default(),
            };
        };
        let code = map.get("code");
        let whole = code.and_then(Value::as_i64);
        RpcError {
            code: whole
                .or_else(|| Some(code?.as_f64()? as i64))
                .unwrap_or_default(),
            message: map.get("message").map(text).unwrap_or_default(),
            data: map.remove("data").filter(|data| !data.is_null()),
            said: Box::default(),
        }
    }
}

/// Why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum NoMessage {
    #[error("{0}")]
    Json(serde_json::Error),
    #[error("it has neither a result nor an error")]
    Shape,
}

impl NoMessage {
    /// Could more lines make it one?
    pub fn is_unfinished(&self) -> bool {
        matches!(self, NoMessage::Json(error) if error.is_eof())
    }
}

/// A message whose parts nobody has looked at.
#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    // `null` is a result; a missing one is none.
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow)]
    error: Option<&'a RawValue>,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl Message {
    pub fn parse(line: &[u8]) -> Result<Message, NoMessage> {
        let raw: Raw = serde_json::from_slice(line).map_err(NoMessage::Json)?;
        if let Some(method) = raw.method {
            let params = raw.params.map(|params| serde_json::from_str(params.get()));
            let params = params.transpose().map_err(NoMessage::Json)?;
            return Ok(Message::Notice {
                method,
                params: params.unwrap_or_default(),
            });
        }
        let result = match (raw.error, raw.result) {
            (Some(error), _) => Err(RpcError::written(error)),
            (None, Some(value)) => result(value),
            (None, None) => return Err(NoMessage::Shape),
        };
        Ok(Message::Answer {
            id: raw.id.and_then(|id| asked(&id)),
            result,
        })
    }
}

/// A result as it is written. What can't be taken is a failure of the tool, so that its caller does not wait in vain.
fn result(raw: &RawValue) -> Result<Json, RpcError> {
    Json::new(raw.to_owned()).map_err(|error| RpcError {
        code: RpcError::FAILED,
        message: format!("the tool's result can't be read: {error}"),
        data: None,
        said: Box::default(),
    })
}

/// An id that no request has.
const NOBODY: u64 = 0;

/// The id of a request; nothing where it could be none of ours, and one that nobody has where it is not ours.
fn asked(id: &Value) -> Option<u64> {
    let plain = matches!(id, Value::String(_) | Value::Number(_));
    plain.then(|| number(id).unwrap_or(NOBODY))
}

/// Our ids are numbers in strings; they may come back as either.
pub fn number(id: &Value) -> Option<u64> {
    match id {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0)?;
            (0.0..1e15).contains(&whole).then_some(whole as u64)
        }),
        _ => None,
    }
}
