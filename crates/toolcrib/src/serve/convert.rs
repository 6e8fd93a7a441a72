//! The crib's words as MCP's JSON: tools, outcomes, errors. One conversion, whoever sends it.
//!
//! What an agent's model reads differs by client: some show only `structuredContent`, some only the text, some both.
//! So wherever there is data, the text is the same data as JSON, and otherwise there is text alone.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_core::{
    Access, Attachment, AttachmentKind, CallError, Catalog, Context, ErrorCode, Outcome, Tool,
};

/// How long a client may take a list for fresh. Changes are announced, so this only bounds what nobody listens for.
pub const TTL_MS: u64 = 60_000;

/// The prefix of this product's own keys in `_meta`.
const PREFIX: &str = "toolcrib/";

/// The tools that agents see: everything but what waits for trust.
pub fn listed(catalog: &Catalog) -> impl Iterator<Item = &Tool> {
    let seen = |tool: &&Tool| !matches!(tool.access, Access::Untrusted { .. });
    catalog.tools().map(|tool| tool.as_ref()).filter(seen)
}

/// How many tools wait for trust.
pub fn waiting(catalog: &Catalog) -> usize {
    catalog.len() - listed(catalog).count()
}

/// The `tools` of a `tools/list` result, sorted by name.
pub fn tools(catalog: &Catalog) -> Vec<Value> {
    listed(catalog).map(tool).collect()
}

fn tool(tool: &Tool) -> Value {
    let spec = &tool.spec;
    let mut view = Map::new();
    view.insert("name".into(), tool.name().into());
    if let Some(title) = &spec.annotations.title {
        view.insert("title".into(), title.as_str().into());
    }
    view.insert("description".into(), spec.description.as_str().into());
    view.insert("inputSchema".into(), spec.input_schema.value().clone());
    if let Some(schema) = &spec.output_schema {
        view.insert("outputSchema".into(), schema.value().clone());
    }
    match serde_json::to_value(&spec.annotations) {
        Ok(Value::Object(hints)) if !hints.is_empty() => {
            view.insert("annotations".into(), Value::Object(hints));
        }
        _ => {}
    }
    Value::Object(view)
}

/// What the `_meta` of a request says about the call: whose, and in which run and turn.
pub fn context<'a>(
    meta: impl Fn(&str) -> Option<&'a Value>,
    project: Option<Arc<Path>>,
) -> Context {
    let text = |key: &str| meta(key)?.as_str().map(str::to_owned);
    let codex = meta("x-codex-turn-metadata");
    let of_codex = |key: &str| codex?.get(key)?.as_str().map(str::to_owned);
    let call_id = text("claudecode/toolUseId");
    let mut context = Context::new(call_id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string()));
    let session = of_codex("session_id").or_else(|| text("toolcrib/run"));
    context.session_id = session.map(Arc::from);
    context.message_id = of_codex("turn_id").map(Arc::from);
    context.directory = project;
    context
}

/// What a call gave, as a `tools/call` result.
pub fn outcome(outcome: Outcome, tool: &Tool) -> Value {
    let truncated = outcome.metadata.contains_key("truncated");
    let structured = match outcome.structured {
        Some(data) if !outcome.is_error && !truncated => Some(data),
        _ => None,
    };
    let text = match &structured {
        Some(data) => data.to_string(),
        None => outcome.output,
    };
    let mut content = Vec::new();
    // An empty text says something only where there is nothing else.
    if !text.is_empty() || outcome.attachments.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    content.extend(outcome.attachments.into_iter().enumerate().map(attachment));
    let mut result = Map::new();
    result.insert("content".into(), content.into());
    if let Some(data) = structured {
        result.insert("structuredContent".into(), data);
    }
    if outcome.is_error {
        result.insert("isError".into(), true.into());
    }
    let mut meta = Map::new();
    if let Some(title) = outcome.title {
        meta.insert(format!("{PREFIX}title"), title.into());
    }
    if !outcome.metadata.is_empty() {
        meta.insert(format!("{PREFIX}metadata"), outcome.metadata.into());
    }
    if let Some(version) = &tool.spec.version {
        meta.insert(format!("{PREFIX}version"), version.as_str().into());
    }
    if !meta.is_empty() {
        result.insert("_meta".into(), meta.into());
    }
    Value::Object(result)
}

