//! JSON-RPC as it goes out, written straight into bytes. Every message is one line.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::codes;
use super::message::Id;

/// An answer to one request.
#[derive(Debug)]
pub struct Answer {
    pub body: Vec<u8>,
    /// The number of the error that it tells, if it does.
    pub code: Option<i32>,
}

impl Answer {
    /// Answers with what only has to be written.
    pub fn result(id: &Id, result: &impl Serialize) -> Answer {
        let mut body = begin(id, 256);
        if let Err(error) = serde_json::to_writer(&mut body, result) {
            let reason = format!("the result is not JSON: {error}");
            return Answer::error(Some(id), codes::INTERNAL, &reason);
        }
        body.push(b'}');
        Answer {
            body: one_line(body),
            code: None,
        }
    }

    /// Answers with JSON that is bytes already, on one line.
    pub fn written(id: &Id, result: &[u8]) -> Answer {
        let mut body = begin(id, result.len());
        body.extend_from_slice(result);
        body.push(b'}');
        Answer { body, code: None }
    }

    pub fn error(id: Option<&Id>, code: i32, message: &str) -> Answer {
        Answer::error_with(id, code, message, None)
    }

    /// Without an id where it is not known whose request this answers.
    pub fn error_with(id: Option<&Id>, code: i32, message: &str, data: Option<Value>) -> Answer {
        let mut error = json!({"code": code, "message": message});
        if let Some(data) = data {
            error["data"] = data;
        }
        let id = id.map_or("null", Id::as_json);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into_bytes();
        Answer {
            body,
            code: Some(code),
        }
    }
}

/// A request of ours.
pub fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    message.to_string().into_bytes()
}

pub fn notification(method: &str, params: Option<&impl Serialize>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a P>,
    }
    let message = Notification {
        jsonrpc: "2.0",
        method,
        params,
    };
    // What is written here is made of text and numbers, which can't fail.
    one_line(serde_json::to_vec(&message).unwrap_or_default())
}

/// Several answers as one array.
pub fn array(answers: &[Answer]) -> Vec<u8> {
    let mut body = vec![b'['];
    for (at, answer) in answers.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&answer.body);
    }
    body.push(b']');
    body
}

/// An id as a value of its own.
pub fn raw(id: &Id) -> Box<RawValue> {
    RawValue::from_string(id.as_json().to_owned()).unwrap_or_default()
}

fn begin(id: &Id, room: usize) -> Vec<u8> {
    let id = id.as_json();
    let mut body = Vec::with_capacity(room + id.len() + 64);
    body.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    body.extend_from_slice(id.as_bytes());
    body.extend_from_slice(br#","result":"#);
    body
}

/// Between tokens JSON may hold line breaks, which what passed through unread may have. Within strings it never does.
pub fn one_line(mut message: Vec<u8>) -> Vec<u8> {
    for byte in &mut message {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_passed_through() {
        let raw = RawValue::from_string("{\"a\":\r\n[1,\n2],\"b\":\"\\n\"}".to_owned()).unwrap();
        let id: Box<RawValue> = serde_json::from_str("7").unwrap();
        let answer = Answer::result(&Id::of(&id).unwrap(), &raw);
        let text = String::from_utf8(answer.body).unwrap();
        assert_eq!(
            text,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":  [1, 2],\"b\":\"\\n\"}}"
        );
        let told = notification("m", Some(&raw));
        assert!(!told.contains(&b'\n'));
    }
}
