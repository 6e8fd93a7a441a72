//! Opening, following changes, and giving up half way.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use toolcrib_core::Object;
use toolcrib_core::store::{CallBook, CustomTool, StoreError};
use toolcrib_store::{Revisions, Store};

use crate::calls::call;
use crate::support::{SOON, Site};

pub async fn changes_are_told_across_connections(site: Site) {
    let store = site.open().await;
    let other = site.open().await;
    let mut own = store.watch();
    let mut far = other.watch();
    for n in 0..10 {
        let before = far.borrow_and_update().revisions;
        own.mark_unchanged();
        store
            .custom_tools()
            .create(CustomTool::new(&format!("t{n}"), "x"))
            .await
            .unwrap();
        tokio::time::timeout(SOON, far.changed())
            .await
            .unwrap()
            .unwrap();
        let expected = Revisions {
            custom_tools: before.custom_tools + 1,
            ..before
        };
        assert_eq!(
            far.borrow().revisions,
            expected,
            "it says what changed, and no more"
        );
        tokio::time::timeout(SOON, own.changed())
            .await
            .unwrap()
            .unwrap();
    }
    let revisions = other.revisions().await.unwrap();
    let told = far.borrow().revisions;
    assert_eq!((revisions.custom_tools, revisions), (10, told));
    // Calls are nobody's news: the next that is told is the next registration.
    let before = far.borrow_and_update().revisions;
    let log = store.call_log();
    log.record_durably(call(1, "echo")).await.unwrap();
    let tool = CustomTool::new("last", "x");
    store.custom_tools().create(tool).await.unwrap();
    tokio::time::timeout(SOON, far.changed())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(far.borrow().revisions.custom_tools, before.custom_tools + 1);
}

pub async fn a_newer_store_is_refused(site: Site) {
    let store = site.open().await;
    let made = store
        .custom_tools()
        .create(CustomTool::new("a", "x"))
        .await
        .unwrap();
    store.close().await;
    set_format(&site, "999").await;
    let error = Store::open(&site.store_url()).await.err().unwrap();
    let StoreError::Newer {
        found: 999, known, ..
    } = &error
    else {
        panic!("{error}");
    };
    assert!(error.to_string().contains("newer Toolcrib"), "{error}");
    set_format(&site, &known.to_string()).await;
    let store = site.open().await;
    assert_eq!(store.custom_tools().get("a").await.unwrap(), Some(made));
}

/// A store as the first version made it keeps what it holds, but for grants that no tool can have.
pub async fn an_older_store_is_brought_up(site: Site) {
    let store = site.open().await;
    let made = store
        .custom_tools()
        .create(CustomTool::new("a", "x"))
        .await
        .unwrap();
    store.close().await;
    for sql in [
        "DROP INDEX grants_by_tool",
        "ALTER TABLE grants DROP COLUMN origin",
        "CREATE INDEX grants_by_tool ON grants (tool)",
        "ALTER TABLE trust DROP COLUMN ownership",
        "ALTER TABLE calls DROP COLUMN project",
        "ALTER TABLE tokens DROP COLUMN made_by",
        "DROP TABLE counters",
        "ALTER TABLE calls DROP COLUMN middleware",
        "ALTER TABLE calls DROP COLUMN approver",
        "ALTER TABLE calls DROP COLUMN decided_at",
        "ALTER TABLE calls DROP COLUMN decision",
        "DROP TABLE approvals",
        "DELETE FROM changes WHERE kind = 'approvals'",
        "DROP TABLE todos",
        "CREATE TABLE outputs (id TEXT PRIMARY KEY)",
        "CREATE TABLE descriptions (key TEXT PRIMARY KEY)",
        "INSERT INTO trust (path, kind, since) VALUES ('/', 'project', 1)",
        "INSERT INTO grants (id, tool, what, created_at) VALUES ('1', 'a', '{\"all\": true}', 1)",
    ] {
        by_hand(&site, sql).await;
    }
    set_format(&site, "1").await;
    let store = site.open().await;
    assert_eq!(store.custom_tools().get("a").await.unwrap(), Some(made));
    assert_eq!(store.grants().list(None).await.unwrap(), []);
    // A yes from before owners were remembered counts for the user and root, and is then remembered like any other.
    let (trusted, root) = (store.trusted(), Path::new("/"));
    let old = trusted.get(root).await.unwrap().unwrap();
    assert_eq!((&old.ownership, old.lapsed(1_000, &[])), (&None, None));
    trusted.remember(root, &[]).await.unwrap();
    let now = trusted.get(root).await.unwrap().unwrap();
    assert_eq!((now.ownership.is_some(), now.since_ms), (true, 1));
}

