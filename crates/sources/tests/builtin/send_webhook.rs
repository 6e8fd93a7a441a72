//! `send-webhook`: signed, retried with one id, and to nobody else.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_sources::remotes::{Remotes, Webhook};

use crate::support::World;
use crate::support::web::{Web, moved, reply};

fn world(url: &str) -> World {
    let world = World::new();
    world.secret("ops", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
    let webhook = Webhook {
        url: url.parse().unwrap(),
        secret: "ops".to_owned(),
    };
    world.configure(Remotes {
        webhooks: [("ops".to_owned(), webhook)].into(),
        ..Remotes::default()
    });
    world
}

fn header<'a>(request: &'a str, name: &str) -> &'a str {
    let mut lines = request.lines();
    lines
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or_default()
}

#[tokio::test]
async fn a_message_is_signed_and_sent_again_with_its_id() {
    let count = AtomicUsize::new(0);
    let web = Web::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => reply("503 Busy", "", b""),
        _ => reply("200 OK", "", b"thanks"),
    })
    .await;
    let world = world(&web.url("/hook"));
    let outcome = world
        .call(
            "send-webhook",
            json!({"name": "ops", "body": {"a": 1, "b": "ä\r\nX-Evil: 1"}}),
        )
        .await
        .unwrap();
    assert_eq!(
        outcome.output,
        "`ops` took the message (status 200)\n\nthanks"
    );
    assert_eq!(
        (&outcome.metadata["attempts"], &outcome.metadata["status"]),
        (&json!(2), &json!(200))
    );
    let asked = web.asked();
    assert_eq!(asked.len(), 2);
    let id = header(&asked[0], "webhook-id");
    assert!(
        id.starts_with("msg_") && id == header(&asked[1], "webhook-id"),
        "{id}"
    );
    assert_eq!(outcome.metadata["id"], json!(id));
    for request in &asked {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /hook HTTP/1.1")
                && header(head, "content-type") == "application/json"
        );
        assert!(!head.contains("X-Evil"));
        let signed = format!(
            "{}.{}.{body}",
            header(head, "webhook-id"),
            header(head, "webhook-timestamp")
        );
        assert_eq!(
            header(head, "webhook-signature"),
            crate::support::hmac("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &signed)
        );
    }
}

#[tokio::test]
async fn what_is_refused_is_told_and_goes_nowhere_else() {
    let other = Web::start(|_| reply("200 OK", "", b"")).await;
    let elsewhere = other.url("/");
    let web = Web::start(move |request| match request.contains("/moved") {
        true => moved(&elsewhere),
        false => reply("400 Bad", "", b"no"),
    })
    .await;
    let refused = world(&web.url("/"))
        .call("send-webhook", json!({"name": "ops", "body": {}}))
        .await
        .unwrap();
    assert!(
        refused.is_error && refused.metadata["attempts"] == json!(1),
        "{refused:?}"
    );
    let moved = world(&web.url("/moved"))
        .call("send-webhook", json!({"name": "ops", "body": {}}))
        .await;
    assert!(moved.is_err() && other.asked().is_empty());
    let metadata = world("http://169.254.169.254/")
        .call("send-webhook", json!({"name": "ops", "body": {}}))
        .await;
    assert_eq!(metadata.unwrap_err().code, ErrorCode::Denied);
    let off = World::new();
    let error = off
        .call("send-webhook", json!({"name": "ops", "body": {}}))
        .await
        .unwrap_err();
    assert!(
        error.code == ErrorCode::Unavailable
            && error.hint.unwrap().to_string().contains("[webhooks.NAME]")
    );
    let world = world(&web.url("/"));
    for bad in [
        json!({"name": "other", "body": {}}),
        json!({"name": "ops"}),
        json!({"name": "ops", "body": "text"}),
        json!({"name": "ops", "body": {"a": "x".repeat(1_000_001)}}),
    ] {
        let error = world.call("send-webhook", bad).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{error}");
    }
}
