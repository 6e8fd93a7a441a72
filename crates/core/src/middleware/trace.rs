//! Tells everyone that a call began and how it ended, even when its caller went away in between.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Always, Middleware, Next};
use crate::event::Failure;
use crate::profile::ChainSettings;
use crate::{BoxFuture, Call, CallResult, Event, Events};

pub(super) struct Trace;

impl Always for Trace {
    fn of(_: &ChainSettings) -> Trace {
        Trace
    }
}

impl Middleware for Trace {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let events = &next.shared().events;
        Box::pin(async move {
            let mut ending = Ending {
                events,
                call_id: call.context.call_id.clone(),
                tool: call.tool.name().to_owned(),
                agent: call.caller.agent.clone(),
                start: Instant::now(),
                failure: Some(Failure::Cancelled),
            };
            tracing::debug!(tool = ending.tool, call = %ending.call_id, "tool.start");
            if events.is_heard() {
                events.tell(Event::ToolStart {
                    call_id: call.context.call_id.clone(),
                    tool: ending.tool.clone(),
                    client: call.caller.client.clone(),
                    agent: call.caller.agent.clone(),
                });
                pass_on_progress(call, events);
            }
            let result = next.run(call).await;
            ending.failure = match &result {
                Ok(outcome) if outcome.is_error => Some(Failure::Tool),
                Ok(_) => None,
                Err(error) => Some(Failure::Error(error.code)),
            };
            result
        })
    }
}

fn pass_on_progress(call: &mut Call, events: &Events) {
    let events = events.clone();
    let (call_id, tool) = (call.context.call_id.clone(), call.tool.name().to_owned());
    let agent = call.caller.agent.clone();
    call.context.add_progress(Arc::new(move |progress| {
        events.tell(Event::ToolProgress {
            call_id: call_id.clone(),
            tool: tool.clone(),
            agent: agent.clone(),
            progress,
        });
    }));
}

/// Speaks when it is dropped, so that a cancelled call ends like any other.
struct Ending<'a> {
    events: &'a Events,
    call_id: Arc<str>,
    tool: String,
    agent: Arc<str>,
    start: Instant,
    failure: Option<Failure>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let duration_ms = self.start.elapsed().as_secs_f64() * 1_000.0;
        let (call_id, tool) = (self.call_id.clone(), std::mem::take(&mut self.tool));
        let agent = self.agent.clone();
        let event = match self.failure {
            None => {
                tracing::debug!(tool, call = %call_id, duration_ms, "tool.complete");
                Event::ToolComplete {
                    call_id,
                    tool,
                    agent,
                    duration_ms,
                }
            }
            Some(failure) => {
                tracing::info!(tool, call = %call_id, duration_ms, error = failure.as_str(), "tool.failed");
                Event::ToolFailed {
                    call_id,
                    tool,
                    agent,
                    duration_ms,
                    failure,
                }
            }
        };
        self.events.tell(event);
    }
}
