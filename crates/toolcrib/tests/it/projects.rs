//! Records and grants of several projects in one store: each names its project, and a project is shown its own.

use serde_json::{Value, json};

use crate::support::plugin::{file, tool};
use crate::support::{World, eventually, shell_tool};

/// A tool that asks for a host.
fn asking(name: &str) -> String {
    let mut asks = tool(name, json!({}), json!({"type": "shell", "command": "true"}));
    asks["permissions"] = json!({"canNetwork": true});
    asks["sandbox"] = json!({"allowedHosts": ["example.com"]});
    file(&[asks])
}

#[tokio::test]
async fn calls_and_grants_name_their_project_and_a_project_shows_its_own() {
    let world = World::trusted();
    world.write_tool("here.json", shell_tool("here", "true", json!({})));
    world.write_tool("asks.json", asking("asks"));
    let other = world.root().join("other");
    std::fs::create_dir_all(other.join(".toolcrib/tools")).unwrap();
    let there = |name: &str| other.join(".toolcrib/tools").join(name);
    std::fs::write(there("there.json"), shell_tool("there", "true", json!({}))).unwrap();
    std::fs::write(there("wants.json"), asking("wants")).unwrap();
    let there = other.to_str().unwrap();
    world.run(&["trust"]).exits(0);
    world.run(&["--project", there, "trust"]).exits(0);
    world.run(&["call", "here"]).exits(0);
    world.run(&["--project", there, "call", "there"]).exits(0);

    let names = |list: &Value, of: &str, key: &str| -> Vec<String> {
        let list = list[of].as_array().unwrap().iter();
        list.map(|one| one[key].as_str().unwrap().to_owned())
            .collect()
    };
    let crib = world.serve();
    let here = world.project().display().to_string();
    eventually("both are on record", async || {
        crib.get("/calls?project=*").await.1["calls"]
            .as_array()
            .unwrap()
            .len()
            == 2
    })
    .await;
    let (_, own) = crib.get("/calls").await;
    assert_eq!(names(&own, "calls", "tool"), ["here"]);
    assert_eq!(names(&own, "calls", "project"), [&*here]);
    let (_, named) = crib.get(&format!("/calls?project={there}")).await;
    assert_eq!(names(&named, "calls", "tool"), ["there"]);

    let (_, own) = crib.get("/grants").await;
    assert_eq!(names(&own, "grants", "tool"), ["asks"], "{own}");
    assert_eq!(names(&own, "grants", "project"), [&*here]);
    let (_, all) = crib.get("/grants?project=*").await;
    assert_eq!(names(&all, "grants", "tool"), ["asks", "wants"], "{all}");
    assert_eq!(names(&all, "grants", "project"), [&*here, there]);
    drop(crib);

    let calls = |args: &[&str]| {
        let args = [&["logs", "--calls", "--json"], args].concat();
        names(&world.run(&args).exits(0).json(), "calls", "tool")
    };
    assert_eq!(calls(&[]), ["here"]);
    assert_eq!(calls(&["--project", there]), ["there"]);
    assert_eq!(calls(&["--all-projects"]).len(), 2);
    let table = world.run(&["logs", "--calls", "--all-projects"]).exits(0);
    assert!(table.stdout.contains(there), "{}", table.stdout);
    let listed = |args: &[&str]| {
        let args = [&["grant", "--list", "--json"], args].concat();
        names(&world.run(&args).exits(0).json(), "grants", "tool")
    };
    assert_eq!(listed(&[]), ["asks"]);
    assert_eq!(listed(&["--all-projects"]), ["asks", "wants"]);
}
