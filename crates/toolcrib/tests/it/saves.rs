//! A program that is saved again and again while it is called.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use crate::support::processes::{all_gone, marked};
use crate::support::tool::{PROGRAM, marker, save_program, workers, write_program};
use crate::support::{World, eventually, soak};

const POOL: usize = 2;

/// The program, saying which version it is.
fn version(n: u64) -> String {
    PROGRAM.replace("\"said \"", &format!("\"{n} \""))
}

#[tokio::test]
async fn saves_fail_no_call_and_leave_no_old_worker() {
    let saves = soak(1_000, 100) as u64;
    let world = World::trusted();
    let marker = marker();
    write_program(
        &world,
        "echo",
        &marker,
        &["daemon"],
        json!({"poolSize": POOL}),
    );
    save_program(&world, "echo", &version(0));
    let crib = world.serve();
    let (written, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let save = async {
        for n in 1..=saves {
            // sleeps: the pace of the saves, so that each of them is served for a while
            tokio::time::sleep(Duration::from_millis(30)).await;
            written.store(n, Ordering::SeqCst);
            save_program(&world, "echo", &version(n));
        }
        done.store(true, Ordering::SeqCst);
    };
    let caller = async || {
        let mut calls = 0;
        while !done.load(Ordering::SeqCst) {
            let (status, outcome) = crib.call("echo", json!({"say": "x", "sleep": 0.003})).await;
            assert_eq!(
                (status, &outcome["isError"]),
                (200, &json!(false)),
                "{outcome}"
            );
            let said = outcome["output"].as_str().unwrap();
            let n: u64 = said.strip_suffix(" x").unwrap().parse().unwrap();
            assert!(n <= written.load(Ordering::SeqCst), "{said}");
            calls += 1;
        }
        calls
    };
    let callers = join_all((0..4).map(|_| caller()));
    let ((), calls) = tokio::join!(save, callers);
    assert!(calls.iter().all(|count| *count > 0), "{calls:?}");
    let last = format!("{saves} nothing");
    eventually("the last version answers", async || {
        crib.output_of("echo").await == last
    })
    .await;
    join_all((0..POOL).map(|_| crib.call("echo", json!({"sleep": 0.5})))).await;
    eventually("only the last version's workers live", async || {
        // Each with its daemon.
        let daemons = marked(&marker)
            .iter()
            .filter(|process| process.runs("sleep"))
            .count();
        (workers(&marker).len(), daemons) == (POOL, POOL)
    })
    .await;
    assert_eq!(crib.stop(), Some(0));
    all_gone(&marker).await;
}
