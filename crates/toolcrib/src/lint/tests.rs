//! Planted faults, each found by its code; and tools that are as they should be, in which nothing is found.

use serde_json::{Value, json};

use super::*;

/// A tool in which nothing is wrong, but for what `changes` says.
fn tool(changes: Value) -> ToolView {
    let mut tool = json!({
        "name": "find-plant", "mcpName": "mcp__toolcrib__find-plant", "description": "Finds plants of the garden by their name or place",
        "source": "python", "file": "/garden/find.py", "module": "local.find", "tags": [], "annotations": {}, "status": "active",
        "healthStatus": "unknown", "stale": false, "shadows": [],
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string", "description": "A part of the name"}}},
    });
    for (key, value) in changes.as_object().unwrap() {
        tool[key] = value.clone();
    }
    serde_json::from_value(tool).unwrap()
}

fn codes(tool: &ToolView, text: Option<&str>) -> Vec<&'static str> {
    let found = lint(&Subject { tool, text });
    found.iter().map(|finding| finding.code).collect()
}

fn described(text: &str) -> Value {
    json!({"description": text})
}

/// One parameter of that schema, which is described.
fn parameter(mut schema: Value) -> Value {
    schema["description"] = "What is meant by it".into();
    json!({"inputSchema": {"type": "object", "properties": {"value": schema}}})
}

fn top(schema: Value) -> Value {
    let mut whole = json!({"type": "object", "properties": {"a": {"type": "string", "description": "The first thing"}}});
    for (key, value) in schema.as_object().unwrap() {
        whole[key] = value.clone();
    }
    json!({"inputSchema": whole})
}

/// What agents read first.
fn faults_of_words() -> Vec<(&'static str, Value)> {
    let long = "Finds plants of the garden by their name, by the place where they grow, by the month in which they flower, by the colour \
                of their leaves, and by whether they may be eaten by people or by animals of any kind that live there";
    let wordy = "Finds those plants of the garden that have a given text in their name, in whichever part of the garden they may happen to grow";
    vec![
        ("description-missing", described("")),
        ("description-missing", described("  ")),
        ("description-short", described("Find plant")),
        ("description-short", described("Finder")),
        ("description-long", described(long)),
        ("description-wordy", described(wordy)),
        (
            "description-code",
            described("Finds plants by name, as in find_plant(\"rose\")"),
        ),
        (
            "description-code",
            described("Finds plants by name: ```find rose``` does it"),
        ),
        (
            "description-code",
            described("Filters plants with plant => plant.name"),
        ),
        (
            "description-response",
            described("Finds plants and gives {\"name\": text} for each"),
        ),
        (
            "description-response",
            described("Finds plants by name. Returns a JSON list of plants"),
        ),
        (
            "description-response",
            described("Finds plants. Output: a list of names with places"),
        ),
        (
            "description-parameters",
            described("Finds plants by name. Args: query"),
        ),
        (
            "description-parameters",
            described("Finds plants by name. @param query the name"),
        ),
        (
            "description-parameters",
            described("Finds plants by name; query (string) is a part of it"),
        ),
        (
            "description-space",
            described(" Finds plants of the garden by name"),
        ),
        (
            "description-space",
            described("Finds plants  of the garden by name"),
        ),
        (
            "parameter-undescribed",
            json!({"inputSchema": {"type": "object", "properties": {"query": {"type": "string"}}}}),
        ),
        (
            "parameter-undescribed",
            parameter(json!({"type": "object", "properties": {"inner": {"type": "string"}}})),
        ),
        (
            "parameter-repeats",
            json!({"inputSchema": {"type": "object", "properties": {"plantName": {"type": "string", "description": "The plant name."}}}}),
        ),
        (
            "parameter-name",
            json!({"inputSchema": {"type": "object", "properties": {"plant name": {"type": "string", "description": "A part of it"}}}}),
        ),
        (
            "name-long",
            json!({"mcpName": format!("mcp__toolcrib__{}", "x".repeat(60))}),
        ),
    ]
}

