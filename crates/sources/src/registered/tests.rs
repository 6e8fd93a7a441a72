//! Bodies that are read, and a store that changes, falls into trouble and comes back.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::watch;
use toolcrib_core::store::{CustomTool, StoreError};
use toolcrib_core::{Crib, Loading, Severity};

use super::{RegisteredSource, RegistrationKind, read};
use crate::builtin::BuiltinSource;
use crate::source::Source;
use crate::testing::{Book, crib, place};
use crate::{Configuration, Follow, open};

fn registration(name: &str, revision: u64) -> CustomTool {
    let mut tool = CustomTool::new(name, "program");
    tool.id = format!("id-{name}");
    tool.description = format!("Revision {revision}");
    tool.revision = revision;
    tool
}

fn names(crib: &Crib) -> Vec<String> {
    let view = crib.owners_view();
    let names = view.tools().map(|tool| tool.name().to_owned());
    names.collect()
}

#[tokio::test]
async fn changes_come_soon_and_trouble_takes_nothing_away() {
    let crib = crib();
    let book = Book::with(vec![registration("a", 1)]);
    let (ring, changes) = watch::channel(1);
    let place = place(None);
    let source = RegisteredSource::new(book.clone(), changes, crib.clone(), place.clone());
    let enabled = |registered| Configuration {
        registered,
        ..Configuration::default()
    };
    let list: Vec<Box<dyn Source>> = vec![Box::new(source)];
    let sources = open(crib.clone(), place, list, enabled(true), Follow::Changes).await;
    assert_eq!(names(&crib), ["a"]);
    let mut number = 1;
    let mut set = |now: Result<Vec<CustomTool>, StoreError>| {
        *book.now.lock().unwrap() = now;
        number += 1;
        ring.send_replace(number);
    };
    let soon = async |holds: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(30), "too late");
            // sleeps: how often it is looked at; nothing depends on it
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    set(Ok(vec![registration("a", 2), registration("b", 3)]));
    soon(&|| names(&crib) == ["a", "b"]).await;
    let told = |name: &str| {
        crib.owners_view()
            .get(name)
            .unwrap()
            .spec
            .description
            .clone()
    };
    assert_eq!(told("a"), "Revision 2");
    let version = crib.owners_view().version();
    set(Ok(vec![registration("a", 2), registration("b", 3)]));
    sources.refresh().await;
    assert_eq!(crib.owners_view().version(), version, "nothing differs");
    let why = "it is on fire".to_owned();
    set(Err(StoreError::Failed {
        place: "here".to_owned(),
        why,
    }));
    soon(&|| crib.owners_view().problems().len() == 1).await;
    let problem = crib.owners_view().problems()[0].clone();
    assert_eq!(problem.severity, Severity::Warning);
    assert!(problem.message.contains("on fire"), "{problem:?}");
    assert_eq!(names(&crib), ["a", "b"], "the last known ones serve");
    set(Ok(vec![registration("b", 3)]));
    soon(&|| names(&crib) == ["b"] && crib.owners_view().problems().is_empty()).await;
    sources.configure(enabled(false)).await;
    assert!(names(&crib).is_empty() && !sources.configuration().registered);
    sources.configure(enabled(true)).await;
    assert_eq!(names(&crib), ["b"]);
    // One that can't be a tool is a problem of its own.
    let mut odd = registration("odd", 4);
    odd.input_schema = json!({"type": 5});
    set(Ok(vec![odd, registration("b", 3)]));
    soon(&|| crib.owners_view().problems().len() == 1).await;
    assert_eq!(names(&crib), ["b"]);
}

