//! Tests of bad files' problems: each names the file, the tool, the field and the remedy, and neighbours still load.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{ErrorType, Problem, Severity, Tool};

use super::{FILE, file_of, load, tool_with, tool_with_name};

/// Loads a file in which the middle of three tools is `bad`, and gives the middle's problems.
fn problems_between_neighbours(bad: Value) -> (Vec<Arc<Tool>>, Vec<Problem>) {
    let neighbour = |name: &str| tool_with_name(name, tool_with(json!({})));
    let loaded = load(&file_of(&[neighbour("before"), bad, neighbour("after")]));
    let names: Vec<&str> = loaded.tools.iter().map(|tool| tool.name()).collect();
    assert!(
        names.contains(&"before") && names.contains(&"after"),
        "{names:?}"
    );
    (loaded.tools, loaded.problems)
}

/// Each of these fields makes the middle of three tools bad, with this message, and its neighbours load.
fn are_bad(table: &[(Value, &str)]) {
    for (changes, message) in table {
        let (tools, problems) = problems_between_neighbours(tool_with(changes.clone()));
        assert_eq!(tools.len(), 2, "{changes}");
        let found = problems
            .iter()
            .find(|problem| problem.message.contains(*message));
        let problem = found.unwrap_or_else(|| panic!("{changes}: {problems:?}"));
        assert_eq!(problem.severity, Severity::Error, "{changes}");
        assert_eq!(problem.file.as_deref(), Some(Path::new(FILE)));
        assert!(!problem.hint.is_empty(), "{changes}");
        if changes.get("name").is_none() {
            assert_eq!(problem.tool_name.as_deref(), Some("subject"), "{changes}");
        }
    }
}

#[test]
fn a_bad_tool_is_named_and_its_neighbours_load() {
    are_bad(&[
        (json!({"name": "REMOVE"}), "`tools[1].name` is missing"),
        (json!({"name": ""}), "`tools[1].name` is empty"),
        (
            json!({"name": 3}),
            "`tools[1].name` must be a string, not a number",
        ),
        (json!({"name": "a b"}), "`tools[1].name` can't be a name"),
        (json!({"name": "reload"}), "is reserved"),
        (
            json!({"name": "before"}),
            "`tools[1].name` is `before`, as an earlier tool",
        ),
        (
            json!({"description": "REMOVE"}),
            "`tools[1].description` is missing",
        ),
        (
            json!({"description": "  "}),
            "`tools[1].description` is empty",
        ),
        (
            json!({"inputSchema": "REMOVE"}),
            "`tools[1].inputSchema` is missing",
        ),
        (
            json!({"inputSchema": []}),
            "`tools[1].inputSchema` is not a usable schema",
        ),
        (
            json!({"inputSchema": {"type": "array"}}),
            "`tools[1].inputSchema` is not a usable schema: at `/type`",
        ),
        (
            json!({"inputSchema": {"properties": {"a": {"type": "strin"}}}}),
            "at `/properties/a/type`",
        ),
        (
            json!({"outputSchema": 1}),
            "`tools[1].outputSchema` is not a usable schema",
        ),
    ]);
    let (tools, problems) = problems_between_neighbours(json!("text"));
    assert_eq!((tools.len(), problems.len()), (2, 1));
    assert!(problems[0].message.contains("`tools[1]` must be an object"));
    let (_, problems) = problems_between_neighbours(tool_with(json!({"name": "before"})));
    assert_eq!(problems[0].error_type, ErrorType::NameClash);
}

