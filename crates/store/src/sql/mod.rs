//! What is remembered in a database: one file of SQLite's, or Postgres. One SQL text serves both.
//!
//! To add a table: a step in `migrations/`, a file here, a line in [`Store`].
//!
//! Why: `docs/design/0011-store.md`.

mod approvals;
mod call_log;
mod call_writer;
mod calls;
mod changes;
mod counter_file;
mod counter_queue;
mod custom_tools;
mod database_file;
mod db;
mod error;
mod grants;
mod hash;
mod marks;
mod migrate;
mod todos;
mod tokens;
mod trusted;
mod tx;
mod url;
mod value;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use toolcrib_core::Object;
use toolcrib_core::counter::{CountVerdict, CounterSteps};
use toolcrib_core::store::StoreError;

pub use approvals::{Approvals, NewDecision};
pub use call_log::{CallLog, LogState};
pub use calls::{CallCursor, CallFilter, CallPage, Calls, Ending, Retention};
pub use changes::{Pulse, Revisions};
pub use custom_tools::{CustomTools, ToolPage};
pub use database_file::Making;
pub use grants::GrantBook;
pub use hash::{Signer, fingerprint, hmac_sha256, is_hmac_sha256, new_secret};
use todos::TodoLists;
pub use tokens::{NewToken, Token, Tokens, Verdict};
pub use trusted::{TrustKind, TrustedPath};
pub use url::{StoreUrl, StoreUrlError};

use changes::Follow;
use counter_file::CounterFile;
pub use counter_file::counter_path;
use counter_queue::CounterQueue;
use database_file::DatabaseFile;
use db::{Db, Pools};
use error::StoreLocation;
use hash::ArgumentKey;
use trusted::TrustedPaths;
use url::Kind;

/// The open store. Cheap to clone.
#[derive(Clone)]
pub struct Store(Arc<Opened>);

struct Opened {
    db: Db,
    /// By which the store is known, as it is written there.
    id: String,
    key: ArgumentKey,
    /// How often each kind had been changed when the store was opened.
    at_open: Revisions,
    /// When it last answered.
    heard: Arc<Mutex<Instant>>,
    follower: OnceLock<Follower>,
    counters: OnceLock<StoreCounters>,
}

/// What calls are counted in: a second file beside a store that is a file, a table of a server's.
enum StoreCounters {
    File(Arc<CounterFile>),
    Server(CounterQueue),
}

struct Follower {
    told: watch::Sender<Pulse>,
    stop: Arc<Notify>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How a follower is told to stop, and what then ends.
type Stoppable = (Arc<Notify>, JoinHandle<()>);

/// The stores that this process has open, and those that it is just closing.
static OPEN: Mutex<Vec<Weak<Opened>>> = Mutex::new(Vec::new());
static CLOSING: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

impl Opened {
    async fn close(db: Db, follower: Option<Stoppable>) {
        if let Some((stop, task)) = follower {
            stop.notify_one();
            let _ = task.await;
        }
        db.close().await;
    }

    /// What is to be closed; the second time nothing follows any more.
    fn parts(&self) -> (Db, Option<Stoppable>) {
        let follower = self.follower.get();
        let task = follower.and_then(|one| {
            let task = lock(&one.task).take()?;
            Some((one.stop.clone(), task))
        });
        (self.db.clone(), task)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let (db, follower) = self.parts();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let closing = runtime.spawn(Opened::close(db, follower));
            let mut all = lock(&CLOSING);
            all.retain(|one| !one.is_finished());
            all.push(closing);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Opens the store, makes it when there is none, and brings it to this version's form.
    pub async fn open(url: &StoreUrl) -> Result<Store, StoreError> {
        Store::open_or(url, Making::IfMissing).await
    }

    /// The same, and says what is to be done where there is none.
    pub async fn open_or(url: &StoreUrl, making: Making) -> Result<Store, StoreError> {
        let db = match &url.0 {
            Kind::Sqlite(path) => open_file(path, url.to_string(), making).await?,
            Kind::Postgres(options) => {
                let db = Db::postgres((**options).clone(), url.to_string()).await?;
                migrate::migrate(&db, making).await?;
                db
            }
        };
        let gone = || db.place().damaged("the key of argument hashes is gone");
        let id = migrate::read(&db, migrate::KEY).await?;
        let id = id.ok_or_else(gone)?;
        let key = ArgumentKey::new(id.as_bytes()).ok_or_else(gone)?;
        let at_open = changes::revisions(&db).await?;
        let opened = Arc::new(Opened {
            db,
            id,
            key,
            at_open,
            heard: Arc::new(Mutex::new(Instant::now())),
            follower: OnceLock::new(),
            counters: OnceLock::new(),
        });
        let mut all = lock(&OPEN);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&opened));
        Ok(Store(opened))
    }

