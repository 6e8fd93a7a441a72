//! The worker protocol, 1.0 and what 1.1 adds: what goes over the pipes and what the caller gets of it.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::{Caller, Context, ErrorCode, Health, Json, Object, Progress, Request};

use crate::program::python_1_1;
use crate::world::World;

/// A worker that answers with the code, message and data it is given.
const FAILING: &str = r#"
def execute(id, params):
    error = params["input"].get("error")
    if error: send(id=id, error=error)
    else: answer(id, "fine")"#;

#[tokio::test]
async fn every_error_code_becomes_what_the_table_says() {
    let world = World::new();
    world.python("failing", FAILING);
    world.open().await;
    let call = async |code: i64| {
        let error = json!({"code": code, "message": "because", "data": {"why": [1]}});
        world.call("failing", json!({"error": error})).await
    };
    for code in [-32001, -32603, -32002, -1, 0, 42] {
        let outcome = call(code).await.unwrap();
        assert!(outcome.is_error, "{code}");
        assert_eq!(outcome.output, "because");
        assert_eq!(outcome.metadata["code"], code);
        assert_eq!(outcome.metadata["data"], json!({"why": [1]}));
    }
    let refused = call(-32602).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::InvalidArguments);
    assert!(refused.message.contains("because"), "{refused:?}");
    assert_eq!(*refused.data.unwrap(), json!({"why": [1]}));
    let late = call(-32000).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::TimedOut);
    assert!(late.message.contains("because"), "{late:?}");
    assert_ne!(world.standing("failing").health, Health::Unhealthy);
    for code in [-32700, -32600, -32601] {
        world.check("failing").await;
        assert_eq!(world.standing("failing").health, Health::Healthy);
        let error = call(code).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unavailable, "{code}");
        assert!(error.message.contains("because"), "{error:?}");
        assert_eq!(
            world.standing("failing").health,
            Health::Unhealthy,
            "{code}"
        );
    }
    // None of it cost the worker its life.
    let spawns = world
        .events()
        .into_iter()
        .filter(|event| event.starts_with("worker."));
    assert_eq!(spawns.collect::<Vec<_>>(), ["worker.spawn failing"]);
}

#[tokio::test]
async fn an_error_without_words_has_its_number() {
    let world = World::new();
    world.python("failing", FAILING);
    world.open().await;
    let outcome = world
        .call("failing", json!({"error": {"code": -32001}}))
        .await
        .unwrap();
    assert_eq!((outcome.is_error, &*outcome.output), (true, "error -32001"));
}

#[tokio::test]
async fn ids_come_back_as_strings_or_numbers() {
    let world = World::new();
    world.python(
        "loose",
        r#"
def initialize(id, params):
    assert isinstance(id, str)
    answer(int(id), HELLO)
def execute(id, params): answer(int(id) if params["input"].get("number") else id, "fine")"#,
    );
    world.open().await;
    for number in [true, false] {
        assert_eq!(
            world.output("loose", json!({"number": number})).await,
            "fine"
        );
    }
}

#[tokio::test]
async fn answers_over_several_lines_are_joined_and_other_lines_are_logged() {
    let world = World::new();
    world.python(
        "chatty",
        r#"
def initialize(id, params):
    say("starting up")
    say(json.dumps({"jsonrpc": "2.0", "id": id, "result": HELLO}, indent=2))
def execute(id, params):
    say("forgotten print")
    say("{not json}")
    say("")
    say(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"output": "fi\nne", "x": {"y": [{}]}}}, indent=2))
    say("after")"#,
    );
    world.open().await;
    for _ in 0..3 {
        assert_eq!(world.output("chatty", json!({})).await, "fi\nne");
    }
    world.check("chatty").await;
    let said = world.said.text();
    for line in ["starting up", "forgotten print", "{not json}", "after"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("jsonrpc"), "{said}");
}

/// What the program wrote reaches the caller as it is, and what the caller wrote the program.
#[tokio::test]
async fn json_passes_as_it_is_written() {
    let world = World::new();
    world.python(
        "echo",
        r#"
def execute(id, params):
    raw = line[line.index('"input":') + 8:line.index(',"context"')]
    depth = params["input"].get("depth", 0)
    say('{"jsonrpc": "2.0", "id": "%s", "result": {"raw": %s, "n": 1.50, "deep": %s}}'
        % (id, json.dumps(raw), "[" * depth + "12345678901234567890123" + "]" * depth))
"#,
    );
    world.open().await;
    let exact = r#"{"z": 1.0, "n": 123456789012345678901234567890, "e": "\u0041"}"#;
    let request = Request {
        tool: "echo".into(),
        arguments: Object::parse(exact).unwrap(),
        caller: Caller::new("test"),
        context: Context::noop(),
    };
    let view = world.crib.view("default");
    let outcome = view.call(request).await.unwrap().outcome;
    let told = outcome.structured.unwrap();
    assert_eq!(told["raw"], exact);
    let end = r#""n": 1.50, "deep": 12345678901234567890123}"#;
    assert!(told.text().ends_with(end), "{told}");
    let deep = world.call("echo", json!({"depth": 1000})).await.unwrap();
    assert!(deep.is_error);
    assert!(deep.output.contains("nested more than"), "{}", deep.output);
}

