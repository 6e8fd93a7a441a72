//! A capability is written once: a command says the same whether it asks a router of its own, the crib that serves the
//! project, or one at a port.

use serde_json::{Value, json};

use crate::support::tool::unconfined;
use crate::support::{TestCrib, World, eventually, shell_tool};

/// A tool with a process of its own, that says on stderr what it is asked.
const TALKATIVE: &str = r#"
import sys
from toolcrib import tool

@tool
def talkative(text: str = "nothing") -> str:
    """Says it twice."""
    print("heard " + text, file=sys.stderr)
    return text
"#;

fn world() -> World {
    let world = World::trusted();
    unconfined(&world);
    world.write_tool("talkative.py", TALKATIVE);
    world.write_tool("plain.json", shell_tool("plain", "echo plain", json!({})));
    world.write_tool("broken.json", "{");
    world.write_tool("idle.py", "A = 1\n");
    world
}

/// What a command prints for programs, without what is another one each time.
fn printed(world: &World, args: &[&str]) -> (i32, Value) {
    let ran = world.run(&[args, &["--json"]].concat());
    let mut value = ran.json();
    same_times(&mut value);
    (ran.code, value)
}

fn same_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for key in [
                "timestamp",
                "durationMs",
                "lastHealthCheck",
                "healthStatus",
                "lastUsedAt",
            ] {
                fields.remove(key);
            }
            fields.values_mut().for_each(same_times);
        }
        Value::Array(items) => items.iter_mut().for_each(same_times),
        _ => {}
    }
}

#[tokio::test]
async fn commands_say_the_same_here_at_the_socket_and_at_a_port() {
    let world = world();
    world.run(&["token", "create", "one"]).exits(0);
    world.run(&["call", "talkative", "text=first"]).exits(0);
    let commands: [&[&str]; 12] = [
        &["list"],
        &["list", "--all"],
        &["show", "talkative"],
        &["show", "errors"],
        &["show", "no such tool"],
        &["errors"],
        &["call", "plain"],
        &["call", "plain", "x"],
        &["test", "talkative", "text=hi"],
        &["health", "plain"],
        &["grant", "--list"],
        &["validate", "none"],
    ];
    let here = commands.map(|args| printed(&world, args));
    let records: [&[&str]; 4] = [
        &["doctor"],
        &["trust", "--list"],
        &["token", "list"],
        &["token", "revoke", "none"],
    ];
    let alone = records.map(|args| printed(&world, args));
    let crib = world.serve();
    let port = crib.port().to_string();
    for (args, here) in commands.iter().zip(&here) {
        let socket = printed(&world, args);
        assert_eq!(&socket, here, "{args:?} at the socket");
        let standalone = printed(&world, &[*args, &["--standalone"]].concat());
        assert_eq!(&standalone, here, "{args:?} beside the crib");
        let there = printed(&world, &[*args, &["--port", &port]].concat());
        assert_eq!(&there, here, "{args:?} at the port");
    }
    for (args, alone) in records.iter().zip(&alone) {
        assert_eq!(&printed(&world, args), alone, "{args:?} at the socket");
    }
    let stderr = here[8].1["stderr"].as_str().unwrap();
    assert!(stderr.contains("heard hi"), "{stderr}");
    assert_eq!(here[1].1["idleFiles"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_workers_words_are_read_and_followed_at_a_port() {
    let world = world();
    let crib = world.serve();
    let elsewhere = World::new();
    let port = crib.port().to_string();
    let read = |args: &[&str]| elsewhere.run(&[args, &["--port", &port]].concat());
    read(&["call", "talkative", "text=one"]).exits(0);
    let said = read(&["logs", "talkative"]).exits(0);
    assert_eq!(said.stdout, "heard one\n");
    let none = read(&["logs", "plain"]).exits(2);
    assert!(none.stderr.contains("no process of its own"), "{none:?}");
    read(&["logs", "nothing"]).exits(3);
    let args = ["logs", "talkative", "--follow", "--json", "--port", &port];
    let mut following = Following::start(&elsewhere, &args);
    following.says("heard one").await;
    call(&crib, "two").await;
    following.says("heard two").await;
}

async fn call(crib: &TestCrib, text: &str) {
    let (status, said) = crib.call("talkative", json!({"text": text})).await;
    assert_eq!(status, 200, "{said}");
}

/// A command that runs on. Killed when it is dropped.
struct Following {
    child: std::process::Child,
    said: std::sync::Arc<std::sync::Mutex<String>>,
}

impl Following {
    fn start(world: &World, args: &[&str]) -> Following {
        use std::io::{BufRead, BufReader};
        let mut command = world.command(args);
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let said = std::sync::Arc::<std::sync::Mutex<String>>::default();
        let (out, kept) = (BufReader::new(child.stdout.take().unwrap()), said.clone());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&line);
            }
        });
        Following { child, said }
    }

    async fn says(&mut self, words: &str) {
        eventually(words, async || self.said.lock().unwrap().contains(words)).await;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Over the socket and at the command line a call is the owner's own; at the port it came over REST.
#[tokio::test]
async fn calls_of_commands_are_on_record_as_such() {
    let world = world();
    let crib = world.serve();
    let port = crib.port().to_string();
    world.run(&["call", "plain"]).exits(0);
    world.run(&["call", "plain", "--standalone"]).exits(0);
    world.run(&["call", "plain", "--port", &port]).exits(0);
    let clients = || {
        let list = world.run(&["logs", "--calls", "--json"]).exits(0).json();
        let calls = list["calls"].as_array().unwrap().iter();
        calls
            .map(|call| call["client"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    eventually("all are on record", async || clients().len() == 3).await;
    assert_eq!(clients(), ["rest", "cli", "cli"]);
}
