//! What a worker says beside the protocol: its end in memory, for the error that follows, and all of it in the log.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How much is held in memory.
const RING: usize = 16 * 1_024;
/// How much of it an error carries.
const TOLD: usize = 2 * 1_024;

/// The end of what was said.
#[derive(Debug, Default)]
pub struct Ring(Mutex<VecDeque<u8>>);

impl Ring {
    pub fn push(&self, bytes: &[u8]) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(RING)..];
        let surplus = (ring.len() + bytes.len()).saturating_sub(RING);
        ring.drain(..surplus);
        ring.extend(bytes);
    }

    /// The last whole lines.
    pub fn tail(&self) -> String {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let skipped = ring.len().saturating_sub(TOLD);
        let bytes: Vec<u8> = ring.iter().skip(skipped).copied().collect();
        drop(ring);
        let text = String::from_utf8_lossy(&bytes);
        match text.split_once('\n') {
            Some((_, whole)) if skipped > 0 => whole.to_owned(),
            _ => text.into_owned(),
        }
    }
}
