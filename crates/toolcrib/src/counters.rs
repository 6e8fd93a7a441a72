//! What calls are counted in, as the crib uses it: the store's counters while there is a store; without one, no limit can
//! be decided.

use std::sync::Arc;

use toolcrib_core::BoxFuture;
use toolcrib_core::counter::{CountVerdict, CounterSteps};
use toolcrib_core::store::{Counters, StoreError};

use crate::store_handle::StoreHandle;

/// The counters of the store as it is open now.
pub struct StoreCounters {
    store: Arc<StoreHandle>,
}

impl StoreCounters {
    pub fn new(store: Arc<StoreHandle>) -> StoreCounters {
        StoreCounters { store }
    }
}

impl Counters for StoreCounters {
    fn ask(&self, steps: CounterSteps) -> BoxFuture<'_, Result<CountVerdict, StoreError>> {
        Box::pin(async move { self.store.ready()?.count(steps).await })
    }

    fn tell(&self, steps: CounterSteps) {
        match self.store.held() {
            Ok(store) => store.count_later(steps),
            Err(error) => tracing::warn!(%error, "a count can't be given back"),
        }
    }
}
