//! The store as commands and the crib use it: opened once, and in trouble without taking anything else down.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use tokio::sync::watch;
use toolcrib_core::{CallError, ErrorCode, Grants};
use toolcrib_store::{Revisions, Store, StoreError, StoreUrl, TrustBook, TrustKind, TrustedPath};

use crate::config::{Project, local_folders, store_url};
use crate::env::Env;
use crate::failure::Failure;

/// The store, or why there is none.
pub struct StoreHandle {
    url: StoreUrl,
    /// The list of trusted projects that earlier versions kept, taken over once.
    book: TrustBook,
    store: Mutex<Result<Store, StoreError>>,
    /// How often the store was opened.
    opened: watch::Sender<u64>,
    /// What is told of its changes, from when somebody first wants to know.
    told: OnceLock<watch::Receiver<StoreState>>,
}

/// Which store this is, and how often each kind of thing in it was changed. Whoever follows one kind compares its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreState {
    /// The number of this opening: what is in a store that was opened again may be anything.
    pub opening: u64,
    /// None where it can't be opened.
    pub revisions: Option<Revisions>,
}

impl StoreState {
    /// The number of the last change of one kind; another one means that it has to be read again.
    pub fn number(self, kind: fn(Revisions) -> u64) -> (u64, Option<u64>) {
        (self.opening, self.revisions.map(kind))
    }
}

/// What the store says about the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    Trusted {
        since_ms: u64,
    },
    Untrusted,
    /// It was trusted, and others can change it now; holds who.
    Lapsed(String),
    /// The store can't be read, so nothing is trusted; holds the reason.
    Unknown(String),
}

impl Trust {
    pub fn is_trusted(&self) -> bool {
        matches!(self, Trust::Trusted { .. })
    }
}

impl StoreHandle {
    /// Opens the store that settings name. A store that can't be opened is no failure here: whoever needs it is told.
    pub async fn open(env: &Env, data: &Path) -> Result<StoreHandle, Failure> {
        let url = store_url(env, data)?;
        let book = TrustBook::in_folder(data);
        let store = open(&url, &book).await;
        if let Err(error) = &store {
            tracing::warn!(%error, "the store can't be used");
        }
        Ok(StoreHandle {
            url,
            book,
            store: Mutex::new(store),
            opened: watch::Sender::new(1),
            told: OnceLock::new(),
        })
    }

    /// The store, for those who can't do without.
    pub fn store(&self) -> Result<Store, StoreError> {
        self.store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The number of this opening of the store: whoever holds something of an earlier one takes it anew.
    pub fn opened(&self) -> u64 {
        *self.opened.borrow()
    }

    /// Changes whenever somebody, in any process, changes what is in the store, and when it is opened again. Everybody who
    /// follows the store follows this. Must be called within a runtime.
    pub fn changes(self: &Arc<Self>) -> watch::Receiver<StoreState> {
        self.told().clone()
    }

    /// The store as it is now, as far as was told.
    pub fn state(self: &Arc<Self>) -> StoreState {
        *self.told().borrow()
    }

    fn told(self: &Arc<Self>) -> &watch::Receiver<StoreState> {
        self.told.get_or_init(|| {
            let opened = self.opened.subscribe();
            let opening = *opened.borrow();
            let mut watched = self.store().ok().map(|store| store.watch());
            let revisions = watched.as_mut().map(|one| *one.borrow_and_update());
            let (tell, told) = watch::channel(StoreState { opening, revisions });
            tokio::spawn(follow(Arc::downgrade(self), opened, watched, tell));
            told
        })
    }

    /// What is wrong with the store now, if anything. One that could not be opened is tried again, and so is one whose
    /// file is damaged or no longer in its place: a good one may lie there by now.
    pub async fn trouble(&self) -> Option<String> {
        let asked = match self.store() {
            Ok(store) => store.probe().await,
            Err(error) => Err(error),
        };
        let error = asked.err()?;
        let anew = self.store().is_err()
            || matches!(
                error,
                StoreError::Damaged { .. } | StoreError::Unreachable { .. }
            );
        if !anew {
            return Some(error.to_string());
        }
        let store = open(&self.url, &self.book).await;
        let trouble = store.as_ref().err().map(ToString::to_string);
        let mut held = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        // A store that is open and silent may yet answer; it is given up only for one that does.
        if store.is_ok() || held.is_err() {
            *held = store;
            self.opened.send_modify(|opening| *opening += 1);
        }
        trouble
    }

    /// What was granted. Where the store can't be read nothing counts as granted, and the reason is told.
    pub async fn grants(&self) -> Grants {
        let read = async {
            let store = self.store()?;
            // A file that was moved away can still be read by who has it open; what it says no longer counts.
            store.probe().await?;
            store.grants().list(None).await
        };
        match read.await {
            Ok(all) => Grants::new(all),
            Err(error) => Grants::unknown(error.to_string()),
        }
    }

    pub async fn trust_of(&self, env: &Env, project: Option<&Project>) -> Trust {
        let Some(project) = project else {
            return Trust::Untrusted;
        };
        let found = match self.store() {
            Ok(store) => store.trusted().get(&project.root).await,
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(trusted)) if trusted.kind == TrustKind::Project => {
                self.while_it_holds(&trusted, &local_folders(env, project))
                    .await
            }
            Ok(_) => Trust::Untrusted,
            Err(error) => Trust::Unknown(error.to_string()),
        }
    }

