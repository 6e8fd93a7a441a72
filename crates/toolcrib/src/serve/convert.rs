//! The crib's words as MCP's JSON: tools, outcomes, errors. One conversion, whoever sends it.
//!
//! What an agent's model reads differs by client: some show only `structuredContent`, some only the text, some both.
//! So wherever there is data, the text is the same data as JSON, and otherwise there is text alone.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use toolcrib_core::{
    Attachment, AttachmentKind, Block, CallError, Content, ErrorCode, Json, Object, Outcome,
    OutputLimit, SourceKind, Tool, View,
};

use crate::surface::ClientIds;

/// How long a client may take a list for fresh. Changes are announced, so this only bounds what nobody listens for.
pub const TTL_MS: u64 = 60_000;

/// The `tools` of a `tools/list` result, sorted by name.
pub fn tools(view: &View) -> Vec<Value> {
    view.listed().map(|one| tool(one)).collect()
}

/// The same for a client that has a list of its own of what is to be done, which would compete with ours.
pub fn tools_without_todo_list(view: &View) -> Vec<Value> {
    let ours = |tool: &Tool| tool.source == SourceKind::Builtin && tool.name() == "todo-write";
    let others = view.listed().filter(|tool| !ours(tool));
    others.map(|one| tool(one)).collect()
}

/// A tool as lists have it.
pub fn tool(tool: &Tool) -> Value {
    let spec = &tool.spec;
    let mut view = Map::new();
    view.insert("name".into(), tool.name().into());
    if let Some(title) = spec.title.as_ref().or(spec.annotations.title.as_ref()) {
        view.insert("title".into(), title.as_str().into());
    }
    view.insert("description".into(), spec.description.as_str().into());
    if let Some(icons) = &spec.icons {
        view.insert("icons".into(), icons.value().clone());
    }
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
    if let Some(meta) = &spec.meta {
        view.insert("_meta".into(), meta.json().value().clone());
    }
    Value::Object(view)
}

/// What the `_meta` of a request says about the call: what it is called, and in which run and turn it is.
pub fn ids(meta: impl Fn(&str) -> Option<Value>) -> ClientIds {
    let text = |key: &str| meta(key)?.as_str().map(str::to_owned);
    let codex = meta("x-codex-turn-metadata");
    let of_codex = |key: &str| codex.as_ref()?.get(key)?.as_str().map(str::to_owned);
    ClientIds {
        call: text("claudecode/toolUseId"),
        thread: text("toolcrib/thread").or_else(|| of_codex("thread_id")),
        run: text("toolcrib/run"),
        session: of_codex("session_id").or_else(|| text("toolcrib/run")),
        message: of_codex("turn_id"),
    }
}

/// A `tools/call` result as it is written, so that no tree is built where bytes are wanted.
#[derive(Debug, Default)]
pub struct ResultView<'a> {
    content: Vec<BlockView>,
    /// Data of whatever type: see [`ResultView::wrap_data`].
    structured_content: Option<Json>,
    is_error: Option<bool>,
    meta: Meta<'a>,
    /// What the newest revision wants of every result; older clients have never heard of it.
    pub result_type: Option<&'static str>,
    /// What a result of MCP's own form has beside all that.
    rest: Object,
}

impl Serialize for ResultView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &self.content)?;
        if let Some(data) = &self.structured_content {
            map.serialize_entry("structuredContent", data)?;
        }
        if let Some(is_error) = self.is_error {
            map.serialize_entry("isError", &is_error)?;
        }
        match &self.meta {
            Meta::Ours(ours) if ours.is_empty() => {}
            Meta::Ours(ours) => map.serialize_entry("_meta", ours)?,
            Meta::Theirs(None) => {}
            Meta::Theirs(Some(theirs)) => map.serialize_entry("_meta", theirs)?,
        }
        if let Some(kind) = self.result_type {
            map.serialize_entry("resultType", kind)?;
        }
        for (name, value) in self.rest.parts() {
            map.serialize_entry(&name, &value)?;
        }
        map.end()
    }
}

