//! The façade: all that any surface needs is here — tools, call, changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::middleware::{self, Middleware, Needs, Next};
use crate::registry::Clock;
use crate::{
    Call, CallError, CallResult, Caller, Catalog, Change, Context, ErrorCode, Event, Outputs,
    Registry, Teller, Update,
};

/// What a surface asks for.
#[derive(Debug, Clone)]
pub struct Request {
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub caller: Caller,
    pub context: Context,
}

pub struct Crib {
    registry: Registry,
    chain: Arc<[Arc<dyn Middleware>]>,
    events: Teller,
    outputs: Arc<dyn Outputs>,
    default_timeout_ms: Arc<AtomicU64>,
}

impl Crib {
    pub fn new(outputs: Arc<dyn Outputs>, clock: Clock, default_timeout: Duration) -> Crib {
        let events = Teller::default();
        let default_timeout_ms = Arc::new(AtomicU64::new(0));
        let needs = Needs {
            events: events.clone(),
            outputs: outputs.clone(),
            default_timeout_ms: default_timeout_ms.clone(),
        };
        let chain = middleware::standard(needs);
        let crib = Crib {
            registry: Registry::new(clock),
            chain,
            events,
            outputs,
            default_timeout_ms,
        };
        crib.set_default_timeout(default_timeout);
        crib
    }

    /// How long a call of a tool without a limit of its own may take, from the next call on.
    pub fn set_default_timeout(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.default_timeout_ms.store(limit, Ordering::Relaxed);
    }

    /// The tools as they stand now.
    pub fn tools(&self) -> Arc<Catalog> {
        self.registry.snapshot()
    }

    /// Runs one call through the chain. Dropping the future cancels the call.
    pub async fn call(&self, request: Request) -> CallResult {
        let catalog = self.tools();
        let Some(tool) = catalog.get(&request.tool) else {
            return Err(unknown_tool(&request.tool, &catalog));
        };
        let Request {
            arguments,
            caller,
            context,
            ..
        } = request;
        let given_up = context.cancel.clone().drop_guard();
        let mut call = Call {
            tool: tool.clone(),
            arguments,
            caller,
            context,
        };
        let result = Next::new(&self.chain).run(&mut call).await;
        if result.is_ok() {
            given_up.disarm();
        }
        result
    }

    /// Listens to what happens from now on.
    pub fn changes(&self) -> broadcast::Receiver<Event> {
        self.events.listen()
    }

    /// Where the parts of the crib tell what happens.
    pub fn events(&self) -> &Teller {
        &self.events
    }

    /// Kept outputs, for the surfaces that hand them out.
    pub fn outputs(&self) -> &Arc<dyn Outputs> {
        &self.outputs
    }

    /// Where sources bring what they found: the only way into the catalog.
    pub fn apply(&self, updates: Vec<Update>) -> Change {
        let change = self.registry.apply(updates);
        if change.tools_changed() {
            let Change {
                version,
                added,
                changed,
                removed,
                ..
            } = &change;
            let counts = (added.len(), changed.len(), removed.len());
            tracing::info!(
                version,
                added = counts.0,
                changed = counts.1,
                removed = counts.2,
                "tools_changed"
            );
            self.events
                .tell(Event::ToolsChanged(Arc::new(change.clone())));
        }
        for problem in &change.new_problems {
            let file = problem.file.as_ref().map(|file| file.display().to_string());
            tracing::warn!(
                file,
                problem = problem.message,
                hint = problem.hint,
                "tool_error"
            );
            self.events.tell(Event::ToolError(problem.clone()));
        }
        change
    }
}

/// The error for a name that no tool has, with the three nearest names.
pub fn unknown_tool(name: &str, catalog: &Catalog) -> CallError {
    let shown: String = name.chars().take(crate::tool::MAX_NAME).collect();
    let error = CallError::new(
        ErrorCode::UnknownTool,
        format!("there is no tool `{shown}`"),
    );
    match catalog.nearest(name).as_slice() {
        [] => error.hint("`toolcrib list` shows the tools there are"),
        near => error.hint(format!("did you mean `{}`?", near.join("`, `"))),
    }
}

#[cfg(test)]
#[path = "crib_tests.rs"]
mod tests;