fn attachment((index, attachment): (usize, Attachment)) -> Value {
    let Attachment {
        kind,
        mime_type,
        text,
        data,
        name,
    } = attachment;
    match (kind, text, data) {
        (AttachmentKind::Image, _, Some(data)) => {
            json!({"type": "image", "data": data, "mimeType": mime_type})
        }
        (_, _, Some(data)) if mime_type.starts_with("audio/") => {
            json!({"type": "audio", "data": data, "mimeType": mime_type})
        }
        (AttachmentKind::Text, Some(text), _) => json!({"type": "text", "text": text}),
        (_, text, data) => {
            let name = name.unwrap_or_else(|| format!("attachment-{index}"));
            let safe = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let path: String = name
                .chars()
                .map(|c| if safe(c) { c } else { '_' })
                .collect();
            let mut resource =
                json!({"uri": format!("toolcrib://attachments/{path}"), "mimeType": mime_type});
            match data {
                Some(data) => resource["blob"] = data.into(),
                None => resource["text"] = text.unwrap_or_default().into(),
            }
            json!({"type": "resource", "resource": resource})
        }
    }
}

/// How an error reaches the client: as a protocol error, or as a result that the model reads.
pub enum Told {
    /// The request can't be routed: JSON-RPC code and message.
    Protocol(i32, String),
    Result(Value),
}

/// The one mapping of the error table to MCP.
pub fn error(error: &CallError) -> Told {
    let mut text = error.message.clone();
    if let Some(hint) = error.hint.as_deref().filter(|hint| !hint.is_empty()) {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    match error.code {
        ErrorCode::UnknownTool => Told::Protocol(-32602, text),
        ErrorCode::Internal => Told::Protocol(-32603, text),
        code => {
            let mut meta = json!({format!("{PREFIX}code"): code.as_str()});
            if let Some(data) = &error.data {
                meta[format!("{PREFIX}data")] = data.as_ref().clone();
            }
            Told::Result(json!({
                "content": [{"type": "text", "text": text}],
                "isError": true,
                "_meta": meta,
            }))
        }
    }
}

/// What a server says about itself to a model.
pub fn instructions(catalog: &Catalog) -> String {
    let mut text = String::from(
        "Tools of this machine and project, kept by Toolcrib. A long output is cut and says how to read on with \
         `read-output`. A refused call says which command of the user helps.",
    );
    match waiting(catalog) {
        0 => {}
        1 => text.push_str(" 1 tool waits for `toolcrib trust`."),
        n => text.push_str(&format!(" {n} tools wait for `toolcrib trust`.")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::tests::fixture;

    #[test]
    fn a_string_is_one_text_block_alone() {
        let tool = fixture::tool("t", fixture::echo());
        let result = outcome(Outcome::text("hi"), &tool);
        assert_eq!(result, json!({"content": [{"type": "text", "text": "hi"}]}));
    }

    #[test]
    fn data_is_said_twice_and_never_when_cut_or_failed() {
        let tool = fixture::tool("t", fixture::echo());
        let data = || Outcome::structured(json!({"a": 1}));
        let whole = outcome(data(), &tool);
        assert_eq!(whole["structuredContent"], json!({"a": 1}));
        assert_eq!(whole["content"][0]["text"], r#"{"a":1}"#);
        let failed = outcome(
            Outcome {
                is_error: true,
                ..data()
            },
            &tool,
        );
        assert_eq!(
            (failed.get("structuredContent"), &failed["isError"]),
            (None, &json!(true))
        );
        let cut = outcome(data().meta("truncated", true), &tool);
        assert_eq!(cut.get("structuredContent"), None);
    }

    #[test]
    fn errors_follow_the_table() {
        for code in ErrorCode::ALL {
            let told = error(&CallError::new(code, "no").hint("do"));
            match (code, told) {
                (ErrorCode::UnknownTool, Told::Protocol(number, _)) => assert_eq!(number, -32602),
                (ErrorCode::Internal, Told::Protocol(number, _)) => assert_eq!(number, -32603),
                (_, Told::Result(result)) => {
                    assert_eq!(result["isError"], true);
                    assert_eq!(result["content"][0]["text"], "no\nhint: do");
                    assert_eq!(result["_meta"]["toolcrib/code"], code.as_str());
                }
                (code, Told::Protocol(..)) => panic!("{code} is no protocol error"),
            }
        }
    }
}
