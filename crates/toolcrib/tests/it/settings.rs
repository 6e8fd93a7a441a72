//! Each setting, from the user's file and from its variable, through the real binary.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{TestCrib, World, eventually, shell_tool};

/// A program that takes its time over each call.
const SLOW: &str = r#"#!/usr/bin/env python3
import json, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        result = {"name": "slow", "description": "Takes its time", "inputSchema": {"type": "object"}}
    elif asked["method"] == "health":
        result = {"status": "healthy"}
    else:
        time.sleep(asked["params"]["input"].get("seconds", 0.3))
        result = {"output": "done"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

fn world() -> World {
    let world = World::trusted();
    let folder = world.tools_folder().join("slow");
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("slow.py");
    std::fs::write(&program, SLOW).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let spec = json!({"name": "slow", "description": "Takes its time", "command": "./slow.py", "poolSize": 4,
                      "inputSchema": {"type": "object", "properties": {"seconds": {"type": "number"}}}});
    std::fs::write(folder.join("tool.json"), spec.to_string()).unwrap();
    world
}

/// Serves twice: with the line in the user's file, and with the variable.
fn both(world: &World, line: &str, variable: (&str, &str)) -> [TestCrib; 2] {
    let config = world.home().join(".config/toolcrib/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, line).unwrap();
    let by_file = world.serve_by(debug(world));
    let mut command = debug(world);
    // A crib follows its file, so the file stays and this one has another.
    command
        .env(variable.0, variable.1)
        .env("XDG_CONFIG_HOME", world.root().join("no-config"));
    [by_file, world.serve_by(command)]
}

fn debug(world: &World) -> std::process::Command {
    let mut command = world.command(&["serve", "--json", "--no-auth", "--port", "0"]);
    command.env("TOOLCRIB_LOG", "debug,hyper=info");
    command
}

fn logged(crib: &TestCrib, event: &str) -> usize {
    let log = crib.log();
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == event).count()
}

#[tokio::test]
async fn tools_dir() {
    let world = world();
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("o.json"), shell_tool("other", "echo", json!({}))).unwrap();
    let path = other.display().to_string();
    for crib in both(
        &world,
        &format!("tools_dir = \"{path}\""),
        ("TOOLCRIB_TOOLS_DIR", &path),
    ) {
        let names = crib.names().await;
        assert!(
            names.contains(&"other".to_owned()) && !names.contains(&"slow".to_owned()),
            "{names:?}"
        );
    }
}