#[test]
fn a_bad_command_or_file_is_named() {
    let shell = |command: &str| json!({"handler": {"type": "shell", "command": command}});
    are_bad(&[
        (
            json!({"handler": "REMOVE"}),
            "`tools[1].handler` is missing",
        ),
        (
            json!({"handler": 1}),
            "`tools[1].handler` must be an object, not a number",
        ),
        (json!({"handler": {}}), "`tools[1].handler.type` is missing"),
        (
            json!({"handler": {"type": "shel"}}),
            "`tools[1].handler.type` is `shel`",
        ),
        (
            json!({"handler": {"type": "shell"}}),
            "`tools[1].handler.command` is missing",
        ),
        (
            shell("a | b"),
            "`tools[1].handler.command` contains the shell operator `|`",
        ),
        (
            shell("{{x}} y"),
            "`tools[1].handler.command` lets the placeholder `{{x}}` choose the program",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a", "timeout": -5}}),
            "`tools[1].handler.timeout` must be a whole number",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a", "cwd": 1}}),
            "`tools[1].handler.cwd` must be a string",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a", "allowDashValues": "yes"}}),
            "`tools[1].handler.allowDashValues` must be true or false",
        ),
        (
            json!({"handler": {"type": "file-read"}}),
            "`tools[1].handler.basePath` is missing",
        ),
        (
            json!({"handler": {"type": "file-read", "basePath": "d", "maxSize": 0}}),
            "`tools[1].handler.maxSize` must be a whole number from 1",
        ),
    ]);
}

#[test]
fn a_bad_request_is_named() {
    let http = |extra: Value| {
        let mut handler = json!({"type": "http", "url": "https://a.test/"});
        handler
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"handler": handler})
    };
    are_bad(&[
        (
            json!({"handler": {"type": "http"}}),
            "`tools[1].handler.url` is missing",
        ),
        (
            http(json!({"url": "ftp://a"})),
            "`tools[1].handler.url` must begin with",
        ),
        (
            http(json!({"url": "https://{{x}}.test/"})),
            "`tools[1].handler.url` has the placeholder `{{x}}` in its host",
        ),
        (
            http(json!({"method": "TRACE"})),
            "`tools[1].handler.method` is not a method",
        ),
        (
            http(json!({"method": "get"})),
            "`tools[1].handler.method` is not a method",
        ),
        (
            http(json!({"headers": {"X": "{{x}}"}})),
            "`tools[1].handler.headers.X` holds a placeholder",
        ),
        (
            http(json!({"url": "{{x}}/", "headers": {"X": "${TOKEN}"}})),
            "`tools[1].handler.headers` takes an environment variable",
        ),
        (
            http(json!({"allowedHosts": []})),
            "`tools[1].handler.allowedHosts` is empty",
        ),
        (
            http(json!({"allowedHosts": ["https://a"]})),
            "`tools[1].handler.allowedHosts[0]` is not a host",
        ),
        (
            json!({"handler": {"type": "http", "url": "https://a.test/"}, "sandbox": {"allowNetwork": false}}),
            "`tools[1].handler.type` is `http`, but",
        ),
        (
            json!({"handler": {"type": "http", "url": "https://a.test/"}, "sandbox": {"allowedHosts": ["b.test"]}}),
            "`tools[1].handler.url` names a host",
        ),
    ]);
}

#[test]
fn bad_options_are_named() {
    are_bad(&[
        (
            json!({"timeoutMs": 1.5}),
            "`tools[1].timeoutMs` must be a whole number from 1 to 86400000, not a fraction",
        ),
        (
            json!({"timeoutMs": 0}),
            "`tools[1].timeoutMs` must be a whole number",
        ),
        (
            json!({"timeoutMs": 86_400_001}),
            "`tools[1].timeoutMs` must be a whole number",
        ),
        (
            json!({"tags": "x"}),
            "`tools[1].tags` must be a list of strings",
        ),
        (
            json!({"tags": ["x", 1]}),
            "`tools[1].tags` must be a list of strings",
        ),
        (
            json!({"aliases": ["a b"]}),
            "`tools[1].aliases[0]` can't be a name",
        ),
        (
            json!({"metadata": []}),
            "`tools[1].metadata` must be an object, not a list",
        ),
        (json!({"version": 1}), "`tools[1].version` must be a string"),
        (
            json!({"annotations": {"readOnlyHint": "yes"}}),
            "`tools[1].annotations.readOnlyHint` must be true or false",
        ),
        (
            json!({"permissions": {"canWriteFile": true}}),
            "`tools[1].permissions.canWriteFile` is not a known field",
        ),
        (
            json!({"permissions": {"required": ["fly"]}}),
            "`tools[1].permissions.required[0]` is not a known permission",
        ),
        (
            json!({"permissions": {"allowedEnvironmentVars": ["A=B"]}}),
            "`tools[1].permissions.allowedEnvironmentVars[0]`",
        ),
        (
            json!({"sandbox": {"maxMemoryMB": "64"}}),
            "`tools[1].sandbox.maxMemoryMB` must be a whole number",
        ),
        (
            json!({"sandbox": {"allowedHosts": ["*"]}}),
            "`tools[1].sandbox.allowedHosts[0]` is not a host",
        ),
        (
            json!({"sandbox": {"allowedPath": []}}),
            "`tools[1].sandbox.allowedPath` is not a known field",
        ),
    ]);
}

