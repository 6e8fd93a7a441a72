//! Limits and middleware as people set them, through the real binary.

use serde_json::{Value, json};

use crate::support::mcp::{Piped, request};
use crate::support::{TestCrib, World, eventually, shell_tool};

fn world(settings: &str) -> World {
    let world = World::trusted();
    world.settings(settings);
    let visitors = shell_tool("visitors", "echo rosa@example.org", json!({}));
    world.write_tool("visitors.json", visitors);
    world.write_tool("other.json", shell_tool("other", "echo hi", json!({})));
    world
}

async fn post(crib: &TestCrib, body: Value) -> reqwest::Response {
    let url = format!("{}/api/tools/visitors/call", crib.url);
    crib.client.post(url).json(&body).send().await.unwrap()
}

#[tokio::test]
async fn a_token_has_its_calls_a_minute_whichever_crib_it_asks_and_however_settings_change() {
    let world = world("[limits.tokens.ci]\ncalls_per_minute = 5\n");
    let secret = world.token("ci", "read,call");
    let other = world.token("other", "read,call");
    let mut cribs = [world.serve_closed(), world.serve_closed()];
    cribs.iter_mut().for_each(|crib| crib.show(Some(&secret)));
    let mut told = Vec::new();
    for n in 0..8 {
        told.push(post(&cribs[n % 2], json!({})).await);
    }
    let let_in = told.iter().filter(|one| one.status() == 200).count();
    assert_eq!(let_in, 5);
    let refused = told.pop().unwrap();
    assert_eq!(refused.status(), 429);
    let wait: u64 = refused.headers()["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=62).contains(&wait), "{wait}");
    let body: Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["code"], "limit_reached");
    assert_eq!(
        body["error"]["message"],
        "the token `ci` may make 5 calls a minute, and has made them"
    );
    assert!(
        body["error"]["data"]["retryAt"]
            .as_str()
            .unwrap()
            .ends_with('Z')
    );

    // One more is allowed from now on: so many were made, and no count begins anew.
    world.settings("[limits.tokens.ci]\ncalls_per_minute = 6\n");
    eventually("the new limit holds", async || {
        post(&cribs[0], json!({})).await.status() == 200
    })
    .await;
    assert_eq!(post(&cribs[1], json!({})).await.status(), 429);
    cribs[0].show(Some(&other));
    assert_eq!(post(&cribs[0], json!({})).await.status(), 200);
}

#[tokio::test]
async fn middleware_of_an_agent_hides_counts_and_is_on_record() {
    let world = world(
        "[agents.default]\nmiddleware = [\n  { name = \"pii\", pii_types = [\"email\"] },\n  \
         { name = \"tool_call_limit\", tools = [\"visitors\"], run_limit = 2, exit_behavior = \"end\" },\n]\n",
    );
    let crib = world.serve();
    let call = async |run: &str| {
        let answer = post(&crib, json!({"runId": run})).await;
        let status = answer.status().as_u16();
        let body: Value = answer.json().await.unwrap();
        (
            status,
            body["output"]
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        )
    };
    let hidden = (200, "[REDACTED_EMAIL]".to_owned());
    assert_eq!(call("one").await, hidden);
    assert_eq!(call("one").await, hidden);
    assert_eq!(call("one").await.0, 429);
    // The run has ended, for every tool.
    let (status, _) = crib
        .post("/tools/other/call", json!({"runId": "one"}))
        .await;
    assert_eq!(status, 429);
    assert_eq!(call("two").await, hidden);

    let calls = async || crib.get("/calls").await.1;
    eventually("all are on record", async || {
        let calls = calls().await;
        calls["calls"].as_array().is_some_and(|all| all.len() == 5)
    })
    .await;
    let list = calls().await;
    let did = |n: usize| list["calls"][n]["middleware"].clone();
    assert_eq!(did(0), json!([{"name": "pii", "did": "changed"}]));
    assert_eq!(
        did(1),
        json!([{"name": "tool_call_limit", "did": "refused"}])
    );
    assert_eq!(
        did(2),
        json!([{"name": "tool_call_limit", "did": "refused"}])
    );
    let shown = world.run(&["logs", "--calls"]).exits(0).stdout;
    assert!(shown.contains("tool_call_limit refused"), "{shown}");
}

#[test]
fn threads_and_runs_are_those_that_mcp_clients_name() {
    let world = world(
        "[agents.default]\nmiddleware = [{ name = \"tool_call_limit\", run_limit = 1, thread_limit = 2 }]\n",
    );
    let mut client = Piped::greeted(world.command(&["mcp"]));
    let mut id = 10;
    let mut call = |meta: Value| {
        id += 1;
        let params = json!({"name": "other", "arguments": {}, "_meta": meta});
        let answer = client.ask(&request(id, "tools/call", params));
        answer["result"]["isError"] == true
    };
    // The connection is the thread, and its calls are one run.
    assert!(!call(json!({})));
    assert!(call(json!({})));
    assert!(!call(json!({"toolcrib/run": "second"})));
    assert!(
        call(json!({"toolcrib/run": "third"})),
        "the thread is used up"
    );
    assert!(!call(json!({"toolcrib/thread": "another"})));
    let codex =
        |thread: &str| json!({"x-codex-turn-metadata": {"thread_id": thread, "session_id": "s"}});
    assert!(!call(codex("a")) && call(codex("a")) && !call(codex("b")));
}

#[tokio::test]
async fn without_its_counters_a_limited_call_is_refused() {
    let world = world("[limits.agents.default]\ncalls_per_minute = 100\n");
    let crib = world.serve();
    assert_eq!(crib.call("other", json!({})).await.0, 200);
    let counters = world
        .home()
        .join(".local/share/toolcrib/toolcrib-counters.db");
    assert!(counters.exists());
    std::fs::remove_file(&counters).unwrap();
    std::fs::create_dir(&counters).unwrap();
    let (status, body) = crib.call("other", json!({})).await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (503, &json!("unavailable"))
    );
    std::fs::remove_dir(&counters).unwrap();
    assert_eq!(crib.call("other", json!({})).await.0, 200);
}