/// Data, as the result of a call that gave nothing else.
pub fn data(data: Json) -> ResultView<'static> {
    ResultView {
        content: vec![BlockView::Ours(OurBlock::Text {
            text: data.compact().into_owned(),
        })],
        structured_content: Some(data),
        ..ResultView::default()
    }
}

/// One piece of content: made of our words, or as a tool gave it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum BlockView {
    Ours(OurBlock),
    Theirs(Object),
}

#[derive(Debug, Serialize)]
#[serde(
    tag = "type",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
enum OurBlock {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
    Resource { resource: Resource },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The `_meta` of a result.
#[derive(Debug)]
enum Meta<'a> {
    Ours(OurMeta<'a>),
    /// A tool's own, with ours in it where something was cut.
    Theirs(Option<Object>),
}

impl Default for Meta<'_> {
    fn default() -> Self {
        Meta::Theirs(None)
    }
}

const METADATA: &str = "toolcrib/metadata";

/// This product's own keys in the `_meta` of a result.
#[derive(Debug, Default, Serialize)]
struct OurMeta<'a> {
    #[serde(rename = "toolcrib/title", skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(rename = "toolcrib/metadata", skip_serializing_if = "Option::is_none")]
    metadata: Option<Object>,
    #[serde(rename = "toolcrib/version", skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(rename = "toolcrib/code", skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(rename = "toolcrib/data", skip_serializing_if = "Option::is_none")]
    data: Option<&'a Value>,
}

impl OurMeta<'_> {
    fn is_empty(&self) -> bool {
        let OurMeta {
            title,
            metadata,
            version,
            code,
            data,
        } = self;
        title.is_none()
            && metadata.is_none()
            && version.is_none()
            && code.is_none()
            && data.is_none()
    }
}

impl ResultView<'_> {
    /// Puts data into an object of its own, as revisions before 2026-07-28 have it: data that is no object, and all data
    /// of a tool whose listed schema was `wrapped` too.
    pub fn wrap_data(&mut self, wrapped: bool) {
        if let Some(data) = self.structured_content.take() {
            let bare = data.is_object() && !wrapped;
            self.structured_content = Some(if bare { data } else { data.within("result") });
        }
    }
}

/// What a call gave, as a `tools/call` result.
pub fn outcome(outcome: Outcome, tool: &Tool) -> ResultView<'_> {
    // Of a failed call no data is owed, and clients would hold it against the schema.
    let owed = !outcome.is_error || tool.spec.output_schema.is_none();
    match outcome.content {
        Some(content) => own_form(
            *content,
            outcome.structured.filter(|_| owed),
            outcome.metadata,
            outcome.is_error,
        ),
        None => our_form(outcome, tool),
    }
}

fn our_form(outcome: Outcome, tool: &Tool) -> ResultView<'_> {
    let metadata = Some(outcome.metadata).filter(|metadata| !metadata.is_empty());
    let truncated = metadata
        .as_ref()
        .is_some_and(|metadata| metadata.contains_key("truncated"));
    let structured = match outcome.structured {
        Some(data) if !outcome.is_error && (!truncated || tool.spec.output_schema.is_some()) => {
            Some(data)
        }
        _ => None,
    };
    // The text is the same data, unless it would be longer than a text may be.
    let text = match &structured {
        Some(data) if !truncated && data.text().len() <= OutputLimit::DEFAULT.bytes => {
            data.compact().into_owned()
        }
        _ => outcome.output,
    };
    let mut content = Vec::with_capacity(1 + outcome.attachments.len());
    // An empty text says something only where there is nothing else.
    if !text.is_empty() || outcome.attachments.is_empty() {
        content.push(OurBlock::Text { text });
    }
    content.extend(outcome.attachments.into_iter().enumerate().map(attachment));
    ResultView {
        content: content.into_iter().map(BlockView::Ours).collect(),
        structured_content: structured,
        is_error: outcome.is_error.then_some(true),
        meta: Meta::Ours(OurMeta {
            title: outcome.title,
            metadata,
            version: tool.spec.version.as_deref(),
            ..OurMeta::default()
        }),
        ..ResultView::default()
    }
}

