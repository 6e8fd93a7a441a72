//! The book of calls as the crib uses it: the store's log while there is a store, and none while there is not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use toolcrib_core::store::{CallBook, CallRecord, Recorded, StoreError};
use toolcrib_core::{BoxFuture, Object};
use toolcrib_store::{CallLog, LogState};

use crate::store_handle::StoreHandle;

/// How long a command that ends waits for its last records.
pub const LAST_WORDS: Duration = Duration::from_secs(2);

/// Where calls are written down. A store in trouble never takes a call down, and is written to again once it is mended.
pub struct Book {
    store: Arc<StoreHandle>,
    /// The log, and the opening of the store that it belongs to.
    log: ArcSwapOption<(u64, CallLog)>,
    opening: Mutex<()>,
    /// Handed in while there was no store.
    lost: AtomicU64,
    /// How many were lost when somebody last asked.
    told: AtomicU64,
}

impl Book {
    pub fn new(store: Arc<StoreHandle>) -> Book {
        Book {
            store,
            log: ArcSwapOption::empty(),
            opening: Mutex::new(()),
            lost: AtomicU64::new(0),
            told: AtomicU64::new(0),
        }
    }

    /// The log of the store as it is open now.
    fn log(&self) -> Option<Arc<(u64, CallLog)>> {
        let opened = self.store.opened();
        match self.log.load_full() {
            Some(log) if log.0 == opened => Some(log),
            _ => self.open(),
        }
    }

    fn open(&self) -> Option<Arc<(u64, CallLog)>> {
        let _alone = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = self.store.opened();
        if let Some(log) = self.log.load_full().filter(|log| log.0 == opened) {
            return Some(log);
        }
        // Also while it does not answer: what waits is written when it does.
        let store = self.store.held().ok()?;
        // Its task needs a runtime, which a call that is dropped at the very end may no longer have.
        tokio::runtime::Handle::try_current().ok()?;
        let log = Arc::new((opened, store.call_log()));
        // What waits in the log of an earlier opening is lost with the file that it was for.
        if let Some(earlier) = self.log.swap(Some(log.clone())) {
            let state = earlier.1.state();
            let left = state.dropped + state.waiting as u64;
            self.lost.fetch_add(left, Ordering::Relaxed);
        }
        Some(log)
    }

    /// How many calls were written, and how many are lost.
    pub fn state(&self) -> LogState {
        let mut state = self.log().map(|log| log.1.state()).unwrap_or_default();
        state.dropped += self.lost.load(Ordering::Relaxed);
        state
    }

    /// Why calls are not recorded, where they are not, or were not since this was last asked.
    pub fn trouble(&self) -> Option<String> {
        let state = self.state();
        let told = self.told.swap(state.dropped, Ordering::Relaxed);
        match state.trouble {
            Some(error) => Some(format!("calls can't be recorded: {error}")),
            None if state.dropped > told => {
                Some("records of calls are lost: more come than the store takes".to_owned())
            }
            None => None,
        }
    }

    /// Comes back when all that was handed in is written, or can't be.
    pub async fn flush(&self, longest: Duration) -> Result<(), StoreError> {
        // Nobody called anything, so there is nothing to wait for.
        let Some(log) = self.log.load_full() else {
            return Ok(());
        };
        log.1.flush(longest).await
    }
}

impl CallBook for Book {
    fn record(&self, record: CallRecord) -> Recorded {
        match self.log() {
            Some(log) => log.1.record(record),
            None => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                Recorded::Dropped
            }
        }
    }

    fn record_durably(&self, record: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            // Who waits may as well wait for a store that came back just now.
            if self.store.held().is_err() {
                self.store.trouble().await;
            }
            // What can't be read can't be relied upon, whatever it takes in.
            self.store.ready()?;
            let log = self.log();
            match log {
                Some(log) => log.1.record_durably(record).await,
                None => Err(self.store.ready().err().unwrap_or(StoreError::Failed {
                    place: "call log".to_owned(),
                    why: "it has ended".to_owned(),
                })),
            }
        })
    }

    fn argument_hash(&self, arguments: &Object) -> Option<String> {
        self.log()?.1.argument_hash(arguments)
    }
}
