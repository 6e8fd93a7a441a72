//! What went wrong in a row, for each tool of a pool, and what follows from it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;
use toolcrib_core::{Event, Health, Standing, Status};

use super::{Member, Pool, State};
use crate::worker::Fault;

/// Failures since the last answer.
#[derive(Default)]
pub(super) struct Failures {
    /// Workers that could not be started: that concerns every tool.
    starts: InARow,
    /// Workers that ended under a call of this tool.
    crashes: HashMap<Arc<str>, InARow>,
}

#[derive(Default, Clone)]
struct InARow {
    count: u32,
    last: Option<(Instant, String)>,
}

impl InARow {
    fn add(&mut self, told: String) {
        self.count += 1;
        self.last = Some((Instant::now(), told));
    }
}

impl Failures {
    /// Did a worker end under a call of this tool, and none has answered one since?
    pub fn is_suspect(&self, tool: &str) -> bool {
        self.crashes.contains_key(tool)
    }

    /// A worker that was asked about this tool is well.
    pub fn forgive(&mut self, tool: &str) {
        self.starts = InARow::default();
        self.crashes.remove(tool);
    }

    /// What counts against a tool: its own crashes, or that nothing starts.
    fn of(&self, tool: &str) -> &InARow {
        let own = self.crashes.get(tool);
        own.filter(|own| own.count >= self.starts.count)
            .unwrap_or(&self.starts)
    }
}

impl State {
    /// How many workers there are for every tool.
    pub(super) fn shared(&self) -> usize {
        let members = self.members.iter();
        let shared = members.filter(|member| member.only.is_none() && member.stays());
        shared.count()
    }

    /// The workers that a tool had to itself are for all from now on, or go where there are enough.
    fn share_again(&mut self, tool: &str, size: usize) {
        let mut room = size.saturating_sub(self.shared());
        let members = self.members.iter_mut();
        for member in members.filter(|member| member.only.as_deref() == Some(tool)) {
            member.only = None;
            if member.stays() {
                member.leaving = room == 0;
                room = room.saturating_sub(1);
            }
        }
        let gone = |member: &mut Member| member.leaving && member.busy == 0;
        for member in self.members.extract_if(.., gone) {
            member.worker.end();
        }
    }
}

impl Pool {
    /// After too many failures in a row, starts are spaced out.
    pub(super) fn rested(&self, tool: &str) -> Result<(), Fault> {
        let state = self.state();
        if state.closed {
            return Err(Fault::Closing);
        }
        let retries = self.recipe.retries;
        let failures = state.failures.of(tool);
        // One start more than there may be repetitions is always free.
        let beyond = failures.count.checked_sub(retries.max + 2);
        let (Some(beyond), Some((last, told))) = (beyond, &failures.last) else {
            return Ok(());
        };
        let until = *last + retries.delay_before(beyond);
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Err(Fault::Resting(left.as_millis(), told.clone())),
            _ => Ok(()),
        }
    }

    /// A worker ended under a call of this tool. Which of its calls was to blame nobody knows; the next one has a worker
    /// to itself, and then it is known.
    pub(super) fn crashed(&self, tool: &str, fault: &Fault) {
        let told = fault.message();
        self.stand(tool, |state| {
            let crashes = &mut state.failures.crashes;
            crashes.entry(tool.into()).or_default().add(told);
        });
    }

    /// A worker could not be started.
    pub(super) fn unstarted(&self, fault: &Fault) {
        let told = fault.message();
        self.stand(self.name(), |state| state.failures.starts.add(told));
    }

    /// A good answer says that the process is well, unless that says of itself that it is degraded, or a tool of it crashed.
    pub(super) fn did_well(&self, tool: &str) {
        let is_news = {
            let state = self.state();
            let known = matches!(state.standing.health, Health::Healthy | Health::Degraded);
            let failed = state.failures.starts.count > 0 || !state.failures.crashes.is_empty();
            !known && !failed
        };
        if is_news {
            self.stand(tool, |state| {
                state.standing.health = Health::Healthy;
                state.standing.message = None;
            });
        }
    }

    pub(super) fn succeeded(&self, tool: &str) {
        {
            let state = self.state();
            if state.failures.starts.count == 0 && !state.failures.is_suspect(tool) {
                return;
            }
        }
        let size = self.size();
        self.stand(tool, |state| {
            state.failures.starts = InARow::default();
            state.failures.crashes.remove(tool);
            state.standing.health = Health::Healthy;
            state.standing.message = None;
            state.share_again(tool, size);
        });
    }

    /// How a tool of this pool stands.
    pub fn standing(&self, tool: &str) -> Standing {
        self.standing_in(&self.state(), tool)
    }

    fn standing_in(&self, state: &State, tool: &str) -> Standing {
        let mut standing = state.standing.clone();
        let failures = state.failures.of(tool);
        standing.failed = failures.count > self.recipe.retries.max;
        if let Some((_, told)) = &failures.last {
            standing.health = Health::Unhealthy;
            standing.message = Some(told.clone());
        }
        standing
    }

    /// Changes how the pool stands and tells what became different for a tool.
    pub(super) fn stand(&self, tool: &str, change: impl FnOnce(&mut State)) {
        let (before, after) = {
            let mut state = self.state();
            let before = self.standing_in(&state, tool);
            change(&mut state);
            (before, self.standing_in(&state, tool))
        };
        let tool = match tool {
            super::NO_TOOL => self.name(),
            tool => tool,
        };
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
}
