//! All pools of a crib: shared by key, looked after while they live, and closed together.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use toolcrib_core::store::Logs;
use toolcrib_core::{Events, Hidden};
use toolcrib_sandbox::{Environment, Launcher};

use super::budget::{Places, WorkerPlace, end_oldest};
use super::process::Worker;
use super::{Fault, Limits, Pool, Recipe};

/// How often pools are looked after, at most.
const TICK: Duration = Duration::from_secs(1);

/// What makes two pools the same: the content they run, and how it is run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(pub Arc<str>);

/// What every worker stands on.
pub struct WorkerContext {
    pub launcher: Launcher,
    pub environment: Environment,
    pub logs: Arc<dyn Logs>,
    pub events: Events,
    pub limits: Limits,
    pub(super) places: Places,
    pub(super) pools: Pools,
    /// Processes that are not gone yet, whichever pool they are or were of.
    running: watch::Sender<usize>,
    /// The crib is about to end, and lets workers end in their own way.
    closing: AtomicBool,
}

/// A process counts, and has its place, as long as somebody holds this.
pub struct Running {
    ground: Arc<WorkerContext>,
    _place: WorkerPlace,
}

impl WorkerContext {
    /// Waits for a place for one process more.
    pub(super) async fn room(self: &Arc<WorkerContext>) -> Result<WorkerPlace, Fault> {
        self.places.take(&self.pools).await.ok_or(Fault::Closing)
    }

    pub(super) fn run(self: &Arc<WorkerContext>, place: WorkerPlace) -> Running {
        self.running.send_modify(|count| *count += 1);
        Running {
            ground: self.clone(),
            _place: place,
        }
    }

    /// A worker became idle: where somebody waits for a place, the one that was idle for longest makes room.
    pub(super) fn became_idle(&self) {
        if self.places.are_wanted() {
            end_oldest(&self.pools);
        }
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ground.running.send_modify(|count| *count -= 1);
    }
}

/// All pools of a crib.
pub struct Workers {
    ground: Arc<WorkerContext>,
}

/// The pools there are. Whoever holds one keeps it.
#[derive(Clone, Default)]
pub(super) struct Pools(Arc<Mutex<KnownPools>>);

#[derive(Default)]
struct KnownPools {
    by_key: HashMap<Key, Weak<Pool>>,
    closed: bool,
    /// Is somebody looking after them?
    attended: bool,
}

impl Pools {
    fn known(&self) -> MutexGuard<'_, KnownPools> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn living(&self) -> Vec<Arc<Pool>> {
        let known = self.known();
        known.by_key.values().filter_map(Weak::upgrade).collect()
    }
}

impl Workers {
    pub fn new(
        launcher: Launcher,
        environment: Environment,
        logs: Arc<dyn Logs>,
        events: Events,
        limits: Limits,
    ) -> Workers {
        let ground = WorkerContext {
            launcher,
            environment,
            logs,
            events,
            limits,
            places: Places::new(limits.budget),
            pools: Pools::default(),
            running: watch::channel(0).0,
            closing: AtomicBool::new(false),
        };
        Workers {
            ground: Arc::new(ground),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.ground.limits
    }

    /// The pool of this key: the one there is, or a new one. It lives as long as somebody holds it.
    pub fn pool(&self, key: Key, recipe: Recipe) -> Arc<Pool> {
        let mut pools = self.ground.pools.known();
        if let Some(pool) = pools.by_key.get(&key).and_then(Weak::upgrade) {
            return pool;
        }
        pools.by_key.retain(|_, pool| pool.strong_count() > 0);
        let pool = Arc::new(Pool::new(recipe, self.ground.clone(), pools.closed));
        pools.by_key.insert(key, Arc::downgrade(&pool));
        pool
    }

    /// Starts one process outside all pools, hears what it says of itself, and ends it. Nobody is told how it stands.
    pub(crate) async fn try_out(&self, recipe: &Recipe) -> Result<Value, Fault> {
        let hidden = Hidden::new(recipe.mask.clone());
        let worker = Worker::start(&recipe.name, recipe, &hidden, &self.ground).await?;
        let hello = worker.hello().map(|hello| hello.value.clone());
        worker.end();
        let limit = self.ground.limits.end_grace + Duration::from_secs(1);
        let _ = tokio::time::timeout(limit, worker.ended()).await;
        hello.ok_or(Fault::Closing)
    }

    /// Looks after all pools until the crib ends: idle workers are stopped, running ones asked for their health.
    pub fn attend(&self) {
        if std::mem::replace(&mut self.ground.pools.known().attended, true) {
            return;
        }
        toolcrib_sandbox::sweep_leftovers(&self.ground.environment);
        let limits = self.ground.limits;
        let every = TICK.min(limits.idle / 2).min(limits.health_every / 2);
        let ground = Arc::downgrade(&self.ground);
        tokio::spawn(async move {
            let mut looked = Instant::now();
            let mut tick = tokio::time::interval(every.max(Duration::from_millis(10)));
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                let Some(ground) = ground.upgrade() else {
                    return;
                };
                for pool in ground.pools.living() {
                    pool.attend();
                }
                if looked.elapsed() >= TICK {
                    ground.places.look(&ground.pools).await;
                    looked = Instant::now();
                }
            }
        });
    }

    /// The crib is about to end: a worker whose call is given up from now on is asked to end before it is killed.
    pub fn closing(&self) {
        self.ground.closing.store(true, Ordering::Relaxed);
    }

    /// Ends everything: no new calls, `grace` for those in flight, then the processes are asked to end and killed.
    pub async fn shutdown(&self, grace: Duration) {
        self.closing();
        self.ground.pools.known().closed = true;
        let pools = self.ground.pools.living();
        let closing = pools.iter().map(|pool| pool.close(grace));
        futures_util::future::join_all(closing).await;
        // Also those that had left their pool before.
        let limit = self.ground.limits.end_grace + Duration::from_secs(1);
        let mut running = self.ground.running.subscribe();
        let _ = tokio::time::timeout(limit, running.wait_for(|count| *count == 0)).await;
    }
}
