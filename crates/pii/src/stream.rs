//! A text that comes in chunks. None of them splits a finding: what may be the beginning of one is held back.

use crate::custom::OVERLAP;
use crate::detectors::{DetectError, Detectors, Finding};
use crate::strategy::{HashOf, Strategy, covered};

/// How much is collected before it is looked at.
const PART: usize = 256 * 1_024;
/// How much stays behind at least: the longest finding that is never split. Longer ones are held back as a whole
/// until they are [`LONGEST`].
const HELD: usize = 16 * 1_024;
const LONGEST: usize = 4 * 1_024 * 1_024;
/// How much of what was given out is remembered, for checks that look at what stands before.
const BEHIND: usize = 128;

const _: () = assert!(HELD >= OVERLAP && PART > HELD);

/// How often each kind was found.
type Found<'a> = Vec<(&'a str, usize)>;

/// A stream of bytes in which findings are covered. What is no UTF-8 stays as it is.
pub struct PiiStream<'a> {
    detectors: &'a Detectors,
    strategy: Strategy,
    hash: HashOf<'a>,
    bytes: Vec<u8>,
    /// How much of `bytes` was given out before.
    given: usize,
    /// Found so far, by kind.
    counts: Found<'a>,
}

impl<'a> PiiStream<'a> {
    pub fn new(detectors: &'a Detectors, strategy: Strategy, hash: HashOf<'a>) -> PiiStream<'a> {
        PiiStream {
            detectors,
            strategy,
            hash,
            bytes: Vec::new(),
            given: 0,
            counts: Vec::new(),
        }
    }

    /// What may be shown after these bytes came.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, DetectError> {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < self.given + PART {
            return Ok(Vec::new());
        }
        self.give(self.bytes.len() - HELD)
    }

    /// The text went on, but its rest is lost: what may be the beginning of a finding goes too.
    pub fn cut(&mut self) {
        let (given, bytes) = (self.given, &self.bytes);
        let last = bytes.utf8_chunks().last();
        let last = last.map_or("", |chunk| chunk.valid());
        let from = bytes.len() - last.len().min(bytes.len());
        if bytes.ends_with(last.as_bytes()) {
            let end = (from + safe_end(last)).max(given);
            self.bytes.truncate(end);
        }
    }

    /// The text is over: the rest, and what was found in all of it.
    pub fn finish(mut self) -> Result<(Vec<u8>, Found<'a>), DetectError> {
        let rest = self.give(self.bytes.len())?;
        Ok((rest, self.counts))
    }

    /// Gives out what lies before `end`, or before a finding that goes on behind it.
    fn give(&mut self, end: usize) -> Result<Vec<u8>, DetectError> {
        let is_over = end == self.bytes.len();
        let bytes = std::mem::take(&mut self.bytes);
        let mut shown = Vec::with_capacity(bytes.len());
        let (mut at, mut cut) = (0, end);
        for chunk in bytes.utf8_chunks() {
            let (text, from) = (chunk.valid(), at);
            at += text.len() + chunk.invalid().len();
            if from < cut {
                let findings = self.detectors.find(text, None)?;
                let mut to = cut.min(from + text.len());
                if !is_over {
                    to = self.whole(text, &findings, to - from) + from;
                    if to < from + text.len() {
                        cut = to;
                    }
                }
                self.show(text, from, to, &findings, &mut shown);
            }
            let rest = from + text.len();
            if rest < cut || is_over {
                shown.extend_from_slice(&bytes[rest.max(self.given).min(at)..at]);
            }
        }
        let kept = bytes.len().min(cut).saturating_sub(BEHIND);
        self.given = cut - kept;
        self.bytes = bytes;
        self.bytes.drain(..kept);
        Ok(shown)
    }

    /// The last place up to `end` that lies in no finding, and between two words.
    fn whole(&self, text: &str, findings: &[Finding], end: usize) -> usize {
        if end >= text.len() {
            return end;
        }
        let end = text.floor_char_boundary(end);
        let space = text[..end].rfind([' ', '\n', '\t']).map_or(0, |at| at + 1);
        let end = if end - space < HELD { space } else { end };
        let across =
            |finding: &&Finding| finding.start < end && end < finding.end && text.len() < LONGEST;
        findings
            .iter()
            .find(across)
            .map_or(end, |finding| finding.start)
    }

    fn show(
        &mut self,
        text: &str,
        from: usize,
        to: usize,
        findings: &[Finding<'a>],
        shown: &mut Vec<u8>,
    ) {
        let first = self.given.max(from).min(to);
        let (first, last) = (first - from, to - from);
        let new = |finding: &&Finding| finding.start >= first && finding.start < last;
        let new: Vec<Finding> = findings.iter().filter(new).cloned().collect();
        for finding in &new {
            match self
                .counts
                .iter_mut()
                .find(|(kind, _)| *kind == finding.kind)
            {
                Some((_, count)) => *count += 1,
                None => self.counts.push((finding.kind, 1)),
            }
        }
        let within: Vec<Finding> = new
            .iter()
            .map(|finding| Finding {
                start: finding.start - first,
                end: finding.end.min(last) - first,
                ..finding.clone()
            })
            .collect();
        let text = &text[first..last];
        shown.extend_from_slice(covered(text, &within, self.strategy, self.hash).as_bytes());
    }
}

/// Where a text that goes on unseen can be cut, so that no finding is left half: before its last word, before the numbers
/// that stand there, and before a key that does not end.
pub fn safe_end(text: &str) -> usize {
    let key = text.rfind("-----BEGIN ");
    let open = key.filter(|at| !text[*at..].contains("-----END "));
    let text = &text[..open.unwrap_or(text.len())];
    let words = text.trim_end_matches(|c: char| !c.is_whitespace());
    let before = words.trim_end_matches(|c: char| c.is_ascii_digit() || " ().+-/".contains(c));
    let numbers = &words[before.len()..];
    if !numbers.contains(|c: char| c.is_ascii_digit()) {
        return words.len();
    }
    match numbers.starts_with(' ') {
        true => before.len() + 1,
        // The first group begins with letters.
        false => before.trim_end_matches(|c: char| !c.is_whitespace()).len(),
    }
}
