//! Who else writes here: every change of a kind has a number, and whoever follows is told when one grew.
//!
//! SQLite has no messages. It has a number that differs when another connection committed, and asking for it costs a
//! look at shared memory; ours is asked twenty times a second. Postgres sends a message, and is asked twice a second in
//! case that one was lost, or five times when it can't send. A store that does not answer is news, too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use toolcrib_core::store::StoreError;

use super::db::{Db, Pools};
use super::error::NO_TABLES;
use super::migrate;
use super::tx::CHANNEL;
use super::value::values;

const LOOK: Duration = Duration::from_millis(50);
const LOOK_UNTOLD: Duration = Duration::from_millis(200);
const LOOK_ANYWAY: Duration = Duration::from_millis(500);
/// How long a store may take to answer before it is said not to.
const LOOK_PATIENCE: Duration = Duration::from_millis(800);
/// After so long without a write the journal is taken over into the file, so that a copy of the file is a whole one.
const QUIET: Duration = Duration::from_secs(2);
const OTHER_STORE: &str = "another store is in its place";

/// What changes are numbered by. Calls are not: nobody waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    CustomTools,
    Grants,
    Trust,
    Tokens,
    Approvals,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Kind::CustomTools => "custom_tools",
            Kind::Grants => "grants",
            Kind::Trust => "trust",
            Kind::Tokens => "tokens",
            Kind::Approvals => "approvals",
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
    pub approvals: u64,
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
            "approvals" => found.approvals = revision,
            _ => {}
        }
    }
    Ok(found)
}

/// How the store is, as far as is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pulse {
    /// As they were when it last answered.
    pub revisions: Revisions,
    /// Why it can't be read, if so.
    pub trouble: Option<StoreError>,
}

/// What a follower tells, and to whom.
pub(super) struct Follow {
    pub(super) db: Db,
    /// By which the store is known: another one in its place has another.
    pub(super) key: String,
    pub(super) told: watch::Sender<Pulse>,
    /// When the store last answered.
    pub(super) heard: Arc<Mutex<Instant>>,
    pub(super) stop: Arc<Notify>,
}

impl Follow {
    /// Follows until it is stopped.
    pub(super) async fn run(self) {
        match self.db.pools() {
            Pools::Sqlite { options, .. } => self.sqlite(options).await,
            Pools::Postgres(pool) => tokio::select! {
                () = self.postgres(pool) => {}
                () = self.stop.notified() => {}
            },
        }
    }

    async fn postgres(&self, pool: &PgPool) {
        let listening = AtomicBool::new(false);
        let listen = async {
            loop {
                if let Ok(mut listener) = PgListener::connect_with(pool).await
                    && listener.listen(CHANNEL).await.is_ok()
                {
                    listening.store(true, Ordering::Relaxed);
                    // Whatever was said while nobody listened is looked for.
                    self.db.nudge().notify_one();
                    while let Ok(Some(_)) = listener.try_recv().await {
                        self.db.nudge().notify_one();
                    }
                    listening.store(false, Ordering::Relaxed);
                    self.db.nudge().notify_one();
                }
                sleep(LOOK_ANYWAY).await;
            }
        };
        let look = async {
            loop {
                self.look().await;
                let wait = match listening.load(Ordering::Relaxed) {
                    true => LOOK_ANYWAY,
                    false => LOOK_UNTOLD,
                };
                let _ = timeout(wait, self.db.nudge().notified()).await;
            }
        };
        tokio::join!(listen, look);
    }

    async fn sqlite(&self, options: &SqliteConnectOptions) {
        let mut seen = None;
        let mut connection = None;
        // When somebody last wrote, while the journal may hold something.
        let mut written = None;
        loop {
            match self.db.is_in_place().await {
                Err(error) => {
                    self.tell(Err(error));
                    seen = None;
                }
                Ok(()) => {
                    let version = data_version(&mut connection, options).await;
                    if version.is_none() || version != seen {
                        // Looked at again until it could be read: what was missed now is not missed for good.
                        seen = if self.look().await { version } else { None };
                        written = Some(Instant::now());
                    } else {
                        self.hear();
                    }
                }
            }
            if written.is_some_and(|at| at.elapsed() > QUIET) {
                written = None;
                self.db.take_over_journal().await;
            }
            tokio::select! {
                () = self.stop.notified() => break,
                _ = timeout(LOOK, self.db.nudge().notified()) => {}
            }
        }
        if let Some(connection) = connection.take() {
            let _ = connection.close().await;
        }
    }

    /// Asks the store, and tells what it says. Gives whether it said anything.
    async fn look(&self) -> bool {
        let asked = async {
            let key = migrate::read(&self.db, migrate::KEY).await?;
            if key.as_ref() != Some(&self.key) {
                let place = self.db.place();
                return Err(match key {
                    Some(_) => place.unreachable(OTHER_STORE),
                    None => place.damaged(NO_TABLES),
                });
            }
            revisions(&self.db).await
        };
        let said = match timeout(LOOK_PATIENCE, asked).await {
            Ok(said) => said,
            Err(_) => Err(match self.db.asked_by_hand(LOOK_PATIENCE / 4).await {
                Some(error) => error,
                None => self.db.place().too_late(),
            }),
        };
        self.tell(said)
    }

    fn tell(&self, said: Result<Revisions, StoreError>) -> bool {
        if let Err(error) = &said {
            tracing::debug!(%error, "the store's changes could not be read");
        }
        let (well, trouble) = match said {
            Ok(revisions) => (Some(revisions), None),
            Err(error) => (None, Some(error)),
        };
        if well.is_some() {
            self.hear();
        }
        self.told.send_if_modified(|pulse| {
            let now = Pulse {
                revisions: well.unwrap_or(pulse.revisions),
                trouble,
            };
            let differs = *pulse != now;
            *pulse = now;
            differs
        });
        well.is_some()
    }

    fn hear(&self) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
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
