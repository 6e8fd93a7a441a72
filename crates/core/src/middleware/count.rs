//! Counts a call before anybody approves it: by `[limits]` for its token and agent, by `tool_call_limit` for its thread
//! and run. A call that does not start gives its count back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;

use super::keys;
use super::names::Names;
use super::refusal::{refused, undecided};
use super::{Middleware, Next, Rule, When};
use crate::call::Deed;
use crate::counter::{CallLimit, CounterStep, CounterSteps, Exit};
use crate::profile::ChainSettings;
use crate::store::Counters;
use crate::{BoxFuture, Call, CallResult, Limits, Outcome, OutputLimit};

pub(super) struct Count {
    limits: Limits,
    tool_calls: Arc<[CallLimit]>,
}

/// The parameters of `tool_call_limit`, in the seed's names and LangChain's.
#[derive(Deserialize)]
#[serde(try_from = "Parameters")]
pub(super) struct ToolCallLimit(Vec<CallLimit>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    run_limit: Option<u64>,
    thread_limit: Option<u64>,
    #[serde(alias = "tool_name")]
    tools: Option<Names>,
    #[serde(default)]
    exit_behavior: Exit,
}

impl TryFrom<Parameters> for ToolCallLimit {
    type Error = String;

    fn try_from(parameters: Parameters) -> Result<ToolCallLimit, String> {
        let (run, thread) = (parameters.run_limit, parameters.thread_limit);
        match (run, thread) {
            (None, None) => {
                return Err(
                    "At least one limit must be specified (thread_limit or run_limit)".to_owned(),
                );
            }
            (Some(run), Some(thread)) if run > thread => {
                return Err(format!(
                    "run_limit ({run}) cannot exceed thread_limit ({thread})"
                ));
            }
            _ => {}
        }
        let limit = |tool: Option<&str>| CallLimit {
            tool: tool.map(Arc::from),
            thread,
            run,
            exit: parameters.exit_behavior,
        };
        let names = parameters.tools.map(Names::into_vec);
        if names.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "`tools` names no tool; leave it out to limit all of them together".to_owned(),
            );
        }
        Ok(ToolCallLimit(match names {
            Some(names) => names.iter().map(|name| limit(Some(name))).collect(),
            None => vec![limit(None)],
        }))
    }
}

impl Rule for ToolCallLimit {
    const NAME: &'static str = "tool_call_limit";
}

impl When for Count {
    fn of(settings: &ChainSettings) -> Option<Count> {
        let listed = settings.rules::<ToolCallLimit>();
        let tool_calls: Arc<[_]> = listed.iter().flat_map(|one| one.0.clone()).collect();
        let limits = settings.limits.clone();
        (!limits.is_empty() || !tool_calls.is_empty()).then_some(Count { limits, tool_calls })
    }
}

impl Middleware for Count {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let counters = &next.shared().counters;
        let steps = self.steps(call);
        if steps.is_empty() {
            return next.run(call);
        }
        Box::pin(async move {
            let at_ms = match counters.ask(steps.clone()).await {
                Ok(Ok(at_ms)) => at_ms,
                Ok(Err((place, refusal))) => {
                    let key = steps.get(place).map_or("", |(key, _)| key);
                    call.context.mark(name_of(key), Deed::Refused);
                    return Err(refused(&refusal, key, (next.shared().clock)()));
                }
                Err(error) => {
                    call.context.mark(keys::LIMITS, Deed::Refused);
                    return Err(undecided(&error));
                }
            };
            let started = Arc::new(AtomicBool::new(false));
            call.context.started = Some(started.clone());
            let mut counted = Counted {
                counters: &**counters,
                steps,
                at_ms,
                started,
                bytes: 0,
            };
            let limit = call.context.output_limit;
            let result = next.run(call).await;
            if let Ok(outcome) = &result {
                counted.bytes = bytes_of(outcome, limit);
            }
            result
        })
    }
}

impl Count {
    /// What this call is counted by.
    fn steps(&self, call: &Call) -> CounterSteps {
        let mut steps = CounterSteps::new();
        for (key, limits) in keys::of(&self.limits, &call.caller) {
            let (per_minute, bytes_per_day) =
                (limits.calls_per_minute, limits.output_bytes_per_day);
            if per_minute.is_some() || bytes_per_day.is_some() {
                let step = CounterStep::Call {
                    per_minute,
                    bytes_per_day,
                };
                steps.push((key, step));
            }
        }
        let tool = call.tool.spec.name.shared();
        let matters = |limit: &CallLimit| limit.covers(&tool) || limit.exit == Exit::End;
        if self.tool_calls.iter().any(matters) {
            let step = CounterStep::ToolCall {
                tool,
                run: call.context.run.clone(),
                limits: self.tool_calls.clone(),
            };
            steps.push((keys::thread(call), step));
        }
        steps
    }
}

/// What settings call the limit of this counter.
fn name_of(key: &str) -> &'static str {
    match keys::is_thread(key) {
        true => ToolCallLimit::NAME,
        false => keys::LIMITS,
    }
}

/// About as much as is handed over: text is cut, what comes with it is not.
fn bytes_of(outcome: &Outcome, limit: OutputLimit) -> u64 {
    let text = outcome.output.len().min(limit.bytes);
    let attached = outcome.attachments.iter().map(|one| {
        let (text, data) = (one.text.as_deref(), one.data.as_deref());
        text.map_or(0, str::len) + data.map_or(0, str::len)
    });
    (text + attached.sum::<usize>()) as u64
}

/// A call that was counted. When it ends, however it does, what it handed out is counted too; one that never started is
/// given back.
struct Counted<'a> {
    counters: &'a dyn Counters,
    steps: CounterSteps,
    at_ms: u64,
    started: Arc<AtomicBool>,
    bytes: u64,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let (at_ms, bytes) = (self.at_ms, self.bytes);
        let started = self.started.load(Ordering::Relaxed);
        let after = self.steps.iter().filter_map(|(key, step)| {
            let step = match step {
                _ if !started => step.undone(at_ms)?,
                CounterStep::Call {
                    bytes_per_day: Some(_),
                    ..
                } if bytes > 0 => CounterStep::Bytes(bytes),
                _ => return None,
            };
            Some((key.clone(), step))
        });
        let after: CounterSteps = after.collect();
        if !after.is_empty() {
            self.counters.tell(after);
        }
    }
}

#[cfg(test)]
#[path = "count_tests.rs"]
mod tests;
