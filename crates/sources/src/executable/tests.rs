//! What `tool.json` may say, and what is reported when it says something else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{Access, ErrorType, Problem, Scope, Severity, Tool};

use super::{Entry, read};
use crate::description::Description;
use crate::testing::place;
use crate::{Loaded, Origin};

const FOLDER: &str = "/p/tools/mine";

/// Reads a folder `mine` with this manifest, and maybe a program of its own.
fn read_text(text: &[u8], program: Option<&str>, access: Access) -> Description {
    let file = Path::new(FOLDER).join("tool.json");
    let program = program.map(|name| Path::new(FOLDER).join(name));
    let entry = Entry {
        name: "mine",
        hash: "h",
        manifest: Some(text),
        program: program.as_deref(),
        is_folder: true,
    };
    let origin = Origin {
        file: &file,
        scope: Scope::Local,
        access,
        alone: false,
    };
    read(&entry, &origin, &place(Some(Path::new("/p"))))
}

/// A manifest that says all, with these fields on top; `null` takes one away.
fn manifest(fields: Value) -> Value {
    let mut all = json!({
        "name": "mine",
        "description": "A tool of a test",
        "command": "python3",
        "inputSchema": {"type": "object"},
    });
    let map = all.as_object_mut().unwrap();
    map.extend(fields.as_object().unwrap().clone());
    map.retain(|_, value| !value.is_null());
    all
}

fn load(fields: Value) -> Loaded {
    let text = manifest(fields).to_string();
    match read_text(text.as_bytes(), None, Access::Open) {
        Description::Known(loaded) => loaded,
        _ => panic!("the manifest says all"),
    }
}

fn tool(fields: Value) -> Arc<Tool> {
    let loaded = load(fields);
    assert_eq!(loaded.problems, []);
    loaded.tools[0].clone()
}

fn problem(fields: &Value) -> Problem {
    let loaded = load(fields.clone());
    assert!(loaded.tools.is_empty(), "{fields}");
    assert_eq!(loaded.problems.len(), 1, "{fields}: {:?}", loaded.problems);
    loaded.problems[0].clone()
}

#[test]
fn a_bad_field_is_named_with_its_remedy() {
    for (fields, told) in [
        (json!({"command": null}), "`command` is missing"),
        (json!({"command": ""}), "`command` is empty"),
        (json!({"command": ["a"]}), "`command` must be a string"),
        (json!({"args": "a"}), "`args`"),
        (json!({"args": [1]}), "`args[0]`"),
        (json!({"workingDir": 1}), "`workingDir` must be a string"),
        (json!({"env": []}), "`env` must be an object"),
        (json!({"env": {"A": 1}}), "`env.A` must be a string"),
        (json!({"env": {"A": "x\u{0}"}}), "`env.A`"),
        (json!({"env": {"A=B": "x"}}), "can't be a variable's name"),
        (json!({"env": {"": "x"}}), "can't be a variable's name"),
        (
            json!({"env": {"LD_PRELOAD": "./x.so"}}),
            "`env.LD_PRELOAD` can't be set by a tool",
        ),
        (
            json!({"env": {"NODE_OPTIONS": "secret://x"}}),
            "`env.NODE_OPTIONS` can't be set by a tool",
        ),
        (
            json!({"env": {"PATH": "bin:/usr/bin"}}),
            "`env.PATH` has `bin`",
        ),
        (json!({"maxRetries": -1}), "`maxRetries`"),
        (json!({"maxRetries": 11}), "`maxRetries`"),
        (json!({"retryDelayMs": "1s"}), "`retryDelayMs`"),
        (json!({"retryDelayMs": 60_001}), "`retryDelayMs`"),
        (json!({"timeoutMs": 0}), "`timeoutMs`"),
        (json!({"poolSize": 0}), "`poolSize`"),
        (json!({"poolSize": 65}), "`poolSize`"),
        (json!({"poolSize": 1.5}), "`poolSize`"),
        (json!({"keepAlive": "no"}), "`keepAlive`"),
        (json!({"name": "a b"}), "`name` can't be a name"),
        (json!({"description": "  "}), "`description` is empty"),
        (json!({"inputSchema": {"type": "string"}}), "`inputSchema"),
        (json!({"annotations": 1}), "`annotations`"),
    ] {
        let problem = problem(&fields);
        assert_eq!(problem.severity, Severity::Error);
        assert_eq!(problem.error_type, ErrorType::Validation, "{fields}");
        assert!(problem.message.contains(told), "{fields}: {problem:?}");
        assert!(!problem.hint.is_empty(), "{fields}: {problem:?}");
        assert_eq!(problem.file, Some(PathBuf::from(FOLDER).join("tool.json")));
    }
}

