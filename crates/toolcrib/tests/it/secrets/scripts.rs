//! Functions in Python and TypeScript files that name variables and secrets for themselves.

use serde_json::json;

use super::{LITERAL, SECRET, Scene, nowhere_in, scene};

/// Two functions of one file: only the first names anything.
fn python_file(env: &str) -> String {
    format!(
        r#"
import os
from toolcrib import tool

AT_LOAD = [os.environ.get("TOKEN"), os.environ.get("MODE")]

@tool(env={env})
def named(said: str) -> list:
    """Says whether it has them."""
    return [os.environ.get("TOKEN") == said, os.environ.get("MODE"), os.environ.get("TOKEN"), AT_LOAD == [None, None]]

@tool
def neighbour() -> list:
    """Says what it has."""
    return [os.environ.get("TOKEN"), os.environ.get("MODE")]
"#
    )
}

const TYPESCRIPT: &str = r#"
import { tool } from "@toolcrib/plugin";
export const named = tool({ description: "Says whether it has them", env: { TOKEN: "secret://api", MODE: "l1teral-manifest-value" },
  args: { said: tool.schema.string() }, execute: ({ said }) => [process.env.TOKEN === said, process.env.MODE, process.env.TOKEN] });
export const neighbour = tool({ description: "Says what it has", args: {}, execute: () => [process.env.TOKEN ?? null, process.env.MODE ?? null] });
"#;

#[tokio::test]
async fn a_function_gets_what_it_names_once_that_is_granted_and_its_neighbour_does_not() {
    let Scene { world, kept: _kept } = scene();
    let env = format!(r#"{{"TOKEN": "secret://api", "MODE": "{LITERAL}"}}"#);
    world.write_tool("py.py", python_file(&env));
    world.write_tool("ts.ts", TYPESCRIPT);
    world.run(&["trust", "--no-grants"]).exits(0);
    let crib = world.serve();
    for (named, neighbour) in [("named", "neighbour"), ("ts_named", "ts_neighbour")] {
        let (status, body) = crib.call(named, json!({"said": SECRET})).await;
        assert_eq!(status, 403, "{body}");
        assert!(body.to_string().contains("secret://api"), "{body}");
        let (_, outcome) = crib.call(neighbour, json!({})).await;
        assert_eq!(outcome["structured"], json!([null, null]), "{outcome}");

        // One that it does not name is refused: it would go nowhere.
        let refused = world
            .run(&["grant", neighbour, "--env", "secret://api"])
            .exits(2);
        assert!(
            refused.stderr.contains("does not name `secret://api`"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains("@tool(env="), "{}", refused.stderr);

        world
            .run(&["grant", named, "--env", "secret://api"])
            .exits(0);
        let (status, outcome) = crib.call(named, json!({"said": SECRET})).await;
        assert_eq!(status, 200, "{outcome}");
        assert_eq!(outcome["structured"][0], true, "{outcome}");
        nowhere_in("the outcome", &outcome.to_string());
        let (_, outcome) = crib.call(neighbour, json!({})).await;
        assert_eq!(outcome["structured"], json!([null, null]), "{outcome}");
        let shown = world.run(&["show", named, "--json"]).exits(0);
        nowhere_in("what is shown", &shown.stdout);
    }
    // The file is loaded, and described, without them.
    let (_, outcome) = crib.call("named", json!({"said": ""})).await;
    assert_eq!(
        outcome["structured"][3], false,
        "its own process has them: {outcome}"
    );
    nowhere_in("the log", &crib.log());
}

#[test]
fn variables_that_load_code_are_refused() {
    let Scene { world, kept: _kept } = scene();
    world.write_tool("py.py", python_file(r#"{"LD_PRELOAD": "/tmp/x.so"}"#));
    let ts = TYPESCRIPT.replace(
        "TOKEN: \"secret://api\"",
        "NODE_OPTIONS: \"--require /tmp/x.js\"",
    );
    world.write_tool("ts.ts", ts);
    world.run(&["trust"]).exits(0);
    let listed = world.run(&["errors"]);
    for (variable, name) in [("LD_PRELOAD", "named"), ("NODE_OPTIONS", "ts_named")] {
        assert!(
            listed.stderr.contains(variable) || listed.stdout.contains(variable),
            "{}{}",
            listed.stdout,
            listed.stderr
        );
        world.run(&["call", name, "{\"said\": \"\"}"]).exits(3);
    }
    world.run(&["call", "neighbour"]).exits(0);
    world.run(&["call", "ts_neighbour"]).exits(0);
}
