//! Repeats a call whose process died, where that can do nothing twice.
//!
//! Two kinds of calls are repeated: one that never reached the tool, and one of a tool that is read-only or idempotent.
//! The tool's `maxRetries` bounds the repetitions; a call that only met a worker at its end is repeated once in any
//! case. All attempts and the waits between them share the call's one deadline.

use tokio::time::Instant;

use super::{Always, Middleware, Next};
use crate::profile::ChainSettings;
use crate::{BoxFuture, Call, CallError, CallResult, ErrorCode};

pub(super) struct Retry;

impl Always for Retry {
    fn of(_: &ChainSettings) -> Retry {
        Retry
    }
}

impl Middleware for Retry {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let mut repetition = 0;
            loop {
                let error = match next.run(call).await {
                    Err(error) if repetition < repetitions(call, &error) => error,
                    result => return result,
                };
                // A worker that had ended before it was asked says nothing about the next one.
                let stale = error.code == ErrorCode::Crashed && error.unreached && repetition == 0;
                if !stale {
                    let again = Instant::now() + call.tool.spec.retries.delay_before(repetition);
                    if call.context.deadline.is_some_and(|end| again >= end) {
                        return Err(error);
                    }
                    let stopped = async {
                        match &call.context.stop {
                            Some(stop) => stop.cancelled().await,
                            None => std::future::pending().await,
                        }
                    };
                    tokio::select! {
                        biased;
                        // Nobody waits for a repetition any longer.
                        () = stopped => return Err(CallError::stopped(call.tool.name())),
                        () = tokio::time::sleep_until(again) => {}
                    }
                }
                repetition += 1;
                tracing::info!(tool = call.tool.name(), call = %call.context.call_id, repetition, "repeated");
            }
        })
    }
}

/// How often a call that ended like this may be repeated.
fn repetitions(call: &Call, error: &CallError) -> u32 {
    let spec = &call.tool.spec;
    match error.code {
        ErrorCode::Crashed if error.unreached => spec.retries.max.max(1),
        ErrorCode::Crashed if spec.annotations.repeatable() => spec.retries.max,
        ErrorCode::Unavailable if error.unreached => spec.retries.max,
        _ => 0,
    }
}
