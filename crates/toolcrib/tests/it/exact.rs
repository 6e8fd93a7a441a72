//! What passes through the crib stays as it is written: arguments, results, and results in MCP's own form.

use serde_json::{Value, json};

use crate::support::mcp::{Piped, STATELESS, call, names, stateless, stateless_call};
use crate::support::tool::python;
use crate::support::{TestCrib, World};

/// Larger than any number of 64 bits.
const LARGE: &str = "123456789012345678901234567890";

/// A result in MCP's own form with every kind of block, and with fields that nobody knows.
fn own_form() -> Value {
    json!({
        "content": [
            {"type": "text", "text": "one", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"a/b": [1]}},
            {"type": "image", "data": "aGk=", "mimeType": "image/png", "annotations": {"priority": 1}},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav", "later": {"x": null}},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 3, "icons": [{"src": "data:,"}]},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b", "_meta": {"k": 1}}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGk="}, "annotations": {"audience": []}},
            {"type": "later", "of": {"another": "kind"}},
            {"type": "text", "text": "two"},
        ],
        "structuredContent": {"z": 1, "a": ["x"]},
        "isError": false,
        "_meta": {"example.com/run": {"id": 7}},
    })
}

fn icons() -> Value {
    json!([{"src": "data:image/png;base64,aGk=", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}])
}

/// The same tool in three languages, and one that says what it was sent.
fn world() -> World {
    let world = World::trusted();
    let (result, icons) = (own_form(), icons());
    let about = json!({
        "name": "program", "title": "A title", "description": "Gives all", "command": python(), "args": ["./tool.py"],
        "inputSchema": {"type": "object", "properties": {"n": {}, "times": {"default": 1}}},
        "icons": icons, "_meta": {"a/b": {"c": 1.5}},
    });
    let folder = world.tools_folder().join("program");
    world.write(folder.join("tool.json"), about.to_string());
    let program = format!(
        r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    id, said = request["id"], request["params"].get("input", {{}})
    if "n" in said:
        raw = line[line.index('"input":') + 8:line.index(',"context"')]
        result = '{{"said": %s, "half": 1.50, "large": {LARGE}}}' % json.dumps(raw)
    else:
        result = json.dumps(json.loads({result:?}))
    print('{{"jsonrpc": "2.0", "id": "%s", "result": %s}}' % (id, result), flush=True)
"#,
        result = result.to_string()
    );
    world.write(folder.join("tool.py"), program);
    let script = format!(
        r#"
import json
from toolcrib import tool

@tool(title="A title", icons=json.loads({icons:?}), meta={{"a/b": {{"c": 1.5}}}})
def script(n: int = 0) -> dict:
    """Gives all."""
    if n:
        return {{"next": n + 1}}
    return json.loads({result:?})
"#,
        icons = icons.to_string(),
        result = result.to_string()
    );
    world.write_tool("script.py", script);
    let typed = format!(
        r#"
import {{ tool }} from "@toolcrib/plugin";
export default tool({{
  description: "Gives all", args: {{}}, title: "A title", icons: {icons}, _meta: {{ "a/b": {{ c: 1.5 }} }},
  execute: async () => ({result}),
}});
"#
    );
    world.write_tool("typed.ts", typed);
    world
}

