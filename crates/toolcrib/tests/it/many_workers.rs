//! Many tools, each called once: as many processes as settings allow, and no more memory; each answers again.

use serde_json::json;

use crate::support::{World, descendants, eventually, soak};

const WORKERS: usize = 8;
/// A launcher, the first process of a namespace, and the tool.
const EACH: usize = 3;

const TOOL: &str = r#"#!/usr/bin/env python3
"""A worker that keeps four megabytes."""
import json, sys

kept = bytearray(4 << 20)
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        answer = {"protocolVersion": "1.0", "name": NAME, "description": "Says hi", "inputSchema": {"type": "object"}}
    elif asked["method"] == "execute":
        answer = {"output": "hi"}
    else:
        answer = {"status": "healthy"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"#;

fn world(tools: usize) -> World {
    let world = World::trusted();
    for n in 0..tools {
        let text = TOOL.replace("NAME", &format!("\"t{n}\""));
        let path = world.write_tool(&format!("t{n}"), text);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn all_tools_together_have_no_more_workers_than_allowed_and_all_answer() {
    let tools = soak(300, 30);
    let mut world = world(tools);
    world
        .vars
        .push(("TOOLCRIB_MAX_WORKERS", WORKERS.to_string()));
    let crib = world.serve();
    let named = |n: usize| format!("t{n}");
    eventually("all tools are there", async || {
        let names = crib.names().await;
        (0..tools).all(|n| names.contains(&named(n)))
    })
    .await;
    let mut most = 0;
    for _ in 0..2 {
        for n in 0..tools {
            assert_eq!(crib.output_of(&named(n)).await, "hi");
            most = most.max(descendants(crib.pid()).len());
        }
    }
    // Whoever is asked to end may take a moment for it, but has its place until it is gone.
    assert!(most <= WORKERS * EACH, "{most} processes");
    // Several at once, more than there are places: who waits gets one when another is idle.
    let names: Vec<String> = (0..3 * WORKERS).map(named).collect();
    let calls = names.iter().map(|name| crib.call(name, json!({})));
    for (status, said) in futures_util::future::join_all(calls).await {
        assert_eq!(status, 200, "{said}");
    }
    assert!(descendants(crib.pid()).len() <= WORKERS * EACH);
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_workers_keep_no_more_memory_than_allowed_and_go_when_nobody_calls() {
    let tools = 10;
    let mut world = world(tools);
    // Each keeps four megabytes and what its interpreter takes.
    world
        .vars
        .push(("TOOLCRIB_MAX_WORKER_MEMORY", "40".to_owned()));
    let crib = world.serve();
    for n in 0..tools {
        let tool = format!("t{n}");
        eventually("it is there", async || {
            crib.status_of(&tool).await.is_some()
        })
        .await;
        assert_eq!(crib.output_of(&tool).await, "hi");
    }
    let memory = || -> u64 { descendants(crib.pid()).into_iter().map(own_memory).sum() };
    eventually("memory is within its bound", async || memory() <= 40 << 20).await;
    let left = descendants(crib.pid()).len();
    assert!((1..tools * EACH).contains(&left), "{left}");
    for n in 0..tools {
        assert_eq!(crib.output_of(&format!("t{n}")).await, "hi");
    }
    drop(crib);
    world.vars.push(("TOOLCRIB_WORKER_IDLE", "200".to_owned()));
    let crib = world.serve();
    assert_eq!(crib.call("t0", json!({})).await.0, 200);
    eventually("nobody is left", async || {
        descendants(crib.pid()).is_empty()
    })
    .await;
    assert_eq!(crib.output_of("t0").await, "hi");
}

fn own_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    number.unwrap_or(0) * 1_024
}
