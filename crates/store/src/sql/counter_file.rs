//! Counters of a store that is a file: a second file beside it, which is written without waiting for the disk.
//!
//! A call is counted in the thread that makes it: through another one it would wait longer for that than for all else.
//! Who finds the file in use leaves the steps to whoever uses it (they are written together), and tries again where
//! that is another process.
//!
//! Why: `docs/design/0019-limits.md`.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use toolcrib_core::counter::{CountVerdict, Counter, CounterSteps, decide};
use toolcrib_core::store::StoreError;

use super::error::StoreLocation;
use super::now_ms;
use crate::file::{create_private, make_folder};

/// The longest that a call waits for its count.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long who found another process at it waits before the next try.
const PAUSE: Duration = Duration::from_millis(1);
/// Every so many transactions counters go that say nothing any more.
const SWEEP_EVERY: u32 = 1_000;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS counters \
    (key TEXT PRIMARY KEY, state TEXT NOT NULL, until_ms INTEGER NOT NULL) WITHOUT ROWID";
const READ: &str = "SELECT state FROM counters WHERE key = ?1";
const WRITE: &str = "INSERT INTO counters (key, state, until_ms) VALUES (?1, ?2, ?3) \
    ON CONFLICT (key) DO UPDATE SET state = excluded.state, until_ms = excluded.until_ms";
const SWEEP: &str = "DELETE FROM counters WHERE until_ms < ?1";

/// The file of counters that belongs to the store at this path.
pub fn counter_path(store: &Path) -> PathBuf {
    let stem = store.file_stem().unwrap_or_default().to_string_lossy();
    store.with_file_name(format!("{stem}-counters.db"))
}

pub(super) struct CounterFile {
    path: PathBuf,
    place: StoreLocation,
    waiting: Mutex<VecDeque<Asked>>,
    opened: Mutex<Option<OpenFile>>,
}

/// Steps that somebody wants, and who waits for them.
struct Asked {
    steps: CounterSteps,
    answer: Option<Answer>,
}

type Answer = oneshot::Sender<Result<CountVerdict, StoreError>>;

struct OpenFile {
    connection: Connection,
    /// Device and number of the file: another one in its place has others.
    id: (u64, u64),
    transactions: u32,
}

/// Whether there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Done,
    /// Another process is at it.
    Busy,
}

impl CounterFile {
    pub fn beside(store: &Path, place: StoreLocation) -> CounterFile {
        CounterFile {
            path: counter_path(store),
            place,
            waiting: Mutex::default(),
            opened: Mutex::default(),
        }
    }

