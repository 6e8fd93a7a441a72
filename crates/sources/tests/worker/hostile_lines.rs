//! Whatever bytes a worker writes in place of an answer: its caller is told at once, and nobody else is disturbed.

use std::time::Duration;

use serde_json::json;

use crate::program::python_1_1;
use crate::scripts_over_time::soak;
use crate::world::World;

/// Answers that nobody can read. `ID` stands for the id of the call, `\xNN` for a byte.
const UNREADABLE: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":ID,"result":NaN}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":-NaN}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":Infinity}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":-Infinity}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":[1,NaN]}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{"a":nan}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":undefined}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":None}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":True}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":'single'}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\ud800"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\udc00 \ud83d"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{"\ud83d":1}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\u12"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\x"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"a\xffb"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\xc3\x28"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\xed\xa0\x80"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\xf5\x80\x80\x80"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"\xc0\x80"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":\xff}"#,
    r#"{"\xff":1,"jsonrpc":"2.0","id":ID,"result":1}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"a\x00b"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"a\x09b"}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":01}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1.}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":.5}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":+1}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":0x10}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1_000}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":[1,]}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1,}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":{a:1}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1,}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1} trailing"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1 /* why */}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1]}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":[1}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1}{"jsonrpc":"2.0","id":ID,"result":2}"#,
    r#"{"jsonrpc":"2.0","id":ID,"id":ID,"result":1}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":1,"result":2}"#,
    r#"{"jsonrpc":"2.0","id":ID,"id":"0","result":1}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"a"},"error":{"code":-2,"message":"b"}}"#,
    r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":ID,"id":ID,"result":1}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":NaN}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":NaN,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"\ud800"}}"#,
    r#"{"jsonrpc":"2.0","id":ID,"error":{"code":1e999,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":null,"result":1}"#,
    r#"{"jsonrpc":"2.0","id":{},"result":1}"#,
    r#"{"jsonrpc":"2.0","id":[ID],"result":1}"#,
    r#"{"jsonrpc":"2.0","id":true,"result":1}"#,
    r#"{"jsonrpc":"2.0","result":1}"#,
    r#"{"jsonrpc":"2.0","id":NaN,"result":1}"#,
    r#"{"jsonrpc":"2.0","id":,"result":1}"#,
    r#"{"jsonrpc":"2.0","result":NaN}"#,
    r#"[{"jsonrpc":"2.0","id":ID,"result":1}]"#,
    r#"10%{"jsonrpc":"2.0","id":ID,"result":1}"#,
    r#"\x00{"jsonrpc":"2.0","id":ID,"result":1}"#,
    r#"{"id":ID,"result":NaN}"#,
    r#"{"result":NaN,"id":ID}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":DEEP}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":DEEPER}"#,
    r#"{"jsonrpc":"2.0","id":ID,"result":"first line\x0asecond line"}"#,
];

/// Lines that are read, though they look strange, with what the call gives.
const READ: &[(&str, &str)] = &[
    (
        r#"\xef\xbb\xbf{"jsonrpc":"2.0","id":ID,"result":"marked"}"#,
        "marked",
    ),
    (
        r#"{"jsonrpc":"2.0","id":ID,"result":123456789012345678901234567890}"#,
        "123456789012345678901234567890",
    ),
    (
        r#"{"jsonrpc":"2.0","id":ID,"result":[-99999999999999999999,18446744073709551616]}"#,
        "[-99999999999999999999,18446744073709551616]",
    ),
    (
        r#"{"jsonrpc":"2.0","id":ID,"result":"\u0000\u2028"}"#,
        "\u{0}\u{2028}",
    ),
    (r#"{"jsonrpc":"2.0","id":ID.0,"result":"whole"}"#, "whole"),
    ("\\x0d {\"id\":ID,\"result\":\"bare\"} \\x0d", "bare"),
    (
        r#"{"jsonrpc":"2.0","id":ID,"result":{"a":1,"a":2}}"#,
        r#"{"a":1,"a":2}"#,
    ),
    (
        r#"{"jsonrpc":"2.0","\u0069d":ID,"result":"escaped"}"#,
        "escaped",
    ),
];

/// Lines that are for the log alone: the answer comes after them.
const NOISE: &[&str] = &[
    "{'id': ID, 'result': nan}",
    r#"{"level":"info","msg":NaN}"#,
    r#"{"method":"progress","params":{"id":ID,"progress":NaN}}"#,
    r#"{"jsonrpc":"2.0","id":"999999","result":1}"#,
    r#"{"jsonrpc":"2.0","id":"999999","result":NaN}"#,
    r#"{"jsonrpc":"2.0"}"#,
    "null",
    "\\xff\\xfe{\\x00",
    "[[[[",
    "}",
];

/// Writes what it is given, then the proper answer where it is asked to.
const WORKER: &str = r#"
import re
def run(id, params):
    given = params["input"]
    if given.get("wait"):
        mark(given["wait"]); wait_for("go-" + given["wait"])
        return answer(id, given["wait"])
    if "line" not in given: return answer(id, ME)
    deep = lambda n: "[" * n + "]" * n
    line = given["line"].replace("ID.0", id + ".0").replace("ID", id if given.get("bare") else '"' + id + '"')
    line = line.replace("DEEPER", deep(5000)).replace("DEEP", deep(127))
    # Only \xNN stands for a byte; other escapes are the line's own.
    line = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m.group(1), 16)]), line.encode())
    with LOCK:
        sys.stdout.flush()
        os.write(1, line + b"\n")
    if given.get("after"): answer(id, "after")
