//! The graceful end: calls in flight have their grace, then SIGTERM, then SIGKILL.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::world::{PATIENCE, World, eventually, limits};

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

/// Nobody says goodbye: the crib is simply dropped, as when a command has printed its answer.
#[tokio::test]
async fn a_crib_that_is_dropped_takes_its_workers_along() {
    let world = World::alone(limits());
    world.folder("working", json!({}), "");
    world.open().await;
    assert_eq!(world.output("working", json!({})).await, "done");
    world.crib.apply(Vec::new());
    std::fs::remove_dir_all(world.tools().join("working")).unwrap();
    eventually("it is gone", || world.names().is_empty()).await;
    world.nothing_runs().await;
    world.end().await;
}
