//! Bounds what reaches an agent: a long output is cut, kept whole for a day, and says how to read on.
//!
//! Why: `docs/design/0008-outputs.md`.

use std::io;
use std::sync::Arc;

use serde_json::json;

use super::fit::MAX_DATA;
use super::{Always, Middleware, Next, little};
use crate::outputs::Whole;
use crate::profile::ChainSettings;
use crate::{
    Block, BoxFuture, Call, CallError, CallResult, Object, Outcome, OutputLimit, OutputRules,
    Outputs, Progress,
};

/// What one notice may take of the limit; there is one above the text and one below.
pub(super) const NOTICE_BYTES: usize = 600;
/// A notice is a line of text and a blank one.
pub(super) const NOTICE_LINES: usize = 2;
const MAX_TITLE: usize = 200;
const MAX_METADATA: usize = 64 * 1_024;
const MAX_ATTACHMENTS: usize = 10 * 1_024 * 1_024;
const MAX_MESSAGE: usize = 10_000;

pub(super) struct Trim {
    output: OutputRules,
}

impl Always for Trim {
    fn of(settings: &ChainSettings) -> Trim {
        Trim {
            output: settings.output.clone(),
        }
    }
}

impl Middleware for Trim {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        let outputs = next.shared().outputs.as_ref();
        Box::pin(async move {
            let limit = self.output.limit(&call.caller);
            call.context.output_limit = limit;
            call.context.filter_progress(Arc::new(bound_progress));
            let mut result = next.run(call).await;
            match &mut result {
                Ok(outcome) => {
                    bound_extras(outcome);
                    let promised = call.tool.spec.output_schema.is_some();
                    let owner = &call.caller.agent;
                    // What fits, as most does, waits for nothing and is not moved.
                    match cut(outcome, limit) {
                        Some(cut) => {
                            let previews = self.output.previews(&call.caller);
                            let room = previews.then(|| little::room(limit));
                            keep(outputs, outcome, cut, promised, (owner, room)).await;
                        }
                        None if has_large_data(outcome) => {
                            keep_data(outputs, outcome, owner).await;
                        }
                        None => {}
                    }
                    remark(outcome);
                }
                Err(error) => bound_error(error),
            }
            result
        })
    }
}

/// Where the text is cut, and by which of the two limits.
#[derive(Debug, PartialEq, Eq)]
struct Cut {
    end: usize,
    by: Limit,
}

#[derive(Debug, PartialEq, Eq)]
enum Limit {
    Lines,
    Bytes(usize),
}

/// Decides whether and where a text must be cut, so that both limits hold for all that is handed over.
fn cut(outcome: &Outcome, limit: OutputLimit) -> Option<Cut> {
    let text = &outcome.output;
    let remark = outcome.remark.as_deref().unwrap_or_default();
    let (above, lines_above) = match remark.len() {
        0 => (0, 0),
        length => (length + 2, remark.lines().count() + 1),
    };
    let (bytes, lines) = (
        limit.bytes.saturating_sub(above),
        limit.lines.saturating_sub(lines_above),
    );
    let fits = outcome.whole.is_none()
        && !outcome.rest_is_lost
        && text.len() <= bytes
        && count_lines(text.as_bytes()) <= lines as u64;
    if fits {
        return None;
    }
    let line_end = text
        .bytes()
        .enumerate()
        .filter(|(_, b)| *b == b'\n')
        .nth(lines.saturating_sub(2 * NOTICE_LINES + 1));
    let by_lines = line_end.map_or(text.len(), |(at, _)| at);
    let by_bytes = floor_char(text, bytes.saturating_sub(2 * NOTICE_BYTES));
    Some(if by_bytes < by_lines {
        Cut {
            end: by_bytes,
            by: Limit::Bytes(limit.bytes),
        }
    } else {
        Cut {
            end: by_lines,
            by: Limit::Lines,
        }
    })
}

/// Lines as a person counts them: a newline at the very end starts no further line.
pub(crate) fn count_lines(text: &[u8]) -> u64 {
    let newlines = text.iter().filter(|b| **b == b'\n').count() as u64;
    newlines + u64::from(text.last().is_some_and(|b| *b != b'\n'))
}

fn floor_char(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at.min(text.len()))
}

