//! Room for parsers that call themselves for every level of nesting.
//!
//! No text nests deeper than it has tokens, so a stack in proportion to their number never overflows. Stacks are
//! only mapped: what a file does not use costs nothing.

use crate::SyntaxError;
use crate::place::Lines;

/// The deepest nesting of brackets that is read.
const DEEPEST: usize = 1_000;
/// The longest text that is read, in bytes.
const LONGEST: usize = 4 << 20;
/// What one level may take, in any of the walks over a text.
const PER_TOKEN: usize = if cfg!(debug_assertions) {
    24 << 10
} else {
    4 << 10
};
/// The part of a stack that does not depend on the text.
const LEAST: usize = 1 << 20;

/// Runs `read` where it can't overflow the stack, and turns a panic of it into an error.
pub fn read<T: Send>(
    text: &str,
    read: impl FnOnce() -> Result<T, SyntaxError> + Send,
) -> Result<T, SyntaxError> {
    if text.len() > LONGEST {
        let limit = LONGEST >> 20;
        return Err(refusal(
            text,
            0,
            &format!("the file is larger than {limit} MiB"),
        ));
    }
    if let Some(offset) = too_deep(text) {
        let message = format!("brackets are nested deeper than {DEEPEST} levels");
        return Err(refusal(text, offset, &message));
    }
    let stack = LEAST + tokens(text) * PER_TOKEN;
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new()
            .name("scan".to_owned())
            .stack_size(stack)
            .spawn_scoped(scope, read)
            .map_err(|error| {
                let message = format!("there is no memory to read the file: {error}");
                refusal(text, 0, &message)
            })?;
        let broken = "the parser failed on this file; please report it, and write it differently";
        reader
            .join()
            .unwrap_or_else(|_| Err(refusal(text, 0, broken)))
    })
}

fn refusal(text: &str, offset: usize, message: &str) -> SyntaxError {
    SyntaxError {
        message: message.to_owned(),
        at: Lines::of(text).at(offset),
    }
}

/// Where brackets are nested too deep. Brackets in strings count as well: nobody has a thousand of them open.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

/// At least as many as the text has tokens: every sign counts, and every beginning of a word.
fn tokens(text: &str) -> usize {
    let mut in_word = false;
    text.bytes()
        .filter(|byte| {
            let word = byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
            let begins = word && !in_word;
            in_word = word;
            begins || !(word || byte.is_ascii_whitespace())
        })
        .count()
}