#[test]
fn advice_does_not_keep_a_tool_from_loading() {
    let long = "n".repeat(50);
    let table = [
        (
            json!({"outputschema": {}}),
            "`tools[1].outputschema` is not a known field",
            "did you mean `outputSchema`?",
        ),
        (
            json!({"colour": 1}),
            "`tools[1].colour` is not a known field",
            "known fields are name",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a", "tmeout": 1}}),
            "`tools[1].handler.tmeout`",
            "`timeout`",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a {{y}}"}}),
            "`tools[1].handler.command` uses `{{y}}`",
            "describe `y`",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a {{paht}}"}}),
            "uses `{{paht}}`",
            "did you mean `{{path}}`?",
        ),
        (
            json!({"handler": {"type": "shell", "command": "sh -c {{x}}"}}),
            "write the whole script",
            "name a program",
        ),
        (
            json!({"handler": {"type": "http", "url": "https://a.test/{{y}}"}}),
            "`tools[1].handler.url` uses `{{y}}`",
            "describe",
        ),
        (
            json!({"handler": {"type": "file-read", "basePath": "d"}, "inputSchema": {}}),
            "does not describe `path`",
            "add",
        ),
        (
            json!({"annotations": {"readOnly": true}}),
            "`tools[1].annotations.readOnly`",
            "readOnlyHint",
        ),
        (
            json!({"name": long}),
            "`tools[1].name` makes `mcp__toolcrib__nnn",
            "shorten the name to 49 characters",
        ),
    ];
    for (changes, message, hint) in table {
        let (tools, problems) = problems_between_neighbours(tool_with(changes.clone()));
        assert_eq!(tools.len(), 3, "{changes}: {problems:?}");
        let found = problems
            .iter()
            .find(|problem| problem.message.contains(message));
        let problem = found.unwrap_or_else(|| panic!("{changes}: {problems:?}"));
        assert_eq!(problem.severity, Severity::Warning);
        assert!(
            problem.hint.to_string().contains(hint),
            "{changes}: {}",
            problem.hint
        );
    }
    let mut file = file_of(&[tool_with(json!({}))]);
    file["verison"] = "1".into();
    file["version"] = 1.into();
    let loaded = load(&file);
    assert_eq!((loaded.tools.len(), loaded.problems.len()), (1, 2));
    assert!(
        loaded
            .problems
            .iter()
            .all(|problem| problem.severity == Severity::Warning)
    );
}

#[test]
fn all_problems_of_a_tool_are_told_at_once_but_not_without_end() {
    let bad = json!({"name": "x y", "handler": {"type": "shell", "command": "a | b"}, "tags": 1});
    let loaded = load(&file_of(&[bad]));
    assert_eq!(loaded.problems.len(), 5, "{:?}", loaded.problems);
    let loaded = load(&file_of(&vec![json!(1); 5_000]));
    assert_eq!(loaded.problems.len(), 101);
    assert!(loaded.problems[100].message.contains("4900 more problems"));
}
