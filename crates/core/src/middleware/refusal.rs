//! What a caller reads when a limit refuses a call: which limit, and when to come again.

use serde_json::json;

use super::keys::in_words;
use crate::counter::{CallLimit, Exit, Refusal, rfc3339};
use crate::store::StoreError;
use crate::{CallError, ErrorCode};

/// How long who found all places taken does well to wait; nobody knows when one is free.
const PLACE_WAIT_MS: u64 = 1_000;

pub(super) fn refused(refusal: &Refusal, key: &str, now_ms: u64) -> CallError {
    let whose = in_words(key);
    match refusal {
        Refusal::CallsPerMinute { limit, wait_ms } => {
            let message = format!("{whose} may make {limit} calls a minute, and has made them");
            later(message, *wait_ms, now_ms)
        }
        Refusal::BytesPerDay { limit, wait_ms } => {
            let message =
                format!("{whose} may be handed {limit} bytes of output a day, and has been");
            later(message, *wait_ms, now_ms)
        }
        Refusal::Concurrency { limit } => {
            let message = format!("{whose} may have {limit} calls running at a time, and has");
            later(message, PLACE_WAIT_MS, now_ms)
        }
        Refusal::ToolCalls { limit, thread, run } => exceeded(limit, *thread, *run),
        Refusal::RunEnded => limit_reached(
            "This run has ended because a tool call limit was reached. Do not make additional tool calls.",
        )
        .hint("the next run begins anew; without a name of its own, after ten minutes without calls"),
    }
}

fn limit_reached(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::LimitReached, message).unreached()
}

/// Says when it helps to ask again.
fn later(message: String, wait_ms: u64, now_ms: u64) -> CallError {
    let at = rfc3339(now_ms.saturating_add(wait_ms));
    let seconds = wait_ms.div_ceil(1_000);
    limit_reached(message)
        .hint(format!("try again in {seconds} s, at {at}"))
        .data(json!({"retryAfterMs": wait_ms, "retryAt": at}))
}

/// LangChain's words: to the model that calls no more, or with the counts.
fn exceeded(limit: &CallLimit, thread: u64, run: u64) -> CallError {
    let tool = limit.tool.as_deref();
    let counts = counts(limit, thread, run);
    if limit.exit == Exit::Error {
        return limit_reached(counts);
    }
    let error = limit_reached(match tool {
        Some(tool) => format!("Tool call limit exceeded. Do not call '{tool}' again."),
        None => "Tool call limit exceeded. Do not make additional tool calls.".to_owned(),
    });
    match limit.exit {
        Exit::End => error.hint(format!("{counts} Every later call of this run is refused.")),
        Exit::Continue | Exit::Error => error,
    }
}

fn counts(limit: &CallLimit, thread: u64, run: u64) -> String {
    let what = match limit.tool.as_deref() {
        Some(tool) => format!("'{tool}' tool"),
        None => "Tool".to_owned(),
    };
    let over = |name: &str, count: u64, limit: Option<u64>| {
        let limit = limit.filter(|limit| count > *limit)?;
        Some(format!("{name} limit exceeded ({count}/{limit} calls)"))
    };
    let exceeded = [
        over("thread", thread, limit.thread),
        over("run", run, limit.run),
    ];
    let exceeded: Vec<String> = exceeded.into_iter().flatten().collect();
    format!("{what} call limit reached: {}.", exceeded.join(" and "))
}

/// What nobody can decide is refused.
pub(super) fn undecided(error: &StoreError) -> CallError {
    CallError::unavailable(format!("the limits of this call can't be decided: {error}"))
        .hint("try again when the store answers")
        .unreached()
}
