//! The façade: all that any surface needs is here — an agent's view, which lists and calls, and changes.

use std::sync::{Arc, Weak};

use tokio::sync::{broadcast, watch};

use crate::middleware::Shared;
use crate::registry::{Clock, Registry};
use crate::store::CallBook;
use crate::{Caller, Change, Context, Event, Events, Object, Outputs, Profiles, Update, View};

/// What a surface asks for.
#[derive(Debug, Clone)]
pub struct Request {
    pub tool: String,
    pub arguments: Object,
    pub caller: Caller,
    pub context: Context,
}

pub struct Crib {
    registry: Registry,
    shared: Arc<Shared>,
}

impl Crib {
    /// A crib that writes no call down.
    pub fn new(outputs: Arc<dyn Outputs>, clock: Clock, profiles: Profiles) -> Crib {
        Crib::with_book(outputs, clock, profiles, None)
    }

    /// A crib whose calls are written into this book.
    pub fn with_book(
        outputs: Arc<dyn Outputs>,
        clock: Clock,
        profiles: Profiles,
        book: Option<Arc<dyn CallBook>>,
    ) -> Crib {
        Crib {
            registry: Registry::new(clock, profiles),
            shared: Arc::new(Shared::new(outputs, clock, book)),
        }
    }

    /// What this agent sees now, and the only way to list or to call. An agent without a profile of its name has the
    /// default one.
    pub fn view(&self, agent: &str) -> Arc<View> {
        self.registry.snapshot().view(agent, &self.shared)
    }

    /// Everything there is, whatever the default agent sees: for those who keep the crib, and not for agents.
    pub fn owners_view(&self) -> Arc<View> {
        self.registry.snapshot().owners_view(&self.shared)
    }

    /// What agents see and how their calls are governed, from the next call on. Nothing that is counted begins anew.
    pub fn set_profiles(&self, profiles: Profiles) {
        self.registry.set_profiles(profiles);
    }

    /// Tells when the list of this agent has become another one.
    pub fn follow(self: &Arc<Self>, agent: &str) -> ListChanges {
        let swaps = self.registry.swaps();
        ListChanges {
            seen: self.view(agent).list_hash(),
            agent: agent.into(),
            crib: Arc::downgrade(self),
            swaps,
        }
    }

    /// Listens to what happens from now on.
    pub fn changes(&self) -> broadcast::Receiver<Event> {
        self.shared.events.listen()
    }

    /// Where the parts of the crib tell what happens.
    pub fn events(&self) -> &Events {
        &self.shared.events
    }

    /// Kept outputs, for the surfaces that hand them out.
    pub fn outputs(&self) -> &Arc<dyn Outputs> {
        &self.shared.outputs
    }

    /// Where sources bring what they found: the only way into the catalog.
    pub fn apply(&self, updates: Vec<Update>) -> Change {
        let change = self.registry.apply(updates);
        if change.tools_changed() {
            let Change {
                version,
                added,
                changed,
                removed,
                ..
            } = &change;
            let counts = (added.len(), changed.len(), removed.len());
            tracing::info!(
                version,
                added = counts.0,
                changed = counts.1,
                removed = counts.2,
                "tools_changed"
            );
            self.shared
                .events
                .tell(Event::ToolsChanged(Arc::new(change.clone())));
        }
        for problem in &change.new_problems {
            let file = problem.file.as_ref().map(|file| file.display().to_string());
            tracing::warn!(
                file,
                problem = problem.message,
                hint = %problem.hint,
                "tool_error"
            );
            self.shared.events.tell(Event::ToolError(problem.clone()));
        }
        change
    }
}

/// Changes of the list that one agent reads, however far behind one is.
pub struct ListChanges {
    /// Whoever listens keeps no crib alive.
    crib: Weak<Crib>,
    agent: Arc<str>,
    seen: u64,
    swaps: watch::Receiver<()>,
}

impl ListChanges {
    /// Ends when the list differs from the one that was seen last. May be dropped at any point and called again.
    pub async fn next(&mut self) {
        loop {
            let swapped = self.swaps.changed().await;
            let (Ok(()), Some(crib)) = (swapped, self.crib.upgrade()) else {
                return std::future::pending().await;
            };
            let now = crib.view(&self.agent).list_hash();
            if now != self.seen {
                self.seen = now;
                return;
            }
        }
    }
}

#[cfg(test)]
#[path = "crib_tests.rs"]
mod tests;
