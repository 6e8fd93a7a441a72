//! One crib for all: agents and commands of a project use the one that serves it, and outlive its restarts.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{World, count_processes, descendants, eventually, shell_tool};

/// An agent's end of `toolcrib mcp`.
struct Agent {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Agent {
    fn start(world: &World, args: &[&str]) -> Agent {
        let mut command = world.command(&[&["mcp"], args].concat());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Agent {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            asked: 0,
        }
    }

    /// An agent of the old era, which says hello first.
    fn legacy(world: &World) -> Agent {
        let mut agent = Agent::start(world, &[]);
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
                           "clientInfo": {"name": "test", "version": "1"}});
        let answer = agent.ask("initialize", hello);
        assert_eq!(
            answer["result"]["serverInfo"]["name"], "toolcrib",
            "{answer}"
        );
        agent.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn send(&mut self, message: Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    /// Sends a request without waiting for its answer.
    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}));
        self.asked
    }

    /// Waits for the answer to a request, past all notifications.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.output.read_line(&mut line).unwrap(),
                0,
                "the relay hung up"
            );
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    fn call(&mut self, tool: &str) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": {}}))
    }

    fn inotify_watchers(&self) -> usize {
        inotify_watchers(self.child.id())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn inotify_watchers(pid: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .flatten();
    let links = open.filter_map(|file| std::fs::read_link(file.path()).ok());
    links
        .filter(|link| link.to_string_lossy().contains("inotify"))
        .count()
}

fn stateless() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }})
}

#[tokio::test]
async fn five_agents_share_the_crib_that_serves() {
    let world = World::loose();
    let marker = format!("relay-marker-{}", std::process::id());
    let text = shell_tool(
        "linger",
        &format!("sh -c 'sleep 600; : {marker}'"),
        json!({}),
    );
    world.write_tool("linger.json", text);
    let crib = world.serve();
    let mut agents: Vec<Agent> = (0..5).map(|_| Agent::legacy(&world)).collect();
    for agent in &mut agents {
        agent.begin("tools/call", json!({"name": "linger"}));
    }
    // A launcher, its shell, and that shell's sleep: all of them below the one crib.
    let below = || descendants(crib.pid()).len();
    eventually("five calls run below the crib", async || below() >= 15).await;
    let shells = || count_processes(&marker);
    eventually("their shells run", async || shells() >= 5).await;
    for agent in &agents {
        assert!(descendants(agent.child.id()).is_empty());
        assert_eq!(agent.inotify_watchers(), 0);
    }
    assert_eq!(inotify_watchers(crib.pid()), 1);
    drop(agents);
    crib.kill();
    eventually("nothing is left", async || count_processes(&marker) == 0).await;
}

#[tokio::test]
async fn agents_do_not_notice_a_restart() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("greet", "echo hi", json!({})));
    let crib = world.serve();
    let mut legacy = Agent::legacy(&world);
    let mut modern = Agent::start(&world, &[]);
    let listed = |answer: Value| answer["result"]["tools"].as_array().unwrap().len();
    assert_eq!(listed(legacy.ask("tools/list", json!({}))), 9);
    assert_eq!(listed(modern.ask("tools/list", stateless())), 9);
    // In good order, then without a word.
    assert_eq!(crib.stop(), Some(0));
    let crib = world.serve();
    assert_eq!(legacy.call("greet")["result"]["content"][0]["text"], "hi\n");
    assert!(
        modern
            .ask("tools/list", stateless())
            .get("result")
            .is_some()
    );
    assert!(descendants(legacy.child.id()).is_empty());
    crib.kill();
    let _crib = world.serve();
    assert_eq!(legacy.call("greet")["result"]["content"][0]["text"], "hi\n");
    assert!(
        modern
            .ask("tools/list", stateless())
            .get("result")
            .is_some()
    );
}

#[tokio::test]
async fn a_call_in_flight_is_repeated_only_if_it_may_be() {
    let world = World::trusted();
    let go = world.project().join("go");
    let wait = |name: &str, hint: Value| {
        let command = format!(
            "sh -c 'while [ ! -e {} ]; do sleep 0.01; done; echo done'",
            go.display()
        );
        let mut file: Value = serde_json::from_str(&shell_tool(name, &command, json!({}))).unwrap();
        file["tools"][0]["annotations"] = hint;
        file.to_string()
    };
    world.write_tool("a.json", wait("look", json!({"readOnlyHint": true})));
    world.write_tool("b.json", wait("change", json!({})));
    let crib = world.serve();
    let mut agent = Agent::legacy(&world);
    agent.ask("tools/list", json!({}));
    let (look, change) = (
        agent.begin("tools/call", json!({"name": "look"})),
        agent.begin("tools/call", json!({"name": "change"})),
    );
    let below = || descendants(crib.pid()).len();
    eventually("both calls run", async || below() >= 4).await;
    crib.kill();
    let _crib = world.serve();
    let lost = agent.answer(change);
    assert_eq!(
        lost["result"]["_meta"]["toolcrib/code"], "unavailable",
        "{lost}"
    );
    std::fs::write(&go, "").unwrap();
    assert_eq!(agent.answer(look)["result"]["content"][0]["text"], "done\n");
}

#[tokio::test]
async fn commands_use_the_crib_that_serves_unless_told_otherwise() {
    let world = World::trusted();
    let crib = world.serve();
    let listed = world.run(&["list"]).exits(0);
    assert!(
        listed.stderr.contains("served by a running crib"),
        "{}",
        listed.stderr
    );
    assert_eq!(world.run(&["call", "workspace-info"]).exits(0).code, 0);
    let alone = world.run(&["list", "--standalone"]).exits(0);
    assert!(!alone.stderr.contains("running crib"), "{}", alone.stderr);
    let mut agent = Agent::start(&world, &["--standalone"]);
    agent.ask("tools/list", stateless());
    assert_eq!(agent.inotify_watchers(), 1);
    drop(crib);
    world.run(&["list"]).exits(0);
}

#[test]
fn the_socket_is_for_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::trusted();
    let crib = world.serve();
    let folder = world.home().join(".local/share/toolcrib/run");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let sockets: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    let socket = sockets
        .iter()
        .find(|path| path.extension().is_some_and(|e| e == "sock"))
        .unwrap();
    assert_eq!(mode(socket), 0o600);
    // A second crib of the same project leaves the first its socket.
    let second = world.serve();
    assert_eq!(second.stop(), Some(0));
    assert!(socket.exists());
    assert_eq!(crib.stop(), Some(0));
    assert!(!socket.exists());
}

/// A crib that hangs, or anything else that holds the socket.
#[test]
fn what_holds_the_socket_and_says_nothing_holds_up_no_command() {
    let world = World::trusted();
    let crib = world.serve();
    let folder = world.home().join(".local/share/toolcrib/run");
    let entries = std::fs::read_dir(&folder).unwrap().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let socket = paths
        .find(|path| path.extension().is_some_and(|e| e == "sock"))
        .unwrap();
    assert_eq!(crib.stop(), Some(0));
    let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let listed = world.run(&["list"]).exits(0);
    assert!(!listed.stderr.contains("running crib"), "{}", listed.stderr);
    world.run(&["token", "list"]).exits(0);
}
