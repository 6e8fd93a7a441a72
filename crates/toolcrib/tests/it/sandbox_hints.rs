//! Hints about the sandbox say what was tried, and following them ends in a working tool, on every rung.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::{World, seed, shell_tool};

/// More than this many grants nobody gives for one thing.
const PATIENCE: usize = 4;

fn world(rung: &str) -> World {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
    world.write(".git/HEAD", "ref: refs/heads/main\n");
    world
}

fn program(world: &World, name: &str, text: &str) {
    let path = world.write_tool(name, text);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn call(world: &World, tool: &str, arguments: &Value) -> Value {
    world
        .run(&["call", tool, &arguments.to_string(), "--json"])
        .json()
}

/// All that a failed call says.
fn told(answer: &Value) -> String {
    let hint = answer["error"]["hint"].as_str().unwrap_or_default();
    format!("{}\n{hint}", answer["output"].as_str().unwrap_or_default())
}

fn failed(answer: &Value) -> bool {
    answer.get("error").is_some() || answer["isError"] == true
}

/// The commands that a text tells people to run.
fn commands(text: &str) -> Vec<Vec<String>> {
    let inside = text.split('`').skip(1).step_by(2);
    let own = inside.filter(|one| one.starts_with("toolcrib grant ") || one.starts_with("touch "));
    own.map(|one| one.split(' ').map(str::to_owned).collect())
        .collect()
}

/// Calls until it works, and does what each failure says. Gives the grants that it took.
fn follow(world: &World, tool: &str, arguments: &Value) -> Vec<String> {
    let mut given = Vec::new();
    for _ in 0..PATIENCE {
        let answer = call(world, tool, arguments);
        if !failed(&answer) {
            return given;
        }
        let commands = commands(&told(&answer));
        assert!(!commands.is_empty(), "after {given:?}: {answer}");
        for words in commands {
            match words[0].as_str() {
                "touch" => std::fs::write(&words[1], "").unwrap(),
                _ => {
                    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
                    world.run(&args).exits(0);
                }
            }
            given.push(words.join(" "));
        }
    }
    panic!(
        "{tool} still fails after {given:?}: {}",
        call(world, tool, arguments)
    );
}

const PYTHON: &str = r#"
from pathlib import Path
import os, subprocess
from toolcrib import tool

@tool
def report(what: str, path: str) -> str:
    """Writes a report."""
    if what == "write_text": Path(path).write_text("x"); return "written"
    if what == "open": open(path, "w").write("x"); return "written"
    if what == "makedirs": os.makedirs(path, exist_ok=True); return "made"
    if what == "read": return open(path).read() or "empty"
    if what == "run": return subprocess.run([path], capture_output=True, text=True).stdout or "ran"
    raise ValueError(what)
"#;

const TYPESCRIPT: &str = r#"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { tool } from "@toolcrib/plugin";

export default tool({
  description: "Writes a report",
  args: { what: tool.schema.string(), path: tool.schema.string() },
  async execute({ what, path }) {
    if (what === "makedirs") { mkdirSync(path, { recursive: true }); return "made"; }
    if (what === "read") return readFileSync(path, "utf8") || "empty";
    if (what === "run") return execFileSync(path).toString() || "ran";
    writeFileSync(path, "x");
    return "written";
  },
});
"#;

#[test]
fn following_them_ends_in_a_working_tool_on_every_rung() {
    for rung in ["A", "C", "B"] {
        let world = world(rung);
        world.write_tool("report.py", PYTHON);
        world.write_tool("report-ts.ts", TYPESCRIPT);
        world.write("notes.md", "");
        world.write("src/main.c", "");
        std::fs::write(world.home().join("list.txt"), "eggs").unwrap();
        let list = world.home().join("list.txt").display().to_string();
        for tool in ["report", "report-ts"] {
            for (what, path, flag) in [
                ("write_text", format!("{tool}-report.md"), "--write"),
                ("open", "notes.md".to_owned(), "--write"),
                ("makedirs", format!("{tool}-build"), "--write"),
                ("open", format!("src/{tool}-LICENSE"), "--write"),
                ("open", format!("{tool}-LICENSE"), "--write"),
                ("read", list.clone(), "--read"),
                ("run", "/bin/true".to_owned(), "--exec"),
            ] {
                let given = follow(&world, tool, &json!({"what": what, "path": path}));
                let all = given.join("; ");
                let about = format!("rung {rung}, {tool} {what} {path}: {all}");
                assert!(given.len() <= 2 && all.contains(flag), "{about}");
                let others = ["--exec", "--read", "--write"];
                let other = others
                    .iter()
                    .find(|one| **one != flag && all.contains(**one));
                assert_eq!(other, None, "{about}");
            }
        }
        // What was granted as a whole, and the rung can't do: it says so.
        let wide = PYTHON.replace("def report(", "def wide(");
        world.write_tool("wide.py", wide);
        world.run(&["grant", "wide", "--write", "."]).exits(0);
        let arguments = json!({"what": "write_text", "path": "brand-new.md"});
        let answer = call(&world, "wide", &arguments);
        match rung {
            "B" => {
                let told = told(&answer);
                assert!(
                    told.contains("rung B") && told.contains("no grant lets"),
                    "{answer}"
                );
                assert!(!told.contains("--exec"), "{answer}");
                follow(&world, "wide", &arguments);
            }
            _ => assert!(!failed(&answer), "{rung}: {answer}"),
        }
    }
}

#[test]
fn shell_plugins_have_the_same_hints() {
    for rung in ["A", "C", "B"] {
        let world = world(rung);
        let path = json!({"path": {"type": "string"}});
        for (name, command) in [
            ("copy-it", "cp -- notes.md {{path}}"),
            ("show-it", "cat -- {{path}}"),
            ("run-it", "env {{path}}"),
        ] {
            world.write_tool(
                &format!("{name}.json"),
                shell_tool(name, command, path.clone()),
            );
        }
        world.write("notes.md", "");
        std::fs::write(world.home().join("list.txt"), "eggs").unwrap();
        let list = world.home().join("list.txt").display().to_string();
        for (tool, path, flag) in [
            ("copy-it", "out.txt".to_owned(), "--write"),
            ("show-it", list, "--read"),
            ("run-it", "/bin/true".to_owned(), "--exec"),
        ] {
            let given = follow(&world, tool, &json!({"path": path}));
            assert!(
                given.len() == 1 && given[0].contains(flag),
                "rung {rung}, {tool}: {given:?}"
            );
        }
    }
}

/// The third seed's shell program, or one of the same shape: it reads every message with another program.
fn shell_program() -> String {
    let cut = |text: String| {
        let (_, section) = text.split_once("### Bash Template")?;
        let (_, block) = section.split_once("```bash\n")?;
        Some(format!("{}\n", block.split_once("\n```")?.0))
    };
    seed("003")
        .and_then(cut)
        .unwrap_or_else(|| SHELL_PROGRAM.to_owned())
}

const SHELL_PROGRAM: &str = r#"#!/usr/bin/env bash
about='{"name": "my_custom_tool", "description": "A tool", "version": "1.0.0", "inputSchema": {"type": "object", "properties": {"command": {"type": "string"}}}}'
while IFS= read -r line; do
    id=$(echo "$line" | jq -r '.id')
    case $(echo "$line" | jq -r '.method') in
    initialize) echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":$about}" ;;
    health) echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":{\"status\":\"healthy\"}}" ;;
    execute) echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":{\"output\":$(eval "$(echo "$line" | jq -r .params.input.command)" | jq -Rs .)}}" ;;
    esac