#[tokio::test]
async fn results_become_outcomes() {
    let world = World::new();
    world.python(
        "any",
        "def execute(id, params): answer(id, params['input']['result'])",
    );
    world.open().await;
    for (result, output, structured) in [
        (json!("text"), "text", None),
        (json!({"output": "text"}), "text", None),
        (json!({"a": 1}), "{\"a\":1}", Some(json!({"a": 1}))),
        (json!([1, 2]), "[1,2]", Some(json!([1, 2]))),
        (json!(null), "null", Some(Value::Null)),
        (json!(3), "3", Some(json!(3))),
    ] {
        let outcome = world.call("any", json!({"result": result})).await.unwrap();
        assert!(!outcome.is_error, "{result}");
        assert_eq!(outcome.output, output, "{result}");
        assert_eq!(outcome.structured, structured.map(Json::from), "{result}");
    }
    for failed in [
        json!({"output": "x", "isError": true}),
        json!({"success": false}),
    ] {
        assert!(
            world
                .call("any", json!({"result": failed}))
                .await
                .unwrap()
                .is_error
        );
    }
}

#[tokio::test]
async fn a_call_tells_its_context() {
    let world = World::new();
    world.python(
        "curious",
        "def execute(id, params): answer(id, {'params': params, 'cwd': os.getcwd()})",
    );
    world.write(
        "folder/tool",
        crate::program::python("inside", "def execute(id, params): answer(id, os.getcwd())"),
    );
    world.open().await;
    let mut context = Context::new("c-1");
    context.session_id = Some("s-1".into());
    context.message_id = Some("m-1".into());
    let outcome = world
        .call_in(context, "curious", json!({"text": "hi"}))
        .await
        .unwrap();
    let told = outcome.structured.unwrap();
    let params = &told["params"];
    assert_eq!(params["input"], json!({"text": "hi"}));
    assert!(params.get("tool").is_none(), "1.0 has one tool");
    let project = world.root.join("project");
    for (field, value) in [
        ("callId", json!("c-1")),
        ("executionId", json!("c-1")),
        ("sessionId", json!("s-1")),
        ("runId", json!("s-1")),
        ("messageId", json!("m-1")),
        ("agent", json!("test")),
        ("profile", json!("default")),
        ("directory", json!(project)),
        ("workingDir", json!(project)),
    ] {
        assert_eq!(params["context"][field], value, "{field}");
    }
    let left = params["context"]["timeout"].as_u64().unwrap();
    assert!((1..=60_000).contains(&left), "{left}");
    assert_eq!(told["cwd"], json!(project));
    // A tool made of a folder starts in it.
    assert_eq!(
        world.output("inside", json!({})).await,
        world.tools().join("folder").to_str().unwrap()
    );
}

#[tokio::test]
async fn progress_and_log_reach_their_listeners() {
    let world = World::new();
    let body = r#"
def run(id, params):
    send(method="progress", params={"id": id, "title": "half", "message": "on it", "progress": 1, "total": 2, "data": {"a": 1}})
    send(method="progress", params={"id": int(id), "progress": 2})
    send(method="progress", params={"id": "999", "title": "nobody's"})
    send(method="log", params={"level": "warn", "message": "mind the gap"})
    send(method="unheard-of", params={})
    answer(id, "fine")"#;
    world.write("slow", python_1_1("slow", 1, body));
    world.open().await;
    let heard: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let sink = heard.clone();
    let context = Context::new("c").with_progress(Arc::new(move |progress| {
        sink.lock().unwrap().push(progress);
    }));
    assert_eq!(
        world
            .call_in(context, "slow", json!({}))
            .await
            .unwrap()
            .output,
        "fine"
    );
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(heard[0].title.as_deref(), Some("half"));
    assert_eq!(heard[0].message.as_deref(), Some("on it"));
    assert_eq!((heard[0].progress, heard[0].total), (Some(1.0), Some(2.0)));
    assert_eq!(heard[0].data["a"], 1);
    assert_eq!(heard[1].progress, Some(2.0));
    assert!(world.said.text().contains("[warn] mind the gap"));
}
