//! What `make run` serves and prints: one tool of each kind, and lines that work as pasted.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::tidy::root;

/// `scripts/demo`, killed with all that it started.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

/// Starts the demo in a home of its own, and gives what it printed up to the last line to paste.
#[expect(clippy::disallowed_methods, reason = "tests start a script by hand")]
fn start(home: &Path) -> (Demo, String) {
    let built = Path::new(env!("CARGO_BIN_EXE_toolcrib"));
    let mut child = Command::new(root().join("scripts/demo"))
        .env("CARGO_TARGET_DIR", built.ancestors().nth(2).unwrap())
        .env("TOOLCRIB_DEMO_HOME", home)
        .env("TOOLCRIB_PORT", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let demo = Demo(child);
    let mut printed = String::new();
    for line in lines.map_while(Result::ok) {
        printed.push_str(&line);
        printed.push('\n');
        if line.contains("claude mcp add") {
            return (demo, printed);
        }
    }
    panic!("no line to paste: {printed}");
}

/// Pastes a line that the demo printed into a shell, where `claude` says its arguments.
#[expect(clippy::disallowed_methods, reason = "tests start a shell by hand")]
fn paste(printed: &str, command: &str) -> String {
    let mut lines = printed.lines().map(str::trim);
    let line = lines.find(|line| line.starts_with(command)).unwrap();
    let script = format!("claude() {{ printf '%s\\n' \"$@\"; }}\n{line}");
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn the_demo_has_every_kind_of_tool_and_its_lines_work_as_pasted() {
    let home = tempfile::tempdir().unwrap();
    let (_demo, printed) = start(home.path());
    for part in ["trusted", "/api/events", "/docs", "/login?code="] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    for kind in ["plugin", "python", "typescript", "executable", "registered"] {
        assert!(printed.contains(&format!(" {kind}")), "{kind}: {printed}");
    }
    let agents = std::fs::read_to_string(home.path().join(".config/toolcrib/config.toml"));
    assert!(agents.unwrap().contains("[agents.guest]"));
    let said: Value = serde_json::from_str(&paste(&printed, "curl ")).unwrap();
    assert_eq!(said["output"], "Hello, you!\n");

    let words = paste(&printed, "claude mcp add");
    let words: Vec<&str> = words.lines().collect();
    let [
        "mcp",
        "add",
        "--transport",
        "http",
        _,
        url,
        "--header",
        header,
    ] = words[..]
    else {
        panic!("{words:?}");
    };
    let (name, value) = header.split_once(": ").unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let about = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = client
        .post(url)
        .header(name, value)
        .header("accept", "application/json, text/event-stream")
        .json(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}))
        .send();
    assert_eq!(answer.await.unwrap().status(), 200);
}
