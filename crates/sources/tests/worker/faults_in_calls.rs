//! Workers that fail under a call: the caller gets the right error within its deadline, and the next call works.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::world::{PATIENCE, World, limits};

/// Calls are given this long where the test has to sit it out.
const SHORT: u64 = 400;

#[tokio::test]
async fn exits_in_mid_call() {
    let world = World::alone(limits());
    world.python(
        "frail",
        r#"
def execute(id, params):
    if params["input"].get("die"):
        for n in range(1000): print("line", n, file=sys.stderr)
        sys.exit(7)
    answer(id, ME)"#,
    );
    world.open().await;
    let first = world.output("frail", json!({})).await;
    let error = world.refused("frail", json!({"die": true})).await;
    assert_eq!(error.code, ErrorCode::Crashed);
    assert!(!error.unreached, "{error:?}");
    for part in ["exit code 7", "line 999", "line 990"] {
        assert!(error.message.contains(part), "{error:?}");
    }
    assert!(error.message.len() < 4_000, "{}", error.message.len());
    assert!(!error.message.contains("line 5\n"));
    let second = world.output("frail", json!({})).await;
    assert_ne!(first, second);
    world.end().await;
}

#[tokio::test]
async fn is_killed_in_mid_call() {
    let world = World::alone(limits());
    world.python(
        "frail",
        "def execute(id, params): os.kill(os.getpid(), signal.SIGSEGV)",
    );
    world.open().await;
    let error = world.refused("frail", json!({})).await;
    assert_eq!(error.code, ErrorCode::Crashed);
    assert!(error.message.contains("killed by signal 11"), "{error:?}");
    world.nothing_runs().await;
    world.end().await;
}

/// What a worker says in place of an answer, and nobody can make sense of: the call ends at its deadline, and the worker
/// with it.
#[tokio::test]
async fn answers_garbage_to_execute_or_with_a_wrong_id() {
    let world = World::alone(limits());
    let said = [
        "say('tea')",
        "say('{')",
        "say('[]')",
        "answer('9999', 'tea')",
        "answer(9999, 'tea')",
        "answer('x', 'tea')",
        "answer(-1, 'tea')",
        "fail('9999', -32001, 'tea')",
        "fail('x', -32001, 'tea')",
        "sys.stdout.buffer.write(bytes(range(256)) * 9); sys.stdout.flush()",
    ];
    for (index, said) in said.iter().enumerate() {
        let body = format!(
            "def execute(id, params):\n    if params['input'].get('odd'): {said}\n    else: answer(id, 'fine')"
        );
        let fields = json!({"timeoutMs": SHORT});
        world.folder(&format!("odd{index}"), fields, &body);
    }
    world.open().await;
    for (index, said) in said.iter().enumerate() {
        let tool = format!("odd{index}");
        let begun = Instant::now();
        let error = world.refused(&tool, json!({"odd": true})).await;
        assert_eq!(error.code, ErrorCode::TimedOut, "{said}: {error:?}");
        assert!(begun.elapsed() < PATIENCE, "{said}");
        world.nothing_runs().await;
    }
    let again = async || world.call("odd0", json!({})).await.is_ok();
    let deadline = Instant::now() + PATIENCE;
    // A start may take longer than the short limit; it goes on, and the next call finds the worker warm.
    while !again().await {
        assert!(Instant::now() < deadline);
    }
    world.end().await;
}

#[tokio::test]
async fn an_error_that_is_no_object_is_still_an_error() {
    let world = World::new();
    world.python(
        "sloppy",
        "def execute(id, params): send(id=id, error=params['input']['error'])",
    );
    world.open().await;
    for (error, output) in [
        (json!("on fire"), "on fire"),
        (json!({"code": "EFIRE", "message": "on fire"}), "on fire"),
        (json!({"code": 7, "message": {"text": 1}}), "{\"text\":1}"),
        (json!({"code": -32001.0, "message": "on fire"}), "on fire"),
        (json!(13), "13"),
    ] {
        let outcome = world.call("sloppy", json!({"error": error})).await.unwrap();
        assert!(outcome.is_error);
        assert_eq!(outcome.output, output);
    }
}

#[tokio::test]
async fn answers_twice() {
    let world = World::alone(limits());
    world.python(
        "echo",
        r#"
def execute(id, params):
    for n in range(3): answer(id, params["input"]["text"] + " " + str(n))
    fail(id, -32001, "and once more")"#,
    );
    world.open().await;
    for n in 0..20 {
        let text = format!("call {n}");
        let output = world.output("echo", json!({"text": text})).await;
        assert_eq!(output, format!("{text} 0"));
    }
    assert!(world.said.text().contains("no request waits for"));
    world.end().await;
}

#[tokio::test]
async fn an_error_without_an_id_belongs_to_the_call_in_flight() {
    let world = World::alone(limits());
    world.python(
        "lost",
        r#"
def execute(id, params):
    how = params["input"].get("how")
    if how == "null": fail(None, -32001, "no id")
    elif how == "missing": send(error={"code": -32001, "message": "no id"})
    elif how == "parse": fail(None, -32700, "not JSON")
    else: answer(id, "fine")"#,
    );
    world.open().await;
    for how in ["null", "missing"] {
        let outcome = world.call("lost", json!({"how": how})).await.unwrap();
        assert!(
            outcome.is_error && outcome.output == "no id",
            "{how}: {outcome:?}"
        );
    }
    let error = world.refused("lost", json!({"how": "parse"})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert_eq!(world.output("lost", json!({})).await, "fine");
    world.end().await;
}

#[tokio::test]
async fn drips_bytes_slowly() {
    let world = World::alone(limits());
    let body = r#"
def execute(id, params):
    line = json.dumps({"jsonrpc": "2.0", "id": id, "result": "drop by drop"}) + "\n"
    for byte in line:
        sys.stdout.write(byte); sys.stdout.flush()
        time.sleep(params["input"]["pause"])"#;
    world.folder("patient", json!({}), body);
    world.folder("hasty", json!({"timeoutMs": SHORT}), body);
    world.open().await;
    let output = world.output("patient", json!({"pause": 0.002})).await;
    assert_eq!(output, "drop by drop");
    let begun = Instant::now();
    let error = world.refused("hasty", json!({"pause": 1})).await;
    assert_eq!(error.code, ErrorCode::TimedOut);
    assert!(begun.elapsed() >= Duration::from_millis(SHORT));
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "it would take a minute"
    );
    world.end().await;
}
