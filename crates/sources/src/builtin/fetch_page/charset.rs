//! In which characters a page is written: what its server says, its first bytes, its own word, or what fits.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Where a page names its characters itself.
const HEAD: usize = 2_048;

pub struct Decoded {
    pub text: String,
    pub charset: &'static str,
}

/// The text; nothing where it is none.
pub fn decode(bytes: &[u8], content_type: &str) -> Option<Decoded> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return Some(with(encoding, &bytes[mark..]));
    }
    let named = parameter(content_type).and_then(|label| Encoding::for_label(label.as_bytes()));
    if !is_text(content_type) && named.is_none() && !looks_like_text(bytes) {
        return None;
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    let said = || {
        Encoding::for_label(meta(&String::from_utf8_lossy(head).to_ascii_lowercase())?.as_bytes())
    };
    let encoding = named
        .or_else(said)
        .unwrap_or(match std::str::from_utf8(bytes) {
            Ok(_) => UTF_8,
            // The end of a long page may be cut through a character.
            Err(error) if error.error_len().is_none() && error.valid_up_to() > HEAD => UTF_8,
            Err(_) => WINDOWS_1252,
        });
    Some(with(encoding, bytes))
}

fn with(encoding: &'static Encoding, bytes: &[u8]) -> Decoded {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    Decoded {
        text: text.into_owned(),
        charset: encoding.name(),
    }
}

fn parameter(content_type: &str) -> Option<&str> {
    let mut parts = content_type.split(';').skip(1);
    let label = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then_some(value)
    })?;
    Some(label.trim().trim_matches('"'))
}

/// The characters that `<meta charset=…>` or `<meta … content="…; charset=…">` names, in a text of small letters.
fn meta(head: &str) -> Option<&str> {
    head.split("<meta").skip(1).find_map(|tag| {
        let tag = tag.split('>').next()?;
        let (_, value) = tag.split_once("charset=")?;
        let value = value.trim_start_matches(['"', '\'', ' ']);
        value
            .split(['"', '\'', ';', ' ', '/'])
            .next()
            .filter(|label| !label.is_empty())
    })
}

fn is_text(content_type: &str) -> bool {
    let mime = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let structured = ["json", "xml", "javascript", "yaml", "x-ndjson"];
    mime.starts_with("text/") || structured.iter().any(|end| mime.ends_with(end))
}

fn looks_like_text(bytes: &[u8]) -> bool {
    let plain = !bytes.contains(&0);
    plain && std::str::from_utf8(bytes).map_or_else(|error| error.error_len().is_none(), |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_found_where_they_are_named() {
        let german = b"<meta charset='ISO-8859-1'>\xe4";
        for (bytes, content_type, text, charset) in [
            (&b"\xc3\xa4"[..], "text/html", "ä", "UTF-8"),
            (
                b"\xe4",
                "text/html; charset=iso-8859-1",
                "ä",
                "windows-1252",
            ),
            (b"\xe4", "text/plain", "ä", "windows-1252"),
            (
                b"\xef\xbb\xbf\xc3\xa4",
                "text/html; charset=latin1",
                "ä",
                "UTF-8",
            ),
            (
                b"\x82\xa0",
                "text/html; charset=\"Shift_JIS\"",
                "あ",
                "Shift_JIS",
            ),
            (b"\xff\xfea\x00", "text/plain", "a", "UTF-16LE"),
            (b"{}", "application/ld+json", "{}", "UTF-8"),
            (b"plain", "", "plain", "UTF-8"),
        ] {
            let decoded = decode(bytes, content_type).unwrap();
            assert_eq!((decoded.text.as_str(), decoded.charset), (text, charset));
        }
        assert!(decode(german, "text/html").unwrap().text.ends_with('ä'));
        assert!(decode(b"\x89PNG\x00\xff", "image/png").is_none());
        assert!(decode(b"\x00\x01", "").is_none());
    }
}