"#;

async fn world() -> World {
    let world = World::new();
    world.write("odd", python_1_1("odd", 4, WORKER));
    world.open().await;
    world
}

/// A second; where a machine does other things besides, far below the time that a call has, and far above what it needs.
fn at_once() -> Duration {
    Duration::from_secs(if soak() { 1 } else { 10 })
}

#[tokio::test]
async fn what_cant_be_read_ends_its_call_at_once() {
    assert!(UNREADABLE.len() + READ.len() + NOISE.len() >= 60);
    let world = world().await;
    let me = world.output("odd", json!({})).await;
    for line in UNREADABLE {
        let call = world.call("odd", json!({"line": line}));
        let told = match tokio::time::timeout(at_once(), call).await {
            Ok(Ok(outcome)) => {
                assert!(outcome.is_error, "{line}: {outcome:?}");
                outcome.output
            }
            Ok(Err(error)) => panic!("{line}: {error:?}"),
            Err(_) => panic!("nobody was told: {line}"),
        };
        let known = ["can't be read", "has no `id`"];
        assert!(
            known.iter().any(|words| told.contains(words)),
            "{line}: {told}"
        );
        assert_eq!(
            world.output("odd", json!({})).await,
            me,
            "the same worker: {line}"
        );
    }
}

#[tokio::test]
async fn what_can_be_read_is_and_noise_is_for_the_log() {
    let world = world().await;
    let me = world.output("odd", json!({})).await;
    for (line, expected) in READ {
        let call = world.call("odd", json!({"line": line}));
        let outcome = tokio::time::timeout(at_once(), call).await;
        let outcome = outcome.unwrap_or_else(|_| panic!("nobody was told: {line}"));
        assert_eq!(outcome.unwrap().output, *expected, "{line}");
    }
    for line in NOISE {
        let call = world.call("odd", json!({"line": line, "after": true}));
        let outcome = tokio::time::timeout(at_once(), call).await;
        let outcome = outcome.unwrap_or_else(|_| panic!("nobody was told: {line}"));
        assert_eq!(outcome.unwrap().output, "after", "{line}");
    }
    assert_eq!(world.output("odd", json!({})).await, me);
}

#[tokio::test]
async fn the_other_calls_of_the_same_worker_go_on() {
    let world = world().await;
    let kept = world.begin("odd", json!({"wait": "kept"}));
    world.seen("kept").await;
    // Whose answer a line without an id was is known only where one call runs.
    for line in UNREADABLE
        .iter()
        .filter(|line| line.contains("\"id\":ID,\"result\""))
    {
        let call = world.call("odd", json!({"line": line}));
        let outcome = tokio::time::timeout(at_once(), call).await;
        let outcome = outcome.unwrap_or_else(|_| panic!("nobody was told: {line}"));
        if !line.contains("\"id\":\"0\"") {
            assert!(outcome.unwrap().is_error, "{line}");
        }
    }
    world.give("go-kept");
    assert_eq!(kept.await.unwrap().unwrap().output, "kept");
}

#[tokio::test]
async fn a_python_function_that_gives_too_deep_a_result_is_told_so() {
    let world = World::scripts(|_| {});
    let text = r#"
from toolcrib import tool

@tool
def deep(levels: int) -> dict:
    """Gives a dict so deep."""
    value = {}
    for _ in range(levels): value = {"a": value}
    return value
"#;
    world.write("deep.py", text);
    world.open().await;
    for levels in [118, 126, 127, 128, 129, 400] {
        let call = world.call("deep", json!({"levels": levels}));
        let outcome = tokio::time::timeout(at_once(), call)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            outcome.is_error,
            levels > 119,
            "{levels}: {}",
            outcome.output
        );
    }
}
