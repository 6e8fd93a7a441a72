//! Tests of loading: a good file, every kind of bad one, what needs a grant, and that no bytes make it panic.

mod problems;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{Access, ErrorType, Scope, Severity, SourceKind, Status};

use crate::{Loaded, Origin, Place, plugin, testing};

const FILE: &str = "tools/mine.json";

fn load_in(text: &[u8], place: &Arc<Place>, access: Access) -> Loaded {
    let origin = Origin {
        file: Path::new(FILE),
        scope: Scope::Local,
        access,
        alone: false,
    };
    plugin::load(text, &origin, place)
}

fn load_text(text: &[u8]) -> Loaded {
    load_in(text, &testing::place(None), Access::Open)
}

fn load(value: &Value) -> Loaded {
    load_text(value.to_string().as_bytes())
}

fn tool_with(changes: Value) -> Value {
    let mut tool = json!({
        "name": "subject", "description": "Does it",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}, "path": {"type": "string"}}},
        "handler": {"type": "shell", "command": "echo {{x}}"},
    });
    for (key, value) in changes.as_object().unwrap() {
        match value {
            Value::String(text) if text == "REMOVE" => tool.as_object_mut().unwrap().remove(key),
            other => tool
                .as_object_mut()
                .unwrap()
                .insert(key.clone(), other.clone()),
        };
    }
    tool
}

fn file_of(tools: &[Value]) -> Value {
    json!({"name": "mine", "tools": tools})
}

fn example() -> Value {
    json!({
        "name": "mine", "version": "2.1.0", "description": "Some tools",
        "tools": [
            {
                "name": "find-words", "description": "Find words in files",
                "inputSchema": {"type": "object", "properties": {
                    "pattern": {"type": "string"}, "directory": {"type": "string"}}},
                "handler": {"type": "shell", "command": "grep -rn '{{pattern}}' {{directory}} || true", "timeout": 10000},
            },
            {
                "name": "check", "description": "Check a server", "tags": ["net"], "aliases": ["ping"], "version": "3",
                "inputSchema": {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]},
                "outputSchema": {"type": "object"}, "metadata": {"a": 1}, "timeoutMs": 700,
                "annotations": {"title": "Check", "readOnlyHint": true},
                "permissions": {"canNetwork": true, "required": ["read"]},
                "sandbox": {"maxMemoryMB": 64, "maxCpuPercent": 50, "maxExecutionMs": 900},
                "handler": {"type": "http", "url": "{{url}}/health", "method": "GET", "timeout": 5000},
            },
            {
                "name": "doc", "description": "Read a document",
                "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
                "handler": {"type": "file-read", "basePath": "docs", "maxSize": 1000},
            },
        ],
    })
}

#[test]
fn a_good_file_gives_its_tools() {
    let project = tempfile::tempdir().unwrap();
    let text = example().to_string();
    let loaded = load_in(
        text.as_bytes(),
        &testing::place(Some(project.path())),
        Access::Open,
    );
    assert_eq!(loaded.problems, []);
    let [find, check, doc] = loaded.tools.as_slice() else {
        panic!("{:?}", loaded.tools)
    };
    assert_eq!(
        (find.name(), check.name(), doc.name()),
        ("find-words", "check", "doc")
    );
    for tool in [find, check, doc] {
        assert_eq!(
            (tool.source, tool.scope, tool.status()),
            (SourceKind::Plugin, Some(Scope::Local), Status::Active)
        );
        assert_eq!(
            (tool.module.as_str(), tool.plugin_name.as_deref()),
            ("plugin.mine", Some("mine"))
        );
        assert_eq!(tool.file.as_deref(), Some(Path::new(FILE)));
        assert_eq!(tool.hash.len(), 64);
    }
    assert_ne!(find.hash, check.hash);
    assert_eq!(find.spec.version.as_deref(), Some("2.1.0"));
    assert_eq!(find.spec.timeout, Some(Duration::from_secs(10)));
    assert_eq!(check.spec.version.as_deref(), Some("3"));
    assert_eq!(check.spec.timeout, Some(Duration::from_millis(700)));
    assert_eq!(
        (check.spec.tags.as_slice(), check.spec.aliases.as_slice()),
        (["net".into()].as_slice(), ["ping".into()].as_slice())
    );
    assert_eq!(check.spec.annotations.read_only_hint, Some(true));
    assert!(
        check.spec.permissions.can_read_files == Some(true)
            && check.spec.permissions.required.is_empty()
    );
    assert_eq!(check.spec.sandbox.max_memory_mb, Some(64));
    assert!(check.spec.output_schema.is_some() && check.spec.metadata["a"] == 1);
    assert_eq!(doc.spec.timeout, None);

    let again = load_in(
        text.as_bytes(),
        &testing::place(Some(project.path())),
        Access::Open,
    );
    assert!(again.tools[0].same_as(find));
}

