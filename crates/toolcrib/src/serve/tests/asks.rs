//! A call that asks its client something, over lines and HTTP: only what was declared, and never without an end.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::time::timeout;

use super::fixture::{LONG, TestServer, does, echo, tool, update};
use crate::serve::auth::Who;
use crate::serve::{Readiness, mcp};
use toolcrib_core::{Call, Outcome, PeerError, Question, Rank};

/// A server with tools that ask: `asks` a person, `hurries` without patience, `looks` for the client's folders.
async fn server() -> TestServer {
    let asks = |question: Question, limit: Duration| {
        does(move |call: &Call| {
            Box::pin(async move {
                let Some(peer) = &call.context.peer else {
                    return Ok(Outcome::text("nobody to ask"));
                };
                let params = json!({"message": "why?", "requestedSchema": {"type": "object"}});
                Ok(match peer.ask(question, params, limit).await {
                    Ok(answer) => Outcome::structured(answer),
                    Err(PeerError::Refused { code, message }) => {
                        Outcome::text(format!("{code} {message}"))
                    }
                    Err(error) => Outcome::text(format!("{error:?}")),
                })
            })
        })
    };
    let server = TestServer::start().await;
    let tools = vec![
        tool("asks", asks(Question::Elicit, LONG)),
        tool("hurries", asks(Question::Elicit, Duration::from_millis(20))),
        tool("looks", asks(Question::Roots, LONG)),
    ];
    let added = update("asking", Rank::Builtin, tools, Vec::new());
    server.served.crib.apply(vec![added]);
    server
}

fn hello(capabilities: Value) -> Value {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                        "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool}})
}

fn answer(to: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": to["id"], "result": {"action": "accept", "content": {"a": 1.5}}})
}

/// A client on lines.
struct Piped {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    input: WriteHalf<DuplexStream>,
}

impl Piped {
    async fn start(server: &TestServer, capabilities: Value) -> Piped {
        let (ours, theirs) = tokio::io::duplex(64 * 1_024);
        let (input, output) = tokio::io::split(theirs);
        let handler = mcp::Mcp::new(server.served.clone());
        tokio::spawn(mcp::lines(
            handler,
            (Who::owner(), mcp::new_session()),
            input,
            output,
        ));
        let (read, input) = tokio::io::split(ours);
        let lines = BufReader::new(read).lines();
        let mut piped = Piped { lines, input };
        piped.send(&hello(capabilities)).await;
        assert_eq!(piped.next().await["id"], 0);
        piped
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = timeout(LONG, self.lines.next_line()).await.unwrap();
        serde_json::from_str(&line.unwrap().unwrap()).unwrap()
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn a_client_on_lines_is_asked_and_answers() {
    let server = server().await;
    let mut client = Piped::start(&server, json!({"elicitation": {}})).await;
    client.send(&call(1, "asks")).await;
    let asked = client.next().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    assert_eq!(asked["params"]["message"], "why?");
    // What nobody asked is passed over, and so is the same answer twice.
    client
        .send(&answer(&json!({"id": "toolcrib-nobody"})))
        .await;
    client
        .send(&json!({"jsonrpc": "2.0", "error": {"code": 1}}))
        .await;
    client.send(&answer(&asked)).await;
    client.send(&answer(&asked)).await;
    let ended = client.next().await;
    assert_eq!(ended["id"], 1, "{ended}");
    assert_eq!(ended["result"]["structuredContent"]["content"]["a"], 1.5);

    client.send(&call(2, "asks")).await;
    let asked = client.next().await;
    let no = json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -7, "message": "no"}});
    client.send(&no).await;
    assert_eq!(text(&client.next().await), "-7 no");
}

