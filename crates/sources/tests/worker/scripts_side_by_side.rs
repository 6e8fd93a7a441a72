//! Calls of one script's tools, side by side in one process: plain functions as well as async ones.

use serde_json::json;

use crate::world::{World, eventually};

/// Whoever calls `meet` waits until fifteen others are there.
const MEETING: &str = r#"
import os, threading
from toolcrib import Context, tool

barrier = threading.Barrier(16)
ME = os.urandom(8).hex()

@tool
def meet(n: int) -> str:
    """Waits until sixteen are there."""
    print("call", n, end=" ")
    barrier.wait()
    print("met")
    return f"{n} {ME}"

@tool
def hang(ctx: Context) -> str:
    """Never ends."""
    ctx.log("info", "hanging")
    threading.Event().wait()
    return "never"

@tool
def wait(path: str, ctx: Context) -> str:
    """Waits until a file is there."""
    ctx.log("info", "waiting")
    while not os.path.exists(path): threading.Event().wait(0.01)
    return ME

@tool
def pid() -> str:
    """Says which process it is."""
    return ME
"#;

async fn meeting() -> World {
    let world = World::scripts(|_| {});
    world.write("file.py", MEETING);
    world.open().await;
    world
}

#[tokio::test]
async fn plain_functions_run_side_by_side_in_one_process() {
    let world = meeting().await;
    let pid = world.output("pid", json!({})).await;
    let calls: Vec<_> = (0..32)
        .map(|n| world.begin("meet", json!({"n": n})))
        .collect();
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().output, format!("{n} {pid}"));
    }
    eventually("each call printed a line of its own", || {
        let log = world.said.text();
        (0..32).all(|n| log.lines().any(|line| line == format!("call {n} met")))
    })
    .await;
}

#[tokio::test]
async fn functions_that_hang_hold_up_nobody() {
    let world = meeting().await;
    let pid = world.output("pid", json!({})).await;
    let hanging: Vec<_> = (0..8).map(|_| world.begin("hang", json!({}))).collect();
    eventually("all of them hang", || {
        world.said.text().matches("hanging").count() == 8
    })
    .await;
    for _ in 0..20 {
        assert_eq!(world.output("pid", json!({})).await, pid);
    }
    for call in hanging {
        call.abort();
    }
    assert!(!world.output("pid", json!({})).await.is_empty());
}

#[tokio::test]
async fn a_cancelled_call_that_is_blocked_ends_its_process_after_the_others() {
    let world = meeting().await;
    let old = world.output("pid", json!({})).await;
    let go = world.root.join("home/go");
    let path = json!({"path": go});
    // The first has the main thread, where it can be interrupted; the second can't.
    let kept = world.begin("wait", path);
    eventually("the first waits", || world.said.text().contains("waiting")).await;
    let blocked = world.begin("hang", json!({}));
    eventually("the second hangs", || world.said.text().contains("hanging")).await;
    blocked.abort();
    assert!(blocked.await.unwrap_err().is_cancelled());
    let new = world.output("pid", json!({})).await;
    assert_ne!(
        new, old,
        "a call right after the cancel gets another process"
    );
    std::fs::write(&go, "").unwrap();
    assert_eq!(kept.await.unwrap().unwrap().output, old);
    // A launcher, its first process and the tool.
    eventually("the old process is gone", || world.processes().len() <= 3).await;
    assert_eq!(world.output("pid", json!({})).await, new);
}

#[tokio::test]
async fn a_tool_that_crashes_leaves_its_neighbours_alone() {
    let world = World::scripts(|_| {});
    let text = r#"
import os
from toolcrib import tool

ME = os.urandom(8).hex()

@tool
def crash() -> str:
    """Ends its process."""
    os._exit(3)

@tool
def pid() -> str:
    """Says which process it is."""
    return ME
"#;
    world.write("file.py", text);
    world.open().await;
    world.output("pid", json!({})).await;
    let mut resting = 0;
    let mut pids = Vec::new();
    for _ in 0..6 {
        let error = world.refused("crash", json!({})).await;
        resting += usize::from(error.message.contains("failed several times in a row"));
        let calls: Vec<_> = (0..20).map(|_| world.begin("pid", json!({}))).collect();
        for call in calls {
            pids.push(call.await.unwrap().unwrap().output);
        }
    }
    assert!(
        resting > 0,
        "the starts of the one that crashes are spaced out"
    );
    // The first crash took the process that they shared, no later one did.
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    let status = |name: &str| {
        let view = world.crib.owners_view();
        let standing = view.get(name).unwrap().run.standing();
        (standing.failed, standing.health.as_str())
    };
    assert_eq!(status("crash"), (true, "unhealthy"));
    assert!(!status("pid").0, "{:?}", status("pid"));
}

#[tokio::test]
async fn the_next_call_after_a_crash_starts_it_anew() {
    let world = World::scripts(|_| {});
    let text = r#"
import os
from toolcrib import tool

ME = os.urandom(8).hex()

@tool
def odd(crash: bool) -> str:
    """Ends its process, or answers."""
    if crash: os._exit(3)
    return ME
"#;
    world.write("file.py", text);
    world.open().await;
    for _ in 0..5 {
        world.refused("odd", json!({"crash": true})).await;
        world.output("odd", json!({"crash": false})).await;
    }
    let pid = world.output("odd", json!({"crash": false})).await;
    assert_eq!(world.output("odd", json!({"crash": false})).await, pid);
}
