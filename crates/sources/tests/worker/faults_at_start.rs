//! Programs that do not come up: each is a problem that says why, or a call that fails with the reason.

use std::time::{Duration, Instant};

use serde_json::json;
use toolcrib_core::{ErrorCode, ErrorType};
use toolcrib_sources::worker::Limits;

use crate::world::{World, limits};

/// Never answers: the tests sit the whole limit out.
fn short_handshake() -> Limits {
    Limits {
        handshake: Duration::from_millis(400),
        ..limits()
    }
}

#[tokio::test]
async fn exits_at_once() {
    let world = World::alone(limits());
    world.write("gone", "#!/bin/sh\necho 'no luck today' >&2\nexit 3\n");
    world.folder("listed", json!({}), "sys.exit('no luck either')");
    world.open().await;
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::Io);
    for part in ["exit code 3", "no luck today"] {
        assert!(problem.message.contains(part), "{problem:?}");
    }
    // A tool that is known without being asked says it when it is called.
    let error = world.refused("listed", json!({})).await;
    assert_eq!(error.code, ErrorCode::Unavailable, "{error:?}");
    assert!(error.unreached, "{error:?}");
    for part in ["exit code 1", "no luck either"] {
        assert!(error.message.contains(part), "{error:?}");
    }
    world.end().await;
}

#[tokio::test]
async fn never_answers_initialize() {
    let world = World::alone(short_handshake());
    world.python("mute", "def initialize(id, params): pass");
    world.folder(
        "listed",
        json!({}),
        "def initialize(id, params): time.sleep(1000)",
    );
    let begun = Instant::now();
    world.open().await;
    assert!(begun.elapsed() < Duration::from_secs(5));
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::Timeout);
    assert!(
        problem
            .message
            .contains("did not answer `initialize` within"),
        "{problem:?}"
    );
    let error = world.refused("listed", json!({})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.unreached && error.message.contains("`initialize`"));
    world.nothing_runs().await;
    world.end().await;
}

#[tokio::test]
async fn answers_garbage_to_initialize() {
    for (said, kind) in [
        ("say('tea')", ErrorType::Timeout),
        ("say('{')", ErrorType::Timeout),
        ("say('{\"id\": \"1\"}')", ErrorType::Timeout),
        ("answer(id, 'tea')", ErrorType::Validation),
        ("answer(id, [1])", ErrorType::Validation),
        ("answer(id, {})", ErrorType::Validation),
        (
            "answer(id, {'name': 3, 'tools': {}})",
            ErrorType::Validation,
        ),
        ("fail(id, -32603)", ErrorType::Validation),
        (
            "sys.stdout.buffer.write(b'\\xff\\x00\\n' * 9); sys.stdout.flush()",
            ErrorType::Timeout,
        ),
    ] {
        let world = World::alone(short_handshake());
        world.python("odd", &format!("def initialize(id, params): {said}"));
        world.open().await;
        let view = world.crib.owners_view();
        let problems = view.problems();
        assert!(!problems.is_empty(), "{said}");
        assert_eq!(problems[0].error_type, kind, "{said}: {problems:?}");
        assert!(world.names().is_empty(), "{said}");
        drop(view);
        world.end().await;
    }
}

#[tokio::test]
async fn an_mcp_server_is_a_problem_that_says_so() {
    let world = World::alone(limits());
    world.python(
        "server",
        "HELLO = {'protocolVersion': '2025-06-18', 'capabilities': {}, 'serverInfo': {'name': 'x', 'version': '1'}}",
    );
    world.open().await;
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::Validation);
    assert!(problem.message.contains("MCP server"), "{problem:?}");
    world.nothing_runs().await;
    world.end().await;
}

#[tokio::test]
async fn not_executable_and_missing_interpreters() {
    let world = World::alone(limits());
    let program = world
        .folder("locked", json!({}), "")
        .with_file_name("program.py");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(program, mode).unwrap();
    world.manifest("absent", json!({"command": "./nowhere"}));
    world.manifest("unknown", json!({"command": "no-such-program-anywhere"}));
    world.manifest("lost", json!({"command": "./program"}));
    world.write("lost/program", "#!/no/such/interpreter\n");
    world.manifest(
        "strayed",
        json!({"command": "./program", "workingDir": "nowhere"}),
    );
    world.write("strayed/program", "#!/bin/sh\n");
    world.open().await;
    // Programs that are not there are told before anybody calls.
    let view = world.crib.owners_view();
    let told = view.problems();
    let unavailable = |problem: &toolcrib_core::Problem| problem.message.contains("is unavailable");
    assert!(told.len() == 3 && told.iter().all(unavailable), "{told:?}");
    for (tool, reason) in [
        ("locked", "not an executable file"),
        ("absent", "not found"),
        ("unknown", "`no-such-program-anywhere` was not found"),
        ("lost", "interpreter `/no/such/interpreter`"),
        ("strayed", "working directory"),
    ] {
        let error = world.refused(tool, json!({})).await;
        assert_eq!(error.code, ErrorCode::Unavailable, "{tool}: {error:?}");
        assert!(error.message.contains(reason), "{tool}: {error:?}");
        assert!(error.hint.is_some() && error.unreached, "{tool}: {error:?}");
    }
    // A run-bit file has to be asked, so there it is a problem at once.
    world.write("orphan", "#!/no/such/interpreter\n");
    world.reload().await;
    let problems = world.problems();
    let orphan = problems.iter().find(|problem| problem.contains("orphan"));
    assert!(orphan.unwrap().contains("interpreter"), "{problems:?}");
    world.end().await;
}

#[tokio::test]
async fn a_huge_environment_and_huge_arguments() {
    let world = World::alone(limits());
    world.folder("stuffed", json!({"env": {"BIG": "x".repeat(70_000)}}), "");
    // One argument may have 128 KiB on Linux, whatever else is allowed.
    world.folder("wordy", json!({"args": ["x".repeat(140_000)]}), "");
    world.folder("fine", json!({"env": {"BIG": "x".repeat(60_000)}}), "");
    world.open().await;
    let problem = world.problem();
    assert_eq!(problem.error_type, ErrorType::Validation);
    assert!(
        problem.message.contains("`env` holds 70003 bytes"),
        "{problem:?}"
    );
    let error = world.refused("wordy", json!({})).await;
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(
        error.message.contains("larger than the system allows"),
        "{error:?}"
    );
    assert_eq!(world.output("fine", json!({})).await, "done");
    world.end().await;
}
