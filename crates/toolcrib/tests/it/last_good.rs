//! A file that was good and breaks keeps its last good version serving, until a person's act ends it.

use serde_json::{Value, json};

use crate::support::{TestCrib, World, eventually, shell_tool};

const BROKEN: &str = "{ \"name\": \"test\", \"tools\": [";

fn saying(word: &str) -> String {
    shell_tool("speak", &format!("echo {word}"), json!({}))
}

/// A plugin file with two tools, each with the command given for it.
fn pair(first: &str, second: &str) -> String {
    let tool = |name: &str, command: &str| {
        json!({"name": name, "description": "One of two", "inputSchema": {"type": "object"},
               "handler": {"type": "shell", "command": command}})
    };
    json!({"name": "pair", "tools": [tool("first", first), tool("second", second)]}).to_string()
}

async fn is_stale(crib: &TestCrib, tool: &str) -> Option<bool> {
    let (status, view) = crib.get(&format!("/tools/{tool}")).await;
    (status == 200).then(|| view["stale"] == true)
}

async fn until_stale(crib: &TestCrib, tool: &str, stale: Option<bool>) {
    let what = format!("`{tool}` has stale {stale:?}");
    eventually(&what, async || is_stale(crib, tool).await == stale).await;
}

async fn problems(crib: &TestCrib) -> Vec<Value> {
    let (_, list) = crib.get("/tools/errors").await;
    list["errors"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_broken_save_keeps_the_last_good_version_even_over_a_crash() {
    let world = World::trusted();
    world.write_tool("a.json", saying("good"));
    let crib = world.serve();
    assert_eq!(crib.output_of("speak").await, "good");

    let mut events = crib.events().await;
    world.write_tool("a.json", BROKEN);
    assert_eq!(
        events.next("tools_changed").await["changed"],
        json!(["speak"])
    );
    assert_eq!(is_stale(&crib, "speak").await, Some(true));
    assert_eq!(crib.output_of("speak").await, "good");
    let found = problems(&crib).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["errorType"], "SyntaxError");

    // Broken in another way, it is still the last good one that stands in.
    world.write_tool("a.json", "[]");
    eventually("the other problem is listed", async || {
        problems(&crib).await[0]["errorType"] == "ValidationError"
    })
    .await;
    assert_eq!(crib.output_of("speak").await, "good");

    crib.kill();
    let crib = world.serve();
    assert_eq!(is_stale(&crib, "speak").await, Some(true));
    assert_eq!(crib.output_of("speak").await, "good");
    assert_eq!(problems(&crib).await.len(), 1);
    // The command line serves it just so, says what is wrong, and exits 1 for it.
    let list = world.run(&["list"]).exits(1);
    assert!(list.stdout.contains("active, stale"), "{}", list.stdout);
    assert_eq!(world.run(&["call", "speak"]).exits(0).stdout, "good\n");

    world.write_tool("a.json", saying("better"));
    until_stale(&crib, "speak", Some(false)).await;
    assert_eq!(crib.output_of("speak").await, "better");
    assert_eq!(problems(&crib).await, Vec::<Value>::new());
    world.write_tool("a.json", BROKEN);
    until_stale(&crib, "speak", Some(true)).await;
    assert_eq!(crib.output_of("speak").await, "better");
}

#[tokio::test]
async fn it_ends_at_once_when_the_file_is_removed() {
    let world = World::trusted();
    let file = world.write_tool("a.json", saying("good"));
    let crib = world.serve();
    world.write_tool("a.json", BROKEN);
    until_stale(&crib, "speak", Some(true)).await;
    std::fs::remove_file(&file).unwrap();
    until_stale(&crib, "speak", None).await;
    // A broken file of the same name is a new file.
    world.write_tool("a.json", BROKEN);
    eventually("the new file has a problem", async || {
        !problems(&crib).await.is_empty()
    })
    .await;
    assert_eq!(is_stale(&crib, "speak").await, None);
}

#[tokio::test]
async fn it_ends_when_the_file_is_removed_while_nobody_serves() {
    let world = World::trusted();
    let file = world.write_tool("a.json", saying("good"));
    world.run(&["list"]).exits(0);
    std::fs::remove_file(&file).unwrap();
    world.run(&["list"]).exits(0);
    world.write_tool("a.json", BROKEN);
    world.run(&["call", "speak"]).exits(3);
}

#[tokio::test]
async fn a_file_without_tools_is_no_broken_file() {
    let world = World::trusted();
    world.write_tool("a.json", saying("good"));
    let crib = world.serve();
    world.write_tool("a.json", r#"{"name": "test", "tools": []}"#);
    until_stale(&crib, "speak", None).await;
    assert_eq!(problems(&crib).await, Vec::<Value>::new());
}

#[tokio::test]
async fn one_broken_tool_leaves_its_neighbour_fresh() {
    let world = World::trusted();
    world.write_tool("a.json", pair("echo f1", "echo s1"));
    let crib = world.serve();
    world.write_tool("a.json", pair("echo f2", "echo s2 | sh"));
    until_stale(&crib, "second", Some(true)).await;
    assert_eq!(is_stale(&crib, "first").await, Some(false));
    assert_eq!(crib.output_of("first").await, "f2");
    assert_eq!(crib.output_of("second").await, "s1");
    let found = problems(&crib).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["toolName"], "second");
}

#[tokio::test]
async fn a_tool_taken_out_of_a_broken_file_is_not_brought_back() {
    let world = World::trusted();
    world.write_tool("a.json", pair("echo f1", "echo s1"));
    let crib = world.serve();
    // `second` is gone on purpose; only `first` is broken.
    let only = shell_tool("first", "echo f2 | sh", json!({}));
    world.write_tool("a.json", only);
    until_stale(&crib, "first", Some(true)).await;
    assert_eq!(is_stale(&crib, "second").await, None);
}

#[tokio::test]
async fn it_ends_when_trust_is_withdrawn() {
    let world = World::trusted();
    world.write_tool("a.json", saying("good"));
    let crib = world.serve();
    world.write_tool("a.json", BROKEN);
    until_stale(&crib, "speak", Some(true)).await;
    world.run(&["trust", "--revoke"]).exits(0);
    until_stale(&crib, "speak", None).await;
    world.run(&["trust"]).exits(0);
    eventually("the project is trusted again", async || {
        world.write_tool("b.json", shell_tool("marker", "echo here", json!({})));
        crib.status_of("marker").await.as_deref() == Some("active")
    })
    .await;
    assert_eq!(is_stale(&crib, "speak").await, None);
    assert_eq!(problems(&crib).await.len(), 1);
}

#[tokio::test]
async fn it_ends_even_when_trust_comes_back_in_the_same_breath() {
    let world = World::trusted();
    world.write_tool("a.json", saying("good"));
    let crib = world.serve();
    world.write_tool("a.json", BROKEN);
    until_stale(&crib, "speak", Some(true)).await;
    world.run(&["trust", "--revoke"]).exits(0);
    world.run(&["trust"]).exits(0);
    until_stale(&crib, "speak", None).await;
}

#[tokio::test]
async fn it_ends_when_trust_is_withdrawn_while_nobody_serves() {
    let world = World::trusted();
    // In the project's own folder, and in one that only its config names.
    world.write(".toolcrib/config.toml", "tool_dirs = [\"more\"]\n");
    world.write_tool("a.json", saying("good"));
    world.write("more/b.json", shell_tool("other", "echo good", json!({})));
    world.run(&["list"]).exits(0);
    world.write_tool("a.json", BROKEN);
    world.write("more/b.json", BROKEN);
    assert_eq!(world.run(&["call", "speak"]).exits(0).stdout, "good\n");
    assert_eq!(world.run(&["call", "other"]).exits(0).stdout, "good\n");
    world.run(&["trust", "--revoke"]).exits(0);
    world.run(&["trust"]).exits(0);
    world.run(&["call", "speak"]).exits(3);
    world.run(&["call", "other"]).exits(3);
}

#[tokio::test]
async fn a_folder_that_only_the_config_names_forgets_with_trust() {
    let world = World::trusted();
    world.write(".toolcrib/config.toml", "tool_dirs = [\"more\"]\n");
    world.write("more/a.json", saying("good"));
    let crib = world.serve();
    world.write("more/a.json", BROKEN);
    until_stale(&crib, "speak", Some(true)).await;
    world.run(&["trust", "--revoke"]).exits(0);
    until_stale(&crib, "speak", None).await;
    world.run(&["trust"]).exits(0);
    eventually("the folder is served again", async || {
        !problems(&crib).await.is_empty()
    })
    .await;
    assert_eq!(is_stale(&crib, "speak").await, None);
}
