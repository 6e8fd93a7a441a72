//! What happens on disk is announced and served a moment later, once, and only when it is a change.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{World, eventually, shell_tool};

/// A plugin file whose one tool prints one word.
fn saying(name: &str, word: &str) -> String {
    shell_tool(name, &format!("echo {word}"), json!({}))
}

#[tokio::test]
async fn a_saved_file_is_announced_and_callable_edited_renamed_and_removed() {
    let world = World::trusted();
    let crib = world.serve();
    let mut events = crib.events().await;
    let file = world.write_tool("a.json", saying("speak", "one"));
    assert_eq!(
        events.next("tools_changed").await["added"],
        json!(["speak"])
    );
    assert_eq!(crib.output_of("speak").await, "one");

    world.write_tool("a.json", saying("speak", "two"));
    assert_eq!(
        events.next("tools_changed").await["changed"],
        json!(["speak"])
    );
    assert_eq!(crib.output_of("speak").await, "two");

    let moved = file.with_file_name("b.json");
    std::fs::rename(&file, &moved).unwrap();
    let change = events.next("tools_changed").await;
    assert_eq!(change["changed"], json!(["speak"]), "{change}");
    let (_, view) = crib.get("/tools/speak").await;
    assert_eq!(view["file"], json!(moved));
    assert_eq!(crib.output_of("speak").await, "two");

    std::fs::remove_file(&moved).unwrap();
    assert_eq!(
        events.next("tools_changed").await["removed"],
        json!(["speak"])
    );
    let (status, error) = crib.call("speak", json!({})).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (404, &json!("unknown_tool"))
    );
}

