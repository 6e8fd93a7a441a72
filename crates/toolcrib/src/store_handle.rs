//! The store as commands and the crib use it: opened once, and in trouble without taking anything else down.
//!
//! What was known of trust, tokens and grants a moment ago counts through an outage, for as long as settings say
//! ([`StoreHandle::is_known`]). What has to be written or looked up is refused at once, with the reason.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use toolcrib_core::{CallError, ErrorCode, Grant};
use toolcrib_store::{Making, Revisions, Store, StoreError, StoreUrl, TrustBook, TrustedPath};

use crate::config::{store_grace, store_url};
use crate::env::Env;
use crate::failure::Failure;

mod follow;
mod known;
mod todos;

use known::LastKnown;
pub use known::Trust;

/// A store that is well answers more often than this.
const HEARD: Duration = Duration::from_secs(5);

/// The store, or why there is none.
pub struct StoreHandle {
    url: StoreUrl,
    /// The list of trusted projects that earlier versions kept, taken over once.
    book: TrustBook,
    /// How long what is known counts while the store does not answer.
    grace: Duration,
    store: Mutex<Result<Store, StoreError>>,
    /// Was there a store? Then one that is gone is not made anew.
    was_open: AtomicBool,
    /// How often the store was opened.
    opened: watch::Sender<u64>,
    /// What followers hear about it, from when somebody first wants to know.
    news: OnceLock<StoreNews>,
    trusted: LastKnown<Vec<TrustedPath>>,
    granted: LastKnown<Vec<Grant>>,
}

/// What whoever follows the store is told.
struct StoreNews {
    state: watch::Receiver<StoreState>,
    trouble: watch::Receiver<Option<StoreError>>,
}

/// Which store this is, and how often each kind of thing in it was changed. Whoever follows one kind compares its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreState {
    /// The number of this opening: what is in a store that was opened again may be anything.
    pub opening: u64,
    /// As they were when it last answered; none where it was never open.
    pub revisions: Option<Revisions>,
}

/// The opening of the store, and the number of the last change of one kind in it.
pub type Number = (u64, Option<u64>);

impl StoreState {
    /// The number of the last change of one kind; another one means that it has to be read again.
    pub fn number(self, kind: fn(Revisions) -> u64) -> Number {
        (self.opening, self.revisions.map(kind))
    }
}

impl StoreHandle {
    /// Opens the store that settings name. A store that can't be opened is no failure here: whoever needs it is told.
    pub async fn open(env: &Env, data: &Path) -> Result<StoreHandle, Failure> {
        let url = store_url(env, data)?;
        let book = TrustBook::in_folder(data);
        let store = open(&url, &book, Making::IfMissing).await;
        if let Err(error) = &store {
            tracing::warn!(%error, "the store can't be used");
        }
        Ok(StoreHandle {
            url,
            book,
            grace: store_grace(env)?,
            was_open: AtomicBool::new(store.is_ok()),
            store: Mutex::new(store),
            opened: watch::Sender::new(1),
            news: OnceLock::new(),
            trusted: LastKnown::default(),
            granted: LastKnown::default(),
        })
    }

    /// The store, for those who can't do without: what can't be read or kept now is refused now, and not waited for.
    pub fn ready(&self) -> Result<Store, StoreError> {
        let store = self.held()?;
        match self.standing() {
            Some(error) if !still_reads(&error) => Err(error),
            _ => Ok(store),
        }
    }

    /// The store as it was opened, also while it does not answer.
    pub fn held(&self) -> Result<Store, StoreError> {
        self.slot().clone()
    }

    fn slot(&self) -> MutexGuard<'_, Result<Store, StoreError>> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with the store, as far as was told.
    fn standing(&self) -> Option<StoreError> {
        self.news.get()?.trouble.borrow().clone()
    }

    /// The number of this opening of the store: whoever holds something of an earlier one takes it anew.
    pub fn opened(&self) -> u64 {
        *self.opened.borrow()
    }

    /// Changes whenever somebody, in any process, changes what is in the store, and when it is opened again. Everybody who
    /// follows the store follows this. Must be called within a runtime.
    pub fn changes(self: &Arc<Self>) -> watch::Receiver<StoreState> {
        self.news().state.clone()
    }

    /// Changes when the store ceases to answer, and when it answers again. Must be called within a runtime.
    pub fn troubles(self: &Arc<Self>) -> watch::Receiver<Option<StoreError>> {
        self.news().trouble.clone()
    }

    /// The store as it is now, as far as was told.
    pub fn state(self: &Arc<Self>) -> StoreState {
        *self.news().state.borrow()
    }

    fn news(self: &Arc<Self>) -> &StoreNews {
        self.news.get_or_init(|| follow::start(self))
    }

    /// Does what was read from the store still count? While it answers; and while it does not, for the time that
    /// settings give.
    pub fn is_known(&self) -> bool {
        let longest = match self.standing() {
            None => self.grace.max(HEARD),
            Some(_) => self.grace,
        };
        self.held()
            .is_ok_and(|store| store.heard().elapsed() < longest)
    }

