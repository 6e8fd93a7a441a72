//! `file-reader`: a file of the project as text, whole or a range of lines, streamed so that size does not matter.

use std::io::{self, Read};
use std::sync::Arc;
use toolcrib_core::words::counted;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolcrib_core::{
    Attachment, AttachmentKind, BoxFuture, Call, CallError, CallResult, Outcome, Run,
};

use super::{Builtin, Effects, Switch, number, project, text};
use crate::Place;
use crate::beneath::{self, Opened};

/// The most of a file that is held at once.
const MAX_HELD: usize = 10 * 1_024 * 1_024;
/// The largest file that is attached where it is not text.
const MAX_ATTACHED: usize = 5_000_000;

struct FileReader {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "file-reader",
        title: "File reader",
        description: "Read a file of the project as text, whole or a range of lines.",
        parameters: json!({
            "path": {"type": "string", "minLength": 1, "description": "The file, starting at the project's root."},
            "startLine": {"type": "integer", "minimum": 1, "description": "First line to read; 1 is the file's first."},
            "endLine": {"type": "integer", "minimum": 1, "description": "Last line to read, itself included."},
        }),
        required: &["path"],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(FileReader {
            place: place.clone(),
        }),
    }
}

impl Run for FileReader {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.read(call))
    }
}

/// Lines from `first` to `last`, both included, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub first: u64,
    pub last: u64,
    /// Did who calls name lines?
    pub asked: bool,
}

impl FileReader {
    async fn read(&self, call: &Call) -> CallResult {
        let project = project(&self.place)?;
        let path = beneath::relative_to(project, text(call, "path").unwrap_or_default());
        let (start, end) = (number(call, "startLine"), number(call, "endLine"));
        let asked = start.is_some() || end.is_some();
        let range = Range {
            first: start.unwrap_or(1),
            last: end.unwrap_or(u64::MAX),
            asked,
        };
        if range.last < range.first {
            let message = format!(
                "endLine {} comes before startLine {}",
                range.last, range.first
            );
            return Err(
                CallError::invalid(message).hint("give endLine a line at or after startLine")
            );
        }
        let (project, code) = (project.to_path_buf(), self.place.code.clone());
        let cancel = call.context.cancel.clone();
        // Dropping this future does not stop the thread; the token does.
        let work = tokio::task::spawn_blocking(move || {
            let opened = beneath::open(&project, &path)?;
            code.check_read(&project, &opened.file, &path)?;
            answer(opened, &path, range, || cancel.is_cancelled())
        });
        work.await
            .map_err(|error| CallError::internal(format!("reading the file failed: {error}")))?
    }
}

fn answer(opened: Opened, path: &str, range: Range, given_up: impl Fn() -> bool) -> CallResult {
    let Opened { file, size } = opened;
    let Excerpt {
        bytes,
        total_lines,
        cut,
    } = excerpt(file, range, given_up).map_err(|error| {
        CallError::unavailable(format!("`{path}` could not be read to its end: {error}"))
    })?;
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // The cut may go through a character; that is not the file's fault.
        Err(error) if cut && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).unwrap_or_default()
        }
        Err(error) => return attach(error.into_bytes(), path, range, cut),
    };
    if cut && let Some(end) = text.rfind('\n') {
        text.truncate(end + 1);
    }
    let lines = text.lines().count() as u64;
    let end = lines
        .checked_sub(1)
        .map(|more| range.first.saturating_add(more));
    if cut {
        let next = range.first.saturating_add(lines);
        let lost = if text.ends_with('\n') {
            "the file goes on"
        } else {
            "the rest of this line was left out"
        };
        text.push_str(&format!(
            "\n[{lost}: at most {MAX_HELD} bytes are read at once; read on with startLine {next}]"
        ));
    }
    let outcome = Outcome::text(text)
        .title(path)
        .meta("path", path)
        .meta("bytes", size)
        .meta("startLine", range.first)
        .meta("endLine", end);
    Ok(match total_lines {
        Some(total) => outcome.meta("totalLines", total),
        None => outcome,
    })
}

