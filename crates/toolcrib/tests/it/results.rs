//! What a tool's output schema promises is answered: data of every type, whole, in every revision; and what does not fit
//! is a failed call that says where.

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, stateless, stateless_call};
use crate::support::plugin::file;
use crate::support::{World, shell_tool};

/// Tools that give data of every type, with a schema each, and one that declares none.
pub const SHAPES: &str = r#"
from toolcrib import tool

def given(kind, **more):
    return {"type": kind, **more}

@tool(output_schema=given("integer"))
def an_int():
    """Give an integer."""
    return 42

@tool(output_schema=given("array", items=given("integer")))
def a_list():
    """Give a list."""
    return [1, 2, 3]

@tool(output_schema=given("null"))
def a_null():
    """Give nothing."""
    return None

@tool(output_schema=given("string"))
def a_string():
    """Give a text that could be read as a number."""
    return "42"

@tool(output_schema=given("boolean"))
def a_bool():
    """Give a truth."""
    return True

@tool(output_schema=given("object", properties={"a": given("object", properties={"b": given("array")})}, required=["a"]))
def nested():
    """Give an object in an object."""
    return {"a": {"b": [{"c": None}, [], 1.5]}}

@tool(output_schema=given("object", properties={"rows": given("array", items=given("string"))}, required=["rows"]))
def large():
    """Give more than a text may have."""
    return {"rows": ["a row of text %05d" % at for at in range(9_000)]}

@tool
def undeclared() -> int:
    """Give an integer that nobody was promised."""
    return 42
"#;

/// What each of them gives.
pub fn shapes() -> Vec<(&'static str, Value)> {
    let rows: Vec<String> = (0..9_000)
        .map(|at| format!("a row of text {at:05}"))
        .collect();
    vec![
        ("an_int", json!(42)),
        ("a_list", json!([1, 2, 3])),
        ("a_null", Value::Null),
        ("a_string", json!("42")),
        ("a_bool", json!(true)),
        ("nested", json!({"a": {"b": [{"c": null}, [], 1.5]}})),
        ("large", json!({"rows": rows})),
        ("undeclared", json!(42)),
    ]
}

/// As revisions before 2026-07-28 have it.
pub fn wrapped(data: &Value) -> Value {
    match data {
        Value::Object(_) => data.clone(),
        other => json!({"result": other}),
    }
}

fn schema_of(list: &Value, tool: &str) -> Value {
    let tools = list["result"]["tools"].as_array().unwrap();
    let found = tools.iter().find(|one| one["name"] == tool).unwrap();
    found["outputSchema"].clone()
}

#[track_caller]
fn fits(schema: &Value, data: &Value) {
    if !schema.is_null() {
        let parsed = toolcrib_core::Schema::parse_result(schema.clone()).unwrap();
        assert_eq!(parsed.violations(data), [], "{schema} {data}");
    }
}

#[test]
fn data_of_every_type_is_answered_as_it_is_listed() {
    let world = World::trusted();
    world.write_tool("shapes.py", SHAPES);
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    let older = piped.ask(&crate::support::mcp::request(1, "tools/list", json!({})));
    let newest = piped.ask(&stateless(2, "tools/list", json!({})));
    for (at, (tool, data)) in (10..).step_by(2).zip(shapes()) {
        let result = piped.ask(&call(at, tool, json!({})))["result"].take();
        assert_eq!(result.get("isError"), None, "{result}");
        assert_eq!(result["structuredContent"], wrapped(&data), "{tool}");
        let schema = schema_of(&older, tool);
        fits(&schema, &result["structuredContent"]);
        let kind = schema.get("type");
        assert!(kind.is_none_or(|kind| kind == "object"), "{schema}");

        let result = piped.ask(&stateless_call(at + 1, tool, json!({})))["result"].take();
        assert_eq!(result["structuredContent"], data, "{tool}");
        assert!(result.get("structuredContent").is_some(), "{tool}");
        fits(&schema_of(&newest, tool), &result["structuredContent"]);
        let text = result["content"][0]["text"].as_str().unwrap();
        match tool {
            "large" => {
                assert!(text.len() <= 50_000 && text.starts_with("[truncated: output exceeded"));
                assert!(text.contains(r#"{"id": ""#), "{text}");
            }
            "a_string" => assert_eq!(text, r#""42""#),
            _ => assert_eq!(serde_json::from_str::<Value>(text).unwrap(), data, "{tool}"),
        }
    }
}

/// A plugin's tool that prints a file, with this schema.
fn printing(name: &str, path: &str, schema: &Value) -> Value {
    let mut tool: Value =
        serde_json::from_str(&shell_tool(name, &format!("cat {path}"), json!({}))).unwrap();
    let mut tool = tool["tools"][0].take();
    tool["outputSchema"] = schema.clone();
    tool
}

#[tokio::test]
async fn what_a_program_prints_is_read_as_the_data_that_it_promises() {
    let world = World::trusted();
    let rows: Vec<String> = (0..9_000).map(|at| format!("row {at}")).collect();
    world.write("rows.json", json!(rows).to_string());
    world.write("number", "42\n");
    world.write("words", "no number\n");
    let much: Vec<String> = (0..90_000).map(|at| format!("a longer row {at}")).collect();
    world.write("much.json", json!(much).to_string());
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let number = json!({"type": "integer", "minimum": 1});
    let tools = [
        printing("rows", "rows.json", &texts),
        printing("number", "number", &number),
        printing("words", "words", &number),
        printing(
            "wrong",
            "rows.json",
            &json!({"type": "array", "items": {"type": "integer"}}),
        ),
        printing("much", "much.json", &texts),
    ];
    world.write_tool("print.json", file(&tools));
    let crib = world.serve();
    let session = crib.session("2025-11-25").await;
    let ask = async |tool: &str| session.ask(&call(1, tool, json!({}))).await["result"].take();

    let result = ask("number").await;
    assert_eq!(result["structuredContent"], json!({"result": 42}));
    // More than is held in memory, and more than a text may have.
    let result = ask("rows").await;
    assert_eq!(result["structuredContent"], json!({"result": rows}));
    assert_eq!(result.get("isError"), None);
    for (tool, reason) in [
        ("words", "is not JSON, which its `outputSchema` asks for"),
        ("wrong", "does not fit its `outputSchema`: /0: "),
        ("much", "is handed over whole up to 1048576 bytes"),
    ] {
        let result = ask(tool).await;
        assert_eq!(result["isError"], true, "{tool}");
        assert_eq!(result.get("structuredContent"), None, "{tool}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let start = format!("`{tool}` gave a result that ");
        assert!(text.starts_with(&start) && text.contains(reason), "{text}");
        if tool == "much" {
            assert!(text.contains("`read-output`"), "{}", &text[..600]);
        }
    }
    let ran = world.run(&["call", "wrong"]).exits(1);
    assert!(
        ran.stdout.contains("/0: ") || ran.stderr.contains("/0: "),
        "{ran:?}"
    );
}
