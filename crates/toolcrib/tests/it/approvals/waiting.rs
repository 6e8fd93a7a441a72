//! Calls that wait: for how long, at what cost, over what they come back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scene::{asked, call, changes, ran, world, write_tool};
use crate::support::mcp::{self, Piped, notification, request, stateless_call};
use crate::support::{World, count_descriptors, descendants, eventually, signal};

#[tokio::test]
async fn a_call_waits_and_runs_once_after_a_yes() {
    let world = world("wait = 25");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let arguments = json!({"what": "all"});
    let decide = async {
        let id = waiting(&world).await;
        world
            .person(&["approvals", "approve", &id, "--yes"])
            .exits(0)
    };
    let began = Instant::now();
    let ((status, answer), _) = tokio::join!(call(&crib, &token, &arguments), decide);
    assert_eq!(
        (status, &answer["output"]),
        (200, &json!("wiped all\n")),
        "{answer}"
    );
    assert!(began.elapsed() < Duration::from_secs(25));
    assert_eq!(ran(&world), ["all"]);
    let list = world
        .run(&["approvals", "list", "--all", "--json"])
        .exits(0)
        .json();
    let used = &list["approvals"][0];
    assert_eq!(used["state"], "used", "{used}");
    assert_eq!(used["decidedHow"], "terminal");
    assert!(
        used["decidedBy"].as_str().unwrap().contains("at pts/"),
        "{used}"
    );
}

/// The id of the only approval that waits, once there is one.
async fn waiting(world: &World) -> String {
    let pending = || {
        let list = world.run(&["approvals", "list", "--json"]).exits(0).json();
        list["approvals"][0]["id"].as_str().map(str::to_owned)
    };
    eventually("a call waits", async || pending().is_some()).await;
    pending().unwrap()
}

/// A program without a person gets its answer after `wait`; the same call finds its question; the yes comes from another
/// process, after the crib itself was killed.
#[tokio::test]
async fn a_headless_client_gets_its_answer_and_a_yes_survives_a_restart() {
    let world = world("wait = 1");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let began = Instant::now();
    let id = asked(&crib, &token, "all").await;
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(1) && waited < Duration::from_secs(8),
        "{waited:?}"
    );
    assert_eq!(asked(&crib, &token, "all").await, id);
    assert_ne!(asked(&crib, &token, "other").await, id);
    crib.kill();
    // Nobody serves now: the command decides by itself.
    let tail = &id[id.len() - 8..];
    let said = world
        .person(&["approvals", "approve", tail, "--yes"])
        .exits(0);
    assert!(said.stdout.contains("approved"), "{said:?}");
    let crib = world.serve_closed();
    let (status, answer) = call(&crib, &token, &json!({"what": "all"})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(ran(&world), ["all"]);
    assert_ne!(asked(&crib, &token, "all").await, id);
}