#[tokio::test]
async fn only_what_was_declared_is_asked() {
    let server = server().await;
    let mut client = Piped::start(&server, json!({"elicitation": {}, "roots": null})).await;
    client.send(&call(1, "looks")).await;
    assert_eq!(text(&client.next().await), "Unsupported");
    let mut client = Piped::start(&server, json!({})).await;
    client.send(&call(1, "asks")).await;
    assert_eq!(text(&client.next().await), "nobody to ask");
    // Requests that stand alone are never asked back.
    let mut alone = call(2, "asks");
    alone["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    });
    client.send(&alone).await;
    assert_eq!(text(&client.next().await), "nobody to ask");
}

#[tokio::test]
async fn a_client_that_never_answers_holds_up_no_call() {
    let server = server().await;
    let mut client = Piped::start(&server, json!({"elicitation": {}})).await;
    client.send(&call(1, "hurries")).await;
    let asked = client.next().await;
    let taken_back = client.next().await;
    assert_eq!(taken_back["method"], "notifications/cancelled");
    assert_eq!(taken_back["params"]["requestId"], asked["id"]);
    assert_eq!(text(&client.next().await), "TimedOut");
    // The call is cancelled while its client thinks: the question goes with it, and nobody is answered.
    client.send(&call(2, "asks")).await;
    let asked = client.next().await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}});
    client.send(&cancel).await;
    assert_eq!(client.next().await["params"]["requestId"], asked["id"]);
    client
        .send(&json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}))
        .await;
    assert_eq!(client.next().await["id"], 3);
}

/// The messages of an event stream, one after the other.
struct Events(reqwest::Response, String);

impl Events {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.1.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.1 = rest;
                if let Some(data) = event.strip_prefix("data: ") {
                    return Some(serde_json::from_str(data).unwrap());
                }
                continue;
            }
            let chunk = timeout(LONG, self.0.chunk()).await.unwrap().unwrap()?;
            self.1.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn post(server: &TestServer, session: Option<&str>, message: &Value) -> reqwest::Response {
    let mut request = server
        .request(Method::POST, "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    if let Some(session) = session {
        request = request.header("mcp-session-id", session);
    }
    request.body(message.to_string()).send().await.unwrap()
}

async fn session(server: &TestServer, capabilities: Value) -> String {
    let greeted = post(server, None, &hello(capabilities)).await;
    assert_eq!(greeted.headers()["content-type"], "application/json");
    greeted.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned()
}

#[tokio::test]
async fn a_client_over_http_is_asked_on_the_stream_of_its_call() {
    let server = server().await;
    let session = session(&server, json!({"elicitation": {}})).await;
    let calling = post(&server, Some(&session), &call(1, "asks")).await;
    assert_eq!(calling.headers()["content-type"], "text/event-stream");
    let mut events = Events(calling, String::new());
    let asked = events.next().await.unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let heard = post(&server, Some(&session), &answer(&asked)).await;
    assert_eq!(heard.status(), 202);
    let ended = events.next().await.unwrap();
    assert_eq!(
        ended["result"]["structuredContent"]["action"], "accept",
        "{ended}"
    );
    assert!(
        events.next().await.is_none(),
        "nothing comes after the answer"
    );
    // One that is asked nothing is answered as plain JSON.
    let plain = post(&server, Some(&session), &call(2, "echo")).await;
    assert_eq!(plain.headers()["content-type"], "application/json");
}

#[tokio::test]
async fn a_cancelled_request_over_http_gets_no_answer() {
    let server = server().await;
    let session = session(&server, json!({})).await;
    let slow = call(7, "slow");
    let calling = post(&server, Some(&session), &slow);
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let cancelling = async {
        server.gate.entered.notified().await;
        assert_eq!(post(&server, Some(&session), &cancel).await.status(), 202);
    };
    let (ended, ()) = tokio::join!(calling, cancelling);
    assert_eq!(ended.status(), 200);
    assert_eq!(ended.text().await.unwrap(), "");
    timeout(LONG, server.served.calls_ended()).await.unwrap();
}

#[tokio::test]
async fn who_asks_during_the_start_waits_for_the_tools() {
    let (ready, told) = tokio::sync::watch::channel(Readiness::default());
    let server = TestServer::with(|served| served.with_readiness(told)).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let asking = async {
        let session = session(&server, json!({})).await;
        post(&server, Some(&session), &list).await.text().await
    };
    let loading = async {
        let added = update(
            "late",
            Rank::Folder(0),
            vec![tool("fresh", echo())],
            Vec::new(),
        );
        server.served.crib.apply(vec![added]);
        ready.send_modify(|ready| ready.loaded = true);
    };
    let (listed, ()) = tokio::join!(asking, loading);
    assert!(listed.unwrap().contains("fresh"));
}
