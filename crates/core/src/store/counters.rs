//! Where calls are counted: exact for all who share it.

use super::StoreError;
use crate::BoxFuture;
use crate::counter::{CountVerdict, CounterSteps};

/// Keeps counters, and takes steps them one after the other.
pub trait Counters: Send + Sync {
    /// Takes these steps or none of them. An error means that nobody knows, and nothing is decided.
    fn ask(&self, steps: CounterSteps) -> BoxFuture<'_, Result<CountVerdict, StoreError>>;

    /// Takes steps that nothing refuses, such as giving back, without anybody waiting.
    fn tell(&self, steps: CounterSteps);
}
