//! `read-output`: pages that join to the whole, and ids that are nobody else's.

use serde_json::{Value, json};
use toolcrib_core::ErrorCode;

use crate::support::World;

/// Keeps a text, as the chain does with one that is too long, and gives its id.
async fn kept(world: &World, owner: &str, text: &str) -> String {
    world
        .crib
        .outputs()
        .keep(owner, text.as_bytes())
        .await
        .unwrap()
        .id
        .to_string()
}

/// Reads page after page and joins them without their last lines.
async fn join(world: &World, id: &str, limit: Option<u64>) -> String {
    let (mut joined, mut offset) = (String::new(), json!(0));
    loop {
        let mut arguments = json!({"id": id, "offset": offset});
        if let Some(limit) = limit {
            arguments["limit"] = json!(limit);
        }
        let page = world.call("read-output", arguments).await.unwrap();
        assert!(
            !page.metadata.contains_key("truncated"),
            "a page is never truncated itself"
        );
        assert_eq!(page.metadata["offset"], offset);
        offset = page.metadata["nextOffset"].clone();
        if offset == Value::Null {
            return joined + &page.output;
        }
        let (text, notice) = page.output.rsplit_once("\n[more: ").unwrap();
        assert!(
            notice.contains(&format!("\"offset\":{offset}")) && notice.contains(id),
            "{notice}"
        );
        joined.push_str(text);
    }
}

#[tokio::test]
async fn pages_join_to_the_whole() {
    let world = World::new();
    let texts = [
        String::new(),
        "short".to_owned(),
        "aä€😀\n".repeat(30_000),
        "😀".repeat(60_000),
        "\n".repeat(10_000),
        format!("{}\n", "long line ".repeat(9_000)).repeat(3),
    ];
    for (at, text) in texts.iter().enumerate() {
        let id = kept(&world, "default", text).await;
        for limit in [None, Some(45_000), Some(44_999), Some(7_001)] {
            assert!(
                join(&world, &id, limit).await == *text,
                "text {at}, limit {limit:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_truncated_text_is_read_on_where_it_was_cut() {
    let world = World::new();
    let text = "äöü\n".repeat(5_000);
    world.write("long.txt", &text);
    let first = world
        .call("file-reader", json!({"path": "long.txt"}))
        .await
        .unwrap();
    let id = first.metadata["outputId"].as_str().unwrap();
    assert!(join(&world, id, None).await == text);
    let inside = world
        .call("read-output", json!({"id": id, "offset": 1, "limit": 4}))
        .await
        .unwrap();
    assert_eq!(inside.metadata["offset"], 2);
    assert!(
        inside.output.starts_with("öü\n[more: "),
        "{}",
        inside.output
    );
    let beyond = world
        .call("read-output", json!({"id": id, "offset": 1_000_000}))
        .await
        .unwrap();
    assert_eq!(
        (beyond.output.as_str(), &beyond.metadata["nextOffset"]),
        ("", &json!(null))
    );
}

#[tokio::test]
async fn unknown_and_foreign_ids_look_the_same() {
    let world = World::new();
    let id = kept(&world, "somebody", "theirs").await;
    assert_eq!(
        world
            .call_as("somebody", "read-output", json!({"id": id}))
            .await
            .unwrap()
            .output,
        "theirs"
    );
    for id in [id.as_str(), "0123456789", "../../etc/passwd", ""] {
        let error = world
            .call("read-output", json!({"id": id}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{id}");
        assert_eq!(error.message, "no such output (kept for 24 hours)", "{id}");
    }
    for bad in [
        json!({"id": id, "limit": 45_001}),
        json!({"id": id, "limit": 0}),
        json!({"id": id, "offset": -1}),
    ] {
        assert_eq!(
            world.call("read-output", bad).await.unwrap_err().code,
            ErrorCode::InvalidArguments
        );
    }
}
