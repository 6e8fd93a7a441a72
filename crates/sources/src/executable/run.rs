//! One call of an executable tool.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Outcome, Run, Standing};

use crate::worker::{Execute, Pool, answered};

/// A tool that a worker runs.
pub struct Executable {
    /// None where the program may not run.
    pub pool: Option<Arc<Pool>>,
    /// What the program calls it, where it has several.
    pub tool: Option<String>,
    /// The project.
    pub directory: Arc<Path>,
}

impl Run for Executable {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.execute(call))
    }

    fn standing(&self) -> Standing {
        self.pool
            .as_ref()
            .map(|pool| pool.standing())
            .unwrap_or_default()
    }

    fn check(&self) -> Option<BoxFuture<'_, Standing>> {
        let pool = self.pool.as_ref()?;
        Some(Box::pin(pool.check()))
    }
}

impl Executable {
    async fn execute(&self, call: &Call) -> CallResult {
        let name = call.tool.name();
        let Some(pool) = &self.pool else {
            return Err(CallError::denied(format!("`{name}` may not run")));
        };
        let params = Execute::new(call, &self.directory, self.tool.as_deref());
        let context = Some(call.context.clone());
        let (id, start) = (&call.context.call_id, Instant::now());
        tracing::debug!(tool = name, call = %id, "execute");
        let answer = pool.request("execute", params, context).await;
        if let Ok(answer) = &answer {
            let error = answer.as_ref().err().map(|error| error.message.as_str());
            let duration_ms = start.elapsed().as_secs_f64() * 1_000.0;
            tracing::debug!(tool = name, call = %id, duration_ms, error, "response");
        }
        match answer {
            Ok(Ok(value)) => Ok(Outcome::from_value(value)),
            Ok(Err(error)) => {
                pool.answered(&error);
                answered(error, name)
            }
            Err(fault) => Err(fault.into_call_error(name)),
        }
    }
}
