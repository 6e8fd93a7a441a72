//! What calls are counted in: one counter for each token, agent and thread, and the steps that it takes.
//!
//! A counter is a value that is written as JSON. Whoever keeps it (the store, or the crib's own memory) reads it, lets
//! a [`CounterStep`] decide and change it, and writes it, while nobody else can: so every limit is decided here, in one
//! place, and is exact wherever counters are kept.
//!
//! Why: `docs/design/0019-limits.md`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

mod memory;
mod moment;
mod thread;
mod window;

pub use memory::MemoryCounters;
pub(crate) use moment::rfc3339;
use thread::ThreadCounts;
pub use thread::{CallLimit, Exit};
use window::{DAY, MINUTE, Window};

/// How long a lease holds that nobody renews: that of a process which died.
pub const LEASE_MS: u64 = 60_000;

/// How far clocks may differ that count together.
const TOLERANCE_MS: u64 = 30_000;

/// One counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// When it was last changed; time never goes back for it.
    #[serde(default)]
    at_ms: u64,
    /// Calls of the last minute.
    #[serde(default, skip_serializing_if = "Window::is_empty")]
    calls: Window,
    /// Bytes of the last day.
    #[serde(default, skip_serializing_if = "Window::is_empty")]
    bytes: Window,
    /// Calls that run, and until when that is believed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    leases: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "ThreadCounts::is_empty")]
    thread: ThreadCounts,
}

/// What is done to a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CounterStep {
    /// Counts a call, where fewer were in the last minute, and fewer bytes were handed out in the last day.
    Call {
        per_minute: Option<u64>,
        bytes_per_day: Option<u64>,
    },
    /// A call that was counted then did not run.
    CallBack { at_ms: u64 },
    /// A call runs from now on, where fewer do.
    Lease { id: Arc<str>, most: u64 },
    /// It runs still.
    Renew { id: Arc<str> },
    /// It has ended.
    Release { id: Arc<str> },
    /// So much was handed out.
    Bytes(u64),
    /// Counts a tool's call in its thread and run, where these limits allow it.
    ToolCall {
        tool: Arc<str>,
        run: Option<Arc<str>>,
        limits: Arc<[CallLimit]>,
    },
    /// A tool's call that was counted did not run.
    ToolCallBack {
        tool: Arc<str>,
        run: Option<Arc<str>>,
        limits: Arc<[CallLimit]>,
    },
}

/// Steps of several counters that are taken together or not at all, each with the key of its counter.
pub type CounterSteps = Vec<(Arc<str>, CounterStep)>;

/// Why a step is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    CallsPerMinute {
        limit: u64,
        wait_ms: u64,
    },
    Concurrency {
        limit: u64,
    },
    BytesPerDay {
        limit: u64,
        wait_ms: u64,
    },
    /// One of the limits of a thread or run, with the counts as they would have been.
    ToolCalls {
        limit: CallLimit,
        thread: u64,
        run: u64,
    },
    /// The run was ended by a limit before.
    RunEnded,
}

/// The moment at which steps were taken, or the first of them that was refused.
pub type CountVerdict = Result<u64, (usize, Refusal)>;

impl CounterStep {
    /// What gives back what this step took, where it took something.
    pub fn undone(&self, at_ms: u64) -> Option<CounterStep> {
        match self {
            CounterStep::Call {
                per_minute: Some(_),
                ..
            } => Some(CounterStep::CallBack { at_ms }),
            CounterStep::Lease { id, .. } => Some(CounterStep::Release { id: id.clone() }),
            CounterStep::ToolCall { tool, run, limits } => Some(CounterStep::ToolCallBack {
                tool: tool.clone(),
                run: run.clone(),
                limits: limits.clone(),
            }),
            _ => None,
        }
    }
}

impl Counter {
    /// Reads what [`Counter::written`] wrote. What can't be read is a new counter.
    pub fn read(text: &str) -> Counter {
        if text.is_empty() {
            return Counter::default();
        }
        serde_json::from_str(text).unwrap_or_else(|error| {
            tracing::warn!(%error, "a counter can't be read, and begins anew");
            Counter::default()
        })
    }

