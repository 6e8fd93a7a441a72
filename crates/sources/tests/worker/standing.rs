//! Status and health: what workers bring upon their tool, and what people read about it.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::{ErrorCode, Health};
use toolcrib_sources::worker::Limits;

use crate::program::python_1_1;
use crate::world::{World, eventually, limits};

const FRAIL: &str = r#"
def execute(id, params):
    if params["input"].get("die"): sys.exit("I am " + "x" * 10)
    answer(id, "fine")"#;

#[tokio::test]
async fn a_crash_is_an_error_until_the_next_answer() {
    let world = World::new();
    world.folder("frail", json!({}), FRAIL);
    world.open().await;
    assert_eq!(world.standing("frail").health, Health::Unknown);
    world.output("frail", json!({})).await;
    assert_eq!(
        world.events(),
        [
            "tool.start frail",
            "worker.spawn frail",
            "health_changed frail healthy",
            "tool.complete frail"
        ]
    );
    assert_eq!(
        world.refused("frail", json!({"die": true})).await.code,
        ErrorCode::Crashed
    );
    let standing = world.standing("frail");
    assert!(standing.failed && standing.message.unwrap().contains("I am xxx"));
    assert_eq!(
        world.events(),
        [
            "tool.start frail",
            "worker.exit frail ended with exit code 1",
            "status_changed frail error",
            "health_changed frail unhealthy",
            "tool.failed frail crashed"
        ]
    );
    world.output("frail", json!({})).await;
    let standing = world.standing("frail");
    assert!(!standing.failed && standing.health == Health::Healthy && standing.message.is_none());
    assert_eq!(
        world.events(),
        [
            "tool.start frail",
            "worker.spawn frail",
            "status_changed frail active",
            "health_changed frail healthy",
            "tool.complete frail"
        ]
    );
}

#[tokio::test]
async fn status_error_comes_after_max_retries() {
    let world = World::new();
    world.folder("frail", json!({"maxRetries": 2, "retryDelayMs": 0}), FRAIL);
    world.open().await;
    for failed in [false, false, true, true] {
        assert_eq!(
            world.refused("frail", json!({"die": true})).await.code,
            ErrorCode::Crashed
        );
        assert_eq!(world.standing("frail").failed, failed);
    }
    world.output("frail", json!({})).await;
    assert!(!world.standing("frail").failed);
}

/// One death is one failure, however many calls it ends.
#[tokio::test]
async fn a_death_under_several_calls_counts_once() {
    let world = World::new();
    let body = r#"
def run(id, params):
    mark("running")
    wait_for("die")
    os._exit(9)"#;
    world.write("wide/program.py", python_1_1("wide", 4, body));
    world.manifest("wide", json!({"maxRetries": 1}));
    world.open().await;
    let calls: Vec<_> = (0..4).map(|_| world.begin("wide", json!({}))).collect();
    eventually("four calls run", || world.signs("running").len() == 4).await;
    world.give("die");
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code, ErrorCode::Crashed);
    }
    let standing = world.standing("wide");
    assert!(
        !standing.failed && standing.health == Health::Unhealthy,
        "{standing:?}"
    );
}

#[tokio::test]
async fn starts_that_are_no_use_are_spaced_out() {
    let world = World::new();
    world.folder(
        "broken",
        json!({"retryDelayMs": 60_000}),
        "mark('starts')\nif not marked('mended'): sys.exit('out of order')",
    );
    world.open().await;
    for _ in 0..5 {
        let error = world.refused("broken", json!({})).await;
        assert_eq!(error.code, ErrorCode::Unavailable);
        assert!(error.message.contains("out of order"), "{error:?}");
    }
    assert_eq!(world.signs("starts").len(), 2, "the others fail at once");
    // A save is a new chance.
    world.give("mended");
    world.folder("broken", json!({"retryDelayMs": 60_000}), "");
    world.reload().await;
    assert_eq!(world.output("broken", json!({})).await, "done");
}

