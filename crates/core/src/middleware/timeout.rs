//! Ends a call at its deadline, or when the crib stops: the work is dropped, which kills whatever process did it.

use std::time::Duration;

use tokio::time::Instant;

use super::{Always, Middleware, Next};
use crate::profile::ChainSettings;
use crate::{BoxFuture, Call, CallError, CallResult, ErrorCode};

/// No clock counts further.
const FOREVER: Duration = Duration::from_secs(u64::MAX / 1_000);

pub(super) struct Timeout {
    /// For tools that set no limit of their own.
    default: Duration,
}

impl Always for Timeout {
    fn of(settings: &ChainSettings) -> Timeout {
        Timeout {
            default: settings.default_timeout,
        }
    }
}

impl Middleware for Timeout {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let limit = call.tool.spec.time_limit(self.default);
            // A repetition runs within the deadline of the first attempt.
            let deadline = *call
                .context
                .deadline
                .get_or_insert_with(|| Instant::now() + limit.min(FOREVER));
            let name = call.tool.spec.name.clone();
            let source = call.tool.source;
            let ended = match call.context.stop.clone() {
                None => tokio::time::timeout_at(deadline, next.run(call)).await,
                Some(stop) => tokio::select! {
                    biased;
                    ended = tokio::time::timeout_at(deadline, next.run(call)) => ended,
                    () = stop.cancelled() => return Err(CallError::stopped(name.as_str())),
                },
            };
            match ended {
                Ok(result) => result,
                Err(_) => Err(CallError::new(
                    ErrorCode::TimedOut,
                    format!(
                        "tool `{name}` did not finish within {} ms and was stopped",
                        limit.as_millis()
                    ),
                )
                .hint(format!(
                    "ask for less at once, or raise the tool's `{}`",
                    source.timeout_option()
                ))),
            }
        })
    }
}
