//! Follows the store for all who want to know: its changes, its troubles, and whether another try helps.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use toolcrib_store::{Pulse, StoreError};

use super::{StoreHandle, StoreNews, StoreState};

/// How often a store in trouble is tried again.
const TRY_EVERY: Duration = Duration::from_millis(500);
/// How often one that can only be read.
const TRY_TO_WRITE_EVERY: Duration = Duration::from_secs(2);

/// Begins to tell, until nobody holds the store.
pub(super) fn start(handle: &Arc<StoreHandle>) -> StoreNews {
    let opened = handle.opened.subscribe();
    let watched = watch_of(handle);
    let (revisions, found) = see(handle, watched.as_ref());
    let opening = *opened.borrow();
    let (state, told_state) = watch::channel(StoreState { opening, revisions });
    let (trouble, told_trouble) = watch::channel(found);
    let following = Following {
        handle: Arc::downgrade(handle),
        opened,
        watched,
        state,
        trouble,
        trying: None,
    };
    tokio::spawn(following.run());
    StoreNews {
        state: told_state,
        trouble: told_trouble,
    }
}

struct Following {
    handle: Weak<StoreHandle>,
    opened: watch::Receiver<u64>,
    watched: Option<watch::Receiver<Pulse>>,
    state: watch::Sender<StoreState>,
    trouble: watch::Sender<Option<StoreError>>,
    /// A store that is in trouble is opened again beside all this, because that may take long.
    trying: Option<JoinHandle<()>>,
}

impl Following {
    async fn run(mut self) {
        loop {
            let again = match &*self.trouble.borrow() {
                None => None,
                Some(StoreError::ReadOnly { .. }) => Some(TRY_TO_WRITE_EVERY),
                Some(_) => Some(TRY_EVERY),
            };
            let again = async {
                match again {
                    Some(wait) => sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                anew = self.opened.changed() => {
                    if anew.is_err() {
                        return;
                    }
                    let Some(handle) = self.handle.upgrade() else { return };
                    self.watched = watch_of(&handle);
                }
                () = pulse(&mut self.watched) => {}
                () = again => self.try_again(),
            }
            let Some(handle) = self.handle.upgrade() else {
                return;
            };
            self.tell(&handle);
        }
    }

    fn try_again(&mut self) {
        if self.trying.as_ref().is_some_and(|one| !one.is_finished()) {
            return;
        }
        let handle = self.handle.clone();
        self.trying = Some(tokio::spawn(async move {
            if let Some(handle) = handle.upgrade() {
                handle.open_again().await;
            }
        }));
    }

    fn tell(&mut self, handle: &StoreHandle) {
        let (revisions, trouble) = see(handle, self.watched.as_ref());
        if let Some(watched) = &mut self.watched {
            watched.mark_unchanged();
        }
        let opening = *self.opened.borrow_and_update();
        let state = StoreState { opening, revisions };
        // First whether it answers, then what changed: who hears of a change asks for it.
        let told = self.trouble.send_if_modified(|before| {
            let differs = *before != trouble;
            before.clone_from(&trouble);
            differs
        });
        self.state
            .send_if_modified(|before| std::mem::replace(before, state) != state);
        match trouble {
            Some(error) if told => tracing::warn!(%error, "the store can't be used"),
            None if told => tracing::info!("the store is well again"),
            _ => {}
        }
    }
}

fn watch_of(handle: &StoreHandle) -> Option<watch::Receiver<Pulse>> {
    handle.held().ok().map(|store| store.watch())
}

/// Comes back when the store has something to tell.
async fn pulse(watched: &mut Option<watch::Receiver<Pulse>>) {
    let told = match watched {
        Some(watched) => watched.changed().await.is_ok(),
        None => false,
    };
    if !told {
        std::future::pending().await
    }
}

/// What is known of the store, and what is wrong with it.
fn see(
    handle: &StoreHandle,
    watched: Option<&watch::Receiver<Pulse>>,
) -> (Option<toolcrib_store::Revisions>, Option<StoreError>) {
    match (handle.held(), watched) {
        (Err(error), _) => (None, Some(error)),
        (Ok(_), None) => (None, None),
        (Ok(store), Some(watched)) => {
            let pulse = watched.borrow();
            let trouble = pulse.trouble.clone();
            (
                Some(pulse.revisions),
                trouble.or_else(|| store.read_only().cloned()),
            )
        }
    }
}