#[tokio::test]
async fn a_check_tells_what_the_worker_says() {
    let world = World::with(Limits {
        health: Duration::from_millis(400),
        ..limits()
    });
    let healths = [
        (
            "well",
            "answer(id, {'status': 'healthy'})",
            Health::Healthy,
            None,
        ),
        (
            "so-so",
            "answer(id, {'status': 'degraded', 'message': 'slow disk'})",
            Health::Degraded,
            Some("slow disk"),
        ),
        (
            "ill",
            "answer(id, {'status': 'unhealthy'})",
            Health::Unhealthy,
            None,
        ),
        (
            "odd",
            "answer(id, 'fine')",
            Health::Unhealthy,
            Some("no known `status`"),
        ),
        (
            "unable",
            "fail(id, -32601, 'what?')",
            Health::Unhealthy,
            Some("-32601: what?"),
        ),
        ("mute", "pass", Health::Unhealthy, Some("within 400 ms")),
        (
            "dying",
            "sys.exit('aargh')",
            Health::Unhealthy,
            Some("aargh"),
        ),
    ];
    for (name, answer, _, _) in healths {
        world.folder(
            name,
            json!({}),
            &format!("def health(id, params): {answer}"),
        );
    }
    world.folder("absent", json!({"command": "./nowhere"}), "");
    world.open().await;
    for (name, _, health, message) in healths {
        let standing = world.check(name).await;
        assert_eq!(standing.health, health, "{name}: {standing:?}");
        assert!(standing.checked_ms.is_some(), "{name}");
        let said = standing.message.as_deref();
        match message {
            Some(part) => assert!(
                said.is_some_and(|said| said.contains(part)),
                "{name}: {said:?}"
            ),
            None => assert_eq!(said, None, "{name}"),
        }
        // Whatever it says of its health, the tool can be called.
        assert_eq!(world.output(name, json!({})).await, "done", "{name}");
    }
    let standing = world.check("absent").await;
    assert_eq!(standing.health, Health::Unhealthy);
    assert!(standing.message.unwrap().contains("not found"));
}

#[tokio::test]
async fn running_workers_are_asked_now_and_then_and_told_of() {
    let world = World::with(Limits {
        health_every: Duration::from_millis(50),
        ..limits()
    });
    world.folder(
        "moody",
        json!({}),
        "def health(id, params):\n    mark('asked')\n    answer(id, {'status': 'degraded' if marked('low') else 'healthy'})",
    );
    world.folder("never-called", json!({}), "mark('started')");
    world.open().await;
    world.output("moody", json!({})).await;
    world.event("health_changed moody healthy").await;
    world.give("low");
    world.event("health_changed moody degraded").await;
    eventually("it is asked again", || world.signs("asked").len() >= 2).await;
    assert!(
        !world.sign("started").exists(),
        "only running workers are asked"
    );
}

#[tokio::test]
async fn an_idle_worker_that_does_not_answer_health_is_replaced() {
    let world = World::with(Limits {
        health: Duration::from_millis(200),
        health_every: Duration::from_millis(50),
        ..limits()
    });
    world.folder(
        "stuck",
        json!({}),
        "def health(id, params): time.sleep(1000)\ndef execute(id, params): answer(id, ME)",
    );
    world.open().await;
    let first = world.output("stuck", json!({})).await;
    world.event("health_changed stuck unhealthy").await;
    world.nothing_runs().await;
    assert_ne!(world.output("stuck", json!({})).await, first);
}

/// A worker that works on a call when the time for its answer is up is not judged, and not ended.
#[tokio::test]
async fn a_busy_worker_is_not_judged_by_its_silence() {
    let world = World::with(Limits {
        health: Duration::from_millis(200),
        health_every: Duration::from_millis(50),
        ..limits()
    });
    world.folder(
        "busy",
        json!({}),
        r#"
def health(id, params):
    if not marked("asked"):
        mark("asked")
        wait_for("go")
    answer(id, {"status": "healthy"})
def execute(id, params): answer(id, ME)"#,
    );
    world.folder(
        "mute",
        json!({}),
        "def health(id, params): time.sleep(1000)\ndef execute(id, params): answer(id, ME)",
    );
    world.open().await;
    let first = world.output("busy", json!({})).await;
    world.seen("asked").await;
    let call = world.begin("busy", json!({}));
    // One that is asked later and does nothing is judged meanwhile.
    world.output("mute", json!({})).await;
    world.event("health_changed mute unhealthy").await;
    world.give("go");
    assert_eq!(call.await.unwrap().unwrap().output, first);
    eventually("it is well", || {
        world.standing("busy").health == Health::Healthy
    })
    .await;
    let told = world.events();
    assert!(
        !told.contains(&"health_changed busy unhealthy".to_owned()),
        "{told:?}"
    );
}
