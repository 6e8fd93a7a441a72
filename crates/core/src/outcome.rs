//! What a call gave: the result contract of every tool, in whatever language it was written.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::outputs::Whole;

/// What a call gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Short words on what was done.
    pub title: Option<String>,
    /// The text an agent reads. Where `whole` is set it is only the beginning.
    pub output: String,
    /// The whole text, spooled because it was too large to hold.
    pub whole: Option<Whole>,
    /// `output` is only the beginning, and the rest could not be kept.
    pub rest_is_lost: bool,
    pub metadata: Map<String, Value>,
    pub attachments: Vec<Attachment>,
    pub structured: Option<Value>,
    /// The tool itself reports failure.
    pub is_error: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentKind {
    Text,
    Image,
    File,
}

/// Something that comes with an outcome: `text`, or `data` in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    #[serde(rename = "type")]
    pub kind: AttachmentKind,
    #[serde(alias = "mime")]
    pub mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", alias = "filename")]
    pub name: Option<String>,
}

impl Outcome {
    pub fn text(output: impl Into<String>) -> Outcome {
        Outcome {
            output: output.into(),
            ..Outcome::default()
        }
    }

    /// Data, whose JSON is the text.
    pub fn structured(value: Value) -> Outcome {
        Outcome {
            output: value.to_string(),
            structured: Some(value),
            ..Outcome::default()
        }
    }

    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Outcome {
        self.title = Some(title.into());
        self
    }

    #[must_use]
    pub fn meta(mut self, key: &str, value: impl Into<Value>) -> Outcome {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Reads what a tool returned: a string is `output`; an object with a string `output` is the contract;
    /// anything else is data.
    pub fn from_value(value: Value) -> Outcome {
        let mut map = match value {
            Value::String(text) => return Outcome::text(text),
            Value::Object(map) if map.get("output").is_some_and(Value::is_string) => map,
            other => {
                let is_error = reports_failure(&other);
                return Outcome {
                    is_error,
                    ..Outcome::structured(other)
                };
            }
        };
        let mut outcome = Outcome {
            is_error: take_failure(&mut map),
            ..Outcome::default()
        };
        if let Some(Value::String(output)) = map.remove("output") {
            outcome.output = output;
        }
        if let Some(Value::String(title)) = map.remove("title") {
            outcome.title = Some(title);
        }
        if let Some(structured) = map.remove("structured").filter(|v| !v.is_null()) {
            outcome.structured = Some(structured);
        }
        if let Some(Value::Array(items)) = map.remove("attachments") {
            outcome.attachments = items.into_iter().filter_map(attachment).collect();
        }
        if let Some(Value::Object(metadata)) = map.remove("metadata") {
            outcome.metadata = metadata;
        }
        for (key, value) in map {
            outcome.metadata.entry(key).or_insert(value);
        }
        outcome
    }
}

fn reports_failure(value: &Value) -> bool {
    value.get("success") == Some(&Value::Bool(false))
        || value.get("isError") == Some(&Value::Bool(true))
}

fn take_failure(map: &mut Map<String, Value>) -> bool {
    let failed = map.remove("isError") == Some(Value::Bool(true));
    let unsuccessful = map.get("success") == Some(&Value::Bool(false));
    failed || unsuccessful
}

/// Our form, or OpenCode's (`{type: "file", mime, filename, url: "data:…;base64,…"}`).
fn attachment(value: Value) -> Option<Attachment> {
    if let Some(url) = value.get("url").and_then(Value::as_str) {
        let (header, data) = url.strip_prefix("data:")?.split_once(',')?;
        let declared = header.strip_suffix(";base64")?;
        let mime = value
            .get("mime")
            .and_then(Value::as_str)
            .unwrap_or(declared)
            .to_owned();
        let kind = if mime.starts_with("image/") {
            AttachmentKind::Image
        } else {
            AttachmentKind::File
        };
        let name = value
            .get("filename")
            .and_then(Value::as_str)
            .map(str::to_owned);
        return Some(Attachment {
            kind,
            mime_type: mime,
            text: None,
            data: Some(data.to_owned()),
            name,
        });
    }
    serde_json::from_value(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_string_is_output() {
        assert_eq!(Outcome::from_value(json!("hi")), Outcome::text("hi"));
    }

    #[test]
    fn the_contract_is_read_and_the_rest_is_metadata() {
        let outcome = Outcome::from_value(json!({
            "title": "Read a", "output": "text", "metadata": {"bytes": 4}, "extra": 1,
            "attachments": [{"type": "text", "mimeType": "text/plain", "text": "t"}],
            "structured": {"a": 1},
        }));
        assert_eq!(outcome.title.as_deref(), Some("Read a"));
        assert_eq!(outcome.output, "text");
        assert_eq!(outcome.metadata["bytes"], 4);
        assert_eq!(outcome.metadata["extra"], 1);
        assert_eq!(outcome.attachments.len(), 1);
        assert_eq!(outcome.structured, Some(json!({"a": 1})));
        assert!(!outcome.is_error);
    }

    #[test]
    fn anything_else_is_structured() {
        let outcome = Outcome::from_value(json!({"rows": [1, 2]}));
        assert_eq!(outcome.output, r#"{"rows":[1,2]}"#);
        assert_eq!(outcome.structured, Some(json!({"rows": [1, 2]})));
        assert_eq!(Outcome::from_value(json!(3)).output, "3");
    }

    #[test]
    fn failure_is_said_in_two_ways() {
        for value in [
            json!({"output": "no", "success": false}),
            json!({"output": "no", "isError": true}),
            json!({"success": false, "error": "x"}),
        ] {
            assert!(Outcome::from_value(value).is_error);
        }
        assert!(!Outcome::from_value(json!({"output": "yes", "success": true})).is_error);
    }

    #[test]
    fn opencode_attachments_are_accepted() {
        let outcome = Outcome::from_value(json!({"output": "", "attachments": [
            {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}
        ]}));
        assert_eq!(outcome.attachments[0].kind, AttachmentKind::Image);
        assert_eq!(outcome.attachments[0].data.as_deref(), Some("AAAA"));
        assert_eq!(outcome.attachments[0].name.as_deref(), Some("a.png"));
    }
}
