//! Room for parsers that call themselves for every level of nesting.
//!
//! No text nests deeper than it has tokens, so a stack in proportion to their number never overflows. Stacks are
//! only mapped: what a file does not use costs nothing.

use std::panic::AssertUnwindSafe;

use crate::SyntaxError;
use crate::place::Lines;

/// The deepest nesting of brackets that is read.
const DEEPEST: usize = 1_000;
/// Nesting that is deep, and how much there may be beyond it: the sum of levels over all bytes.
const DEEP: usize = 100;
const BEYOND: usize = 1 << 20;
/// The longest text that is read, in bytes.
const LONGEST: usize = 2 << 20;
/// What one level may take, in any of the walks over a text.
const PER_TOKEN: usize = if cfg!(debug_assertions) {
    24 << 10
} else {
    4 << 10
};
/// The part of a stack that does not depend on the text.
const LEAST: usize = 1 << 20;

/// Runs `read` where it can't overflow the stack, and turns a panic of it into an error.
pub fn read<T>(
    text: &str,
    read: impl FnOnce() -> Result<T, SyntaxError>,
) -> Result<T, SyntaxError> {
    if text.len() > LONGEST {
        let limit = LONGEST >> 20;
        let message = format!("the file is larger than {limit} MiB");
        return Err(refusal(text, 0, &message));
    }
    if let Some(offset) = too_deep(text) {
        let message = "brackets are nested too deep".to_owned();
        return Err(refusal(text, offset, &message));
    }
    let stack = LEAST + tokens(text) * PER_TOKEN;
    // A stack that can't be had is a panic too.
    let run = AssertUnwindSafe(|| stacker::grow(stack, read));
    std::panic::catch_unwind(run).unwrap_or_else(|_| {
        let message = "the parser failed on this file; please report it, and write it differently";
        Err(refusal(text, 0, message))
    })
}

fn refusal(text: &str, offset: usize, message: &str) -> SyntaxError {
    SyntaxError {
        message: message.to_owned(),
        at: Lines::of(text).at(offset),
    }
}

/// Where brackets are nested too deep, or deep for too long: parsers look ahead again at every level. Brackets in
/// strings count as well: nobody has a hundred of them open.
fn too_deep(text: &str) -> Option<usize> {
    let (mut depth, mut beyond) = (0_usize, 0_usize);
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        beyond += depth.saturating_sub(DEEP);
        depth > DEEPEST || beyond > BEYOND
    })
}

/// At least as many as the text has tokens: every sign counts, and every beginning of a word. So does every byte that is
/// not ASCII, because it may be a space.
fn tokens(text: &str) -> usize {
    let mut in_word = false;
    text.bytes()
        .filter(|byte| {
            let word = byte.is_ascii_alphanumeric() || *byte == b'_';
            let begins = word && !in_word;
            in_word = word;
            begins || !(word || byte.is_ascii_whitespace())
        })
        .count()
}
