//! Who else writes here: every change of a kind has a number, and whoever follows is told when one grew.
//!
//! SQLite has no messages. It has a number that differs when another connection committed, and asking for it costs a
//! look at shared memory; ours is asked twenty times a second. Postgres sends a message, and is asked once a second in
//! case that one was lost, or five times when it can't send.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::PgListener;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Row};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use toolcrib_core::store::StoreError;

use super::db::{Db, Pools};
use super::tx::CHANNEL;
use super::value::values;

const LOOK: Duration = Duration::from_millis(50);
const LOOK_UNTOLD: Duration = Duration::from_millis(200);
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// What changes are numbered by. Calls are not: nobody waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    CustomTools,
    Grants,
    Trust,
    Tokens,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::CustomTools => "custom_tools",
            Kind::Grants => "grants",
            Kind::Trust => "trust",
            Kind::Tokens => "tokens",
        }
    }
}

/// How often each kind was changed since the store was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Revisions {
    pub custom_tools: u64,
    pub grants: u64,
    pub trust: u64,
    pub tokens: u64,
}

pub(super) async fn revisions(db: &Db) -> Result<Revisions, StoreError> {
    let rows = db
        .rows("SELECT kind, revision FROM changes", values![])
        .await?;
    let mut found = Revisions::default();
    for row in rows {
        let read = (|| Ok((row.text("kind")?, row.number("revision")?)))();
        let (kind, revision) = read.map_err(|error| db.unreadable("changes", error))?;
        match kind.as_str() {
            "custom_tools" => found.custom_tools = revision,
            "grants" => found.grants = revision,
            "trust" => found.trust = revision,
            "tokens" => found.tokens = revision,
            _ => {}
        }
    }
    Ok(found)
}

/// Follows until it is dropped.
pub(super) async fn follow(db: Db, told: watch::Sender<Revisions>) {
    match db.pools() {
        Pools::Sqlite { options, .. } => follow_sqlite(&db, options, &told).await,
        Pools::Postgres(pool) => {
            let listening = AtomicBool::new(false);
            let listen = async {
                loop {
                    if let Ok(mut listener) = PgListener::connect_with(pool).await
                        && listener.listen(CHANNEL).await.is_ok()
                    {
                        listening.store(true, Ordering::Relaxed);
                        while listener.recv().await.is_ok() {
                            db.nudge().notify_one();
                        }
                        listening.store(false, Ordering::Relaxed);
                    }
                    sleep(LOOK_ANYWAY).await;
                }
            };
            let look = async {
                loop {
                    tell(&db, &told).await;
                    let wait = match listening.load(Ordering::Relaxed) {
                        true => LOOK_ANYWAY,
                        false => LOOK_UNTOLD,
                    };
                    let _ = timeout(wait, db.nudge().notified()).await;
                }
            };
            tokio::join!(listen, look);
        }
    }
}

async fn follow_sqlite(db: &Db, options: &SqliteConnectOptions, told: &watch::Sender<Revisions>) {
    let mut seen = None;
    let mut connection = None;
    loop {
        let version = data_version(&mut connection, options).await;
        if version.is_none() || version != seen {
            // Looked at again until it could be read: what was missed now is not missed for good.
            seen = if tell(db, told).await { version } else { None };
        }
        let _ = timeout(LOOK, db.nudge().notified()).await;
    }
}

/// A number that differs when another connection wrote, this process's own writer included.
async fn data_version(
    connection: &mut Option<SqliteConnection>,
    options: &SqliteConnectOptions,
) -> Option<i64> {
    if connection.is_none() {
        *connection = options.connect().await.ok();
    }
    let asked = sqlx::query("PRAGMA data_version").fetch_one(connection.as_mut()?);
    match asked.await.and_then(|row| row.try_get(0)) {
        Ok(version) => Some(version),
        Err(error) => {
            tracing::debug!(%error, "the store could not be asked for changes");
            *connection = None;
            None
        }
    }
}

async fn tell(db: &Db, told: &watch::Sender<Revisions>) -> bool {
    match revisions(db).await {
        Ok(now) => {
            told.send_if_modified(|before| std::mem::replace(before, now) != now);
            true
        }
        Err(error) => {
            tracing::debug!(%error, "the store's changes could not be read");
            false
        }
    }
}
