//! Bytes that no honest client sends, against every way in: each is answered at once, and nobody else is disturbed.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, request, stateless};
use crate::support::plugin::{file, shell};
use crate::support::{World, answer, soak};

/// A second; and some for a machine that does other things besides. Before anything was answered, callers waited half a
/// minute.
fn soon() -> Duration {
    Duration::from_secs(soak(1, 5) as u64)
}

/// What a message must be answered with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Answered {
    /// Its own id is found, whatever else is wrong with it.
    ById,
    /// It has none that can be found.
    WithoutId,
    /// It is no request: there is nothing to answer.
    Not,
}

use Answered::{ById, Not, WithoutId};

/// The id of all that have one. No other message of these tests has it.
const ID: u64 = 77;

/// Values that are no JSON, or that few readers take.
fn values() -> Vec<Vec<u8>> {
    let texts = [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "+1",
        ".5",
        "1.",
        "1e",
        "-",
        "0x10",
        "010",
        "1_000",
        "'a'",
        "undefined",
        "True",
        "nul",
        "",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\" 1}",
        "/* a */ 1",
        "1 // a",
        "\"\\x41\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\udc00\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"a\tb\"",
        "\"a\u{1}b\"",
        "\"a\u{0}b\"",
        "\"\\u0000\"",
        "\u{feff}1",
        "`a`",
        "<a/>",
        "1,2",
        "\"a\" \"b\"",
    ];
    let mut values: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).into();
    for bytes in [
        &b"\"\xff\""[..],
        b"\"\xc0\x80\"",
        b"\"\xed\xa0\x80\"",
        b"\"\xf5\x80\x80\x80\"",
        b"\"\xe2\x82\"",
        b"\"a\x80\"",
        b"\xff\xfe",
    ] {
        values.push(bytes.to_vec());
    }
    for (open, close, depth) in [
        ("[", "]", 129),
        ("[", "]", 20_000),
        ("{\"a\":", "}", 129),
        ("{\"a\":", "}", 20_000),
    ] {
        values.push(format!("{}1{}", open.repeat(depth), close.repeat(depth)).into_bytes());
    }
    values.push("[".repeat(20_000).into_bytes());
    values.push("9".repeat(100_000).into_bytes());
    values
}

