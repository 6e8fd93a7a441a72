//! Hides what the crib handed to a tool in all that the tool gives: outcome, error and progress. Arguments that hold
//! such a value are covered before anybody writes them down.

use std::sync::Arc;

use super::{Always, Middleware, Next};
use crate::mask::{Hidden, Mask};
use crate::profile::ChainSettings;
use crate::{Block, BoxFuture, Call, CallError, CallResult, Outcome, Progress};

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

fn cover_outcome(mask: &Mask, outcome: &mut Outcome) {
    if mask.is_empty() {
        return;
    }
    if let Some(title) = &mut outcome.title {
        mask.cover(title);
    }
    match &mut outcome.structured {
        Some(data) => {
            // The text of data is its JSON, and stays so.
            let is_its_text = outcome.output == data.compact();
            mask.cover_json(data);
            match is_its_text {
                true => outcome.output = data.compact().into_owned(),
                false => mask.cover(&mut outcome.output),
            }
        }
        None => mask.cover(&mut outcome.output),
    }
    mask.cover_object(&mut outcome.metadata);
    if let Some(content) = &mut outcome.content {
        let blocks = content.blocks.iter_mut().map(Block::object_mut);
        blocks.for_each(|block| mask.cover_block(block));
        let beside = content.meta.as_mut().into_iter().chain([&mut content.rest]);
        beside.for_each(|object| mask.cover_object(object));
    }
    for attachment in &mut outcome.attachments {
        mask.cover(&mut attachment.mime_type);
        let texts = [&mut attachment.text, &mut attachment.name];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| mask.cover(text));
        if let Some(data) = &mut attachment.data {
            mask.cover_base64(data);
        }
    }
}

fn cover_error(mask: &Mask, error: &mut CallError) {
    mask.cover(&mut error.message);
    if let Some(hint) = &mut error.hint {
        hint.edit(|text| mask.cover(text));
    }
    if let Some(data) = &mut error.data {
        mask.cover_value(data);
    }
}

fn cover_progress(mask: &Mask, progress: &mut Progress) {
    let texts = [&mut progress.title, &mut progress.message];
    texts
        .into_iter()
        .flatten()
        .for_each(|text| mask.cover(text));
    mask.cover_map(&mut progress.data);
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