/// The text of the answer to a call whose arguments are this text.
async fn call_text(crib: &TestCrib, tool: &str, arguments: &str) -> String {
    let message = stateless_call(1, tool, json!("ARGUMENTS")).to_string();
    let message = message.replace("\"ARGUMENTS\"", arguments);
    let headers = [
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    let answer = crib.post_mcp(&headers, message).await;
    answer.response.text().await.unwrap()
}

#[tokio::test]
async fn a_result_in_mcps_own_form_arrives_as_every_language_gave_it() {
    let world = world();
    let crib = world.serve();
    let session = crib.session("2025-06-18").await;
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    let list = stateless(1, "tools/list", json!({}));
    let listed = crib.post_stateless(&list).await.answer().await;
    for tool in ["program", "script", "typed"] {
        let at = names(&listed).iter().position(|name| *name == tool);
        let about = &listed["result"]["tools"][at.unwrap()];
        assert_eq!(about["icons"], icons(), "{tool}");
        assert_eq!(about["_meta"], json!({"a/b": {"c": 1.5}}), "{tool}");
        assert_eq!(about["title"], "A title", "{tool}");

        let answer = call_text(&crib, tool, "{}").await;
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        let result = answer["result"].as_object_mut().unwrap();
        assert_eq!(result.remove("resultType"), Some(json!("complete")));
        assert_eq!(answer["result"], own_form(), "{tool}");
        let asked = call(2, tool, json!({}));
        assert_eq!(session.ask(&asked).await["result"], own_form(), "{tool}");
        assert_eq!(piped.ask(&asked)["result"], own_form(), "{tool}");

        let (status, outcome) = crib.call(tool, json!({})).await;
        assert_eq!((status, &outcome["output"]), (200, &json!("one\ntwo")));
        assert_eq!(outcome["content"], own_form()["content"], "{tool}");
        assert_eq!(outcome["_meta"], own_form()["_meta"], "{tool}");
        assert_eq!(outcome["structured"], own_form()["structuredContent"]);
    }
    let shown = world.run(&["call", "script"]).exits(0);
    assert_eq!(shown.stdout.trim_end(), "one\ntwo");
    for told in [
        "image (image/png)",
        "link (file:///a)",
        "resource (file:///b)",
        "content (later)",
    ] {
        assert!(shown.stderr.contains(told), "{told}: {}", shown.stderr);
    }
}

#[tokio::test]
async fn numbers_keys_and_escapes_stay_as_they_are_written() {
    let world = world();
    let crib = world.serve();
    let sent = format!(r#"{{"z": 1.0, "n": {LARGE}, "e": "\u0041"}}"#);
    // The default that is filled in is all that changes.
    let said = format!(r#"{{"z": 1.0, "n": {LARGE}, "e": "\u0041","times":1}}"#);
    let url = format!("{}/api/tools/program/call", crib.url);
    let body = format!(r#"{{"arguments": {sent}}}"#);
    let over_rest = crib.client.post(url).body(body).send().await.unwrap();
    let over_rest = over_rest.text().await.unwrap();
    let over_cli = world.run(&["call", "program", &sent, "--json"]).exits(0);
    let alone = world.run(&["call", "program", &sent, "--json", "--standalone"]);
    let over_mcp = call_text(&crib, "program", &sent).await;
    for (answer, at) in [
        (over_rest, "/structured/said"),
        (over_cli.stdout, "/structured/said"),
        (alone.exits(0).stdout, "/structured/said"),
        (over_mcp, "/result/structuredContent/said"),
    ] {
        assert!(
            answer.contains("1.50") && answer.contains(LARGE),
            "{answer}"
        );
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(answer.pointer(at), Some(&json!(said)), "{answer}");
    }
    let next = call_text(&crib, "script", &format!(r#"{{"n": {LARGE}}}"#)).await;
    assert!(next.contains("123456789012345678901234567891"), "{next}");
}

#[tokio::test]
async fn a_long_text_of_several_blocks_is_cut_and_kept() {
    let world = World::trusted();
    let long = r#"
from toolcrib import tool

@tool
def long() -> dict:
    """Gives much."""
    text = "0123456789\n" * 1500
    picture = {"type": "image", "data": b"hi", "mimeType": "image/png"}
    return {"content": [{"type": "text", "text": text, "_meta": {"k": 1}}, picture, {"type": "text", "text": text}]}
"#;
    world.write_tool("long.py", long);
    let crib = world.serve();
    let answer = crib
        .post_stateless(&stateless_call(1, "long", json!({})))
        .await;
    let answer = answer.answer().await;
    let result = &answer["result"];
    let blocks = result["content"].as_array().unwrap();
    let kinds: Vec<&str> = blocks
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "text", "image", "text", "text"]);
    assert_eq!(blocks[1]["_meta"], json!({"k": 1}));
    let notice = blocks[0]["text"].as_str().unwrap();
    assert!(notice.starts_with("[truncated: "), "{notice}");
    assert_eq!(blocks[4]["text"], notice);
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let lines: usize = texts.map(|text| text.lines().count()).sum();
    assert!(lines <= 2_000, "{lines}");
    let id = result["_meta"]["toolcrib/metadata"]["outputId"]
        .as_str()
        .unwrap();
    let url = format!("{}/api/outputs/{id}", crib.url);
    let kept = crib
        .client
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert_eq!(
        kept.lines().filter(|line| line.starts_with('0')).count(),
        3_000
    );
}
