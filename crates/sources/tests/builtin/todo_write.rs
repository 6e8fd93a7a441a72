//! `todo-write`: a list per thread, and nobody reads another's.

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::World;

#[tokio::test]
async fn a_list_takes_the_place_of_the_one_before() {
    let world = World::new();
    let todos = json!([
        {"content": "one", "status": "completed"},
        {"content": "two", "status": "in_progress", "priority": "high"},
        {"content": "three", "status": "pending"},
    ]);
    let first = world
        .call("todo-write", json!({"todos": todos}))
        .await
        .unwrap();
    assert_eq!(first.output, "[x] one\n[>] two (high)\n[ ] three");
    assert_eq!(first.title.as_deref(), Some("2 to do, 1 done"));
    assert_eq!(
        (&first.metadata["todos"], &first.metadata["before"]),
        (&todos, &json!([]))
    );
    let other = world
        .call_as("somebody", "todo-write", json!({"todos": []}))
        .await
        .unwrap();
    assert_eq!(
        (other.output.as_str(), &other.metadata["before"]),
        ("The list is empty", &json!([]))
    );
    let second = world
        .call("todo-write", json!({"todos": []}))
        .await
        .unwrap();
    assert_eq!(second.metadata["before"], todos);
}

#[tokio::test]
async fn a_list_has_its_limits() {
    let world = World::new();
    let item = |content: &str| json!({"content": content, "status": "pending"});
    for bad in [
        json!({}),
        json!({"todos": "one"}),
        json!({"todos": [{"content": "a"}]}),
        json!({"todos": [{"content": "a", "status": "later"}]}),
        json!({"todos": [{"content": "", "status": "pending"}]}),
        json!({"todos": [item(&"x".repeat(501))]}),
        json!({"todos": vec![item("x"); 101]}),
    ] {
        let error = world.call("todo-write", bad).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{error}");
    }
}
