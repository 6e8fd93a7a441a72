//! How many workers all tools together may have, and how much memory: whoever was not used for longest goes first.
//!
//! A start takes a place, which is free again when the process is gone. Where all are taken, the idle worker that was not
//! used for longest is ended; where none is idle, the start waits. Memory is looked at once a second: while there is too
//! much of it in use, idle workers go in the same order, and while it is scarce they go sooner than otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::Pool;
use super::workers::Pools;

/// How much sooner idle workers go while memory is scarce, and how soon at least.
const SOONER: u32 = 10;
const SOONEST: Duration = Duration::from_secs(5);

/// What all workers together may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerBudget {
    pub workers: usize,
    /// In bytes; half of what the machine has where nobody said.
    pub memory: Option<u64>,
}

impl Default for WorkerBudget {
    fn default() -> WorkerBudget {
        WorkerBudget {
            workers: 64,
            memory: None,
        }
    }
}

/// The places there are, and who waits for one.
pub(super) struct Places {
    workers: usize,
    memory: u64,
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
    scarce: AtomicBool,
}

/// A worker's place: it is free again when this is dropped.
pub(super) type WorkerPlace = OwnedSemaphorePermit;

/// Counts who waits, however that ends.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Waits<'a> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Places {
    pub(super) fn new(budget: WorkerBudget) -> Places {
        let workers = budget.workers.max(1);
        Places {
            workers,
            memory: budget.memory.or_else(half_of_all).unwrap_or(u64::MAX),
            free: Arc::new(Semaphore::new(workers)),
            waiting: AtomicUsize::new(0),
            scarce: AtomicBool::new(false),
        }
    }

    /// Takes a place for a new worker. None where places are no longer given out.
    pub(super) async fn take(&self, pools: &Pools) -> Option<WorkerPlace> {
        if let Ok(place) = self.free.clone().try_acquire_owned() {
            return Some(place);
        }
        let _waits = Waits::new(&self.waiting);
        end_oldest(pools);
        self.free.clone().acquire_owned().await.ok()
    }

    /// Does anybody wait for a place? Then a worker that becomes idle makes room.
    pub(super) fn are_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// The number of places, where all are taken.
    pub(super) fn all_taken(&self) -> Option<usize> {
        (self.free.available_permits() == 0).then_some(self.workers)
    }

    /// How long a worker may be idle now.
    pub(super) fn idle(&self, usual: Duration) -> Duration {
        match self.scarce.load(Ordering::Relaxed) {
            true => (usual / SOONER).max(SOONEST).min(usual),
            false => usual,
        }
    }

    /// Looks at what the workers use, and ends those that were idle for longest where it is too much.
    pub(super) async fn look(&self, pools: &Pools) {
        let mut idle = Vec::new();
        let mut processes = Vec::new();
        for pool in pools.living() {
            for (since, process) in pool.workers() {
                processes.push(process);
                idle.extend(since.map(|since| (since, process, pool.clone())));
            }
        }
        if processes.is_empty() {
            self.scarce.store(false, Ordering::Relaxed);
            return;
        }
        let looked = tokio::task::spawn_blocking(move || {
            let used = processes
                .iter()
                .map(|one| toolcrib_sandbox::memory_of(*one));
            processes.iter().copied().zip(used).collect::<Vec<_>>()
        });
        let Ok(used) = looked.await else { return };
        let mut all: u64 = used.iter().map(|(_, bytes)| bytes).sum();
        let scarce = all > self.memory / 4 * 3;
        self.scarce.store(scarce, Ordering::Relaxed);
        idle.sort_by_key(|(since, ..)| *since);
        for (_, process, pool) in idle {
            if all <= self.memory {
                return;
            }
            if pool.end_idle(process) {
                let own = used.iter().find(|(one, _)| *one == process);
                all = all.saturating_sub(own.map_or(0, |(_, bytes)| *bytes));
            }
        }
    }
}

/// Half of the machine's memory.
fn half_of_all() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = all
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024 / 2)
}

/// Ends the worker that was not used for longest, of whatever pool. Gives whether one was idle.
pub(super) fn end_oldest(pools: &Pools) -> bool {
    let mut oldest: Option<(Instant, u32, Arc<Pool>)> = None;
    for pool in pools.living() {
        for (since, process) in pool.workers() {
            if let Some(since) = since
                && oldest.as_ref().is_none_or(|(before, ..)| since < *before)
            {
                oldest = Some((since, process, pool.clone()));
            }
        }
    }
    oldest.is_some_and(|(_, process, pool)| pool.end_idle(process))
}
