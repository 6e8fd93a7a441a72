//! A no-op tool over MCP, against a bare axum echo and the official SDKs' servers with the same tool.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::calls::{Ask, Client, Limit, PATIENCE, Running, against_echo, block, command, own};
use crate::stats::{Samples, verdict};

const CLIENTS: [usize; 4] = [1, 8, 32, 64];
const SESSIONS: &str = "toolcrib, sessions";
/// How long each server is kept busy at each number of clients.
const BUSY: Duration = Duration::from_secs(3);

/// A server to be measured, and how it is asked.
struct Peer {
    name: &'static str,
    running: Running,
    path: &'static str,
    headers: String,
    body: String,
}

impl Peer {
    fn client(&self) -> Option<Client> {
        let port = self.running.port;
        // Ids are unique within a session, so every client of the old era has one of its own.
        let headers = match self.name {
            SESSIONS => session(port)?,
            _ => self.headers.clone(),
        };
        Client::post(port, self.path, &headers, &self.body).ok()
    }

    /// Calls a second with so many connections at once.
    fn throughput(&self, clients: usize) -> f64 {
        let start = Instant::now();
        let done: usize = std::thread::scope(|scope| {
            let all: Vec<_> = (0..clients)
                .map(|_| {
                    scope.spawn(|| {
                        let Some(mut client) = self.client() else {
                            return 0;
                        };
                        let mut done = 0;
                        while start.elapsed() < BUSY && client.ask().is_ok() {
                            done += 1;
                        }
                        done
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap_or(0)).sum()
        });
        done as f64 / start.elapsed().as_secs_f64()
    }
}

/// A call as the stateless revision has it: headers and body.
pub fn stateless_call(tool: &str, arguments: &str) -> (String, String) {
    let (headers, body) = stateless(
        "tools/call",
        &format!(r#""name":"{tool}","arguments":{arguments},"#),
    );
    (format!("{headers}mcp-name: {tool}\r\n"), body)
}

fn stateless(method: &str, more: &str) -> (String, String) {
    let headers = format!(
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n"
    );
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{more}{meta}}}}}"#);
    (headers, body)
}

/// What the SDKs' servers take without a session.
pub fn legacy(tool: &str, arguments: &str) -> (String, String) {
    let headers =
        "accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-06-18\r\n";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    );
    (headers.to_owned(), body)
}

/// Says hello to a server of the old era; gives the headers of its session.
fn session(port: u16) -> Option<String> {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
    let accept = "accept: application/json, text/event-stream\r\n";
    let mut client = Client::post(port, "/mcp", accept, hello).ok()?;
    client.ask().ok()?;
    let session = client.session.take()?;
    let headers =
        format!("{accept}mcp-protocol-version: 2025-06-18\r\nmcp-session-id: {session}\r\n");
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    Client::post(port, "/mcp", &headers, ready)
        .ok()?
        .ask()
        .ok()?;
    Some(headers)
}

/// A no-op call over stdin and stdout, one at a time.
fn stdio() -> Option<Samples> {
    let mut command = command(&std::env::current_exe().ok()?);
    let mut child = command
        .arg("__stdio")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let _limit = Limit::of(&child, 3 * PATIENCE);
    let (mut input, output) = (child.stdin.take()?, child.stdout.take()?);
    let mut output = BufReader::new(output);
    let (_, body) = stateless_call("noop", "{}");
    let (mut samples, mut line) = (Samples::default(), String::new());
    let mut turn = || -> Option<Duration> {
        let start = Instant::now();
        writeln!(input, "{body}").ok()?;
        line.clear();
        let read = output.read_line(&mut line).ok()?;
        (read > 0).then(|| start.elapsed())
    };
    for turns in [100, 2_000] {
        samples = Samples::default();
        samples.extend((0..turns).map_while(|_| turn()).collect());
    }
    let _ = child.kill();
    let _ = child.wait();
    (samples.len() == 2_000).then_some(samples)
}

