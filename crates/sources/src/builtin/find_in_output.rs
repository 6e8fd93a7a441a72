//! Finding something in a kept output without handing over the whole: lines by a pattern, a part of JSON by a pointer.

use regex::{Regex, RegexBuilder};
use serde_json::json;
use toolcrib_core::preview::of_json;
use toolcrib_core::{CallError, CallResult, Json, Outcome, OutputId, OutputLimit, Outputs};

/// So much is read at once.
const CHUNK: usize = 1_024 * 1_024;
/// A line that is longer is looked at in pieces.
const MAX_LINE: usize = 256 * 1_024;
/// So many lines are shown at once.
const MAX_SHOWN: usize = 40;
/// So much of a line, around what was found.
const AROUND: usize = 120;
/// A larger pattern is refused.
const MAX_PATTERN: usize = 1_000;
const MAX_COMPILED: usize = 1_024 * 1_024;
/// JSON is looked into up to this size.
const MAX_JSON: u64 = 128 * 1_024 * 1_024;

/// A kept output of somebody.
pub(super) struct Kept<'a> {
    pub outputs: &'a dyn Outputs,
    pub owner: &'a str,
    pub id: &'a OutputId,
}

/// The lines that a pattern matches, from an offset on, with their numbers and where they begin.
pub(super) async fn lines(
    kept: &Kept<'_>,
    pattern: &str,
    from: u64,
    room: OutputLimit,
) -> CallResult {
    let pattern = compile(pattern)?;
    let mut search = Search {
        pattern,
        shown: String::new(),
        found: 0,
        line: 0,
        left: MAX_SHOWN.min(room.lines.saturating_sub(2)),
        room: room.bytes,
        next: None,
    };
    let (mut at, mut total) = (from, u64::MAX);
    let mut unfinished: Vec<u8> = Vec::new();
    let mut line_at = from;
    while at < total {
        let page = kept.outputs.read(kept.owner, kept.id, at, CHUNK).await;
        let page = page.map_err(super::read_output::unread)?;
        total = page.total;
        if page.bytes.is_empty() {
            break;
        }
        at += page.bytes.len() as u64;
        let mut rest = page.bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            unfinished.extend_from_slice(&rest[..end]);
            search.look(&unfinished, line_at, true);
            line_at += unfinished.len() as u64 + 1;
            unfinished.clear();
            rest = &rest[end + 1..];
        }
        unfinished.extend_from_slice(rest);
        if unfinished.len() > MAX_LINE {
            search.look(&unfinished, line_at, false);
            line_at += unfinished.len() as u64;
            unfinished.clear();
        }
        tokio::task::yield_now().await;
    }
    if !unfinished.is_empty() {
        search.look(&unfinished, line_at, true);
    }
    Ok(search.told(kept.id, total))
}

fn compile(pattern: &str) -> Result<Regex, CallError> {
    let refused = |reason: String| {
        CallError::invalid(format!("`pattern` can't be used: {reason}"))
            .hint("it is a regular expression, such as `error|failed`; `(?i)` at its beginning ignores case")
    };
    if pattern.is_empty() || pattern.len() > MAX_PATTERN {
        return Err(refused(format!("it has 1 to {MAX_PATTERN} bytes")));
    }
    let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).build();
    built.map_err(|error| {
        refused(
            error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned(),
        )
    })
}

/// What was found so far.
struct Search {
    pattern: Regex,
    shown: String,
    found: usize,
    line: usize,
    left: usize,
    room: usize,
    /// Where the first line begins that is not shown any more.
    next: Option<u64>,
}

impl Search {
    fn look(&mut self, bytes: &[u8], at: u64, ends: bool) {
        let number = self.line + 1;
        self.line += usize::from(ends);
        let text = String::from_utf8_lossy(bytes);
        let Some(found) = self.pattern.find(&text) else {
            return;
        };
        self.found += 1;
        let start = text.floor_char_boundary(found.start().saturating_sub(AROUND));
        let end = text.floor_char_boundary(
            found
                .end()
                .saturating_add(AROUND)
                .min(found.start() + 4 * AROUND),
        );
        let (before, after) = (
            if start > 0 { "…" } else { "" },
            if end < text.len() { "…" } else { "" },
        );
        let told = format!(
            "{number} (offset {at}): {before}{}{after}\n",
            text[start..end].trim_end()
        );
        if self.left == 0 || self.shown.len() + told.len() > self.room {
            self.left = 0;
            self.next.get_or_insert(at);
            return;
        }
        self.left -= 1;
        self.shown.push_str(&told);
    }

    fn told(self, id: &OutputId, total: u64) -> Outcome {
        let Search {
            pattern,
            mut shown,
            found,
            next,
            ..
        } = self;
        if found == 0 {
            shown.push_str("no line matches");
        }
        if let Some(next) = next {
            let arguments = json!({"id": id.as_str(), "offset": next, "pattern": pattern.as_str()});
            shown.push_str(&format!(
                "[more: {found} lines match in all; call read-output with {arguments}]"
            ));
        }
        Outcome::text(shown.trim_end().to_owned())
            .title(format!("{found} lines match"))
            .meta("matches", found)
            .meta("nextOffset", next)
            .meta("totalBytes", total)
    }
}

/// The part of JSON that a pointer leads to: as it is, or in little where it is long.
pub(super) async fn part(kept: &Kept<'_>, pointer: &str, room: OutputLimit) -> CallResult {
    let mut bytes = Vec::new();
    let mut total = u64::MAX;
    while (bytes.len() as u64) < total {
        let page = kept
            .outputs
            .read(kept.owner, kept.id, bytes.len() as u64, CHUNK)
            .await;
        let page = page.map_err(super::read_output::unread)?;
        total = page.total;
        if total > MAX_JSON {
            return Err(CallError::invalid(format!(
                "the output has {total} bytes; a `pointer` reads up to {MAX_JSON}"
            ))
            .hint("`pattern` finds lines in outputs of any size"));
        }
        if page.bytes.is_empty() {
            break;
        }
        bytes.extend_from_slice(&page.bytes);
    }
    let text = String::from_utf8(bytes).map_err(|_| not_json("it is not UTF-8"))?;
    let data = Json::parse(&text).map_err(|error| not_json(&error.to_string()))?;
    drop(text);
    let found = data.pointer(pointer).ok_or_else(|| {
        let top = of_json(&data, OutputLimit::of(1_000, 3));
        CallError::invalid(format!("`pointer` leads nowhere: {top}"))
            .hint("it is a JSON pointer, such as `/items/0/name`; an empty one is the whole")
    })?;
    let text = found.compact();
    let is_whole = text.len() <= room.bytes;
    let shown = match is_whole {
        true => text.into_owned(),
        false => {
            let told = of_json(&found, room);
            format!(
                "{told}\n[too long to show at once: {} bytes; a longer pointer leads further in]",
                text.len()
            )
        }
    };
    Ok(Outcome::text(shown)
        .title(format!("part {pointer}"))
        .meta("whole", is_whole)
        .meta("totalBytes", total))
}

fn not_json(reason: &str) -> CallError {
    CallError::invalid(format!("the output is no JSON: {reason}"))
        .hint("leave `pointer` out; `pattern` finds lines of text")
}
