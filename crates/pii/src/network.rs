//! Addresses of machines: of IP in both versions, and of network cards.

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::spot::{Spot, is_word};

pub const IP: &str =
    r"\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]*(?::\d{1,3}(?:\.\d{1,3}){3})?";

/// Words and signs before four numbers that are a version.
const VERSIONS: [&str; 8] = [
    "version", "versions", "ver", "ver.", "v", "release", "build", "upgrade",
];

pub fn is_ip(spot: &Spot) -> Option<Range<usize>> {
    match spot.value().contains(':') {
        true => is_v6(spot),
        false => is_v4(spot),
    }
}

fn is_v4(spot: &Spot) -> Option<Range<usize>> {
    let fits = |octet: &str| {
        let plain = octet.len() == 1 || !octet.starts_with('0');
        plain && octet.parse::<u8>().is_ok()
    };
    let alone = match spot.before() {
        [] | [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'.' | b'-' | b'_'] => false,
        [.., last] => !is_word(*last),
    } && match spot.after() {
        [] => true,
        [b'.', next, ..] => !is_word(*next),
        [b'-' | b'+', next, ..] => !next.is_ascii_alphabetic(),
        [first, ..] => !is_word(*first),
    };
    let is_one = spot.value().split('.').all(fits) && alone && !is_version(spot);
    is_one.then_some(spot.start..spot.end)
}

/// `version 1.2.3.4`, `"version": "1.2.3.4"`, `>= 1.2.3.4`, `name==1.2.3.4`, `Chrome/120.0.0.0`.
fn is_version(spot: &Spot) -> bool {
    let name = spot.name();
    if name.is_some_and(|name| name.contains("version") || VERSIONS.contains(&name.as_str())) {
        return true;
    }
    let before = spot.words_before();
    let before = before.trim_end_matches([' ', '"', '\'', '(', '=']);
    let word = before
        .rsplit(|c: char| !(c.is_alphanumeric() || c == '.'))
        .next();
    if word.is_some_and(|word| VERSIONS.contains(&word)) {
        return true;
    }
    let bounds = spot.words_before();
    let bounds = bounds.trim_end();
    let is_bound = [">=", "<=", "~=", "~>", "^"]
        .iter()
        .any(|sign| bounds.ends_with(sign));
    let is_pinned = bounds
        .strip_suffix("==")
        .is_some_and(|name| name.ends_with(char::is_alphanumeric));
    let of_product = match spot.before() {
        [.., letter, b'/'] => letter.is_ascii_alphabetic() && spot.value().ends_with(".0.0"),
        _ => false,
    };
    is_bound || is_pinned || of_product
}

fn is_v6(spot: &Spot) -> Option<Range<usize>> {
    // A colon after it ends a sentence or begins a port.
    let value = match spot.value().strip_suffix(':') {
        Some(shorter) if !shorter.ends_with(':') => shorter,
        _ => spot.value(),
    };
    let spot = Spot {
        end: spot.start + value.len(),
        ..*spot
    };
    value.parse::<Ipv6Addr>().ok()?;
    let before = spot.before().last();
    let after = spot.after().first();
    let alone = !before.is_some_and(|byte| is_word(*byte) || *byte == b'.')
        && !after.is_some_and(|byte| is_word(*byte));
    let groups: Vec<&str> = value.split(':').filter(|group| !group.is_empty()).collect();
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let long = groups.iter().any(|group| group.len() > 2);
    let fits = match groups.as_slice() {
        // `::` is nobody's, and `std::a1` is a path.
        [] => false,
        ["1"] => value == "::1",
        [one] => {
            value.starts_with("::") && one.contains('.') || is_network(one) && value.ends_with("::")
        }
        [first, _] => is_network(first) || value.contains('.'),
        _ => long,
    };
    (alone && has_digit && fits).then_some(spot.start..spot.end)
}

/// Could an address begin so that is written in short?
fn is_network(group: &str) -> bool {
    let number = u16::from_str_radix(group, 16).unwrap_or_default();
    group.len() == 4 && matches!(number, 0x2000..=0x3fff | 0xfc00..)
}

pub const MAC: &str = r"[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}|[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}";

/// Not a part of a longer row, as fingerprints of keys are.
pub fn is_mac(spot: &Spot) -> Option<Range<usize>> {
    let goes_on = |byte: &u8| is_word(*byte) || matches!(byte, b':' | b'-');
    let begins = match spot.before() {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        // `mac:00:1A:…` is a name and its value.
        [.., name, b':'] => !name.is_ascii_hexdigit(),
        [.., last] => !goes_on(last),
        [] => true,
    };
    let ends = match spot.after() {
        [] => true,
        [b':' | b'-', next, ..] => !is_word(*next),
        [first, ..] => !is_word(*first),
    };
    (begins && ends).then_some(spot.start..spot.end)
}