    /// What is wrong with the store now, if anything. Whoever follows it knows; else it is asked, and tried again where
    /// that may help.
    pub async fn trouble(&self) -> Option<StoreError> {
        if let Some(news) = self.news.get() {
            return news.trouble.borrow().clone();
        }
        let error = match self.held() {
            Ok(store) => match store.read_only() {
                Some(error) => Err(error.clone()),
                None => store.probe().await,
            },
            Err(error) => Err(error),
        };
        let error = error.err()?;
        match self.open_again().await {
            true => None,
            false => Some(self.held().err().unwrap_or(error)),
        }
    }

    /// Opens the store again, if a good one is there now. Gives whether it was.
    async fn open_again(&self) -> bool {
        let making = match self.was_open.load(Ordering::Relaxed) {
            true => Making::Never,
            false => Making::IfMissing,
        };
        if self.held().is_ok_and(|store| store.is_overwritten()) {
            return false;
        }
        let new = open(&self.url, &self.book, making).await;
        let mut slot = self.slot();
        let better = match (&*slot, &new) {
            (Err(_), _) => true,
            // A store that is open and silent may yet answer; it is given up only for one that does.
            (Ok(_), Err(_)) => false,
            // Connections to a server come back by themselves, and what waits to be written stays with them.
            (Ok(old), Ok(new)) if self.url.path().is_none() => !old.is_same(new),
            (Ok(old), Ok(new)) => old.read_only().is_none() || new.read_only().is_none(),
        };
        if !better {
            return false;
        }
        let opened = new.is_ok();
        *slot = new;
        drop(slot);
        self.was_open.fetch_or(opened, Ordering::Relaxed);
        if opened {
            self.opened.send_modify(|opening| *opening += 1);
        }
        opened
    }
}

/// Can what is asked still be read? Then those who write are told by the store itself.
fn still_reads(error: &StoreError) -> bool {
    matches!(error, StoreError::ReadOnly { .. } | StoreError::Full { .. })
}

/// Who runs this.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

async fn open(url: &StoreUrl, book: &TrustBook, making: Making) -> Result<Store, StoreError> {
    let store = Box::pin(Store::open_or(url, making)).await?;
    if let Err(error) = store.trusted().import(book).await {
        tracing::warn!(%error, "the trust that an earlier version remembered can't be taken over");
    }
    Ok(store)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        let code = match &error {
            StoreError::Taken { .. } | StoreError::Changed { .. } => ErrorCode::Conflict,
            StoreError::Missing { .. } => ErrorCode::NotFound,
            StoreError::Unfit { .. } => ErrorCode::BadRequest,
            _ => ErrorCode::Unavailable,
        };
        let hint = match &error {
            StoreError::ReadOnly { .. } => "check the permissions of Toolcrib's data folder",
            StoreError::Full { .. } => "free some space, then try again",
            StoreError::Locked { .. } => "end the process that holds it, then try again",
            StoreError::Unreachable { .. } => {
                "check the setting `store` and that the database runs"
            }
            StoreError::Damaged { .. } => {
                "stop Toolcrib, put a good copy in its place or move the file away to start over, then start Toolcrib"
            }
            StoreError::Taken { .. } => "take another name, or change the one there is",
            StoreError::Missing { .. } => "look at what there is with `toolcrib list`",
            _ => "",
        };
        let failure = Failure::new(code, error.to_string());
        match hint {
            "" => failure,
            hint => failure.hint(hint),
        }
    }
}

/// What the store says no to, in the words of the one table of errors.
pub fn refused(error: StoreError) -> CallError {
    Failure::from(error).into()
}

#[cfg(test)]
mod tests {
    use toolcrib_store::TrustKind;

    use super::*;

    #[tokio::test]
    async fn a_change_says_what_changed() {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::of(&[], folder.path());
        let handle = Arc::new(StoreHandle::open(&env, folder.path()).await.unwrap());
        let mut changes = handle.changes();
        let before = *changes.borrow_and_update();
        let other = StoreHandle::open(&env, folder.path()).await.unwrap();
        let book = other.ready().unwrap().trusted();
        let kind = TrustKind::Project;
        book.trust(folder.path(), kind, &[]).await.unwrap();
        let now = *changes
            .wait_for(|state| *state != before)
            .await
            .expect("told");
        let same = |kind: fn(Revisions) -> u64| now.number(kind) == before.number(kind);
        assert!(!same(|all| all.trust));
        assert!(same(|all| all.tokens) && same(|all| all.grants) && same(|all| all.custom_tools));
        // Whoever follows it does not keep it.
        drop(handle);
        assert!(changes.changed().await.is_err());
    }

    #[tokio::test]
    async fn a_store_that_is_there_again_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::of(&[], folder.path());
        let file = folder.path().join("toolcrib.db");
        std::fs::create_dir(&file).unwrap();
        let handle = Arc::new(StoreHandle::open(&env, folder.path()).await.unwrap());
        let mut changes = handle.changes();
        let before = *changes.borrow_and_update();
        assert_eq!(before.revisions, None);
        assert!(handle.trouble().await.is_some());
        std::fs::remove_dir(&file).unwrap();
        let there = changes.wait_for(|state| state.revisions.is_some()).await;
        assert!(there.unwrap().opening > before.opening);
        let well = |trouble: &Option<StoreError>| trouble.is_none();
        assert!(handle.troubles().wait_for(well).await.is_ok());
        assert_eq!(handle.trouble().await, None);
    }
}
