//! Several processes on one file, and a store that is held, or goes away and comes back.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use sqlx::{Connection, PgConnection, SqliteConnection};
use toolcrib_core::store::{CallBook, CustomTool, Recorded, StoreError};
use toolcrib_store::{Store, StoreUrl};

use crate::calls::call;
use crate::support::{self, SOON, Site};

#[tokio::test(flavor = "multi_thread")]
async fn eight_processes_write_one_file() {
    let site = Site::sqlite();
    let each = if support::soak() { 1_000 } else { 100 };
    let began = Instant::now();
    let writers: Vec<_> = (0..8)
        .map(|n| {
            let arguments = ["register", &site.url, &format!("p{n}"), &each.to_string()];
            support::run_writer(&arguments).spawn().unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    eprintln!("8 processes, {each} writes each: {:?}", began.elapsed());
    let store = site.open().await;
    let page = store.custom_tools().list(None, 0, 1).await.unwrap();
    assert_eq!(page.total, 8 * each);
    assert_eq!(store.revisions().await.unwrap().custom_tools, 8 * each);
    store.check().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_held_is_read_and_the_log_waits() {
    let site = Site::sqlite();
    let store = site.open().await;
    let tools = store.custom_tools();
    tools.create(CustomTool::new("a", "x")).await.unwrap();
    let log = store.call_log();
    let mut holder = SqliteConnection::connect(&site.url).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE")
        .execute(&mut holder)
        .await
        .unwrap();

    let began = Instant::now();
    let write = tokio::spawn({
        let tools = tools.clone();
        async move { tools.create(CustomTool::new("b", "x")).await.unwrap_err() }
    });
    // sleeps: the write should be waiting by now; what follows holds if it is not
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Who opens, and who reads, waits for nobody.
    let other = site.open().await;
    assert_eq!(
        other.custom_tools().list(None, 0, 9).await.unwrap().total,
        1
    );
    assert!(began.elapsed() < Duration::from_secs(5));
    let handed = Instant::now();
    let kept = (0..30_000)
        .filter(|n| log.record(call(*n, "echo")) == Recorded::Queued)
        .count();
    assert!(
        handed.elapsed() < Duration::from_secs(5),
        "{:?}",
        handed.elapsed()
    );
    assert!((10_000..=21_000).contains(&kept), "{kept}");

    let error = write.await.unwrap();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(
        began.elapsed() < Duration::from_secs(16),
        "{:?}",
        began.elapsed()
    );
    sqlx::query("ROLLBACK").execute(&mut holder).await.unwrap();
    tools.create(CustomTool::new("b", "x")).await.unwrap();
    log.flush(SOON).await.unwrap();
    let state = log.state();
    assert_eq!(state.written, kept as u64);
    assert_eq!(state.written + state.dropped, 30_000);
    assert_eq!(state.trouble, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_is_said_at_once() {
    let began = Instant::now();
    for url in [
        "postgres://u:s3cret@127.0.0.1:9/x",
        "postgres://u:s3cret@%2Fnowhere/x",
    ] {
        let url: StoreUrl = url.parse().unwrap();
        let error = Store::open(&url).await.err().unwrap();
        assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
    assert!(
        began.elapsed() < Duration::from_secs(3),
        "{:?}",
        began.elapsed()
    );
    let site = Site::postgres().await;
    let url: StoreUrl = format!("{}_not", site.url).parse().unwrap();
    let error = Store::open(&url).await.err().unwrap();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_were_cut_come_back() {
    let site = Site::postgres().await;
    let store = site.open().await;
    let mut told = store.watch();
    store
        .custom_tools()
        .create(CustomTool::new("a", "x"))
        .await
        .unwrap();
    tokio::time::timeout(SOON, told.changed())
        .await
        .unwrap()
        .unwrap();
    let mut db = PgConnection::connect(&site.url).await.unwrap();
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::query(cut).execute(&mut db).await.unwrap();
    let made = store.custom_tools().create(CustomTool::new("b", "x")).await;
    made.unwrap();
    assert_eq!(
        store.custom_tools().list(None, 0, 9).await.unwrap().total,
        2
    );
    let both = told.wait_for(|pulse| pulse.revisions.custom_tools >= 2);
    tokio::time::timeout(SOON, both).await.unwrap().unwrap();
}

/// Closing a file lets go of all locks that a process has on it: opening a store twice must not do that to the first,
/// or another process that goes may believe that it is the last, and take the journal along.
#[tokio::test(flavor = "multi_thread")]
async fn opening_again_leaves_the_locks_of_the_first() {
    let site = Site::sqlite();
    let store = site.open().await;
    let tools = store.custom_tools();
    tools.create(CustomTool::new("a", "x")).await.unwrap();
    let file = site.file().metadata().unwrap().ino();
    let locked = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks
            .lines()
            .any(|line| line.contains(&format!(":{file} ")))
    };
    assert!(locked());
    let again = site.open().await;
    assert!(locked());
    let other = support::run_writer(&["try", &site.url]).output().unwrap();
    assert_eq!(other.stdout, b"fine\n");
    tools.create(CustomTool::new("b", "x")).await.unwrap();
    let total = again.custom_tools().list(None, 0, 1).await.unwrap().total;
    assert_eq!(total, 3);
}
