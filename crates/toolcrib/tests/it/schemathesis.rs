//! A machine makes up requests from `/openapi.json`: nothing may answer 500, hang, or differ from what is described.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;

use crate::support::World;
use crate::tidy::root;

/// How long it may make things up; what was begun is then brought to its end.
const SECONDS: u64 = 30;

/// The one program that is ever started. It needs nothing but a shell.
const FIXTURE: &str = r#"#!/bin/sh
while read -r line; do
    id=${line#*\"id\":\"}
    id=${id%%\"*}
    case $line in
    *'"method":"initialize"'*)
        result='{"name":"fixture","description":"A program of a test","version":"1.0.0","inputSchema":{"type":"object"}}' ;;
    *'"method":"health"'*) result='{"status":"healthy"}' ;;
    *) result='{"output":"done"}' ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":\"$id\",\"result\":$result}"
done
"#;

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the run is put into namespaces of its own, by hand"
)]
fn nothing_made_up_breaks_the_api() {
    let venv = root().join("target/test-tools/schemathesis");
    assert!(
        venv.exists(),
        "schemathesis is missing: run scripts/setup-tests"
    );
    let world = World::new();
    let work = world.root().join("work");
    for folder in ["bin", "hooks"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    let fixture = work.join("bin/fixture");
    std::fs::write(&fixture, FIXTURE).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_toolcrib"), work.join("toolcrib")).unwrap();
    let api = root().join("tests/api");
    std::fs::copy(api.join("hooks.py"), work.join("hooks/hooks.py")).unwrap();
    let readable = std::fs::Permissions::from_mode(0o755);
    for path in [world.root(), work.clone(), fixture, work.join("toolcrib")] {
        std::fs::set_permissions(path, readable.clone()).unwrap();
    }
    let owner = rustix::process::geteuid().is_root();
    let mut run = Command::new("unshare");
    if !owner {
        run.arg("--map-root-user");
    }
    run.args(["--mount", "--net", "sh"])
        .arg(api.join("run.sh"))
        .args([&work, &venv])
        .arg(SECONDS.to_string())
        .env("OWNER_HOME", std::env::home_dir().unwrap_or_default())
        .env("REAL_ROOT", if owner { "1" } else { "" });
    let begun = Instant::now();
    let ended = run.output().unwrap();
    let read = |name: &str| std::fs::read_to_string(work.join(name)).unwrap_or_default();
    let took = begun.elapsed();
    assert!(
        ended.status.success(),
        "{} after {took:?}\n{}\n{}\n{}",
        ended.status,
        read("said"),
        String::from_utf8_lossy(&ended.stderr),
        read("serve.log"),
    );
    // It got through to the program, and was not only turned away.
    let seen = read("own/seen");
    for line in [
        "POST /api/custom-tools 201",
        "POST /api/custom-tools 400",
        "PATCH /api/custom-tools/{name} 404",
        "GET /api/custom-tools 200",
    ] {
        assert!(seen.lines().any(|one| one == line), "never {line}");
    }
    let panicked = read("serve.log").contains("panic");
    assert!(!panicked, "{}", read("serve.log"));
}
