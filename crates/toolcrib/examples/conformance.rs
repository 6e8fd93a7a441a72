//! The server that MCP's conformance suite is run against: the product's own, with the tools that the suite calls.

#![expect(
    clippy::print_stdout,
    reason = "the port is told to whoever started this"
)]

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolcrib::config::Flags;
use toolcrib::env::Env;
use toolcrib::open::Opened;
use toolcrib::serve::auth::Auth;
use toolcrib::serve::{Served, http};
use toolcrib_core::{
    Access, Attachment, AttachmentKind, BoxFuture, Call, CallResult, Crib, Loading, Outcome,
    Progress, Question, Rank, Run, Schema, SourceKey, SourceKind, Spec, Tool, ToolName, Update,
};

/// One red pixel as a PNG.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A WAV file of one silent sample.
const SILENCE: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

/// Answers every call alike.
struct Always(Outcome);

impl Run for Always {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

/// Says how far it is, three times.
struct Steps;

impl Run for Steps {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            for done in [0.0, 50.0, 100.0] {
                call.context.progress(Progress {
                    progress: Some(done),
                    total: Some(100.0),
                    ..Progress::default()
                });
                // sleeps: a tool that takes its time, as the suite wants it
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(Outcome::text("done"))
        })
    }
}

/// Asks the client, and says what it answered.
struct Asks(Question, Value);

impl Run for Asks {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let Some(peer) = &call.context.peer else {
                return Ok(Outcome::text("the client can't be asked"));
            };
            let answer = peer.ask(self.0, self.1.clone(), Duration::from_secs(10));
            Ok(match answer.await {
                Ok(answer) => Outcome::text(format!("the client answered {answer}")),
                Err(error) => Outcome {
                    is_error: true,
                    ..Outcome::text(error.to_string())
                },
            })
        })
    }
}

/// Asks for a form with these fields.
fn asks_for(properties: Value) -> Arc<dyn Run> {
    let schema = json!({"type": "object", "properties": properties});
    let params = json!({"message": "Please fill this in", "requestedSchema": schema});
    Arc::new(Asks(Question::Elicit, params))
}

fn asks_the_model() -> Arc<dyn Run> {
    let content = json!({"type": "text", "text": "Say something"});
    let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 100});
    Arc::new(Asks(Question::Sample, params))
}

/// Tools that ask their clients, with forms of every kind that the suite looks for.
fn asking() -> [(&'static str, Arc<dyn Run>); 4] {
    let titled = || json!([{"const": "a", "title": "First"}, {"const": "b", "title": "Second"}]);
    let plain = || json!({"type": "string", "enum": ["a", "b"]});
    [
        (
            "test_elicitation",
            asks_for(json!({"username": {"type": "string"}, "email": {"type": "string"}})),
        ),
        (
            "test_elicitation_sep1034_defaults",
            asks_for(json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            })),
        ),
        (
            "test_elicitation_sep1330_enums",
            asks_for(json!({
                "untitledSingle": plain(),
                "titledSingle": {"type": "string", "oneOf": titled()},
                "legacyEnum": {"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]},
                "untitledMulti": {"type": "array", "items": plain()},
                "titledMulti": {"type": "array", "items": {"anyOf": titled()}},
            })),
        ),
        ("test_sampling", asks_the_model()),
    ]
}

/// Adds a tool to the crib, another one with each call.
struct Grows(Arc<Crib>, AtomicUsize);

impl Run for Grows {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        let name = format!("added-{}", self.1.fetch_add(1, Ordering::Relaxed));
        let added = tool(&name, nothing(), with("ok", Vec::new()));
        self.0
            .apply(vec![update("grown", added.into_iter().collect())]);
        Box::pin(std::future::ready(Ok(Outcome::text(name))))
    }
}

fn attachment(kind: AttachmentKind, mime_type: &str) -> Attachment {
    Attachment {
        kind,
        mime_type: mime_type.into(),
        text: None,
        data: None,
        name: None,
    }
}

fn image() -> Attachment {
    Attachment {
        data: Some(PIXEL.into()),
        ..attachment(AttachmentKind::Image, "image/png")
    }
}

fn audio() -> Attachment {
    Attachment {
        data: Some(SILENCE.into()),
        ..attachment(AttachmentKind::File, "audio/wav")
    }
}

fn resource() -> Attachment {
    Attachment {
        text: Some("What the file says.".into()),
        name: Some("note.txt".into()),
        ..attachment(AttachmentKind::File, "text/plain")
    }
}

fn with(output: &str, attachments: Vec<Attachment>) -> Arc<dyn Run> {
    let mut outcome = Outcome::text(output);
    outcome.attachments = attachments;
    Arc::new(Always(outcome))
}

