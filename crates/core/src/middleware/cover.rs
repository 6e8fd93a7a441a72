//! Where texts are in outcomes, errors and progress: the links that hide something in them go one way.

use serde_json::{Map, Value};

use crate::{Block, CallError, Json, Object, Outcome, Progress};

/// Hides something in texts of any form.
pub trait Cover {
    /// There is nothing to hide.
    fn is_idle(&self) -> bool;

    fn text(&self, text: &mut String);

    fn json(&self, json: &mut Json);

    fn object(&self, object: &mut Object);

    /// A block of a result, whose bytes are written as base64.
    fn block(&self, block: &mut Object);

    /// Bytes that are written as base64.
    fn base64(&self, data: &mut String);

    fn value(&self, value: &mut Value);

    fn map(&self, map: &mut Map<String, Value>);
}

pub fn cover_outcome(cover: &impl Cover, outcome: &mut Outcome) {
    if cover.is_idle() {
        return;
    }
    if let Some(title) = &mut outcome.title {
        cover.text(title);
    }
    match &mut outcome.structured {
        Some(data) => {
            // The text of data is its JSON, and stays so.
            let is_its_text = outcome.output == data.compact();
            cover.json(data);
            match is_its_text {
                true => outcome.output = data.compact().into_owned(),
                false => cover.text(&mut outcome.output),
            }
        }
        None => cover.text(&mut outcome.output),
    }
    cover.object(&mut outcome.metadata);
    if let Some(content) = &mut outcome.content {
        let blocks = content.blocks.iter_mut().map(Block::object_mut);
        blocks.for_each(|block| cover.block(block));
        let beside = content.meta.as_mut().into_iter().chain([&mut content.rest]);
        beside.for_each(|object| cover.object(object));
    }
    for attachment in &mut outcome.attachments {
        cover.text(&mut attachment.mime_type);
        let texts = [&mut attachment.text, &mut attachment.name];
        texts
            .into_iter()
            .flatten()
            .for_each(|text| cover.text(text));
        if let Some(data) = &mut attachment.data {
            cover.base64(data);
        }
    }
}

pub fn cover_error(cover: &impl Cover, error: &mut CallError) {
    cover.text(&mut error.message);
    if let Some(hint) = &mut error.hint {
        hint.edit(|text| cover.text(text));
    }
    if let Some(data) = &mut error.data {
        cover.value(data);
    }
}

pub fn cover_progress(cover: &impl Cover, progress: &mut Progress) {
    let texts = [&mut progress.title, &mut progress.message];
    texts
        .into_iter()
        .flatten()
        .for_each(|text| cover.text(text));
    cover.map(&mut progress.data);
}
