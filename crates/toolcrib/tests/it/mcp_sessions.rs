//! MCP sessions over HTTP: signed, so that they outlive the process; of one token; ended when the client says so.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp_clients::{NODE, client};
use crate::support::mcp::{
    LEGACY, Piped, Stream, call, initialize, names, notification, request, stateless_call,
};
use crate::support::plugin::{file, shell};
use crate::support::{TestCrib, World, eventually, shell_tool};
use crate::tidy::root;

const CHANGED: &str = "notifications/tools/list_changed";

fn world() -> World {
    let world = World::trusted();
    let say = shell("say", "echo {{word}}", json!({"word": {"type": "string"}}));
    world.write_tool("say.json", file(&[say]));
    world
}

/// Posts into a session that another crib may have begun.
async fn post(crib: &TestCrib, session: &str, message: &Value) -> Stream {
    let headers = [("mcp-session-id", session)];
    crib.post_mcp(&headers, message.to_string()).await
}

async fn say(crib: &TestCrib, session: &str) -> String {
    let said = post(crib, session, &call(5, "say", json!({"word": "hi"}))).await;
    assert_eq!(said.status(), 200);
    let said = said.answer().await;
    said["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

async fn listen(crib: &TestCrib, session: &str) -> Stream {
    let request = crib.client.get(format!("{}/mcp", crib.url));
    let request = request.header("accept", "text/event-stream");
    let response = request
        .header("mcp-session-id", session)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    Stream::of(response)
}

#[tokio::test]
async fn sessions_of_every_old_revision_go_on_after_kill_9() {
    let world = world();
    let crib = world.serve();
    let mut sessions = Vec::new();
    for version in LEGACY {
        let session = crib.session(version).await;
        assert_eq!(say(&crib, &session.id).await, "hi\n", "{version}");
        sessions.push(session.id.clone());
    }
    crib.kill();
    world.write_tool("more.json", shell_tool("more", "true", json!({})));
    let next = world.serve();
    for session in &sessions {
        assert_eq!(say(&next, session).await, "hi\n");
        let list = post(&next, session, &request(6, "tools/list", json!({}))).await;
        assert!(names(&list.answer().await).contains(&"more"));
        // What changed while nobody was there is told to who listens again, and so is what changes then.
        let mut stream = listen(&next, session).await;
        stream.notified(CHANGED).await;
    }
    let mut stream = listen(&next, &sessions[0]).await;
    stream.notified(CHANGED).await;
    world.write_tool("last.json", shell_tool("last", "true", json!({})));
    stream.notified(CHANGED).await;
}

#[test]
fn the_typescript_sdk_goes_on_after_kill_9() {
    let world = world();
    let crib = world.serve();
    let (port, url) = (crib.port().to_string(), format!("{}/mcp", crib.url));
    let script = root().join("tests/clients/sdk_restart.mjs");
    let arguments = [
        script.to_str().unwrap(),
        &url,
        "say",
        r#"{"word": "hello"}"#,
    ];
    let mut command = client(&world, NODE, &arguments);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    crib.kill();
    let again = ["serve", "--json", "--no-auth", "--port", &port];
    let _crib = world.serve_by(world.command(&again));
    writeln!(child.stdin.as_mut().unwrap()).unwrap();
    let saw: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(
        (&saw["before"], &saw["after"]),
        (&json!("hello\n"), &json!("hello\n"))
    );
    assert_eq!(saw["same"], true, "no new session was needed");
}

#[tokio::test]
async fn a_session_is_of_one_token_and_no_other() {
    let world = world();
    let mut crib = world.serve_closed();
    let (one, two) = (
        world.token("one", "read,call"),
        world.token("two", "read,call"),
    );
    crib.show(Some(&one));
    let session = crib.session(LEGACY[3]).await.id.clone();
    crib.show(Some(&two));
    let list = request(6, "tools/list", json!({}));
    assert_eq!(post(&crib, &session, &list).await.status(), 404);
    crib.show(None);
    assert_eq!(post(&crib, &session, &list).await.status(), 401);
    crib.kill();
    // Neither in another process, whether it asks for tokens or not.
    let mut crib = world.serve_closed();
    crib.show(Some(&two));
    assert_eq!(post(&crib, &session, &list).await.status(), 404);
    crib.show(Some(&one));
    assert_eq!(say(&crib, &session).await, "hi\n");
    let open = world.serve();
    assert_eq!(post(&open, &session, &list).await.status(), 404);
    world.run(&["token", "revoke", "one"]).exits(0);
    let refused = async || post(&crib, &session, &list).await.status() == 401;
    eventually("the token counts no more", refused).await;
}

#[tokio::test]
async fn forged_and_ended_sessions_are_not_found() {
    let world = world();
    let crib = world.serve();
    let session = crib.session(LEGACY[2]).await.id.clone();
    let ping = request(1, "ping", json!({}));
    for forged in [
        "nonsense",
        &session[1..],
        &session.replace('e', "f"),
        &"x".repeat(5_000),
    ] {
        let refused = post(&crib, forged, &ping).await;
        assert_eq!(refused.status(), 404, "{forged}");
        assert_eq!(refused.answer().await["id"], 1);
    }
    let end = async |session: &str| {
        let request = crib.client.delete(format!("{}/mcp", crib.url));
        let sent = request.header("mcp-session-id", session).send().await;
        sent.unwrap().status().as_u16()
    };
    let mut stream = listen(&crib, &session).await;
    assert_eq!(end("nonsense").await, 404);
    assert_eq!(post(&crib, &session, &ping).await.status(), 200);
    assert_eq!(end(&session).await, 204);
    assert_eq!(end(&session).await, 404);
    assert_eq!(post(&crib, &session, &ping).await.status(), 404);
    assert!(
        stream.response.chunk().await.unwrap().is_none(),
        "its stream has ended"
    );
}

#[tokio::test]
async fn one_revision_takes_several_messages_at_once() {
    let world = world();
    let crib = world.serve();
    let cancel = notification("notifications/cancelled", json!({"requestId": 9}));
    let hi = call(2, "say", json!({"word": "hi"}));
    let batch = json!([request(1, "ping", json!({})), cancel, hi, {"id": 3}]);
    let of = |answers: &Value, id: u64| {
        let found = answers
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["id"] == id);
        found
            .unwrap_or_else(|| panic!("no {id}: {answers}"))
            .clone()
    };
    let is_right = |answers: &Value| {
        assert_eq!(answers.as_array().unwrap().len(), 3, "{answers}");
        assert_eq!(of(answers, 1)["result"], json!({}));
        assert_eq!(of(answers, 2)["result"]["content"][0]["text"], "hi\n");
        assert_eq!(of(answers, 3)["error"]["code"], -32600);
    };
    for version in LEGACY {
        let session = crib.session(version).await;
        let mut piped = Piped::start(world.command(&["mcp"]));
        piped.ask(&initialize(0, version));
        let answered = session.post(&batch).await;
        if version == "2025-03-26" {
            is_right(&answered.answer().await);
            piped.send(&batch);
            is_right(&piped.wait_any());
            let silent = session.post(&json!([cancel])).await;
            assert_eq!(silent.status(), 202);
        } else {
            assert_eq!(answered.status(), 400, "{version}");
            piped.send(&batch);
            assert_eq!(piped.wait_any()["error"]["code"], -32600, "{version}");
        }
    }
}

#[tokio::test]
async fn ids_come_back_as_they_were_written_and_odd_lines_are_answered() {
    let world = world();
    let crib = world.serve();
    let session = crib.session(LEGACY[3]).await.id.clone();
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    for id in ["123456789012345678901234567890", "-5", r#""é\u0041 \"""#] {
        let ping = format!(r#"{{"jsonrpc":"2.0","unheard":[1],"id":{id},"method":"ping"}}"#);
        let answer = crib
            .post_mcp(&[("mcp-session-id", &session)], ping.clone())
            .await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(answer.response.text().await.unwrap(), expected);
        piped.send_bytes(ping.as_bytes());
        assert_eq!(piped.wait_line(), expected);
    }
    for (line, code, id) in [
        ("{", -32700, Value::Null),
        (r#"{"jsonrpc":"2.0","id":4,"method":"#, -32700, json!(4)),
        ("7", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":5}"#, -32600, json!(5)),
        (
            r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":[]}"#,
            -32602,
            json!(6),
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#,
            -32602,
            json!(7),
        ),
        (
            r#"{"jsonrpc":"2.0","id":8,"method":"no/such"}"#,
            -32601,
            json!(8),
        ),
    ] {
        piped.send_bytes(line.as_bytes());
        let answer: Value = serde_json::from_str(&piped.wait_line()).unwrap();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_name_that_no_tool_has_is_on_record_over_mcp_too() {
    let world = world();
    let crib = world.serve();
    let session = crib.session(LEGACY[3]).await.id.clone();
    post(&crib, &session, &call(1, "no-such-one", json!({}))).await;
    crib.post_stateless(&stateless_call(2, "no-such-two", json!({})))
        .await;
    Piped::greeted(world.command(&["mcp"])).ask(&call(3, "no-such-three", json!({})));
    crib.stop();
    let calls = world
        .run(&["logs", "--calls", "--json"])
        .exits(0)
        .json()
        .to_string();
    for name in ["no-such-one", "no-such-two", "no-such-three"] {
        assert!(calls.contains(name), "{name}: {calls}");
    }
}
