//! Calls of TypeScript tools side by side: one thread runs them in turns, and who keeps its turn gets company.

use std::path::Path;

use serde_json::{Value, json};

use crate::scripts_typescript::each;
use crate::world::{World, eventually};

const FILE: &str = r#"
import fs from "node:fs";
const me = Math.random().toString(16).slice(2);
const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const z = (await import("@toolcrib/plugin")).tool.schema;
const args = { path: z.string(), n: z.number().default(0) };

export const blocked = { description: "Waits for a file and lets nobody else run.", args,
  execute({ path, n }) {
    console.log(`blocked ${n}.`);
    while (!fs.existsSync(path)) pause(10);
    return me;
  } };

export const waits = { description: "Waits for a file and lets others run.", args,
  async execute({ path, n }) {
    console.log(`waits ${n}.`);
    while (!fs.existsSync(path)) await new Promise((go) => setTimeout(go, 10));
    return me;
  } };

export const pid = { description: "Says which process it is.", args: {}, execute: () => me };
"#;

fn go(world: &World) -> (Value, std::path::PathBuf) {
    let path = world.root.join("home/go");
    (json!(path), path)
}

async fn all_said(world: &World, word: &str, count: usize) {
    eventually(&format!("{count} calls are in {word}"), || {
        let log = world.said.text();
        (0..count).all(|n| log.contains(&format!("{word} {n}.")))
    })
    .await;
}

fn let_go(path: &Path) {
    std::fs::write(path, "").unwrap();
}

#[tokio::test]
async fn calls_that_block_their_thread_run_side_by_side() {
    for (runtime, world) in each() {
        world.write("file.mts", FILE);
        world.open().await;
        let (path, file) = go(&world);
        let calls: Vec<_> = (0..16)
            .map(|n| world.begin("file_blocked", json!({"path": path, "n": n})))
            .collect();
        all_said(&world, "blocked", 16).await;
        let_go(&file);
        let mut processes = Vec::new();
        for call in calls {
            processes.push(call.await.unwrap().unwrap().output);
        }
        processes.sort();
        processes.dedup();
        assert_eq!(processes.len(), 16, "{runtime}");
    }
}

#[tokio::test]
async fn a_call_that_blocks_its_thread_for_ever_holds_up_nobody() {
    for (runtime, world) in each() {
        world.write("file.mts", FILE);
        world.open().await;
        let (path, _) = go(&world);
        let waiting = world.begin("file_waits", json!({"path": path, "n": 0}));
        all_said(&world, "waits", 1).await;
        let blocked = world.begin("file_blocked", json!({"path": path, "n": 0}));
        all_said(&world, "blocked", 1).await;
        let mut processes = Vec::new();
        for _ in 0..20 {
            processes.push(world.output("file_pid", json!({})).await);
        }
        processes.dedup();
        assert_eq!(processes.len(), 1, "{runtime}: one company is enough");
        blocked.abort();
        assert!(!waiting.is_finished(), "{runtime}");
        waiting.abort();
    }
}

#[tokio::test]
async fn calls_that_wait_share_a_thread() {
    for (runtime, world) in each() {
        world.write("file.mts", FILE);
        world.open().await;
        let pid = world.output("file_pid", json!({})).await;
        let (path, file) = go(&world);
        // One after the other: who has no time for a moment might get company otherwise.
        let mut calls = Vec::new();
        for n in 0..16 {
            calls.push(world.begin("file_waits", json!({"path": path, "n": n})));
            all_said(&world, "waits", n + 1).await;
        }
        let_go(&file);
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().output, pid, "{runtime}");
        }
    }
}

#[tokio::test]
async fn a_tool_that_must_be_alone_gets_no_company() {
    for (runtime, world) in each() {
        world.write(
            "file.mts",
            FILE.replace("args: {},", "args: {}, concurrency: 1,"),
        );
        world.open().await;
        let pid = world.output("file_pid", json!({})).await;
        let (path, file) = go(&world);
        let blocked = world.begin("file_blocked", json!({"path": path, "n": 0}));
        all_said(&world, "blocked", 1).await;
        let calls: Vec<_> = (0..4).map(|_| world.begin("file_pid", json!({}))).collect();
        // sleeps: company would come after 50 ms
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let_go(&file);
        for call in calls.into_iter().chain([blocked]) {
            assert_eq!(call.await.unwrap().unwrap().output, pid, "{runtime}");
        }
    }
}
