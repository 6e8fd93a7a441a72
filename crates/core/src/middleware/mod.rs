//! The chain that every call passes, on whatever surface it came.
//!
//! A new link is one file here and one line in [`standard`]. A link looks at the call on the way in, hands it to
//! [`Next`], and looks at the outcome on the way out. Cancelling a call drops the future: what must happen even
//! then belongs into a drop guard.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::{BoxFuture, Call, CallResult, Events, Outputs};

mod authorize;
mod record;
mod redact;
mod retry;
mod timeout;
mod trace;
mod trim;
mod validate;

pub(crate) use record::Record;
pub use trim::{MAX_BYTES, MAX_LINES};

/// One link of the chain.
pub trait Middleware: Send + Sync {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult>;
}

/// The rest of the chain, down to the tool itself.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    rest: &'a [Arc<dyn Middleware>],
}

impl<'a> Next<'a> {
    pub fn new(chain: &'a [Arc<dyn Middleware>]) -> Next<'a> {
        Next { rest: chain }
    }

    pub fn run<'b>(self, call: &'b mut Call) -> BoxFuture<'b, CallResult>
    where
        'a: 'b,
    {
        match self.rest.split_first() {
            Some((link, rest)) => link.handle(call, Next { rest }),
            None => Box::pin(async move {
                let run = call.tool.run.clone();
                run.run(call).await
            }),
        }
    }
}

/// What the links need from outside.
#[derive(Clone)]
pub(crate) struct Needs {
    pub events: Events,
    pub record: Record,
    pub outputs: Arc<dyn Outputs>,
    pub default_timeout_ms: Arc<AtomicU64>,
}

/// THE ORDER, outermost first. Links that later parts bring stand in it as comments, in their place:
/// all that `record` writes and `trim` keeps is already redacted, and a person approves validated arguments.
pub(crate) fn standard(needs: Needs) -> Arc<[Arc<dyn Middleware>]> {
    Arc::from([
        Arc::new(trace::Trace {
            events: needs.events,
        }) as Arc<dyn Middleware>,
        Arc::new(needs.record),
        Arc::new(authorize::Authorize),
        Arc::new(validate::Validate),
        Arc::new(trim::Trim {
            outputs: needs.outputs,
        }),
        Arc::new(redact::Redact),
        // limit · approve
        Arc::new(retry::Retry),
        Arc::new(timeout::Timeout {
            default_ms: needs.default_timeout_ms,
        }),
    ])
}