/// Cuts the text and keeps the whole; where there is `room` for a preview, that stands in its place. Data whose schema was `promised` stays whole beside it.
async fn keep(
    outputs: &dyn Outputs,
    outcome: &mut Outcome,
    mut cut: Cut,
    promised: bool,
    (owner, room): (&str, Option<OutputLimit>),
) {
    let kept = match outcome.whole.take() {
        Some(whole) => Ok(whole),
        // A beginning that is called the whole would be a lie.
        None if outcome.rest_is_lost => Err(io::Error::other("it was lost on its way")),
        None => outputs.keep(owner, outcome.output.as_bytes()).await,
    };
    // Less may be kept than there is at hand.
    let at_hand = count_lines(outcome.output.as_bytes());
    let lines = kept
        .as_ref()
        .map_or(at_hand, |whole| whole.lines.max(at_hand));
    let preview = little::of(outputs, owner, outcome, kept.as_ref().ok(), room).await;
    // Beside a preview it is read from where it begins.
    cut.end = if preview.is_some() { 0 } else { cut.end };
    outcome.output.truncate(cut.end);
    let left = lines.saturating_sub(count_lines(outcome.output.as_bytes()));
    let said = match cut.by {
        Limit::Lines => format!("[truncated: {left} lines omitted]"),
        Limit::Bytes(limit) => format!("[truncated: output exceeded {limit} bytes]"),
    };
    if let Some(content) = &mut outcome.content {
        content.cut(cut.end);
    }
    if let Some(preview) = preview {
        outcome.output = preview;
        outcome.metadata.insert("preview", true);
    }
    if !promised {
        // A cut text is no longer the JSON of the data.
        outcome.structured = None;
    }
    say(outcome, &said, kept, cut.end);
}

/// Data that goes with another text has a limit of its own.
fn has_large_data(outcome: &Outcome) -> bool {
    let data = outcome.structured.as_ref();
    data.is_some_and(|data| data.text().len() > MAX_DATA)
}

async fn keep_data(outputs: &dyn Outputs, outcome: &mut Outcome, owner: &str) {
    let Some(data) = outcome.structured.take() else {
        return;
    };
    let kept = outputs.keep(owner, data.text().as_bytes()).await;
    let said = format!("[truncated: structured data exceeded {MAX_DATA} bytes]");
    say(outcome, &said, kept, 0);
}

/// Says above the text and below it that something is missing, and how to read on: some clients show their models only
/// where a text begins.
fn say(outcome: &mut Outcome, said: &str, kept: io::Result<Whole>, offset: usize) {
    let mut notice = said.to_owned();
    outcome.metadata.insert("truncated", true);
    match kept {
        Ok(whole) => {
            notice.push_str(&how_to_read_on(&whole, offset));
            outcome.metadata.insert("outputId", whole.id.as_str());
            outcome.metadata.insert("totalBytes", whole.bytes);
            outcome.metadata.insert("totalLines", whole.lines);
        }
        Err(error) => {
            tracing::warn!(%error, "a truncated output could not be kept");
            notice.push_str(" The rest could not be kept on disk; ask for less at once.");
        }
    }
    if let Some(content) = &mut outcome.content {
        content.blocks.insert(0, Block::text(&notice));
        content.blocks.push(Block::text(&notice));
    }
    outcome.output = format!("{notice}\n\n{}\n\n{notice}", outcome.output);
}

/// Puts above the text what the crib has to say.
fn remark(outcome: &mut Outcome) {
    let Some(remark) = outcome.remark.take() else {
        return;
    };
    if let Some(content) = &mut outcome.content {
        content.blocks.insert(0, Block::text(&remark));
    }
    outcome.output = match outcome.output.is_empty() {
        true => remark,
        false => format!("{remark}\n\n{}", outcome.output),
    };
}

fn how_to_read_on(whole: &Whole, offset: usize) -> String {
    let Whole {
        id,
        bytes,
        lines,
        cut,
    } = whole;
    let end = if *cut {
        " (its end is lost: the tool gave more than one call may keep)"
    } else {
        ""
    };
    format!(
        " The whole output ({lines} lines, {bytes} bytes) is kept for 24 hours{end}. Read on with the tool \
         `read-output` and {{\"id\": \"{id}\", \"offset\": {offset}}} (`pattern` finds lines, `pointer` a part of JSON), or GET /api/outputs/{id}"
    )
}