/// What is not text goes along as it is.
fn attach(bytes: Vec<u8>, path: &str, range: Range, cut: bool) -> CallResult {
    if range.asked {
        return Err(
            CallError::invalid(format!("these lines of `{path}` are not UTF-8 text"))
                .hint("leave startLine and endLine out to get the file as an attachment"),
        );
    }
    if cut || bytes.len() > MAX_ATTACHED {
        let message = format!(
            "`{path}` is not UTF-8 text, and larger than the {MAX_ATTACHED} bytes that can be attached"
        );
        return Err(
            CallError::invalid(message).hint("make a smaller file or a text out of it first")
        );
    }
    let attachment = Attachment {
        kind: AttachmentKind::File,
        mime_type: "application/octet-stream".to_owned(),
        text: None,
        data: Some(STANDARD.encode(&bytes)),
        name: path.rsplit('/').next().map(str::to_owned),
    };
    let mut outcome = Outcome::text(format!(
        "`{path}` is not UTF-8 text; {} attached",
        counted(bytes.len(), "byte")
    ))
    .title(path)
    .meta("path", path)
    .meta("bytes", bytes.len());
    outcome.attachments.push(attachment);
    Ok(outcome)
}

/// The lines that were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub bytes: Vec<u8>,
    /// Known when the end of the file was seen.
    pub total_lines: Option<u64>,
    /// There was more than may be held.
    pub cut: bool,
}

pub(super) fn excerpt(
    mut file: impl Read,
    range: Range,
    given_up: impl Fn() -> bool,
) -> io::Result<Excerpt> {
    let mut buffer = vec![0; 64 * 1_024];
    let mut bytes = Vec::new();
    // The line that the next byte belongs to, and whether it has begun.
    let (mut line, mut begun) = (1_u64, false);
    loop {
        if given_up() {
            return Err(io::Error::other("the call was given up"));
        }
        let mut rest = match file.read(&mut buffer) {
            Ok(0) => {
                return Ok(Excerpt {
                    bytes,
                    total_lines: Some(line - u64::from(!begun)),
                    cut: false,
                });
            }
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        while !rest.is_empty() {
            if line > range.last {
                return Ok(Excerpt {
                    bytes,
                    total_lines: None,
                    cut: false,
                });
            }
            let newline = rest.iter().position(|byte| *byte == b'\n');
            let (piece, after) = rest.split_at(newline.map_or(rest.len(), |at| at + 1));
            if line >= range.first {
                let room = MAX_HELD - bytes.len();
                bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                if piece.len() > room {
                    return Ok(Excerpt {
                        bytes,
                        total_lines: None,
                        cut: true,
                    });
                }
            }
            begun = newline.is_none();
            line += u64::from(newline.is_some());
            rest = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, first: u64, last: u64) -> (String, Option<u64>) {
        let excerpt = excerpt(
            text.as_bytes(),
            Range {
                first,
                last,
                asked: true,
            },
            || false,
        )
        .unwrap();
        (
            String::from_utf8(excerpt.bytes).unwrap(),
            excerpt.total_lines,
        )
    }

    #[test]
    fn ranges_hold_both_ends() {
        let text = "a\nb\r\nc\nd";
        assert_eq!(lines(text, 1, u64::MAX), (text.into(), Some(4)));
        assert_eq!(lines(text, 2, 3), ("b\r\nc\n".into(), None));
        assert_eq!(lines(text, 4, 9), ("d".into(), Some(4)));
        assert_eq!(lines(text, 5, 9), (String::new(), Some(4)));
        assert_eq!(lines("a\n", 2, 2), (String::new(), Some(1)));
        assert_eq!(lines("", 1, 1), (String::new(), Some(0)));
    }

    #[test]
    fn no_more_is_held_than_allowed() {
        let endless = io::repeat(b'x');
        let range = Range {
            first: 1,
            last: 1,
            asked: true,
        };
        let excerpt = excerpt(endless, range, || false).unwrap();
        assert!(excerpt.cut && excerpt.bytes.len() == MAX_HELD);
    }

    #[test]
    fn a_call_that_was_given_up_stops_reading() {
        let range = Range {
            first: 2,
            last: 2,
            asked: true,
        };
        assert!(excerpt(io::repeat(b'x'), range, || true).is_err());
    }
}
