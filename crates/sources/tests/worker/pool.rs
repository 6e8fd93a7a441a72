//! Pools: how many workers there are, how long they stay, and who waits for them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_sources::worker::Limits;

use crate::world::{World, eventually, limits};

/// Each call tells which process ran it, and ends when it is told to.
const GATED: &str = r#"
def execute(id, params):
    mark("running", ME)
    if params["input"].get("wait"): wait_for("go")
    answer(id, ME)"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_has_at_most_its_size_of_workers() {
    let world = World::new();
    world.folder("three", json!({"poolSize": 3}), GATED);
    world.open().await;
    let calls: Vec<_> = (0..50)
        .map(|_| world.begin("three", json!({"wait": true})))
        .collect();
    eventually("three calls run", || world.signs("running").len() == 3).await;
    world.give("go");
    let mut who = BTreeSet::new();
    for call in calls {
        who.insert(call.await.unwrap().unwrap().output);
    }
    assert_eq!(who.len(), 3, "{who:?}");
    assert_eq!(world.signs("running").len(), 50);
    let spawned = world
        .events()
        .into_iter()
        .filter(|event| event.starts_with("worker.spawn"));
    assert_eq!(spawned.count(), 3);
}

#[tokio::test]
async fn a_pool_is_no_larger_than_the_settings_allow() {
    let world = World::with(Limits {
        pool_size: 2,
        ..limits()
    });
    world.folder("many", json!({"poolSize": 9}), GATED);
    world.open().await;
    assert!(world.problem().message.contains("max_pool_size"));
    let calls: Vec<_> = (0..9)
        .map(|_| world.begin("many", json!({"wait": true})))
        .collect();
    eventually("two calls run", || world.signs("running").len() == 2).await;
    world.give("go");
    for call in calls {
        call.await.unwrap().unwrap();
    }
    let who: BTreeSet<String> = world.signs("running").into_iter().collect();
    assert_eq!(who.len(), 2);
}

#[tokio::test]
async fn without_keep_alive_each_call_has_a_process() {
    let world = World::new();
    world.folder("once", json!({"keepAlive": false}), GATED);
    world.open().await;
    let mut who = BTreeSet::new();
    for _ in 0..4 {
        who.insert(world.output("once", json!({})).await);
    }
    assert_eq!(who.len(), 4);
    world.nothing_runs().await;
}

