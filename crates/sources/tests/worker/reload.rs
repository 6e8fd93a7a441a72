//! What becomes of workers when their files change.

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::world::{World, eventually};

/// Tells which process and which version answers; `wait` holds the call.
fn versioned(version: &str) -> String {
    format!(
        r#"
def execute(id, params):
    if params["input"].get("wait"):
        mark("waiting")
        wait_for("go")
    answer(id, "{version} " + ME)"#
    )
}

#[tokio::test]
async fn the_same_content_keeps_its_workers() {
    let world = World::new();
    let body = versioned("one");
    world.python("same", &body);
    world.open().await;
    let first = world.output("same", json!({})).await;
    world.reload().await;
    world.python("same", &body);
    world.reload().await;
    assert_eq!(world.output("same", json!({})).await, first);
    world.events();
    world.reload().await;
    assert!(
        world
            .events()
            .iter()
            .all(|event| !event.starts_with("worker."))
    );
}

#[tokio::test]
async fn changed_content_drains_the_old_workers() {
    let world = World::new();
    world.python("tool", &versioned("one"));
    world.open().await;
    let old = world.output("tool", json!({})).await;
    let call = world.begin("tool", json!({"wait": true}));
    world.seen("waiting").await;
    world.python("tool", &versioned("two"));
    world.reload().await;
    // New calls go to the new version at once, while the old one still works.
    let new = world.output("tool", json!({})).await;
    assert!(new.starts_with("two "), "{new}");
    assert!(!call.is_finished());
    world.events();
    world.give("go");
    assert_eq!(call.await.unwrap().unwrap().output, old);
    world.event("worker.exit tool was stopped").await;
    assert_eq!(world.output("tool", json!({})).await, new);
    let left = world.processes().len();
    assert!(
        left <= 3,
        "one launcher, its first process, one tool; not {left}"
    );
}

#[tokio::test]
async fn a_removed_file_ends_its_workers() {
    let world = World::new();
    let path = world.python("tool", &versioned("one"));
    world.open().await;
    world.output("tool", json!({})).await;
    let call = world.begin("tool", json!({"wait": true}));
    world.seen("waiting").await;
    std::fs::remove_file(path).unwrap();
    eventually("the tool is gone", || world.names().is_empty()).await;
    assert_eq!(
        world.refused("tool", json!({})).await.code,
        ErrorCode::UnknownTool
    );
    assert!(!world.processes().is_empty(), "a call still runs");
    world.give("go");
    assert!(call.await.unwrap().is_ok());
    world.nothing_runs().await;
}

#[tokio::test]
async fn a_change_of_how_it_is_started_is_a_change() {
    let world = World::new();
    let body = "def execute(id, params): answer(id, os.environ.get('WORD', 'none'))";
    world.folder("tool", json!({}), body);
    world.open().await;
    assert_eq!(world.output("tool", json!({})).await, "none");
    world.manifest("tool", json!({"env": {"WORD": "hey"}}));
    world.reload().await;
    assert_eq!(world.output("tool", json!({})).await, "hey");
    world.event("worker.exit tool was stopped").await;
}

#[tokio::test]
async fn changes_are_followed_without_being_asked() {
    let world = World::new();
    world.python("tool", &versioned("one"));
    world.open().await;
    assert!(world.output("tool", json!({})).await.starts_with("one "));
    world.python("tool", &versioned("two"));
    let deadline = std::time::Instant::now() + crate::world::PATIENCE;
    while !world.output("tool", json!({})).await.starts_with("two ") {
        assert!(std::time::Instant::now() < deadline);
    }
    // Until a changed program has said what it is, the old one stands: no call ever finds nothing.
}
