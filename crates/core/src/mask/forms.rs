//! The forms in which a program may print a value: as it is, escaped for JSON, percent-encoded, as base64.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

/// Shorter values are too common to be secrets, and hiding them would make everything unreadable.
const SHORTEST: usize = 4;
/// Parts of a value are hidden from this length on: shorter ones stand in many a text by chance.
const SHORTEST_PART: usize = 8;
/// Words that every program says and that no secret is.
const WORDS: [&str; 4] = ["true", "false", "null", "none"];

pub fn is_worth_hiding(value: &str) -> bool {
    value.chars().count() >= SHORTEST
        && !value.trim().is_empty()
        && !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Every form of a value, itself included.
pub fn of(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    let trimmed = value.trim();
    let bare = (trimmed != value && is_worth_hiding(trimmed)).then_some(trimmed);
    for value in [value].into_iter().chain(bare) {
        forms.push(value.to_owned());
        // JSON may stand in a text that is JSON again.
        let once = escaped(value);
        forms.extend(once.iter().flat_map(|text| escaped(text)));
        forms.extend(once);
        forms.extend(percent_encoded(value));
        for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
            forms.push(engine.encode(value));
        }
        forms.extend(within_base64(value.as_bytes()));
    }
    // A value of several lines may be printed line by line.
    if trimmed.contains('\n') {
        let lines = value.lines().map(str::trim);
        let telling = lines.filter(|line| line.len() >= SHORTEST_PART);
        forms.extend(telling.map(str::to_owned));
    }
    forms
}

/// The text between the quotes of a JSON string, in the spellings that there are.
fn escaped(value: &str) -> Vec<String> {
    let quoted = serde_json::Value::from(value).to_string();
    let plain = quoted[1..quoted.len() - 1].to_owned();
    let mut ascii = String::with_capacity(plain.len());
    let mut units = [0; 2];
    for c in plain.chars() {
        match c.is_ascii() {
            true => ascii.push(c),
            false => {
                for unit in c.encode_utf16(&mut units) {
                    ascii.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    let slashed = ascii.replace('/', "\\/");
    vec![plain, ascii, slashed]
}

/// The value as a part of a URL or a form: programs differ in what they leave as it is.
fn percent_encoded(value: &str) -> Vec<String> {
    let encoded = |kept: &str, space: &str, lower: bool| {
        let mut text = String::with_capacity(value.len() * 3);
        for byte in value.bytes() {
            let c = char::from(byte);
            match byte {
                b' ' => text.push_str(space),
                _ if c.is_ascii_alphanumeric() || kept.contains(c) => text.push(c),
                _ if lower => text.push_str(&format!("%{byte:02x}")),
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
        text
    };
    let mut forms = Vec::new();
    // RFC 3986; Python's `quote`; JavaScript's `encodeURIComponent` and `encodeURI`; forms.
    for (kept, space) in [
        ("-._~", "%20"),
        ("-._~/", "%20"),
        ("-._~!*'()", "%20"),
        ("-._~!*'();/?:@&=+$,#", "%20"),
        ("-._", "+"),
        ("-._~", "+"),
        ("*-._", "+"),
    ] {
        forms.push(encoded(kept, space, false));
        forms.push(encoded(kept, space, true));
    }
    forms
}

/// What base64 makes of the value in the midst of a longer text: three ways to lie on its grid, less what the
/// neighbours have a part in.
fn within_base64(value: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for offset in 0..3 {
        let shifted = [vec![0; offset], value.to_vec()].concat();
        let own = (offset * 8).div_ceil(6)..shifted.len() * 8 / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let text = engine.encode(&shifted);
            if let Some(part) = text.get(own.clone())
                && part.len() >= SHORTEST_PART
            {
                forms.push(part.to_owned());
            }
        }
    }
    forms
}
