//! A link that only tests have: it stops a tool after so many calls. One file and one line, parameters and state.

use std::collections::HashMap;
use std::sync::Mutex;

use serde::Deserialize;

use super::{Listed, Middleware, Next};
use crate::{BoxFuture, Call, CallError, CallResult, ErrorCode, ToolName};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ration {
    calls: u32,
    /// All tools, where none are named.
    #[serde(default)]
    tools: Vec<String>,
}

/// How often each tool was called.
#[derive(Default)]
struct Called(Mutex<HashMap<ToolName, u32>>);

impl Listed for Ration {
    const NAME: &'static str = "ration";
}

impl Middleware for Ration {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let name = &call.tool.spec.name;
        if !self.tools.is_empty() && !self.tools.iter().any(|tool| tool == name.as_str()) {
            return next.run(call);
        }
        let Called(called) = next.shared().state();
        let mut called = called.lock().unwrap();
        let count = called.entry(name.clone()).or_default();
        *count += 1;
        let left = *count <= self.calls;
        drop(called);
        if left {
            return next.run(call);
        }
        let error = CallError::new(ErrorCode::LimitReached, "no call is left");
        Box::pin(std::future::ready(Err(error)))
    }
}
