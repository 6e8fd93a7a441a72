//! The kinds and patterns that somebody chose, and what they find in a text.

use std::ops::Range;

use regex::Regex;

use crate::custom::{self, Custom};
use crate::kinds::{KINDS, Kind};
use crate::seek::{self, Seek};
use crate::spot::Spot;
use crate::{keys, phone};

/// One piece of personal data in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding<'a> {
    /// The name of its kind, or of the pattern.
    pub kind: &'a str,
    pub start: usize,
    pub end: usize,
    /// Several that overlap, as one.
    pub merged: bool,
}

/// Why nothing can be looked for, or nothing can be said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    #[error("there is no PII type `{name}`; {hint}")]
    Unknown { name: String, hint: String },
    #[error("the pattern of `{name}` {reason}")]
    Pattern { name: String, reason: String },
    #[error("the pattern of `{name}` takes too long on this text")]
    TooSlow { name: String },
}

/// What is looked for.
pub struct Detectors {
    kinds: Vec<Chosen>,
    custom: Vec<Custom>,
}

struct Chosen {
    kind: &'static Kind,
    pattern: Regex,
}

impl Detectors {
    /// Those of these names, and patterns with names of their own.
    pub fn new<'a>(
        names: impl IntoIterator<Item = &'a str>,
        patterns: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Detectors, DetectError> {
        let mut wanted: Vec<&str> = Vec::new();
        for name in names {
            if !KINDS.iter().any(|kind| kind.name == name) {
                return Err(unknown(name));
            }
            wanted.push(name);
        }
        let kinds = KINDS.iter().filter(|kind| wanted.contains(&kind.name));
        let kinds = kinds.map(|kind| {
            // Digits of other scripts would make every step dearer, and no check counts them.
            let pattern = kind.pattern.replace(r"\d", "[0-9]");
            let pattern = Regex::new(&pattern).map_err(|error| DetectError::Pattern {
                name: kind.name.to_owned(),
                reason: error.to_string(),
            })?;
            Ok(Chosen { kind, pattern })
        });
        let custom = patterns
            .into_iter()
            .map(|(name, pattern)| Custom::new(name, pattern));
        Ok(Detectors {
            kinds: kinds.collect::<Result<_, _>>()?,
            custom: custom.collect::<Result<_, _>>()?,
        })
    }

    /// Everything that is known.
    pub fn all() -> Result<Detectors, DetectError> {
        Detectors::new(KINDS.iter().map(|kind| kind.name), [])
    }

    /// What is in the text, in its order, none overlapping another. `label` is the name of the JSON member whose value
    /// it is.
    pub fn find<'a>(
        &'a self,
        text: &str,
        label: Option<&str>,
    ) -> Result<Vec<Finding<'a>>, DetectError> {
        let mut found = Found {
            text,
            label,
            all: Vec::new(),
        };
        self.numbers(&mut found);
        for chosen in &self.kinds {
            let mut look = |window| found.search(chosen, window);
            match chosen.kind.seek {
                Seek::Keys => keys::seek(text, |range| found.judge(chosen.kind, range)),
                Seek::Addresses => seek::colons(text, &mut look),
                Seek::Pairs => seek::pairs(text, &mut look),
                Seek::At => seek::at_signs(text, &mut look),
                Seek::Hosts => seek::hosts(text, &mut look),
                Seek::Iban | Seek::Digits { .. } => {}
            }
        }
        if !self.custom.is_empty() {
            custom::find(&self.custom, text, &mut found.all)?;
        }
        Ok(settled(found.all))
    }

    /// All kinds that are made of digits, in one pass.
    fn numbers<'a>(&'a self, found: &mut Found<'a, '_>) {
        let is_number = |chosen: &&Chosen| {
            let seek = chosen.kind.seek;
            matches!(seek, Seek::Iban | Seek::Digits { .. } | Seek::Addresses)
        };
        let chosen: Vec<&Chosen> = self.kinds.iter().filter(is_number).collect();
        if chosen.is_empty() {
            return;
        }
        let text = found.text;
        seek::rows(text, |row| {
            for chosen in &chosen {
                let window = match chosen.kind.seek {
                    Seek::Iban => seek::iban(text, row),
                    Seek::Addresses => (row.dots >= 3).then_some(row.start..row.end),
                    Seek::Digits { least } if row.digits >= least && !row.is_plain => {
                        Some(row.start..phone::with_extension(text, row.end))
                    }
                    _ => None,
                };
                if let Some(window) = window {
                    found.search(chosen, window);
                }
            }
        });
    }
}

fn unknown(name: &str) -> DetectError {
    let known = KINDS.iter().map(|kind| kind.name);
    let near = known
        .clone()
        .map(|known| (strsim::jaro_winkler(known, name), known))
        .filter(|(score, _)| *score > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = match near {
        Some((_, near)) => format!("did you mean `{near}`?"),
        None => format!(
            "the types are {}; any other needs a pattern",
            known.collect::<Vec<_>>().join(", ")
        ),
    };
    DetectError::Unknown {
        name: name.to_owned(),
        hint,
    }
}

/// What was found so far.
struct Found<'a, 't> {
    text: &'t str,
    label: Option<&'t str>,
    all: Vec<Finding<'a>>,
}

impl<'a> Found<'a, '_> {
    /// Looks at all that matches in a part of the text.
    fn search(&mut self, chosen: &'a Chosen, window: Range<usize>) {
        let mut at = window.start;
        while at < window.end {
            let Some(hit) = chosen.pattern.find(&self.text[at..window.end]) else {
                return;
            };
            let (start, end) = (at + hit.start(), at + hit.end());
            at = match self.checked(chosen.kind, start..end) {
                Some(end) => end,
                // Nothing begins within a word.
                None => start + first_word(&self.text[start..end]),
            };
        }
    }

    fn judge(&mut self, kind: &'a Kind, range: Range<usize>) {
        self.checked(kind, range);
    }

    fn checked(&mut self, kind: &'a Kind, range: Range<usize>) -> Option<usize> {
        let spot = Spot {
            text: self.text,
            start: range.start,
            end: range.end,
            label: self.label,
        };
        let Range { start, end } = (kind.check)(&spot)?;
        self.all.push(Finding {
            kind: kind.name,
            start,
            end,
            merged: false,
        });
        Some(end)
    }
}

/// How long the word at the beginning is; at least one character.
fn first_word(text: &str) -> usize {
    let word = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    match word {
        0 => text.chars().next().map_or(1, char::len_utf8),
        word => word,
    }
}

/// In the text's order. What lies within another goes; what overlaps another becomes one with it.
fn settled(mut all: Vec<Finding>) -> Vec<Finding> {
    if all.len() < 2 {
        return all;
    }
    let rank = |finding: &Finding| KINDS.iter().position(|kind| kind.name == finding.kind);
    all.sort_by_key(|finding| {
        let length = finding.end - finding.start;
        (
            finding.start,
            usize::MAX - length,
            rank(finding).unwrap_or(usize::MAX),
        )
    });
    let mut settled: Vec<Finding> = Vec::with_capacity(all.len());
    for finding in all {
        match settled.last_mut() {
            Some(last) if finding.start < last.end => {
                if finding.end > last.end {
                    last.end = finding.end;
                    last.merged = true;
                }
            }
            _ => settled.push(finding),
        }
    }
    settled
}
