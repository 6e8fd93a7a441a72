//! What links did to a call, as one text: `pii:changed tool_retry:delayed`.

use toolcrib_core::call::{Decision, Deed, Mark};

use super::value::{Line, Unreadable};

/// Nothing where nothing was done.
pub(super) fn written(marks: &[Mark]) -> Option<String> {
    let words = marks
        .iter()
        .map(|mark| format!("{}:{}", mark.middleware, mark.deed.as_str()));
    (!marks.is_empty()).then(|| words.collect::<Vec<_>>().join(" "))
}

pub(super) fn read(text: Option<String>) -> Vec<Mark> {
    let text = text.unwrap_or_default();
    let words = text.split(' ').filter_map(|word| {
        let (middleware, deed) = word.split_once(':')?;
        Some(Mark {
            middleware: middleware.to_owned().into(),
            deed: Deed::parse(deed)?,
        })
    });
    words.collect()
}

/// Who decided about the call of this row, if somebody did.
pub(super) fn decision(row: &Line) -> Result<Option<Decision>, Unreadable> {
    let Some(approver) = row.maybe_text("approver")? else {
        return Ok(None);
    };
    Ok(Some(Decision {
        approver: approver.into(),
        at_ms: row.number("decided_at")?,
        how: row.maybe_text("decision")?.unwrap_or_default().into(),
    }))
}
