//! What a command names is run, however it names it: it is part of its tool, and no other tool writes it. What a clone lays
//! out around a command is not.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{worlds, written};
use crate::support::ordinary::ordinary;
use crate::support::{World, shell_tool};

const ANSWERS: &str = "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n    result = {\"status\": \"healthy\", \"output\": \"MINE\"}\n    print(json.dumps({\"jsonrpc\": \"2.0\", \"id\": asked[\"id\"], \"result\": result}), flush=True)\n";

/// Files that are run, each named in another way, and one that is data.
const RUN: [(&str, &str, &str); 5] = [
    ("awk", "awk -f scripts/a.awk", "scripts/a.awk"),
    (
        "first",
        "node --require=./scripts/first.cjs -e 1",
        "scripts/first.cjs",
    ),
    ("plain", "sh -e scripts/plain", "scripts/plain"),
    ("inner", "env A=b sh scripts/inner", "scripts/inner"),
    ("attached", "awk -fscripts/b.awk", "scripts/b.awk"),
];
const DATA: &str = "scripts/data.txt";

const WRITER: &str = r#"
import pathlib
from toolcrib import tool

@tool
def writes(files: list[str]) -> str:
    """Writes over files of other tools."""
    said = []
    for named in files:
        path = pathlib.Path("PROJECT") / named
        try:
            path.write_text("taken")
            said.append(named)
        except OSError:
            pass
    return " ".join(said)
"#;

/// A world's tools that run these files: one plugin for each, and a folder whose interpreter has an option with a value.
fn fill(world: &World) -> Vec<&'static str> {
    for (name, command, file) in RUN {
        world.write(file, "");
        let text = shell_tool(name, command, json!({}));
        let mut plugin: Value = serde_json::from_str(&text).unwrap();
        plugin["tools"][0]["permissions"] = json!({"canWriteFiles": true});
        plugin["tools"][0]["sandbox"] = json!({"allowedPaths": [".", "out"]});
        world.write_tool(&format!("{name}.json"), plugin.to_string());
    }
    world.write("scripts/late.py", ANSWERS);
    let folder = json!({
        "name": "late", "description": "Runs a script", "inputSchema": {"type": "object"},
        "command": "python3", "args": ["-W", "ignore", "../../../scripts/late.py"],
        "permissions": {"canWriteFiles": true}, "sandbox": {"allowedPaths": [".", "out"]},
    });
    world.write(".toolcrib/tools/late/tool.json", folder.to_string());
    world.write(DATA, "");
    let files = RUN.iter().map(|(_, _, file)| *file);
    files.chain(["scripts/late.py"]).collect()
}

/// A tool that may write the project writes nothing that another tool's command runs.
#[test]
fn what_commands_run_is_not_written() {
    for (rung, mut world) in worlds() {
        let files = fill(&world);
        let project = world.project().canonicalize().unwrap();
        let writer = WRITER.replace("PROJECT", project.to_str().unwrap());
        world.write_tool("writes.py", &writer);
        written(&mut world);
        world.run(&["trust"]).exits(0);
        world.run(&["grant", "writes", "--write", "."]).exits(0);
        let all: Vec<&str> = files.iter().copied().chain([DATA]).collect();
        let arguments = json!({"files": all}).to_string();
        let ran = world.run(&["call", "writes", &arguments]).exits(0);
        assert_eq!(ran.stdout.trim(), DATA, "{rung}: {}", ran.stderr);
    }
}

/// A yes to a tool is a yes to what its command runs as it is.
#[test]
fn a_grant_ends_when_what_a_command_runs_changes() {
    let world = World::new();
    let files = fill(&world);
    world.run(&["trust"]).exits(0);
    let denied = |name: &str| {
        let ran = world.run(&["call", name, "{}"]);
        ran.stderr.contains("toolcrib grant")
    };
    let names = RUN.iter().map(|(name, _, _)| *name).chain(["late"]);
    for (name, file) in names.zip(files) {
        assert!(!denied(name), "{name}");
        world.write(file, format!("{ANSWERS}\n# changed\n"));
        assert!(denied(name), "{name}");
    }
}

/// A plugin that is trusted by itself, in a project that nobody trusts: it loads neither modules nor packages of that.
#[test]
fn a_plugin_that_is_trusted_by_itself_loads_nothing_of_the_project() {
    for rung in ["A", "B", "C"] {
        let mut world = World::new();
        world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
        ordinary(&mut world);
        let commands = [
            ("module", "python3 -m json.tool --help"),
            ("inner", "env python3 -m json.tool --help"),
            ("deep", "python3 -c 'import json.tool'"),
            (
                "pack",
                "node -e 'try { require(\"dep\") } catch { console.log(\"none\") }'",
            ),
            (
                "first",
                "node -pe 'try { require(\"dep\") } catch { \"none\" }'",
            ),
        ];
        world.write("json.py", "print('CLONE')\n");
        world.write("sub/json.py", "print('CLONE')\n");
        world.write("node_modules/dep/index.js", "console.log('CLONE')\n");
        written(&mut world);
        for (name, command) in commands {
            world.run(&["new", name, "--template", "plugin"]).exits(0);
            let path = world.tools_folder().join(format!("{name}.json"));
            for cwd in [None, Some("sub")] {
                let mut plugin: Value =
                    serde_json::from_str(&shell_tool(name, command, json!({}))).unwrap();
                plugin["tools"][0]["handler"]["cwd"] = json!(cwd);
                std::fs::write(&path, plugin.to_string()).unwrap();
                // It starts another program, which is looked through.
                if name == "inner" {
                    world.run(&["grant", name, "--exec"]).exits(0);
                }
                let ran = world.run(&["call", name, "{}"]);
                let said = format!("{}{}", ran.stdout, ran.stderr);
                assert!(!said.contains("CLONE"), "{rung} {name} {cwd:?}: {said}");
                assert_eq!(ran.code, 0, "{rung} {name} {cwd:?}: {said}");
            }
        }
    }
}

/// A clone brings links in place of what commands write.
#[test]
fn what_commands_write_follows_no_link() {
    let world = World::new();
    let precious = world.home().join("precious");
    std::fs::write(&precious, "kept").unwrap();
    symlink(&precious, world.project().join("toolcrib.1")).unwrap();
    world.run(&["man", "--dir", "."]).exits(0);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    assert!(!world.project().join("toolcrib.1").is_symlink());
    let wheel = format!("toolcrib-{}-py3-none-any.whl", env!("CARGO_PKG_VERSION"));
    symlink(&precious, world.project().join(&wheel)).unwrap();
    world.run(&["sdk", "python"]).exits(3);
    world.run(&["sdk", "python", "--force"]).exits(0);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
}
