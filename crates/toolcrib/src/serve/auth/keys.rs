//! Tokens that were shown: checked against the store, and remembered for a moment so that calls do not wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_core::{CallError, ErrorCode};
use toolcrib_store::{Store, StoreError, Token, Tokens, Verdict, fingerprint};

use super::{Scopes, Who};
use crate::store_handle::StoreHandle;

/// How long a verified token is taken at its word, should nobody tell of changes.
const TRUSTED_FOR: Duration = Duration::from_secs(1);
/// When a token was last used is noted to the minute.
const TOUCH_EVERY_MS: u64 = 60_000;
/// A long stream's token is looked at whenever the store changes, and this often in case that nobody told.
const LOOK_ANYWAY: Duration = Duration::from_secs(10);
/// So often where nobody can tell.
const LOOK_UNTOLD: Duration = Duration::from_secs(1);
/// More tokens than this in one second are not remembered.
const MAX_KNOWN: usize = 1_024;

/// Checks tokens.
pub struct Keys {
    memory: Arc<StoreHandle>,
    /// By the hash of the secret; the secret itself is kept nowhere.
    known: Mutex<HashMap<[u8; 32], CachedToken>>,
}

/// A token that was verified a moment ago.
struct CachedToken {
    who: Who,
    at: Instant,
    /// The number of the last change to tokens before the store was asked.
    revision: Revision,
    expires_ms: Option<u64>,
}

/// The opening of the store, and the number of the last change to tokens in it.
pub(super) type Revision = (u64, Option<u64>);

impl Keys {
    pub fn new(memory: Arc<StoreHandle>) -> Keys {
        Keys {
            memory,
            known: Mutex::default(),
        }
    }

    /// Whose token this is, if it counts now.
    pub async fn check(&self, secret: &str) -> Result<Who, CallError> {
        if !Tokens::is_secret(secret) {
            return Err(refused("the token is not known here"));
        }
        let key = fingerprint(secret);
        let revision = self.revision();
        if let Some(who) = self.remembered(&key, revision) {
            return Ok(who);
        }
        let store = self.memory.store().map_err(unreadable)?;
        let verdict = store.tokens().verify(secret).await.map_err(unreadable)?;
        let token = match verdict {
            Verdict::Valid(token) => token,
            other => {
                self.known().remove(&key);
                return Err(refused(match other {
                    Verdict::Expired => "the token has expired",
                    Verdict::Revoked => "the token was revoked",
                    _ => "the token is not known here",
                }));
            }
        };
        let who = Who::token(
            &token.id,
            token.agent.as_deref(),
            Scopes::named(&token.scopes),
        );
        let entry = CachedToken {
            who: who.clone(),
            at: Instant::now(),
            revision,
            expires_ms: token.expires_ms,
        };
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, entry);
        drop(known);
        touch(store, token);
        Ok(who)
    }

    fn remembered(&self, key: &[u8; 32], revision: Revision) -> Option<Who> {
        let known = self.known();
        let entry = known.get(key)?;
        let fresh = entry.at.elapsed() < TRUSTED_FOR
            && entry.revision == revision
            && !is_over(entry.expires_ms);
        fresh.then(|| entry.who.clone())
    }

    /// This moment, for [`Keys::counts_since`].
    pub fn now(&self) -> (Instant, Revision) {
        (Instant::now(), self.revision())
    }

    /// Does a token that counted then still do? The store is asked only where it may have changed.
    pub async fn counts_since(
        &self,
        id: &str,
        (at, revision): (Instant, Revision),
    ) -> Result<bool, CallError> {
        if at.elapsed() < TRUSTED_FOR && revision == self.revision() {
            return Ok(true);
        }
        let store = self.memory.store().map_err(unreadable)?;
        let found = store.tokens().get(id).await.map_err(unreadable)?;
        Ok(found.is_some_and(|token| token.revoked_ms.is_none() && !is_over(token.expires_ms)))
    }

    /// Ends when the token no longer counts.
    pub async fn ended(&self, id: &str) {
        loop {
            // Taken before the look, so that what changes after it is heard of.
            let mut changes = self.memory.changes();
            let mut wait = match changes.borrow_and_update().revisions {
                Some(_) => LOOK_ANYWAY,
                None => LOOK_UNTOLD,
            };
            // A store that can't be read says nothing about the token: this looks again.
            if let Ok(store) = self.memory.store()
                && let Ok(found) = store.tokens().get(id).await
            {
                let Some(token) = found.filter(|token| token.revoked_ms.is_none()) else {
                    return;
                };
                if is_over(token.expires_ms) {
                    return;
                }
                if let Some(expires) = token.expires_ms {
                    let left = expires.saturating_sub(crate::now_ms());
                    wait = wait.min(Duration::from_millis(left + 1));
                }
            }
            let told = async {
                if changes.changed().await.is_err() {
                    std::future::pending().await
                }
            };
            let _ = tokio::time::timeout(wait, told).await;
        }
    }

    pub(super) fn revision(&self) -> Revision {
        self.memory.state().number(|revisions| revisions.tokens)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<[u8; 32], CachedToken>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_over(expires_ms: Option<u64>) -> bool {
    expires_ms.is_some_and(|expires| expires <= crate::now_ms())
}

/// Notes that a token was used, while its request goes on.
fn touch(store: Store, token: Token) {
    let since = crate::now_ms().saturating_sub(token.last_used_ms.unwrap_or(0));
    if since < TOUCH_EVERY_MS {
        return;
    }
    tokio::spawn(async move {
        if let Err(error) = store.tokens().touch(&token).await {
            tracing::debug!(%error, token = token.id, "when a token was used could not be noted");
        }
    });
}

fn refused(message: &str) -> CallError {
    CallError::new(ErrorCode::Unauthorized, message).hint(
        "`toolcrib token list` shows the tokens there are, `toolcrib token create NAME` makes one",
    )
}

fn unreadable(error: StoreError) -> CallError {
    tracing::warn!(%error, "a token could not be checked");
    CallError::unavailable("tokens can't be checked, because the store can't be read").hint(
        "GET /readyz says what is wrong with it; commands on the crib's own machine need no token",
    )
}