#[test]
fn what_is_unknown_or_too_much_is_a_warning() {
    for (fields, told) in [
        (json!({"comand": "x"}), "comand"),
        (json!({"poolSize": 11}), "max_pool_size"),
    ] {
        let loaded = load(fields.clone());
        assert_eq!(loaded.tools.len(), 1, "{fields}");
        assert_eq!(loaded.problems.len(), 1, "{fields}");
        assert_eq!(loaded.problems[0].severity, Severity::Warning);
        assert!(
            loaded.problems[0].message.contains(told),
            "{:?}",
            loaded.problems
        );
    }
}

#[test]
fn a_manifest_that_is_no_object_is_a_problem_with_its_place() {
    for (text, kind, line) in [
        ("{\"name\":\n  oops}", ErrorType::Syntax, Some(2)),
        ("", ErrorType::Syntax, Some(1)),
        ("[]", ErrorType::Syntax, None),
        ("\u{0}", ErrorType::Syntax, Some(1)),
    ] {
        let Description::Known(loaded) = read_text(text.as_bytes(), None, Access::Open) else {
            panic!("{text}");
        };
        assert!(loaded.tools.is_empty());
        assert_eq!(loaded.problems.len(), 1);
        assert_eq!(loaded.problems[0].error_type, kind, "{text}");
        assert_eq!(loaded.problems[0].line, line, "{text}");
    }
}

#[test]
fn defaults_are_the_seeds() {
    let plain = tool(json!({}));
    assert_eq!(plain.spec.retries.max, 0);
    assert_eq!(plain.spec.retries.delay.as_millis(), 1_000);
    assert!(!plain.spec.annotations.repeatable());
    assert_eq!(
        tool(json!({"args": ["-c", ""]})).declares,
        ["runs `python3 -c `"]
    );
    let other = tool(json!({"maxRetries": 3, "retryDelayMs": 7}));
    assert_eq!(other.spec.retries.max, 3);
    assert_eq!(other.spec.retries.delay.as_millis(), 7);
}

#[test]
fn a_program_named_tool_needs_no_command() {
    let text = manifest(json!({"command": null})).to_string();
    let Description::Known(loaded) = read_text(text.as_bytes(), Some("tool.sh"), Access::Open)
    else {
        panic!("the manifest says all");
    };
    // It is not there: it is a tool all the same.
    assert_eq!(loaded.problems.len(), 1);
    assert!(loaded.problems[0].message.contains("unavailable"));
    assert_eq!(loaded.tools[0].declares, ["runs `tool.sh`"]);
}

#[test]
fn what_is_left_out_has_to_be_asked_for_but_not_of_an_untrusted_project() {
    for missing in ["name", "description", "inputSchema"] {
        let text = manifest(json!({missing: null})).to_string();
        let read = read_text(text.as_bytes(), None, Access::Open);
        assert!(matches!(read, Description::Wanted { .. }), "{missing}");
        let access = Access::untrusted("/p");
        let Description::Known(loaded) = read_text(text.as_bytes(), None, access) else {
            panic!("nobody may be asked");
        };
        assert_eq!(loaded.tools[0].name(), "mine", "{missing}");
    }
}

#[test]
fn whatever_changes_how_it_runs_changes_its_hash() {
    let hash = |fields: Value| tool(fields).hash.clone();
    let plain = hash(json!({}));
    assert_eq!(hash(json!({})), plain);
    for fields in [
        json!({"args": ["a"]}),
        json!({"env": {"A": "1"}}),
        json!({"workingDir": "sub"}),
        json!({"poolSize": 2}),
        json!({"keepAlive": false}),
        json!({"maxRetries": 1}),
    ] {
        assert_ne!(hash(fields.clone()), plain, "{fields}");
    }
}
