//! `read-file`: lines of a file with their numbers; what is no text is attached.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use toolcrib_core::words::counted;
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, ErrorCode, Outcome, Run};

use super::file_reader::{Excerpt, Range, excerpt};
use super::near::near;
use super::{Builtin, Effects, Switch, number, off_the_runtime, project, text};
use crate::Place;
use crate::beneath::{self, Opened};
use crate::plugin::{attachment, mime_of};

/// Lines that are read where nobody says how many, and at most.
const DEFAULT_LINES: u64 = 2_000;
const MAX_LINES: u64 = 10_000;
/// Of a longer line the rest is left out.
const LONGEST_LINE: usize = 2_000;
/// The largest file that is attached where it is not text.
const MAX_ATTACHED: u64 = 5_000_000;
/// How much of a file tells whether it is text.
const BEGINNING: u64 = 8_192;

struct ReadFile {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "read-file",
        title: "Read file",
        description: "Read a file of the project with line numbers; images and other binaries come attached.",
        parameters: json!({
            "path": {"type": "string", "minLength": 1, "description": "The file, starting at the project's root."},
            "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "The line to start at; 1 is the first."},
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MAX_LINES, "default": DEFAULT_LINES,
                "description": "How many lines to read at most.",
            },
        }),
        required: &["path"],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(ReadFile {
            place: place.clone(),
        }),
    }
}

impl Run for ReadFile {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.read(call))
    }
}

impl ReadFile {
    async fn read(&self, call: &Call) -> CallResult {
        let project = project(&self.place)?.to_path_buf();
        let path = beneath::relative_to(&project, text(call, "path").unwrap_or_default());
        let first = number(call, "offset").unwrap_or(1);
        let limit = number(call, "limit")
            .unwrap_or(DEFAULT_LINES)
            .min(MAX_LINES);
        let range = Range {
            first,
            last: first.saturating_add(limit - 1),
            asked: first > 1,
        };
        let (code, cancel) = (self.place.code.clone(), call.context.cancel.clone());
        off_the_runtime(move || {
            let opened =
                beneath::open(&project, &path).map_err(|error| told(error, &project, &path))?;
            code.check_read(&project, &opened.file, &path)?;
            answer(opened, &path, range, || cancel.is_cancelled())
        })
        .await
    }
}

/// A path that leads to no file gets a word on what is near.
fn told(error: CallError, project: &Path, path: &str) -> CallError {
    match error.code {
        ErrorCode::InvalidArguments => match near(project, path) {
            Some(near) => error.hint(near),
            None => error,
        },
        _ => error,
    }
}

fn answer(opened: Opened, path: &str, range: Range, given_up: impl Fn() -> bool) -> CallResult {
    let Opened { mut file, size } = opened;
    let unread = |error: std::io::Error| {
        CallError::unavailable(format!("`{path}` could not be read: {error}"))
    };
    let mut beginning = Vec::new();
    (&mut file)
        .take(BEGINNING)
        .read_to_end(&mut beginning)
        .map_err(unread)?;
    file.seek(SeekFrom::Start(0)).map_err(unread)?;
    if beginning.contains(&0) || image(&beginning).is_some() {
        return attach(file, size, path, range);
    }
    let excerpt = excerpt(&mut file, range, given_up).map_err(unread)?;
    let Ok(text) = valid(&excerpt) else {
        file.seek(SeekFrom::Start(0)).map_err(unread)?;
        return attach(file, size, path, range);
    };
    let (output, lines) = numbered(text, range.first);
    let end = lines.checked_sub(1).map(|more| range.first + more);
    let outcome = Outcome::text(output)
        .title(format!("Read {path}"))
        .meta("path", path)
        .meta("bytes", size)
        .meta("startLine", range.first)
        .meta("endLine", end);
    Ok(match excerpt.total_lines {
        Some(total) if total < range.first && total > 0 => {
            let mut outcome = outcome.meta("totalLines", total);
            outcome.output = format!("[`{path}` ends at line {total}]");
            outcome
        }
        Some(total) => outcome.meta("totalLines", total),
        None => {
            let next = range.first + lines;
            let mut outcome = outcome.meta("nextOffset", next);
            outcome
                .output
                .push_str(&format!("[the file goes on: read on with offset {next}]\n"));
            outcome
        }
    })
}

/// The text of an excerpt, whose end may be cut through a character.
fn valid(excerpt: &Excerpt) -> Result<&str, std::str::Utf8Error> {
    match std::str::from_utf8(&excerpt.bytes) {
        Err(error) if excerpt.cut && error.error_len().is_none() => {
            std::str::from_utf8(&excerpt.bytes[..error.valid_up_to()])
        }
        other => other,
    }
}

/// The lines with their numbers, and how many there are.
fn numbered(text: &str, first: u64) -> (String, u64) {
    let mut output = String::with_capacity(text.len() + text.len() / 4);
    let mut count = 0;
    for line in text.lines() {
        let number = first + count;
        let shown = match line.char_indices().nth(LONGEST_LINE) {
            None => line.to_owned(),
            Some((end, _)) => {
                let left = counted(line.len() - end, "byte");
                format!("{} [… {left} left out]", &line[..end])
            }
        };
        output.push_str(&format!("{number:>6}\t{shown}\n"));
        count += 1;
    }
    (output, count)
}

/// What is not text goes along as it is.
fn attach(file: std::fs::File, size: u64, path: &str, range: Range) -> CallResult {
    if range.asked {
        return Err(
            CallError::invalid(format!("`{path}` is not UTF-8 text, so it has no lines"))
                .hint("leave `offset` out to get the file as an attachment"),
        );
    }
    let too_large = || {
        CallError::invalid(format!(
            "`{path}` is not UTF-8 text, and larger than the {MAX_ATTACHED} bytes that can be attached"
        ))
        .hint("make a smaller file or a text out of it first")
    };
    if size > MAX_ATTACHED {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(MAX_ATTACHED + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CallError::unavailable(format!("`{path}` could not be read: {error}")))?;
    if bytes.len() as u64 > MAX_ATTACHED {
        return Err(too_large());
    }
    let mime = image(&bytes).unwrap_or_else(|| mime_of(path));
    let name = path.rsplit('/').next();
    let size = counted(bytes.len(), "byte");
    let mut outcome = Outcome::text(format!("`{path}` is not text; {size} attached as {mime}"))
        .title(format!("Read {path}"))
        .meta("path", path)
        .meta("bytes", bytes.len());
    outcome.attachments.push(attachment(mime, &bytes, name));
    Ok(outcome)
}

/// The kind of an image, by how it begins: clients show what they are told is one.
fn image(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_long_ones_cut() {
        assert_eq!(numbered("a\nb\n", 9), ("     9\ta\n    10\tb\n".into(), 2));
        assert_eq!(numbered("", 1), (String::new(), 0));
        let (output, count) = numbered(&"ä".repeat(LONGEST_LINE + 5), 1);
        assert!(count == 1 && output.ends_with("ä [… 10 bytes left out]\n"));
    }
}
