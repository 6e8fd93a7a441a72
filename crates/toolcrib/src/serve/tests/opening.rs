//! What is answered before anybody has looked for tools: nothing that is wrong a moment later.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolcrib_core::{Crib, Loading};
use tower::ServiceExt;

use super::fixture::{TestServer, answer};
use crate::serve::auth::Who;
use crate::serve::{Served, mcp, rest};

/// A crib that nobody has looked for tools in.
async fn opening() -> (Arc<Crib>, Arc<Served>) {
    let server = TestServer::start().await;
    let crib = server.served.crib.clone();
    crib.set_loading(Loading::Opening);
    (crib.clone(), Arc::new(Served::new(crib)))
}

async fn status(served: &Arc<Served>, path: &str) -> StatusCode {
    let router = rest::router(served.clone()).layer(Extension(Who::owner()));
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    router.oneshot(request).await.unwrap().status()
}

#[tokio::test]
async fn who_asks_before_the_first_look_is_answered_after_it() {
    let server = TestServer::start().await;
    let crib = &server.served.crib;
    crib.set_loading(Loading::Opening);
    let listed = async {
        let (status, list) = answer(server.get("/api/tools").await).await;
        (status, list["count"].as_u64().unwrap())
    };
    let looked = async {
        tokio::task::yield_now().await;
        crib.set_loading(Loading::Describing);
    };
    let ((status, count), ()) = tokio::join!(listed, looked);
    assert_eq!(status, 200);
    assert!(count > 0);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_takes_too_long_is_no_empty_list() {
    let (crib, served) = opening().await;
    for path in ["/api/tools", "/api/v1/tools/echo", "/api/tools/definitions"] {
        assert_eq!(
            status(&served, path).await,
            StatusCode::SERVICE_UNAVAILABLE,
            "{path}"
        );
    }
    assert_eq!(status(&served, "/api/health").await, StatusCode::OK);
    crib.set_loading(Loading::Done);
    assert_eq!(status(&served, "/api/tools").await, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_greeted_before_the_first_look_and_gets_no_empty_list() {
    let (_crib, served) = opening().await;
    let (ours, theirs) = tokio::io::duplex(64 * 1_024);
    let (input, output) = tokio::io::split(theirs);
    tokio::spawn(mcp::lines(
        mcp::Mcp::new(served),
        (Who::owner(), mcp::new_session()),
        input,
        output,
    ));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let client = json!({"name": "t", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    for (id, method, params) in [(1, "initialize", params), (2, "tools/list", json!({}))] {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        write
            .write_all(format!("{request}\n").as_bytes())
            .await
            .unwrap();
        let answer = lines.next_line().await.unwrap().unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer.get("result").is_some(), id == 1, "{answer}");
    }
}
