//! The graceful end: calls in flight have their grace, then SIGTERM, then SIGKILL.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_sources::worker::Limits;

use crate::world::{PATIENCE, World, limits};

const WORKING: &str = r#"
def terminated(*_):
    mark("terminated")
    if not marked("stubborn"): os._exit(0)
signal.signal(signal.SIGTERM, terminated)
def execute(id, params):
    mark("working")
    while not marked("go"): time.sleep(0.005)
    answer(id, "finished")"#;

#[tokio::test]
async fn a_call_in_flight_may_finish_and_waiting_and_new_ones_are_turned_away() {
    let world = World::alone(limits());
    world.folder("working", json!({}), WORKING);
    world.open().await;
    let call = world.begin("working", json!({}));
    world.seen("working").await;
    let waiting = world.begin("working", json!({}));
    tokio::task::yield_now().await;
    let place = world.place.clone();
    let closing = tokio::spawn(async move { place.workers.shutdown(PATIENCE).await });
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert_eq!(
        world.refused("working", json!({})).await.code,
        ErrorCode::Unavailable
    );
    assert!(!call.is_finished() && !closing.is_finished());
    assert!(!world.sign("terminated").exists());
    world.give("go");
    assert_eq!(call.await.unwrap().unwrap().output, "finished");
    closing.await.unwrap();
    world.nothing_runs().await;
    world.end().await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_ended_by_sigterm() {
    let world = World::alone(limits());
    world.folder("working", json!({}), WORKING);
    world.open().await;
    let call = world.begin("working", json!({}));
    world.seen("working").await;
    world
        .place
        .workers
        .shutdown(Duration::from_millis(50))
        .await;
    assert!(world.sign("terminated").exists());
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::Crashed);
    assert!(error.message.contains("was stopped"), "{error:?}");
    world.end().await;
}

#[tokio::test]
async fn and_by_sigkill_where_that_does_not_help() {
    let world = World::alone(limits());
    world.give("stubborn");
    world.folder("working", json!({}), WORKING);
    world.open().await;
    let call = world.begin("working", json!({}));
    world.seen("working").await;
    world
        .place
        .workers
        .shutdown(Duration::from_millis(50))
        .await;
    assert!(world.sign("terminated").exists());
    assert_eq!(call.await.unwrap().unwrap_err().code, ErrorCode::Crashed);
    world.nothing_runs().await;
    world.end().await;
}

/// A program that is still starting has nothing to finish.
#[tokio::test]
async fn a_start_under_way_does_not_outlive_the_shutdown() {
    let world = World::alone(Limits {
        handshake: Duration::from_secs(600),
        ..limits()
    });
    let body = "def initialize(id, params):\n    mark('starting')\n    time.sleep(1000)";
    world.folder("slow", json!({}), body);
    world.open().await;
    let call = world.begin("slow", json!({}));
    world.seen("starting").await;
    world
        .place
        .workers
        .shutdown(Duration::from_millis(50))
        .await;
    let ended = tokio::time::timeout(PATIENCE, call).await;
    let error = ended.unwrap().unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "{error:?}");
    world.nothing_runs().await;
    world.end().await;
}

/// Nobody says goodbye: the crib is simply dropped, as when a command has printed its answer.
#[test]
fn a_crib_that_is_dropped_takes_its_workers_along() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let world = World::alone(limits());
    first.block_on(async {
        world.folder("working", json!({}), WORKING);
        world.open().await;
        let call = world.begin("working", json!({}));
        world.seen("working").await;
        drop(call);
    });
    drop(first);
    runtime().block_on(async {
        world.nothing_runs().await;
        world.end().await;
    });
}
