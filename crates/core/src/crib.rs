//! The façade: all that any surface needs is here — an agent's view, which lists and calls, and changes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{broadcast, watch};

use crate::middleware::{Books, Shared, record_given_up};
use crate::registry::{Clock, Registry};
use crate::store::CallBook;
use crate::{
    CallError, Caller, Change, Context, Event, Events, Object, Outputs, Pending, Profiles, Tool,
    Update, View,
};

/// What a surface asks for.
#[derive(Debug, Clone)]
pub struct Request {
    pub tool: String,
    pub arguments: Object,
    pub caller: Caller,
    pub context: Context,
}

pub struct Crib {
    registry: Arc<Registry>,
    shared: Arc<Shared>,
    loading: watch::Sender<Loading>,
    /// The same, for those who only look: every call does.
    is_loaded: AtomicBool,
}

/// How far the catalog is: is all in it that its sources have?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loading {
    /// Nobody has looked yet.
    Opening,
    /// What is known at once is there; of some tools more is on its way, such as what their programs say of themselves.
    Describing,
    Done,
}

impl Crib {
    /// A crib that writes no call down.
    pub fn new(outputs: Arc<dyn Outputs>, clock: Clock, profiles: Profiles) -> Crib {
        Crib::with_books(outputs, clock, profiles, Books::default())
    }

    /// A crib whose calls are written into this book.
    pub fn with_book(
        outputs: Arc<dyn Outputs>,
        clock: Clock,
        profiles: Profiles,
        calls: Option<Arc<dyn CallBook>>,
    ) -> Crib {
        let books = Books {
            calls,
            ..Books::default()
        };
        Crib::with_books(outputs, clock, profiles, books)
    }

    /// A crib that writes its calls down, and asks people about them, in these books.
    pub fn with_books(
        outputs: Arc<dyn Outputs>,
        clock: Clock,
        profiles: Profiles,
        books: Books,
    ) -> Crib {
        let registry = Arc::new(Registry::new(clock, profiles));
        let shared = Arc::new(Shared::new(outputs, clock, books));
        let (tools, links) = (Arc::downgrade(&registry), Arc::downgrade(&shared));
        shared.find_with(Box::new(move |agent, name| {
            let view = tools.upgrade()?.snapshot().view(agent, &links.upgrade()?);
            view.get(name).cloned()
        }));
        Crib {
            registry,
            shared,
            loading: watch::Sender::new(Loading::Done),
            is_loaded: AtomicBool::new(true),
        }
    }

    /// Who brings tools says how far that is.
    pub fn set_loading(&self, to: Loading) {
        self.is_loaded.store(to == Loading::Done, Ordering::Release);
        if self.loading.send_replace(to) != to {
            self.registry.wake();
        }
    }

    /// How far the catalog is.
    pub fn loading(&self) -> Loading {
        match self.is_loaded.load(Ordering::Acquire) {
            true => Loading::Done,
            false => *self.loading.borrow(),
        }
    }

    /// Waits until it is at least so far.
    pub async fn loaded(&self, to: Loading) {
        // The sender lives in `self`, so waiting can't fail.
        let _ = self.loading.subscribe().wait_for(|now| *now >= to).await;
    }

    /// Waits as long as it is not known whether this agent has a tool of this name, or what that is.
    pub async fn described(&self, agent: &str, tool: &str) {
        let mut swaps = self.registry.swaps();
        let known = |tool: &Arc<Tool>| tool.pending != Some(Pending::Description);
        while self.loading() != Loading::Done && !self.view(agent).get(tool).is_some_and(known) {
            let _ = swaps.changed().await;
        }
    }

    /// The same for who sees everything.
    pub async fn described_to_owner(&self, tool: &str) {
        let mut swaps = self.registry.swaps();
        let known = |tool: &Arc<Tool>| tool.pending != Some(Pending::Description);
        while self.loading() != Loading::Done && !self.owners_view().get(tool).is_some_and(known) {
            let _ = swaps.changed().await;
        }
    }

    /// Waits until this tool can be called.
    pub async fn callable(&self, agent: &str, tool: &str) {
        let mut swaps = self.registry.swaps();
        let ready = |view: &View| view.get(tool).is_some_and(|tool| tool.pending.is_none());
        while !ready(&self.view(agent)) {
            let _ = swaps.changed().await;
        }
    }

