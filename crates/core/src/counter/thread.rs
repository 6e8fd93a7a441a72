//! Calls of tools in one thread and its runs, counted as LangChain's `ToolCallLimitMiddleware` does.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Refusal;

/// A run without a name ends when its thread was idle for so long.
const IDLE_MS: u64 = 10 * 60_000;
/// How long a thread is remembered that nobody calls in.
const KEPT_MS: u64 = 30 * 24 * 3_600_000;
/// The most runs of a thread that are remembered; those called in last.
const MAX_RUNS: usize = 32;
/// What all tools together are counted by. No tool has such a name.
const ALL: &str = "*";

/// One limit on calls in a thread, in a run, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallLimit {
    /// Nothing for all tools together.
    pub tool: Option<Arc<str>>,
    pub thread: Option<u64>,
    pub run: Option<u64>,
    pub exit: Exit,
}

/// What happens beyond a limit, beside the refusal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// Nothing: other tools may be called.
    #[default]
    Continue,
    /// Every later call of the run is refused.
    End,
    /// Nothing, and the refusal names the counts.
    Error,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadCounts {
    /// Calls that were let through, by tool.
    calls: BTreeMap<String, u64>,
    runs: Vec<RunCounts>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunCounts {
    /// Nothing for a run that has no name.
    id: Option<String>,
    last_ms: u64,
    /// Calls that were asked for, by tool.
    calls: BTreeMap<String, u64>,
    #[serde(default)]
    ended: bool,
}

impl CallLimit {
    pub fn covers(&self, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|own| own == tool)
    }

    fn key(&self) -> &str {
        self.tool.as_deref().unwrap_or(ALL)
    }
}

/// What is counted of a call under these limits, each key once.
fn keys<'a>(tool: &'a str, limits: &'a [CallLimit]) -> impl Iterator<Item = &'a str> {
    let all = limits.iter().any(|limit| limit.tool.is_none());
    let own = limits
        .iter()
        .any(|limit| limit.tool.as_deref() == Some(tool));
    all.then_some(ALL).into_iter().chain(own.then_some(tool))
}

fn of(counts: &BTreeMap<String, u64>, key: &str) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

fn add(counts: &mut BTreeMap<String, u64>, key: &str) {
    *counts.entry(key.to_owned()).or_insert(0) += 1;
}

fn take(counts: &mut BTreeMap<String, u64>, key: &str) {
    if let Some(count) = counts.get_mut(key) {
        *count = count.saturating_sub(1);
    }
}

impl ThreadCounts {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.runs.is_empty()
    }

    pub fn ends(&self) -> u64 {
        let last = self.runs.iter().map(|run| run.last_ms).max();
        last.map_or(0, |last| last.saturating_add(KEPT_MS))
    }

    /// Counts one call. What is refused counts for its run, and not for the thread.
    pub fn count(
        &mut self,
        tool: &str,
        run: Option<&str>,
        limits: &[CallLimit],
        now_ms: u64,
    ) -> Result<(), Refusal> {
        let place = self.place_of(run, now_ms);
        let counts = &mut self.runs[place];
        let may_end = limits.iter().any(|limit| limit.exit == Exit::End);
        if counts.ended && may_end {
            return Err(Refusal::RunEnded);
        }
        for limit in limits.iter().filter(|limit| limit.covers(tool)) {
            let key = limit.key();
            let thread = of(&self.calls, key) + 1;
            let run = of(&counts.calls, key) + 1;
            let over = |limit: Option<u64>, count| limit.is_some_and(|limit| count > limit);
            if over(limit.thread, thread) || over(limit.run, run) {
                add(&mut counts.calls, key);
                counts.ended |= limit.exit == Exit::End;
                return Err(Refusal::ToolCalls {
                    limit: limit.clone(),
                    thread,
                    run,
                });
            }
        }
        for key in keys(tool, limits) {
            add(&mut self.calls, key);
            add(&mut counts.calls, key);
        }
        Ok(())
    }

    pub fn take_back(&mut self, tool: &str, run: Option<&str>, limits: &[CallLimit]) {
        let found = self.runs.iter_mut().find(|one| one.id.as_deref() == run);
        for key in keys(tool, limits) {
            take(&mut self.calls, key);
        }
        if let Some(counts) = found {
            for key in keys(tool, limits) {
                take(&mut counts.calls, key);
            }
        }
    }

    pub fn set_back(&mut self, now_ms: u64) {
        for run in &mut self.runs {
            run.last_ms = run.last_ms.min(now_ms);
        }
    }

    /// The run that is meant, as it goes on; a new one where it is not known, or was idle for too long.
    fn place_of(&mut self, run: Option<&str>, now_ms: u64) -> usize {
        let found = self.runs.iter().position(|one| one.id.as_deref() == run);
        if let Some(place) = found {
            let counts = &mut self.runs[place];
            let idle = now_ms.saturating_sub(counts.last_ms) > IDLE_MS;
            if run.is_none() && idle {
                (counts.calls, counts.ended) = (BTreeMap::new(), false);
            }
            counts.last_ms = now_ms;
            return place;
        }
        if self.runs.len() >= MAX_RUNS {
            let oldest = self
                .runs
                .iter()
                .enumerate()
                .min_by_key(|(_, one)| one.last_ms);
            if let Some((place, _)) = oldest {
                self.runs.swap_remove(place);
            }
        }
        self.runs.push(RunCounts {
            id: run.map(str::to_owned),
            last_ms: now_ms,
            calls: BTreeMap::new(),
            ended: false,
        });
        self.runs.len() - 1
    }
}
