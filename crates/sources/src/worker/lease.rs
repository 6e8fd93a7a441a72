//! The right to use a worker, given back however the call ends.

use std::pin::pin;
use std::sync::Arc;

use super::pool::{Pool, Turn};
use super::process::{GivenUp, Worker};

/// A place in a pool: a worker's time, or the right to start one.
pub struct Lease {
    pool: Arc<Pool>,
    seat: Seat,
    /// Where the worker takes turns.
    turn: Option<Turn>,
}

enum Seat {
    /// One of the calls that this worker takes at once.
    Lane(Arc<Worker>),
    /// A worker may be started, for one tool only where it is named.
    Start(Option<Arc<str>>),
    /// Given back already.
    Gone,
}

impl Lease {
    pub fn lane(pool: Arc<Pool>, worker: Arc<Worker>) -> Lease {
        Lease {
            turn: Turn::of(&pool, &worker),
            pool,
            seat: Seat::Lane(worker),
        }
    }

    pub fn start(pool: Arc<Pool>, only: Option<Arc<str>>) -> Lease {
        Lease {
            pool,
            seat: Seat::Start(only),
            turn: None,
        }
    }

    /// The worker, where there is one already.
    pub fn worker(&self) -> Option<&Arc<Worker>> {
        match &self.seat {
            Seat::Lane(worker) => Some(worker),
            Seat::Start(_) | Seat::Gone => None,
        }
    }

    /// The turn in a worker where one call runs at a time: it ends when this is dropped.
    pub fn turn(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    /// The right to start a worker became a lane of the one that was started; the tool that it is for, where it is one's.
    pub fn started(&mut self, worker: Arc<Worker>) -> Option<Arc<str>> {
        self.turn = Turn::of(&self.pool, &worker);
        match std::mem::replace(&mut self.seat, Seat::Lane(worker)) {
            Seat::Start(only) => only,
            Seat::Lane(_) | Seat::Gone => None,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.seat, Seat::Gone) {
            Seat::Gone => {}
            Seat::Start(only) => self.pool.not_started(&only),
            Seat::Lane(worker) => match worker.given_up() {
                None => self.pool.give_back(&worker),
                Some(given_up) => give_up(self.pool.clone(), worker, given_up),
            },
        }
    }
}

/// The caller went away before the answer came. A worker that understands is told, and has a moment to end the call by
/// itself; any other can only be killed.
fn give_up(pool: Arc<Pool>, worker: Arc<Worker>, given_up: GivenUp) {
    let cancels = worker.hello().is_some_and(|hello| hello.cancels) && worker.is_alive();
    let Some(runtime) = tokio::runtime::Handle::try_current()
        .ok()
        .filter(|_| cancels)
    else {
        pool.discard(&worker);
        return;
    };
    pool.doubt(&worker);
    runtime.spawn(async move {
        let mut ended = pin!(async {
            worker.cancel(given_up.id).await;
            matches!(given_up.answer.await, Ok(Ok(_)))
        });
        // Calls that come meanwhile wait for it half of its time, then for another worker.
        let half = pool.limits().cancel_grace / 2;
        let mut in_time = tokio::time::timeout(half, &mut ended).await;
        if in_time.is_err() {
            pool.replace(&worker);
            in_time = tokio::time::timeout(half, ended).await;
        }
        match in_time {
            Ok(true) => pool.undoubted(&worker),
            _ => pool.discard(&worker),
        }
    });
}
