//! A long output in a few hundred tokens: what it is, how much of it there is, and its most telling parts.
//!
//! Text in, text out. `trim` shows it in place of a beginning, `read-output` where a part is itself too long.

mod json;
mod text;

use crate::{Json, OutputLimit};

/// No preview is longer, however much a caller takes at once.
const MAX_BYTES: usize = 3_000;
const MAX_LINES: usize = 60;
/// No line of a preview is longer.
const MAX_LINE: usize = 200;

/// What there is of an output.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// Its beginning, or all of it.
    pub start: &'a str,
    /// Its end, where that is not in the beginning.
    pub end: Option<&'a str>,
    pub bytes: u64,
    pub lines: u64,
}

impl<'a> Sample<'a> {
    /// All of an output.
    pub fn of(text: &'a str) -> Sample<'a> {
        Sample {
            start: text,
            end: None,
            bytes: text.len() as u64,
            lines: crate::middleware::count_lines(text.as_bytes()),
        }
    }

    fn is_whole(&self) -> bool {
        self.end.is_none()
    }
}

/// A preview that fits into this.
pub fn preview(sample: Sample<'_>, room: OutputLimit) -> String {
    let trimmed = sample.start.trim_start();
    let data = (sample.is_whole() && trimmed.starts_with(['{', '[']))
        .then(|| Json::parse(trimmed).ok())
        .flatten();
    let made = match data {
        Some(data) => json::preview(&data),
        None => text::preview(sample),
    };
    bounded(&made, room.at_most(OutputLimit::of(MAX_BYTES, MAX_LINES)))
}

/// A preview of one piece of JSON.
pub fn of_json(data: &Json, room: OutputLimit) -> String {
    bounded(
        &json::preview(data),
        room.at_most(OutputLimit::of(MAX_BYTES, MAX_LINES)),
    )
}

/// As many lines as there is room for.
fn bounded(made: &str, room: OutputLimit) -> String {
    let mut text = String::new();
    for line in made.lines().take(room.lines) {
        if text.len() + line.len() + 1 > room.bytes {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text
}

/// A line, cut where it gets too long.
fn line(text: &str) -> String {
    let text = text.trim_end();
    match text.char_indices().nth(MAX_LINE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests;
