//! What a worker says beside the protocol: its end in memory, for the error that follows, and all of it in the log.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How much is held in memory.
const RING: usize = 16 * 1_024;
/// How much of it an error carries.
const TOLD: usize = 2 * 1_024;

/// The end of what was said.
#[derive(Debug, Default)]
pub struct Ring(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    kept: VecDeque<u8>,
    /// All that was ever said, in bytes.
    total: u64,
}

/// A moment in what is said.
#[derive(Debug, Clone, Copy)]
pub struct Moment(u64);

impl Ring {
    pub fn push(&self, bytes: &[u8]) {
        let mut said = self.lock();
        said.total += bytes.len() as u64;
        let bytes = &bytes[bytes.len().saturating_sub(RING)..];
        let surplus = (said.kept.len() + bytes.len()).saturating_sub(RING);
        said.kept.drain(..surplus);
        said.kept.extend(bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn now(&self) -> Moment {
        Moment(self.lock().total)
    }

    /// The last whole lines.
    pub fn tail(&self) -> String {
        self.since(Moment(0))
    }

    /// The last whole lines since then.
    pub fn since(&self, moment: Moment) -> String {
        let said = self.lock();
        let new = usize::try_from(said.total.saturating_sub(moment.0)).unwrap_or(usize::MAX);
        let new = new.min(said.kept.len());
        let cut = new > TOLD;
        let skipped = said.kept.len() - new.min(TOLD);
        let bytes: Vec<u8> = said.kept.iter().skip(skipped).copied().collect();
        drop(said);
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some((_, whole)) if cut => whole.to_owned(),
            _ => text.into_owned(),
        }
    }
}
