//! What a tool says that it reads of the project is all that it reads, on every rung and for every kind of tool.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::ordinary::ordinary;
use crate::support::{World, plugin};

const RUNGS: [&str; 3] = ["A", "B", "C"];

/// Reads what it is told to, and says where it started.
const PYTHON: &str = r#"
from toolcrib import tool
import os

@tool(name="itself-py", permissions={"can_read_files": False})
def itself(path: str = "") -> str:
    """Reads nothing of the project."""
    return open(path).read() if path else os.getcwd()

@tool(name="docs-py", sandbox={"allowed_paths": ["docs"]})
def docs(path: str = "") -> str:
    """Reads the project's docs."""
    return open(path).read() if path else os.getcwd()
"#;

/// The same as a program, which says of itself what it needs.
const PROGRAM: &str = r#"#!/usr/bin/python3
import json, os, sys
schema = {"type": "object", "properties": {"path": {"type": "string"}}}
about = {"name": "NAME", "description": "Reads", "version": "1.0.0", "inputSchema": schema, **DECLARED}
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": asked["id"]}
    if asked["method"] == "initialize": answer["result"] = about
    elif asked["method"] == "health": answer["result"] = {"status": "healthy"}
    else:
        path = asked["params"]["input"].get("path")
        try: answer["result"] = open(path).read() if path else os.getcwd()
        except Exception as error: answer["error"] = {"code": -32001, "message": repr(error)}
    print(json.dumps(answer), flush=True)
"#;

fn itself() -> Value {
    json!({"permissions": {"canReadFiles": false}})
}

fn docs() -> Value {
    json!({"sandbox": {"allowedPaths": ["docs"]}})
}

/// A tool of a plugin file that declares something.
fn declaring(mut tool: Value, declared: &Value) -> Value {
    let (tool_map, more) = (tool.as_object_mut().unwrap(), declared.as_object().unwrap());
    tool_map.extend(more.clone());
    tool
}

fn world(rung: &str) -> World {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
    world.write("docs/guide.md", "a guide");
    world.write("src/main.rs", "a source");
    let script = world.write("scripts/hello", "#!/bin/sh\necho hello from $PWD\n");
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(script, runs.clone()).unwrap();
    world.write_tool("both.py", PYTHON);
    let path = || json!({"path": {"type": "string"}});
    let mut shells = Vec::new();
    for (name, declared) in [("itself", itself()), ("docs", docs())] {
        let file = format!("{name}-rpc");
        let text = PROGRAM.replace("NAME", &file);
        let text = text.replace("DECLARED", &declared.to_string().replace("false", "False"));
        let program = world.write_tool(&file, text);
        std::fs::set_permissions(program, runs.clone()).unwrap();
        let cat = plugin::shell(&format!("{name}-cat"), "cat -- {{path}}", path());
        shells.push(declaring(cat, &declared));
    }
    let hello = plugin::shell("itself-hello", "./scripts/hello", json!({}));
    shells.push(declaring(hello, &itself()));
    world.write_tool("shells.json", plugin::file(&shells));
    ordinary(&mut world);
    world
}

fn read(world: &World, tool: &str, path: &str) -> Value {
    let path = world.project().join(path).display().to_string();
    let ran = world.run(&["call", tool, &json!({"path": path}).to_string(), "--json"]);
    assert!(ran.code == 0 || ran.code == 1, "{tool} {path}: {ran:?}");
    ran.json()
}

#[track_caller]
fn reads(world: &World, tool: &str, path: &str, text: &str) {
    let tried = read(world, tool, path);
    assert_eq!(
        tried["output"], text,
        "{:?} {tool} {path}: {tried}",
        world.vars
    );
    assert_eq!(tried["isError"], false, "{tried}");
}

#[track_caller]
fn reads_not(world: &World, tool: &str, path: &str, text: &str) {
    let tried = read(world, tool, path);
    assert_eq!(
        tried["isError"], true,
        "{:?} {tool} {path}: {tried}",
        world.vars
    );
    assert!(!tried.to_string().contains(text), "{tried}");
}

#[test]
fn a_tool_that_reads_no_files_runs_and_reads_itself_only() {
    for rung in RUNGS {
        let world = world(rung);
        for tool in ["itself-py", "itself-rpc", "itself-cat"] {
            reads_not(&world, tool, "docs/guide.md", "a guide");
            reads_not(&world, tool, "src/main.rs", "a source");
            // The system is there as ever.
            let ran = world.run(&["call", tool, "path=/etc/passwd", "--json"]);
            assert!(
                ran.exits(0).json()["output"]
                    .as_str()
                    .unwrap()
                    .contains("root")
            );
        }
        for tool in ["itself-py", "itself-rpc"] {
            let started = world.run(&["call", tool]).exits(0).stdout;
            assert_eq!(started, "/\n", "rung {rung} {tool}");
        }
        reads(&world, "itself-rpc", ".toolcrib/tools/itself-rpc", &{
            std::fs::read_to_string(world.tools_folder().join("itself-rpc")).unwrap()
        });
        // Its own program is found, though it starts elsewhere.
        let hello = world.run(&["call", "itself-hello"]).exits(0).stdout;
        assert_eq!(hello, "hello from /\n", "rung {rung}");
    }
}

