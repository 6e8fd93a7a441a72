//! Calls that are followed over REST while they run, and stopped from elsewhere by whoever may.

use reqwest::header::ACCEPT;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::processes::all_gone;
use crate::support::tool::{marker, write_program};
use crate::support::{Events, TestCrib, World, answer, eventually};

const STEPS: &str = r#"
from toolcrib import tool, Context

@tool
async def steps(ctx: Context) -> str:
    """Tells how far it is."""
    ctx.progress(1, 2, message="half")
    ctx.metadata(title="Nearly done")
    return "done"
"#;

fn request(crib: &TestCrib, method: Method, path: &str, token: Option<&str>) -> RequestBuilder {
    let request = crib
        .client
        .request(method, format!("{}/api{path}", crib.url));
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

/// Calls a tool and follows the call.
async fn followed(crib: &TestCrib, tool: &str, body: Value, token: Option<&str>) -> Events {
    let path = format!("/tools/{tool}/call");
    let response = request(crib, Method::POST, &path, token)
        .header(ACCEPT, "text/event-stream")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    Events::of(response)
}

async fn cancel(crib: &TestCrib, id: &str, token: Option<&str>) -> (u16, Value) {
    let path = format!("/calls/{id}");
    answer(
        request(crib, Method::DELETE, &path, token)
            .send()
            .await
            .unwrap(),
    )
    .await
}

#[tokio::test]
async fn a_call_that_is_followed_says_its_id_its_progress_and_its_end() {
    let world = World::trusted();
    world.write_tool("steps.py", STEPS);
    let crib = world.serve();
    let mut events = followed(&crib, "steps", json!({}), None).await;
    let start = events.next("tool.start").await;
    assert_eq!(
        (&start["tool"], &start["client"]),
        (&json!("steps"), &json!("rest"))
    );
    let step = events.next("tool.progress").await;
    assert_eq!(
        (&step["message"], &step["callId"]),
        (&json!("half"), &start["callId"])
    );
    assert_eq!(events.next("tool.progress").await["title"], "Nearly done");
    assert_eq!(events.next("result").await["output"], "done");
    let id = start["callId"].as_str().unwrap();
    eventually("the call is on record under that id", async || {
        crib.get(&format!("/calls/{id}")).await.0 == 200
    })
    .await;

    let mut events = followed(&crib, "nothing", json!({}), None).await;
    let error = events.next("error").await;
    assert_eq!(error["error"]["code"], "unknown_tool");
    let mut events = followed(&crib, "steps", json!({"arguments": {"x": 1}}), None).await;
    let error = events.next("error").await;
    assert_eq!(error["error"]["code"], "invalid_arguments");
}

#[tokio::test]
async fn a_call_is_stopped_by_its_token_or_by_who_manages_and_by_nobody_else() {
    let world = World::trusted();
    let marker = marker();
    write_program(&world, "echo", &marker, &[], json!({"poolSize": 4}));
    let crib = world.serve_closed();
    let [own, other, manager] = [
        ("own", "read,call"),
        ("other", "read,call"),
        ("manager", "call,manage"),
    ]
    .map(|(name, scopes)| world.token(name, scopes));
    for stops in [&own, &manager] {
        let runs = world
            .project()
            .join(if stops == &own { "first" } else { "second" });
        let body = json!({"arguments": {"sleep": 600, "touch": runs}});
        let mut events = followed(&crib, "echo", body, Some(&own)).await;
        let start = events.next("tool.start").await;
        let id = start["callId"].as_str().unwrap();
        eventually("the call runs", async || runs.exists()).await;
        for (id, token) in [
            (id, &other),
            ("01a1e213-3152-76a0-8a1a-ae5fa2f7c32c", &manager),
        ] {
            let (status, refusal) = cancel(&crib, id, Some(token)).await;
            assert_eq!(
                (status, &refusal["error"]["code"]),
                (404, &json!("not_found"))
            );
        }
        let (status, said) = cancel(&crib, id, Some(stops)).await;
        assert_eq!((status, &said["cancelled"]), (200, &json!(id)), "{said}");
        let error = events.next("error").await;
        assert_eq!(error["error"]["code"], "denied", "{error}");
        all_gone(&marker).await;
        eventually("it is on record as cancelled", async || {
            let path = format!("/calls/{id}");
            let (_, record) = answer(
                request(&crib, Method::GET, &path, Some(&own))
                    .send()
                    .await
                    .unwrap(),
            )
            .await;
            record["transport"] == "cancelled"
        })
        .await;
        // What has ended is not running.
        assert_eq!(cancel(&crib, id, Some(stops)).await.0, 404);
    }
}
