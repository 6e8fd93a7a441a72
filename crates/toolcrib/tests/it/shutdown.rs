//! Every orderly end: workers are asked to end before they are killed, it does not take long, and nothing is left.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::mcp::{Piped, call};
use crate::support::processes::{all_gone, marked};
use crate::support::tool::{asked_to_end, marker, workers, write_program};
use crate::support::{TestCrib, World, eventually, signal};

/// Five seconds for calls in flight, two for workers that were asked to end, and some for a busy machine.
const SERVE_LIMIT: Duration = Duration::from_secs(11);
const SOON: Duration = Duration::from_secs(5);

/// A project with a tool of two workers, each with a daemon.
fn project() -> (World, String) {
    let world = World::trusted();
    let marker = marker();
    write_program(&world, "echo", &marker, &["daemon"], json!({"poolSize": 2}));
    (world, marker)
}

/// Begins a call that goes on by itself.
fn begin(crib: &TestCrib, arguments: Value) -> tokio::task::JoinHandle<Option<(u16, Value)>> {
    let url = format!("{}/api/tools/echo/call", crib.url);
    let request = crib.client.post(url).json(&json!({"arguments": arguments}));
    tokio::spawn(async move {
        let answer = request.send().await.ok()?;
        Some((answer.status().as_u16(), answer.json().await.ok()?))
    })
}

/// Both workers run, and one of them works on a call that takes so many seconds.
async fn one_busy_one_idle(
    crib: &TestCrib,
    world: &World,
    marker: &str,
    seconds: u64,
) -> tokio::task::JoinHandle<Option<(u16, Value)>> {
    let warm = (0..2).map(|_| crib.call("echo", json!({"sleep": 0.3})));
    join_all(warm).await;
    assert_eq!((workers(marker).len(), asked_to_end(world)), (2, 0));
    let busy = world.project().join("busy");
    let call = begin(
        crib,
        json!({"sleep": seconds, "say": "late", "touch": busy}),
    );
    eventually("the call runs", async || busy.exists()).await;
    call
}

async fn stops(by: libc::c_int) {
    let (world, marker) = project();
    let crib = world.serve();
    let call = one_busy_one_idle(&crib, &world, &marker, 600).await;
    let begin = Instant::now();
    signal(crib.pid(), by);
    assert_eq!(crib.wait(), Some(0));
    let took = begin.elapsed();
    assert!(took < SERVE_LIMIT, "it took {took:?}");
    all_gone(&marker).await;
    assert_eq!(asked_to_end(&world), 2, "both were asked");
    let answer = call.await.unwrap();
    assert!(answer.is_none_or(|(status, _)| status >= 500));
}

#[tokio::test]
async fn serve_is_terminated() {
    stops(libc::SIGTERM).await;
}

#[tokio::test]
async fn serve_is_interrupted() {
    stops(libc::SIGINT).await;
}

#[tokio::test]
async fn a_call_in_flight_ends_within_the_grace() {
    let (world, marker) = project();
    let crib = world.serve();
    let call = one_busy_one_idle(&crib, &world, &marker, 1).await;
    let begin = Instant::now();
    assert_eq!(crib.stop(), Some(0));
    let took = begin.elapsed();
    assert!(took < SOON, "it took {took:?}");
    let (status, outcome) = call.await.unwrap().unwrap();
    assert_eq!((status, &outcome["output"]), (200, &json!("said late")));
    assert!(marked(&marker).is_empty(), "gone before the crib is");
    assert_eq!(asked_to_end(&world), 2);
}

/// An agent of its own crib, with one worker idle and, if wished, one at work.
async fn alone(world: &World, at_work: bool) -> Piped {
    let mut agent = Piped::greeted(world.command(&["mcp", "--standalone"]));
    agent.ask(&call(1, "echo", json!({})));
    if at_work {
        let busy = world.project().join("busy");
        agent.send(&call(2, "echo", json!({"sleep": 0.3})));
        agent.send(&call(3, "echo", json!({"sleep": 600, "touch": busy})));
        agent.answer(2);
        eventually("the call runs", async || busy.exists()).await;
    }
    agent
}

#[tokio::test]
async fn an_agent_hangs_up() {
    for at_work in [false, true] {
        let (world, marker) = project();
        let agent = alone(&world, at_work).await;
        let running = workers(&marker).len();
        assert_eq!(running, 1 + usize::from(at_work));
        let begin = Instant::now();
        assert_eq!(agent.hang_up().0, Some(0));
        let took = begin.elapsed();
        // A call in flight has its grace here too.
        let limit = if at_work { SERVE_LIMIT } else { SOON };
        assert!(took < limit, "it took {took:?}");
        all_gone(&marker).await;
        assert_eq!(asked_to_end(&world), running, "at work: {at_work}");
    }
}

#[tokio::test]
async fn an_agent_ends_its_server_by_a_signal() {
    for by in [libc::SIGTERM, libc::SIGINT, libc::SIGKILL] {
        let (world, marker) = project();
        let agent = alone(&world, true).await;
        let running = workers(&marker).len();
        signal(agent.pid(), by);
        all_gone(&marker).await;
        // A server that can still do anything asks its tools to end first.
        let asked = if by == libc::SIGKILL { 0 } else { running };
        assert_eq!(asked_to_end(&world), asked, "signal {by}");
    }
}

#[tokio::test]
async fn a_command_ends_its_worker() {
    for keep in [true, false] {
        let world = World::trusted();
        let marker = marker();
        let fields = json!({"keepAlive": keep});
        write_program(&world, "echo", &marker, &["daemon"], fields);
        let ran = world.run(&["call", "echo", r#"{"say": "hi"}"#]).exits(0);
        assert_eq!(ran.stdout.trim_end(), "said hi");
        assert!(marked(&marker).is_empty(), "gone before the command is");
        assert_eq!(asked_to_end(&world), 1, "kept: {keep}");
    }
}
