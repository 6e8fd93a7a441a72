//! Workers that flood, overfill, close or block their streams.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::traces;
use crate::world::{World, limits};

/// What a flood may cost in memory, far below what it prints.
const BOUND: u64 = 100_000_000;

#[tokio::test(flavor = "multi_thread")]
async fn floods_stdout_with_text() {
    let world = World::alone(limits());
    world.folder(
        "flood",
        json!({"timeoutMs": 60_000}),
        r#"
def execute(id, params):
    if not params["input"].get("flood"): return answer(id, "fine")
    while True: os.write(1, b"all work and no play\n" * 3000)"#,
    );
    world.open().await;
    let before = traces::resident();
    let begun = Instant::now();
    let error = world.refused("flood", json!({"flood": true})).await;
    // It is stopped long before its time is up: nobody reads so much.
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(
        error.message.contains("64 MB between two messages"),
        "{error:?}"
    );
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(traces::resident() < before + BOUND);
    assert_eq!(world.output("flood", json!({})).await, "fine");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_stdout_with_messages() {
    let world = World::alone(limits());
    world.folder(
        "flood",
        json!({"timeoutMs": 600}),
        r#"
def execute(id, params):
    line = json.dumps({"jsonrpc": "2.0", "method": "log", "params": {"message": "x" * 1000}}) + "\n"
    while True: os.write(1, line.encode() * 60)"#,
    );
    world.open().await;
    let before = traces::resident();
    let begun = Instant::now();
    let error = world.refused("flood", json!({})).await;
    assert_eq!(error.code, ErrorCode::TimedOut, "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert!(traces::resident() < before + BOUND);
    world.nothing_runs().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_stderr() {
    let world = World::alone(limits());
    world.python(
        "noisy",
        r#"
def execute(id, params):
    for n in range(3000): os.write(2, b"all work and no play\n" * 3000)
    os.write(2, b"the end\n")
    if params["input"].get("die"): sys.exit(1)
    answer(id, "fine")"#,
    );
    world.open().await;
    let before = traces::resident();
    assert_eq!(world.output("noisy", json!({})).await, "fine");
    let error = world.refused("noisy", json!({"die": true})).await;
    assert_eq!(error.code, ErrorCode::Crashed);
    assert!(
        error.message.ends_with("the end\n") || error.message.ends_with("the end"),
        "{error:?}"
    );
    assert!(error.message.len() < 4_000);
    assert!(traces::resident() < before + BOUND);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_with_eleven_megabytes() {
    let world = World::alone(limits());
    world.python(
        "large",
        r#"
def execute(id, params):
    answer(id, {"output": ME, "blob": "x" * params["input"]["size"]})"#,
    );
    world.open().await;
    let first = world.output("large", json!({"size": 9_000_000})).await;
    assert_eq!(world.output("large", json!({"size": 1})).await, first);
    let error = world.refused("large", json!({"size": 11_000_000})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.message.contains("more than 10 MB"), "{error:?}");
    // The worker was replaced.
    assert_ne!(world.output("large", json!({"size": 1})).await, first);
    world.end().await;
}

#[tokio::test]
async fn a_large_answer_over_many_lines_is_read_in_time() {
    let world = World::new();
    world.python(
        "pretty",
        r#"
def execute(id, params):
    rows = [{"row": n, "of": {"a": {"table": "with many rows"}}} for n in range(20000)]
    say(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"output": "fine", "metadata": {"rows": rows}}}, indent=1))"#,
    );
    world.open().await;
    let begun = Instant::now();
    assert_eq!(world.output("pretty", json!({})).await, "fine");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn closes_stdin() {
    let world = World::alone(limits());
    world.python(
        "deaf",
        r#"
def execute(id, params):
    answer(id, ME)
    if not marked("closed"):
        os.close(0)
        mark("closed")
        while True: time.sleep(1)"#,
    );
    world.open().await;
    let first = world.output("deaf", json!({})).await;
    world.seen("closed").await;
    let error = world.refused("deaf", json!({})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(
        error.unreached && error.message.contains("closed its stdin"),
        "{error:?}"
    );
    assert_ne!(world.output("deaf", json!({})).await, first);
    world.end().await;
}

#[tokio::test]
async fn closes_stdout() {
    let world = World::alone(limits());
    world.python(
        "silent",
        r#"
def execute(id, params):
    if marked("closed"): return answer(id, "fine")
    mark("closed")
    os.close(1)
    while True: time.sleep(1)"#,
    );
    world.open().await;
    let error = world.refused("silent", json!({})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.message.contains("closed its stdout"), "{error:?}");
    world.nothing_runs().await;
    assert_eq!(world.output("silent", json!({})).await, "fine");
    world.end().await;
}

/// The pipe is full and nobody reads: the call ends at its deadline like any other.
#[tokio::test]
async fn does_not_read_what_it_is_sent() {
    let world = World::alone(limits());
    world.folder(
        "busy",
        json!({"timeoutMs": 400}),
        "if not marked('once'):\n    initialize_ = initialize\n    def initialize(id, params):\n        initialize_(id, params); mark('once'); time.sleep(1000)",
    );
    world.open().await;
    let begun = Instant::now();
    let text = "x".repeat(1_000_000);
    let error = world.refused("busy", json!({"text": text})).await;
    assert_eq!(error.code, ErrorCode::TimedOut, "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(10));
    world.nothing_runs().await;
    world.end().await;
}