#[test]
fn default_timeouts_are_the_handlers() {
    let http = tool_with(json!({"handler": {"type": "http", "url": "https://a.test/"}}));
    let loaded = load(&file_of(&[
        tool_with(json!({})),
        tool_with_name("other", http),
    ]));
    assert_eq!(loaded.tools[0].spec.timeout, Some(Duration::from_secs(30)));
    assert_eq!(loaded.tools[1].spec.timeout, Some(Duration::from_secs(10)));
}

fn tool_with_name(name: &str, mut tool: Value) -> Value {
    tool["name"] = name.into();
    tool
}

#[test]
fn json_that_is_no_plugin_is_no_problem() {
    for text in [
        "{}",
        r#"{"compilerOptions": {}}"#,
        r#"{"name": "x", "tools": []}"#,
        r#"{"tools": []}"#,
        r#"{"tools": null}"#,
    ] {
        let loaded = load_text(text.as_bytes());
        assert!(
            loaded.tools.is_empty() && loaded.problems.is_empty(),
            "{text}"
        );
    }
    let mut marked = "\u{feff}".to_owned();
    marked.push_str(&example().to_string());
    assert_eq!(load_text(marked.as_bytes()).tools.len(), 3);
}

#[test]
fn files_that_cant_be_read_say_where() {
    let deep = format!("{{\"tools\": {}1{}}}", "[".repeat(500), "]".repeat(500));
    let large = " ".repeat(plugin::MAX_FILE + 1);
    type Row<'a> = (&'a [u8], ErrorType, &'a str, Option<(u32, u32)>);
    let table: &[Row] = &[
        (b"", ErrorType::Syntax, "empty", Some((1, 1))),
        (
            b"{\n  \"name\": \"x\",\n  oops\n}",
            ErrorType::Syntax,
            "not valid JSON",
            Some((3, 3)),
        ),
        (
            b"{\"name\": \"x\",}",
            ErrorType::Syntax,
            "trailing comma",
            Some((1, 14)),
        ),
        (
            b"{\n \"a\": \"\xFF\"}",
            ErrorType::Syntax,
            "not UTF-8",
            Some((2, 8)),
        ),
        (
            deep.as_bytes(),
            ErrorType::Syntax,
            "nested too deeply",
            None,
        ),
        (
            large.as_bytes(),
            ErrorType::Validation,
            "more than the 1048576",
            None,
        ),
        (b"[1]", ErrorType::Validation, "not an object", None),
        (b"\"x\"", ErrorType::Validation, "not an object", None),
        (
            br#"{"name": "x", "tools": {}}"#,
            ErrorType::Validation,
            "`tools` must be a list",
            None,
        ),
        (
            br#"{"name": 1, "tools": [1]}"#,
            ErrorType::Validation,
            "`name` must be a string, not a number",
            None,
        ),
    ];
    for (text, kind, message, place) in table {
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        let loaded = load_text(text);
        assert!(loaded.tools.is_empty());
        let problem = &loaded.problems[0];
        assert_eq!(
            (problem.error_type, problem.severity),
            (*kind, Severity::Error),
            "{shown}"
        );
        assert!(
            problem.message.contains(message),
            "{shown}: {}",
            problem.message
        );
        assert!(!problem.hint.is_empty() && problem.file.as_deref() == Some(Path::new(FILE)));
        if let Some((line, column)) = place {
            assert_eq!(
                (problem.line, problem.column),
                (Some(*line), Some(*column)),
                "{shown}"
            );
        }
    }
}

fn needs(project: &Path, changes: Value) -> Vec<String> {
    let text = file_of(&[tool_with(changes)]).to_string();
    let loaded = load_in(
        text.as_bytes(),
        &testing::place(Some(project)),
        Access::Open,
    );
    match &loaded.tools[0].access {
        Access::Open => Vec::new(),
        Access::NeedsGrant(ungranted) => ungranted.needs.clone(),
        Access::Untrusted { .. } | Access::Off(_) => panic!("nobody said so"),
    }
}

