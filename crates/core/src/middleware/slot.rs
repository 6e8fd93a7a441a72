//! Lets only so many calls of a token and of an agent run at a time. A call takes its place after a person said yes to it,
//! and holds it by a lease that it renews, so that the places of a process that died come free.

use std::sync::Arc;
use std::time::Duration;

use super::keys;
use super::refusal::{refused, undecided};
use super::{Middleware, Next, When};
use crate::call::Deed;
use crate::counter::{CounterStep, CounterSteps, LEASE_MS};
use crate::profile::ChainSettings;
use crate::store::Counters;
use crate::{BoxFuture, Call, CallResult, Limits};

/// Twice before a lease ends, in case that the store is slow once.
const RENEW_EVERY: Duration = Duration::from_millis(LEASE_MS / 3);

pub(super) struct Slot {
    limits: Limits,
}

impl When for Slot {
    fn of(settings: &ChainSettings) -> Option<Slot> {
        let limits = &settings.limits;
        let mut all = limits.tokens.values().chain(limits.agents.values());
        all.any(|one| one.concurrency.is_some()).then(|| Slot {
            limits: limits.clone(),
        })
    }
}

impl Middleware for Slot {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let counters = &next.shared().counters;
        let id = call.context.record_id.as_ref();
        let id = id.unwrap_or(&call.context.call_id).clone();
        let places = keys::of(&self.limits, &call.caller).filter_map(|(key, limits)| {
            let (id, most) = (id.clone(), limits.concurrency?);
            Some((key, CounterStep::Lease { id, most }))
        });
        let places: CounterSteps = places.collect();
        if places.is_empty() {
            return next.run(call);
        }
        Box::pin(async move {
            let held = Held {
                counters: &**counters,
                keys: places.iter().map(|(key, _)| key.clone()).collect(),
                id,
            };
            match counters.ask(places).await {
                Ok(Ok(_)) => {}
                Ok(Err((place, refusal))) => {
                    let key = held.keys.get(place).cloned().unwrap_or_default();
                    call.context.mark(keys::LIMITS, Deed::Refused);
                    // None is held, and what the same call held before is not to be released.
                    held.forget();
                    return Err(refused(&refusal, &key, (next.shared().clock)()));
                }
                Err(error) => {
                    call.context.mark(keys::LIMITS, Deed::Refused);
                    return Err(undecided(&error));
                }
            }
            let mut running = next.run(call);
            loop {
                tokio::select! {
                    result = &mut running => return result,
                    () = tokio::time::sleep(RENEW_EVERY) => held.renew(),
                }
            }
        })
    }
}

/// Places that are held until this is dropped.
struct Held<'a> {
    counters: &'a dyn Counters,
    keys: Vec<Arc<str>>,
    id: Arc<str>,
}

impl Held<'_> {
    fn renew(&self) {
        self.tell(|id| CounterStep::Renew { id });
    }

    fn forget(mut self) {
        self.keys.clear();
    }

    fn tell(&self, step: fn(Arc<str>) -> CounterStep) {
        let steps = self
            .keys
            .iter()
            .map(|key| (key.clone(), step(self.id.clone())));
        let steps: CounterSteps = steps.collect();
        if !steps.is_empty() {
            self.counters.tell(steps);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.tell(|id| CounterStep::Release { id });
    }
}
