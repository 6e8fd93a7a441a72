//! A pool: the workers of one program, handed out one call at a time.
//!
//! Callers wait in a bounded queue, first come, first served. A worker that dies under a call, breaks the protocol, or
//! is given up and does not stop, leaves the pool at once and its seat is free for a new one. Failures in a row are
//! counted for each tool ([`failures`]): past its `maxRetries` its status is `error`, and its starts are spaced out. One
//! answer makes up for all. Until then a tool that has failed has a worker to itself, so that it takes no other's call with it.

mod ending;
mod failures;
mod health;
mod outlook;
mod turns;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;
use toolcrib_core::{Context, Hidden, Json, Standing};

use failures::Failures;
pub use turns::Turn;

use super::fault::Fault;
use super::lease::Lease;
use super::message::RpcError;
use super::process::Worker;
use super::workers::WorkerContext;
use super::{Keep, Limits, Recipe};

/// What is asked of a worker beside calls of its tools.
const NO_TOOL: &str = "";

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
    /// Starts under way: whose worker it will be, where it will be one tool's own.
    starting: Vec<Option<Arc<str>>>,
    queue: VecDeque<Waiting>,
    closed: bool,
    failures: Failures,
    standing: Standing,
    next_check: Instant,
    /// Does somebody look for calls that do not let others have their turn?
    watched: bool,
}

/// A caller that waits for a worker.
struct Waiting {
    /// The tool that it calls.
    tool: Arc<str>,
    ready: oneshot::Sender<Lease>,
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
    /// Calls that were given up and may still end by themselves. Meanwhile it takes no new ones.
    doubts: usize,
    /// The one tool that it works for, because that has failed.
    only: Option<Arc<str>>,
    /// Since when a call has the turn, where it takes turns.
    turn: Option<Instant>,
}

impl Member {
    fn stays(&self) -> bool {
        !self.leaving && self.worker.is_alive()
    }

    fn is_free(&self) -> bool {
        let open = self.stays() && self.doubts == 0 && self.turn.is_none();
        open && self.busy < self.worker.concurrency()
    }

    fn take_turn(&mut self) {
        self.turn = self.worker.takes_turns().then(Instant::now);
    }
}