/// What is said of arguments, of effects, and of how much there is.
fn faults_of_schemas() -> Vec<(&'static str, Value)> {
    vec![
        (
            "schema-choice-on-top",
            top(json!({"anyOf": [{"required": ["a"]}]})),
        ),
        (
            "schema-choice-on-top",
            top(json!({"allOf": [{"required": ["a"]}]})),
        ),
        (
            "schema-choice",
            parameter(json!({"anyOf": [{"type": "string"}, {"type": "null"}]})),
        ),
        (
            "schema-choice",
            parameter(json!({"oneOf": [{"type": "string"}, {"type": "integer"}]})),
        ),
        (
            "schema-type-list",
            parameter(json!({"type": ["string", "null"]})),
        ),
        (
            "schema-reference",
            parameter(json!({"$ref": "#/$defs/plant"})),
        ),
        ("schema-untyped", parameter(json!({}))),
        ("schema-items", parameter(json!({"type": "array"}))),
        (
            "schema-items",
            parameter(json!({"type": "array", "items": {}})),
        ),
    ]
}

/// The same of maps, defaults and sizes, and of effects and how much there is.
fn further_faults() -> Vec<(&'static str, Value)> {
    let many: serde_json::Map<String, Value> = (0..25)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"type": "string", "description": format!("Thing number {n}")}),
            )
        })
        .collect();
    let mut deep = json!({"type": "string", "description": "The last"});
    for _ in 0..6 {
        deep = json!({"type": "object", "description": "A level", "properties": {"inner": deep}});
    }
    vec![
        (
            "schema-tuple",
            parameter(json!({"type": "array", "prefixItems": [{"type": "string"}]})),
        ),
        (
            "schema-map",
            parameter(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        ),
        (
            "schema-map",
            top(json!({"patternProperties": {"^x": {"type": "string"}}})),
        ),
        (
            "schema-pattern",
            parameter(json!({"type": "string", "pattern": "^(?!rose)"})),
        ),
        ("schema-required", top(json!({"required": ["a", "b"]}))),
        (
            "schema-default",
            parameter(json!({"type": "integer", "default": "three"})),
        ),
        (
            "schema-default",
            parameter(json!({"type": "string", "enum": ["a", "b"], "default": "c"})),
        ),
        (
            "schema-default",
            parameter(json!({"type": "integer", "minimum": 1, "default": 0})),
        ),
        (
            "schema-deep",
            json!({"inputSchema": {"type": "object", "properties": {"outer": deep}}}),
        ),
        (
            "schema-many",
            json!({"inputSchema": {"type": "object", "properties": many}}),
        ),
        (
            "permission-contradicts",
            json!({"annotations": {"readOnlyHint": true, "destructiveHint": true}}),
        ),
        (
            "permission-contradicts",
            json!({"annotations": {"readOnlyHint": true}, "permissions": {"canWriteFiles": true, "canNetwork": false, "canExecuteCommands": false}}),
        ),
        (
            "output-unbounded",
            described("Gives all log entries of the garden's pumps"),
        ),
        (
            "output-unbounded",
            described("Dumps the entire table of plants as text"),
        ),
    ]
}

fn faults() -> Vec<(&'static str, Value)> {
    [faults_of_words(), faults_of_schemas(), further_faults()].concat()
}

/// Faults in code, with the line on which they are.
const IN_CODE: [(&str, &str, &str, usize); 13] = [
    ("model-import", "find.py", "import json\nimport openai\n", 2),
    (
        "model-import",
        "find.py",
        "from anthropic import Anthropic\n",
        1,
    ),
    ("model-import", "find.py", "import json, litellm\n", 1),
    (
        "model-import",
        "find.ts",
        "import OpenAI from \"openai\";\n",
        1,
    ),
    (
        "model-import",
        "find.ts",
        "// a comment\nimport { generateText } from 'ai';\n",
        2,
    ),
    (
        "model-import",
        "find.mjs",
        "const sdk = require('@anthropic-ai/sdk');\n",
        1,
    ),
    ("permission-network", "find.py", "\nimport requests\n", 2),
    (
        "permission-network",
        "find.ts",
        "const page = await fetch(url);\n",
        1,
    ),
    ("permission-exec", "find.py", "import subprocess\n", 1),
    (
        "permission-exec",
        "find.ts",
        "import { spawn } from \"node:child_process\";\n",
        1,
    ),
    (
        "permission-write",
        "find.py",
        "with open(path, \"w\") as file:\n",
        1,
    ),
    (
        "permission-write",
        "find.py",
        "x = 1\nPath(p).write_text(x)\n",
        2,
    ),
    (
        "permission-write",
        "find.ts",
        "await writeFile(path, text);\n",
        1,
    ),
];

