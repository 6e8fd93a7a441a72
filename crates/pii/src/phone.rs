//! Numbers of telephones: with `+`, in parentheses, in the groups that people write, or beside a word that says so.

use std::ops::Range;

use crate::spot::{Spot, digits};

pub const PATTERN: &str = r"(?x)
    (?: \+ | 00 ) \d{1,3} [\ .-]? (?: \( \d{1,4} \) [\ .-]? )? \d{1,5} (?: [\ .\-/]? \d{2,8} ){1,5} (?: \ ? (?:x|ext\.?) \ ? \d{1,6} )?
  | (?: 1 [\ .-] )? (?: \( \d{3} \) \ ? | \d{3} [\ .-] ) \d{3} [\ .-] \d{4} (?: \ ? (?:x|ext\.?) \ ? \d{1,6} )?
  | \( \d{2,5} \) [\ -]? \d{3,8} (?: [\ -] \d{2,4} ){0,3}
  | \d{2,5} (?: [\ .\-/] \d{2,8} ){1,5}
  | \d{7,12}
";

/// The most digits that a number has anywhere.
const MOST: usize = 15;
/// How far behind a row of digits an extension may reach: `x1234`, `ext. 12`.
const EXTENSION: usize = 12;

/// The end of a row of digits, or of the extension behind it.
pub fn with_extension(text: &str, end: usize) -> usize {
    match text.as_bytes()[end..] {
        [b'x' | b'e', ..] | [b' ', b'x' | b'e', ..] => text.floor_char_boundary(end + EXTENSION),
        _ => end,
    }
}

/// Words beside which a number is one of a telephone, whatever it looks like.
const WORDS: [&str; 18] = [
    "phone",
    "tel.",
    "tel:",
    "tel ",
    "telefon",
    "téléphone",
    "mobile",
    "cell",
    "fax",
    "call ",
    "dial",
    "sms",
    "whatsapp",
    "hotline",
    "contact",
    "reach ",
    "handy",
    "answering",
];

/// Words directly behind it that say the same.
const WORDS_AFTER: [&str; 9] = [
    "office", "fax", "mobile", "cell", "home", "work", "phone", "desk", "tel",
];

pub fn check(spot: &Spot) -> Option<Range<usize>> {
    let is_piece = spot.value().bytes().all(|byte| byte.is_ascii_digit());
    if is_piece && !spot.is_near(&WORDS) && !says_after(spot) {
        return None;
    }
    let spot = &trimmed(spot);
    let value = spot.value();
    let count = digits(value).count();
    let first = value.as_bytes().first();
    let number = value.split(['x', 'e']).next().unwrap_or(value);
    let own = digits(number).count();
    let alone = first == Some(&b'+') || !spot.before().ends_with(b"+");
    let alone = alone && starts_alone(spot) && (spot.ends_alone() || says_after(spot));
    if !alone || count < 7 || own > MOST || is_something_else(number) {
        return None;
    }
    let groups = groups(number);
    let says_so = || (spot.is_near(&WORDS) || says_after(spot)) && !spot.is_called_id();
    let fits = match first {
        Some(b'+') => own >= 8,
        Some(b'(') => own >= 8,
        _ if groups == [3, 3, 4] || groups == [1, 3, 3, 4] => true,
        // Abroad, or the trunk of most countries.
        Some(b'0') if groups.len() > 1 && groups != [3, 2, 4] => {
            (9..=13).contains(&own) && is_even(number)
        }
        _ => own <= 12 && says_so(),
    };
    fits.then_some(spot.start..spot.end)
}

/// Without the rest of a sentence that the pattern may have taken as a last group.
fn trimmed<'a>(spot: &Spot<'a>) -> Spot<'a> {
    const BETWEEN: [char; 4] = [' ', '.', '-', '/'];
    let mut value = spot.value().trim_end_matches(BETWEEN);
    // A number that follows is none of its groups.
    while value.starts_with('+')
        && digits(value).count() > MOST
        && !value.contains('x')
        && let Some((shorter, _)) = value.rsplit_once(BETWEEN)
    {
        value = shorter.trim_end_matches(BETWEEN);
    }
    Spot {
        end: spot.start + value.len(),
        ..*spot
    }
}

/// A list's comma may stand before it, and `tel:`.
fn starts_alone(spot: &Spot) -> bool {
    match spot.before() {
        [.., digit, b','] => !digit.is_ascii_digit(),
        _ => spot.starts_alone(),
    }
}

/// `555 1234 office`, `555 1234-Fax`.
fn says_after(spot: &Spot) -> bool {
    let after = spot.after().strip_prefix(b"-");
    let after = after.or_else(|| spot.after().strip_prefix(b" "));
    let after = after.unwrap_or_default();
    let begins = |word: &&str| {
        let first = after.get(..word.len());
        first.is_some_and(|first| first.eq_ignore_ascii_case(word.as_bytes()))
    };
    let word = WORDS_AFTER.iter().find(|word| begins(word));
    word.is_some_and(|word| !after.get(word.len()).is_some_and(u8::is_ascii_alphanumeric))
}

fn groups(number: &str) -> Vec<usize> {
    let parts = number.split(|c: char| !c.is_ascii_digit());
    parts.map(str::len).filter(|length| *length > 0).collect()
}

/// One separator between all groups but the first two.
fn is_even(number: &str) -> bool {
    let separators: Vec<char> = number.chars().filter(|c| !c.is_ascii_digit()).collect();
    let rest = separators.get(1..).unwrap_or_default();
    rest.windows(2).all(|two| two[0] == two[1])
}

/// Days, times, addresses of networks, amounts: rows of numbers that others write in the same groups.
fn is_something_else(number: &str) -> bool {
    let parts: Vec<&str> = number.split(['-', '.', '/', ' ']).collect();
    let small = |part: &str, most: u32| {
        part.len() == 2 && part.parse::<u32>().is_ok_and(|n| (1..=most).contains(&n))
    };
    let year = |part: &str| part.len() == 4 && (part.starts_with("19") || part.starts_with("20"));
    let is_day = match parts.as_slice() {
        [y, m, d, ..] if year(y) => small(m, 12) && small(d, 31),
        [d, m, y, ..] if year(y) => small(d, 31) && small(m, 31),
        [a, b] => year(a) && year(b),
        _ => false,
    };
    let octets =
        number.split('.').count() == 4 && number.split('.').all(|part| part.parse::<u8>().is_ok());
    is_day || octets || digits(number).all(|digit| digit == 0)
}