impl Pool {
    pub(super) fn new(recipe: Recipe, ground: Arc<WorkerContext>, closed: bool) -> Pool {
        let state = State {
            members: Vec::new(),
            starting: Vec::new(),
            queue: VecDeque::new(),
            closed,
            failures: Failures::default(),
            standing: Standing::default(),
            next_check: Instant::now() + ground.limits.health_every,
            watched: false,
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
    pub(crate) fn name(&self) -> &str {
        self.name.get().unwrap_or(&self.recipe.name)
    }

    /// The tool's name became known.
    pub fn called(&self, name: &str) {
        let _ = self.name.set(name.to_owned());
    }

    fn size(&self) -> usize {
        self.recipe.size.clamp(1, self.limits().pool_size.max(1))
    }

    /// Sends one request about a tool to a worker of this pool and waits for the answer.
    pub async fn request(
        self: &Arc<Pool>,
        tool: &str,
        method: &str,
        params: impl Serialize,
        context: Option<Context>,
    ) -> Result<Result<Json, RpcError>, Fault> {
        let deadline = context.as_ref().and_then(|context| context.deadline);
        let mut lease = self.worker(tool, deadline).await?;
        let turn = lease.turn();
        let Some(worker) = lease.worker() else {
            return Err(Fault::Closing);
        };
        let asked = worker.request_in_turn(method, params, context, turn);
        let answer = asked.await;
        match &answer {
            Ok(answer) => {
                self.succeeded(tool);
                if answer.is_ok() {
                    self.did_well(tool);
                }
            }
            Err(fault) if fault.is_failure() && worker.counts(tool) => self.crashed(tool, fault),
            Err(_) => {}
        }
        answer
    }

    /// What a worker of this pool says of itself.
    pub async fn hello(self: &Arc<Pool>) -> Result<Value, Fault> {
        let lease = self.worker(NO_TOOL, None).await?;
        let hello = lease.worker().and_then(|worker| worker.hello());
        hello.map(|hello| hello.value.clone()).ok_or(Fault::Closing)
    }

    /// Does a worker of this pool live?
    pub(crate) fn is_warm(&self) -> bool {
        let state = self.state();
        let mut members = state.members.iter();
        members.any(|member| !member.leaving && member.worker.is_alive())
    }

    /// A worker with a free lane, started if need be. Nobody waits for it beyond the call's deadline.
    async fn worker(
        self: &Arc<Pool>,
        tool: &str,
        deadline: Option<Instant>,
    ) -> Result<Lease, Fault> {
        // The chain's own clock rings at the same moment, and asks this one first.
        let over = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let mut over = pin!(over);
        let (lease, waited) = tokio::select! {
            biased;
            lease = self.lease(tool) => lease?,
            () = &mut over => return Err(Fault::Waited),
        };
        if lease.worker().is_some() {
            return Ok(lease);
        }
        self.rested(tool)?;
        // In a task of its own: a start goes on when its caller goes away, and the next caller finds the worker warm.
        let pool = self.clone();
        let started = tokio::spawn(pool.start(lease));
        tokio::select! {
            biased;
            started = started => match started {
                Ok(lease) => lease,
                Err(error) => Err(Fault::Greeting(format!("was never read: {error}"))),
            },
            () = &mut over => Err(match waited {
                true => Fault::Waited,
                false => match self.ground.places.all_taken() {
                    Some(workers) => Fault::Crowded(workers),
                    None => Fault::Starting,
                },
            }),
        }
    }

    /// A place in the pool, and whether it had to be waited for.
    async fn lease(self: &Arc<Pool>, tool: &str) -> Result<(Lease, bool), Fault> {
        let waiting = {
            let mut state = self.state();
            if state.closed {
                return Err(Fault::Closing);
            }
            // Who has a worker to itself waits for nobody else.
            let first = state.queue.is_empty() || state.failures.is_suspect(tool);
            if first && let Some(lease) = self.seat(&mut state, tool) {
                return Ok((lease, false));
            }
            state.queue.retain(|one| !one.ready.is_closed());
            if state.queue.len() >= self.limits().queue {
                return Err(Fault::Queue(state.queue.len()));
            }
            let (ready, waiting) = oneshot::channel();
            let tool = tool.into();
            state.queue.push_back(Waiting { tool, ready });
            self.watch_turns(&mut state);
            waiting
        };
        let lease = waiting.await.map_err(|_| Fault::Closing)?;
        Ok((lease, true))
    }

    /// A free lane of a living worker, else the right to start one. A tool that has failed shares none.
    fn seat(self: &Arc<Pool>, state: &mut State, tool: &str) -> Option<Lease> {
        let only = state.failures.is_suspect(tool).then(|| Arc::from(tool));
        state
            .members
            .retain(|member| member.busy > 0 || member.worker.is_alive());
        let members = state.members.iter_mut();
        let free = members.filter(|member| member.only == only && member.is_free());
        if let Some(member) = free.min_by_key(|member| member.busy) {
            member.busy += 1;
            member.calls += 1;
            member.take_turn();
            return Some(Lease::lane(self.clone(), member.worker.clone()));
        }
        let members = state.members.iter();
        let staying = members.filter(|member| member.only == only && member.stays());
        let starting = state.starting.iter().filter(|starting| **starting == only);
        let size = match only {
            Some(_) => self.size(),
            None => self.size_with_company(state),
        };
        if staying.count() + starting.count() < size {
            state.starting.push(only.clone());
            return Some(Lease::start(self.clone(), only));
        }
        None
    }

    /// Serves the queue as far as there are seats. What could not be handed over must be dropped without the lock.
    fn hand_out(self: &Arc<Pool>, state: &mut State) -> Vec<Lease> {
        let mut refused = Vec::new();
        let mut full = false;
        for waiting in std::mem::take(&mut state.queue) {
            if waiting.ready.is_closed() {
                continue;
            }
            // Where one tool waits for the workers of all, the others do so, too.
            let shares = !state.failures.is_suspect(&waiting.tool);
            let seat = match full && shares {
                true => None,
                false => self.seat(state, &waiting.tool),
            };
            match seat {
                Some(lease) => refused.extend(waiting.ready.send(lease).err()),
                None => {
                    full |= shares;
                    state.queue.push_back(waiting);
                }
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
                    self.unstarted(&fault);
                }
                return Err(fault);
            }
        };
        let refused = {
            let mut state = self.state();
            let only = lease.started(worker.clone());
            state.no_longer_starting(&only);
            state.standing.failed_starts = 0;
            // Its tool may have done well meanwhile.
            let only = only.filter(|tool| state.failures.is_suspect(tool));
            let crowded = only.is_none() && state.shared() >= self.most(&worker);
            let leaving = state.closed || crowded;
            let mut member = Member {
                worker,
                busy: 1,
                calls: 1,
                idle_since: Instant::now(),
                leaving,
                doubts: 0,
                only,
                turn: None,
            };
            member.take_turn();
            state.members.push(member);
            self.hand_out(&mut state)
        };
        drop(refused);
        Ok(lease)
    }

    pub(super) fn not_started(self: &Arc<Pool>, only: &Option<Arc<str>>) {
        let refused = {
            let mut state = self.state();
            state.no_longer_starting(only);
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

    /// A call was given up and may end by itself. Until that is known, its worker takes no new calls: one that hangs would
    /// take them with it.
    pub(super) fn doubt(self: &Arc<Pool>, worker: &Arc<Worker>) {
        self.with_member(worker, |member| member.doubts += 1);
    }

    /// The call that was given up takes its time: its worker is replaced, whether it ends by itself or not.
    pub(super) fn replace(self: &Arc<Pool>, worker: &Arc<Worker>) {
        self.with_member(worker, |member| member.leaving = true);
    }

    fn with_member(self: &Arc<Pool>, worker: &Arc<Worker>, change: impl FnOnce(&mut Member)) {
        let refused = {
            let mut state = self.state();
            let mut members = state.members.iter_mut();
            if let Some(member) = members.find(|member| Arc::ptr_eq(&member.worker, worker)) {
                change(member);
            }
            self.hand_out(&mut state)
        };
        drop(refused);
    }

    /// A call that was given up has ended by itself.
    pub(super) fn undoubted(self: &Arc<Pool>, worker: &Arc<Worker>) {
        self.free(worker, |member, _, keep| {
            member.doubts -= 1;
            member.leaving |= keep == Keep::Never;
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
        self.ground.became_idle();
    }
}

impl State {
    fn no_longer_starting(&mut self, only: &Option<Arc<str>>) {
        let at = self.starting.iter().position(|starting| starting == only);
        at.map(|at| self.starting.swap_remove(at));
    }
}
