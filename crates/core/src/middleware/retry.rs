//! Repeats a call that failed, where that can do nothing twice: as the tool's `maxRetries` says, and as `tool_retry` does.
//!
//! Two kinds of calls are repeated: one that never reached the tool, and one of a tool that is read-only or idempotent
//! or that `tool_retry` names. The tool's `maxRetries` bounds the repetitions after a process died; a call that only met
//! a worker at its end is repeated once in any case. All attempts and the waits between them share the call's one
//! deadline.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::time::Instant;

use super::names::{Names, codes};
use super::{Always, Middleware, Next, Rule};
use crate::call::Deed;
use crate::error::STOPPED;
use crate::profile::ChainSettings;
use crate::{BoxFuture, Call, CallError, CallResult, ErrorCode};

/// Nobody waits longer between two attempts.
const LONGEST_SECONDS: f64 = 24.0 * 3_600.0;
/// How much of a delay chance adds or takes.
const JITTER: f64 = 0.25;

pub(super) struct Retry {
    rules: Vec<Arc<ToolRetry>>,
}

/// The parameters of `tool_retry`, in the seed's names, which are LangChain's.
#[derive(Deserialize)]
#[serde(try_from = "Parameters")]
pub(super) struct ToolRetry {
    max_retries: u32,
    delays: Delays,
    /// None for all that may be repeated.
    tools: Option<Vec<String>>,
    retry_on: Vec<ErrorCode>,
    on_failure: OnFailure,
}

/// In seconds.
struct Delays {
    initial: f64,
    factor: f64,
    longest: f64,
    jitter: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parameters {
    max_retries: Option<i64>,
    backoff_factor: Option<f64>,
    initial_delay: Option<f64>,
    max_delay: Option<f64>,
    jitter: Option<bool>,
    tools: Option<Names>,
    retry_on: Option<Names>,
    #[serde(default)]
    on_failure: OnFailure,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum OnFailure {
    /// The model reads how often it was tried.
    #[default]
    #[serde(alias = "return_message")]
    Continue,
    /// The last error stands as it is.
    #[serde(alias = "raise")]
    Error,
}

impl TryFrom<Parameters> for ToolRetry {
    type Error = String;

    fn try_from(parameters: Parameters) -> Result<ToolRetry, String> {
        let max_retries = parameters.max_retries.unwrap_or(2);
        let max_retries = u32::try_from(max_retries)
            .map_err(|_| "max_retries must be >= 0, and a count of calls".to_owned())?;
        let seconds = |name: &str, given: Option<f64>, default: f64| match given {
            Some(given) if given < 0.0 => Err(format!("{name} must be >= 0")),
            given => Ok(given.unwrap_or(default)),
        };
        let delays = Delays {
            initial: seconds("initial_delay", parameters.initial_delay, 1.0)?,
            longest: seconds("max_delay", parameters.max_delay, 60.0)?.min(LONGEST_SECONDS),
            factor: seconds("backoff_factor", parameters.backoff_factor, 2.0)?,
            jitter: parameters.jitter.unwrap_or(true),
        };
        let retry_on = match parameters.retry_on {
            Some(names) => codes(&names.into_vec())?,
            None => vec![
                ErrorCode::TimedOut,
                ErrorCode::Crashed,
                ErrorCode::Unavailable,
            ],
        };
        Ok(ToolRetry {
            max_retries,
            delays,
            tools: parameters.tools.map(Names::into_vec),
            retry_on,
            on_failure: parameters.on_failure,
        })
    }
}

impl Rule for ToolRetry {
    const NAME: &'static str = "tool_retry";
}

impl Always for Retry {
    fn of(settings: &ChainSettings) -> Retry {
        Retry {
            rules: settings.rules(),
        }
    }
}

impl Middleware for Retry {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let rule = self.rule_for(call.tool.name());
            let mut attempts = 0;
            loop {
                let error = match next.run(call).await {
                    Err(error) if !is_stop(&error) => error,
                    result => return result,
                };
                attempts += 1;
                let rule = rule.filter(|rule| rule.is_about(call, &error));
                let Some(again) = next_attempt(call, &error, rule, attempts) else {
                    return Err(match rule {
                        Some(rule) => rule.failed(call.tool.name(), error, attempts),
                        None => error,
                    });
                };
                if rule.is_some() {
                    call.context.mark(ToolRetry::NAME, Deed::Delayed);
                }
                wait_until(again, call).await?;
                tracing::info!(tool = call.tool.name(), call = %call.context.call_id, attempts, "repeated");
            }
        })
    }
}