    /// A yes counts for what it was said to, and for those who could change that then.
    async fn while_it_holds(&self, trusted: &TrustedPath, further: &[PathBuf]) -> Trust {
        if let Some(reason) = trusted.lapsed(user(), further) {
            return Trust::Lapsed(reason);
        }
        if trusted.ownership.is_none()
            && let Ok(store) = self.store()
        {
            // Where it can't be written it is found out again the next time.
            let path = Path::new(&trusted.path);
            let _ = store.trusted().remember(path, further).await;
        }
        Trust::Trusted {
            since_ms: trusted.since_ms,
        }
    }

    /// What is trusted singly in the project; nothing where the store can't be read.
    pub async fn entries_of(&self, project: Option<&Project>) -> Vec<PathBuf> {
        let (Some(project), Ok(store)) = (project, self.store()) else {
            return Vec::new();
        };
        let all = store.trusted().list().await.unwrap_or_default();
        let entries = all.into_iter().filter(|one| one.kind == TrustKind::Entry);
        let entries = entries.filter(|one| one.lapsed(user(), &[]).is_none());
        let paths = entries.map(|one| PathBuf::from(one.path));
        paths
            .filter(|path| path.starts_with(&project.root))
            .collect()
    }
}

/// Tells of a store's changes, one opening after the other, until nobody holds the store.
async fn follow(
    handle: Weak<StoreHandle>,
    mut opened: watch::Receiver<u64>,
    mut watched: Option<watch::Receiver<Revisions>>,
    tell: watch::Sender<StoreState>,
) {
    loop {
        let changed = async {
            let told = match &mut watched {
                Some(watched) => watched.changed().await.is_ok(),
                None => false,
            };
            if !told {
                std::future::pending().await
            }
        };
        tokio::select! {
            anew = opened.changed() => {
                let handle = handle.upgrade().filter(|_| anew.is_ok());
                let Some(handle) = handle else { return };
                watched = handle.store().ok().map(|store| store.watch());
            }
            () = changed => {}
        }
        let state = StoreState {
            opening: *opened.borrow_and_update(),
            revisions: watched.as_mut().map(|one| *one.borrow_and_update()),
        };
        tell.send_if_modified(|before| std::mem::replace(before, state) != state);
    }
}

/// Who runs this.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

async fn open(url: &StoreUrl, book: &TrustBook) -> Result<Store, StoreError> {
    let store = Store::open(url).await?;
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
                "move the file away to begin anew, or put a good copy in its place"
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
    use super::*;

    #[tokio::test]
    async fn a_change_says_what_changed() {
        let folder = tempfile::tempdir().unwrap();
        let env = Env::of(&[], folder.path());
        let handle = Arc::new(StoreHandle::open(&env, folder.path()).await.unwrap());
        let mut changes = handle.changes();
        let before = *changes.borrow_and_update();
        let other = StoreHandle::open(&env, folder.path()).await.unwrap();
        let book = other.store().unwrap().trusted();
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
        assert_eq!(handle.trouble().await, None);
        let there = changes.wait_for(|state| state.revisions.is_some()).await;
        assert!(there.unwrap().opening > before.opening);
    }
}