fn bound_extras(outcome: &mut Outcome) {
    if let Some(title) = &mut outcome.title
        && title.len() > MAX_TITLE
    {
        title.truncate(floor_char(title, MAX_TITLE));
    }
    bound_object(&mut outcome.metadata);
    let mut room = MAX_ATTACHMENTS;
    let mut fits = |size: usize| {
        let fits = size <= room;
        room = room.saturating_sub(if fits { size } else { 0 });
        fits
    };
    let before = outcome.attachments.len();
    outcome.attachments.retain(|attachment| {
        let size = attachment.text.as_ref().map_or(0, String::len)
            + attachment.data.as_ref().map_or(0, String::len);
        fits(size)
    });
    let mut dropped = before - outcome.attachments.len();
    if let Some(content) = &mut outcome.content {
        let before = content.blocks.len();
        let mut beside = MAX_METADATA;
        content.blocks.retain_mut(|block| match block.is_text() {
            true => {
                bound_text_block(block, &mut beside);
                true
            }
            false => fits(block.object().text().len()),
        });
        dropped += before - content.blocks.len();
        let beside = content.meta.as_mut().into_iter().chain([&mut content.rest]);
        beside.for_each(bound_object);
    }
    if dropped > 0 {
        outcome.metadata.insert("attachmentsDropped", dropped);
    }
}

/// Words have their own limit. What else a text block carries is metadata, and all blocks share the room for that.
fn bound_text_block(block: &mut Block, room: &mut usize) {
    let words = block.object().members().find(|(name, _)| name == "text");
    let plain = r#"{"type":"text","text":}"#.len() + words.map_or(0, |(_, words)| words.len());
    let beside = block.object().text().len().saturating_sub(plain);
    match room.checked_sub(beside) {
        Some(left) => *room = left,
        None => *block = Block::text(&block.words().unwrap_or_default()),
    }
}

/// Many steps of a call are told, each in little.
fn bound_progress(mut progress: Progress) -> Progress {
    for text in [&mut progress.title, &mut progress.message] {
        text.iter_mut().for_each(bound_text);
    }
    let size = |data: &_| serde_json::to_string(data).map_or(usize::MAX, |text| text.len());
    if !progress.data.is_empty() && size(&progress.data) > MAX_METADATA {
        progress.data.clear();
        progress.data.insert("dropped".to_owned(), dropped().into());
    }
    progress
}

fn dropped() -> String {
    format!("metadata of more than {MAX_METADATA} bytes")
}

fn bound_object(object: &mut Object) {
    if object.text().len() > MAX_METADATA {
        *object = Object::default();
        object.insert("dropped", dropped());
    }
}

fn bound_error(error: &mut CallError) {
    bound_text(&mut error.message);
    if let Some(hint) = &mut error.hint {
        hint.edit(bound_text);
    }
    if let Some(data) = &mut error.data
        && serde_json::to_string(data).map_or(usize::MAX, |text| text.len()) > MAX_METADATA
    {
        **data = json!({"dropped": dropped()});
    }
}

