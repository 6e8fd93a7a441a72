//! What is remembered in a database: one file of SQLite's, or Postgres. One SQL text serves both.
//!
//! To add a table: a step in `migrations/`, a file here, a line in [`Store`].
//!
//! Why: `docs/design/0011-store.md`.

mod call_log;
mod call_writer;
mod calls;
mod changes;
mod custom_tools;
mod db;
mod error;
mod grants;
mod hash;
mod migrate;
mod tokens;
mod trusted;
mod tx;
mod url;
mod value;

use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use toolcrib_core::Object;
use toolcrib_core::store::StoreError;

pub use call_log::{CallLog, LogState};
pub use calls::{CallCursor, CallFilter, CallPage, Calls, Ending, Retention};
pub use changes::Revisions;
pub use custom_tools::{CustomTools, ToolPage};
pub use grants::GrantBook;
pub use hash::{Signer, fingerprint, new_secret};
pub use tokens::{NewToken, Token, Tokens, Verdict};
pub use trusted::{TrustKind, TrustedPath};
pub use url::{StoreUrl, StoreUrlError};

use db::Db;
use hash::ArgumentKey;
use trusted::TrustedPaths;
use url::Kind;

/// The open store. Cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<Opened>);

struct Opened {
    db: Db,
    key: ArgumentKey,
    /// How often each kind had been changed when the store was opened.
    at_open: Revisions,
    follower: OnceLock<Follower>,
}

struct Follower {
    told: watch::Sender<Revisions>,
    task: JoinHandle<()>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(follower) = self.follower.get() {
            follower.task.abort();
        }
    }
}

impl Store {
    /// Opens the store, makes it when there is none, and brings it to this version's form.
    pub async fn open(url: &StoreUrl) -> Result<Store, StoreError> {
        let db = match &url.0 {
            Kind::Sqlite(path) => Db::sqlite(path, url.to_string()).await?,
            Kind::Postgres(options) => Db::postgres((**options).clone(), url.to_string()).await?,
        };
        migrate::migrate(&db).await?;
        let key = migrate::read(&db, "argument_key").await?;
        let key = key.and_then(|key| ArgumentKey::new(key.as_bytes()));
        let key = key.ok_or_else(|| db.place().damaged("the key of argument hashes is gone"))?;
        let at_open = changes::revisions(&db).await?;
        Ok(Store(Arc::new(Opened {
            db,
            key,
            at_open,
            follower: OnceLock::new(),
        })))
    }

    pub fn custom_tools(&self) -> CustomTools {
        CustomTools::new(self.db())
    }

    pub fn calls(&self) -> Calls {
        Calls::new(self.db())
    }

    /// Starts to write calls down, in a task of its own.
    pub fn call_log(&self) -> CallLog {
        CallLog::start(self.db(), self.0.key.clone())
    }

    pub fn grants(&self) -> GrantBook {
        GrantBook::new(self.db())
    }

    pub fn trusted(&self) -> TrustedPaths {
        TrustedPaths::new(self.db())
    }

    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.db())
    }

    /// Signs with a key that all processes on this store share, for one purpose.
    pub fn signer(&self, purpose: &'static str) -> Signer {
        self.0.key.signer(purpose)
    }

    /// The keyed hash that a call's record holds in place of its arguments.
    pub fn argument_hash(&self, arguments: &Object) -> String {
        self.0.key.hash(arguments)
    }

    /// Changes when anybody, in any process, changes a registration, a grant, trust or a token, and says which of them.
    /// Starts to follow when first asked. Must be called within a runtime.
    pub fn watch(&self) -> watch::Receiver<Revisions> {
        let follower = self.0.follower.get_or_init(|| {
            let told = watch::Sender::new(self.0.at_open);
            let task = tokio::spawn(changes::follow(self.db(), told.clone()));
            Follower { told, task }
        });
        follower.told.subscribe()
    }

    pub async fn revisions(&self) -> Result<Revisions, StoreError> {
        changes::revisions(&self.0.db).await
    }

    /// Asks whether the open store is still the one at its place, and answers.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.0.db.is_in_place()?;
        self.revisions().await.map(|_| ())
    }

    /// Reads the whole store for damage, as `doctor` does. Takes as long as the store is large.
    pub async fn check(&self) -> Result<(), StoreError> {
        let db = &self.0.db;
        if db.place().folder.is_none() {
            return self.revisions().await.map(|_| ());
        }
        let rows = db.rows("PRAGMA quick_check(1)", &[]).await?;
        let found = rows.first().map(|row| row.text("quick_check"));
        match found
            .transpose()
            .map_err(|error| db.unreadable("all", error))?
        {
            Some(found) if found != "ok" => Err(db.place().damaged(found)),
            _ => Ok(()),
        }
    }

    /// Ends in good order. A store that is only dropped, or killed, loses nothing that was acknowledged.
    pub async fn close(&self) {
        if let Some(follower) = self.0.follower.get() {
            follower.task.abort();
        }
        self.0.db.close().await;
    }

    fn db(&self) -> Db {
        self.0.db.clone()
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