    /// Closes every store that this process has open, for when it ends: what was written is then in the file itself.
    pub async fn close_all() {
        let open: Vec<_> = lock(&OPEN).iter().filter_map(Weak::upgrade).collect();
        for opened in open {
            Store(opened).close().await;
        }
        let closing = std::mem::take(&mut *lock(&CLOSING));
        for one in closing {
            let _ = one.await;
        }
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

    pub fn todos(&self) -> TodoLists {
        TodoLists::new(self.db())
    }

    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.db())
    }

    /// Takes steps with counters, or none of them. Must be called within a runtime.
    pub async fn count(&self, steps: CounterSteps) -> Result<CountVerdict, StoreError> {
        match self.counters() {
            StoreCounters::File(file) => file.ask(steps).await,
            StoreCounters::Server(queue) => queue.ask(steps).await,
        }
    }

    /// The same for steps that nothing refuses, and nobody waits for.
    pub fn count_later(&self, steps: CounterSteps) {
        match self.counters() {
            StoreCounters::File(file) => file.tell(steps),
            StoreCounters::Server(queue) => queue.tell(steps),
        }
    }

    fn counters(&self) -> &StoreCounters {
        let db = &self.0.db;
        self.0.counters.get_or_init(|| match db.pools() {
            Pools::Sqlite { file, .. } => {
                let file = CounterFile::beside(file.path(), db.place().clone());
                StoreCounters::File(Arc::new(file))
            }
            Pools::Postgres(_) => StoreCounters::Server(CounterQueue::start(db.clone())),
        })
    }

    pub fn approvals(&self) -> Approvals {
        Approvals::new(self.db(), self.0.key.approvals())
    }

    /// Signs with a key that all processes on this store share, for one purpose.
    pub fn signer(&self, purpose: &'static str) -> Signer {
        self.0.key.signer(purpose)
    }

    /// The keyed hash that a call's record holds in place of its arguments.
    pub fn argument_hash(&self, arguments: &Object) -> String {
        self.0.key.hash(arguments)
    }

    /// Changes when anybody, in any process, changes a registration, a grant, trust or a token, and says which of them;
    /// also when the store ceases to answer, and when it answers again. Starts to follow when first asked. Must be
    /// called within a runtime.
    pub fn watch(&self) -> watch::Receiver<Pulse> {
        let follower = self.0.follower.get_or_init(|| {
            let told = watch::Sender::new(Pulse {
                revisions: self.0.at_open,
                trouble: None,
            });
            let stop = Arc::new(Notify::new());
            let follow = Follow {
                db: self.db(),
                key: self.0.id.clone(),
                told: told.clone(),
                heard: self.0.heard.clone(),
                stop: stop.clone(),
            };
            let task = Mutex::new(Some(tokio::spawn(follow.run())));
            Follower { told, stop, task }
        });
        follower.told.subscribe()
    }

    /// How often each kind had been changed when it was opened.
    pub fn at_open(&self) -> Revisions {
        self.0.at_open
    }

    /// Are these two openings of one store? A copy of a store is the same one here.
    pub fn is_same(&self, other: &Store) -> bool {
        self.0.id == other.0.id
    }

    /// When the store last answered who follows it.
    pub fn heard(&self) -> Instant {
        *lock(&self.0.heard)
    }

    pub async fn revisions(&self) -> Result<Revisions, StoreError> {
        changes::revisions(&self.0.db).await
    }

    /// Asks whether the open store is still the one at its place, and answers.
    pub async fn probe(&self) -> Result<(), StoreError> {
        self.0.db.is_in_place().await?;
        self.revisions().await.map(|_| ())
    }

    /// Why the store is only read, where it is.
    pub fn read_only(&self) -> Option<&StoreError> {
        self.0.db.read_only()
    }

    /// Was its file overwritten while it was open? Then this process must not open it again.
    pub fn is_overwritten(&self) -> bool {
        self.0.db.is_overwritten()
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

    /// Ends in good order: what was written is then in the file itself. A store that is only dropped, or killed, loses
    /// nothing that was acknowledged.
    pub async fn close(&self) {
        let (db, follower) = self.0.parts();
        Opened::close(db, follower).await;
    }

    fn db(&self) -> Db {
        self.0.db.clone()
    }
}

/// Opens a store that is a file.
async fn open_file(path: &Path, name: String, making: Making) -> Result<Db, StoreError> {
    // Whole from now on: it is looked at again before each write, wherever the process is then.
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let place = StoreLocation {
        name,
        folder: Some(path.parent().unwrap_or(path).into()),
    };
    if making == Making::IfMissing && path.symlink_metadata().is_err() {
        let fill = async |draft: &Path| {
            let draft = DatabaseFile::draft(draft, &place)?;
            let db = Db::sqlite(draft, place.clone()).await?;
            let filled = migrate::migrate(&db, Making::IfMissing).await;
            db.close().await;
            filled
        };
        database_file::make(path, &place, fill).await?;
    }
    let file = DatabaseFile::claim(path, &place).await?;
    let db = Db::sqlite(file, place).await?;
    migrate::migrate(&db, Making::Never).await?;
    Ok(db)
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
