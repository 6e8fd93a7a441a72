//! Brings a store's tables to the form that this version knows, one step at a time, under a lock.
//!
//! To add a step: a file in `migrations/`, a line in [`STEPS`]. A step that was released is never edited.

use toolcrib_core::store::StoreError;

use super::database_file::Making;
use super::db::Db;
use super::error::NO_TABLES;
use super::hash::random;
use super::tx::Tx;
use super::value::{Line, values};
use crate::file::hex;

const STEPS: [&str; 9] = [
    include_str!("../../migrations/0001_start.sql"),
    include_str!("../../migrations/0002_grant_origins.sql"),
    include_str!("../../migrations/0003_trust_ownership.sql"),
    include_str!("../../migrations/0004_unused_tables.sql"),
    include_str!("../../migrations/0005_call_projects.sql"),
    include_str!("../../migrations/0006_token_makers.sql"),
    include_str!("../../migrations/0007_limits.sql"),
    include_str!("../../migrations/0008_approvals.sql"),
    include_str!("../../migrations/0009_todos.sql"),
];
const KNOWN: u32 = STEPS.len() as u32;

/// The key of argument hashes, by which a store is known.
pub(super) const KEY: &str = "argument_key";

const META: &str = "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)";
const READ: &str = "SELECT value FROM meta WHERE key = $1";
const WRITE: &str = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";

/// Nothing for a store that is new.
fn version(db: &Db, row: Option<&Line>) -> Result<Option<u32>, StoreError> {
    let Some(row) = row else {
        return Ok(None);
    };
    let text = row
        .text("value")
        .map_err(|error| db.unreadable("meta", error))?;
    let found = text
        .parse()
        .map_err(|_| db.place().damaged("its format is not a number"))?;
    if found > KNOWN {
        return Err(StoreError::Newer {
            place: db.place().name.clone(),
            found,
            known: KNOWN,
        });
    }
    Ok(Some(found))
}

pub(super) async fn migrate(db: &Db, making: Making) -> Result<(), StoreError> {
    // Most times there is nothing to do, and looking needs no lock. A new store has no such table and fails here.
    match (db.row(READ, values!["schema"]).await, making) {
        (Ok(row), _) if version(db, row.as_ref())? == Some(KNOWN) => return Ok(()),
        (Ok(None) | Err(StoreError::Failed { .. }), Making::Never) => {
            return Err(db.place().damaged(NO_TABLES));
        }
        (Ok(_) | Err(StoreError::Failed { .. }), _) => {}
        (Err(error), _) => return Err(error),
    }
    let mut tx = db.begin().await?;
    tx.lock_migrations().await?;
    tx.script(META).await?;
    let rows = tx.rows(READ, values!["schema"]).await?;
    let found = version(db, rows.first())?;
    let first = found.unwrap_or(0) as usize;
    for step in &STEPS[first..] {
        tx.script(step).await?;
    }
    tx.run(WRITE, values!["schema", &KNOWN.to_string()]).await?;
    if found.is_none() {
        make_key(db, &mut tx).await?;
    }
    tx.commit().await
}

async fn make_key(db: &Db, tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let key = random::<32>().map_err(|error| db.place().failed(error))?;
    tx.run(WRITE, values![KEY, &hex(&key)]).await?;
    Ok(())
}

/// One word about the store itself.
pub(super) async fn read(db: &Db, key: &str) -> Result<Option<String>, StoreError> {
    let row = db.row(READ, values![key]).await?;
    let value = row.map(|row| row.text("value")).transpose();
    value.map_err(|error| db.unreadable("meta", error))
}

pub(super) async fn write(tx: &mut Tx<'_>, key: &str, value: &str) -> Result<(), StoreError> {
    tx.run(WRITE, values![key, value]).await?;
    Ok(())
}