/// Whole messages, and how each is answered.
fn messages() -> Vec<(Vec<u8>, Answered)> {
    let mut messages: Vec<(Vec<u8>, Answered)> = Vec::new();
    let around = |before: &str, value: &[u8], after: &str| {
        [before.as_bytes(), value, after.as_bytes()].concat()
    };
    for value in values() {
        let before = format!(
            r#"{{"jsonrpc":"2.0","id":{ID},"method":"tools/call","params":{{"name":"say","arguments":{{"word":"#
        );
        messages.push((around(&before, &value, "}}}"), ById));
    }
    let with_id = |rest: &str| {
        (
            format!(r#"{{"jsonrpc":"2.0","id":{ID},{rest}}}"#).into_bytes(),
            ById,
        )
    };
    let long = "x".repeat(100_000);
    let many: Vec<String> = (0..2_000).map(|at| format!("\"k{at}\":1")).collect();
    messages.extend(
        [
            r#""method":"tools/call","params":{"name":3}"#,
            r#""method":"tools/call","params":{"name":"say","arguments":[]}"#,
            r#""method":"tools/call","params":{"name":"say","arguments":"x"}"#,
            r#""method":"tools/call","params":{"name":"a\u0000b"}"#,
            r#""method":"tools/call","params":{"name":"say","name":"say"}"#,
            r#""method":"tools/call","params":{"name":"say","_meta":"x"}"#,
            r#""method":"tools/call","params":{"name":"say","arguments":{"word":"a"},"_meta":{"progressToken":{}}}"#,
            r#""method":"tools/call","params":[1]"#,
            r#""method":"tools/call","params":"x""#,
            r#""method":"tools/call","method":"ping""#,
            r#""method":7"#,
            r#""method":"""#,
            r#""method":null"#,
            r#""method":"ping","jsonrpc":"2.0""#,
            r#""params":{}"#,
            &format!(r#""method":"{long}""#),
            &format!(r#""{long}":1"#),
            &format!(r#""method":"tools/call","params":{{{}}}"#, many.join(",")),
        ]
        .map(with_id),
    );
    messages.extend(odd_envelopes());
    messages
}

/// What is wrong around the message itself.
fn odd_envelopes() -> Vec<(Vec<u8>, Answered)> {
    let other = |text: &str, answered: Answered| (text.as_bytes().to_vec(), answered);
    vec![
        (
            format!(r#"{{"id":{ID},"method":"ping"}}"#).into_bytes(),
            ById,
        ),
        (
            format!(r#"{{"jsonrpc":"1.0","id":{ID},"method":"ping"}}"#).into_bytes(),
            ById,
        ),
        (
            format!(r#"{{"jsonrpc":2,"id":{ID},"method":"ping"}}"#).into_bytes(),
            ById,
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"ping""#).into_bytes(),
            ById,
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"ping"}}}}"#).into_bytes(),
            ById,
        ),
        (
            format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"method\":\"ping\"}}").into_bytes(),
            ById,
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","method":"ping","id":{ID}"#).into_bytes(),
            ById,
        ),
        other(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, WithoutId),
        other(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, WithoutId),
        other(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, WithoutId),
        other(r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, WithoutId),
        other("{", WithoutId),
        other("}", WithoutId),
        other("{}", WithoutId),
        other("[]", WithoutId),
        other("[1]", WithoutId),
        other("null", WithoutId),
        other("3", WithoutId),
        other("\"text\"", WithoutId),
        other("hello", WithoutId),
        other("GET / HTTP/1.1", WithoutId),
        other("<xml/>", WithoutId),
        (b"\x00\x01\x02\xff".to_vec(), WithoutId),
        (b"{\0\"\0i\0d\0\"\0:\0 \x007\0}\0".to_vec(), WithoutId),
        other(
            r#"{"jsonrpc":"2.0","method":"notifications/unheard-of"}"#,
            Not,
        ),
        other(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, Not),
        other(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
            Not,
        ),
    ]
}

fn shown(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    text.chars().take(160).collect()
}

/// A project with a tool that takes any word, and one that takes its time.
fn world() -> World {
    let world = World::trusted();
    let tools = [
        shell("say", "echo {{word}}", json!({"word": {}})),
        shell("wait", "sleep 3", json!({})),
    ];
    world.write_tool("say.json", file(&tools));
    world
}

#[test]
fn there_are_enough_of_them() {
    assert!(values().len() >= 50 && messages().len() >= 90);
}

#[test]
fn on_stdin_every_line_is_answered_at_once() {
    let world = world();
    // Alone and through a relay.
    for served in [false, true] {
        let _crib = served.then(|| world.serve());
        let mut piped = Piped::greeted(world.command(&["mcp"]));
        piped.send(&call(1, "wait", json!({})));
        for (at, (message, answered)) in (100..).zip(messages()) {
            let begun = Instant::now();
            piped.send_bytes(&message);
            match answered {
                ById => {
                    let answer = piped.answer(ID);
                    let whole = answer.get("error").or(answer.get("result"));
                    assert!(whole.is_some(), "{answer}");
                }
                WithoutId => {
                    let what = shown(&message);
                    let answer = piped.wait(&what, |answer| {
                        answer.get("error").is_some() && answer["id"].is_null()
                    });
                    let code = answer["error"]["code"].as_i64().unwrap();
                    assert!([-32700, -32600].contains(&code), "{what}: {answer}");
                }
                Not => {}
            }
            // The next message is heard, whatever came before.
            assert!(
                piped
                    .ask(&request(at, "ping", json!({})))
                    .get("result")
                    .is_some()
            );
            let took = begun.elapsed();
            assert!(took < soon(), "{} took {took:?}", shown(&message));
        }
        assert!(
            piped
                .ask(&stateless(98, "tools/list", json!({})))
                .get("result")
                .is_some()
        );
        let waited = piped.answer(1);
        assert_eq!(waited["result"].get("isError"), None, "{waited}");
        let (_, unasked) = piped.hang_up();
        assert!(unasked.is_empty(), "{unasked:?}");
    }
}

#[tokio::test]
async fn over_http_every_body_is_answered_at_once() {
    let world = world();
    let crib = world.serve();
    let session = crib.session("2025-11-25").await;
    let id = session.id.clone();
    let wait = call(1, "wait", json!({}));
    let waiting = session.ask(&wait);
    let hostile = async {
        for (message, answered) in messages() {
            for headers in [&[("mcp-session-id", &*id)][..], &[]] {
                let begun = Instant::now();
                let response = crib.post_mcp(headers, message.clone()).await;
                let (status, what) = (response.status(), shown(&message));
                assert!(status < 500, "{status}: {what}");
                let said = match status {
                    202 => Value::Null,
                    _ => response.answer().await,
                };
                if answered != Not || headers.is_empty() {
                    assert_eq!(said["jsonrpc"], "2.0", "{what}: {said}");
                }
                if answered == ById && !headers.is_empty() {
                    assert_eq!(said["id"], ID, "{what}: {said}");
                }
                let took = begun.elapsed();
                assert!(took < soon(), "{what} took {took:?}");
            }
        }
    };
    let (waited, ()) = tokio::join!(waiting, hostile);
    assert_eq!(waited["result"].get("isError"), None, "{waited}");
    assert!(
        session
            .ask(&request(2, "tools/list", json!({})))
            .await
            .get("result")
            .is_some()
    );
}

#[tokio::test]
async fn a_body_that_is_too_large_is_answered_in_the_words_of_the_protocol() {
    let world = world();
    let crib = world.serve();
    let word = "x".repeat(11 * 1_024 * 1_024);
    let response = crib
        .post_mcp(&[], call(1, "say", json!({"word": word})).to_string())
        .await;
    assert_eq!(response.status(), 413);
    let said = response.answer().await;
    assert_eq!(
        (&said["jsonrpc"], &said["id"]),
        (&json!("2.0"), &Value::Null),
        "{said}"
    );
    assert!(
        said["error"]["message"]
            .as_str()
            .unwrap()
            .contains("larger than 10 MB"),
        "{said}"
    );
}

#[tokio::test]
async fn over_rest_every_body_is_answered_at_once() {
    let world = world();
    let crib = world.serve();
    let waiting = crib.call("wait", json!({}));
    let hostile = async {
        let wrapped = values()
            .into_iter()
            .map(|value| [b"{\"arguments\":{\"word\":", &value[..], b"}}"].concat());
        let bodies = wrapped.chain(messages().into_iter().map(|(message, _)| message));
        for body in bodies {
            let begun = Instant::now();
            let request = crib.client.post(format!("{}/api/tools/say/call", crib.url));
            let (status, said) = answer(request.body(body.clone()).send().await.unwrap()).await;
            let what = shown(&body);
            assert!(status < 500, "{status}: {what}: {said}");
            let told = said["error"]["message"].is_string() || said["output"].is_string();
            assert!(told, "{status}: {what}: {said}");
            let took = begun.elapsed();
            assert!(took < soon(), "{what} took {took:?}");
        }
    };
    let ((status, waited), ()) = tokio::join!(waiting, hostile);
    assert_eq!(
        (status, &waited["isError"]),
        (200, &json!(false)),
        "{waited}"
    );
    assert_eq!(
        crib.call("say", json!({"word": "hi"})).await.1["output"],
        "hi\n"
    );
}