#[tokio::test]
async fn a_call_that_was_running_when_the_crib_was_killed_is_interrupted_and_not_repeated() {
    let world = world("wait = 0");
    world.write("wipe.sh", "echo \"$1\" >> ran; sleep 30");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let id = asked(&crib, &token, "all").await;
    world
        .person(&["approvals", "approve", &id, "--yes"])
        .exits(0);
    let arguments = json!({"what": "all"});
    let killed = async {
        eventually("it runs", async || ran(&world).len() == 1).await;
        signal(crib.pid(), libc::SIGKILL);
    };
    let url = format!("{}/api/tools/wipe/call", crib.url);
    let running = crib.client.post(url).bearer_auth(&token);
    let running = running.json(&json!({"arguments": arguments})).send();
    let (ended, ()) = tokio::join!(running, killed);
    assert!(ended.is_err());
    drop(crib);
    let crib = world.serve_closed();
    let shown = world
        .run(&["approvals", "show", &id, "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["state"], "interrupted", "{shown}");
    assert_ne!(asked(&crib, &token, "all").await, id);
    assert_eq!(ran(&world), ["all"]);
}

#[tokio::test]
async fn what_changed_after_the_yes_is_asked_anew() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let id = asked(&crib, &token, "all").await;
    world
        .person(&["approvals", "approve", &id, "--yes"])
        .exits(0);
    changes(&crib, &token, || {
        write_tool(&world, "sh wipe.sh {{what}} more")
    })
    .await;
    assert_ne!(asked(&crib, &token, "all").await, id);
    assert_eq!(ran(&world), Vec::<String>::new());
}

/// Many wait at the same time: no process, no descriptor beyond their connection, and others go on.
#[tokio::test]
async fn a_thousand_that_wait_cost_nothing_that_others_need() {
    let many = 1_000_u64;
    let world = world("wait = 600");
    world.write_tool(
        "free.json",
        crate::support::shell_tool("free", "echo free", json!({})),
    );
    let mut crib = world.serve_closed();
    // Whoever runs this test is an agent as soon as it connects, so nothing below it decides in a terminal.
    let person = world.token("phone", "read,call,approve");
    crib.show(Some(&person));
    let threads = || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", crib.pid()));
        tasks.unwrap().count()
    };
    assert_eq!(crib.output_of("free").await, "free");
    let before = (threads(), descendants(crib.pid()).len());
    let mut agent = Piped::greeted(world.command(&["mcp"]));
    let mut others: Vec<Piped> = Vec::new();
    // A connection takes 256 requests at the same time.
    for n in 0..many {
        if n % 250 == 0 && n > 0 {
            let next = Piped::greeted(world.command(&["mcp"]));
            others.push(std::mem::replace(&mut agent, next));
        }
        agent.send(&mcp::call(n + 10, "wipe", json!({"what": n.to_string()})));
    }
    others.push(agent);
    let deadline = Instant::now() + Duration::from_secs(180);
    let waiting = async || {
        let (_, list) = crib.get("/approvals?state=pending&limit=1000").await;
        list["count"].as_u64().unwrap()
    };
    while waiting().await < many {
        assert!(
            Instant::now() < deadline,
            "{} of {many} wait",
            waiting().await
        );
        // sleeps: how often it is looked at; a thousand questions take the store a while
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let during = (threads(), descendants(crib.pid()).len());
    assert!(during.0 <= before.0 + 16, "threads: {before:?} {during:?}");
    assert!(during.1 <= before.1, "processes: {before:?} {during:?}");
    assert!(count_descriptors(crib.pid()) < 200);
    let began = Instant::now();
    assert_eq!(crib.output_of("free").await, "free");
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(ran(&world).is_empty());
    // One of them is decided on, and only that one runs.
    let (_, list) = crib.get("/approvals?state=pending&limit=1").await;
    let id = list["approvals"][0]["id"].as_str().unwrap();
    let path = format!("/approvals/{id}");
    let (status, decided) = crib.post(&path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{decided}");
    eventually("it ran", async || ran(&world).len() == 1).await;
}

/// What the client answers to a question decides nothing, and a client that opens pages is handed the page at once.
#[tokio::test]
async fn a_client_s_answer_means_look_again() {
    let world = world("wait = 2");
    let crib = world.serve();
    for action in ["accept", "decline", "cancel"] {
        legacy(&world, action);
        stateless(&world, action);
    }
    assert!(ran(&world).is_empty());
    drop(crib);
}

fn legacy(world: &World, action: &str) {
    let mut client = Piped::start(world.command(&["mcp"]));
    let capabilities = json!({"elicitation": {"form": {}, "url": {}}});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities,
                       "clientInfo": {"name": "by-hand", "version": "1"}});
    client.ask(&request(1, "initialize", hello));
    client.send(&notification("notifications/initialized", json!({})));
    client.send(&mcp::call(2, "wipe", json!({"what": action})));
    let question = client.wait("a question", |message| {
        message["method"] == "elicitation/create"
    });
    let params = &question["params"];
    assert_eq!(params["mode"], "url", "{question}");
    assert!(
        params["url"].as_str().unwrap().contains("/approvals/"),
        "{question}"
    );
    let content = json!({"decision": "approve", "approve": true});
    let result = json!({"action": action, "content": content});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    pending(&client.answer(2));
}

fn stateless(world: &World, action: &str) {
    let mut client = Piped::start(world.command(&["mcp"]));
    let mut asks = stateless_call(1, "wipe", json!({"what": action}));
    let plain = client.ask(&asks);
    pending(&plain);
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    // A form alone is no page.
    asks["params"]["_meta"][capabilities] = json!({"elicitation": {}});
    asks["id"] = 2.into();
    pending(&client.ask(&asks));
    asks["params"]["_meta"][capabilities] = json!({"elicitation": {"url": {}}});
    asks["id"] = 3.into();
    let answered = client.ask(&asks);
    let result = &answered["result"];
    assert_eq!(result["resultType"], "input_required", "{answered}");
    let asked = &result["inputRequests"]["approval"];
    assert_eq!(asked["params"]["mode"], "url", "{answered}");
    asks["params"]["inputResponses"] =
        json!({"approval": {"action": action, "content": {"decision": "approve"}}});
    asks["params"]["requestState"] = json!("approved");
    asks["id"] = 4.into();
    let began = Instant::now();
    pending(&client.ask(&asks));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// A call through another tool is the call of that tool: a person is asked about it, and it finds the same question.
#[tokio::test]
async fn a_call_through_call_tool_asks_like_any_other() {
    let world = world("wait = 0");
    let crib = world.serve();
    let mut client = Piped::greeted(world.command(&["mcp", "--surface", "search"]));
    let inner = json!({"name": "wipe", "arguments": {"what": "all"}});
    pending(&client.ask(&mcp::call(2, "call_tool", inner.clone())));
    pending(&client.ask(&mcp::call(3, "wipe", json!({"what": "all"}))));
    let read = client.ask(&mcp::call(4, "call_tool_read", inner));
    assert!(
        read.to_string().contains("isError\":true") || read.get("error").is_some(),
        "{read}"
    );
    let (_, list) = crib.get("/approvals?state=pending").await;
    assert_eq!(list["count"], 1, "{list}");
    assert_eq!(list["approvals"][0]["tool"], "wipe");
    assert!(ran(&world).is_empty());
}

fn pending(answered: &Value) {
    let result = &answered["result"];
    assert_eq!(result["isError"], true, "{answered}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("waits for a person's approval"), "{text}");
    assert!(result.get("structuredContent").is_none(), "{answered}");
}
