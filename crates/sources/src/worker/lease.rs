//! The right to use a worker, given back however the call ends.

use std::sync::Arc;

use super::pool::Pool;
use super::process::{GivenUp, Worker};

/// A place in a pool: a worker's time, or the right to start one.
pub struct Lease {
    pool: Arc<Pool>,
    seat: Seat,
}

enum Seat {
    /// One of the calls that this worker takes at once.
    Lane(Arc<Worker>),
    /// A worker may be started.
    Start,
    /// Given back already.
    Gone,
}

impl Lease {
    pub fn lane(pool: Arc<Pool>, worker: Arc<Worker>) -> Lease {
        Lease {
            pool,
            seat: Seat::Lane(worker),
        }
    }

    pub fn start(pool: Arc<Pool>) -> Lease {
        Lease {
            pool,
            seat: Seat::Start,
        }
    }

    /// The worker, where there is one already.
    pub fn worker(&self) -> Option<&Arc<Worker>> {
        match &self.seat {
            Seat::Lane(worker) => Some(worker),
            Seat::Start | Seat::Gone => None,
        }
    }

    /// The right to start a worker became a lane of the one that was started.
    pub fn started(&mut self, worker: Arc<Worker>) {
        self.seat = Seat::Lane(worker);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.seat, Seat::Gone) {
            Seat::Gone => {}
            Seat::Start => self.pool.not_started(),
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
    runtime.spawn(async move {
        let ended = async {
            worker.cancel(given_up.id).await;
            matches!(given_up.answer.await, Ok(Ok(_)))
        };
        let grace = pool.limits().cancel_grace;
        match tokio::time::timeout(grace, ended).await {
            Ok(true) => pool.give_back(&worker),
            _ => pool.discard(&worker),
        }
    });
}
