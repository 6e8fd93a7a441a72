//! A pool: the workers of one program, handed out one call at a time.
//!
//! Callers wait in a bounded queue, first come, first served. A worker that dies under a call, breaks the protocol, or
//! is given up and does not stop, leaves the pool at once and its seat is free for a new one. Failures in a row are
//! counted: past the tool's `maxRetries` its status is `error`, and starts are spaced out. One answer makes up for all.

mod health;
mod outlook;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use toolcrib_core::{Context, Event, Health, Hidden, Json, Standing, Status};

use super::fault::Fault;
use super::lease::Lease;
use super::message::RpcError;
use super::process::Worker;
use super::workers::WorkerContext;
use super::{Keep, Limits, Recipe};

pub struct Pool {
    recipe: Recipe,
    /// All that its workers were handed.
    hidden: Hidden,
    /// The tool's name, once it is known.
    name: OnceLock<String>,
    ground: Arc<WorkerContext>,
    state: Mutex<State>,
    /// Rings when a member leaves or a call ends.
    moved: Notify,
    /// Becomes true when not even a start under way is waited for.
    over: watch::Sender<bool>,
}

struct State {
    members: Vec<Member>,
    starting: usize,
    queue: VecDeque<oneshot::Sender<Lease>>,
    closed: bool,
    failures: Failures,
    standing: Standing,
    next_check: Instant,
}

/// A worker of the pool.
struct Member {
    worker: Arc<Worker>,
    /// Calls it works on now.
    busy: usize,
    calls: u64,
    idle_since: Instant,
    /// Takes no new calls and ends with the last it has.
    leaving: bool,
}

#[derive(Default)]
struct Failures {
    in_a_row: u32,
    last: Option<(Instant, String)>,
}