done
"#;

/// It answers by itself what it is, and needs another program for the work.
const HALF: &str = r#"#!/bin/sh
while read -r line; do
    id=${line#*\"id\":\"}; id=${id%%\"*}
    case $line in
    *initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":{\"name\":\"half\",\"description\":\"A tool\",\"version\":\"1\",\"inputSchema\":{\"type\":\"object\"}}}" ;;
    *health*) echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":{\"status\":\"healthy\"}}" ;;
    *) words=$(uname)
       if [ -z "$words" ]; then
           echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"error\":{\"code\":-32602,\"message\":\"it has nothing to say\"}}"
       else
           echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":\"$words\"}"
       fi ;;
    esac
done
"#;

#[tokio::test]
async fn a_shell_program_is_told_what_it_lacks_wherever_it_is_looked_at() {
    for rung in ["A", "C", "B"] {
        let world = world(rung);
        let path = world.root().join("example.sh");
        std::fs::write(&path, shell_program()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = path.display().to_string();
        for args in [
            &["register", &path][..],
            &["register", "--name", "mine", &path],
        ] {
            let refused = world.run(args).exits(2).stderr;
            assert!(
                refused.contains("kept it from running"),
                "rung {rung}: {refused}"
            );
            assert!(
                refused.contains("jq") && refused.contains("`--exec`"),
                "{refused}"
            );
        }
        // It is asked for its name by whoever keeps the registrations.
        let made = world
            .run(&["register", "--exec", &path, "--json"])
            .exits(0)
            .json();
        assert_eq!(
            (&made["name"], &made["status"]),
            (&json!("my_custom_tool"), &json!("active"))
        );
        let valid = world
            .run(&["validate", "my_custom_tool", "--json"])
            .exits(0)
            .json();
        assert_eq!(valid["valid"], true, "{valid}");
        let ran = world
            .run(&["call", "my_custom_tool", "command=echo hi"])
            .exits(0);
        assert_eq!(ran.stdout.trim(), "hi", "rung {rung}");
        // Validation has what a call has.
        world.run(&["grant", "my_custom_tool", "--revoke"]).exits(0);
        let valid = world.run(&["validate", "my_custom_tool", "--json"]).json();
        let said = valid["errors"].to_string();
        assert!(
            said.contains("toolcrib grant my_custom_tool --exec"),
            "rung {rung}: {valid}"
        );
        // One that answers what it is, and fails at its work.
        let half = world.root().join("half.sh");
        std::fs::write(&half, HALF).unwrap();
        std::fs::set_permissions(&half, std::fs::Permissions::from_mode(0o755)).unwrap();
        let made = world
            .run(&["register", &half.display().to_string(), "--json"])
            .exits(0)
            .json();
        assert!(
            made["warnings"]
                .to_string()
                .contains("toolcrib grant half --exec"),
            "{made}"
        );
        for verb in ["call", "test"] {
            let ran = world.run(&[verb, "half"]);
            let all = format!("{}{}", ran.stdout, ran.stderr);
            assert!(
                all.contains("toolcrib grant half --exec"),
                "rung {rung}, {verb}: {all}"
            );
        }
        let given = follow(&world, "half", &json!({}));
        assert_eq!(given.len(), 1, "{given:?}");
    }
}

#[test]
fn a_shell_program_in_a_folder_is_told_too() {
    for rung in ["A", "B"] {
        let world = world(rung);
        program(&world, "example", &shell_program());
        program(&world, "half", HALF);
        let listed = world.run(&["list", "--json"]).json();
        let problems = listed["errors"].to_string();
        for grant in [
            "toolcrib grant example --exec",
            "toolcrib grant half --exec",
        ] {
            assert!(problems.contains(grant), "rung {rung}: {problems}");
            world
                .run(&grant.split(' ').skip(1).collect::<Vec<_>>())
                .exits(0);
        }
        let listed = world.run(&["list", "--json"]).exits(0).json();
        assert_eq!(listed["errors"], json!([]), "rung {rung}");
    }
}

/// A variable of who runs the tests, or a folder of the real home.
#[expect(
    clippy::disallowed_methods,
    reason = "tests run the compiler that they were made with"
)]
fn of_user(variable: &str, folder: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    std::env::var(variable).unwrap_or_else(|_| format!("{home}/{folder}"))
}

