//! Placeholders `{{name}}` in commands and URLs: how they are spelled, and what a value looks like in their place.

use toolcrib_core::{CallError, Object};

/// The longest value that is put in a placeholder's place, in characters.
pub const MAX_VALUE: usize = 10_000;

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    Slot(String),
}

/// A `{{…}}` that can't be a placeholder; holds what stands there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("contains `{0}`, which is not a placeholder")]
pub struct BadSlot(pub String);

impl BadSlot {
    pub const HINT: &'static str = "write a placeholder as `{{name}}`: a letter or `_`, then letters, digits, `_`, `-` or `.`; \
         to pass two braces as they are in a command, quote them one by one: `'{'{`";
}

/// Reads the placeholder at the start of `text`, which begins with `{{`: its name, and what comes after it.
pub fn take(text: &str) -> Result<(&str, &str), BadSlot> {
    let bad = || BadSlot(text.chars().take(30).collect());
    let (inner, rest) = text
        .strip_prefix("{{")
        .and_then(|text| text.split_once("}}"))
        .ok_or_else(bad)?;
    let name = inner.trim_matches(' ');
    let first = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    let later = |c: char| first(c) || c.is_numeric() || c == '-' || c == '.';
    if name.starts_with(first) && name.chars().all(later) {
        Ok((name, rest))
    } else {
        Err(bad())
    }
}

/// Cuts `text` into literal parts and placeholders.
pub fn pieces(mut text: &str) -> Result<Vec<Piece>, BadSlot> {
    let mut pieces = Vec::new();
    while let Some(start) = text.find("{{") {
        if start > 0 {
            pieces.push(Piece::Text(text[..start].to_owned()));
        }
        let (name, rest) = take(&text[start..])?;
        pieces.push(Piece::Slot(name.to_owned()));
        text = rest;
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
    Ok(pieces)
}

/// The text that goes in the place of `{{name}}`, or `None` when it is unset.
pub fn value_of(arguments: &Object, name: &str) -> Result<Option<String>, CallError> {
    let Some(text) = arguments.text_of(name) else {
        return Ok(None);
    };
    if text.contains('\0') {
        return Err(CallError::invalid(format!("`{name}` contains a null byte"))
            .hint(format!("give `{name}` without null bytes")));
    }
    if text.len() > MAX_VALUE && text.chars().count() > MAX_VALUE {
        return Err(
            CallError::invalid(format!("`{name}` is longer than {MAX_VALUE} characters"))
                .hint(format!("give a shorter `{name}`")),
        );
    }
    Ok(Some(text))
}

/// The refusal of a call that leaves out what the template needs.
pub fn unset(name: &str) -> CallError {
    CallError::invalid(format!(
        "`{name}` is not set, and the tool can't do without it"
    ))
    .hint(format!("give `{name}` in the arguments"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_cut_out() {
        let (text, slot) = (
            |t: &str| Piece::Text(t.into()),
            |n: &str| Piece::Slot(n.into()),
        );
        let table = [
            ("", vec![]),
            ("plain", vec![text("plain")]),
            ("{{a}}", vec![slot("a")]),
            (
                "x{{ a }}y{{b-c.d_1}}",
                vec![text("x"), slot("a"), text("y"), slot("b-c.d_1")],
            ),
            ("{a}{{größe}}}", vec![text("{a}"), slot("größe"), text("}")]),
        ];
        for (template, expected) in table {
            assert_eq!(pieces(template).unwrap(), expected, "{template}");
        }
        for bad in [
            "{{",
            "{{a",
            "{{}}",
            "{{ }}",
            "{{a b}}",
            "{{.Names}}",
            "{{{a}}}",
            "{{1}}",
            "{{a}",
        ] {
            assert!(pieces(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_text() {
        let arguments =
            r#"{"s": "a b", "n": 1.50, "b": true, "a": [1, "x"], "o": {"k": null}, "u": null}"#;
        let arguments = Object::parse(arguments).unwrap();
        let value = |name: &str| value_of(&arguments, name).unwrap();
        assert_eq!(value("s").as_deref(), Some("a b"));
        assert_eq!(value("n").as_deref(), Some("1.50"));
        assert_eq!(value("b").as_deref(), Some("true"));
        assert_eq!(value("a").as_deref(), Some(r#"[1,"x"]"#));
        assert_eq!(value("o").as_deref(), Some(r#"{"k":null}"#));
        assert_eq!(value("u"), None);
        assert_eq!(value("missing"), None);
    }
}