#[tokio::test]
async fn a_plain_write_ends_up_served_however_it_is_cut() {
    let world = World::trusted();
    let crib = world.serve();
    let text = saying("speak", "whole");
    let path = world.tools_folder().join("a.json");
    let mut file = std::fs::File::create(&path).unwrap();
    for part in text.as_bytes().chunks(16) {
        std::io::Write::write_all(&mut file, part).unwrap();
        // sleeps: between two parts the crib may well look: the time is the load, nothing waits for it.
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    drop(file);
    eventually("the tool is there and nothing is wrong", async || {
        let (_, problems) = crib.get("/tools/errors").await;
        crib.status_of("speak").await.as_deref() == Some("active")
            && problems["errors"] == json!([])
    })
    .await;
    assert_eq!(crib.output_of("speak").await, "whole");
}

#[tokio::test]
async fn an_atomic_save_counts_once_and_the_same_text_again_not_at_all() {
    let world = World::trusted();
    let crib = world.serve();
    let mut events = crib.events().await;
    let before = crib.catalog_version().await;
    world.write_tool("a.json", saying("first", "one"));
    let change = events.next("tools_changed").await;
    assert_eq!(change["version"], before + 1);
    // The same text, saved again, and touched.
    world.write_tool("a.json", saying("first", "one"));
    let path = world.tools_folder().join("a.json");
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    crib.post("/tools/reload", json!({})).await;
    assert_eq!(crib.catalog_version().await, before + 1);
    // The next thing that is announced is the next thing that changed.
    world.write_tool("b.json", saying("second", "two"));
    let change = events.next("tools_changed").await;
    assert_eq!(change["added"], json!(["second"]), "{change}");
    assert_eq!(change["changed"], json!([]), "{change}");
    assert_eq!(change["version"], before + 2);
    assert_eq!(crib.catalog_version().await, before + 2);
}

#[tokio::test]
async fn reading_never_counts_as_a_change() {
    let world = World::trusted();
    let path = world.write_tool("a.json", saying("speak", "one"));
    let crib = world.serve();
    let mut events = crib.events().await;
    let before = crib.catalog_version().await;
    for _ in 0..20 {
        std::fs::read(&path).unwrap();
        crib.get("/tools").await;
        crib.get("/tools/errors").await;
        crib.output_of("speak").await;
        let (_, view) = crib.post("/tools/reload", json!({})).await;
        assert_eq!(view["success"], true, "{view}");
    }
    assert_eq!(crib.catalog_version().await, before);
    world.write_tool("b.json", saying("other", "two"));
    assert_eq!(events.next("tools_changed").await["version"], before + 1);
}

#[tokio::test]
async fn a_burst_of_files_is_announced_early_and_in_few_steps() {
    const FILES: usize = 200;
    let world = World::trusted();
    let crib = world.serve();
    let mut events = crib.events().await;
    let written = AtomicUsize::new(0);
    let write = async {
        for n in 0..FILES {
            world.write_tool(&format!("t{n}.json"), saying(&format!("t{n}"), "x"));
            written.fetch_add(1, Ordering::SeqCst);
            // sleeps: the pace of the burst, faster than a change settles.
            tokio::time::sleep(Duration::from_millis(4)).await;
        }
    };
    let listen = async {
        let (mut added, mut steps, mut first) = (0, 0, None);
        while added < FILES {
            let change = events.next("tools_changed").await;
            first.get_or_insert_with(|| written.load(Ordering::SeqCst));
            added += change["added"].as_array().unwrap().len();
            steps += 1;
        }
        (steps, first.unwrap())
    };
    let ((), (steps, first)) = tokio::join!(write, listen);
    assert!(first < FILES, "nothing was announced before the end");
    assert!(steps < FILES / 4, "{steps} announcements");
    let (_, list) = crib.get("/tools").await;
    assert_eq!(list["counts"]["plugin"], FILES);
}

#[tokio::test]
async fn a_folder_that_is_missing_may_appear_later() {
    let world = World::trusted();
    std::fs::remove_dir(world.tools_folder()).unwrap();
    let crib = world.serve();
    let mut events = crib.events().await;
    std::fs::create_dir(world.tools_folder()).unwrap();
    world.write_tool("a.json", saying("late", "here"));
    assert_eq!(events.next("tools_changed").await["added"], json!(["late"]));
    // From now on it is watched like any other.
    world.write_tool("b.json", saying("later", "here"));
    assert_eq!(
        events.next("tools_changed").await["added"],
        json!(["later"])
    );
    assert_eq!(crib.output_of("late").await, "here");
    // The user's own folder may appear, too.
    std::fs::create_dir_all(world.global_folder()).unwrap();
    std::fs::write(world.global_folder().join("g.json"), saying("mine", "own")).unwrap();
    eventually("the global tool is there", async || {
        crib.status_of("mine").await.is_some()
    })
    .await;
    assert_eq!(crib.output_of("mine").await, "own");
}

#[tokio::test]
async fn a_folder_may_be_replaced_by_another() {
    let world = World::trusted();
    world.write_tool("a.json", saying("old", "old"));
    let crib = world.serve();
    let tools = world.tools_folder();
    let next = world.write(".toolcrib/next/b.json", saying("new", "new"));
    std::fs::rename(&tools, tools.with_file_name("before")).unwrap();
    std::fs::rename(next.parent().unwrap(), &tools).unwrap();
    eventually("the other folder's tools are served", async || {
        let names = crib.names().await;
        names.iter().any(|name| name == "new") && !names.iter().any(|name| name == "old")
    })
    .await;
    // What happens in the folder that was moved away is nobody's business; in the new one it is.
    let version = crib.catalog_version().await;
    std::fs::write(
        tools.with_file_name("before").join("c.json"),
        saying("c", "c"),
    )
    .unwrap();
    world.write_tool("d.json", saying("d", "d"));
    eventually("the new folder is followed", async || {
        crib.status_of("d").await.is_some()
    })
    .await;
    assert_eq!(crib.catalog_version().await, version + 1);
    assert_eq!(crib.status_of("c").await, None);
}

#[tokio::test]
async fn a_new_problem_is_an_event_and_hides_no_other_file() {
    let world = World::trusted();
    let crib = world.serve();
    let mut events = crib.events().await;
    world.write_tool("bad.json", "{ nonsense");
    let problem = events.next("tool_error").await;
    assert_eq!(problem["errorType"], "SyntaxError");
    assert_eq!(
        (&problem["line"], &problem["severity"]),
        (&json!(1), &json!("error"))
    );
    assert!(!problem["hint"].as_str().unwrap().is_empty());
    world.write_tool("good.json", saying("good", "fine"));
    assert_eq!(events.next("tools_changed").await["added"], json!(["good"]));
    let (_, listed) = crib.get("/tools/errors").await;
    assert_eq!(listed["errors"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["errors"][0]["file"], file_of(&world, "bad.json"));
}

fn file_of(world: &World, name: &str) -> Value {
    json!(world.tools_folder().join(Path::new(name)))
}
