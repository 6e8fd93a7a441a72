//! What is known of trust and grants: read from the store, and remembered for while that does not answer.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use toolcrib_core::{Grant, Grants};
use toolcrib_store::{Revisions, Store, StoreError, TrustKind, TrustedPath};

use super::{Number, StoreHandle, user};
use crate::config::{Project, local_folders};
use crate::env::Env;

/// How long the store may take before what is known counts instead.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// What was read last, and the number of the change that it was read after.
pub(super) struct LastKnown<T>(Mutex<Option<(Number, T)>>);

impl<T> Default for LastKnown<T> {
    fn default() -> LastKnown<T> {
        LastKnown(Mutex::new(None))
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
    /// What was granted. Where nobody knows, nothing counts as granted, and the reason is told.
    pub async fn grants(&self) -> Grants {
        let read = async |store: Store| -> Result<Vec<Grant>, StoreError> {
            // A file that was moved away can still be read by who has it open; what it says no longer counts.
            store.probe().await?;
            store.grants().list(None).await
        };
        match self.read(&self.granted, |all| all.grants, read).await {
            Ok(all) => Grants::new(all),
            Err(error) => Grants::unknown(error.to_string()),
        }
    }

    async fn trusted_paths(&self) -> Result<Vec<TrustedPath>, StoreError> {
        let read = async |store: Store| {
            store.probe().await?;
            store.trusted().list().await
        };
        self.read(&self.trusted, |all| all.trust, read).await
    }

    pub async fn trust_of(&self, env: &Env, project: Option<&Project>) -> Trust {
        let Some(project) = project else {
            return Trust::Untrusted;
        };
        let all = match self.trusted_paths().await {
            Ok(all) => all,
            Err(error) => return Trust::Unknown(error.to_string()),
        };
        let own = |one: &&TrustedPath| {
            one.kind == TrustKind::Project && Path::new(&one.path) == project.root
        };
        match all.iter().find(own) {
            Some(trusted) => {
                self.while_it_holds(trusted, &local_folders(env, project))
                    .await
            }
            None => Trust::Untrusted,
        }
    }

    /// A yes counts for what it was said to, and for those who could change that then.
    async fn while_it_holds(&self, trusted: &TrustedPath, further: &[PathBuf]) -> Trust {
        if let Some(reason) = trusted.lapsed(user(), further) {
            return Trust::Lapsed(reason);
        }
        if trusted.ownership.is_none()
            && let Ok(store) = self.ready()
        {
            // Where it can't be written it is found out again the next time.
            let path = Path::new(&trusted.path);
            let _ = store.trusted().remember(path, further).await;
        }
        Trust::Trusted {
            since_ms: trusted.since_ms,
        }
    }

    /// What is trusted singly in the project; nothing where nobody knows.
    pub async fn entries_of(&self, project: Option<&Project>) -> Vec<PathBuf> {
        let Some(project) = project else {
            return Vec::new();
        };
        let all = self.trusted_paths().await.unwrap_or_default();
        let entries = all.into_iter().filter(|one| one.kind == TrustKind::Entry);
        let entries = entries.filter(|one| one.lapsed(user(), &[]).is_none());
        let paths = entries.map(|one| PathBuf::from(one.path));
        paths
            .filter(|path| path.starts_with(&project.root))
            .collect()
    }

    /// Reads, or gives what was read before, if nothing of that kind is known to have changed since.
    async fn read<T: Clone>(
        &self,
        known: &LastKnown<T>,
        kind: fn(Revisions) -> u64,
        read: impl AsyncFnOnce(Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let number = self.number(kind);
        let slot = || known.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = match self.ready() {
            Ok(store) => match tokio::time::timeout(PATIENCE, Box::pin(read(store))).await {
                Ok(Ok(value)) => {
                    *slot() = Some((number, value.clone()));
                    return Ok(value);
                }
                Ok(Err(error)) => error,
                Err(_) => StoreError::Unreachable {
                    place: self.url.to_string(),
                    why: "it does not answer".to_owned(),
                },
            },
            Err(error) => error,
        };
        match &*slot() {
            Some((of, value)) if *of == number && self.is_known() => Ok(value.clone()),
            _ => Err(failed),
        }
    }

    /// The number of the last change of one kind, as far as is known.
    fn number(&self, kind: fn(Revisions) -> u64) -> Number {
        match self.news.get() {
            Some(news) => news.state.borrow().number(kind),
            None => {
                let at_open = self.held().ok().map(|store| kind(store.at_open()));
                (self.opened(), at_open)
            }
        }
    }
}
