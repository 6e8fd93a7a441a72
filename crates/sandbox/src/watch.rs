//! Keeps the limits that no kernel keeps here: one thread looks at all confined trees, rarely when they do nothing.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::launcher;
use crate::plan::Watch;

mod tree;

pub use tree::memory_of;
use tree::{Tree, look};

/// Between two looks at a tree that works.
const EVERY: Duration = Duration::from_millis(50);
/// Between two looks at a tree that is stopped.
const STOPPED: Duration = Duration::from_millis(20);
/// Between two looks at a tree that has long done nothing.
const IDLE: Duration = Duration::from_millis(400);
/// Processor time that a tree may use at once after it did nothing.
const BURST: Duration = Duration::from_secs(1);

/// In how many looks new processes come before those that are not seen are estimated.
const CHURN: u32 = 3;
/// No estimate is higher.
const CORES: u32 = 16;

/// Which limit a process was killed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    Memory,
    Processes,
}

/// Where it is told, once.
pub(crate) type BreachCell = Arc<OnceLock<Breach>>;

struct Entry {
    launcher: u32,
    /// Tells the launcher from a later process of the same number.
    started: u64,
    /// The crib's end of the launcher's socket, again.
    control: OwnedFd,
    limits: Watch,
    breach_cell: BreachCell,
    state: Mutex<State>,
}

struct State {
    due: Instant,
    seen: Instant,
    pace: Duration,
    /// Processor time that was used, and that may still be used.
    used: Duration,
    left: Duration,
    /// How much more than allowed was used.
    debt: Duration,
    stopped: HashSet<u32>,
    /// The processes of the last look, and in how many looks new ones came.
    known: HashSet<u32>,
    coming: u32,
}

struct Watcher {
    entries: Mutex<Vec<Arc<Entry>>>,
    changed: Condvar,
}

/// Watches a tree while it is kept.
pub(crate) struct Watched(Arc<Entry>);

/// Starts watching the tree below a launcher; nothing where nothing is left to watch.
pub(crate) fn watch(
    launcher: u32,
    control: OwnedFd,
    limits: Watch,
    breach_cell: BreachCell,
) -> Option<Watched> {
    if !limits.is_needed() {
        return None;
    }
    let started = tree::started(launcher)?;
    let now = Instant::now();
    let entry = Arc::new(Entry {
        launcher,
        started,
        control,
        limits,
        breach_cell,
        state: Mutex::new(State {
            due: now + EVERY,
            seen: now,
            pace: EVERY,
            used: Duration::ZERO,
            left: BURST,
            debt: Duration::ZERO,
            stopped: HashSet::new(),
            known: HashSet::new(),
            coming: 0,
        }),
    });
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let thread = std::thread::Builder::new().name("toolcrib-watch".to_owned());
        if let Err(error) = thread.spawn(|| WATCHER.run()) {
            tracing::error!(%error, "limits can't be watched");
        }
    });
    WATCHER.entries().push(entry.clone());
    WATCHER.changed.notify_one();
    Some(Watched(entry))
}

static WATCHER: Watcher = Watcher {
    entries: Mutex::new(Vec::new()),
    changed: Condvar::new(),
};

impl Drop for Watched {
    fn drop(&mut self) {
        WATCHER
            .entries()
            .retain(|entry| !Arc::ptr_eq(entry, &self.0));
    }
}

impl Watcher {
    fn entries(&self) -> MutexGuard<'_, Vec<Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let mut entries = self.entries();
            while entries.is_empty() {
                entries = self
                    .changed
                    .wait(entries)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            let all = entries.clone();
            drop(entries);
            let next = all.iter().map(|entry| entry.attend()).min();
            let pause = next.map_or(EVERY, |next| next.saturating_duration_since(Instant::now()));
            let entries = self.entries();
            // A tree that is new is looked at within the usual time.
            let pause = pause.min(IDLE).max(Duration::from_millis(1));
            drop(self.changed.wait_timeout(entries, pause));
        }
    }
}

impl State {
    /// What processes may have used that came and went unseen. Nobody counts those whose parent ignores them, so where
    /// new ones come all the time, what is at work now stands for all of the time since the last look.
    fn unseen(&mut self, tree: &Tree, passed: Duration) -> Duration {
        let comes = tree.pids.iter().any(|pid| !self.known.contains(pid));
        self.known = tree.pids.iter().copied().collect();
        self.coming = match (comes, self.stopped.is_empty()) {
            (true, _) => (self.coming + 1).min(2 * CHURN),
            (false, true) => self.coming.saturating_sub(1),
            // Who is stopped starts nobody.
            (false, false) => self.coming,
        };
        match self.coming >= CHURN {
            true => passed * tree.running.min(CORES),
            false => Duration::ZERO,
        }
    }
}

impl Entry {
    /// Looks at the tree if it is time, and gives when it is next.
    fn attend(&self) -> Instant {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < state.due {
            return state.due;
        }
        if self.breach_cell.get().is_none() && tree::started(self.launcher) == Some(self.started) {
            let tree = look(self.launcher, self.limits.ours, self.limits.alone);
            self.check(&tree);
            self.pace(&mut state, &tree, now);
        }
        state.due = now + state.pace;
        state.due
    }

    fn check(&self, tree: &Tree) {
        let breach = if self
            .limits
            .processes
            .is_some_and(|most| tree.threads > u64::from(most))
        {
            Breach::Processes
        } else if self
            .limits
            .memory
            .is_some_and(|most| tree.memory > most && tree.proportional() > most)
        {
            Breach::Memory
        } else {
            return;
        };
        // The first reason stays; without a listener the tree is gone already.
        let _ = self.breach_cell.set(breach);
        let _ = launcher::hang_up(self.control.as_fd());
    }

    /// Holds the tree to its share of processor time, and decides when to look again.
    fn pace(&self, state: &mut State, tree: &Tree, now: Instant) {
        let used = tree.used.saturating_sub(state.used);
        let passed = now - state.seen;
        let used = used.max(state.unseen(tree, passed));
        (state.used, state.seen) = (tree.used.max(state.used), now);
        if let Some(percent) = self.limits.cpu_percent {
            let earned = passed * percent / 100;
            let paid = earned.min(state.debt);
            state.debt -= paid;
            state.left = (state.left + (earned - paid)).min(BURST);
            let spent = used.min(state.left);
            state.left -= spent;
            state.debt += used - spent;
            match (state.debt.is_zero(), state.stopped.is_empty()) {
                (false, _) => tree.stop(&mut state.stopped),
                (true, false) => tree.go_on(&mut state.stopped),
                (true, true) => {}
            }
        }
        state.pace = if !state.stopped.is_empty() {
            STOPPED
        } else if used.is_zero() {
            (state.pace * 2).min(IDLE).max(EVERY)
        } else {
            EVERY
        };
    }
}
