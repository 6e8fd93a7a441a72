//! Calls that run now, by the id of their record: whoever began one, or manages the crib, can stop it from elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use toolcrib_core::{CallError, Caller, ErrorCode};

use super::auth::Who;

/// Cheap to clone.
#[derive(Clone, Default)]
pub struct RunningCalls(Arc<Mutex<HashMap<Arc<str>, RunningCall>>>);

struct RunningCall {
    /// The token that began it, where one was shown.
    token: Option<Arc<str>>,
    stop: CancellationToken,
}

/// One call in the list, until this is dropped.
pub struct Listed {
    calls: RunningCalls,
    id: Arc<str>,
    /// Fires when somebody stops the call.
    pub stop: CancellationToken,
}

impl RunningCalls {
    /// Lists a call until the answer of this is dropped.
    pub fn list(&self, id: &Arc<str>, caller: &Caller) -> Listed {
        let stop = CancellationToken::new();
        let call = RunningCall {
            token: caller.token.clone(),
            stop: stop.clone(),
        };
        self.lock().insert(id.clone(), call);
        Listed {
            calls: self.clone(),
            id: id.clone(),
            stop,
        }
    }

    /// Stops the call of this id. One that is not theirs is not there for them.
    pub fn stop(&self, id: &str, who: &Who) -> Result<(), CallError> {
        let calls = self.lock();
        let theirs = |call: &&RunningCall| {
            let own = call.token.is_some() && call.token.as_ref() == who.token_id();
            own || who.keeps()
        };
        match calls.get(id).filter(theirs) {
            Some(call) => {
                call.stop.cancel();
                Ok(())
            }
            None => Err(
                CallError::new(ErrorCode::NotFound, "no such call is running").hint(
                    "`GET /api/calls/{id}` tells how a call ended, within a second of its end",
                ),
            ),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, RunningCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}

/// What whoever waits for a call reads that was stopped from elsewhere.
pub fn stopped(tool: &str) -> CallError {
    CallError::new(
        ErrorCode::Denied,
        format!("the call of `{tool}` was cancelled by somebody who may do so"),
    )
    .hint("don't repeat it unless you are asked to")
}
