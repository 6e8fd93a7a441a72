//! Workers that run one call at a time until it waits: whoever does not let the others have their turn gets company.
//!
//! A single thread that runs calls side by side, as JavaScript has, can do so only while they wait for something. Such a
//! worker gets the next call when the last has ended or says that it waits ([`Turn`]). Where one does neither for
//! [`PATIENCE`], the calls behind it get processes of their own, up to as many as the worker promised to run side by side.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::{Pool, State};
use crate::worker::process::Worker;

/// How long a call may keep the turn before others are no longer made to wait for it.
const PATIENCE: Duration = Duration::from_millis(50);
/// For one worker that is blocked there may be this many: where all soon are, few rounds give each call its own.
const GROWTH: usize = 4;
/// How long company that nobody needs is kept.
pub(super) const COMPANY_IDLE: Duration = Duration::from_secs(10);

/// A call's turn in its worker: it ends when this is dropped.
pub struct Turn {
    pool: Weak<Pool>,
    worker: Weak<Worker>,
}

impl Turn {
    /// The turn that was taken with a lane of this worker; none where calls need not take turns.
    pub fn of(pool: &Arc<Pool>, worker: &Arc<Worker>) -> Option<Turn> {
        worker.takes_turns().then(|| Turn {
            pool: Arc::downgrade(pool),
            worker: Arc::downgrade(worker),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let (Some(pool), Some(worker)) = (self.pool.upgrade(), self.worker.upgrade()) {
            pool.with_member(&worker, |member| member.turn = None);
        }
    }
}

impl State {
    /// How many workers are kept by a call that neither ends nor waits.
    fn blocked(&self) -> usize {
        let now = Instant::now();
        let blocked = self.members.iter().filter(|member| {
            let kept = member.turn.is_some_and(|since| now - since >= PATIENCE);
            kept && member.only.is_none() && member.stays()
        });
        blocked.count()
    }
}

impl Pool {
    /// How many workers there may be now, company included.
    pub(super) fn size_with_company(&self, state: &State) -> usize {
        let size = self.size();
        match state.blocked() {
            0 => size,
            blocked => {
                let promised = state.members.iter().map(|member| self.most(&member.worker));
                (blocked * GROWTH).clamp(size, promised.max().unwrap_or(size))
            }
        }
    }

    /// The most workers that all tools may share, where they are like this one.
    pub(super) fn most(&self, worker: &Worker) -> usize {
        let company = match worker.takes_turns() {
            true => worker.concurrency(),
            false => 1,
        };
        self.size() * company
    }

    /// While calls are in the queue, somebody looks whether those before them let them have their turn.
    pub(super) fn watch_turns(self: &Arc<Pool>, state: &mut State) {
        if std::mem::replace(&mut state.watched, true) {
            return;
        }
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(PATIENCE / 2).await;
                let Some(pool) = pool.upgrade() else { return };
                let (refused, goes_on) = {
                    let mut state = pool.state();
                    let refused = pool.hand_out(&mut state);
                    let mut members = state.members.iter();
                    let turns = members.any(|member| member.worker.takes_turns());
                    let goes_on = !state.queue.is_empty() && (turns || !state.starting.is_empty());
                    state.watched = goes_on;
                    (refused, goes_on)
                };
                drop(refused);
                if !goes_on {
                    return;
                }
            }
        });
    }
}
