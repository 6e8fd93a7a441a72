//! Where candidates may stand: prefilters that pass over clean text quickly, and give windows to look at closely.

use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2_iter, memmem};

use crate::url;

/// What a kind's candidates are known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The beginnings of services' keys.
    Keys,
    /// Two letters and two digits.
    Iban,
    /// Rows of digits, in groups or not, with at least so many of them.
    Digits { least: usize },
    /// Four numbers with dots, or groups with colons.
    Addresses,
    /// Pairs of hexadecimal digits.
    Pairs,
    /// The sign `@`.
    At,
    /// `://`, `www.`, or a known ending of a host and a slash.
    Hosts,
}

/// Digits, and what stands between groups of them.
const NUMBER: [bool; 256] = {
    let mut table = [false; 256];
    let signs = b"0123456789 .()+-/";
    let mut at = 0;
    while at < signs.len() {
        table[signs[at] as usize] = true;
        at += 1;
    }
    table
};

/// A row of digits with its separators.
pub struct Row {
    pub start: usize,
    pub end: usize,
    pub digits: usize,
    pub dots: usize,
    /// It is a day and an hour, or a part of a longer id: no number of anybody.
    pub is_plain: bool,
}

/// Every row of digits.
pub fn rows(text: &str, mut found: impl FnMut(&Row)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(first) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let first = at + first;
        let mut row = Row {
            start: first,
            end: first,
            digits: 0,
            dots: 0,
            is_plain: false,
        };
        let mut dots = 0;
        at = first;
        while at < bytes.len() && NUMBER[usize::from(bytes[at])] {
            match bytes[at] {
                b'0'..=b'9' => {
                    row.digits += 1;
                    row.dots = dots;
                    row.end = at + 1;
                }
                b'.' => dots += 1,
                // Columns of a table are no groups.
                b' ' if bytes.get(at + 1) == Some(&b' ') => break,
                _ => {}
            }
            at += 1;
        }
        let opening = bytes[..first].iter().rev().take(2);
        row.start -= opening
            .take_while(|byte| matches!(byte, b'(' | b'+'))
            .count();
        row.is_plain = is_day(&bytes[row.start..row.end]) || is_in_id(bytes, &row);
        found(&row);
    }
}

/// `2026-11-18`, and an hour behind it.
fn is_day(row: &[u8]) -> bool {
    let has_shape = matches!(row, [b'1' | b'2', b'0' | b'9', _, _, b'-', _, _, b'-', ..]);
    has_shape && matches!(row.len(), 10 | 13) && row.get(10).is_none_or(|byte| *byte == b' ')
}

/// Digits in one piece that go on from a letter or a dash.
fn is_in_id(bytes: &[u8], row: &Row) -> bool {
    let is_piece = row.digits == row.end - row.start;
    is_piece
        && match bytes[..row.start] {
            [.., b'\\', _] => false,
            [.., last] => last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-' | b'.'),
            [] => false,
        }
}

/// The two letters of a country before a row, and what may belong to the account.
pub fn iban(text: &str, row: &Row) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let [.., a, b] = bytes[..row.start] else {
        return None;
    };
    let [_, second, ..] = bytes[row.start..] else {
        return None;
    };
    let fits = a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && second.is_ascii_digit();
    let ends = |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-'));
    let rest = &bytes[row.start..bytes.len().min(row.start + 80)];
    let length = rest.iter().position(ends).unwrap_or(rest.len());
    fits.then(|| row.start - 2..row.start + length)
}

/// Every place with two or more colons that may be an address of IP.
pub fn colons(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b':';
    let mut past = 0;
    for at in memchr_iter(b':', bytes) {
        let next = bytes.get(at + 1);
        if at < past || !next.is_some_and(is_part) {
            continue;
        }
        let start = at
            - bytes[past..at]
                .iter()
                .rev()
                .take_while(|byte| is_part(byte))
                .count();
        let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
        past = at + length;
        if memchr(b':', &bytes[at + 1..past]).is_none() {
            continue;
        }
        // The last part may be written as four numbers.
        let dotted = bytes[past..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
        found(start..past + dotted.count());
    }
}

/// Every place where pairs of hexadecimal digits begin.
pub fn pairs(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let is_hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    for at in memchr2_iter(b':', b'-', bytes) {
        let (Some(start), Some(end)) = (at.checked_sub(2), Some(at + 15)) else {
            continue;
        };
        let sign = bytes[at];
        let fits = bytes.get(at + 3) == Some(&sign)
            && bytes.get(at + 12) == Some(&sign)
            && [start, at - 1, at + 1, at + 2, at + 13, at + 14]
                .into_iter()
                .all(is_hex);
        if fits && text.is_char_boundary(start) && text.is_char_boundary(end) {
            found(start..end);
        }
    }
}

/// Everything around an `@` that an address may be made of.
pub fn at_signs(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let is_part =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"._%+'-".contains(byte) || *byte >= 0x80;
    for at in memchr_iter(b'@', bytes) {
        let before = bytes[..at]
            .iter()
            .rev()
            .take(320)
            .take_while(|byte| is_part(byte))
            .count();
        let after = bytes[at + 1..]
            .iter()
            .take(320)
            .take_while(|byte| is_part(byte))
            .count();
        if before == 0 || after < 3 || memchr(b'.', &bytes[at + 1..at + 1 + after]).is_none() {
            continue;
        }
        // Where the text is cut by the limit it may be cut within a character.
        let start = text.ceil_char_boundary(at - before);
        found(start..text.floor_char_boundary(at + 1 + after));
    }
}

/// Where addresses of pages begin, each with the rest of its word.
pub fn hosts(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    for at in memmem::find_iter(bytes, "://") {
        let letters = bytes[..at]
            .iter()
            .rev()
            .take(5)
            .take_while(|byte| byte.is_ascii_alphabetic());
        let start = at - letters.count();
        let scheme = &bytes[start..at];
        if scheme.eq_ignore_ascii_case(b"https") || scheme.eq_ignore_ascii_case(b"http") {
            found(start..at + word(&bytes[at..]));
        }
    }
    for at in memchr_iter(b'.', bytes) {
        let is_www = at >= 3 && bytes[at - 3..at].eq_ignore_ascii_case(b"www");
        let begins = if is_www {
            at - 3
        } else {
            host_with_path(bytes, at).unwrap_or(at)
        };
        let follows = begins.checked_sub(1).and_then(|before| bytes.get(before));
        if begins < at && !follows.is_some_and(|byte| matches!(byte, b'/' | b'@')) {
            found(begins..at + word(&bytes[at..]));
        }
    }
}

/// Where the host begins whose last dot this is, if a path follows its ending.
fn host_with_path(bytes: &[u8], dot: usize) -> Option<usize> {
    let rest = &bytes[dot + 1..bytes.len().min(dot + 9)];
    let length = rest.iter().position(|byte| !byte.is_ascii_alphabetic())?;
    let follows = matches!(rest[length], b'/' | b':');
    if length < 2 || !follows || !url::is_ending(&rest[..length]) {
        return None;
    }
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let host = bytes[..dot].iter().rev().take(255).take_while(is_part);
    Some(dot - host.count())
}

/// How long the word is that begins here, in the signs that a page's address may have.
fn word(bytes: &[u8]) -> usize {
    let ends = |byte: &u8| {
        byte.is_ascii_whitespace() || byte.is_ascii_control() || b"<>\"{}|\\^`[]".contains(byte)
    };
    bytes.iter().position(ends).unwrap_or(bytes.len())
}
