//! Text that people copy.

/// A text as a shell takes it for one word, because hints are copied.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_one_harmless_command() {
        assert_eq!(quoted("/srv/a-b_c.d"), "/srv/a-b_c.d");
        assert_eq!(quoted("/a; touch x"), "'/a; touch x'");
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
