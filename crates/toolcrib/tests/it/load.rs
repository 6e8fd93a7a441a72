//! Under load and at every kind of end: no call lost, no catalog mixed, no process or descriptor left behind.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    TestCrib, World, count_processes, descendants, descriptors, eventually, shell_tool, signal,
    soak,
};

const REST: Duration = Duration::from_millis(50);

/// Two tools that both carry the generation they were written in.
fn generation(n: u64) -> String {
    let tool = |name: &str| {
        json!({"name": name, "description": format!("generation {n}"), "inputSchema": {"type": "object"},
               "handler": {"type": "shell", "command": format!("echo {n}")}})
    };
    json!({"name": "pair", "tools": [tool("left"), tool("right")]}).to_string()
}

fn described(list: &Value, name: &str) -> String {
    let mut tools = list["tools"].as_array().unwrap().iter();
    let tool = tools.find(|tool| tool["name"] == name).unwrap();
    tool["description"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn calls_and_reloads_at_once_lose_nothing_and_mix_nothing() {
    let reloads = soak(200, 20);
    let each = soak(10, 1);
    let world = World::loose();
    world.write_tool("pair.json", generation(0));
    let mut crib = world.serve();
    crib.output_of("left").await;
    let before = descriptors(crib.pid());
    let version = crib.catalog_version().await;
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    {
        let crib = &crib;
        let reload = async {
            let mut tick = tokio::time::interval(REST);
            for n in 1..=reloads as u64 {
                tick.tick().await;
                written.store(n, Ordering::SeqCst);
                world.write_tool("pair.json", generation(n));
                let (status, view) = crib.post("/tools/reload", json!({})).await;
                assert_eq!((status, &view["success"]), (200, &json!(true)), "{view}");
            }
            done.store(true, Ordering::SeqCst);
        };
        let look = async {
            let mut looks = 0;
            while !done.load(Ordering::SeqCst) {
                let (_, list) = crib.get("/tools").await;
                assert_eq!(described(&list, "left"), described(&list, "right"));
                looks += 1;
            }
            looks
        };
        let call = |n: usize| {
            let written = &written;
            async move {
                for _ in 0..each {
                    let tool = if n.is_multiple_of(2) { "left" } else { "right" };
                    let (status, outcome) = crib.call(tool, json!({})).await;
                    assert_eq!(
                        (status, &outcome["isError"]),
                        (200, &json!(false)),
                        "{outcome}"
                    );
                    let said = outcome["output"].as_str().unwrap().trim().parse::<u64>();
                    assert!(said.unwrap() <= written.load(Ordering::SeqCst), "{outcome}");
                }
            }
        };
        let calls = futures_util::future::join_all((0..200).map(call));
        let (_, looks, _) = tokio::join!(reload, look, calls);
        assert!(looks > 0);
    }
    // Each writing was a version of its own, seen by the watcher or the reload, whichever came first.
    assert_eq!(crib.catalog_version().await, version + reloads as u64);
    let last = reloads.to_string();
    assert_eq!(crib.output_of("right").await, last);
    // The client lets go of its many connections; what the crib then holds is what it held before.
    crib.client = reqwest::Client::builder().no_proxy().build().unwrap();
    let pid = crib.pid();
    eventually("every process is gone", async || {
        descendants(pid).is_empty()
    })
    .await;
    let mut now = Vec::new();
    let end = tokio::time::Instant::now() + Duration::from_secs(60);
    while tokio::time::Instant::now() < end {
        now = descriptors(pid);
        if now.len() <= before.len() + 2 {
            break;
        }
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(
        now.len() <= before.len() + 2,
        "before {before:#?}\nthen {now:#?}"
    );
    assert_eq!(crib.stop(), Some(0));
}

/// A number of seconds that no other process sleeps for.
fn marker(test: u32) -> String {
    format!("8640{test}.{}", std::process::id())
}

/// A tool that leaves children, and a grandchild in a session of its own, and never ends.
fn sleeper(marker: &str) -> String {
    let command = format!("sh -c '(setsid sleep {marker} &); sleep {marker} & sleep {marker}'");
    shell_tool("sleeper", &command, json!({}))
}

/// Begins a call that goes on by itself.
fn begin(crib: &TestCrib, tool: &str) -> tokio::task::JoinHandle<Option<(u16, Value)>> {
    let url = format!("{}/api/tools/{tool}/call", crib.url);
    let request = crib.client.post(url).json(&json!({"arguments": {}}));
    tokio::spawn(async move {
        let answer = request.send().await.ok()?;
        Some((answer.status().as_u16(), answer.json().await.ok()?))
    })
}

async fn until_running(marker: &str, count: usize) {
    let what = format!("{count} processes run {marker}");
    eventually(&what, async || count_processes(marker) >= count).await;
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree() {
    let world = World::loose();
    let marker = marker(1);
    let mut tool: Value = serde_json::from_str(&sleeper(&marker)).unwrap();
    tool["tools"][0]["timeoutMs"] = json!(200);
    world.write_tool("a.json", tool.to_string());
    let crib = world.serve();
    let (status, error) = crib.call("sleeper", json!({})).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (504, &json!("timed_out")),
        "{error}"
    );
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("200 ms"), "{message}");
    let pid = crib.pid();
    eventually("the tree is gone", async || {
        count_processes(&marker) == 0 && descendants(pid).is_empty()
    })
    .await;
    // The same from the command line, with its exit code.
    world.run(&["call", "sleeper"]).exits(4);
    eventually("the tree is gone", async || count_processes(&marker) == 0).await;
}

#[tokio::test]
async fn nothing_survives_a_crib_that_is_killed() {
    let world = World::loose();
    let marker = marker(2);
    world.write_tool("a.json", sleeper(&marker));
    let crib = world.serve();
    let calls: Vec<_> = (0..5).map(|_| begin(&crib, "sleeper")).collect();
    // Each call is a launcher, a shell and three sleepers.
    until_running(&marker, 5 * 4).await;
    crib.kill();
    eventually("every process is gone", async || {
        count_processes(&marker) == 0
    })
    .await;
    for call in calls {
        assert_eq!(call.await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_crib_that_is_asked_to_stop_finishes_what_is_in_flight() {
    let world = World::loose();
    let marker = marker(3);
    let go = world.project().join("go");
    let command = format!("sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo finished' {marker}");
    world.write_tool("a.json", shell_tool("waiter", &command, json!({})));
    let crib = world.serve();
    let call = begin(&crib, "waiter");
    until_running(&marker, 1).await;
    signal(crib.pid(), libc::SIGTERM);
    let port = crib.port();
    eventually("no new connection is taken", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
    })
    .await;
    assert!(!call.is_finished());
    std::fs::write(&go, "").unwrap();
    let (status, outcome) = call.await.unwrap().unwrap();
    assert_eq!((status, &outcome["output"]), (200, &json!("finished\n")));
    assert_eq!(crib.wait(), Some(0));
    assert_eq!(count_processes(&marker), 0);
}

#[tokio::test]
async fn a_stop_waits_only_so_long_and_leaves_nothing() {
    let world = World::loose();
    let marker = marker(4);
    world.write_tool("a.json", sleeper(&marker));
    let crib = world.serve();
    let call = begin(&crib, "sleeper");
    until_running(&marker, 4).await;
    signal(crib.pid(), libc::SIGTERM);
    let port = crib.port();
    eventually("no new connection is taken", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_err()
    })
    .await;
    // Asked twice, it does not wait for the grace to end.
    assert_eq!(crib.stop(), Some(0));
    eventually("every process is gone", async || {
        count_processes(&marker) == 0
    })
    .await;
    let _ = call.await;
}
