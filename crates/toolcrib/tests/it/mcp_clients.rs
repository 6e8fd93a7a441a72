//! Clients that others wrote: the official Python and TypeScript SDKs and the MCP Inspector, over both transports.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::results;
use crate::support::plugin::{file, shell};
use crate::support::{TestCrib, World, shell_tool};
use crate::tidy::root;

/// What `long` prints: more than one page, nothing but ASCII.
fn long_text() -> String {
    (1..=9_000).map(|line| format!("line {line}\n")).collect()
}

/// How a client reaches the crib.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Stdio,
    Http,
}

/// A program of `target/test-tools`. It is never skipped: without it nothing is known about real clients.
#[track_caller]
fn installed(path: &str) -> PathBuf {
    let tools = root().join("target/test-tools");
    assert!(
        tools.join("stamp").is_file(),
        "the MCP clients are not installed: run `make test`"
    );
    tools.join(path)
}

/// A project with a tool that prints a text, one that prints much, and a plugin that waits in a draft.
fn world() -> World {
    let world = World::trusted();
    world.write("long.txt", long_text());
    let tools = [
        shell("say", "echo {{word}}", json!({"word": {"type": "string"}})),
        shell("long", "cat long.txt", json!({})),
    ];
    world.write_tool("say.json", file(&tools));
    world.write_tool("shapes.py", results::SHAPES);
    world.write("draft.json", shell_tool("newcomer", "true", json!({})));
    world
}

/// A client's program in this world, where nothing but PATH is of the real environment.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start clients of the product by hand"
)]
pub fn client(world: &World, program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(installed(program));
    command
        .args(arguments)
        .current_dir(world.project())
        .env_clear()
        .env("HOME", world.home())
        .env("TEST_TOOLS", installed(""))
        .env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// Adds how the server is reached; the crib lives as long as it is needed.
fn reach(world: &World, command: &mut Command, way: Way) -> Option<TestCrib> {
    match way {
        Way::Stdio => {
            command.args([env!("CARGO_BIN_EXE_toolcrib"), "mcp"]);
            None
        }
        Way::Http => {
            let crib = world.serve();
            command.arg(format!("{}/mcp", crib.url));
            Some(crib)
        }
    }
}

/// Runs one of our programs on an SDK and holds what it saw against what is so.
fn sdk(program: &str, script: &str, mode: &str, way: Way, version: Option<&str>) {
    let world = world();
    let orders = json!({
        "text": ["say", {"word": "hello"}],
        "structured": "workspace-info",
        "long": "long",
        "draft": world.project().join("draft.json"),
        "plugin": world.tools_folder().join("newcomer.json"),
        "mode": mode,
        "shapes": results::shapes().iter().map(|(name, _)| *name).collect::<Vec<_>>(),
    });
    let script = root().join("tests/clients").join(script);
    let kind = if way == Way::Stdio { "stdio" } else { "http" };
    let arguments = [script.to_str().unwrap(), &orders.to_string(), kind];
    let mut command = client(&world, program, &arguments);
    let _crib = reach(&world, &mut command, way);
    let saw = world.finish(command).exits(0).json();

    assert_eq!(saw["serverInfo"]["name"], "toolcrib");
    assert_eq!(saw["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(
        saw["instructions"]
            .as_str()
            .unwrap()
            .contains("read-output")
    );
    if let Some(version) = version {
        assert_eq!(saw["protocolVersion"], version);
    }
    let has = |list: &str, name: &str| saw[list].as_array().unwrap().contains(&json!(name));
    for name in ["git-status", "workspace-info", "read-output", "say", "long"] {
        assert!(has("tools", name), "{name}: {saw}");
    }
    assert_eq!(saw["text"].as_str().unwrap().trim_end(), "hello");
    let project = world.project().display().to_string();
    assert!(saw["structured"].to_string().contains(&project), "{saw}");
    for (name, data) in results::shapes() {
        let expected = match mode {
            "legacy" => results::wrapped(&data),
            _ => data,
        };
        assert!(saw["shapes"][name] == expected, "{name}: {saw}");
    }
    assert_eq!(saw["error"], -32602);
    assert_eq!(saw["truncated"], true);
    assert!(saw["whole"] == long_text(), "the long output has a gap");
    assert_eq!(saw["listChangedSeen"], true);
    assert!(!has("tools", "newcomer") && has("toolsAfter", "newcomer"));
}

const PYTHON: (&str, &str) = ("python/bin/python", "sdk_client.py");
pub const NODE: &str = "npm/node_modules/.bin/node";

#[test]
fn the_python_sdk_uses_it_without_sessions() {
    for way in [Way::Stdio, Way::Http] {
        sdk(PYTHON.0, PYTHON.1, "auto", way, Some("2026-07-28"));
    }
}

#[test]
fn the_python_sdk_uses_it_in_sessions() {
    for way in [Way::Stdio, Way::Http] {
        sdk(PYTHON.0, PYTHON.1, "legacy", way, Some("2025-11-25"));
    }
}

#[test]
fn the_typescript_sdk_uses_it() {
    // This SDK tells its revision on HTTP alone.
    for (way, version) in [(Way::Stdio, None), (Way::Http, Some("2025-11-25"))] {
        sdk(NODE, "sdk_client.mjs", "legacy", way, version);
    }
}

/// One command of the Inspector, which prints the result as JSON.
fn inspect(world: &World, way: Way, arguments: &[&str]) -> Value {
    let inspector = installed("npm/node_modules/.bin/mcp-inspector");
    let mut command = client(world, NODE, &[inspector.to_str().unwrap(), "--cli"]);
    // The Inspector starts parts of itself by the name `node`: that must be this one.
    let node = installed(NODE).parent().unwrap().to_path_buf();
    #[expect(clippy::disallowed_methods, reason = "the test's own PATH")]
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(node).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(folders).unwrap());
    let _crib = reach(world, &mut command, way);
    if way == Way::Http {
        command.args(["--transport", "http"]);
    }
    command.args(arguments);
    world.finish(command).exits(0).json()
}

#[test]
fn the_inspector_lists_and_calls() {
    let world = world();
    for way in [Way::Stdio, Way::Http] {
        let list = inspect(&world, way, &["--method", "tools/list"]);
        let tools = list["tools"].as_array().unwrap();
        let named = |name: &str| tools.iter().any(|tool| tool["name"] == name);
        assert!(named("git-status") && named("say"), "{list}");

        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            "say",
            "--tool-arg",
            "word=hello",
        ];
        let said = inspect(&world, way, &call);
        assert_eq!(
            said["content"][0]["text"].as_str().unwrap().trim_end(),
            "hello"
        );

        let call = ["--method", "tools/call", "--tool-name", "workspace-info"];
        let info = inspect(&world, way, &call);
        let project = world.project().display().to_string();
        assert!(
            info["structuredContent"].to_string().contains(&project),
            "{info}"
        );
    }
}
