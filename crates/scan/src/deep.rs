//! Room for parsers that call themselves for every level of nesting.
//!
//! No text nests deeper than it has tokens, so a stack in proportion to their number never overflows, whatever the
//! measuring before it overlooks. Stacks are only mapped: what a file does not use costs nothing.

use std::panic::AssertUnwindSafe;

use crate::budget::{BUDGET, Excess};
use crate::place::Lines;
use crate::{Cause, SyntaxError};

/// What one level may take, in any of the walks over a text.
const PER_TOKEN: usize = if cfg!(debug_assertions) {
    24 << 10
} else {
    4 << 10
};
/// The part of a stack that does not depend on the text.
const LEAST: usize = 1 << 20;
/// No larger stack is asked for: a machine may not have it. Only a debug build gets there.
const MOST: usize = 8 << 30;

/// Runs `read` where it can't overflow the stack, and turns a panic of it into an error. `measure` refuses what would
/// take the parser too long, and says how many tokens there are at most.
pub fn read<T>(
    text: &str,
    measure: impl FnOnce(&str) -> Result<usize, Excess>,
    read: impl FnOnce() -> Result<T, SyntaxError>,
) -> Result<T, SyntaxError> {
    let refused = |excess: Excess| excess.error(&Lines::of(text));
    if text.len() > BUDGET.bytes {
        let message = format!(
            "the file has {} bytes, and {} are the most that is read; split it",
            text.len(),
            BUDGET.bytes
        );
        // Its lines are not worth counting.
        return Err(Excess::new(0, message).error(&Lines::of("")));
    }
    let tokens = measure(text).map_err(refused)?;
    let stack = (LEAST + tokens * PER_TOKEN).min(MOST);
    // A stack that can't be had is a panic too.
    let run = AssertUnwindSafe(|| stacker::grow(stack, read));
    std::panic::catch_unwind(run).unwrap_or_else(|_| {
        let message = "the parser failed on this file; please report it, and write it differently";
        Err(SyntaxError {
            cause: Cause::Language,
            message: message.to_owned(),
            at: Lines::of(text).at(0),
        })
    })
}

/// At least as many as the text has tokens: every sign counts, and every beginning of a word. So does every byte that is
/// not ASCII, because it may be a space.
pub fn tokens(text: &str) -> usize {
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
