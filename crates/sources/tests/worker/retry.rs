//! Which calls are repeated after a crash, and how often.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::world::World;

/// Dies under every call until there were enough of them.
const DYING: &str = r#"
def execute(id, params):
    mark("calls")
    with open(os.path.join(SIGNS, "calls")) as file: calls = len(file.readlines())
    if calls <= params["input"]["deaths"]: os._exit(9)
    answer(id, str(calls))"#;

#[tokio::test]
async fn a_repeatable_tool_is_repeated_at_most_max_retries_times() {
    for hint in ["readOnlyHint", "idempotentHint"] {
        let world = World::new();
        let fields = json!({"maxRetries": 2, "retryDelayMs": 1, "annotations": {hint: true}});
        world.folder("dying", fields, DYING);
        world.open().await;
        assert_eq!(world.output("dying", json!({"deaths": 2})).await, "3");
        std::fs::remove_file(world.sign("calls")).unwrap();
        let error = world.refused("dying", json!({"deaths": 1000})).await;
        assert_eq!(error.code, ErrorCode::Crashed);
        assert_eq!(
            world.signs("calls").len(),
            3,
            "the call and two repetitions"
        );
        let started = world
            .events()
            .into_iter()
            .filter(|event| event == "tool.start dying");
        assert_eq!(started.count(), 2, "a repetition is no call of its own");
    }
}

#[tokio::test]
async fn without_retries_or_without_a_hint_nothing_is_repeated() {
    for fields in [
        json!({"annotations": {"readOnlyHint": true}}),
        json!({"maxRetries": 5, "retryDelayMs": 1}),
        json!({"maxRetries": 5, "retryDelayMs": 1, "annotations": {"readOnlyHint": false}}),
    ] {
        let world = World::new();
        world.folder("dying", fields, DYING);
        world.open().await;
        let error = world.refused("dying", json!({"deaths": 1})).await;
        assert_eq!(error.code, ErrorCode::Crashed);
        assert_eq!(world.signs("calls").len(), 1);
    }
}

#[tokio::test]
async fn a_call_that_never_reached_the_tool_is_repeated_whatever_the_tool_is() {
    let world = World::new();
    let body = r#"
mark("starts")
with open(os.path.join(SIGNS, "starts")) as file: starts = len(file.readlines())
if starts <= 2: sys.exit("not yet")
def execute(id, params):
    mark("calls")
    answer(id, str(starts))"#;
    world.folder(
        "slow-starter",
        json!({"maxRetries": 2, "retryDelayMs": 1}),
        body,
    );
    world.open().await;
    assert_eq!(world.output("slow-starter", json!({})).await, "3");
    assert_eq!(world.signs("calls").len(), 1);
}

/// The worker was killed while nobody looked. Whether or not that was noticed yet, the next call finds another.
#[tokio::test]
async fn a_worker_that_died_between_calls_costs_no_call() {
    let world = World::new();
    world.folder(
        "killed",
        json!({}),
        "def execute(id, params): answer(id, ME)",
    );
    world.open().await;
    let first = world.output("killed", json!({})).await;
    let pids = world.processes();
    signal(*pids.iter().max().unwrap());
    world.event("worker.exit").await;
    assert_ne!(world.output("killed", json!({})).await, first);
    assert!(!world.standing("killed").failed);
}

#[expect(unsafe_code, reason = "a signal to a process of this test's own")]
fn signal(pid: u32) {
    // SAFETY: no memory is touched; the process is a tool of this test's.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
}

#[tokio::test]
async fn repetitions_share_the_deadline() {
    let world = World::new();
    let fields = json!({"maxRetries": 9, "retryDelayMs": 60_000, "timeoutMs": 20_000, "annotations": {"readOnlyHint": true}});
    world.folder("dying", fields, DYING);
    world.open().await;
    let begun = Instant::now();
    // The pause would end after the deadline: the error is given at once.
    let error = world.refused("dying", json!({"deaths": 1000})).await;
    assert_eq!(error.code, ErrorCode::Crashed);
    assert!(begun.elapsed() < Duration::from_secs(15));
    assert_eq!(world.signs("calls").len(), 1);
}
