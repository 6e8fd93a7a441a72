//! Files that are copied, replaced, moved and emptied: a copy is whole, and no journal covers what it is not for.

use std::path::{Path, PathBuf};

use toolcrib_core::store::{CustomTool, StoreError};
use toolcrib_store::{Making, Pulse, Store, StoreUrl};

use crate::support::{self, SOON, Site, until};

async fn add(store: &Store, name: &str) {
    let tool = CustomTool::new(name, "x");
    store.custom_tools().create(tool).await.unwrap();
}

/// The names that a store holds.
async fn names(store: &Store) -> Vec<String> {
    let page = store.custom_tools().list(None, 0, 100).await.unwrap();
    page.tools.into_iter().map(|tool| tool.name).collect()
}

fn beside(site: &Site, ending: &str) -> PathBuf {
    PathBuf::from(format!("{}{ending}", site.file().display()))
}

fn journal(site: &Site) -> u64 {
    beside(site, "-wal").metadata().map_or(0, |meta| meta.len())
}

/// What whoever has this file alone finds in it.
async fn alone(file: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    std::fs::copy(file, &copy).unwrap();
    names(&Store::open(&StoreUrl::sqlite(copy)).await.unwrap()).await
}

/// Leaves a journal behind that holds something, as a process does that is killed.
async fn die(site: &Site, name: &str) {
    let mut writer = support::run_writer(&["die", &site.url, name])
        .spawn()
        .unwrap();
    writer.wait().unwrap();
    assert!(journal(site) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_closed_is_one_file() {
    let site = Site::sqlite();
    let (store, other) = (site.open().await, site.open().await);
    let _told = store.watch();
    add(&store, "a").await;
    assert!(journal(&site) > 0);
    store.close().await;
    // Another has it open, and the file is whole all the same.
    assert_eq!(alone(&site.file()).await, ["a"]);
    other.close().await;
    assert!(!beside(&site, "-wal").exists() && !beside(&site, "-shm").exists());
    assert_eq!(alone(&site.file()).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_rests_is_whole_in_its_file() {
    let site = Site::sqlite();
    let store = site.open().await;
    let _told = store.watch();
    add(&store, "a").await;
    until("the journal is taken over", async || journal(&site) == 0).await;
    assert_eq!(alone(&site.file()).await, ["a"]);
}

/// However a copy is put in place, and wherever it comes from.
#[tokio::test(flavor = "multi_thread")]
async fn a_good_copy_is_not_covered_by_an_old_journal() {
    let over = |good: &Path, file: &Path| {
        std::fs::copy(good, file).unwrap();
    };
    let renamed = |good: &Path, file: &Path| {
        let draft = file.with_file_name("draft");
        std::fs::copy(good, &draft).unwrap();
        std::fs::rename(draft, file).unwrap();
    };
    let ways: [fn(&Path, &Path); 2] = [over, renamed];
    for put in ways {
        let site = Site::sqlite();
        let store = site.open().await;
        add(&store, "a").await;
        store.close().await;
        let good = site.folder.path().join("good.db");
        std::fs::copy(site.file(), &good).unwrap();
        die(&site, "b").await;
        put(&good, &site.file());
        let store = site.open().await;
        assert_eq!(names(&store).await, ["a"]);
        store.check().await.unwrap();
        add(&store, "c").await;
        store.close().await;
        assert_eq!(alone(&site.file()).await, ["a", "c"]);
        let folder = std::fs::read_dir(site.file().parent().unwrap()).unwrap();
        let kept = folder.flatten().map(|entry| entry.file_name());
        let kept = kept.filter(|name| name.to_string_lossy().contains("-wal."));
        assert_eq!(
            kept.count(),
            1,
            "the journal was moved aside, not thrown away"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_of_the_file_itself_counts_wherever_both_are() {
    let site = Site::sqlite();
    let store = site.open().await;
    add(&store, "a").await;
    store.close().await;
    die(&site, "b").await;
    // The whole folder goes elsewhere.
    let there = Site::sqlite();
    std::fs::create_dir(there.file().parent().unwrap()).unwrap();
    for part in ["", "-wal", "-lock"] {
        std::fs::copy(beside(&site, part), beside(&there, part)).unwrap();
    }
    for site in [&site, &there] {
        let (one, two) = (site.open().await, site.open().await);
        assert_eq!(names(&one).await, ["a", "b"]);
        add(&one, "c").await;
        assert_eq!(names(&two).await, ["a", "b", "c"]);
    }
}

/// Writes the first page of the journal into the file, as who takes a journal over does first.
fn take_over_first_page(site: &Site) {
    const HEADER: usize = 32;
    const FRAME: usize = 24;
    let number =
        |bytes: &[u8]| usize::try_from(u32::from_be_bytes(bytes.try_into().unwrap())).unwrap();
    let journal = std::fs::read(beside(site, "-wal")).unwrap();
    let page = number(&journal[8..12]);
    let mut frames = journal[HEADER..].chunks_exact(FRAME + page);
    let first = frames.rfind(|frame| number(&frame[..4]) == 1).unwrap();
    let mut file = std::fs::read(site.file()).unwrap();
    file[..page].copy_from_slice(&first[FRAME..]);
    let counted = number(&file[28..32]);
    assert!(counted > file.len() / page, "the journal made it longer");
    std::fs::write(site.file(), file).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_was_taken_over_by_half_counts() {
    let site = Site::sqlite();
    site.open().await.close().await;
    die(&site, &"b".repeat(64 * 1024)).await;
    take_over_first_page(&site);
    let store = site.open().await;
    store.check().await.unwrap();
    assert_eq!(names(&store).await, ["b".repeat(64 * 1024)]);
    add(&store, "c").await;
    store.close().await;
    assert_eq!(alone(&site.file()).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_moved_while_it_is_open_is_whole_and_missed() {
    let site = Site::sqlite();
    let store = site.open().await;
    let mut told = store.watch();
    add(&store, "a").await;
    let away = site.folder.path().join("away.db");
    std::fs::rename(site.file(), &away).unwrap();
    // SQLite may be the first to complain, in words of its own.
    let says_so = |pulse: &Pulse| {
        let trouble = pulse.trouble.as_ref().map(ToString::to_string);
        trouble.is_some_and(|why| why.contains("put it back"))
    };
    let noticed = tokio::time::timeout(SOON, told.wait_for(says_so)).await;
    drop(noticed.unwrap().unwrap());
    let anew = Store::open_or(&site.store_url(), Making::Never).await;
    let error = anew.err().unwrap();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error:?}");
    assert!(!site.file().exists(), "no new store is made");
    until("the moved file is whole", async || journal(&site) == 0).await;
    assert_eq!(alone(&away).await, ["a"]);
    // Another one in its place is another store, and neither touches the other's.
    std::fs::copy(&away, site.file()).unwrap();
    let new = site.open().await;
    add(&new, "b").await;
    store.close().await;
    add(&new, "c").await;
    new.close().await;
    assert_eq!(alone(&site.file()).await, ["a", "b", "c"]);
    assert_eq!(alone(&away).await, ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_overwritten_while_it_is_open_is_left_alone() {
    let site = Site::sqlite();
    let store = site.open().await;
    add(&store, "a").await;
    store.close().await;
    let good = site.folder.path().join("good.db");
    std::fs::copy(site.file(), &good).unwrap();
    let store = site.open().await;
    let mut told = store.watch();
    add(&store, "b").await;
    std::fs::copy(&good, site.file()).unwrap();
    let trouble = |pulse: &Pulse| pulse.trouble.as_ref().map(ToString::to_string);
    let overwritten = |pulse: &Pulse| trouble(pulse).is_some_and(|why| why.contains("overwritten"));
    let noticed = tokio::time::timeout(SOON, told.wait_for(overwritten));
    noticed.await.unwrap().unwrap();
    let tool = CustomTool::new("c", "x");
    let error = store.custom_tools().create(tool).await.unwrap_err();
    assert!(error.to_string().contains("restart"), "{error}");
    let error = Store::open(&site.store_url()).await.err().unwrap();
    assert!(error.to_string().contains("restart"), "{error}");
    store.close().await;
    assert_eq!(
        std::fs::read(site.file()).unwrap(),
        std::fs::read(&good).unwrap(),
        "not even closing writes into it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_database_of_another_program_is_left_alone() {
    use sqlx::Connection;
    for (sql, why) in [
        (
            "PRAGMA application_id = 7; CREATE TABLE a (b)",
            "another program",
        ),
        ("CREATE TABLE a (b)", "no tables"),
    ] {
        let site = Site::sqlite();
        std::fs::create_dir_all(site.file().parent().unwrap()).unwrap();
        std::fs::write(site.file(), "").unwrap();
        let mut db = sqlx::SqliteConnection::connect(&site.url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
        let before = std::fs::read(site.file()).unwrap();
        let error = Store::open(&site.store_url()).await.err().unwrap();
        assert!(matches!(&error, StoreError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(std::fs::read(site.file()).unwrap()[100..], before[100..]);
    }
}
