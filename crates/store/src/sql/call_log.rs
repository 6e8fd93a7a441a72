//! Writes calls down, off their path: a bounded queue, and a task that empties it into one transaction at a time.
//!
//! A record is on disk at most a quarter of a second after it came, plus the time of one transaction. When the store
//! is in trouble the queue fills, then records are dropped and counted; a call never waits for its record, unless the
//! owner said that it must ([`CallBook::record_durably`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;
use toolcrib_core::store::{CallBook, CallRecord, Recorded, StoreError};
use toolcrib_core::{BoxFuture, Object};

use super::call_writer::Writer;
use super::db::Db;
use super::hash::ArgumentKey;

const QUEUE: usize = 10_000;
pub(super) const BATCH: usize = 1_000;

pub(super) type Answer = oneshot::Sender<Result<(), StoreError>>;

/// What somebody waits for.
pub(super) enum Ask {
    /// That this one is written, now.
    Write(Box<CallRecord>, Answer),
    /// That all are written that were handed in before.
    Flush(Answer),
}

/// How the log is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogState {
    pub written: u64,
    /// Lost, because the queue was full or the store refused them.
    pub dropped: u64,
    pub waiting: usize,
    /// Why the last write failed, until one succeeds.
    pub trouble: Option<StoreError>,
}

/// Where calls are handed in. Cheap to clone; the task ends when the last one is dropped and all is written.
#[derive(Clone)]
pub struct CallLog {
    queue: mpsc::Sender<Box<CallRecord>>,
    asks: mpsc::Sender<Ask>,
    key: ArgumentKey,
    tally: Arc<Tally>,
}

#[derive(Default)]
pub(super) struct Tally {
    /// Rung when a whole batch waits; till then nobody wakes the writer from its gathering.
    pub(super) full: Notify,
    pub(super) written: AtomicU64,
    pub(super) dropped: AtomicU64,
    trouble: Mutex<Option<StoreError>>,
}

impl Tally {
    pub(super) fn trouble(&self) -> MutexGuard<'_, Option<StoreError>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallLog {
    pub(super) fn start(db: Db, key: ArgumentKey) -> CallLog {
        let (queue, records) = mpsc::channel(QUEUE);
        let (asks, asked) = mpsc::channel(BATCH);
        let tally = Arc::new(Tally::default());
        tokio::spawn(Writer::new(db, records, asked, tally.clone()).run());
        CallLog {
            queue,
            asks,
            key,
            tally,
        }
    }

    pub fn state(&self) -> LogState {
        LogState {
            written: self.tally.written.load(Ordering::Relaxed),
            dropped: self.tally.dropped.load(Ordering::Relaxed),
            waiting: self.waiting(),
            trouble: self.tally.trouble().clone(),
        }
    }

    fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Comes back when all that was handed in before is written, or with why it can't be.
    pub async fn flush(&self, longest: Duration) -> Result<(), StoreError> {
        let flushed = timeout(longest, self.ask(Ask::Flush)).await;
        flushed.unwrap_or_else(|_| Err(failed("it was not written in time")))
    }

    async fn ask(&self, ask: impl FnOnce(Answer) -> Ask) -> Result<(), StoreError> {
        let (answer, answered) = oneshot::channel();
        let sent = self.asks.send(ask(answer)).await;
        sent.map_err(|_| failed("it has ended"))?;
        answered
            .await
            .unwrap_or_else(|_| Err(failed("it has ended")))
    }
}

fn failed(why: &str) -> StoreError {
    StoreError::Failed {
        place: "call log".to_owned(),
        why: why.to_owned(),
    }
}

impl CallBook for CallLog {
    fn record(&self, record: CallRecord) -> Recorded {
        match self.queue.try_send(Box::new(record)) {
            Ok(()) => {
                // A wake-up costs more than all else here, so it is not spent on every record.
                if self.waiting() >= BATCH {
                    self.tally.full.notify_one();
                }
                Recorded::Queued
            }
            Err(_) => {
                self.tally.dropped.fetch_add(1, Ordering::Relaxed);
                Recorded::Dropped
            }
        }
    }

    fn record_durably(&self, record: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.ask(|answer| Ask::Write(Box::new(record), answer)))
    }

    fn argument_hash(&self, arguments: &Object) -> Option<String> {
        Some(self.key.hash(arguments))
    }
}
