//! What a person sees of a call while it runs, and of what was cut.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use crate::support::World;

const SLOW: &str = r#"
import os, time
from toolcrib import Context, tool

@tool
def slow(ctx: Context) -> str:
    """Tells how far it is."""
    ctx.progress(1, 2, "half of it")
    print("printed early")
    while not os.path.exists(os.path.join(ctx.directory, "go")): time.sleep(0.01)
    return "done"

@tool
def long() -> str:
    """Says much."""
    return "\n".join(f"line {n}" for n in range(5000))

@tool
def greedy() -> str:
    """Wants more memory than there is."""
    raise MemoryError

@tool(timeout_ms=100)
def late() -> str:
    """Takes too long."""
    time.sleep(600)
    return ""
"#;

fn world() -> World {
    let world = World::trusted();
    world.write_tool("slow.py", SLOW);
    world
}

/// Runs a command that calls `slow`, and lets that go on once its news were seen.
fn seen_while_it_runs(world: &World, args: &[&str]) {
    let go = world.project().join("go");
    let _ = std::fs::remove_file(&go);
    let mut command = world.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (line, lines) = mpsc::channel();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || {
        for said in stderr.lines().map_while(Result::ok) {
            let _ = line.send(said);
        }
    });
    let mut missing = vec!["1/2 half of it", "printed early"];
    while !missing.is_empty() {
        let said = lines.recv_timeout(Duration::from_secs(60)).unwrap();
        missing.retain(|words| !said.contains(words));
    }
    std::fs::write(&go, "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(told.trim_end(), "done");
    // Nothing is told twice.
    assert!(lines.iter().all(|said| !said.contains("printed early")));
}

#[test]
fn progress_and_prints_are_shown_as_they_come() {
    let world = world();
    seen_while_it_runs(&world, &["call", "slow"]);
    seen_while_it_runs(&world, &["test", "slow"]);
    let _crib = world.serve();
    seen_while_it_runs(&world, &["call", "slow"]);
    seen_while_it_runs(&world, &["test", "slow"]);
}

#[test]
fn what_was_cut_is_printed_when_it_is_asked_for() {
    let world = world();
    for command in ["call", "test"] {
        let cut = world.run(&[command, "long"]).exits(0);
        assert!(!cut.stdout.contains("line 4999"), "{}", cut.stdout);
        let full = world.run(&[command, "long", "--full"]).exits(0);
        assert_eq!(full.stdout.lines().count(), 5000);
        assert!(
            full.stdout.starts_with("line 0\n") && full.stdout.trim_end().ends_with("line 4999")
        );
    }
}

#[test]
fn limits_are_named_in_the_words_of_the_language() {
    let world = world();
    let ran = world.run(&["call", "greedy"]).exits(1);
    let told = ran.stdout + &ran.stderr;
    assert!(told.contains("it may use 512 MB of memory"), "{told}");
    assert!(
        told.contains("toolcrib grant greedy --memory 1024"),
        "{told}"
    );
    // A worker that is there already: the call's short time is the tool's alone.
    let _crib = world.serve();
    world.run(&["call", "long"]).exits(0);
    let ran = world.run(&["call", "late"]).exits(4);
    assert!(
        ran.stderr.contains("raise the tool's `timeout_ms`"),
        "{}",
        ran.stderr
    );
}
