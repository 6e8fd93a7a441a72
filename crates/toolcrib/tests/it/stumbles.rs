//! What people stumbled over: files that are something else, grants after an edit, `doctor` before trust.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::server::{Server, response};
use crate::support::{World, eventually, shell_tool};

fn problem(listed: &Value, file: &str) -> String {
    let errors = listed["errors"].as_array().unwrap().iter();
    let mut about = errors.filter(|one| one["file"].as_str().unwrap_or_default().ends_with(file));
    about.next().map(Value::to_string).unwrap_or_default()
}

#[test]
fn a_file_that_is_something_else_is_told_what_it_is() {
    let world = World::trusted();
    world.write_tool("server.py", "from mcp.server.fastmcp import FastMCP\n\nmcp = FastMCP('x')\n\n@mcp.tool()\ndef add(a: int) -> int:\n    return a\n");
    world.write_tool("server.ts", "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";\nnew McpServer({ name: \"x\" });\n");
    world.write_tool(
        "unmarked.py",
        "from toolcrib import tool\n\ndef add(a: int) -> int:\n    return a\n",
    );
    world.write_tool(
        "near.json",
        shell_tool("near", "echo", json!({})).replace("\"tools\"", "\"tool\""),
    );
    world.write_tool("one.json", r#"{"name": "one", "description": "d", "inputSchema": {}, "handler": {"type": "shell", "command": "echo"}}"#);
    world.write_tool("data.json", r#"{"tool": "hammer", "colour": "red"}"#);
    world.write_tool("plain.py", "def half(x):\n    return x / 2\n");
    world.write_tool("speaks.py", "# a tool\ndef speak():\n    return 1\n");
    world.write_tool("plain.ts", "export const half = (x: number) => x / 2;\n");
    world.write_tool("script.mjs", "console.log('hi');\n");
    // What a file with tools imports helps it, by way of another helper too.
    world.write_tool(
        "helper.py",
        "from deeper import two\n\ndef half(x):\n    return x / two\n",
    );
    world.write_tool("deeper.py", "two = 2\n");
    world.write_tool("uses.py", "from toolcrib import tool\nfrom helper import half\n\n@tool\ndef halve(x: int) -> float:\n    \"\"\"Halves.\"\"\"\n    return half(x)\n");
    world.write_tool("helper.ts", "export const half = (x: number) => x / 2;\n");
    world.write_tool("uses.ts", "import { tool } from \"@toolcrib/plugin\";\nimport { half } from \"./helper\";\nexport default tool({ description: \"Halves\", args: {}, execute: async () => half(2) });\n");
    world.write_tool("empty.py", "\n");
    let listed = world.run(&["list", "--json"]).exits(1).json();
    for (file, words) in [
        ("server.py", "MCP server"),
        ("server.ts", "MCP server"),
        ("unmarked.py", "write `@tool` on the line above"),
        ("near.json", "did you mean \\\"tools\\\"?"),
        ("one.json", "the file is one tool"),
        ("plain.py", "none of its functions is marked with `@tool`"),
        ("speaks.py", "none of its functions is marked with `@tool`"),
        ("plain.ts", "nothing that it exports is one"),
        ("script.mjs", "nothing that it exports is one"),
    ] {
        let told = problem(&listed, file);
        assert!(told.contains(words), "{file}: {told}");
    }
    for file in [
        "data.json",
        "/helper.py",
        "deeper.py",
        "uses.py",
        "/helper.ts",
        "uses.ts",
        "empty.py",
    ] {
        assert_eq!(problem(&listed, file), "", "{file}");
    }
}

#[tokio::test]
async fn a_file_without_tools_is_told_of_until_a_tool_imports_it() {
    let world = World::trusted();
    world.write_tool("half.py", "def half(x):\n    return x / 2\n");
    let crib = world.serve();
    let told = async || problem(&crib.get("/tools/errors").await.1, "half.py");
    eventually("it is told", async || {
        told().await.contains("\"severity\":\"note\"")
    })
    .await;
    let uses = world.write_tool("uses.py", "from toolcrib import tool\nfrom half import half\n\n@tool\ndef halve(x: int) -> float:\n    \"\"\"Halves.\"\"\"\n    return half(x)\n");
    eventually("it helps a tool", async || told().await.is_empty()).await;
    std::fs::remove_file(uses).unwrap();
    eventually("it helps nobody", async || !told().await.is_empty()).await;
}

/// A program that speaks the protocol, in a file that looks like one with tools for the host.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {"status": "healthy"}
    if asked["method"] == "initialize":
        result = {"name": "spoken", "description": "Speaks the protocol", "version": "1", "inputSchema": {"type": "object"}}
    if asked["method"] == "execute":
        result = "spoken"
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn a_program_with_the_run_bit_is_a_tool_whatever_its_suffix() {
    for name in ["spoken.py", "spoken.rb", "spoken"] {
        let world = World::trusted();
        let path = world.write_tool(name, PROGRAM);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let ran = world.run(&["call", "spoken"]).exits(0);
        assert_eq!(ran.stdout.trim(), "spoken", "{name}");
    }
}

#[test]
fn a_grant_that_ended_with_an_edit_is_told_of() {
    let world = World::trusted();
    let tool = |memory: u64, words: &str| {
        json!({"name": "mine", "tools": [{
            "name": "mine", "description": words, "inputSchema": {"type": "object"},
            "handler": {"type": "shell", "command": "echo hi"},
            "permissions": {"canExecuteCommands": true}, "sandbox": {"maxMemoryMB": memory},
        }]})
        .to_string()
    };
    world.write_tool("mine.json", tool(1_024, "One"));
    let never = world.run(&["call", "mine"]).exits(3).stderr;
    assert!(
        never.contains("needs permissions it hasn't been granted"),
        "{never}"
    );
    world.run(&["grant", "mine", "--all"]).exits(0);
    world.run(&["call", "mine"]).exits(0);
    world.write_tool("mine.json", tool(1_024, "Two"));
    let told = world.run(&["call", "mine"]).exits(3).stderr;
    for words in [
        "was for an earlier version",
        "asks for the same as then",
        "--follow",
    ] {
        assert!(told.contains(words), "{told}");
    }
    world.write_tool("mine.json", tool(2_048, "Three"));
    let told = world.run(&["call", "mine"]).exits(3).stderr;
    assert!(
        told.contains("asks for more than then: to use 2048 MB"),
        "{told}"
    );
    world.run(&["grant", "mine", "--all", "--follow"]).exits(0);
    world.write_tool("mine.json", tool(2_048, "Four"));
    world.run(&["call", "mine"]).exits(0);
}

#[test]
fn doctor_tells_of_what_does_not_run_and_says_each_caveat_once() {
    let mut world = World::new();
    world.vars.push(("TOOLCRIB_MAX_RUNG", "B".to_owned()));
    world.write_tool("hello.py", "from toolcrib import tool\n\n@tool\ndef hello() -> str:\n    \"\"\"Greets.\"\"\"\n    return 'hi'\n");
    world.write_tool("say.json", shell_tool("say", "echo hi", json!({})));
    world.write_tool("broken.json", "{");
    let told = world.run(&["doctor"]).exits(0).stdout;
    for tool in ["hello", "say"] {
        let line = told
            .lines()
            .find(|line| line.trim_start().starts_with(tool));
        let line = line.unwrap_or_else(|| panic!("{told}"));
        assert!(
            line.contains("does not run yet") && line.contains("toolcrib trust"),
            "{line}"
        );
    }
    assert!(told.contains("broken.json did not load"), "{told}");
    world.run(&["trust"]).exits(0);
    let told = world.run(&["doctor"]).exits(0).stdout;
    let caveats: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("not promised:"))
        .collect();
    let mut once = caveats.clone();
    once.sort_unstable();
    once.dedup();
    assert!(!caveats.is_empty() && caveats.len() == once.len(), "{told}");
}

#[test]
fn a_new_tool_in_the_home_is_told_where_it_would_work() {
    let world = World::new();
    let mut command = world.command(&["new", "mine"]);
    command.current_dir(world.home());
    let refused = world.finish(command).exits(2).stderr;
    assert!(
        refused.contains("home directory") && refused.contains("folder of your project"),
        "{refused}"
    );
}

#[test]
fn http_tools_take_every_method_and_say_where_arguments_go() {
    let world = World::trusted();
    let server = Server::start(|_| response("200 OK", &[], ""));
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"] {
        let name = method.to_lowercase();
        let properties = json!({"id": {"type": "string"}, "page": {"type": "integer"}});
        let tool = json!({"name": name, "tools": [{
            "name": name, "description": "Calls", "inputSchema": {"type": "object", "properties": properties},
            "handler": {"type": "http", "url": format!("{}/x/{{{{id}}}}", server.url()), "method": method,
                "send": {"id": "path", "page": "query"}},
        }]});
        world.write_tool(&format!("{name}.json"), tool.to_string());
        world
            .run(&["call", &name, r#"{"id": "7", "page": 2}"#])
            .exits(0);
        let asked = server.asked();
        assert_eq!(
            asked.last().unwrap(),
            &format!("{method} /x/7?page=2 HTTP/1.1")
        );
    }
}

#[tokio::test]
async fn a_tool_whose_program_is_missing_is_unavailable_until_it_is_there() {
    let world = World::trusted();
    world.write_tool("gone.json", shell_tool("gone", "./gone", json!({})));
    let program = json!({"name": "lost", "description": "Runs nothing", "command": "./lost",
        "inputSchema": {"type": "object"}});
    world.write(".toolcrib/tools/lost/tool.json", program.to_string());
    let listed = world.run(&["list", "--json"]).exits(0).json();
    let crib = world.serve();
    for name in ["gone", "lost"] {
        let tools = listed["tools"].as_array().unwrap().iter();
        let mut status = tools
            .filter(|tool| tool["name"] == name)
            .map(|tool| &tool["status"]);
        assert_eq!(status.next().unwrap(), "unavailable", "{name}");
        assert_eq!(crib.status_of(name).await.as_deref(), Some("unavailable"));
    }
    for file in ["gone.json", "lost/tool.json"] {
        let told = problem(&listed, file);
        assert!(
            told.contains("was not found, so the tool is unavailable") && told.contains("warning"),
            "{told}"
        );
    }
    let path = world.write("gone", "#!/bin/sh\necho here\n");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(crib.status_of("gone").await.as_deref(), Some("active"));
    world.run(&["call", "gone"]).exits(0);
}

#[test]
fn of_two_typescript_files_with_one_name_the_hint_speaks_of_the_export() {
    let world = World::trusted();
    let tool = "export default { description: \"Says it\", args: {}, execute: () => \"x\" };\n";
    world.write_tool("say.ts", tool);
    world.write_tool("say.mts", tool);
    let listed = world.run(&["list", "--json"]).exits(1).json();
    let told = problem(&listed, "say.ts");
    assert!(
        told.contains("NameClash") && told.contains("rename the file or the export"),
        "{told}"
    );
}

#[test]
fn what_the_sandbox_decides_is_a_note_and_what_runs_text_a_warning() {
    let world = World::trusted();
    let text = "import os, subprocess\nfrom toolcrib import tool\n\n@tool\ndef say() -> str:\n    \"\"\"Says it.\"\"\"\n    return os.sep\n\ndef run():\n    subprocess.run(['ls'])\n";
    world.write_tool("say.py", text);
    world.write_tool(
        "home.ts",
        "export default { description: \"Says it\", args: {}, execute: () => process.env.HOME };\n",
    );
    let ranks = |listed: &Value| -> Vec<(String, String)> {
        let errors = listed["errors"].as_array().unwrap().iter();
        let rank = |one: &Value| {
            (
                one["severity"].as_str().unwrap().to_owned(),
                one["errorType"].as_str().unwrap().to_owned(),
            )
        };
        errors.map(rank).collect()
    };
    let of = |severity: &str, kind: &str| (severity.to_owned(), kind.to_owned());
    let note = of("note", "ValidationError");
    let found = ranks(&world.run(&["list", "--json"]).exits(0).json());
    assert_eq!(found[0], of("warning", "SecurityError"), "{found:?}");
    assert_eq!(
        found[1..],
        [note.clone(), note.clone(), note.clone()],
        "{found:?}"
    );
    let told = world.run(&["errors"]).exits(0).stdout;
    assert_eq!(told.matches("SecurityError").count(), 1, "{told}");
    let settings = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(settings.join("config.toml"), "scan = \"strict\"\n").unwrap();
    let strict = world.run(&["list", "--json"]).exits(1).json();
    let found = ranks(&strict);
    let refused = of("error", "SecurityError");
    assert_eq!(
        found,
        [refused.clone(), refused.clone(), refused, note],
        "{found:?}"
    );
    let tools = strict["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools
        .filter(|tool| tool["scope"] == "local")
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["home"]);
}