#[test]
fn allowed_paths_are_read_and_the_rest_of_the_project_is_not() {
    for rung in RUNGS {
        let world = world(rung);
        for tool in ["docs-py", "docs-rpc", "docs-cat"] {
            reads(&world, tool, "docs/guide.md", "a guide");
            reads_not(&world, tool, "src/main.rs", "a source");
            reads_not(&world, tool, "docs/../src/main.rs", "a source");
        }
    }
}

#[test]
fn a_grant_gives_more_of_the_project() {
    let world = world("A");
    for tool in ["itself-py", "itself-rpc", "itself-cat"] {
        world.run(&["grant", tool, "--read", "src"]).exits(0);
        reads(&world, tool, "src/main.rs", "a source");
        reads_not(&world, tool, "docs/guide.md", "a guide");
        world.run(&["grant", tool, "--read", "."]).exits(0);
        reads(&world, tool, "docs/guide.md", "a guide");
    }
    // Who may read the project starts there.
    let started = world.run(&["call", "itself-py"]).exits(0).stdout;
    assert_eq!(started.trim_end(), world.project().to_str().unwrap());
}

#[test]
fn a_file_tool_reads_no_more_than_it_says() {
    let world = World::trusted();
    world.write("docs/guide.md", "a guide");
    world.write("src/main.rs", "a source");
    let handler = json!({"type": "file-read", "basePath": "."});
    let path = || json!({"path": {"type": "string"}});
    let tools = [
        declaring(plugin::tool("some", path(), handler.clone()), &docs()),
        declaring(plugin::tool("none", path(), handler), &itself()),
    ];
    world.write_tool("files.json", plugin::file(&tools));
    let call = |tool: &str, path: &str| world.run(&["call", tool, &format!("path={path}")]);
    assert_eq!(
        call("some", "docs/guide.md").exits(0).stdout.trim_end(),
        "a guide"
    );
    let refused = call("some", "src/main.rs").exits(3);
    assert!(
        refused.stderr.contains("toolcrib grant NAME --read"),
        "{refused:?}"
    );
    // One that reads no files and is made to read them needs a person's yes.
    let refused = call("none", "docs/guide.md").exits(3);
    assert!(refused.stderr.contains("--read"), "{refused:?}");
    world.run(&["grant", "none", "--all"]).exits(0);
    assert_eq!(
        call("none", "src/main.rs").exits(0).stdout.trim_end(),
        "a source"
    );
}

#[test]
fn show_says_what_is_read() {
    let world = world("A");
    let shown = |tool: &str| world.run(&["show", tool, "--json"]).exits(0).json()["reads"].clone();
    assert_eq!(shown("docs-py"), json!(["docs"]));
    assert_eq!(shown("itself-rpc"), json!([]));
    assert_eq!(shown("file-reader"), Value::Null);
    let said = world.run(&["show", "docs-cat"]).exits(0).stdout;
    assert!(said.contains("itself, and of the project `docs`"), "{said}");
    let said = world.run(&["show", "itself-cat"]).exits(0).stdout;
    assert!(said.contains("itself, nothing of the project"), "{said}");
}

/// What a registration names relative to a project is a place of that project, wherever the tool is seen.
#[tokio::test]
async fn a_registered_tools_paths_are_those_of_the_project_it_was_registered_in() {
    let world = World::trusted();
    let script = world.weather();
    let out = world.project().join("out").display().to_string();
    let crib = world.serve();
    let body = json!({"name": "w", "command": "python3", "args": [script],
                      "permissions": {"canWriteFiles": true}, "sandbox": {"allowedPaths": ["./out"]}});
    let view = crib.register(body).await;
    assert_eq!(view["sandbox"]["allowedPaths"], json!([out]), "{view}");
    let (_, list) = crib.get("/grants?tool=w").await;
    assert_eq!(list["grants"][0]["write"], json!([out]), "{list}");
    drop(crib);
    let other = world.root().join("other");
    std::fs::create_dir_all(other.join(".toolcrib")).unwrap();
    let other = other.to_str().unwrap();
    world.run(&["trust", other]).exits(0);
    let shown = world
        .run(&["--project", other, "show", "w", "--json"])
        .exits(0)
        .json();
    assert_eq!(shown["status"], "active", "{shown}");
    let declares = shown["declares"].to_string();
    assert!(
        declares.contains(&format!("to write `{out}`")),
        "{declares}"
    );
    assert!(!std::path::Path::new(other).join("out").exists());
}
