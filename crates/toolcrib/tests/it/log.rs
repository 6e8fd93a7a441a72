//! What `serve` and `mcp` log where programs read it, and that nobody has to read it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call};
use crate::support::{TestCrib, World, eventually, shell_tool};

fn debug(world: &World, vars: &[(&str, &str)]) -> TestCrib {
    let mut command = world.command(&["serve", "--json", "--no-auth", "--port", "0"]);
    command.env("TOOLCRIB_LOG", "debug,hyper=info");
    for (name, value) in vars {
        command.env(name, value);
    }
    world.serve_by(command)
}

/// The lines so far; each must be the JSON that is documented.
fn lines(text: &str) -> Vec<Value> {
    let parsed = text.lines().map(|line| {
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let at = value["timestamp"].as_str().unwrap();
        assert!(at.parse::<jiff::Timestamp>().is_ok(), "{line}");
        let level = value["level"].as_str().unwrap();
        assert!(
            ["debug", "info", "warn", "error"].contains(&level),
            "{line}"
        );
        value
    });
    parsed.collect()
}

#[tokio::test]
async fn what_happens_is_logged_as_json_lines() {
    let world = World::trusted();
    world.write_tool(
        "say.json",
        shell_tool("say", "echo {{what}}", json!({"what": {"type": "string"}})),
    );
    world
        .run(&["new", "worker", "--template", "python-rpc"])
        .exits(0);
    let crib = debug(&world, &[]);
    crib.call("say", json!({"what": "s3cr3t-value"})).await;
    crib.call("say", json!({"what": 3})).await;
    crib.call("worker", json!({"text": "x"})).await;
    world.write_tool("broken.json", "{");
    let event = |name: &str| {
        lines(&crib.log())
            .into_iter()
            .find(|line| line["event"] == name)
    };
    for name in [
        "tool.start",
        "tool.complete",
        "tool.failed",
        "tools_changed",
        "tool_error",
        "worker.spawn",
        "spawn",
        "execute",
        "response",
    ] {
        eventually(name, async || event(name).is_some()).await;
    }
    let complete = event("tool.complete").unwrap();
    assert_eq!(complete["tool"], "say");
    assert!(complete["durationMs"].as_f64().unwrap() > 0.0, "{complete}");
    let failed = event("tool.failed").unwrap();
    assert_eq!(failed["error"], "invalid_arguments");
    let id = failed["requestId"].as_str().unwrap();
    eventually("the record has the same id", async || {
        crib.get(&format!("/calls/{id}")).await.0 == 200
    })
    .await;
    assert!(!crib.log().contains("s3cr3t"), "no argument is ever logged");
}

#[tokio::test]
async fn mcp_says_all_in_the_same_form() {
    let world = World::new();
    let mut command = world.command(&["mcp", "--standalone"]);
    let log = world.root().join("stderr");
    command.env("TOOLCRIB_LOG", "info");
    let mut session = Piped::greeted_with(command, std::fs::File::create(&log).unwrap().into());
    session.ask(&call(5, "workspace-info", json!({})));
    session.ask(&call(6, "nobody", json!({})));
    session.hang_up();
    let lines = lines(&std::fs::read_to_string(log).unwrap());
    let said = lines.iter().any(|line| {
        line["message"]
            .as_str()
            .is_some_and(|text| text.contains("project"))
    });
    assert!(said, "the project is named: {lines:?}");
}

#[tokio::test]
async fn people_may_have_text() {
    let world = World::new();
    let crib = debug(&world, &[("TOOLCRIB_LOG_FORMAT", "text")]);
    crib.call("workspace-info", json!({})).await;
    eventually("a line of text", async || {
        crib.log().contains("DEBUG tool.complete")
    })
    .await;
    assert!(serde_json::from_str::<Value>(crib.log().lines().next().unwrap()).is_err());
    // A command that ends speaks to people in any case.
    let ran = world.run(&["call", "nobody"]).exits(3);
    assert!(ran.stderr.starts_with("error:"), "{ran:?}");
}

#[tokio::test]
async fn a_log_that_nobody_reads_never_stops_the_crib() {
    let world = World::new();
    let mut command = world.command(&["serve", "--json", "--no-auth", "--port", "0"]);
    command.env("TOOLCRIB_LOG", "trace");
    // Held open and never read: the pipe is full after 64 KB.
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let banner: Value = serde_json::from_str(&line).unwrap();
    let url = format!(
        "{}/api/tools/workspace-info/call",
        banner["url"].as_str().unwrap()
    );
    // Another test may have done it already, and may not.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    for _ in 0..1_500 {
        let answer = client.post(&url).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    crate::support::signal(child.id(), libc::SIGTERM);
    eventually("it ends", async || child_ended(child.id())).await;
    child.wait().unwrap();
}

/// A child that ended and was not waited for is a zombie.
fn child_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_log_that_cannot_be_written_never_stops_the_crib() {
    let world = World::new();
    let wrapper = ["sh", "-c", "exec \"$@\" 2>/dev/full", "sh"];
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_toolcrib"));
    let mut command = world.wrapped(
        &wrapper,
        binary,
        &["serve", "--json", "--no-auth", "--port", "0"],
    );
    command.env("TOOLCRIB_LOG", "debug");
    let crib = world.serve_by(command);
    for _ in 0..50 {
        assert_eq!(crib.call("workspace-info", json!({})).await.0, 200);
    }
    assert_eq!(crib.stop(), Some(0));
}
