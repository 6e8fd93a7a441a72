//! The third seed's example programs in Python, Node and Bash, unchanged, as executables of a crib that serves.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::plugin::say;
use crate::support::processes::soak;
use crate::support::program::Program;
use crate::support::{TestCrib, World, count_processes, eventually, seed};

/// What all three call themselves.
const NAME: &str = "my_custom_tool";

/// One of the seed's programs, and what is asked of it.
struct Example {
    /// The heading that it stands under.
    heading: &'static str,
    /// The language as the seed's text marks it.
    language: &'static str,
    /// Stands in where there is no seed.
    stand_in: &'static str,
    /// Its one required parameter.
    parameter: &'static str,
    /// An argument by number.
    argument: fn(usize) -> String,
    /// Does the outcome belong to that argument?
    fits: fn(&Value, usize) -> bool,
}

fn titled(outcome: &Value, n: usize) -> bool {
    let data = &outcome["structured"];
    data["data"][0]["title"] == format!("Result for number {n}") && data["count"] == 1
}

const PYTHON: Example = Example {
    heading: "### Python Template",
    language: "python",
    stand_in: PYTHON_STAND_IN,
    parameter: "query",
    argument: |n| format!("number {n}"),
    fits: titled,
};

const NODE: Example = Example {
    heading: "### Node.js Template",
    language: "javascript",
    stand_in: NODE_STAND_IN,
    parameter: "query",
    argument: |n| format!("number {n}"),
    fits: titled,
};

const BASH: Example = Example {
    heading: "### Bash Template",
    language: "bash",
    stand_in: BASH_STAND_IN,
    parameter: "command",
    argument: |n| format!("echo 'number \"{n}\"'"),
    fits: |outcome, n| outcome["output"] == format!("number \"{n}\"\n"),
};

impl Example {
    /// The program, cut out of the seed's text as it stands; where there is no seed, one of the same shape.
    fn program(&self) -> String {
        let Some(text) = seed("003") else {
            say("no seed text lies here: a program of the same shape stands in for its example");
            return self.stand_in.to_owned();
        };
        let (_, section) = text.split_once(self.heading).expect("the seed has it");
        let opening = format!("```{}\n", self.language);
        let (_, block) = section.split_once(&opening).expect("as a program");
        let (program, _) = block.split_once("\n```").expect("which ends");
        format!("{program}\n")
    }

    fn argument(&self, n: usize) -> Value {
        json!({self.parameter: (self.argument)(n)})
    }

    /// A trusted project in which the program is a file with the run bit.
    fn world(&self) -> World {
        let world = World::trusted();
        write_program(&world.tools_folder().join("example"), &self.program());
        world
    }
}

fn write_program(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

async fn call(crib: &TestCrib, example: &Example, n: usize) {
    let (status, outcome) = crib.call(NAME, example.argument(n)).await;
    assert_eq!(status, 200, "{outcome}");
    assert_eq!(outcome["isError"], false, "{outcome}");
    assert!((example.fits)(&outcome, n), "{n}: {outcome}");
}

/// The shell program runs others, which a person has to grant. It can't even say what it is called without them, so it is
/// known by its file's name until then.
fn granted(world: &World, example: &Example) {
    if example.language == "bash" {
        let listed = world.run(&["list", "--json"]).exits(1).json();
        let hints: Vec<String> = listed["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["hint"].to_string())
            .collect();
        let tools = listed["tools"].as_array().unwrap().iter();
        for tool in tools.filter(|tool| tool["status"] == "denied") {
            let name = tool["name"].as_str().unwrap();
            let command = format!("toolcrib grant {name} --exec");
            assert!(
                hints.iter().any(|hint| hint.contains(&command)),
                "{hints:?}"
            );
            world.run(&["grant", name, "--exec"]).exits(0);
        }
    }
}

/// Everything that the seed asks of such a program, over REST.
async fn serves(example: &Example) {
    let world = example.world();
    granted(&world, example);
    let listed = world.run(&["list", "--json"]).exits(0).json();
    assert_eq!(listed["errors"], json!([]));
    let crib = world.serve();
    let (status, shown) = crib.get(&format!("/tools/{NAME}")).await;
    assert_eq!(status, 200, "{shown}");
    assert_eq!(shown["source"], "executable");
    assert_eq!(shown["version"], "1.0.0");
    assert_eq!(shown["inputSchema"]["required"], json!([example.parameter]));
    for n in 0..soak(1_000, 100) {
        call(&crib, example, n).await;
    }
    let (status, health) = crib.get(&format!("/tools/{NAME}/health?check=true")).await;
    assert_eq!(status, 200, "{health}");
    assert_eq!(
        (&health["name"], &health["status"], &health["healthStatus"]),
        (&json!(NAME), &json!("active"), &json!("healthy")),
        "{health}"
    );
    let said = crib
        .refused(NAME, json!({}), 422, "invalid_arguments")
        .await;
    assert!(said.contains(example.parameter), "{said}");
    // None of it took more than one worker, and none outlives its crib.
    let marker = world.tools_folder().join("example");
    let marker = marker.to_str().unwrap();
    assert!((1..=3).contains(&count_processes(marker)));
    assert_eq!(crib.stop(), Some(0));
    eventually("nothing is left", async || count_processes(marker) == 0).await;
}

/// A schema that asks for nothing lets the program itself refuse.
async fn refuses_by_itself(example: &Example) {
    let world = World::trusted();
    let folder = world.tools_folder().join("loose");
    write_program(&folder.join("program"), &example.program());
    let manifest = json!({"command": "./program", "inputSchema": {"type": "object"}});
    std::fs::write(folder.join("tool.json"), manifest.to_string()).unwrap();
    granted(&world, example);
    let crib = world.serve();
    let said = crib
        .refused(NAME, json!({}), 422, "invalid_arguments")
        .await;
    assert!(said.contains("Missing required parameter"), "{said}");
    call(&crib, example, 1).await;
}

/// A program alone, without a crib: an unknown method, and the missing parameter as it says it.
fn keeps_the_protocol(text: &str) {
    let world = World::new();
    let folder = world.root().join("direct");
    write_program(&folder.join("program"), text);
    std::fs::write(folder.join("tool.json"), "{\"command\": \"./program\"}").unwrap();
    let mut program = Program::start(&folder, &[]);
    let unknown = program.ask(json!("1"), "tea", json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    assert_eq!(program.execute(json!({}))["error"]["code"], -32602);
    let health = program.ask(json!("2"), "health", json!({}));
    assert_eq!(health["result"]["status"], "healthy", "{health}");
}

#[tokio::test]
async fn python_serves() {
    serves(&PYTHON).await;
}

#[tokio::test]
async fn node_serves() {
    serves(&NODE).await;
}

#[tokio::test]
async fn bash_serves() {
    serves(&BASH).await;
}

#[tokio::test]
async fn all_refuse_by_themselves() {
    for example in [PYTHON, NODE, BASH] {
        refuses_by_itself(&example).await;
    }
}

#[test]
fn all_keep_the_protocol() {
    for example in [PYTHON, NODE, BASH] {
        keeps_the_protocol(&example.program());
        keeps_the_protocol(example.stand_in);
    }
}

/// What stands in for the examples must not rot where the seed is at hand: each is called as the example is.
#[tokio::test]
async fn stand_ins_do_what_the_examples_do() {
    for example in [PYTHON, NODE, BASH] {
        let world = World::trusted();
        write_program(&world.tools_folder().join("example"), example.stand_in);
        granted(&world, &example);
        let crib = world.serve();
        call(&crib, &example, 1).await;
        call(&crib, &example, 2).await;
    }
}

const PYTHON_STAND_IN: &str = r#"#!/usr/bin/env python3
import json
import sys

SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 10}}, "required": ["query"]}


