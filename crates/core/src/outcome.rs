//! What a call gave: the result contract of every tool, in whatever language it was written.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Content, Giver, McpResult};
use crate::json::scan::{self, Parts};
use crate::json::with_members;
use crate::outputs::Whole;
use crate::{Json, JsonError, Object};

/// What a call gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Short words on what was done.
    pub title: Option<String>,
    /// The text an agent reads. Where `whole` is set it is only the beginning.
    pub output: String,
    /// What the crib has to say above the text. The chain puts it there, where nothing cuts it off.
    pub remark: Option<String>,
    /// The whole text, spooled because it was too large to hold.
    pub whole: Option<Whole>,
    /// `output` is only the beginning, and the rest could not be kept.
    pub rest_is_lost: bool,
    pub metadata: Object,
    pub attachments: Vec<Attachment>,
    pub structured: Option<Json>,
    /// The blocks of a result in MCP's own form. `output` then holds the words of its text blocks.
    pub content: Option<Box<Content>>,
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
    pub fn structured(value: impl Into<Json>) -> Outcome {
        let data = value.into();
        Outcome {
            output: data.compact().into_owned(),
            structured: Some(data),
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
        self.metadata.insert(key, value);
        self
    }

    /// Reads what a tool returned: a string is `output`; an object with a string `output` is the contract; one with a
    /// `content` of MCP's blocks is MCP's own result; anything else is data.
    pub fn from_json(json: Json) -> Outcome {
        if let Some(text) = json.as_str() {
            return Outcome::text(text);
        }
        let parts = match json.text().starts_with('{') {
            true => Parts::of(json.text()).collect(),
            false => Vec::new(),
        };
        let is_contract = last(&parts, "output").is_some_and(|text| text.starts_with('"'));
        if is_contract {
            return contract(&parts);
        }
        if last(&parts, "content").is_some()
            && let Some(result) = McpResult::read(json.text(), Giver::Tool)
        {
            return Outcome::from(result);
        }
        let is_error = reports_failure(&parts);
        Outcome {
            is_error,
            ..Outcome::structured(json)
        }
    }

    /// Reads what an MCP server returned, which is MCP's own result whatever else is in it.
    pub fn from_mcp(json: &Json) -> Result<Outcome, JsonError> {
        let result = McpResult::read(json.text(), Giver::Server).ok_or(JsonError::NoObject)?;
        Ok(Outcome::from(result))
    }
}

impl From<McpResult> for Outcome {
    fn from(result: McpResult) -> Outcome {
        Outcome {
            output: result.content.words(),
            structured: result.structured,
            is_error: result.is_error,
            content: Some(Box::new(result.content)),
            ..Outcome::default()
        }
    }
}

/// The members of an object, each value as it is written.
type Members<'a> = [(Cow<'a, str>, &'a str)];

/// Where a name stands twice the last one counts.
fn last<'a>(parts: &Members<'a>, name: &str) -> Option<&'a str> {
    let found = parts.iter().rev().find(|(known, _)| known == name);
    found.map(|(_, text)| *text)
}

fn reports_failure(parts: &Members) -> bool {
    last(parts, "success") == Some("false") || last(parts, "isError") == Some("true")
}

/// The names that the contract has a place for; all others are metadata.
const CONTRACT: [&str; 6] = [
    "output",
    "title",
    "structured",
    "attachments",
    "metadata",
    "isError",
];

fn contract(parts: &Members) -> Outcome {
    let text = |name: &str| {
        let text = last(parts, name).filter(|text| text.starts_with('"'))?;
        scan::decoded(text).map(Cow::into_owned)
    };
    let structured = last(parts, "structured").filter(|text| *text != "null");
    let attachments = last(parts, "attachments").filter(|list| list.starts_with('['));
    let attachments = Parts::of(attachments.unwrap_or_default()).filter_map(|(_, one)| {
        let one = Json::trusted(one.to_owned());
        attachment(one.into_value())
    });
    Outcome {
        title: text("title"),
        output: text("output").unwrap_or_default(),
        structured: structured.map(|text| Json::trusted(text.to_owned())),
        attachments: attachments.collect(),
        metadata: metadata(parts),
        is_error: reports_failure(parts),
        ..Outcome::default()
    }
}

fn metadata(parts: &Members) -> Object {
    let own = last(parts, "metadata").filter(|text| text.starts_with('{'));
    let own = own.unwrap_or("{}");
    let mut seen: HashSet<Cow<str>> = Parts::of(own).map(|(name, _)| name).collect();
    let further = parts.iter().rev().filter(|(name, _)| {
        let is_new = !CONTRACT.contains(&&**name) && !seen.contains(name);
        if is_new {
            seen.insert(name.clone());
        }
        is_new
    });
    let mut further: Vec<_> = further.map(|(name, text)| (&**name, *text)).collect();
    further.reverse();
    let mut metadata = Object::default();
    if own != "{}" || !further.is_empty() {
        metadata.replace(with_members(own, further));
    }
    metadata
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

    fn read(value: Value) -> Outcome {
        Outcome::from_json(value.into())
    }

    #[test]
    fn a_string_is_output() {
        assert_eq!(read(json!("hi")), Outcome::text("hi"));
    }

    #[test]
    fn the_contract_is_read_and_the_rest_is_metadata() {
        let outcome = read(json!({
            "title": "Read a", "output": "text", "metadata": {"bytes": 4}, "extra": 1,
            "attachments": [{"type": "text", "mimeType": "text/plain", "text": "t"}],
            "structured": {"a": 1},
        }));
        assert_eq!(outcome.title.as_deref(), Some("Read a"));
        assert_eq!(outcome.output, "text");
        assert_eq!(outcome.metadata["bytes"], 4);
        assert_eq!(outcome.metadata["extra"], 1);
        assert_eq!(outcome.attachments.len(), 1);
        assert_eq!(outcome.structured, Some(json!({"a": 1}).into()));
        assert!(!outcome.is_error);
    }

    #[test]
    fn anything_else_is_structured() {
        let outcome = read(json!({"rows": [1, 2]}));
        assert_eq!(outcome.output, r#"{"rows":[1,2]}"#);
        assert_eq!(outcome.structured, Some(json!({"rows": [1, 2]}).into()));
        assert_eq!(read(json!(3)).output, "3");
    }

    #[test]
    fn failure_is_said_in_two_ways() {
        for value in [
            json!({"output": "no", "success": false}),
            json!({"output": "no", "isError": true}),
            json!({"success": false, "error": "x"}),
        ] {
            assert!(read(value).is_error);
        }
        assert!(!read(json!({"output": "yes", "success": true})).is_error);
    }

    #[test]
    fn opencode_attachments_are_accepted() {
        let outcome = read(json!({"output": "", "attachments": [
            {"type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}
        ]}));
        assert_eq!(outcome.attachments[0].kind, AttachmentKind::Image);
        assert_eq!(outcome.attachments[0].data.as_deref(), Some("AAAA"));
        assert_eq!(outcome.attachments[0].name.as_deref(), Some("a.png"));
    }
}