#[test]
fn every_planted_fault_is_found_and_nothing_else() {
    assert!(faults().len() + IN_CODE.len() >= 40);
    for (code, changes) in faults() {
        assert_eq!(codes(&tool(changes.clone()), None), [code], "{changes}");
    }
    for (code, file, text, line) in IN_CODE {
        let tool = tool(json!({"file": format!("/garden/{file}")}));
        let found = lint(&Subject {
            tool: &tool,
            text: Some(text),
        });
        let told: Vec<_> = found
            .iter()
            .map(|finding| (finding.code, finding.line))
            .collect();
        assert_eq!(told, [(code, Some(line))], "{text}");
    }
    for check in CHECKS {
        let planted = faults().iter().any(|(code, _)| *code == check.code)
            || IN_CODE.iter().any(|(code, ..)| *code == check.code);
        assert!(planted, "nobody plants `{}`", check.code);
    }
}

#[test]
fn a_tool_as_it_should_be_has_no_findings() {
    assert_eq!(codes(&tool(json!({})), None), Vec::<&str>::new());
    let declared = json!({"permissions": {"canWriteFiles": true, "canNetwork": true, "canExecuteCommands": true}});
    let text =
        "import requests, subprocess\n# import openai\nfrom airport import gates\nopen(p, \"w\")\n";
    assert_eq!(codes(&tool(declared), Some(text)), Vec::<&str>::new());
    for fine in [
        parameter(json!({"type": "string", "enum": ["a"], "default": "a"})),
        parameter(json!({"enum": ["a", 1]})),
        parameter(json!({"type": "array", "items": {"type": "string"}})),
        parameter(json!({"type": "object", "additionalProperties": false, "properties": {}})),
        described("Lists all files of a folder, `limit` at most"),
    ] {
        let mut fine = tool(fine);
        if fine.description.contains("limit") {
            fine.input_schema = json!({"type": "object", "properties": {"limit": {"type": "integer", "description": "How many"}}});
        }
        assert_eq!(
            codes(&fine, None),
            Vec::<&str>::new(),
            "{}",
            fine.description
        );
    }
}

#[test]
fn a_finding_says_the_line_of_its_tool() {
    let text = "{\n \"tools\": [\n  {\"name\": \"other\", \"description\": \"x\"},\n  {\n   \"name\": \"find-plant\",\n   \"description\": \"Find plant\"\n  }\n ]\n}";
    let tool = tool(json!({"description": "Find plant", "file": "/garden/find.json"}));
    let found = lint(&Subject {
        tool: &tool,
        text: Some(text),
    });
    assert_eq!(
        (found[0].code, found[0].line),
        ("description-short", Some(6))
    );
}

#[test]
fn a_fix_changes_the_one_text_that_is_meant_and_nothing_else() {
    let text = "{\"name\": \"find-plant\",   \"description\": \" Finds  plants \", \"n\": 1.0}";
    let view = tool(json!({"description": " Finds  plants ", "file": "/garden/find.json"}));
    let found = lint(&Subject {
        tool: &view,
        text: Some(text),
    });
    let fixed = fix(text, &[(&view, &found)]).unwrap();
    assert_eq!(fixed.text, text.replace(" Finds  plants ", "Finds plants"));
    assert_eq!(fixed.settled, 1);
    let twice = format!("[{text}, {text}]");
    assert_eq!(fix(&twice, &[(&view, &found)]), None);
}
