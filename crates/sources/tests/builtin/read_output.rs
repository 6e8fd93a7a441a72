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

#[tokio::test]
async fn a_pattern_finds_lines_in_fifty_megabytes_for_a_few_hundred_tokens() {
    let world = World::new();
    let mut text = "12:00 INFO all is well with the pump\n".repeat(1_400_000);
    let needle = "12:01 ERROR pump 7 is dry\n";
    let at = text.len() / 37 / 2 * 37;
    text.insert_str(at, needle);
    assert!(text.len() > 50_000_000);
    let id = kept(&world, "default", &text).await;
    let found = world
        .call("read-output", json!({"id": id, "pattern": "ERROR .* dry"}))
        .await
        .unwrap();
    let line = at / 37 + 1;
    assert_eq!(
        found.output,
        format!("{line} (offset {at}): {}", needle.trim_end())
    );
    let page = world
        .call(
            "read-output",
            json!({"id": id, "offset": at, "limit": needle.len()}),
        )
        .await
        .unwrap();
    assert!(page.output.starts_with(needle), "{}", page.output);
    let many = world
        .call("read-output", json!({"id": id, "pattern": "INFO"}))
        .await
        .unwrap();
    assert!(
        many.output.len() < 4_000 && many.output.contains("1400000 lines match"),
        "{}",
        many.output
    );
    assert!(
        toolcrib_core::tokens::estimate(&many.output) < 1_500,
        "{}",
        many.output
    );
    let on = world
        .call(
            "read-output",
            json!({"id": id, "pattern": "INFO", "offset": many.metadata["nextOffset"]}),
        )
        .await;
    assert!(on.unwrap().output.starts_with("1 (offset 1480): "));
    let none = world
        .call("read-output", json!({"id": id, "pattern": "(?i)flood"}))
        .await
        .unwrap();
    assert_eq!(none.output, "no line matches");
}

#[tokio::test]
async fn a_pointer_reads_a_part_of_json_and_shows_long_ones_in_little() {
    let world = World::new();
    let items: Vec<String> = (0..60_000)
        .map(|n| format!(r#"{{"id": {n}, "name": "plant {n}", "big": 12345678901234567890123}}"#))
        .collect();
    let id = kept(
        &world,
        "default",
        &format!(
            r#"{{"total": 60000, "a/b": 1, "items": [{}]}}"#,
            items.join(",")
        ),
    )
    .await;
    let at = async |pointer: &str| {
        world
            .call("read-output", json!({"id": id, "pointer": pointer}))
            .await
    };
    assert_eq!(
        at("/items/59999/name").await.unwrap().output,
        "\"plant 59999\""
    );
    // Numbers of any size stay what they are.
    assert_eq!(
        at("/items/7/big").await.unwrap().output,
        "12345678901234567890123"
    );
    assert_eq!(at("/a~1b").await.unwrap().output, "1");
    let whole = at("").await.unwrap().output;
    assert!(
        whole.contains("items: list of 60000 {id: number") && whole.len() < 2_000,
        "{whole}"
    );
    for nowhere in ["/items/60000", "/nothing", "items", "/items/x"] {
        let error = at(nowhere).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{nowhere}");
    }
}

#[tokio::test]
async fn what_can_not_be_searched_is_refused() {
    let world = World::new();
    let id = kept(&world, "default", "plain text").await;
    let foreign = kept(&world, "other", "theirs").await;
    let bomb = "(a{1000}){1000}";
    for (arguments, said) in [
        (json!({"id": id, "pattern": "("}), "can't be used"),
        (json!({"id": id, "pattern": ""}), "can't be used"),
        (json!({"id": id, "pattern": bomb}), "can't be used"),
        (json!({"id": id, "pointer": "/a"}), "no JSON"),
        (json!({"id": id, "pointer": "", "pattern": "a"}), "exclude"),
        (json!({"id": foreign, "pattern": "t"}), "no such output"),
        (json!({"id": foreign, "pointer": ""}), "no such output"),
    ] {
        let error = world
            .call("read-output", arguments.clone())
            .await
            .unwrap_err();
        assert!(
            error.message.contains(said),
            "{arguments}: {}",
            error.message
        );
    }
}
