//! MCP and streams ask for tokens too.

use std::time::Duration;

use serde_json::json;

use super::{get, refused, world};
use crate::support::answer;
use crate::support::mcp::{LEGACY, call, initialize, names, request, stateless, stateless_call};

#[tokio::test]
async fn mcp_over_http_asks_too_in_both_eras_and_both_ways() {
    let world = world();
    let mut crib = world.serve_closed();
    let list = stateless(1, "tools/list", json!({}));
    let greet = stateless_call(2, "greet", json!({"n": 1}));
    // With a progress token, anything may come before the answer.
    let mut streamed = greet.clone();
    streamed["params"]["_meta"]["progressToken"] = json!("p");
    for message in [&list, &greet, &streamed] {
        assert_eq!(crib.post_stateless(message).await.status(), 401);
    }
    let hello = initialize(0, LEGACY[3]).to_string();
    let refusal = crib
        .client
        .post(format!("{}/mcp", crib.url))
        .body(hello.clone());
    for refusal in [
        refusal.send().await.unwrap(),
        get(&crib, "/mcp", None).await,
    ] {
        let challenge = refusal.headers()["www-authenticate"].to_str().unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
        let (status, said) = answer(refusal).await;
        assert_eq!((status, &said["jsonrpc"]), (401, &json!("2.0")), "{said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains("toolcrib token create"), "{message}");
    }

    let reader = world.token("reader", "read");
    crib.show(Some(&reader));
    assert!(names(&crib.post_stateless(&list).await.answer().await).contains(&"greet"));
    for message in [&greet, &streamed] {
        assert_eq!(crib.post_stateless(message).await.status(), 403);
    }
    for version in LEGACY {
        let session = crib.session(version).await;
        let listed = session.ask(&request(1, "tools/list", json!({}))).await;
        assert!(names(&listed).contains(&"greet"));
        assert_eq!(
            session
                .post(&call(2, "greet", json!({"n": 1})))
                .await
                .status(),
            403
        );
    }

    let caller = world.token("caller", "call");
    crib.show(Some(&caller));
    assert_eq!(crib.post_stateless(&list).await.status(), 403);
    assert_eq!(crib.post_mcp(&[], hello).await.status(), 403);
    for message in [&greet, &streamed] {
        let answer = crib.post_stateless(message).await.answer().await;
        assert_eq!(answer["result"]["content"][0]["text"], "hi 1\n", "{answer}");
    }

    let both = world.token("both", "read,call");
    crib.show(Some(&both));
    let session = crib.session(LEGACY[3]).await;
    let mut stream = session.listen().await;
    let answer = session.ask(&call(2, "greet", json!({"n": 2}))).await;
    assert_eq!(answer["result"]["content"][0]["text"], "hi 2\n", "{answer}");
    // The stream ends with its token, and the session is of no use any more.
    world.run(&["token", "revoke", "both"]).exits(0);
    let ended = tokio::time::timeout(Duration::from_secs(5), async {
        while let Ok(Some(_)) = stream.response.chunk().await {}
    });
    ended.await.expect("the stream ends");
    assert_eq!(
        session.post(&call(3, "greet", json!({}))).await.status(),
        401
    );
}

#[tokio::test]
async fn an_event_stream_ends_with_its_token() {
    let world = world();
    let mut crib = world.serve_closed();
    let token = world.token("listener", "read");
    crib.show(Some(&token));
    let mut stream = get(&crib, "/api/events", None).await;
    assert_eq!(stream.status(), 200);
    let other = world.token("another", "read");
    // Longer than it takes the server to see that tokens changed.
    assert!(
        tokio::time::timeout(Duration::from_millis(1_500), stream.chunk())
            .await
            .is_err()
    );
    world.run(&["token", "revoke", "listener"]).exits(0);
    let ended = tokio::time::timeout(Duration::from_secs(5), async {
        while let Ok(Some(_)) = stream.chunk().await {}
    });
    ended.await.expect("the stream ends");
    refused(get(&crib, "/api/events", None).await, 401, "unauthorized").await;
    crib.show(Some(&other));
    assert_eq!(get(&crib, "/api/events", None).await.status(), 200);
}
