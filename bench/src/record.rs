//! What the record of calls costs: on the path of a call, and in the store under load.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcrib_core::store::{CallBook, CallRecord, Level};
use toolcrib_core::{Caller, ChainSettings, Context, Crib, Object, Outputs, Profiles, Request};
use toolcrib_store::{CallFilter, CallLog, OutputFiles, OutputLimits, Store, StoreUrl};

use crate::peer::{noop, with_tool};
use crate::stats::{Samples, verdict};

/// Blocks of calls alternate between the two cribs, so that noise meets both.
const BLOCKS: usize = 40;
const BLOCK: usize = 500;
const RECORDS: usize = 100_000;
const AIM: Duration = Duration::from_micros(10);

pub fn run() {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    let measured = runtime.block_on(async {
        let home = tempfile::tempdir().ok()?;
        cost_of_a_call(home.path()).await?;
        load(home.path()).await
    });
    if measured.is_none() {
        println!("  could not be measured: the store did not open or take the records");
    }
    runtime.shutdown_background();
}

async fn open(home: &Path, name: &str) -> Option<(Store, CallLog)> {
    let url = StoreUrl::sqlite(home.join(name));
    let store = Store::open(&url).await.ok()?;
    let log = store.call_log();
    Some((store, log))
}

/// The same crib with and without its book.
async fn cost_of_a_call(home: &Path) -> Option<()> {
    let (store, log) = open(home, "calls.db").await?;
    let outputs =
        Arc::new(OutputFiles::in_folder(home, OutputLimits::default())) as Arc<dyn Outputs>;
    let long = Duration::from_secs(30);
    let book = Some(Arc::new(log.clone()) as Arc<dyn CallBook>);
    let bare = with_tool(
        Crib::new(outputs.clone(), toolcrib::now_ms, profiles(long)),
        noop()?,
    );
    let recorded = with_tool(
        Crib::with_book(outputs, toolcrib::now_ms, profiles(long), book),
        noop()?,
    );
    let (mut without, mut with) = (Samples::default(), Samples::default());
    block(&bare).await?;
    block(&recorded).await?;
    for _ in 0..BLOCKS {
        without.extend(block(&bare).await?);
        with.extend(block(&recorded).await?);
    }
    let cost = with.at(50).saturating_sub(without.at(50));
    println!(
        "\nno-op call with and without its record ({} calls each, no wire)",
        BLOCKS * BLOCK
    );
    println!("  without record   {}", without.line());
    println!("  with record      {}", with.line());
    println!(
        "  record costs     {:.1} µs at p50 (aim ≤ {:.0} µs): {}",
        cost.as_secs_f64() * 1e6,
        AIM.as_secs_f64() * 1e6,
        verdict(cost <= AIM)
    );
    log.flush(long).await.ok()?;
    let state = log.state();
    println!("  written {}, lost {}", state.written, state.dropped);
    store.close().await;
    Some(())
}

fn profiles(default_timeout: Duration) -> Profiles {
    Profiles::everybody(ChainSettings::new(default_timeout))
}

async fn block(crib: &Crib) -> Option<Vec<Duration>> {
    let mut timed = Vec::with_capacity(BLOCK);
    for _ in 0..BLOCK {
        let request = Request {
            tool: "noop".to_owned(),
            arguments: Object::from_iter([("a".to_owned(), Value::from("some text"))]),
            caller: Caller::new("bench"),
            context: Context::new(uuid::Uuid::now_v7().to_string()),
        };
        let start = Instant::now();
        crib.view("default").call(request).await.ok()?;
        timed.push(start.elapsed());
    }
    Some(timed)
}

fn record(n: usize) -> CallRecord {
    CallRecord {
        id: uuid::Uuid::now_v7().to_string().into(),
        at_ms: toolcrib::now_ms(),
        client: "bench".into(),
        agent: "default".into(),
        session: Some("a session of the bench".into()),
        project: Some("/srv/garden".into()),
        token: None,
        tool: ["git-status", "file-reader", "noop"][n % 3].into(),
        tool_version: Some("1.0.0".into()),
        tool_hash: Some("9f86d081884c7d659a2feaa0c55ad015".into()),
        argument_hash: Some("a".repeat(64)),
        transport: Level::Ok,
        protocol: Level::Ok,
        outcome: Level::Ok,
        error: None,
        duration_us: n as u64,
        output_bytes: 2,
        marks: Vec::new(),
        decision: None,
    }
}

/// Handed in by four tasks as fast as the log takes them, then read back page by page.
async fn load(home: &Path) -> Option<()> {
    let (store, log) = open(home, "load.db").await?;
    let start = Instant::now();
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let log = log.clone();
            tokio::spawn(async move {
                for n in (task..RECORDS).step_by(4) {
                    // A call never waits; here the hand waits, because nothing is to be lost.
                    while log.state().waiting > 9_000 {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    log.record(record(n));
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.ok()?;
    }
    log.flush(Duration::from_secs(60)).await.ok()?;
    let took = start.elapsed();
    let state = log.state();
    println!("\n{RECORDS} records written under load and read back by page");
    println!(
        "  written          {} in {took:.1?} ({:.0}/s), lost {}",
        state.written,
        state.written as f64 / took.as_secs_f64(),
        state.dropped
    );
    let (mut pages, mut read, mut after) = (Samples::default(), 0, None);
    loop {
        let start = Instant::now();
        let filter = CallFilter::default();
        let page = store
            .calls()
            .list(&filter, after.as_ref(), 1_000)
            .await
            .ok()?;
        pages.push(start.elapsed());
        read += page.calls.len();
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    println!("  pages of 1000    {}", pages.line());
    println!(
        "  read back        {read} of {RECORDS}: {}",
        verdict(read == RECORDS && state.dropped == 0)
    );
    store.close().await;
    Some(())
}
