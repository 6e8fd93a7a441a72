//! The crib's words as MCP's JSON: tools, outcomes, errors. One conversion, whoever sends it.
//!
//! What an agent's model reads differs by client: some show only `structuredContent`, some only the text, some both.
//! So wherever there is data, the text is the same data as JSON, and otherwise there is text alone.

use std::path::Path;
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use toolcrib_core::{
    Access, Attachment, AttachmentKind, Block, CallError, Catalog, Content, Context, ErrorCode,
    Json, Object, Outcome, Tool,
};

/// How long a client may take a list for fresh. Changes are announced, so this only bounds what nobody listens for.
pub const TTL_MS: u64 = 60_000;

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

/// What the `_meta` of a request says about the call: whose, and in which run and turn.
pub fn context(meta: impl Fn(&str) -> Option<Value>, project: Option<Arc<Path>>) -> Context {
    let text = |key: &str| meta(key)?.as_str().map(str::to_owned);
    let codex = meta("x-codex-turn-metadata");
    let of_codex = |key: &str| codex.as_ref()?.get(key)?.as_str().map(str::to_owned);
    let call_id = text("claudecode/toolUseId");
    let own_id: Arc<str> = uuid::Uuid::now_v7().to_string().into();
    let mut context = Context::new(call_id.map_or_else(|| own_id.clone(), Arc::from));
    context.record_id = Some(own_id);
    let session = of_codex("session_id").or_else(|| text("toolcrib/run"));
    context.session_id = session.map(Arc::from);
    context.message_id = of_codex("turn_id").map(Arc::from);
    context.directory = project;
    context
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
    match outcome.content {
        Some(content) => own_form(
            *content,
            outcome.structured,
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
        Some(data) if !outcome.is_error && !truncated => Some(data),
        _ => None,
    };
    let text = match &structured {
        Some(data) => data.compact().into_owned(),
        None => outcome.output,
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
    if let Some(hint) = error.hint.as_deref().filter(|hint| !hint.is_empty()) {
        text.push_str("\nhint: ");
        text.push_str(hint);
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
    use serde_json::json;

    use super::*;
    use crate::serve::tests::fixture;

    fn outcome(outcome: Outcome, tool: &Tool) -> Value {
        serde_json::to_value(super::outcome(outcome, tool)).unwrap()
    }

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
    fn data_that_is_no_object_is_wrapped_for_older_revisions() {
        let tool = fixture::tool("t", fixture::echo());
        for (data, wrapped, expected) in [
            (json!([1, 2]), false, json!({"result": [1, 2]})),
            (json!(7), false, json!({"result": 7})),
            (json!({"a": 1}), false, json!({"a": 1})),
            (json!({"a": 1}), true, json!({"result": {"a": 1}})),
        ] {
            let mut view = super::outcome(Outcome::structured(data.clone()), &tool);
            view.wrap_data(wrapped);
            let view = serde_json::to_value(view).unwrap();
            assert_eq!(view["structuredContent"], expected);
            assert_eq!(view["content"][0]["text"], data.to_string());
        }
        let mut text = super::outcome(Outcome::text("hi"), &tool);
        text.wrap_data(true);
        assert_eq!(
            serde_json::to_value(text).unwrap().get("structuredContent"),
            None
        );
    }

    #[test]
    fn attachments_become_the_blocks_of_their_kind() {
        let tool = fixture::tool("t", fixture::echo());
        let with =
            |kind, mime: &str, text: Option<&str>, data: Option<&str>, name: Option<&str>| {
                let attachment = Attachment {
                    kind,
                    mime_type: mime.to_owned(),
                    text: text.map(str::to_owned),
                    data: data.map(str::to_owned),
                    name: name.map(str::to_owned),
                };
                let attachments = vec![attachment];
                let view = outcome(
                    Outcome {
                        attachments,
                        ..Outcome::text("")
                    },
                    &tool,
                );
                view["content"][0].clone()
            };
        use AttachmentKind::{File, Image, Text};
        assert_eq!(
            with(Image, "image/png", None, Some("AA"), None),
            json!({"type": "image", "data": "AA", "mimeType": "image/png"})
        );
        assert_eq!(
            with(File, "audio/wav", None, Some("AA"), None),
            json!({"type": "audio", "data": "AA", "mimeType": "audio/wav"})
        );
        assert_eq!(
            with(Text, "text/plain", Some("t"), None, None),
            json!({"type": "text", "text": "t"})
        );
        assert_eq!(
            with(File, "a/b", None, Some("AA"), Some("a b/c.d")),
            json!({"type": "resource", "resource":
                {"uri": "toolcrib://attachments/a_b_c.d", "mimeType": "a/b", "blob": "AA"}})
        );
        assert_eq!(
            with(File, "a/b", None, None, None),
            json!({"type": "resource", "resource":
                {"uri": "toolcrib://attachments/attachment-0", "mimeType": "a/b", "text": ""}})
        );
    }

    /// Every kind of block, with all that MCP knows and something that it does not.
    const OWN_FORM: &str = r#"{"content":[
        {"type":"text","text":"a","annotations":{"audience":["user"],"priority":1.0,"lastModified":"2026-01-01T00:00:00Z"},"_meta":{"x/y":1}},
        {"type":"image","data":"AA==","mimeType":"image/png","annotations":{"priority":0.50}},
        {"type":"audio","data":"AA==","mimeType":"audio/wav","later":[1]},
        {"type":"resource_link","uri":"file:///a","name":"a","title":"A","size":123456789012345678901234567890,"icons":[{"src":"data:,"}]},
        {"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"\u0062","_meta":{"z":null}}},
        {"type":"resource","resource":{"uri":"file:///c","blob":"AA==","later":1e2}},
        {"type":"later","deep":{"a":[{}]}},
        {"type":"text","text":""}],
        "structuredContent":{"b":1.0,"a":[123456789012345678901234567890]},"isError":false,"_meta":{"k/v":{"n":1.50}}}"#;

    #[test]
    fn a_result_of_mcps_own_form_goes_out_as_it_came() {
        let mut tool = fixture::tool("t", fixture::echo());
        tool.spec.version = Some("1.2".into());
        let came = Json::parse(OWN_FORM).unwrap();
        let gone = serde_json::to_string(&super::outcome(Outcome::from_json(came.clone()), &tool));
        assert_eq!(gone.unwrap(), came.text());
        let server = OWN_FORM.replace(r#""isError":false"#, r#""isError":true,"later":{"x":1.0}"#);
        let came = Json::parse(&server).unwrap();
        let gone = serde_json::to_string(&super::outcome(Outcome::from_mcp(&came).unwrap(), &tool));
        let gone = Json::parse(&gone.unwrap()).unwrap();
        assert_eq!(gone, came);
        for part in [
            r#""later":{"x":1.0}"#,
            "123456789012345678901234567890",
            "1.50",
            r"\u0062",
        ] {
            assert!(gone.text().contains(part), "{gone}");
        }
    }

    #[test]
    fn what_was_cut_of_it_is_said_beside_its_own_meta() {
        let tool = fixture::tool("t", fixture::echo());
        let came = Outcome::from_json(Json::parse(OWN_FORM).unwrap());
        let result = outcome(came.meta("truncated", true), &tool);
        assert_eq!(
            result["_meta"],
            json!({"k/v": {"n": 1.5}, "toolcrib/metadata": {"truncated": true}})
        );
    }

    #[test]
    fn a_listed_tool_has_its_title_icons_and_meta() {
        let mut listed = fixture::tool("t", fixture::echo());
        listed.spec.annotations.title = Some("Hint".into());
        listed.spec.title = Some("Tool".into());
        listed.spec.icons = Some(json!([{"src": "data:,", "sizes": ["any"], "later": 1}]).into());
        listed.spec.meta = Some(Object::parse(r#"{"a/b": {"c": 1}}"#).unwrap());
        let view = tool(&listed);
        assert_eq!(
            (&view["title"], &view["annotations"]["title"]),
            (&json!("Tool"), &json!("Hint"))
        );
        assert_eq!(
            view["icons"],
            json!([{"src": "data:,", "sizes": ["any"], "later": 1}])
        );
        assert_eq!(view["_meta"], json!({"a/b": {"c": 1}}));
    }

    #[test]
    fn what_the_crib_adds_is_in_meta() {
        let mut tool = fixture::tool("t", fixture::echo());
        tool.spec.version = Some("1.2".into());
        let view = outcome(Outcome::text("hi").title("Said").meta("a", 1), &tool);
        assert_eq!(
            view["_meta"],
            json!({"toolcrib/title": "Said", "toolcrib/metadata": {"a": 1}, "toolcrib/version": "1.2"})
        );
    }

    #[test]
    fn errors_follow_the_table() {
        for code in ErrorCode::ALL {
            let refused = CallError::new(code, "no").hint("do");
            match (code, error(&refused)) {
                (ErrorCode::UnknownTool, ErrorReply::Protocol(number, _)) => {
                    assert_eq!(number, -32602)
                }
                (ErrorCode::Internal, ErrorReply::Protocol(number, _)) => {
                    assert_eq!(number, -32603)
                }
                (_, ErrorReply::Result(result)) => {
                    let result = serde_json::to_value(result).unwrap();
                    assert_eq!(result["isError"], true);
                    assert_eq!(result["content"][0]["text"], "no\nhint: do");
                    assert_eq!(result["_meta"]["toolcrib/code"], code.as_str());
                }
                (code, ErrorReply::Protocol(..)) => panic!("{code} is no protocol error"),
            }
        }
    }
}
