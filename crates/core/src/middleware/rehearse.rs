//! Tries a tool that is in no catalog yet, for whoever decides whether it gets there.

use std::sync::Arc;
use std::time::Duration;

use super::{Always, Books, Middleware, Next, Shared, authorize, timeout, validate};
use crate::profile::ChainSettings;
use crate::{Call, CallError, CallResult, Caller, Context, ErrorCode, Object, Outputs, Tool};

/// One call through the links that judge it. It is no call of anybody's: it causes no event and no record, and what it
/// gives is for whoever asks alone.
pub async fn rehearse(
    tool: Arc<Tool>,
    arguments: Object,
    outputs: Arc<dyn Outputs>,
    limit: Duration,
) -> CallResult {
    let settings = ChainSettings::new(limit);
    let links: [Arc<dyn Middleware>; 3] = [
        Arc::new(authorize::Authorize::of(&settings)),
        Arc::new(validate::Validate::of(&settings)),
        Arc::new(timeout::Timeout::of(&settings)),
    ];
    let shared = Shared::new(outputs, || 0, Books::default());
    let mut call = Call {
        tool,
        arguments,
        caller: Caller::new("examples"),
        context: Context::new("example"),
    };
    let work = Next::new(&links, &shared).run(&mut call);
    // A tool may allow itself more; who waits for a save does not.
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(CallError::new(
            ErrorCode::TimedOut,
            format!("it took longer than {} s", limit.as_secs()),
        )),
    }
}
