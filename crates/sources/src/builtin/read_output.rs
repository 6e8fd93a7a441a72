//! `read-output`: pages through an output that was too long to hand over at once.

use std::io;
use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{
    BoxFuture, Call, CallError, CallResult, Outcome, OutputId, OutputLimit, Page, Run,
};

use super::find_in_output::{self, Kept};
use super::{Builtin, Effects, Switch, number, text};
use crate::Place;

/// A page stays below what the chain cuts at for its caller, its last line included.
const MAX_LIMIT: usize = 1_000_000;
const DEFAULT_LIMIT: usize = 40_000;
/// What the line at a page's end may take.
const LAST_LINE: usize = 1_000;
/// The longest character of UTF-8.
const LONGEST: usize = 4;

struct ReadOutput {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "read-output",
        title: "Read output",
        description: "Read on in a long output that was truncated, page by page.",
        parameters: json!({
            "id": {"type": "string", "description": "The output's id, from the notice above the truncated text."},
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Where to begin, in bytes."},
            "pattern": {"type": "string", "description": "Only lines that this regular expression matches, from the offset on."},
            "pointer": {"type": "string", "description": "Only this part of an output that is JSON, such as `/items/0`."},
            "limit": {
                "type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT,
                "description": "How much to read at most, in bytes.",
            },
        }),
        required: &["id"],
        effects: Effects::Looks,
        switch: Switch::On,
        run: Arc::new(ReadOutput {
            place: place.clone(),
        }),
    }
}

impl Run for ReadOutput {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.read(call))
    }
}

impl ReadOutput {
    async fn read(&self, call: &Call) -> CallResult {
        let id = text(call, "id")
            .and_then(OutputId::parse)
            .ok_or_else(unknown)?;
        let offset = number(call, "offset").unwrap_or(0);
        let most = page_limit(call.context.output_limit);
        let limit = number(call, "limit").map_or(DEFAULT_LIMIT, |limit| {
            limit.clamp(1, MAX_LIMIT as u64) as usize
        });
        let limit = OutputLimit::of(limit.min(most.bytes), most.lines);
        let kept = Kept {
            outputs: self.place.outputs.as_ref(),
            owner: &call.caller.agent,
            id: &id,
        };
        match (text(call, "pattern"), text(call, "pointer")) {
            (Some(_), Some(_)) => {
                return Err(
                    CallError::invalid("`pattern` and `pointer` exclude each other")
                        .hint("give one of them"),
                );
            }
            (Some(pattern), None) => {
                return find_in_output::lines(&kept, pattern, offset, limit).await;
            }
            (None, Some(pointer)) => return find_in_output::part(&kept, pointer, limit).await,
            (None, None) => {}
        }
        // Room for a character that is skipped at the start, and one that is whole only beyond the limit.
        let page = self
            .place
            .outputs
            .read(&call.caller.agent, &id, offset, limit.bytes + 2 * LONGEST)
            .await;
        let page = page.map_err(unread)?;
        let Shown {
            start,
            end,
            mut text,
        } = show(&page, limit);
        let next = (end < page.total).then_some(end);
        if let Some(next) = next {
            let left = page.total - next;
            let arguments = json!({"id": id.as_str(), "offset": next});
            text.push_str(&format!(
                "\n[more: {left} of {} bytes left; call read-output with {arguments}]",
                page.total
            ));
        }
        Ok(Outcome::text(text)
            .title(format!("bytes {start} to {end} of {}", page.total))
            .meta("offset", start)
            .meta("nextOffset", next)
            .meta("totalBytes", page.total))
    }
}

/// What of a caller's limit a page may take.
fn page_limit(limit: OutputLimit) -> OutputLimit {
    let bytes = (limit.bytes - limit.bytes / 10).min(limit.bytes.saturating_sub(LAST_LINE));
    OutputLimit {
        bytes: bytes.max(LONGEST),
        lines: (limit.lines - limit.lines / 20).saturating_sub(1).max(1),
    }
}

/// Why an output can't be read.
pub(super) fn unread(error: io::Error) -> CallError {
    match error.kind() {
        io::ErrorKind::NotFound => unknown(),
        _ => CallError::unavailable(format!("the output could not be read: {error}"))
            .hint("call the tool that made it again"),
    }
}

