//! Addresses of pages: with a scheme, with `www.`, or a known ending and a path.

use std::ops::Range;

use crate::spot::Spot;

pub const PATTERN: &str = r#"(?i:https?://)[^\s<>"{}|\\^`\[\]]+|(?i:www\.)?[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+(?::\d{1,5})?(?:[/?#][^\s<>"{}|\\^`\[\]]*)?"#;

/// What a host ends in that has neither scheme nor `www.`, but a path. Endings that files have too are left out:
/// `lib.rs/x` and `main.py/x` are paths.
const ENDINGS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "mil", "int", "info", "biz", "io", "ai", "co", "dev", "app",
    "me", "eu", "us", "uk", "de", "fr", "es", "it", "nl", "se", "no", "fi", "dk", "ch", "at", "be",
    "cz", "pt", "br", "ca", "au", "nz", "jp", "cn", "in", "kr", "ru", "za", "mx", "ar", "tv", "ie",
    "gr", "hu", "ro", "tr", "ua", "il", "sg", "hk", "tw", "th", "vn", "id", "xyz", "online",
    "site", "store", "tech", "cloud", "page", "blog", "link", "shop", "club", "live", "news",
    "agency",
];

/// Would a host end here, in a text that has no more to say for it?
pub fn is_ending(text: &[u8]) -> bool {
    ENDINGS
        .iter()
        .any(|ending| text.eq_ignore_ascii_case(ending.as_bytes()))
}

pub fn check(spot: &Spot) -> Option<Range<usize>> {
    let value = trimmed(spot.value());
    let end = spot.start + value.len();
    let lower = value.get(..8).unwrap_or(value).to_ascii_lowercase();
    let scheme = ["https://", "http://"]
        .into_iter()
        .find(|scheme| lower.starts_with(scheme));
    let fits = match scheme {
        // `git+https://…` and `registry+https://…` name the source of a package.
        Some(scheme) => value.len() > scheme.len() && !spot.before().ends_with(b"+"),
        None => !joined(spot) && (lower.starts_with("www.") || has_path(value)),
    };
    fits.then_some(spot.start..end)
}

/// It goes on from something else: a path, an address of e-mail, a longer name.
fn joined(spot: &Spot) -> bool {
    let last = spot.before().last();
    last.is_some_and(|byte| {
        byte.is_ascii_alphanumeric() || b"@/._-~$\\+".contains(byte) || *byte >= 0x80
    })
}

fn has_path(value: &str) -> bool {
    let Some((host, _)) = value.split_once('/') else {
        return false;
    };
    let host = host.split(':').next().unwrap_or(host);
    host.rsplit_once('.')
        .is_some_and(|(_, ending)| is_ending(ending.as_bytes()))
}

/// Without what ends the sentence that it stands in.
fn trimmed(value: &str) -> &str {
    let mut value = value;
    loop {
        let shorter = value.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*']);
        let shorter = match shorter.strip_suffix(')') {
            Some(inner) if inner.matches('(').count() < shorter.matches(')').count() => inner,
            _ => shorter,
        };
        if shorter.len() == value.len() {
            return value;
        }
        value = shorter;
    }
}
