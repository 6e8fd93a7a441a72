//! The built-in tools as agents meet them: through the whole chain, in real repositories, against hostile ones too.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod support;

#[path = "builtin/fetch_page.rs"]
mod fetch_page;
#[path = "builtin/file_reader.rs"]
mod file_reader;
#[path = "builtin/git.rs"]
mod git;
#[path = "builtin/hostile.rs"]
mod hostile;
#[path = "builtin/read_file.rs"]
mod read_file;
#[path = "builtin/read_output.rs"]
mod read_output;
#[path = "builtin/search_code.rs"]
mod search_code;
#[path = "builtin/send_email.rs"]
mod send_email;
#[path = "builtin/send_webhook.rs"]
mod send_webhook;
#[path = "builtin/todo_write.rs"]
mod todo_write;
#[path = "builtin/trap.rs"]
mod trap;
#[path = "builtin/web_search.rs"]
mod web_search;
#[path = "builtin/write_file.rs"]
mod write_file;

use serde_json::json;
use support::World;
use toolcrib_core::{Access, ErrorCode, SourceKind};

/// What agents do not see until a person wants it.
const OFF: [&str; 5] = [
    "fetch-page",
    "send-email",
    "send-webhook",
    "web-search",
    "write-file",
];
const LOOKS_ELSEWHERE: [&str; 2] = ["fetch-page", "web-search"];

#[tokio::test]
async fn all_are_listed_annotated_and_described() {
    for world in [World::new(), World::with(|_| None, "")] {
        let view = world.crib.owners_view();
        assert!(view.problems().is_empty(), "{:?}", view.problems());
        let mut names: Vec<&str> = view.tools().map(|tool| tool.name()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "fetch-page",
                "file-reader",
                "git-diff-summary",
                "git-status",
                "read-file",
                "read-output",
                "search-code",
                "send-email",
                "send-webhook",
                "todo-write",
                "web-search",
                "workspace-info",
                "write-file",
            ]
        );
        let listed: Vec<&str> = view.listed().map(|tool| tool.name()).collect();
        assert!(OFF.iter().all(|off| !listed.contains(off)), "{listed:?}");
        assert_eq!(listed.len() + OFF.len(), names.len());
        for tool in view.tools() {
            let words = tool.spec.description.split_whitespace().count();
            assert!((8..=20).contains(&words), "{}: {words} words", tool.name());
            assert_eq!(tool.source, SourceKind::Builtin);
            let off = matches!(tool.access, Access::Off(_));
            assert_eq!(off, OFF.contains(&tool.name()), "{}", tool.name());
            let annotations = &tool.spec.annotations;
            let acts = OFF.contains(&tool.name()) && !LOOKS_ELSEWHERE.contains(&tool.name());
            let looks = !acts && tool.name() != "todo-write";
            assert_eq!(annotations.read_only_hint, Some(looks), "{}", tool.name());
            for hint in [
                annotations.idempotent_hint,
                annotations.destructive_hint,
                annotations.open_world_hint,
            ] {
                assert!(hint.is_some(), "{}", tool.name());
            }
            assert_eq!(
                tool.spec.input_schema.value()["additionalProperties"],
                false
            );
            for (name, property) in tool.spec.input_schema.properties() {
                assert!(
                    property["description"].is_string(),
                    "{}: {name}",
                    tool.name()
                );
            }
        }
    }
}

#[tokio::test]
async fn without_a_project_they_say_so() {
    let world = World::with(|_| None, "/usr/bin:/bin");
    let calls = [
        ("git-status", json!({})),
        ("git-status", json!({"path": "x"})),
        ("git-diff-summary", json!({})),
        ("file-reader", json!({"path": "x"})),
        ("read-file", json!({"path": "x"})),
        ("search-code", json!({"query": "x"})),
    ];
    for (tool, arguments) in calls {
        let error = world.call(tool, arguments).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unavailable, "{tool}");
        assert!(
            error.message.contains("no project") && error.hint.is_some(),
            "{tool}: {error}"
        );
    }
    let info = world
        .call("workspace-info", json!({}))
        .await
        .unwrap()
        .structured
        .unwrap();
    assert_eq!(
        info,
        json!({"projectPath": null, "gitBranch": null, "gitCommit": null, "remoteUrl": null})
    );
}

#[tokio::test]
async fn without_git_they_say_so() {
    let world = World::with(Some, "/nowhere");
    let error = world.call("git-status", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(
        error.message.contains("git") && error.hint.unwrap().to_string().contains("install git")
    );
    let info = world.call("workspace-info", json!({})).await.unwrap();
    assert_eq!(info.structured.unwrap()["gitBranch"], json!(null));
    assert!(info.metadata["git"].as_str().unwrap().contains("not found"));
}