fn bound_text(text: &mut String) {
    if text.len() > MAX_MESSAGE {
        text.truncate(floor_char(text, MAX_MESSAGE));
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;

    const MAX_BYTES: usize = OutputLimit::DEFAULT.bytes;
    const MAX_LINES: usize = OutputLimit::DEFAULT.lines;

    fn cut_of(text: &str) -> Option<Cut> {
        cut(&Outcome::text(text), OutputLimit::DEFAULT)
    }

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(cut_of(""), None);
        assert_eq!(cut_of("one line"), None);
        assert_eq!(cut_of(&"x\n".repeat(MAX_LINES)), None);
        assert_eq!(cut_of(&"x".repeat(MAX_BYTES)), None);
    }

    #[test]
    fn lines_are_cut_at_a_line() {
        let text = "x\n".repeat(MAX_LINES + 1);
        let cut = cut_of(&text).unwrap();
        assert_eq!(cut.by, Limit::Lines);
        assert_eq!(
            count_lines(&text.as_bytes()[..cut.end]),
            (MAX_LINES - 2 * NOTICE_LINES) as u64
        );
    }

    #[test]
    fn bytes_are_cut_on_a_character() {
        let text = "ä".repeat(MAX_BYTES);
        let cut = cut_of(&text).unwrap();
        assert_eq!(cut.by, Limit::Bytes(MAX_BYTES));
        assert!(text.is_char_boundary(cut.end));
        assert!(cut.end <= MAX_BYTES - 2 * NOTICE_BYTES);
    }

    #[test]
    fn many_long_lines_fall_to_the_byte_limit() {
        let text = format!("{}\n", "x".repeat(99)).repeat(3_000);
        assert_eq!(cut_of(&text).unwrap().by, Limit::Bytes(MAX_BYTES));
    }

    #[tokio::test]
    async fn all_that_is_handed_over_is_within_the_limit() {
        for limit in [OutputLimit::LEAST, OutputLimit::of(9_000, 50)] {
            for line in ["ä\n", "a long line of text that goes on and on and on\n"] {
                let mut outcome = Outcome::text(line.repeat(9_000));
                outcome.remark = Some("what is wrong\nhint: what to do".to_owned());
                let cut = cut(&outcome, limit).unwrap();
                let to = ("a", None);
                keep(&crate::testing::NoOutputs, &mut outcome, cut, false, to).await;
                remark(&mut outcome);
                let text = &outcome.output;
                assert!(text.len() <= limit.bytes, "{} bytes", text.len());
                assert!(count_lines(text.as_bytes()) <= limit.lines as u64);
                assert!(text.starts_with("what is wrong\nhint: what to do\n\n[truncated: "));
                let notices = text.matches("[truncated: ").count();
                assert_eq!(notices, 2, "{text}");
                assert!(text.ends_with("ask for less at once."));
            }
        }
    }

    #[test]
    fn what_stands_beside_the_words_of_text_is_bounded_too() {
        let block = |words: &str, beside: usize| {
            let meta = "x".repeat(beside);
            format!(r#"{{"type":"text","text":"{words}","_meta":{{"m":"{meta}"}}}}"#)
        };
        let blocks = [
            block("a", 40_000),
            block("b", 40_000),
            block("c", 9),
            block("", 0),
        ];
        let result = format!(r#"{{"content":[{}]}}"#, blocks.join(","));
        let mut outcome = Outcome::from_json(Json::parse(&result).unwrap());
        bound_extras(&mut outcome);
        let content = outcome.content.unwrap();
        let left: Vec<&str> = content
            .blocks
            .iter()
            .map(|one| one.object().text())
            .collect();
        let bare = r#"{"type":"text","text":"b"}"#;
        assert_eq!(left[0], blocks[0]);
        assert_eq!(
            serde_json::from_str::<Json>(left[1]).unwrap(),
            Json::parse(bare).unwrap()
        );
        assert_eq!(left[2..], blocks[2..]);
    }

    #[test]
    fn steps_of_a_call_are_told_in_little() {
        let long = || Some("ä".repeat(MAX_MESSAGE));
        let told = bound_progress(Progress {
            title: long(),
            message: long(),
            data: serde_json::Map::from_iter([("a".to_owned(), "x".repeat(MAX_METADATA).into())]),
            ..Progress::default()
        });
        let fits = |text: Option<String>| text.unwrap().len() <= MAX_MESSAGE + '…'.len_utf8();
        assert!(fits(told.title) && fits(told.message));
        assert_eq!(told.data["dropped"], dropped());
        let small = Progress {
            message: Some("half".to_owned()),
            data: serde_json::Map::from_iter([("a".to_owned(), 1.into())]),
            ..Progress::default()
        };
        assert_eq!(bound_progress(small.clone()), small);
    }

    #[test]
    fn an_error_is_told_in_little() {
        let long = "ä".repeat(MAX_METADATA);
        let mut error = CallError::invalid(&*long)
            .hint(&*long)
            .data(json!({"a": long}));
        bound_error(&mut error);
        assert!(error.message.len() <= MAX_MESSAGE + '…'.len_utf8());
        assert!(error.hint.unwrap().to_string().len() <= MAX_MESSAGE + '…'.len_utf8());
        assert_eq!(error.data.as_deref(), Some(&json!({"dropped": dropped()})));
        let mut small = CallError::invalid("no").data(json!({"a": [1]}));
        bound_error(&mut small);
        assert_eq!(small.data.as_deref(), Some(&json!({"a": [1]})));
    }

    #[test]
    fn lines_are_counted_as_a_person_does() {
        for (text, lines) in [
            ("", 0),
            ("a", 1),
            ("a\n", 1),
            ("a\nb", 2),
            ("\n", 1),
            ("\n\n", 2),
        ] {
            assert_eq!(count_lines(text.as_bytes()), lines, "{text:?}");
        }
    }

    #[test]
    fn the_notice_fits_its_room() {
        let whole = Whole {
            id: crate::OutputId::parse("0192f0c1-0000-7000-8000-000000000000").unwrap(),
            bytes: u64::MAX,
            lines: u64::MAX,
            cut: true,
        };
        let notice = how_to_read_on(&whole, usize::MAX);
        assert!(notice.len() + 80 < NOTICE_BYTES, "{}", notice.len());
        assert!(!notice.contains('\n'));
    }
}