/// A table that no statement of the crate names is dropped by a migration.
pub async fn every_table_is_used(site: Site) {
    let store = site.open().await;
    store.close().await;
    let mut statements = String::new();
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sql")).unwrap() {
        statements.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let tables = tables(&site).await;
    assert!(tables.len() > 5, "{tables:?}");
    for table in tables {
        let used = ["FROM", "INTO", "UPDATE"]
            .iter()
            .any(|word| statements.contains(&format!("{word} {table}")));
        assert!(used, "no statement names the table `{table}`");
    }
}

async fn tables(site: &Site) -> Vec<String> {
    use sqlx::Connection;
    if site.is_sqlite() {
        let mut db = sqlx::SqliteConnection::connect(&site.url).await.unwrap();
        let sql =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        return sqlx::query_scalar(sql).fetch_all(&mut db).await.unwrap();
    }
    let mut db = sqlx::PgConnection::connect(&site.url).await.unwrap();
    let sql = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'";
    sqlx::query_scalar(sql).fetch_all(&mut db).await.unwrap()
}

async fn set_format(site: &Site, format: &str) {
    let sql = format!("UPDATE meta SET value = '{format}' WHERE key = 'schema'");
    assert_eq!(by_hand(site, &sql).await, 1);
}

/// Changes the store behind its back; gives how many rows that touched.
pub async fn by_hand(site: &Site, sql: &str) -> u64 {
    use sqlx::{AssertSqlSafe, Connection};
    let sql = AssertSqlSafe(sql.to_owned());
    if site.is_sqlite() {
        let mut db = sqlx::SqliteConnection::connect(&site.url).await.unwrap();
        let done = sqlx::query(sql).execute(&mut db).await.unwrap();
        db.close().await.unwrap();
        return done.rows_affected();
    }
    let mut db = sqlx::PgConnection::connect(&site.url).await.unwrap();
    let done = sqlx::query(sql).execute(&mut db).await.unwrap();
    db.close().await.unwrap();
    done.rows_affected()
}

pub async fn many_open_a_new_store_at_once(site: Site) {
    let open = (0..12).map(|n| {
        let url = site.store_url();
        tokio::spawn(async move {
            let store = Store::open(&url).await.unwrap();
            store
                .custom_tools()
                .create(CustomTool::new(&format!("t{n}"), "x"))
                .await
                .unwrap();
            store.argument_hash(&Object::default())
        })
    });
    let mut hashes = Vec::new();
    for opened in open.collect::<Vec<_>>() {
        hashes.push(opened.await.unwrap());
    }
    hashes.dedup();
    assert_eq!(hashes.len(), 1);
    assert_eq!(
        site.open()
            .await
            .custom_tools()
            .list(None, 0, 1)
            .await
            .unwrap()
            .total,
        12
    );
}

pub async fn hashes_are_of_this_store(site: Site) {
    let store = site.open().await;
    let arguments = Object::from_iter([("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))]);
    let turned = Object::from_iter([("b".to_owned(), json!(2)), ("a".to_owned(), json!(1))]);
    let hash = store.argument_hash(&arguments);
    assert_eq!(hash.len(), 64);
    let same = store.call_log().argument_hash(&turned);
    assert_eq!(Some(&hash), same.as_ref());
    assert_eq!(hash, site.open().await.argument_hash(&arguments));
    let elsewhere = Site::sqlite();
    assert_ne!(hash, elsewhere.open().await.argument_hash(&arguments));
}

pub async fn a_write_given_up_leaves_nothing(site: Site) {
    let store = site.open().await;
    let tools = store.custom_tools();
    // Dropped at every possible moment: the writer must come back each time, and hold no half write.
    for n in 0..60 {
        let name = format!("t{n}");
        let create = tools.create(CustomTool::new(&name, "x"));
        let _ = tokio::time::timeout(Duration::from_micros(n * 25), create).await;
    }
    let made = tokio::time::timeout(SOON, tools.create(CustomTool::new("last", "x"))).await;
    made.unwrap().unwrap();
    let total = tools.list(None, 0, 1).await.unwrap().total;
    assert_eq!(store.revisions().await.unwrap().custom_tools, total);
    store.check().await.unwrap();
}