/// A result in MCP's own form goes on as it came, with nothing added but how to read what was cut.
fn own_form(
    content: Content,
    structured_content: Option<Json>,
    metadata: Object,
    is_error: bool,
) -> ResultView<'static> {
    let mut meta = content.meta;
    if !metadata.is_empty() {
        let meta = meta.get_or_insert_default();
        meta.set(METADATA, metadata.json());
    }
    let blocks = content.blocks.into_iter().map(Block::into_object);
    ResultView {
        content: blocks.map(BlockView::Theirs).collect(),
        structured_content,
        is_error: (is_error || content.says_is_error).then_some(is_error),
        meta: Meta::Theirs(meta),
        rest: content.rest,
        ..ResultView::default()
    }
}

fn attachment((index, attachment): (usize, Attachment)) -> OurBlock {
    let Attachment {
        kind,
        mime_type,
        text,
        data,
        name,
    } = attachment;
    match (kind, text, data) {
        (AttachmentKind::Image, _, Some(data)) => OurBlock::Image { data, mime_type },
        (_, _, Some(data)) if mime_type.starts_with("audio/") => {
            OurBlock::Audio { data, mime_type }
        }
        (AttachmentKind::Text, Some(text), _) => OurBlock::Text { text },
        (_, text, data) => {
            let name = name.unwrap_or_else(|| format!("attachment-{index}"));
            let safe = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            let path: String = name
                .chars()
                .map(|c| if safe(c) { c } else { '_' })
                .collect();
            let text = data.is_none().then(|| text.unwrap_or_default());
            OurBlock::Resource {
                resource: Resource {
                    uri: format!("toolcrib://attachments/{path}"),
                    mime_type,
                    blob: data,
                    text,
                },
            }
        }
    }
}

/// How an error reaches the client: as a protocol error, or as a result that the model reads.
pub enum ErrorReply<'a> {
    /// The request can't be routed: JSON-RPC code and message.
    Protocol(i32, String),
    Result(Box<ResultView<'a>>),
}

/// The one mapping of the error table to MCP.
pub fn error(error: &CallError) -> ErrorReply<'_> {
    let mut text = error.message.clone();
    if let Some(hint) = error.hint.as_ref().filter(|hint| !hint.is_empty()) {
        text.push_str("\nhint: ");
        text.push_str(&hint.to_string());
    }
    match error.code {
        ErrorCode::UnknownTool => ErrorReply::Protocol(-32602, text),
        ErrorCode::Internal => ErrorReply::Protocol(-32603, text),
        code => ErrorReply::Result(Box::new(ResultView {
            content: vec![BlockView::Ours(OurBlock::Text { text })],
            is_error: Some(true),
            meta: Meta::Ours(OurMeta {
                code: Some(code.as_str()),
                data: error.data.as_deref(),
                ..OurMeta::default()
            }),
            ..ResultView::default()
        })),
    }
}

/// What a server says about itself to a model.
pub fn instructions(view: &View) -> String {
    let mut text = String::from(
        "Tools of this machine and project, kept by Toolcrib. A long output is cut and says how to read on with \
         `read-output`. A refused call says which command of the user helps.",
    );
    match view.waiting() {
        0 => {}
        1 => text.push_str(" 1 tool waits for `toolcrib trust`."),
        n => text.push_str(&format!(" {n} tools wait for `toolcrib trust`.")),
    }
    text
}

#[cfg(test)]
#[path = "convert_tests.rs"]
mod tests;