    pub async fn ask(self: &Arc<Self>, steps: CounterSteps) -> Result<CountVerdict, StoreError> {
        let (answer, mut answered) = oneshot::channel();
        self.wait(steps, Some(answer));
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.take_turns();
            tokio::select! {
                biased;
                answer = &mut answered => {
                    return answer.unwrap_or_else(|_| Err(self.place.too_late()));
                }
                () = sleep(PAUSE) => {}
            }
            // What is counted after this is given back, because nobody takes the answer.
            if Instant::now() > deadline {
                return Err(self.place.too_late());
            }
        }
    }

    pub fn tell(self: &Arc<Self>, steps: CounterSteps) {
        self.wait(steps, None);
        if self.take_turns() == Turn::Done {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            tracing::warn!("a count was not given back: the crib is ending");
            return;
        };
        let file = self.clone();
        runtime.spawn(async move {
            let deadline = Instant::now() + PATIENCE;
            while file.take_turns() == Turn::Busy && Instant::now() < deadline {
                sleep(PAUSE).await;
            }
        });
    }

    fn wait(&self, steps: CounterSteps, answer: Option<Answer>) {
        lock(&self.waiting).push_back(Asked { steps, answer });
    }

    /// Does all that waits, unless somebody else here is just doing it.
    fn take_turns(&self) -> Turn {
        loop {
            let mut opened = match self.opened.try_lock() {
                Ok(opened) => opened,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Turn::Done,
            };
            let batch = std::mem::take(&mut *lock(&self.waiting));
            if batch.is_empty() {
                return Turn::Done;
            }
            let made = self.make(&mut opened, &batch);
            drop(opened);
            match made {
                Ok(verdicts) => self.answer(batch, verdicts),
                Err(error) if is_busy(&error) => {
                    let mut waiting = lock(&self.waiting);
                    for asked in batch.into_iter().rev() {
                        // Whoever went away is no longer counted.
                        if asked
                            .answer
                            .as_ref()
                            .is_none_or(|answer| !answer.is_closed())
                        {
                            waiting.push_front(asked);
                        }
                    }
                    return Turn::Busy;
                }
                Err(error) => {
                    let error = self.trouble(&error);
                    tracing::warn!(%error, "calls can't be counted");
                    for answer in batch.into_iter().filter_map(|asked| asked.answer) {
                        let _ = answer.send(Err(error.clone()));
                    }
                }
            }
        }
    }

    fn answer(&self, batch: VecDeque<Asked>, verdicts: Vec<CountVerdict>) {
        for (asked, verdict) in batch.into_iter().zip(verdicts) {
            let Some(answer) = asked.answer else { continue };
            let at_ms = verdict.as_ref().ok().copied();
            if answer.send(Ok(verdict)).is_err()
                && let Some(at_ms) = at_ms
            {
                let undone = asked.steps.iter();
                let undone =
                    undone.filter_map(|(key, step)| Some((key.clone(), step.undone(at_ms)?)));
                self.wait(undone.collect(), None);
            }
        }
    }

    /// All of a batch in one transaction.
    fn make(
        &self,
        opened: &mut Option<OpenFile>,
        batch: &VecDeque<Asked>,
    ) -> rusqlite::Result<Vec<CountVerdict>> {
        let id = file_id(&self.path);
        if opened.as_ref().is_some_and(|open| Some(open.id) != id) {
            *opened = None;
        }
        match self.make_now(opened, batch) {
            Err(error) if is_damaged(&error) => {
                *opened = None;
                self.move_aside(id, &error);
                self.make_now(opened, batch)
            }
            made => made,
        }
    }

    fn make_now(
        &self,
        opened: &mut Option<OpenFile>,
        batch: &VecDeque<Asked>,
    ) -> rusqlite::Result<Vec<CountVerdict>> {
        match opened {
            Some(open) => open.make(batch),
            None => opened.insert(self.open()?).make(batch),
        }
    }

    fn open(&self) -> rusqlite::Result<OpenFile> {
        // Where this fails SQLite says why.
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let _ = make_folder(folder);
        let _ = create_private(&self.path);
        let connection = Connection::open(&self.path)?;
        connection.busy_timeout(Duration::ZERO)?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "wal_autocheckpoint", 200)?;
        connection.pragma_update(None, "journal_size_limit", 4_194_304)?;
        connection.execute(TABLE, [])?;
        Ok(OpenFile {
            connection,
            id: file_id(&self.path).unwrap_or_default(),
            transactions: 0,
        })
    }

    /// What a power cut left of the file is put aside: the counts of the last day are lost, and no limit with them.
    fn move_aside(&self, id: Option<(u64, u64)>, error: &rusqlite::Error) {
        if file_id(&self.path) != id {
            return;
        }
        let aside = self.path.with_extension(format!("damaged.{}", now_ms()));
        tracing::warn!(%error, aside = %aside.display(), "the file of counters is damaged, was moved aside and begins anew");
        let _ = fs::rename(&self.path, aside);
        for end in ["-wal", "-shm"] {
            let mut beside = self.path.clone().into_os_string();
            beside.push(end);
            let _ = fs::remove_file(beside);
        }
    }

    fn trouble(&self, error: &rusqlite::Error) -> StoreError {
        let why = format!("{}: {error}", self.path.display());
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full {
                place: self.place.name.clone(),
                why,
            },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                self.place.read_only(why)
            }
            _ => self.place.failed(why),
        }
    }
}

impl OpenFile {
    fn make(&mut self, batch: &VecDeque<Asked>) -> rusqlite::Result<Vec<CountVerdict>> {
        self.transactions = self.transactions.wrapping_add(1);
        let sweeps = self.transactions % SWEEP_EVERY == 1;
        let tx = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut counters = BTreeMap::new();
        {
            let mut read = tx.prepare_cached(READ)?;
            for (key, _) in batch.iter().flat_map(|asked| &asked.steps) {
                if !counters.contains_key(key) {
                    let state: Option<String> =
                        read.query_row([&**key], |row| row.get(0)).optional()?;
                    counters.insert(key.clone(), Counter::read(&state.unwrap_or_default()));
                }
            }
        }
        let now_ms = now_ms();
        let verdicts = batch
            .iter()
            .map(|asked| decide(&asked.steps, now_ms, &mut counters));
        let verdicts = verdicts.collect();
        let mut write = tx.prepare_cached(WRITE)?;
        for (key, counter) in &counters {
            let until = i64::try_from(counter.ends()).unwrap_or(i64::MAX);
            write.execute(params![&**key, counter.written(), until])?;
        }
        drop(write);
        if sweeps {
            tx.execute(SWEEP, [i64::try_from(now_ms).unwrap_or(i64::MAX)])?;
        }
        tx.commit()?;
        Ok(verdicts)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_id(path: &Path) -> Option<(u64, u64)> {
    let meta = path.metadata().ok()?;
    Some((meta.dev(), meta.ino()))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn is_damaged(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}
