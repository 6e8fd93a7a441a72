//! Addresses of e-mail.

use std::ops::Range;

use crate::spot::Spot;

pub const PATTERN: &str = r"[\p{L}\p{N}._%+'-]*[\p{L}\p{N}_%+-]@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+(?:xn--[A-Za-z0-9-]+|\p{L}{2,})";

/// Ends of names of files and units, which are no domains.
const FILES: [&str; 33] = [
    "png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "js", "mjs", "cjs", "ts", "tsx", "jsx",
    "json", "css", "scss", "html", "htm", "xml", "yaml", "yml", "toml", "lock", "txt", "log",
    "conf", "service", "socket", "timer", "target", "mount", "slice", "scope",
];

pub fn check(spot: &Spot) -> Option<Range<usize>> {
    let value = spot.value();
    let skipped = escape(spot).min(value.find('@')?);
    let value = value[skipped..].trim_start_matches(['.', '\'', '-']);
    let start = spot.end - value.len();
    let (local, domain) = value.split_once('@')?;
    let (_, ending) = domain.rsplit_once('.')?;
    let is_file = FILES.iter().any(|file| ending.eq_ignore_ascii_case(file));
    // `git@github.com` is how everybody logs in there.
    let is_login = local.eq_ignore_ascii_case("git");
    let fits =
        !local.is_empty() && local.len() <= 64 && domain.len() <= 253 && !is_file && !is_login;
    fits.then_some(start..spot.end)
}

/// In the text of JSON a letter may be the end of an escape, which is no part of what follows: how long that is.
fn escape(spot: &Spot) -> usize {
    let ends_in_backslash = spot.before().ends_with(b"\\");
    let is_one = ends_in_backslash && !spot.before().ends_with(b"\\\\");
    match spot.value().as_bytes() {
        [b'n' | b'r' | b't' | b'b' | b'f', ..] if is_one => 1,
        [b'u', rest @ ..] if is_one && rest.iter().take(4).all(u8::is_ascii_hexdigit) => 5,
        _ => 0,
    }
}
