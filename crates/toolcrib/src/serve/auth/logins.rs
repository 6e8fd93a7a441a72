//! Browsers: a code that `serve` prints is traded, once, for a session. Both live in memory only.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolcrib_store::{fingerprint, new_secret};

const CODE_LIFE: Duration = Duration::from_secs(10 * 60);
pub const SESSION_LIFE: Duration = Duration::from_secs(12 * 3_600);
/// The oldest go when there are more.
const MAX_SECRETS: usize = 64;

/// What a code or a session is looked up by.
pub type Key = [u8; 32];

/// May a login decide on calls that wait?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approves {
    No,
    Yes,
}

/// Codes and sessions that count. Neither is kept itself, only its hash, by which it is found.
pub struct Logins {
    codes: Mutex<ExpiringSecrets>,
    sessions: Mutex<ExpiringSecrets>,
    /// Those of the codes and sessions that may decide.
    approving: Mutex<ExpiringSecrets>,
    code_life: Duration,
    session_life: Duration,
}

impl Default for Logins {
    fn default() -> Logins {
        Logins::lasting(CODE_LIFE, SESSION_LIFE)
    }
}

impl Logins {
    fn lasting(code_life: Duration, session_life: Duration) -> Logins {
        Logins {
            codes: Mutex::default(),
            sessions: Mutex::default(),
            approving: Mutex::default(),
            code_life,
            session_life,
        }
    }

    /// A code that logs one browser in.
    pub fn new_code(&self, approves: Approves) -> io::Result<String> {
        let code = new_secret()?;
        if approves == Approves::Yes {
            lock(&self.approving).insert(&code, self.code_life);
        }
        lock(&self.codes).insert(&code, self.code_life);
        Ok(code)
    }

    /// Trades a code for a session, or gives nothing where the code is wrong, used or expired.
    pub fn redeem(&self, code: &str) -> io::Result<Option<String>> {
        if !lock(&self.codes).remove(&fingerprint(code)) {
            return Ok(None);
        }
        let session = new_secret()?;
        if lock(&self.approving).remove(&fingerprint(code)) {
            lock(&self.approving).insert(&session, self.session_life);
        }
        lock(&self.sessions).insert(&session, self.session_life);
        Ok(Some(session))
    }

    /// What the session is found by from now on, if it counts.
    pub fn session(&self, secret: &str) -> Option<Key> {
        let key = fingerprint(secret);
        self.counts(&key).then_some(key)
    }

    pub fn counts(&self, key: &Key) -> bool {
        lock(&self.sessions).has(key)
    }

    pub fn approves(&self, key: &Key) -> Approves {
        match self.counts(key) && lock(&self.approving).has(key) {
            true => Approves::Yes,
            false => Approves::No,
        }
    }

    pub fn log_out(&self, key: &Key) {
        lock(&self.approving).remove(key);
        lock(&self.sessions).remove(key);
    }
}

fn lock(kept: &Mutex<ExpiringSecrets>) -> MutexGuard<'_, ExpiringSecrets> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hashes of secrets, and until when each counts.
#[derive(Default)]
struct ExpiringSecrets(HashMap<Key, Instant>);

impl ExpiringSecrets {
    fn insert(&mut self, secret: &str, life: Duration) {
        let now = Instant::now();
        self.0.retain(|_, until| *until > now);
        if self.0.len() >= MAX_SECRETS {
            let oldest = self.0.iter().min_by_key(|(_, until)| **until);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(fingerprint(secret), now + life);
    }

    fn has(&self, key: &Key) -> bool {
        self.0.get(key).is_some_and(|until| *until > Instant::now())
    }

    /// Gives whether it counted until now.
    fn remove(&mut self, key: &Key) -> bool {
        self.0
            .remove(key)
            .is_some_and(|until| until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_counts_once_and_a_session_until_it_is_ended() {
        let logins = Logins::default();
        let code = logins.new_code(Approves::No).unwrap();
        assert_eq!(logins.redeem("").unwrap(), None);
        assert_eq!(logins.redeem(&code[1..]).unwrap(), None);
        let session = logins.redeem(&code).unwrap().unwrap();
        assert_eq!(logins.redeem(&code).unwrap(), None);
        assert!(session.len() == 64 && code.len() == 64 && session != code);
        assert_eq!(logins.session(&code), None);
        let key = logins.session(&session).unwrap();
        assert_eq!(logins.approves(&key), Approves::No);
        logins.log_out(&key);
        assert!(logins.session(&session).is_none() && !logins.counts(&key));
        let code = logins.new_code(Approves::Yes).unwrap();
        let session = logins.redeem(&code).unwrap().unwrap();
        let key = logins.session(&session).unwrap();
        assert_eq!(logins.approves(&key), Approves::Yes);
        assert_eq!(logins.approves(&fingerprint(&code)), Approves::No);
        logins.log_out(&key);
        assert_eq!(logins.approves(&key), Approves::No);
    }

    #[test]
    fn codes_and_sessions_end_with_their_time() {
        let logins = Logins::lasting(Duration::ZERO, SESSION_LIFE);
        let code = logins.new_code(Approves::No).unwrap();
        assert_eq!(logins.redeem(&code).unwrap(), None);
        let logins = Logins::lasting(CODE_LIFE, Duration::ZERO);
        let code = logins.new_code(Approves::No).unwrap();
        let session = logins.redeem(&code).unwrap().unwrap();
        assert_eq!(logins.session(&session), None);
    }

    #[test]
    fn no_more_are_kept_than_people_need() {
        let logins = Logins::default();
        let first = logins.new_code(Approves::No).unwrap();
        let codes: Vec<String> = (0..MAX_SECRETS)
            .map(|_| logins.new_code(Approves::No).unwrap())
            .collect();
        assert_eq!(lock(&logins.codes).0.len(), MAX_SECRETS);
        assert_eq!(logins.redeem(&first).unwrap(), None);
        assert!(logins.redeem(&codes[MAX_SECRETS - 1]).unwrap().is_some());
    }
}
