//! What a tool tells while it runs reaches the MCP client before the answer, in both eras, over lines and HTTP.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

use super::fixture::{LONG, TestServer, does, tool, update};
use crate::serve::auth::Who;
use crate::serve::mcp;
use toolcrib_core::{Call, Outcome, Progress, Rank};

const OLD: &str = "2025-06-18";
const STATELESS: &str = "2026-07-28";

/// A server with a tool that tells three steps: one with all there is, one without a number, and one that goes back.
async fn server() -> TestServer {
    let steps = does(|call: &Call| {
        Box::pin(async move {
            call.context.progress(Progress {
                progress: Some(50.0),
                total: Some(100.0),
                message: Some("half".into()),
                ..Progress::default()
            });
            call.context.metadata("a title", serde_json::Map::new());
            call.context.progress(Progress {
                progress: Some(2.0),
                ..Progress::default()
            });
            Ok(Outcome::text("done"))
        })
    });
    let server = TestServer::start().await;
    let added = update(
        "steps",
        Rank::Builtin,
        vec![tool("steps", steps)],
        Vec::new(),
    );
    server.served.crib.apply(vec![added]);
    server
}

/// A call of `steps`, with or without a token for its progress.
fn call(era: &str, token: Option<Value>) -> Value {
    let mut params = json!({"name": "steps", "arguments": {}});
    if let Some(token) = token {
        params["_meta"]["progressToken"] = token;
    }
    if era == STATELESS {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn hello() -> [Value; 2] {
    let params = json!({"protocolVersion": OLD, "capabilities": {},
                        "clientInfo": {"name": "test", "version": "1"}});
    [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ]
}

/// Every message that comes for one call over lines, its answer last.
async fn by_lines(server: &TestServer, era: &str, token: Option<Value>) -> Vec<Value> {
    let (ours, theirs) = tokio::io::duplex(64 * 1_024);
    let (input, output) = tokio::io::split(theirs);
    let handler = mcp::Mcp::new(server.served.clone());
    tokio::spawn(mcp::lines(
        handler,
        (Who::owner(), mcp::new_session()),
        input,
        output,
    ));
    let (read, mut write) = tokio::io::split(ours);
    let greeting = if era == OLD { &hello()[..] } else { &[] };
    let call = call(era, token);
    for message in greeting.iter().chain([&call]) {
        let line = format!("{message}\n");
        write.write_all(line.as_bytes()).await.unwrap();
    }
    let mut lines = BufReader::new(read).lines();
    let mut come = Vec::new();
    loop {
        let line = timeout(LONG, lines.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        match message.get("id") {
            Some(id) if *id == 0 => {}
            Some(_) => return [come, vec![message]].concat(),
            None => come.push(message),
        }
    }
}

/// The same over HTTP: what one POST is answered with.
async fn by_http(server: &TestServer, era: &str, token: Option<Value>) -> Vec<Value> {
    let post = async |message: &Value, session: Option<&str>| {
        let mut request = server
            .request(reqwest::Method::POST, "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", era);
        if era == STATELESS {
            request = request
                .header("mcp-method", "tools/call")
                .header("mcp-name", "steps");
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(message.to_string()).send().await.unwrap()
    };
    let mut session = None;
    if era == OLD {
        let [hello, ready] = hello();
        let greeted = post(&hello, None).await;
        let id = greeted.headers()["mcp-session-id"].to_str().unwrap();
        session = Some(id.to_owned());
        assert_eq!(post(&ready, session.as_deref()).await.status(), 202);
    }
    let answer = post(&call(era, token), session.as_deref()).await;
    assert_eq!(answer.status(), 200);
    let body = answer.text().await.unwrap();
    let events = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let events = events.map(str::trim).filter(|data| !data.is_empty());
    let messages: Vec<Value> = events
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    match messages.is_empty() {
        true => vec![serde_json::from_str(&body).unwrap()],
        false => messages,
    }
}

/// What the tool told, in order and before its answer.
fn are_steps_then_answer(come: &[Value], token: &Value, how: &str) {
    let (answer, steps) = come.split_last().unwrap();
    let told: Vec<&Value> = steps.iter().map(|step| &step["params"]).collect();
    for step in steps {
        assert_eq!(step["method"], "notifications/progress", "{how}: {step}");
        assert_eq!(step["params"]["progressToken"], *token, "{how}: {step}");
    }
    let numbers: Vec<_> = told.iter().map(|step| step["progress"].as_f64()).collect();
    assert_eq!((numbers.len(), numbers[0]), (3, Some(50.0)), "{how}");
    assert!(
        numbers.windows(2).all(|two| two[0] < two[1]),
        "{how}: {numbers:?}"
    );
    assert!(numbers[2] < Some(51.0), "{how}: {numbers:?}");
    assert_eq!(
        (&told[0]["total"], &told[0]["message"]),
        (&json!(100.0), &json!("half")),
        "{how}"
    );
    assert_eq!(told[1]["message"], "a title", "{how}");
    assert_eq!(
        answer["result"]["content"][0]["text"], "done",
        "{how}: {answer}"
    );
}

#[tokio::test]
async fn progress_comes_before_the_answer() {
    let server = server().await;
    for era in [OLD, STATELESS] {
        for token in [json!("a-token"), json!(7)] {
            let come = by_lines(&server, era, Some(token.clone())).await;
            are_steps_then_answer(&come, &token, &format!("lines, {era}"));
            let come = by_http(&server, era, Some(token.clone())).await;
            are_steps_then_answer(&come, &token, &format!("HTTP, {era}"));
        }
    }
}

#[tokio::test]
async fn who_gives_no_token_hears_the_answer_alone() {
    let server = server().await;
    for era in [OLD, STATELESS] {
        for come in [
            by_lines(&server, era, None).await,
            by_http(&server, era, None).await,
        ] {
            assert_eq!(come.len(), 1, "{era}: {come:?}");
            assert_eq!(come[0]["result"]["content"][0]["text"], "done", "{era}");
        }
    }
}
