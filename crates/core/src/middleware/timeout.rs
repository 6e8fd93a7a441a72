//! Ends a call at its deadline: the work is dropped, which kills whatever process did it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::{Middleware, Next};
use crate::{BoxFuture, Call, CallError, CallResult, ErrorCode};

pub(super) struct Timeout {
    /// Milliseconds for tools that set no limit of their own; settings may change it while the crib runs.
    pub default_ms: Arc<AtomicU64>,
}

impl Middleware for Timeout {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let limit = call.tool.spec.time_limit(Duration::from_millis(
                self.default_ms.load(Ordering::Relaxed),
            ));
            // A repetition runs within the deadline of the first attempt.
            let deadline = *call
                .context
                .deadline
                .get_or_insert_with(|| Instant::now() + limit);
            let name = call.tool.spec.name.clone();
            match tokio::time::timeout_at(deadline, next.run(call)).await {
                Ok(result) => result,
                Err(_) => Err(CallError::new(
                    ErrorCode::TimedOut,
                    format!(
                        "tool `{name}` did not finish within {} ms and was stopped",
                        limit.as_millis()
                    ),
                )
                .hint("ask for less at once, or raise the tool's `timeoutMs`")),
            }
        })
    }
}