#[tokio::test]
async fn default_timeout() {
    for crib in both(
        &world(),
        "default_timeout = 300",
        ("TOOLCRIB_DEFAULT_TIMEOUT", "300"),
    ) {
        let (status, said) = crib.call("slow", json!({"seconds": 20})).await;
        assert_eq!(
            (status, &said["error"]["code"]),
            (504, &json!("timed_out")),
            "{said}"
        );
        assert!(
            said["error"]["message"]
                .as_str()
                .unwrap()
                .contains("300 ms"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn max_pool_size() {
    for crib in both(
        &world(),
        "max_pool_size = 1",
        ("TOOLCRIB_MAX_POOL_SIZE", "1"),
    ) {
        let before = logged(&crib, "worker.spawn");
        let start = Instant::now();
        let call = || crib.call("slow", json!({"seconds": 0.3}));
        let (a, b, c) = tokio::join!(call(), call(), call());
        assert_eq!([a.0, b.0, c.0], [200; 3]);
        assert!(start.elapsed().as_millis() >= 900, "one after the other");
        assert!(
            logged(&crib, "worker.spawn") - before <= 1,
            "{}",
            crib.log()
        );
    }
}

#[tokio::test]
async fn health_check_interval() {
    let variable = ("TOOLCRIB_HEALTH_CHECK_INTERVAL", "100");
    for crib in both(&world(), "health_check_interval = 100", variable) {
        crib.call("slow", json!({"seconds": 0})).await;
        eventually("it was asked three times", async || {
            logged(&crib, "health") >= 3
        })
        .await;
    }
}

#[tokio::test]
async fn store() {
    let world = world();
    let file = world.root().join("elsewhere/mine.db");
    let url = format!("sqlite:{}", file.display());
    for crib in both(
        &world,
        &format!("store = \"{url}\""),
        ("TOOLCRIB_STORE", &url),
    ) {
        assert!(file.exists());
        crib.call("nobody", json!({})).await;
        crib.stop();
    }
    let mut command = world.command(&["logs", "--calls", "--json"]);
    command.env("TOOLCRIB_STORE", &url);
    let list = world.finish(command).exits(0).json();
    assert_eq!(list["calls"].as_array().unwrap().len(), 2);
    std::fs::remove_file(world.home().join(".config/toolcrib/config.toml")).unwrap();
    let list = world.run(&["logs", "--calls", "--json"]).exits(0).json();
    assert_eq!(list["calls"], json!([]), "nothing in the usual place");
    let mut command = world.command(&["list"]);
    command.env("TOOLCRIB_STORE", "mysql://x");
    let refused = world.finish(command).exits(2);
    assert!(refused.stderr.contains("TOOLCRIB_STORE"), "{refused:?}");
}

#[tokio::test]
async fn audit() {
    let world = world();
    // No store can be made of a folder, so a call that must be recorded is refused.
    let nowhere = world.root().join("folder");
    std::fs::create_dir(&nowhere).unwrap();
    let store = format!("store = \"sqlite:{}\"\n", nowhere.display());
    let config = world.home().join(".config/toolcrib/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let call = ["call", "--standalone", "workspace-info"];
    for (text, variable, code) in [
        ("", None, 0),
        ("audit = \"required\"\n", None, 4),
        ("[audit]\nmode = \"required\"\n", None, 4),
        ("audit = \"required\"\n", Some("best-effort"), 0),
        ("", Some("required"), 4),
        ("", Some("often"), 2),
        ("audit = \"often\"\n", None, 2),
        ("[audit]\nday = 3\n", None, 2),
    ] {
        let first = if text.starts_with('[') {
            [&store, text]
        } else {
            [text, &store]
        };
        std::fs::write(&config, first.concat()).unwrap();
        let mut command = world.command(&call);
        command.envs(variable.map(|value| ("TOOLCRIB_AUDIT", value)));
        let ran = world.finish(command);
        assert_eq!(ran.code, code, "{text:?} {variable:?}: {ran:?}");
        if code != 0 {
            assert!(ran.stderr.contains("hint:"), "{ran:?}");
        }
    }
    // A project has no say in it.
    std::fs::write(&config, "").unwrap();
    world.write(".toolcrib/config.toml", "audit = \"best-effort\"\n");
    let refused = world.run(&["list", "--standalone"]).exits(2);
    assert!(
        refused.stderr.contains("can't be set in a project's file"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_setting_that_needs_a_restart_is_named_when_it_changes() {
    let world = World::trusted();
    let config = world.home().join(".config/toolcrib/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "max_pool_size = 4\n").unwrap();
    let crib = world.serve_by(debug(&world));
    std::fs::write(&config, "max_pool_size = 5\nscan = \"strict\"\n").unwrap();
    eventually("the crib names the settings", async || {
        let log = crib.log();
        let said = |key: &str| {
            let mut lines = log.lines().filter(|line| line.contains("restart the crib"));
            lines.any(|line| line.contains(key))
        };
        said("max_pool_size") && said("scan")
    })
    .await;
    assert!(!crib.log().contains("key=\"port\""));
}

/// Who makes a token changes no tool: neither trust nor settings nor any folder are read again for it.
#[tokio::test]
async fn a_new_token_makes_no_folder_be_read_again() {
    let world = world();
    let crib = world.serve_by(debug(&world));
    let other = World::new();
    let read = || {
        let log = crib.log();
        log.matches("both are read again").count()
    };
    let before = read();
    for number in 0..20 {
        let name = format!("token-{number}");
        world.run(&["token", "create", &name]).exits(0);
        world.run(&["token", "revoke", &name]).exits(0);
    }
    assert_eq!(read(), before);
    // Trust is what they are read for.
    let project = other.project();
    world.run(&["trust", project.to_str().unwrap()]).exits(0);
    eventually("trust was followed", async || read() > before).await;
}
