//! The store as commands and the crib use it: opened once, and in trouble without taking anything else down.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use toolcrib_core::{CallError, ErrorCode, Grants};
use toolcrib_store::{Store, StoreError, StoreUrl, TrustBook, TrustKind, TrustedPath};

use crate::config::{Project, local_folders, store_url};
use crate::env::Env;
use crate::failure::Failure;

/// The store, or why there is none.
pub struct StoreHandle {
    url: StoreUrl,
    /// The list of trusted projects that earlier versions kept, taken over once.
    book: TrustBook,
    store: Mutex<Result<Store, StoreError>>,
    /// How often the store was opened: whoever holds something of an earlier opening takes it anew.
    opened: AtomicU64,
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
            opened: AtomicU64::new(1),
        })
    }

    /// The store, for those who can't do without.
    pub fn store(&self) -> Result<Store, StoreError> {
        self.store
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The number of this opening of the store.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
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
            self.opened.fetch_add(1, Ordering::Release);
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
