//! Tokens that were shown: checked against the store, and remembered for a moment so that calls do not wait for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_core::{CallError, ErrorCode};
use toolcrib_store::{Store, StoreError, Token, Tokens, Verdict, fingerprint};

use super::{Scopes, Who};
use crate::store_handle::{Number, StoreHandle};

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// When a token was last used is noted to the minute.
const TOUCH_EVERY_MS: u64 = 60_000;
/// A long stream's token is looked at whenever the store changes, and this often in case that nobody told.
const LOOK_ANYWAY: Duration = Duration::from_secs(10);
/// So often where nobody can tell.
const LOOK_UNTOLD: Duration = Duration::from_secs(1);
/// More tokens than this are not remembered.
const MAX_KNOWN: usize = 1_024;

/// Checks tokens.
pub struct Keys {
    store: Arc<StoreHandle>,
    /// By the hash of the secret; the secret itself is kept nowhere.
    known: Mutex<HashMap<[u8; 32], CachedToken>>,
}

/// A token that was verified, and counts until tokens change.
struct CachedToken {
    who: Who,
    token: Token,
    /// When it was last noted that it is used.
    touched: Instant,
    /// The number of the last change to tokens before the store was asked.
    revision: Number,
}

impl Keys {
    pub fn new(store: Arc<StoreHandle>) -> Keys {
        Keys {
            store,
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
        let verdict = async |store: &Store| store.tokens().verify(secret).await;
        let (store, verdict) = self.ask(verdict).await.map_err(unreadable)?;
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
            &token.name,
            token.agent.as_deref(),
            Scopes::named(&token.scopes),
        );
        let entry = CachedToken {
            who: who.clone(),
            token: token.clone(),
            touched: Instant::now(),
            revision,
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

    /// Whoever was let in since tokens last changed needs no further question, also while the store does not answer.
    fn remembered(&self, key: &[u8; 32], revision: Number) -> Option<Who> {
        if !self.store.is_known() {
            return None;
        }
        let mut known = self.known();
        let entry = known.get_mut(key)?;
        if entry.revision != revision || is_over(entry.token.expires_ms) {
            return None;
        }
        if entry.touched.elapsed().as_millis() > u128::from(TOUCH_EVERY_MS)
            && let Ok(store) = self.store.ready()
        {
            entry.touched = Instant::now();
            touch(store, entry.token.clone());
        }
        Some(entry.who.clone())
    }

    /// Asks the store, and does not wait long.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<(Store, T), StoreError> {
        let store = self.store.ready()?;
        match tokio::time::timeout(PATIENCE, question(&store)).await {
            Ok(answer) => answer.map(|answer| (store, answer)),
            Err(_) => Err(StoreError::Unreachable {
                place: "store".to_owned(),
                why: "it does not answer".to_owned(),
            }),
        }
    }

    /// The number of the last change to tokens, for [`Keys::counts_since`].
    pub fn now(&self) -> Number {
        self.revision()
    }

    /// Does a token that counted then still do? The store is asked only where it may have changed.
    pub async fn counts_since(&self, id: &str, revision: Number) -> Result<bool, CallError> {
        if revision == self.revision() && self.store.is_known() {
            let known = self.known();
            let entry = known.values().find(|entry| entry.token.id == id);
            if let Some(entry) = entry {
                return Ok(!is_over(entry.token.expires_ms));
            }
        }
        let found = async |store: &Store| store.tokens().get(id).await;
        let (_, found) = self.ask(found).await.map_err(unreadable)?;
        Ok(found.is_some_and(|token| token.revoked_ms.is_none() && !is_over(token.expires_ms)))
    }

    /// Ends when the token no longer counts.
    pub async fn ended(&self, id: &str) {
        let mut expires = None;
        loop {
            // Taken before the look, so that what changes after it is heard of.
            let mut changes = self.store.changes();
            changes.mark_unchanged();
            let found = async |store: &Store| store.tokens().get(id).await;
            let mut wait = match self.ask(found).await {
                Ok((_, found)) => {
                    let Some(token) = found.filter(|token| token.revoked_ms.is_none()) else {
                        return;
                    };
                    expires = token.expires_ms;
                    LOOK_ANYWAY
                }
                // A store that can't be read says nothing about the token: what is known counts, for its time.
                Err(_) if self.store.is_known() => LOOK_UNTOLD,
                Err(_) => return,
            };
            if is_over(expires) {
                return;
            }
            if let Some(expires) = expires {
                let left = expires.saturating_sub(crate::now_ms());
                wait = wait.min(Duration::from_millis(left + 1));
            }
            let told = async {
                if changes.changed().await.is_err() {
                    std::future::pending().await
                }
            };
            let _ = tokio::time::timeout(wait, told).await;
        }
    }

    pub(super) fn revision(&self) -> Number {
        self.store.state().number(|revisions| revisions.tokens)
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