    pub fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// When it says nothing any more and may be forgotten.
    pub fn ends(&self) -> u64 {
        let leases = self.leases.values().max().copied().unwrap_or(0);
        let windows = self.calls.ends(MINUTE).max(self.bytes.ends(DAY));
        leases.max(windows).max(self.thread.ends())
    }

    fn apply(&mut self, change: &CounterStep, now_ms: u64) -> Result<(), Refusal> {
        if self.is_ahead_of(now_ms) {
            self.set_back(now_ms);
        }
        self.at_ms = self.at_ms.max(now_ms);
        let now = self.at_ms;
        match change {
            CounterStep::Call {
                per_minute,
                bytes_per_day,
            } => {
                self.has_bytes_left(*bytes_per_day, now)?;
                let Some(limit) = *per_minute else {
                    return Ok(());
                };
                if self.calls.used(MINUTE, now) >= limit {
                    let wait_ms = self.calls.wait(MINUTE, now, limit);
                    return Err(Refusal::CallsPerMinute { limit, wait_ms });
                }
                self.calls.add(MINUTE, now, 1);
            }
            CounterStep::CallBack { at_ms } => self.calls.take_back(MINUTE, *at_ms, 1),
            CounterStep::Lease { id, most } => {
                self.leases.retain(|_, until| *until > now);
                if self.leases.len() as u64 >= *most {
                    return Err(Refusal::Concurrency { limit: *most });
                }
                self.leases.insert(id.to_string(), now + LEASE_MS);
            }
            CounterStep::Renew { id } => {
                self.leases.insert(id.to_string(), now + LEASE_MS);
            }
            CounterStep::Release { id } => {
                self.leases.remove(&**id);
            }
            CounterStep::Bytes(n) => {
                self.bytes.used(DAY, now);
                self.bytes.add(DAY, now, *n);
            }
            CounterStep::ToolCall { tool, run, limits } => {
                self.thread.count(tool, run.as_deref(), limits, now)?;
            }
            CounterStep::ToolCallBack { tool, run, limits } => {
                self.thread.take_back(tool, run.as_deref(), limits);
            }
        }
        Ok(())
    }

    /// Was it written by a clock that was wrong, rather than by one that is a little ahead?
    fn is_ahead_of(&self, now_ms: u64) -> bool {
        self.at_ms > now_ms.saturating_add(TOLERANCE_MS)
    }

    /// Lets go of what is in the future, which would hold for ever.
    fn set_back(&mut self, now_ms: u64) {
        self.at_ms = now_ms;
        self.calls.set_back(MINUTE, now_ms);
        self.bytes.set_back(DAY, now_ms);
        for until in self.leases.values_mut() {
            *until = (*until).min(now_ms + LEASE_MS);
        }
        self.thread.set_back(now_ms);
    }

    fn has_bytes_left(&mut self, limit: Option<u64>, now: u64) -> Result<(), Refusal> {
        match limit {
            Some(limit) if self.bytes.used(DAY, now) >= limit => Err(Refusal::BytesPerDay {
                limit,
                wait_ms: self.bytes.wait(DAY, now, limit),
            }),
            _ => Ok(()),
        }
    }
}

/// Takes these steps, or none of them. `counters` gives each counter as it is, and takes it as it is then. A counter
/// that refuses may remember that it did.
pub fn decide(
    steps: &[(Arc<str>, CounterStep)],
    now_ms: u64,
    counters: &mut BTreeMap<Arc<str>, Counter>,
) -> CountVerdict {
    let mut before = Vec::with_capacity(steps.len());
    // Who is a little behind takes the time of who is ahead, for all of its counters.
    let known = steps.iter().filter_map(|(key, _)| counters.get(key));
    let ahead = known.filter(|counter| !counter.is_ahead_of(now_ms));
    let now_ms = ahead.map(|counter| counter.at_ms).fold(now_ms, u64::max);
    for (place, (key, change)) in steps.iter().enumerate() {
        let counter = counters.entry(key.clone()).or_default();
        // The last one has nothing behind it that could undo it.
        if place + 1 < steps.len() {
            before.push((key, counter.clone()));
        }
        if let Err(refusal) = counter.apply(change, now_ms) {
            let earlier = before.into_iter().take(place).rev();
            for (key, counter) in earlier {
                counters.insert(key.clone(), counter);
            }
            return Err((place, refusal));
        }
    }
    Ok(now_ms)
}

#[cfg(test)]
mod tests;
