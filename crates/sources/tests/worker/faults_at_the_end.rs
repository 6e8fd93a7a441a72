//! Workers that do not want to go, and what they leave behind.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_sources::worker::Limits;

use crate::world::{World, limits};

const STUBBORN: &str = r#"
def refuse(*_): mark("refused")
signal.signal(signal.SIGTERM, refuse)
def end():
    while True: time.sleep(0.01)"#;

#[tokio::test]
async fn ignores_sigterm_when_idle() {
    let world = World::alone(Limits {
        idle: Duration::from_millis(100),
        ..limits()
    });
    world.python("stubborn", STUBBORN);
    world.open().await;
    assert_eq!(world.output("stubborn", json!({})).await, "done");
    world.seen("refused").await;
    world.nothing_runs().await;
    let events = world.event("worker.exit").await;
    assert!(
        events.contains(&"worker.exit stubborn was stopped".to_owned()),
        "{events:?}"
    );
    assert_eq!(world.output("stubborn", json!({})).await, "done");
    world.end().await;
}

#[tokio::test]
async fn ignores_sigterm_at_shutdown() {
    let world = World::alone(limits());
    world.python("stubborn", STUBBORN);
    world.open().await;
    assert_eq!(world.output("stubborn", json!({})).await, "done");
    world.place.workers.shutdown(Duration::ZERO).await;
    assert!(world.processes().is_empty(), "shutdown waits for the end");
    assert!(world.sign("refused").exists());
    let error = world.refused("stubborn", json!({})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.unreached && error.message.contains("shutting down"));
    world.end().await;
}

/// The seed's way out: stdin ends, and who ends with it needs no signal.
#[tokio::test]
async fn the_end_of_stdin_is_an_end() {
    let world = World::alone(Limits {
        end_grace: Duration::from_secs(20),
        ..limits()
    });
    world.python(
        "orderly",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ndef end(): mark('ended')",
    );
    world.open().await;
    assert_eq!(world.output("orderly", json!({})).await, "done");
    world.place.workers.shutdown(Duration::ZERO).await;
    world.seen("ended").await;
    world.end().await;
}

#[tokio::test]
async fn time_to_end_is_not_cut_short_by_a_closed_stdout() {
    let world = World::alone(Limits {
        end_grace: Duration::from_secs(20),
        ..limits()
    });
    world.python(
        "tidy",
        r#"
def tidy(*_):
    os.close(1)
    time.sleep(0.6)
    mark("tidied")
    os._exit(0)
signal.signal(signal.SIGTERM, tidy)
def end():
    while True: time.sleep(0.01)"#,
    );
    world.open().await;
    assert_eq!(world.output("tidy", json!({})).await, "done");
    world.place.workers.shutdown(Duration::ZERO).await;
    assert!(world.sign("tidied").exists());
    world.end().await;
}

#[tokio::test]
async fn forks_children_that_hold_the_pipes_and_exits() {
    let world = World::alone(limits());
    world.python(
        "parent",
        r#"
def execute(id, params):
    for n in range(3):
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True: time.sleep(1)
    if params["input"].get("answer"): answer(id, "left three behind")
    sys.exit(5)"#,
    );
    world.open().await;
    let error = world.refused("parent", json!({})).await;
    assert_eq!(error.code, ErrorCode::Crashed);
    assert!(error.message.contains("exit code 5"), "{error:?}");
    world.nothing_runs().await;
    // An answer counts, whatever its program does afterwards.
    let output = world.output("parent", json!({"answer": true})).await;
    assert_eq!(output, "left three behind");
    world.nothing_runs().await;
    world.end().await;
}

#[tokio::test]
async fn double_forks_a_daemon() {
    let world = World::alone(limits());
    world.python(
        "daemon",
        r#"
def execute(id, params):
    if os.fork() == 0:
        try: os.setsid()
        except OSError: pass
        if os.fork() == 0:
            for descriptor in range(3): os.close(descriptor)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            mark("daemon")
            while True: time.sleep(1)
        os._exit(0)
    wait_for("daemon")
    answer(id, "a daemon runs")"#,
    );
    world.open().await;
    assert_eq!(world.output("daemon", json!({})).await, "a daemon runs");
    assert!(!world.processes().is_empty());
    std::fs::remove_file(world.tools().join("daemon")).unwrap();
    world.reload().await;
    world.nothing_runs().await;
    world.end().await;
}
