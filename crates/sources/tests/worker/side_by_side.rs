//! Version 1.1: several tools in one process, calls side by side, and cancelling.

use serde_json::json;

use crate::program::python_1_1;
use crate::world::{World, eventually};

#[tokio::test]
async fn several_tools_share_one_process() {
    let world = World::new();
    let body = r#"
HELLO = {"protocolVersion": "1.1", "version": "2.0.0", "tools": [
    {"name": name, "description": "One of two", "inputSchema": {"type": "object"}} for name in ("left", "right")] + [
    {"name": "bad name", "description": "No tool", "inputSchema": {"type": "object"}}, 7]}
def run(id, params): answer(id, params["tool"] + " " + ME)"#;
    world.write("pair", python_1_1("pair", 1, body));
    world.open().await;
    assert_eq!(world.names(), ["left", "right"]);
    // A bad tool does not hide its neighbours.
    assert_eq!(world.crib.owners_view().problems().len(), 2);
    assert_eq!(
        world
            .crib
            .owners_view()
            .get("left")
            .unwrap()
            .spec
            .version
            .as_deref(),
        Some("2.0.0")
    );
    let left = world.output("left", json!({})).await;
    let right = world.output("right", json!({})).await;
    let (left, right) = (
        left.strip_prefix("left ").unwrap(),
        right.strip_prefix("right ").unwrap(),
    );
    assert_eq!(left, right, "one process");
}

#[tokio::test]
async fn names_of_one_program_are_unique_and_free() {
    let world = World::new();
    let body = r#"
HELLO = {"protocolVersion": "1.1", "tools": [
    {"name": name, "description": "Number " + str(n), "inputSchema": {"type": "object"}}
    for n, name in enumerate(["twin", "twin", "reload", "git-status", "free"])]}"#;
    world.write("pair", python_1_1("pair", 1, body));
    world.open().await;
    assert_eq!(world.names(), ["free", "twin"]);
    let view = world.crib.owners_view();
    assert_eq!(view.get("twin").unwrap().spec.description, "Number 0");
    let problems = view.problems();
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[tokio::test]
async fn calls_overlap_in_one_worker_up_to_its_concurrency() {
    let world = World::new();
    let body = r#"
def run(id, params):
    n = params["input"]["n"]
    mark("running", str(n))
    wait_for("go")
    answer(id, ME)"#;
    world.write("wide", python_1_1("wide", 4, body));
    world.open().await;
    let calls: Vec<_> = (0..6)
        .map(|n| world.begin("wide", json!({"n": n})))
        .collect();
    eventually("four calls run at once", || {
        world.signs("running").len() == 4
    })
    .await;
    world.give("go");
    let mut pids = Vec::new();
    for call in calls {
        pids.push(call.await.unwrap().unwrap().output);
    }
    assert_eq!(world.signs("running").len(), 6);
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[tokio::test]
async fn a_1_0_worker_gets_one_call_at_a_time() {
    let world = World::new();
    world.python(
        "narrow",
        r#"
HELLO["concurrency"] = 8
def execute(id, params):
    mark("running", "in")
    time.sleep(0.01)
    answer(id, "done")
    mark("running", "out")
    time.sleep(0.01)"#,
    );
    world.open().await;
    let calls: Vec<_> = (0..5).map(|_| world.begin("narrow", json!({}))).collect();
    for call in calls {
        call.await.unwrap().unwrap();
    }
    eventually("all is written", || world.signs("running").len() == 10).await;
    for pair in world.signs("running").chunks(2) {
        assert_eq!(pair, ["in", "out"]);
    }
}

/// Runs until it is cancelled or told to go; honours `cancel` unless it is deaf.
const CANCELLABLE: &str = r#"
CANCELLED = set()
def notice(method, params):
    mark("notices", method + " " + params["id"])
    if not marked("deaf"): CANCELLED.add(params["id"])
def run(id, params):
    name = params["input"].get("name")
    if name is None: return answer(id, ME)
    mark(name)
    while id not in CANCELLED and not marked("go-" + name): time.sleep(0.005)
    answer(id, name + " " + ME)"#;

#[tokio::test]
async fn a_cancel_that_is_honoured_keeps_the_worker() {
    let world = World::new();
    world.write("kind", python_1_1("kind", 1, CANCELLABLE));
    world.open().await;
    let pid = world.output("kind", json!({})).await;
    let call = world.begin("kind", json!({"name": "long"}));
    world.seen("long").await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    assert_eq!(
        world.output("kind", json!({})).await,
        pid,
        "the same process"
    );
    assert_eq!(world.signs("notices").len(), 1);
    assert!(world.signs("notices")[0].starts_with("cancel "));
    world.event("tool.failed kind cancelled").await;
}

#[tokio::test]
async fn a_cancel_that_is_ignored_ends_the_worker() {
    let world = World::new();
    world.give("deaf");
    world.write("deaf", python_1_1("deaf", 1, CANCELLABLE));
    world.open().await;
    let pid = world.output("deaf", json!({})).await;
    let call = world.begin("deaf", json!({"name": "long"}));
    world.seen("long").await;
    call.abort();
    world.nothing_runs().await;
    assert_eq!(world.signs("notices").len(), 1);
    assert_ne!(world.output("deaf", json!({})).await, pid);
}

#[tokio::test]
async fn the_other_call_of_a_worker_that_ignores_cancel_still_finishes() {
    let world = World::new();
    world.give("deaf");
    world.write("deaf", python_1_1("deaf", 2, CANCELLABLE));
    world.open().await;
    let pid = world.output("deaf", json!({})).await;
    let given_up = world.begin("deaf", json!({"name": "one"}));
    let kept = world.begin("deaf", json!({"name": "two"}));
    world.seen("one").await;
    world.seen("two").await;
    given_up.abort();
    // Once its grace is over it takes no new calls; another worker does.
    let mut other = pid.clone();
    let deadline = std::time::Instant::now() + crate::world::PATIENCE;
    while other == pid {
        assert!(std::time::Instant::now() < deadline);
        other = match tokio::time::timeout(crate::world::PATIENCE, world.call("deaf", json!({})))
            .await
        {
            Ok(outcome) => outcome.unwrap().output,
            Err(_) => panic!("the lane of a worker that goes is not free"),
        };
    }
    world.give("go-two");
    assert_eq!(kept.await.unwrap().unwrap().output, format!("two {pid}"));
    world.event("worker.exit deaf was stopped").await;
    assert_eq!(world.output("deaf", json!({})).await, other);
}
