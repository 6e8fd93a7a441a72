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
    let bytes = text.as_bytes();
    let Some(first) = bytes.first() else {
        return 0;
    };
    // In small sums and without branches, so that many bytes are looked at at once.
    let pairs = bytes.chunks(255).zip(bytes[1..].chunks(255));
    let others = pairs.map(|(before, here)| {
        let begin = before.iter().zip(here);
        usize::from(
            begin
                .map(|(before, byte)| begins(*before, *byte))
                .sum::<u8>(),
        )
    });
    usize::from(begins(b' ', *first)) + others.sum::<usize>()
}

/// One where a token begins.
#[inline]
fn begins(before: u8, byte: u8) -> u8 {
    let is_word = |byte: u8| {
        ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_')
    };
    let is_space = (byte == b' ') | (byte.wrapping_sub(b'\t') < 5);
    u8::from(!is_space & !(is_word(byte) & is_word(before)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sign_counts_and_every_beginning_of_a_word() {
        assert_eq!(tokens(""), 0);
        assert_eq!(tokens(" \t\r\n"), 0);
        assert_eq!(tokens("a"), 1);
        assert_eq!(tokens("ab_1 Z9[0]"), 5);
        assert_eq!(tokens("a.b.c"), 5);
        assert_eq!(tokens("\u{e4}"), 2);
        assert_eq!(tokens(&"a ".repeat(1_000)), 1_000);
        assert_eq!(tokens(&"(".repeat(1_000)), 1_000);
    }
}