fn failing() -> Arc<dyn Run> {
    let mut outcome = Outcome::text("This tool fails, always.");
    outcome.is_error = true;
    Arc::new(Always(outcome))
}

/// A schema with all the words of JSON Schema 2020-12 that the suite looks for.
fn wordy_schema() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": text(), "city": text()},
            },
        },
        "properties": {
            "name": text(),
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": text(),
            "email": text(),
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

fn tool(name: &str, schema: Value, run: Arc<dyn Run>) -> Option<Arc<Tool>> {
    tool_giving(name, schema, None, run)
}

fn tool_giving(
    name: &str,
    schema: Value,
    gives: Option<Value>,
    run: Arc<dyn Run>,
) -> Option<Arc<Tool>> {
    let schema = Schema::parse(schema).ok()?;
    let mut spec = Spec::new(ToolName::new(name).ok()?, "For the suite", schema);
    if let Some(gives) = gives {
        spec.output_schema = Some(Schema::parse_result(gives).ok()?);
    }
    let tool = Tool::new(spec, SourceKind::Builtin, Access::Open, name, run);
    Some(Arc::new(tool))
}

fn nothing() -> Value {
    json!({"type": "object", "properties": {}})
}

/// A schema with a parameter that is told in a header too.
fn header_schema() -> Value {
    json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}})
}

/// The tool that the suite calls for a text, which gives data of the type that was asked for instead.
fn shaped(shape: Option<&str>) -> Option<Arc<Tool>> {
    let kind = |kind: &str| Some(json!({"type": kind}));
    let (schema, data) = match shape {
        None => {
            let text = with("This is a simple text response for testing.", Vec::new());
            return tool("test_simple_text", nothing(), text);
        }
        Some("int") => (kind("integer"), json!(42)),
        Some("list") => (kind("array"), json!([1, 2])),
        Some("null") => (kind("null"), Value::Null),
        Some("string") => (kind("string"), json!("words")),
        Some("bool") => (kind("boolean"), json!(true)),
        Some("nested") => (kind("object"), json!({"a": {"b": [{"c": null}]}})),
        Some("large") => (kind("array"), json!(vec!["a row of text"; 9_000])),
        Some("undeclared") => (None, json!([42])),
        Some(_) => return None,
    };
    let run = Arc::new(Always(Outcome::structured(data)));
    tool_giving("test_simple_text", nothing(), schema, run)
}

fn tools(crib: &Arc<Crib>, shape: Option<&str>) -> Option<Vec<Arc<Tool>>> {
    let plain: [(&str, Arc<dyn Run>); 10] = [
        ("test_image_content", with("", vec![image()])),
        ("test_audio_content", with("", vec![audio()])),
        ("test_embedded_resource", with("", vec![resource()])),
        (
            "test_multiple_content_types",
            with("Three kinds", vec![image(), resource()]),
        ),
        ("test_error_handling", failing()),
        ("test_tool_with_progress", Arc::new(Steps)),
        ("test_reconnection", Arc::new(Steps)),
        ("test_streaming_elicitation", Arc::new(Steps)),
        ("test_logging_tool", Arc::new(Steps)),
        (
            "test_trigger_tool_change",
            Arc::new(Grows(crib.clone(), AtomicUsize::new(0))),
        ),
    ];
    plain
        .into_iter()
        .chain(asking())
        .map(|(name, run)| tool(name, nothing(), run))
        .chain([
            tool(
                "json_schema_2020_12_tool",
                wordy_schema(),
                with("ok", Vec::new()),
            ),
            tool("test_header", header_schema(), with("ok", Vec::new())),
            shaped(shape),
        ])
        .collect()
}

fn update(key: &str, tools: Vec<Arc<Tool>>) -> Update {
    Update {
        key: SourceKey(key.into()),
        rank: Rank::Builtin,
        file: None,
        tools,
        problems: Vec::new(),
    }
}

/// Prints the port and serves until killed.
async fn serve(shape: Option<String>) -> Option<()> {
    let home = tempfile::tempdir().ok()?;
    let env = Env::of(&[("HOME", home.path().to_str()?)], home.path());
    let opened = Opened::wire(env, Flags::default(), None).await.ok()?;
    opened.crib.apply(vec![update(
        "conformance",
        tools(&opened.crib, shape.as_deref())?,
    )]);
    opened.crib.set_loading(Loading::Done);
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
        .await
        .ok()?;
    let own = listener.local_addr().ok()?;
    println!("{}", own.port());
    let served = Arc::new(Served::new(opened.crib.clone()));
    let _ = http::serve(
        listener,
        http::router(served.clone(), own, Auth::off()),
        served,
    )
    .await;
    Some(())
}

#[tokio::main]
async fn main() -> ExitCode {
    match serve(std::env::args().nth(1)).await {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}