/// Ends with the crib: nobody waits for a repetition any longer then.
async fn wait_until(again: Instant, call: &Call) -> Result<(), CallError> {
    let stopped = async {
        match &call.context.stop {
            Some(stop) => stop.cancelled().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = stopped => Err(CallError::stopped(call.tool.name())),
        () = tokio::time::sleep_until(again) => Ok(()),
    }
}

impl Retry {
    /// The one that names the tool, else the first for all tools.
    fn rule_for(&self, tool: &str) -> Option<&ToolRetry> {
        let rules = || self.rules.iter().map(|rule| &**rule);
        let named = rules().find(|rule| rule.names(tool));
        named.or_else(|| rules().find(|rule| rule.tools.is_none()))
    }
}

/// When the call is made again, if it is.
fn next_attempt(
    call: &Call,
    error: &CallError,
    rule: Option<&ToolRetry>,
    attempts: u32,
) -> Option<Instant> {
    let own = attempts <= repetitions(call, error);
    let listed = rule.filter(|rule| attempts <= rule.max_retries);
    // A worker that had ended before it was asked says nothing about the next one.
    let stale = error.code == ErrorCode::Crashed && error.unreached && attempts == 1;
    let wait = match listed {
        _ if stale => Duration::ZERO,
        Some(rule) => rule.delays.before(attempts - 1, chance()),
        None if own => call.tool.spec.retries.delay_before(attempts - 1),
        None => return None,
    };
    let again = Instant::now() + wait;
    let too_late = call.context.deadline.is_some_and(|end| again >= end);
    (!too_late).then_some(again)
}

/// How often a call that ended like this may be repeated by the tool's own word.
fn repetitions(call: &Call, error: &CallError) -> u32 {
    let spec = &call.tool.spec;
    match error.code {
        ErrorCode::Crashed if error.unreached => spec.retries.max.max(1),
        ErrorCode::Crashed if spec.annotations.repeatable() => spec.retries.max,
        ErrorCode::Unavailable if error.unreached => spec.retries.max,
        _ => 0,
    }
}

/// The crib itself ends, and nobody comes after.
fn is_stop(error: &CallError) -> bool {
    let data = error.data.as_deref();
    data.is_some_and(|data| data.get(STOPPED).is_some())
}

impl ToolRetry {
    fn names(&self, tool: &str) -> bool {
        let named = self.tools.iter().flatten();
        named.into_iter().any(|name| name == tool)
    }

    /// May a call that ended like this be repeated at all?
    fn is_about(&self, call: &Call, error: &CallError) -> bool {
        let once_more = error.unreached
            || call.tool.spec.annotations.repeatable()
            || self.names(call.tool.name());
        once_more && self.retry_on.contains(&error.code)
    }

    /// What the model reads at the end, in LangChain's words.
    fn failed(&self, tool: &str, error: CallError, attempts: u32) -> CallError {
        if self.on_failure == OnFailure::Error {
            return error;
        }
        let word = if attempts == 1 { "attempt" } else { "attempts" };
        let CallError { code, message, .. } = &error;
        let message = format!(
            "Tool '{tool}' failed after {attempts} {word} with {code}: {message}. Please try again."
        );
        CallError { message, ..error }
    }
}

impl Delays {
    /// The wait before the repetition with this number, counted from 0. `chance` is from 0 to 1.
    fn before(&self, repetition: u32, chance: f64) -> Duration {
        let exponent = i32::try_from(repetition).unwrap_or(i32::MAX);
        let grown = match self.factor {
            0.0 => self.initial,
            factor => self.initial * factor.powi(exponent),
        };
        let capped = grown.min(self.longest);
        let jitter = match self.jitter {
            true => capped * JITTER * (2.0 * chance - 1.0),
            false => 0.0,
        };
        // No less than nothing, and never more than the longest: many who wait so long would else come later still.
        Duration::from_secs_f64((capped + jitter).clamp(0.0, self.longest))
    }
}

/// From 0 to 1, another one each time.
fn chance() -> f64 {
    let drawn = RandomState::new().hash_one(0_u8);
    drawn as f64 / u64::MAX as f64
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