def answer(request):
    method, params = request.get("method"), request.get("params", {})
    if method == "initialize":
        return {"result": {"name": "my_custom_tool", "description": "A tool", "version": "1.0.0", "inputSchema": SCHEMA}}
    if method == "health":
        return {"result": {"status": "healthy"}}
    if method != "execute":
        return {"error": {"code": -32601, "message": "Method not found"}}
    query = params.get("input", {}).get("query")
    if query is None:
        return {"error": {"code": -32602, "message": "Missing required parameter: query"}}
    print("working", file=sys.stderr, flush=True)
    return {"result": {"success": True, "data": [{"title": "Result for " + query}], "count": 1}}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)}), flush=True)
"#;

const NODE_STAND_IN: &str = r#"#!/usr/bin/env node
const schema = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] };
function answer({ method, params }) {
  if (method === 'initialize') {
    return { result: { name: 'my_custom_tool', description: 'A tool', version: '1.0.0', inputSchema: schema } };
  }
  if (method === 'health') return { result: { status: 'healthy' } };
  if (method !== 'execute') return { error: { code: -32601, message: 'Method not found' } };
  const query = params.input?.query;
  if (!query) return { error: { code: -32602, message: 'Missing required parameter: query' } };
  console.error('working');
  return { result: { success: true, data: [{ title: `Result for ${query}` }], count: 1 } };
}
require('readline').createInterface({ input: process.stdin, terminal: false }).on('line', (line) => {
  const request = JSON.parse(line);
  console.log(JSON.stringify({ jsonrpc: '2.0', id: request.id, ...answer(request) }));
});
"#;

const BASH_STAND_IN: &str = r#"#!/usr/bin/env bash
result() { echo "{\"jsonrpc\":\"2.0\",\"id\":\"$1\",\"result\":$2}"; }
failure() { echo "{\"jsonrpc\":\"2.0\",\"id\":\"$1\",\"error\":{\"code\":$2,\"message\":\"$3\"}}"; }
while IFS= read -r line; do
    method=$(jq -r '.method' <<<"$line")
    id=$(jq -r '.id' <<<"$line")
    case "$method" in
    initialize)
        result "$id" '{
            "name": "my_custom_tool",
            "description": "A tool",
            "version": "1.0.0",
            "inputSchema": {
                "type": "object",
                "properties": {"command": {"type": "string"}},
                "required": ["command"]
            }
        }' ;;
    health) result "$id" '{"status":"healthy"}' ;;
    execute)
        command=$(jq -r '.params.input.command // empty' <<<"$line")
        if [ -z "$command" ]; then
            failure "$id" -32602 "Missing required parameter: command"
        else
            echo working >&2
            result "$id" "{\"success\":true,\"output\":$(eval "$command" | jq -Rs .)}"
        fi ;;
    *) failure "$id" -32601 "Method not found" ;;
    esac
done
"#;
