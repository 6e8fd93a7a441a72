//! The façade: all that any surface needs is here — tools, call, changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast;

use crate::middleware::{self, Middleware, Needs, Next, Record};
use crate::registry::Clock;
use crate::store::CallBook;
use crate::{
    Call, CallError, CallResult, Caller, Catalog, Change, Context, ErrorCode, Event, Events,
    Object, Outputs, Registry, Update,
};

/// What a surface asks for.
#[derive(Debug, Clone)]
pub struct Request {
    pub tool: String,
    pub arguments: Object,
    pub caller: Caller,
    pub context: Context,
}

pub struct Crib {
    registry: Registry,
    chain: Arc<[Arc<dyn Middleware>]>,
    record: Record,
    events: Events,
    outputs: Arc<dyn Outputs>,
    default_timeout_ms: Arc<AtomicU64>,
}

/// What happens to a call that can't be written down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audit {
    /// It runs, and the loss is counted.
    #[default]
    BestEffort,
    /// It is refused.
    Required,
}

impl Crib {
    /// A crib that writes no call down.
    pub fn new(outputs: Arc<dyn Outputs>, clock: Clock, default_timeout: Duration) -> Crib {
        Crib::with_book(outputs, clock, default_timeout, None)
    }

    /// A crib whose calls are written into this book.
    pub fn with_book(
        outputs: Arc<dyn Outputs>,
        clock: Clock,
        default_timeout: Duration,
        book: Option<Arc<dyn CallBook>>,
    ) -> Crib {
        let events = Events::default();
        let default_timeout_ms = Arc::new(AtomicU64::new(0));
        let record = Record {
            book,
            clock,
            required: Arc::new(AtomicBool::new(false)),
        };
        let needs = Needs {
            record: record.clone(),
            events: events.clone(),
            outputs: outputs.clone(),
            default_timeout_ms: default_timeout_ms.clone(),
        };
        let chain = middleware::standard(needs);
        let crib = Crib {
            registry: Registry::new(clock),
            chain,
            record,
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

    /// Whether a call that can't be written down is refused, from the next call on.
    pub fn set_audit(&self, audit: Audit) {
        let required = audit == Audit::Required;
        self.record.required.store(required, Ordering::Relaxed);
    }

    /// The tools as they stand now.
    pub fn tools(&self) -> Arc<Catalog> {
        self.registry.snapshot()
    }

    /// Runs one call through the chain. Dropping the future cancels the call.
    pub async fn call(&self, request: Request) -> CallResult {
        let catalog = self.tools();
        let Request {
            tool: name,
            arguments,
            caller,
            context,
        } = request;
        let Some(tool) = catalog.get(&name) else {
            let error = unknown_tool(&name, &catalog);
            return Err(self.record.unknown(&name, &caller, &context, error).await);
        };
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
    pub fn events(&self) -> &Events {
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
    let broken = catalog.problems().iter().find(|problem| {
        let file = problem.file.as_deref();
        let stem = file.and_then(|file| file.file_stem()?.to_str());
        let folder = file.and_then(|file| file.parent()?.file_name()?.to_str());
        problem.severity == crate::Severity::Error
            && [problem.tool_name.as_deref(), stem, folder].contains(&Some(name))
    });
    if let Some(file) = broken.and_then(|problem| problem.file.as_ref()) {
        let told = format!(
            "`{}` did not load: `toolcrib errors` says why",
            file.display()
        );
        return error.hint(told);
    }
    match catalog.nearest(name).as_slice() {
        [] => error.hint("`toolcrib list` shows the tools there are"),
        near => error.hint(format!("did you mean `{}`?", near.join("`, `"))),
    }
}

#[cfg(test)]
#[path = "crib_tests.rs"]
mod tests;
