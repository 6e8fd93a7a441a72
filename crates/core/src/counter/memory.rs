//! Counters in the crib's own memory: for tests, and for a crib that has no store.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CountVerdict, Counter, CounterSteps, decide};
use crate::BoxFuture;
use crate::registry::Clock;
use crate::store::{Counters, StoreError};

pub struct MemoryCounters {
    clock: Clock,
    counters: Mutex<BTreeMap<Arc<str>, Counter>>,
}

impl MemoryCounters {
    pub fn new(clock: Clock) -> MemoryCounters {
        MemoryCounters {
            clock,
            counters: Mutex::default(),
        }
    }

    fn decide(&self, steps: &CounterSteps) -> CountVerdict {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        decide(steps, (self.clock)(), &mut counters)
    }
}

impl Counters for MemoryCounters {
    fn ask(&self, steps: CounterSteps) -> BoxFuture<'_, Result<CountVerdict, StoreError>> {
        Box::pin(std::future::ready(Ok(self.decide(&steps))))
    }

    fn tell(&self, steps: CounterSteps) {
        let _ = self.decide(&steps);
    }
}
