//! One call on the wire: its body, its outcome, and the one shape of every error.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::{
    Attachment, AttachmentKind, Block, CallError, Content, ErrorCode, Json, Object, Outcome,
};
use utoipa::ToSchema;

/// What a call sends. An empty body means no arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallBody {
    /// The tool's arguments, by name.
    #[serde(default)]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub arguments: Object,
    /// The agent that calls: another than the token's only where the token is for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The run that this call belongs to, in which `run_limit` counts; used as `sessionId` if that is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The conversation that this call belongs to, in which `thread_limit` counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The call is cancelled when the client goes away, instead of going on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
}

/// A call that is being cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallStopped {
    /// Its id.
    pub cancelled: String,
}

/// What a call gave. `isError` means that the tool itself reports failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeView {
    /// A short title of what was done; null if the tool gave none.
    pub title: Option<String>,
    /// The text an agent reads. A long one is cut and says how to read on.
    pub output: String,
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: Object,
    pub attachments: Vec<AttachmentView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub structured: Option<Json>,
    /// The blocks of a result in MCP's own form, in their order; `output` contains the texts of the text blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<BTreeMap<String, Value>>>)]
    pub content: Option<Vec<Object>>,
    /// The `_meta` of such a result.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    pub meta: Option<Object>,
    pub is_error: bool,
}

impl From<Outcome> for OutcomeView {
    // By value: an outcome may be large and is not needed after it was sent.
    fn from(outcome: Outcome) -> OutcomeView {
        let content = outcome.content.map(|content| *content);
        let (blocks, meta) = content
            .map(|content| (content.blocks, content.meta))
            .unzip();
        OutcomeView {
            title: outcome.title,
            output: outcome.output,
            metadata: outcome.metadata,
            attachments: outcome
                .attachments
                .into_iter()
                .map(AttachmentView::from)
                .collect(),
            structured: outcome.structured,
            content: blocks.map(|blocks| blocks.into_iter().map(Block::into_object).collect()),
            meta: meta.flatten(),
            is_error: outcome.is_error,
        }
    }
}

impl From<OutcomeView> for Outcome {
    fn from(view: OutcomeView) -> Outcome {
        Outcome {
            remark: None,
            title: view.title,
            output: view.output,
            whole: None,
            rest_is_lost: false,
            metadata: view.metadata,
            attachments: view.attachments.into_iter().map(Attachment::from).collect(),
            structured: view.structured,
            content: view.content.map(|blocks| {
                let blocks = blocks.iter().map(|block| Block::read(block.text()));
                Box::new(Content {
                    blocks: blocks.flatten().collect(),
                    meta: view.meta,
                    ..Content::default()
                })
            }),
            is_error: view.is_error,
        }
    }
}

/// Something that comes with an outcome: `text`, or `data` in base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentView {
    #[serde(rename = "type")]
    pub kind: AttachmentType,
    pub mime_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AttachmentType {
    Text,
    Image,
    File,
}

impl From<Attachment> for AttachmentView {
    fn from(attachment: Attachment) -> AttachmentView {
        let Attachment {
            kind,
            mime_type,
            text,
            data,
            name,
        } = attachment;
        let kind = match kind {
            AttachmentKind::Text => AttachmentType::Text,
            AttachmentKind::Image => AttachmentType::Image,
            AttachmentKind::File => AttachmentType::File,
        };
        AttachmentView {
            kind,
            mime_type,
            text,
            data,
            name,
        }
    }
}

impl From<AttachmentView> for Attachment {
    fn from(view: AttachmentView) -> Attachment {
        let AttachmentView {
            kind,
            mime_type,
            text,
            data,
            name,
        } = view;
        let kind = match kind {
            AttachmentType::Text => AttachmentKind::Text,
            AttachmentType::Image => AttachmentKind::Image,
            AttachmentType::File => AttachmentKind::File,
        };
        Attachment {
            kind,
            mime_type,
            text,
            data,
            name,
        }
    }
}

/// The one shape of every error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    pub error: ErrorBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// One of the documented codes, for programs.
    #[schema(example = "unknown_tool")]
    pub code: String,
    /// What failed and why, for people.
    pub message: String,
    /// What to do about it; empty when there is nothing to say.
    #[serde(default)]
    pub hint: String,
    /// Details for programs, such as the paths a schema refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl From<&CallError> for ErrorView {
    fn from(error: &CallError) -> ErrorView {
        ErrorView {
            error: ErrorBody {
                code: error.code.as_str().to_owned(),
                message: error.message.clone(),
                hint: error
                    .hint
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                data: error.data.as_deref().cloned(),
            },
        }
    }
}

impl From<ErrorView> for CallError {
    /// A code that this version does not know reads as `internal`; the message still says what it was.
    fn from(view: ErrorView) -> CallError {
        let ErrorBody {
            code,
            message,
            hint,
            data,
        } = view.error;
        CallError {
            code: ErrorCode::parse(&code).unwrap_or(ErrorCode::Internal),
            message,
            hint: Some(hint).filter(|hint| !hint.is_empty()).map(Into::into),
            data: data.map(Box::new),
            unreached: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_outcome_comes_back_as_it_went() {
        let attachment = Attachment {
            kind: AttachmentKind::Image,
            mime_type: "image/png".into(),
            text: None,
            data: Some("AAAA".into()),
            name: None,
        };
        let content = Content {
            blocks: vec![Block::text("hi")],
            meta: Some(Object::parse(r#"{"a/b": 1.0}"#).unwrap()),
            ..Content::default()
        };
        let outcome = Outcome {
            attachments: vec![attachment],
            content: Some(Box::new(content)),
            is_error: true,
            ..Outcome::structured(json!({"a": 1})).meta("n", 1)
        };
        let sent = serde_json::to_value(OutcomeView::from(outcome.clone())).unwrap();
        assert_eq!(sent["title"], Value::Null);
        assert_eq!(
            sent["attachments"],
            json!([{"type": "image", "mimeType": "image/png", "data": "AAAA"}])
        );
        assert_eq!(sent["isError"], true);
        assert_eq!(sent["content"], json!([{"type": "text", "text": "hi"}]));
        let back: OutcomeView = serde_json::from_value(sent).unwrap();
        assert_eq!(Outcome::from(back), outcome);
        let plain = serde_json::to_value(OutcomeView::from(Outcome::text(""))).unwrap();
        assert_eq!((plain.get("content"), plain.get("_meta")), (None, None));
    }

    #[test]
    fn an_error_comes_back_as_it_went() {
        let error = CallError::denied("no").hint("ask").data(json!({"a": 1}));
        let sent = serde_json::to_value(ErrorView::from(&error)).unwrap();
        assert_eq!(
            sent,
            json!({"error": {"code": "denied", "message": "no", "hint": "ask", "data": {"a": 1}}})
        );
        let back: ErrorView = serde_json::from_value(sent).unwrap();
        assert_eq!(CallError::from(back), error);
    }

    #[test]
    fn a_body_with_an_unknown_field_is_refused() {
        assert!(serde_json::from_value::<CallBody>(json!({"argument": {}})).is_err());
        assert_eq!(
            serde_json::from_value::<CallBody>(json!({})).unwrap(),
            CallBody::default()
        );
    }
}
