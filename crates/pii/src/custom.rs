//! Patterns of the user's own: linear in the text by their nature, small by a limit, and given up when they take long.

use std::time::{Duration, Instant};

use regex::{Regex, RegexBuilder};

use crate::detectors::{DetectError, Finding};

/// The longest pattern that is taken.
pub const MAX_PATTERN: usize = 1_000;
/// How long all patterns may take on one text.
pub const TIME: Duration = Duration::from_secs(2);
/// How large a pattern may get when it is compiled: repetitions of repetitions would make every byte cost.
const MAX_COMPILED: usize = 128 * 1_024;
/// How much of a text is looked at before the clock is, and how much of it again with the next part, so that no match is
/// split by that.
const PART: usize = 64 * 1_024;
pub const OVERLAP: usize = 8 * 1_024;

pub struct Custom {
    name: String,
    pattern: Regex,
}

impl Custom {
    pub fn new(name: &str, pattern: &str) -> Result<Custom, DetectError> {
        let refused = |reason: String| DetectError::Pattern {
            name: name.to_owned(),
            reason,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            return Err(refused(
                "needs a name of letters, digits, _ and -".to_owned(),
            ));
        }
        if pattern.len() > MAX_PATTERN {
            return Err(refused(format!("is longer than {MAX_PATTERN} bytes")));
        }
        let built = RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(4 * MAX_COMPILED)
            .build();
        let built = built.map_err(|error| {
            let lines = error.to_string();
            let last = lines.lines().last().unwrap_or_default();
            refused(format!(
                "can't be used: {}",
                last.trim_start_matches("error: ")
            ))
        })?;
        if built.is_match("") {
            return Err(refused("matches an empty text".to_owned()));
        }
        Ok(Custom {
            name: name.to_owned(),
            pattern: built,
        })
    }
}

/// What the patterns match. All of them together have [`TIME`].
pub fn find<'a>(
    patterns: &'a [Custom],
    text: &str,
    found: &mut Vec<Finding<'a>>,
) -> Result<(), DetectError> {
    let begun = Instant::now();
    for one in patterns {
        let mut from = 0;
        let mut at = 0;
        loop {
            let end = text.floor_char_boundary(from + PART + OVERLAP);
            let hit = one.pattern.find_at(&text[..end], at.max(from));
            let is_last = end == text.len();
            // What begins in the overlap is the next part's.
            match hit.filter(|hit| is_last || hit.start() < from + PART) {
                Some(hit) if hit.is_empty() => at = text.ceil_char_boundary(hit.end() + 1),
                Some(hit) => {
                    found.push(Finding {
                        kind: &one.name,
                        start: hit.start(),
                        end: hit.end(),
                        merged: false,
                    });
                    at = hit.end();
                }
                None if is_last => break,
                None => from = text.floor_char_boundary(from + PART),
            }
            if at >= text.len() {
                break;
            }
            if begun.elapsed() > TIME {
                let name = one.name.clone();
                return Err(DetectError::TooSlow { name });
            }
        }
    }
    Ok(())
}