    /// What this agent sees now, and the only way to list or to call. An agent without a profile of its name, or with one
    /// that only sessions have, sees nothing.
    pub fn view(&self, agent: &str) -> Arc<View> {
        self.registry.snapshot().view(agent, &self.shared)
    }

    /// Says why no caller can be this agent, if so: there is none of this name, or only sessions use it.
    pub fn admits(&self, agent: &str) -> Result<(), CallError> {
        self.registry.snapshot().admits(agent)
    }

    /// What each profile gives, the default one first: for those who look at profiles, and not for callers.
    pub fn views(&self) -> Vec<Arc<View>> {
        let snapshot = self.registry.snapshot();
        let profiles = snapshot.profiles().all().iter();
        let views = profiles.map(|profile| snapshot.view_named(profile.name(), &self.shared));
        views.flatten().collect()
    }

    /// Writes down a call that its caller gave up before any view was asked: while it waited for its tool to be known.
    pub fn given_up(&self, request: &Request) {
        let Request {
            tool,
            caller,
            context,
            ..
        } = request;
        record_given_up(&self.shared, tool, caller, context);
    }

    /// Everything there is, whatever the default agent sees: for those who keep the crib, and not for agents.
    pub fn owners_view(&self) -> Arc<View> {
        self.registry.snapshot().owners_view(&self.shared)
    }

    /// What agents see and how their calls are governed, from the next call on. Nothing that is counted begins anew.
    pub fn set_profiles(&self, profiles: Profiles) {
        self.registry.set_profiles(profiles);
    }

    /// Tells when the list of this agent has become another one than it is now.
    pub fn follow(self: &Arc<Self>, agent: &str) -> ListChanges {
        let seen = Seen::default();
        seen.note(&self.view(agent));
        self.follow_from(agent, seen)
    }

    /// Tells when the list of this agent has become another one than was seen. To who has seen none, the first whole one
    /// is no change.
    pub fn follow_from(self: &Arc<Self>, agent: &str, seen: Seen) -> ListChanges {
        ListChanges {
            seen,
            agent: agent.into(),
            crib: Arc::downgrade(self),
            swaps: self.registry.swaps(),
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

/// The list that somebody has seen last, if any.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<AtomicU64>);

impl Seen {
    /// Somebody sees this list now.
    pub fn note(&self, view: &View) {
        self.0.store(hash_of(view), Ordering::Release);
    }
}

/// Nothing was seen.
const NOTHING: u64 = 0;

fn hash_of(view: &View) -> u64 {
    view.list_hash().max(NOTHING + 1)
}

/// Changes of the list that one agent reads, however far behind one is.
pub struct ListChanges {
    /// Whoever listens keeps no crib alive.
    crib: Weak<Crib>,
    agent: Arc<str>,
    seen: Seen,
    swaps: watch::Receiver<()>,
}

/// How long a change is kept back while more are on their way: many tools that are described one after the other are not as
/// many changes.
const MORE_TO_COME: Duration = Duration::from_secs(1);

impl ListChanges {
    /// Ends when the list differs from the one that was seen last. May be dropped at any point and called again.
    pub async fn next(&mut self) {
        loop {
            let Some(crib) = self.crib.upgrade() else {
                return std::future::pending().await;
            };
            self.swaps.borrow_and_update();
            let seen = &self.seen.0;
            match seen.load(Ordering::Acquire) {
                NOTHING if crib.loading() == Loading::Done => {
                    let now = hash_of(&crib.view(&self.agent));
                    // Unless somebody sees one at this very moment.
                    let order = Ordering::AcqRel;
                    let _ = seen.compare_exchange(NOTHING, now, order, Ordering::Acquire);
                    continue;
                }
                NOTHING => {}
                last if last == hash_of(&crib.view(&self.agent)) => {}
                _ => {
                    if crib.loading() != Loading::Done {
                        let whole = crib.loaded(Loading::Done);
                        let _ = tokio::time::timeout(MORE_TO_COME, whole).await;
                    }
                    // It may be as it was by now.
                    let now = hash_of(&crib.view(&self.agent));
                    if seen.swap(now, Ordering::AcqRel) != now {
                        return;
                    }
                    continue;
                }
            }
            drop(crib);
            if self.swaps.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }
}

#[cfg(test)]
#[path = "crib_tests.rs"]
mod tests;
