//! Hides what the crib handed to a tool in all that the tool gives: outcome, error and progress. Arguments that hold
//! such a value are covered before anybody writes them down.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::cover::{Cover, cover_error, cover_outcome, cover_progress};
use super::{Always, Middleware, Next};
use crate::mask::{Hidden, Mask};
use crate::profile::ChainSettings;
use crate::{BoxFuture, Call, CallResult, Json, Object};

pub(super) struct Redact;

impl Always for Redact {
    fn of(_: &ChainSettings) -> Redact {
        Redact
    }
}

impl Middleware for Redact {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let Some(hidden) = call.tool.run.hidden(&call.tool) else {
            return next.run(call);
        };
        Box::pin(async move {
            let known = hidden.clone();
            call.context.filter_progress(Arc::new(move |mut progress| {
                cover_progress(&known.mask(), &mut progress);
                progress
            }));
            let covered = Covered { call, hidden };
            let result = next.run(covered.call).await;
            // What was handed over is known for sure only now.
            let mask = covered.hidden.mask();
            drop(covered);
            match result {
                Ok(mut outcome) => {
                    cover_outcome(&mask, &mut outcome);
                    Ok(outcome)
                }
                Err(mut error) => {
                    cover_error(&mask, &mut error);
                    Err(error)
                }
            }
        })
    }
}

/// Covers the arguments when the call is over, given up or not: the links outside see them no other way.
struct Covered<'a> {
    call: &'a mut Call,
    hidden: Hidden,
}

impl Drop for Covered<'_> {
    fn drop(&mut self) {
        self.hidden.mask().cover_object(&mut self.call.arguments);
    }
}

impl Cover for Mask {
    fn is_idle(&self) -> bool {
        self.is_empty()
    }

    fn text(&self, text: &mut String) {
        self.cover(text);
    }

    fn json(&self, json: &mut Json) {
        self.cover_json(json);
    }

    fn object(&self, object: &mut Object) {
        self.cover_object(object);
    }

    fn block(&self, block: &mut Object) {
        self.cover_block(block);
    }

    fn base64(&self, data: &mut String) {
        self.cover_base64(data);
    }

    fn value(&self, value: &mut Value) {
        self.cover_value(value);
    }

    fn map(&self, map: &mut Map<String, Value>) {
        self.cover_map(map);
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
