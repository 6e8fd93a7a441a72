//! Every example is copied, trusted, loaded without a word of complaint, and each of its tools is called.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::support::World;
use crate::tidy::root;

/// One line of an example's `calls.json`. `$SERVER` in it stands for a server of this test.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Call {
    tool: String,
    arguments: Value,
    output_contains: String,
    #[serde(default)]
    is_error: bool,
}

#[test]
fn every_example_works() {
    let server = echo_server();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        if folder.is_dir() {
            check(&folder, &server);
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} examples were found");
}

fn check(folder: &Path, server: &str) {
    let example = folder.file_name().unwrap().to_str().unwrap();
    assert!(folder.join("README.md").exists(), "{example}: no README.md");
    let world = World::new();
    copy(folder, &world.project());
    world.run(&["trust"]).exits(0);
    let list = world.run(&["list", "--json"]).exits(0).json();
    assert_eq!(
        list["errors"].as_array().unwrap().len(),
        0,
        "{example}: {list}"
    );
    let linted = world.run(&["lint", "--strict"]);
    assert_eq!(linted.code, 0, "{example}: {}", linted.stdout);
    let calls = std::fs::read_to_string(folder.join("calls.json")).unwrap();
    let calls: Vec<Call> = serde_json::from_str(&calls.replace("$SERVER", server)).unwrap();
    for call in &calls {
        let arguments = call.arguments.to_string();
        let ran = world.run(&["call", &call.tool, &arguments, "--json"]);
        let outcome = ran.exits(i32::from(call.is_error)).json();
        let output = outcome["output"].as_str().unwrap();
        assert!(
            output.contains(&call.output_contains),
            "{example}, {call:?}: {outcome}"
        );
    }
    let own: BTreeSet<&str> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["scope"] == "local")
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let called: BTreeSet<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    assert!(!own.is_empty(), "{example} holds no tool");
    assert_eq!(own, called, "{example}: each tool is called in calls.json");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A server that answers every request with the request itself, as text.
fn echo_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = Vec::new();
            let mut buffer = [0; 4_096];
            while !is_whole(&request) {
                match stream.read(&mut buffer) {
                    Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                request.len()
            );
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(&request);
        }
    });
    url
}

/// Have the head and all of its body arrived?
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|length| length.trim().parse().ok())
        .unwrap_or(0);
    body.len() >= length
}
