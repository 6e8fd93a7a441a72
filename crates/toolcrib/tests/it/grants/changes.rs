//! A grant is for a tool as it was: it ends when the tool changes.

use serde_json::{Value, json};

use super::{granted, until, world_with_program};
use crate::support::tool::{PROGRAM, save_program, write_program};
use crate::support::{World, eventually, shell_tool};

#[test]
fn an_edit_ends_a_grant_that_does_not_follow() {
    let world = world_with_program();
    let edit = |word: &str| save_program(&world, "ask", &format!("{PROGRAM}\n# {word}\n"));
    granted(&world, &["ask", "--all"]);
    world.run(&["call", "ask"]).exits(0);
    edit("one");
    world.run(&["call", "ask"]).exits(3);
    let grant = granted(&world, &["ask", "--all", "--follow"]);
    assert_eq!(grant["follow"], true);
    for word in ["two", "three"] {
        edit(word);
        world.run(&["call", "ask"]).exits(0);
    }
    // What is kept is what was granted: who asks for more is denied again.
    let more = json!({"permissions": {"canWriteFiles": true, "allowedEnvironmentVars": ["OTHER"]},
                      "sandbox": {"allowedPaths": ["out"]}});
    write_program(&world, "ask", "0", &[], more);
    let call = world.run(&["call", "ask"]).exits(3);
    assert!(
        call.stderr.contains("OTHER") && !call.stderr.contains("--write"),
        "{call:?}"
    );
}

#[tokio::test]
async fn a_last_good_version_ends_with_its_grant() {
    let world = World::trusted();
    let mut tool: Value = serde_json::from_str(&shell_tool("say", "echo hi", json!({}))).unwrap();
    tool["tools"][0]["permissions"] = json!({"canNetwork": true});
    world.write_tool("a.json", tool.to_string());
    let crib = world.serve();
    until(&crib, "say", "denied").await;
    let (_, grant) = crib
        .post("/grants", json!({"tool": "say", "all": true}))
        .await;
    assert_eq!(crib.output_of("say").await, "hi");
    world.write_tool("a.json", "{");
    eventually("it is stale", async || {
        crib.get("/tools/say").await.1["stale"] == true
    })
    .await;
    assert_eq!(crib.output_of("say").await, "hi");
    let path = format!("/grants/{}", grant["id"].as_str().unwrap());
    assert_eq!(crib.send("DELETE", &path, None).await.0, 204);
    assert_eq!(crib.call("say", json!({})).await.0, 404);
}

/// What a `tool.json` runs is the tool, also where the hash of its folder does not look.
#[test]
fn a_grant_ends_when_the_program_changes_wherever_that_lies() {
    let answers = "#!/usr/bin/env python3\nimport json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    result = {\"status\": \"healthy\", \"output\": \"first\"}\n    print(json.dumps({\"jsonrpc\": \"2.0\", \"id\": asked[\"id\"], \"result\": result}), flush=True)\n";
    for place in ["target/run.py", ".bin/run.py", "link.py"] {
        let world = World::new();
        let folder = world.tools_folder().join("runner");
        let program = match place {
            "link.py" => world.project().join("lib/run.py"),
            inside => folder.join(inside),
        };
        let write = |text: &str| {
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::write(&program, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&program, mode).unwrap();
        };
        write(answers);
        std::fs::create_dir_all(&folder).unwrap();
        if place == "link.py" {
            std::os::unix::fs::symlink(&program, folder.join(place)).unwrap();
        }
        let manifest = json!({
            "name": "runner", "description": "Runs.", "inputSchema": {"type": "object"}, "command": format!("./{place}"),
            "permissions": {"canWriteFiles": true}, "sandbox": {"allowedPaths": ["out"]},
        });
        std::fs::write(folder.join("tool.json"), manifest.to_string()).unwrap();
        world.run(&["trust"]).exits(0);
        let ran = world.run(&["call", "runner"]).exits(0);
        assert_eq!(ran.stdout.trim(), "first", "{place}");
        write(&answers.replace("first", "other"));
        let ran = world.run(&["call", "runner"]);
        assert!(
            ran.stderr.contains("toolcrib grant"),
            "{place}: {}",
            ran.stderr
        );
        world.run(&["grant", "runner", "--all"]).exits(0);
        let ran = world.run(&["call", "runner"]).exits(0);
        assert_eq!(ran.stdout.trim(), "other", "{place}");
    }
}

/// A program of the project that a JSON plugin runs is part of the plugin, and so is a script that it names.
#[tokio::test]
async fn a_grant_ends_when_the_program_of_a_plugin_changes() {
    for command in ["./scripts/run.sh", "sh scripts/run.sh {{what}}"] {
        let world = World::new();
        let program = world.project().join("scripts/run.sh");
        let write = |said: &str| {
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::write(&program, format!("#!/bin/sh\necho {said}\n")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&program, mode).unwrap();
        };
        write("first");
        let what = json!({"what": {"type": "string"}});
        let text = shell_tool("runner", command, what);
        let mut plugin: Value = serde_json::from_str(&text).unwrap();
        plugin["tools"][0]["permissions"] = json!({"canWriteFiles": true});
        plugin["tools"][0]["sandbox"] = json!({"allowedPaths": [".", "out"]});
        world.write_tool("runner.json", plugin.to_string());
        world.run(&["trust"]).exits(0);
        let call = || world.run(&["call", "runner", "what=x", "--standalone"]);
        assert!(call().exits(0).stdout.contains("first"), "{command}");
        let crib = world.serve();
        until(&crib, "runner", "active").await;
        write("other");
        let ran = call();
        assert!(ran.stderr.contains("toolcrib grant"), "{command}: {ran:?}");
        until(&crib, "runner", "denied").await;
        world.run(&["grant", "runner", "--all"]).exits(0);
        assert!(call().exits(0).stdout.contains("other"), "{command}");
        // What is data changes nothing.
        world.write("scripts/notes.md", "new");
        assert!(call().exits(0).stdout.contains("other"), "{command}");
    }
}