#[tokio::test]
async fn a_store_that_takes_long_holds_up_nobody() {
    let (crib, place) = (crib(), place(None));
    let book = Book::with(vec![registration("a", 1)]);
    book.answers.send_replace(false);
    let (_ring, changes) = watch::channel(1);
    let registered = RegisteredSource::new(book.clone(), changes, crib.clone(), place.clone());
    let list: Vec<Box<dyn Source>> = vec![
        Box::new(BuiltinSource::new(place.clone())),
        Box::new(registered),
    ];
    let configuration = Configuration {
        registered: true,
        ..Configuration::default()
    };
    let _sources = open(crib.clone(), place, list, configuration, Follow::Changes).await;
    let view = crib.owners_view();
    assert!(view.get("git-status").is_some() && view.get("a").is_none());
    assert_eq!(crib.loading(), Loading::Describing, "more is on its way");
    book.answers.send_replace(true);
    crib.loaded(Loading::Done).await;
    assert!(crib.owners_view().get("a").is_some());
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn relative_paths_start_at_the_project_and_stay_there() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::write(root.join("tool.py"), "").unwrap();
    let place = place(Some(root.as_path()));
    let body = json!({
        "name": "a", "command": "./bin/run", "workingDir": "sub",
        "args": ["-u", "tool.py", "./x/./y", "../z", "tool.py", "-", "/abs", "word"],
    });
    let tool = read(&object(body), &RegistrationKind::New, 5, &place)
        .unwrap()
        .tool;
    let at = |path: &str| root.join(path).to_string_lossy().into_owned();
    assert_eq!(tool.command, at("bin/run"));
    assert_eq!(tool.working_dir, Some(at("sub")));
    let beside = root.parent().unwrap().join("z");
    let wanted = [
        "-u",
        &at("tool.py"),
        &at("x/y"),
        beside.to_str().unwrap(),
        "tool.py",
        "-",
        "/abs",
        "word",
    ];
    assert_eq!(tool.args, wanted);
    assert_eq!(tool.timeout_ms, 5);
    // Read again, it is the same; elsewhere, too.
    let change = RegistrationKind::Change(&tool);
    let elsewhere = self::place(Some(Path::new("/elsewhere")));
    let same = read(&object(json!({})), &change, 9, &elsewhere)
        .unwrap()
        .tool;
    assert_eq!(same, tool);
    let bare = object(json!({"name": "a", "command": "python3", "args": ["tool.py"]}));
    let tool = read(&bare, &RegistrationKind::New, 5, &self::place(None))
        .unwrap()
        .tool;
    assert_eq!(
        (tool.command.as_str(), tool.args[0].as_str()),
        ("python3", "tool.py")
    );
    let bare = object(json!({"name": "a", "command": "./run"}));
    let problems = read(&bare, &RegistrationKind::New, 5, &self::place(None))
        .err()
        .unwrap();
    assert!(
        problems[0].message.contains("relative path"),
        "{problems:?}"
    );
}

#[test]
fn what_is_written_reads_back() {
    let place = place(Some(Path::new("/project")));
    let body = json!({
        "name": "a", "command": "/bin/run", "args": ["x"], "description": "D", "version": "1", "workingDir": "/w",
        "env": {"KEY": "value"}, "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
        "timeoutMs": 1, "maxRetries": 2, "retryDelayMs": 3, "poolSize": 4, "keepAlive": false, "tags": ["t"],
        "aliases": ["b"], "metadata": {"k": [1]}, "annotations": {"readOnlyHint": true},
        "permissions": {"canNetwork": true}, "sandbox": {"maxMemoryMB": 64},
    });
    let tool = read(&object(body.clone()), &RegistrationKind::New, 5, &place)
        .unwrap()
        .tool;
    assert_eq!(Value::Object(super::written(&tool)), body);
    let cleared = json!({
        "description": null, "inputSchema": null, "env": null, "tags": null, "timeoutMs": null, "name": null,
        "annotations": null, "workingDir": null,
    });
    let tool = read(
        &object(cleared),
        &RegistrationKind::Change(&tool),
        5,
        &place,
    )
    .unwrap()
    .tool;
    assert_eq!((tool.name.as_str(), tool.timeout_ms), ("a", 5));
    assert!(tool.description.is_empty() && tool.input_schema.is_null() && tool.env.0.is_empty());
    assert_eq!((tool.annotations, tool.working_dir), (None, None));
    assert_eq!(tool.version, "1", "not named, so not touched");
}

#[test]
fn a_program_that_was_changed_is_noticed_though_its_time_was_put_back() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("program");
    std::fs::write(&file, "one").unwrap();
    let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
    let before = super::stamp(std::slice::from_ref(&file));
    assert_eq!(super::stamp(std::slice::from_ref(&file)), before);
    // Until the clock of the file system has gone on.
    while super::stamp(std::slice::from_ref(&file)) == before {
        std::fs::write(&file, "two").unwrap();
        let open = std::fs::File::options().write(true).open(&file).unwrap();
        open.set_modified(modified).unwrap();
    }
    let now = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(now, modified);
}
