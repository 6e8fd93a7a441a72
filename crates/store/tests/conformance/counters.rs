//! What calls are counted in: exact for all who share the store, and kept.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolcrib_core::counter::{CallLimit, CounterStep, CounterSteps, Exit};
use toolcrib_store::{Store, counter_path};

use crate::support::{self, SOON, Site, until};

fn lease(id: &str, most: u64) -> CounterSteps {
    let step = CounterStep::Lease {
        id: id.into(),
        most,
    };
    vec![("agent a".into(), step)]
}

fn release(id: &str) -> CounterSteps {
    vec![("agent a".into(), CounterStep::Release { id: id.into() })]
}

/// As one process of many counts a call: the same keys as the writer's.
fn thread(limit: u64) -> CounterSteps {
    let limits = Arc::new([CallLimit {
        tool: None,
        thread: Some(limit),
        run: None,
        exit: Exit::Continue,
    }]);
    let (tool, run) = ("search".into(), None);
    vec![(
        "thread t".into(),
        CounterStep::ToolCall { tool, run, limits },
    )]
}

async fn left(store: &Store, limit: u64) -> u64 {
    let mut left = 0;
    while store.count(thread(limit)).await.unwrap().is_ok() {
        left += 1;
    }
    left
}

pub async fn limits_are_exact_across_processes(site: Site) {
    let calls = if support::soak() { 10_000 } else { 1_000 };
    let processes = if site.is_sqlite() { 8 } else { 3 };
    let limit = calls * 3 / 5;
    // Made before they race for it.
    let store = site.open().await;
    let began = Instant::now();
    let each = calls / processes;
    let children: Vec<_> = (0..processes)
        .map(|_| {
            let (each, limit) = (each.to_string(), limit.to_string());
            let mut command = support::run_writer(&["count", &site.url, &each, &limit]);
            command.stdout(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let mut started = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        started += said.trim().parse::<u64>().unwrap();
    }
    eprintln!(
        "{processes} processes, {calls} calls: {:?}",
        began.elapsed()
    );
    assert!(started <= limit, "{started} of {limit}");
    assert!(started > limit / 2);
    // What was given back is there again, and nothing else.
    assert_eq!(started + left(&store, limit).await, limit);
}

/// Dropped at every possible moment: what nobody took an answer for counts for nobody.
pub async fn who_gives_up_is_not_counted(site: Site) {
    let store = site.open().await;
    let mut taken = 0;
    for n in 0..60 {
        let asked = store.count(thread(1_000));
        let answer = tokio::time::timeout(Duration::from_micros(n * 20), asked).await;
        if let Ok(answer) = answer {
            answer.unwrap().unwrap();
            taken += 1;
        }
    }
    assert_eq!(taken + left(&store, 1_000).await, 1_000);
}

pub async fn a_counter_is_kept(site: Site) {
    let store = site.open().await;
    assert!(store.count(lease("1", 1)).await.unwrap().is_ok());
    store.close().await;
    drop(store);
    let store = site.open().await;
    assert!(store.count(lease("2", 1)).await.unwrap().is_err());
    store.count_later(release("1"));
    until("the place is free", async || {
        store.count(lease("2", 1)).await.unwrap().is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_counters_that_is_damaged_or_gone_begins_anew() {
    let site = Site::sqlite();
    let store = site.open().await;
    assert!(store.count(lease("1", 1)).await.unwrap().is_ok());
    let path = counter_path(&site.file());
    std::fs::remove_file(&path).unwrap();
    assert!(store.count(lease("2", 1)).await.unwrap().is_ok());
    assert!(store.count(lease("3", 1)).await.unwrap().is_err());
    store.close().await;
    drop(store);
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&[7; 9_000]).unwrap();
    drop(file);
    let store = site.open().await;
    assert!(store.count(lease("4", 1)).await.unwrap().is_ok());
    let names = std::fs::read_dir(path.parent().unwrap()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        names
            .into_iter()
            .any(|name| name.contains("counters.damaged."))
    );
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_decides_nothing() {
    let site = Site::postgres().await;
    let store = site.open().await;
    assert!(store.count(lease("1", 9)).await.unwrap().is_ok());
    let mut held = sqlx::PgConnection::connect(&site.url).await.unwrap();
    use sqlx::Connection;
    sqlx::query("BEGIN").execute(&mut held).await.unwrap();
    sqlx::query("LOCK TABLE counters")
        .execute(&mut held)
        .await
        .unwrap();
    let began = Instant::now();
    assert!(store.count(lease("2", 9)).await.is_err());
    assert!(began.elapsed() < Duration::from_secs(8));
    sqlx::query("ROLLBACK").execute(&mut held).await.unwrap();
    let again = async {
        until("it answers", async || {
            store.count(lease("3", 9)).await.is_ok()
        })
        .await
    };
    tokio::time::timeout(SOON, again).await.unwrap();
}