#[tokio::test]
async fn an_idle_worker_is_stopped_and_comes_back() {
    let world = World::with(Limits {
        idle: Duration::from_millis(80),
        ..limits()
    });
    world.folder("dozing", json!({}), GATED);
    world.folder("other", json!({}), "");
    world.open().await;
    let first = world.output("dozing", json!({})).await;
    world.nothing_runs().await;
    assert_ne!(world.output("dozing", json!({})).await, first);
    let standing = world.standing("dozing");
    assert!(!standing.failed, "{standing:?}");
    // One that works is not idle, however long it takes.
    let call = world.begin("dozing", json!({"wait": true}));
    eventually("it runs", || world.signs("running").len() == 3).await;
    // One that does nothing comes and goes meanwhile.
    let busy = world.processes();
    world.output("other", json!({})).await;
    eventually("only the busy one is left", || world.processes() == busy).await;
    world.give("go");
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_worker_is_replaced_after_many_calls() {
    let world = World::with(Limits {
        max_calls: 3,
        ..limits()
    });
    world.folder("worn", json!({}), GATED);
    world.open().await;
    let mut who = Vec::new();
    for _ in 0..7 {
        who.push(world.output("worn", json!({})).await);
    }
    assert!(who[0] == who[1] && who[1] == who[2], "{who:?}");
    assert!(who[3] == who[4] && who[4] == who[5], "{who:?}");
    assert!(who[2] != who[3] && who[5] != who[6], "{who:?}");
}

#[tokio::test]
async fn the_queue_is_bounded_and_orderly() {
    let world = World::with(Limits {
        queue: 3,
        ..limits()
    });
    world.folder(
        "narrow",
        json!({}),
        "def execute(id, params):\n    mark('order', str(params['input']['n']))\n    wait_for('go')\n    answer(id, 'done')",
    );
    world.open().await;
    let first = world.begin("narrow", json!({"n": 0}));
    eventually("the first runs", || world.signs("order").len() == 1).await;
    let mut waiting = Vec::new();
    for n in 1..=3 {
        waiting.push(world.begin("narrow", json!({"n": n})));
        tokio::task::yield_now().await;
    }
    let error = world.refused("narrow", json!({"n": 9})).await;
    assert_eq!(error.code, ErrorCode::LimitReached);
    assert!(
        error.message.contains("3 calls already waiting") && error.hint.is_some(),
        "{error:?}"
    );
    // Who goes away makes room.
    waiting.remove(1).abort();
    tokio::task::yield_now().await;
    waiting.push(world.begin("narrow", json!({"n": 4})));
    tokio::task::yield_now().await;
    world.give("go");
    first.await.unwrap().unwrap();
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    assert_eq!(world.signs("order"), ["0", "1", "3", "4"]);
}

/// Whose time is over while others have all workers never started, and is told so.
#[tokio::test]
async fn a_call_whose_time_ends_in_the_queue_says_that_it_never_started() {
    let world = World::new();
    world.folder(
        "narrow",
        json!({"timeoutMs": 1_000}),
        "def execute(id, params):\n    mark('order', str(params['input']['n']))\n    wait_for('go')\n    answer(id, 'done')",
    );
    world.open().await;
    let first = world.begin("narrow", json!({"n": 0}));
    eventually("the first runs", || world.signs("order").len() == 1).await;
    let second = world.begin("narrow", json!({"n": 1}));
    // The first is stopped at its deadline, after which the second may start for the rest of its own time.
    let error = first.await.unwrap().unwrap_err();
    assert_eq!(error.code, ErrorCode::TimedOut);
    assert!(error.message.contains("was stopped"), "{error:?}");
    let third = world.begin("narrow", json!({"n": 2}));
    let fourth = world.refused("narrow", json!({"n": 3})).await;
    let mut said = vec![fourth];
    for call in [second, third] {
        said.extend(call.await.unwrap().err());
    }
    assert!(
        said.iter().all(|one| one.code == ErrorCode::TimedOut),
        "{said:?}"
    );
    let never = said
        .iter()
        .filter(|one| one.message.contains("never started"));
    let never: Vec<_> = never.collect();
    assert!(!never.is_empty(), "{said:?}");
    for error in never {
        let hint = error.hint.as_ref().unwrap().to_string();
        assert!(
            hint.contains("poolSize") && hint.contains("concurrency"),
            "{hint}"
        );
    }
    let started = world.signs("order").len();
    assert!(started < 4, "{started} started");
}

/// Every message between tasks may be lost to a caller that goes away; the seat must not be.
async fn go_away_at_any_time(fields: serde_json::Value, rounds: u64) {
    let world = World::new();
    let body = "def execute(id, params):\n    time.sleep(0.002)\n    answer(id, 'done')";
    world.folder("busy", fields, body);
    world.open().await;
    let mut kept = Vec::new();
    for n in 0..rounds {
        let call = world.begin("busy", json!({}));
        if n % 4 == 0 {
            kept.push(call);
        } else {
            // sleeps: every call is given up at another moment of its life
            tokio::time::sleep(Duration::from_micros(n * 377 % 30_000)).await;
            call.abort();
        }
    }
    for call in kept {
        call.await.unwrap().unwrap();
    }
    let last: Vec<_> = (0..4).map(|_| world.begin("busy", json!({}))).collect();
    for call in last {
        assert_eq!(call.await.unwrap().unwrap().output, "done");
    }
    // Two workers, each with a launcher, its first process and the tool.
    eventually("only the pool's own are left", || {
        world.processes().len() <= 6
    })
    .await;
    world.place.workers.shutdown(Duration::ZERO).await;
    world.nothing_runs().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_go_away_take_no_seat_along() {
    go_away_at_any_time(json!({"poolSize": 2}), 120).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nor_do_they_where_every_call_has_a_process() {
    go_away_at_any_time(json!({"poolSize": 2, "keepAlive": false}), 60).await;
}