#[test]
fn what_goes_beyond_trust_needs_a_grant() {
    let project = tempfile::tempdir().unwrap();
    let http = json!({"type": "http", "url": "https://a.test/"});
    let open = [
        json!({}),
        json!({"permissions": {"canReadFiles": true}}),
        json!({"permissions": {"allowedEnvironmentVars": ["PATH"]}}),
        json!({"permissions": {"canNetwork": true}, "handler": http}),
        json!({"sandbox": {"allowedPaths": ["src", "."]}}),
        json!({"handler": {"type": "file-read", "basePath": "missing"}}),
        json!({"handler": {"type": "shell", "command": "a", "cwd": "."}}),
        json!({"handler": {"type": "http", "url": "https://a.test/", "headers": {"X": "${LANG}"}}}),
    ];
    for changes in open {
        assert_eq!(
            needs(project.path(), changes.clone()),
            Vec::<String>::new(),
            "{changes}"
        );
    }
    let table = [
        (json!({"permissions": {"canWriteFiles": true}}), "`--write "),
        (
            json!({"permissions": {"required": ["network"]}}),
            "(`--net`)",
        ),
        (
            json!({"permissions": {"canExecuteCommands": true}}),
            "further programs (`--exec`)",
        ),
        (
            json!({"permissions": {"allowedEnvironmentVars": ["API_TOKEN"]}}),
            "`API_TOKEN`",
        ),
        (
            json!({"sandbox": {"allowedPaths": ["/"]}}),
            "read `/` (`--read /`)",
        ),
        (
            json!({"handler": {"type": "file-read", "basePath": ".."}}),
            "(`--read /",
        ),
        (
            json!({"handler": {"type": "shell", "command": "a", "cwd": "/"}}),
            "read `/`",
        ),
        (
            json!({"handler": {"type": "http", "url": "https://a.test/", "headers": {"X": "${API_TOKEN}"}}}),
            "`API_TOKEN`",
        ),
    ];
    for (changes, need) in table {
        let needs = needs(project.path(), changes.clone());
        assert_eq!(needs.len(), 1, "{changes}: {needs:?}");
        assert!(needs[0].contains(need), "{needs:?}");
    }
}

#[test]
fn an_untrusted_file_is_read_and_nothing_else() {
    let untrusted = Access::untrusted("p");
    let text = file_of(&[tool_with(json!({"permissions": {"canWriteFiles": true}}))]).to_string();
    let loaded = load_in(
        text.as_bytes(),
        &testing::place(Some(Path::new("/nonexistent"))),
        untrusted.clone(),
    );
    assert_eq!(loaded.tools[0].access, untrusted);
    assert_eq!(loaded.tools[0].status(), Status::Untrusted);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        load_text(&bytes);
    }

    #[test]
    fn no_change_of_a_good_file_makes_it_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>(), 0..3_u8), 1..6)
    ) {
        let mut text = example().to_string().into_bytes();
        for (index, byte, what) in changes {
            let at = index.index(text.len());
            match what {
                0 => text[at] = byte,
                1 => { text.remove(at); }
                _ => text.insert(at, byte),
            }
        }
        let loaded = load_text(&text);
        prop_assert!(loaded.tools.len() <= 3);
    }

    #[test]
    fn no_command_or_url_makes_it_panic(text in "[a-z {}'\"\\\\$|:/.@?#%\\[\\]-]{0,40}", value in "\\PC{0,20}") {
        for handler in [json!({"type": "shell", "command": text}), json!({"type": "http", "url": text, "allowedHosts": [text]})] {
            load(&file_of(&[tool_with(json!({"handler": handler}))]));
        }
        if let Ok(template) = super::template::Template::parse(&text, super::template::Dashes::Allowed) {
            let names: Vec<String> = template.slots().map(str::to_owned).collect();
            let arguments = names.into_iter().map(|name| (name, Value::from(value.as_str()))).collect();
            prop_assert!(template.filled(&arguments).is_ok());
        }
        if let Ok(endpoint) = super::endpoint::Endpoint::parse(&text, false) {
            let names: Vec<String> = endpoint.names().map(str::to_owned).collect();
            let arguments = names.into_iter().map(|name| (name, Value::from(value.as_str()))).collect();
            if let (Ok(url), Some(host)) = (endpoint.build(&arguments), endpoint.literal_host()) {
                prop_assert_eq!(super::reach::host_of(&url), Some(host));
            }
        }
    }
}