/// The SDKs lie where the tests put them.
fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-tools")
}

pub fn typescript() -> Option<Running> {
    let npm = tools().join("npm");
    // A module finds its packages by where it lies.
    let program = npm.join("bench-peer.mjs");
    std::fs::write(&program, include_str!("../peers/server.mjs")).ok()?;
    let mut command = command(&npm.join("node_modules/.bin/node"));
    command.arg(program);
    Running::of(command)
}

/// The Python that the peers run on.
pub fn interpreter() -> PathBuf {
    tools().join("python/bin/python")
}

/// A Python server of `peers`.
pub fn python(server: &str) -> Option<Running> {
    let mut command = command(&interpreter());
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
    command
        .arg(peers.join(server))
        .stderr(std::process::Stdio::null());
    Running::of(command)
}

pub fn run() {
    let (headers, body) = stateless_call("noop", "{}");
    let ask = |path, headers: &str| Ask {
        path,
        headers: headers.to_owned(),
        body: body.clone(),
    };
    against_echo("MCP", &ask("/echo", ""), &ask("/mcp", &headers), 2.5);
    let (old_headers, old_body) = legacy("noop", "{}");
    let mut peers = Vec::new();
    let mut add = |name, running: Option<Running>, path, headers: &str, body: &str| match running {
        Some(running) => peers.push(Peer {
            name,
            running,
            path,
            headers: headers.to_owned(),
            body: body.to_owned(),
        }),
        None => println!("\n{name} could not be started; `make test` installs it"),
    };
    add("bare axum echo", own("__echo"), "/echo", "", &body);
    add(
        "toolcrib, stateless",
        own("__noop"),
        "/mcp",
        &headers,
        &body,
    );
    add(SESSIONS, own("__noop"), "/mcp", "", &old_body);
    add(
        "TypeScript SDK",
        typescript(),
        "/mcp",
        &old_headers,
        &old_body,
    );
    add(
        "Python SDK",
        python("server.py"),
        "/mcp",
        &old_headers,
        &old_body,
    );

    println!(
        "\nno-op call over MCP, every server free to use every core; one at a time, then many at once"
    );
    let mut measured = Vec::new();
    for peer in &peers {
        let mut samples = Samples::default();
        if let Some(mut client) = peer.client() {
            block(&mut client, 100);
            samples.extend(block(&mut client, 1_000));
        }
        let rates: Vec<f64> = CLIENTS
            .iter()
            .map(|clients| peer.throughput(*clients))
            .collect();
        let shown: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        println!(
            "  {:<20} {}  calls/s at {CLIENTS:?}: {}",
            peer.name,
            samples.line(),
            shown.join(", ")
        );
        measured.push((peer.name, rates[2]));
    }
    if let Some(samples) = stdio() {
        println!("  {:<20} {}", "toolcrib, stdio", samples.line());
    }
    let of = |name: &str| measured.iter().find(|(other, _)| *other == name);
    if let Some(ours) = of("toolcrib, stateless") {
        for (peer, aim) in [("TypeScript SDK", 10.0), ("Python SDK", 50.0)] {
            if let Some(peer) = of(peer) {
                let times = ours.1 / peer.1.max(0.1);
                println!(
                    "  against {:<12} {times:.1} times its calls/s at 32 (aim ≥ {aim}): {}",
                    peer.0,
                    verdict(times >= aim)
                );
            }
        }
    }
}

/// The request that asks for news of the tool list.
pub fn listening(port: u16) -> String {
    let (headers, body) = stateless(
        "subscriptions/listen",
        r#""notifications":{"toolsListChanged":true},"#,
    );
    format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// `tools/list` of a crib with many tools, by the short way.
pub fn list(port: u16) -> Option<Samples> {
    let (headers, body) = stateless("tools/list", "");
    let mut client = Client::post(port, "/mcp", &headers, &body).ok()?;
    client.ask().ok()?;
    let mut samples = Samples::default();
    samples.extend(block(&mut client, 300));
    Some(samples)
}