/// One answer for unknown and foreign ids alike, so that nobody learns which ids there are.
fn unknown() -> CallError {
    CallError::invalid("no such output (kept for 24 hours)")
        .hint("take the id from the notice above the truncated text, or call the tool again")
}

/// The part of a page that is shown, on whole characters at both ends.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    start: u64,
    end: u64,
    text: String,
}

/// Takes as many characters as both limits allow, and one at least, so that paging always comes to its end.
/// Bytes that are no UTF-8 become `U+FFFD`; they count as what they become, so that the text stays in its limit.
fn show(page: &Page, limit: OutputLimit) -> Shown {
    let OutputLimit {
        bytes: limit,
        lines: most_lines,
    } = limit;
    let continues = |byte: &&u8| (0x80..0xC0).contains(*byte);
    let skipped = match page.offset {
        0 => 0,
        _ => page
            .bytes
            .iter()
            .take(LONGEST - 1)
            .take_while(continues)
            .count(),
    };
    let start = page.offset + skipped as u64;
    let bytes = &page.bytes[skipped..];
    let at_end = page.offset + page.bytes.len() as u64 >= page.total;
    let (mut text, mut taken, mut lines) = (String::new(), 0, 0);
    'all: for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if !text.is_empty()
                && (text.len() + character.len_utf8() > limit || lines == most_lines)
            {
                break 'all;
            }
            text.push(character);
            taken += character.len_utf8();
            lines += usize::from(character == '\n');
        }
        let broken = chunk.invalid().len();
        let unfinished = !at_end && taken + broken == bytes.len();
        let full =
            text.len() + char::REPLACEMENT_CHARACTER.len_utf8() > limit || lines == most_lines;
        if broken > 0 && !text.is_empty() && (unfinished || full) {
            break;
        }
        if broken > 0 {
            text.push(char::REPLACEMENT_CHARACTER);
            taken += broken;
        }
    }
    Shown {
        start,
        end: start + taken as u64,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> OutputLimit {
        OutputLimit::of(bytes, 1_900)
    }

    fn page(whole: &[u8], offset: usize, max: usize) -> Page {
        let from = offset.min(whole.len());
        let to = (from + max).min(whole.len());
        Page {
            offset: offset as u64,
            bytes: whole[from..to].to_vec(),
            total: whole.len() as u64,
        }
    }

    #[test]
    fn pages_join_to_the_whole_at_any_limit() {
        let whole = "aä€😀\nzß\n".repeat(20);
        for limit in 1..30 {
            let (mut joined, mut offset) = (String::new(), 0);
            while offset < whole.len() {
                let shown = show(
                    &page(whole.as_bytes(), offset, limit + 2 * LONGEST),
                    of(limit),
                );
                assert_eq!(shown.start, offset as u64);
                assert!(shown.end > shown.start && shown.text.len() <= limit.max(LONGEST));
                joined.push_str(&shown.text);
                offset = shown.end as usize;
            }
            assert_eq!(joined, whole, "limit {limit}");
        }
    }

    #[test]
    fn an_offset_inside_a_character_moves_forward() {
        let shown = show(&page("€x".as_bytes(), 1, 100), of(100));
        assert_eq!(
            shown,
            Shown {
                start: 3,
                end: 4,
                text: "x".into()
            }
        );
    }

    #[test]
    fn bytes_that_are_no_text_stay_in_the_limit_and_end() {
        let whole = [0xFF_u8; 1_000];
        let mut offset = 0;
        while offset < whole.len() {
            let shown = show(&page(&whole, offset, 108), of(100));
            assert!(shown.text.len() <= 100 && shown.end > offset as u64);
            offset = shown.end as usize;
        }
        let cut_short = "a€".as_bytes().split_last().unwrap().1.to_vec();
        assert_eq!(show(&page(&cut_short, 0, 100), of(100)).text, "a\u{fffd}");
    }

    #[test]
    fn beyond_the_end_is_empty() {
        let shown = show(&page(b"abc", 10, 100), of(100));
        assert_eq!((shown.text.as_str(), shown.end), ("", 10));
    }
}
