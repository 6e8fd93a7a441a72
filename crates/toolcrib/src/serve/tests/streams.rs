//! What lasts longer than a request: events, calls whose client has gone, and the end of the server.

use std::sync::Arc;

use serde_json::json;
use tokio::time::timeout;
use toolcrib_core::{ErrorType, Event, Problem, Rank, SourceKind};

use super::fixture::{LONG, Listener, TestServer, answer, echo, tool, update};
use crate::serve::http::GRACE;

#[tokio::test]
async fn events_tell_what_changed() {
    let server = TestServer::start().await;
    let mut listener = Listener::new(&server).await;
    let problem = Problem::error(SourceKind::Plugin, ErrorType::Io, "gone").file("b.json");
    server.served.crib.apply(vec![update(
        "b.json",
        Rank::Folder(0),
        vec![tool("fresh", echo())],
        vec![problem],
    )]);
    let (name, data) = listener.next().await.unwrap();
    assert_eq!(name, "tools_changed");
    assert_eq!(
        data,
        json!({"version": 2, "added": ["fresh"], "changed": [], "removed": []})
    );
    let (name, data) = listener.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["errorType"]),
        ("tool_error", &json!("IoError"))
    );
    assert_eq!(data["timestamp"], "2023-11-14T22:13:20.000Z");
}

#[tokio::test]
async fn events_tell_how_a_call_went() {
    let server = TestServer::start().await;
    let mut listener = Listener::new(&server).await;
    server
        .call("echo", json!({"arguments": {"text": "a secret"}}))
        .await;
    let (name, start) = listener.next().await.unwrap();
    assert_eq!(name, "tool.start");
    assert_eq!(
        (&start["tool"], &start["client"], &start["agent"]),
        (&json!("echo"), &json!("rest"), &json!("default"))
    );
    assert_eq!(
        uuid::Uuid::parse_str(start["callId"].as_str().unwrap())
            .unwrap()
            .get_version_num(),
        7
    );
    let (name, end) = listener.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &end["callId"]),
        ("tool.complete", &start["callId"])
    );
    assert!(end["durationMs"].is_f64() && end.get("error").is_none());
    server.call("crashing", json!({})).await;
    listener.next().await.unwrap();
    let (name, end) = listener.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &end["error"]),
        ("tool.failed", &json!("crashed"))
    );
    assert!(!start.to_string().contains("secret") && !end.to_string().contains("secret"));
}

/// One thread, so that nothing is sent on while the changes are made.
#[tokio::test(flavor = "current_thread")]
async fn a_slow_listener_is_told_and_goes_on() {
    let server = TestServer::start().await;
    let mut listener = Listener::new(&server).await;
    for round in 0..3_000 {
        let tools = if round % 2 == 0 {
            vec![tool("fresh", echo())]
        } else {
            Vec::new()
        };
        server
            .served
            .crib
            .apply(vec![update("b.json", Rank::Folder(0), tools, Vec::new())]);
    }
    let (name, data) = listener.next().await.unwrap();
    assert_eq!(name, "lagged");
    assert_eq!(data["missed"], 3_000 - 1_024);
    let (name, data) = listener.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["version"]),
        ("tools_changed", &json!(3_000 - 1_024 + 2))
    );
}

#[tokio::test]
async fn a_call_goes_on_without_its_client() {
    let server = TestServer::start().await;
    let mut events = server.served.crib.changes();
    let call = tokio::spawn(
        server
            .request(reqwest::Method::POST, "/api/tools/slow/call")
            .send(),
    );
    timeout(LONG, server.gate.entered.notified()).await.unwrap();
    let held = Arc::strong_count(&server.served);
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    // The request's own future holds a reference; when that is gone, the server has seen the client go.
    timeout(LONG, async {
        while Arc::strong_count(&server.served) >= held {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
    assert_eq!(*server.served.in_flight.borrow(), 1);
    server.gate.open.notify_one();
    loop {
        match timeout(LONG, events.recv()).await.unwrap().unwrap() {
            Event::ToolComplete { tool, .. } => break assert_eq!(tool, "slow"),
            Event::ToolFailed { failure, .. } => panic!("the call ended as {}", failure.as_str()),
            _ => {}
        }
    }
    timeout(LONG, server.served.calls_ended()).await.unwrap();
}

#[tokio::test]
async fn shutdown_ends_streams_at_once() {
    let server = TestServer::start().await;
    let mut listener = Listener::new(&server).await;
    server.served.shutdown.cancel();
    assert_eq!(timeout(LONG, listener.next()).await.unwrap(), None);
    timeout(LONG, server.running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(
        tokio::net::TcpStream::connect(server.address)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn shutdown_lets_a_call_end() {
    let server = TestServer::start().await;
    let call = tokio::spawn(
        server
            .request(reqwest::Method::POST, "/api/tools/slow/call")
            .send(),
    );
    timeout(LONG, server.gate.entered.notified()).await.unwrap();
    server.served.shutdown.cancel();
    // No new connection is taken, and the call is still waited for.
    while tokio::net::TcpStream::connect(server.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!server.running.is_finished());
    server.gate.open.notify_one();
    let (status, outcome) = answer(call.await.unwrap().unwrap()).await;
    assert_eq!((status, &outcome["output"]), (200, &json!("at last")));
    timeout(LONG, server.running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn shutdown_waits_no_longer_than_its_grace() {
    let server = TestServer::start().await;
    let call = tokio::spawn(
        server
            .request(reqwest::Method::POST, "/api/tools/slow/call")
            .send(),
    );
    timeout(LONG, server.gate.entered.notified()).await.unwrap();
    let asked = std::time::Instant::now();
    server.served.shutdown.cancel();
    timeout(LONG, server.running)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert!(asked.elapsed() >= GRACE);
    let (status, body) = answer(call.await.unwrap().unwrap()).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("unavailable"))
    );
}