#[test]
fn tools_that_run_a_build_work_once_their_hints_are_followed() {
    for rung in ["A", "B"] {
        let mut world = world(rung);
        world
            .vars
            .push(("RUSTUP_HOME", of_user("RUSTUP_HOME", ".rustup")));
        world
            .vars
            .push(("CARGO_HOME", of_user("CARGO_HOME", ".cargo")));
        let package = "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
        world.write("Cargo.toml", package);
        world.write("src/lib.rs", "#[test]\nfn works() {}\n");
        world.write("package.json", r#"{"name": "tiny", "version": "1.0.0", "scripts": {"test": "node -e 'console.log(6 * 7)'"}}"#);
        world.write("tests/test_it.py", "import subprocess, unittest\n\nclass It(unittest.TestCase):\n    def test_it(self):\n        subprocess.run(['true'], check=True)\n");
        for (tool, command, preset) in [
            ("unit", "cargo test --offline", "--preset cargo"),
            ("web", "npm test", "--preset node"),
            (
                "py",
                "python3 -m unittest discover tests",
                "--preset python",
            ),
        ] {
            let mut plugin: Value =
                serde_json::from_str(&shell_tool(tool, command, json!({}))).unwrap();
            plugin["tools"][0]["handler"]["timeout"] = json!(120_000);
            world.write_tool(&format!("{tool}.json"), plugin.to_string());
            let given = follow(&world, tool, &json!({}));
            assert!(given[0].ends_with(preset), "rung {rung}, {tool}: {given:?}");
            assert!(given.len() <= 2, "rung {rung}, {tool}: {given:?}");
        }
        let printed = world
            .run(&["grant", "web", "--preset", "cargo"])
            .exits(0)
            .stdout;
        for opened in [
            "to run further programs",
            "/target",
            "CARGO_HOME",
            "4096 MB",
        ] {
            assert!(printed.contains(opened), "{printed}");
        }
        assert!(
            !printed.contains("credentials") && !printed.contains(".ssh"),
            "{printed}"
        );
        world.run(&["grant", "web", "--preset", "ssh"]).exits(2);
    }
}