impl Pool {
    pub(super) fn new(recipe: Recipe, ground: Arc<WorkerContext>, closed: bool) -> Pool {
        let state = State {
            members: Vec::new(),
            starting: 0,
            queue: VecDeque::new(),
            closed,
            failures: Failures::default(),
            standing: Standing::default(),
            next_check: Instant::now() + ground.limits.health_every,
        };
        Pool {
            hidden: Hidden::new(recipe.mask.clone()),
            recipe,
            name: OnceLock::new(),
            ground,
            state: Mutex::new(state),
            moved: Notify::new(),
            over: watch::Sender::new(false),
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.ground.limits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the tool is called, in events and messages.
    fn name(&self) -> &str {
        self.name.get().unwrap_or(&self.recipe.name)
    }

    /// The tool's name became known.
    pub fn called(&self, name: &str) {
        let _ = self.name.set(name.to_owned());
    }

    fn size(&self) -> usize {
        self.recipe.size.clamp(1, self.limits().pool_size.max(1))
    }

    /// Sends one request to a worker of this pool and waits for the answer.
    pub async fn request(
        self: &Arc<Pool>,
        method: &str,
        params: impl Serialize,
        context: Option<Context>,
    ) -> Result<Result<Json, RpcError>, Fault> {
        let lease = self.worker().await?;
        let Some(worker) = lease.worker() else {
            return Err(Fault::Closing);
        };
        let answer = worker.request(method, params, context).await;
        match &answer {
            Ok(_) => self.succeeded(),
            Err(fault) if fault.is_failure() && worker.counts() => self.failed(fault),
            Err(_) => {}
        }
        answer
    }

    /// What a worker of this pool says of itself.
    pub async fn hello(self: &Arc<Pool>) -> Result<Value, Fault> {
        let lease = self.worker().await?;
        let hello = lease.worker().and_then(|worker| worker.hello());
        hello.map(|hello| hello.value.clone()).ok_or(Fault::Closing)
    }

    /// A worker with a free lane, started if need be.
    async fn worker(self: &Arc<Pool>) -> Result<Lease, Fault> {
        let lease = self.lease().await?;
        if lease.worker().is_some() {
            return Ok(lease);
        }
        self.rested()?;
        // In a task of its own: a start goes on when its caller goes away, and the next caller finds the worker warm.
        let pool = self.clone();
        match tokio::spawn(pool.start(lease)).await {
            Ok(lease) => lease,
            Err(error) => Err(Fault::Greeting(format!("was never read: {error}"))),
        }
    }

    async fn lease(self: &Arc<Pool>) -> Result<Lease, Fault> {
        let waiting = {
            let mut state = self.state();
            if state.closed {
                return Err(Fault::Closing);
            }
            if state.queue.is_empty()
                && let Some(lease) = self.seat(&mut state)
            {
                return Ok(lease);
            }
            state.queue.retain(|one| !one.is_closed());
            if state.queue.len() >= self.limits().queue {
                return Err(Fault::Queue(state.queue.len()));
            }
            let (ready, waiting) = oneshot::channel();
            state.queue.push_back(ready);
            waiting
        };
        waiting.await.map_err(|_| Fault::Closing)
    }

    /// A free lane of a living worker, else the right to start one.
    fn seat(self: &Arc<Pool>, state: &mut State) -> Option<Lease> {
        state
            .members
            .retain(|member| member.busy > 0 || member.worker.is_alive());
        let free = state.members.iter_mut().filter(|member| {
            !member.leaving && member.worker.is_alive() && member.busy < member.worker.concurrency()
        });
        if let Some(member) = free.min_by_key(|member| member.busy) {
            member.busy += 1;
            member.calls += 1;
            return Some(Lease::lane(self.clone(), member.worker.clone()));
        }
        let staying = state
            .members
            .iter()
            .filter(|member| !member.leaving && member.worker.is_alive());
        if staying.count() + state.starting < self.size() {
            state.starting += 1;
            return Some(Lease::start(self.clone()));
        }
        None
    }

    /// Serves the queue as far as there are seats. What could not be handed over must be dropped without the lock.
    fn hand_out(self: &Arc<Pool>, state: &mut State) -> Vec<Lease> {
        let mut refused = Vec::new();
        while let Some(first) = state.queue.pop_front() {
            if first.is_closed() {
                continue;
            }
            let Some(lease) = self.seat(state) else {
                state.queue.push_front(first);
                break;
            };
            if let Err(lease) = first.send(lease) {
                refused.push(lease);
            }
        }
        refused
    }

    async fn start(self: Arc<Pool>, mut lease: Lease) -> Result<Lease, Fault> {
        let mut over = self.over.subscribe();
        let started = tokio::select! {
            started = Worker::start(self.name(), &self.recipe, &self.hidden, &self.ground) => started,
            _ = over.wait_for(|over| *over) => return Err(Fault::Closing),
        };
        let worker = match started {
            Ok(worker) => Arc::new(worker),
            Err(fault) => {
                if fault.is_failure() {
                    self.state().standing.failed_starts += 1;
                    self.failed(&fault);
                }
                return Err(fault);
            }
        };
        let refused = {
            let mut state = self.state();
            state.starting -= 1;
            state.standing.failed_starts = 0;
            let leaving = state.closed;
            state.members.push(Member {
                worker: worker.clone(),
                busy: 1,
                calls: 1,
                idle_since: Instant::now(),
                leaving,
            });
            lease.started(worker);
            self.hand_out(&mut state)
        };
        drop(refused);
        Ok(lease)
    }

    pub(super) fn not_started(self: &Arc<Pool>) {
        let refused = {
            let mut state = self.state();
            state.starting -= 1;
            self.hand_out(&mut state)
        };
        self.moved.notify_waiters();
        drop(refused);
    }

    /// A call is over and its worker is well.
    pub(super) fn give_back(self: &Arc<Pool>, worker: &Arc<Worker>) {
        self.free(worker, |member, limits, keep| {
            if keep == Keep::Never || member.calls >= limits.max_calls {
                member.leaving = true;
            }
        });
    }

    /// A call was given up and its worker still works on it: it must go, at once or after the calls it has beside.
    pub(super) fn discard(self: &Arc<Pool>, worker: &Arc<Worker>) {
        let in_a_hurry = !self.ground.is_closing();
        self.free(worker, |member, _, _| {
            member.leaving = true;
            if member.busy == 0 && in_a_hurry {
                member.worker.kill();
            }
        });
    }

    fn free(
        self: &Arc<Pool>,
        worker: &Arc<Worker>,
        decide: impl FnOnce(&mut Member, &Limits, Keep),
    ) {
        let refused = {
            let mut state = self.state();
            let at = state
                .members
                .iter()
                .position(|member| Arc::ptr_eq(&member.worker, worker));
            if let Some(at) = at {
                let member = &mut state.members[at];
                member.busy -= 1;
                member.idle_since = Instant::now();
                decide(member, self.limits(), self.recipe.keep);
                if member.leaving && member.busy == 0 {
                    state.members.swap_remove(at).worker.end();
                }
            }
            self.hand_out(&mut state)
        };
        self.moved.notify_waiters();
        drop(refused);
    }

    /// After too many failures in a row, starts are spaced out.
    fn rested(&self) -> Result<(), Fault> {
        let state = self.state();
        if state.closed {
            return Err(Fault::Closing);
        }
        let retries = self.recipe.retries;
        // One start more than there may be repetitions is always free.
        let beyond = state.failures.in_a_row.checked_sub(retries.max + 2);
        let (Some(beyond), Some((last, told))) = (beyond, &state.failures.last) else {
            return Ok(());
        };
        let until = *last + retries.delay_before(beyond);
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Err(Fault::Resting(left.as_millis(), told.clone())),
            _ => Ok(()),
        }
    }

    fn failed(&self, fault: &Fault) {
        let told = fault.message();
        self.stand(|state| {
            state.failures.in_a_row += 1;
            state.failures.last = Some((Instant::now(), told.clone()));
            state.standing.failed = state.failures.in_a_row > self.recipe.retries.max;
            state.standing.health = Health::Unhealthy;
            state.standing.message = Some(told);
        });
    }

    fn succeeded(&self) {
        if self.state().failures.in_a_row == 0 {
            return;
        }
        self.stand(|state| {
            state.failures = Failures::default();
            state.standing.failed = false;
            state.standing.health = Health::Healthy;
            state.standing.message = None;
        });
    }

    /// Changes how the pool stands and tells what became different.
    fn stand(&self, change: impl FnOnce(&mut State)) {
        let (before, after) = {
            let mut state = self.state();
            let before = state.standing.clone();
            change(&mut state);
            (before, state.standing.clone())
        };
        let tool = self.name();
        if before.failed != after.failed {
            let status = if after.failed {
                Status::Error
            } else {
                Status::Active
            };
            tracing::warn!(
                tool,
                status = status.as_str(),
                reason = after.message,
                "status_changed"
            );
            self.ground.events.tell(Event::StatusChanged {
                tool: tool.to_owned(),
                status,
                message: after.message.clone(),
            });
        }
        if before.health != after.health {
            tracing::info!(tool, health = after.health.as_str(), "health_changed");
            self.ground.events.tell(Event::HealthChanged {
                tool: tool.to_owned(),
                health: after.health,
                message: after.message,
            });
        }
    }

    pub fn standing(&self) -> Standing {
        self.state().standing.clone()
    }

    /// Takes no new calls, waits `grace` for those in flight, then ends all workers.
    pub(super) async fn close(self: &Arc<Pool>, grace: Duration) {
        let deadline = Instant::now() + grace;
        {
            let mut state = self.state();
            state.closed = true;
            state.queue.clear();
        }
        loop {
            let moved = self.moved.notified();
            let busy = {
                let state = self.state();
                state.starting > 0 || state.members.iter().any(|member| member.busy > 0)
            };
            if !busy || tokio::time::timeout_at(deadline, moved).await.is_err() {
                break;
            }
        }
        self.over.send_replace(true);
        let members = std::mem::take(&mut self.state().members);
        let end = |Member { worker, .. }: Member| {
            worker.end();
            worker.ended()
        };
        let ended: Vec<_> = members.into_iter().map(end).collect();
        let limit = self.limits().end_grace + Duration::from_secs(1);
        let _ = tokio::time::timeout(limit, futures_util::future::join_all(ended)).await;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Nobody holds the tool any more: the file changed or is gone.
        for member in &self.state().members {
            member.worker.end();
        }
    }
}
