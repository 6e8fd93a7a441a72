//! Words: where one ends, and what may follow it.

use super::Last;

/// What a word is, and whether a statement may go on with it after `;`, `}` or a line's end.
pub(super) fn meaning(word: &str) -> (Last, bool) {
    match word {
        "if" | "for" | "with" => (Last::Control, false),
        "while" => (Last::Control, true),
        "else" | "in" | "of" | "instanceof" | "as" | "satisfies" | "is" | "extends"
        | "implements" | "from" | "catch" | "finally" => (Last::Operator, true),
        "typeof" | "void" | "delete" | "new" | "return" | "throw" | "case" | "do" | "import"
        | "export" | "default" | "var" | "const" | "function" | "class" | "enum" => {
            (Last::Operator, false)
        }
        "await" | "yield" | "let" | "async" | "keyof" | "unique" | "readonly" | "infer"
        | "asserts" | "abstract" | "declare" | "type" | "interface" | "namespace" | "module"
        | "get" | "set" | "static" | "public" | "private" | "protected" | "override"
        | "accessor" | "using" => (Last::Either, false),
        _ => (Last::Value, false),
    }
}

/// Where the word ends that a text begins with.
pub(super) fn word_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'#' | b'\\' => end += 1,
            0..0x80 => break,
            _ => match text[end..].chars().next() {
                Some(one) if !is_space(one) && !matches!(one, '\u{2028}' | '\u{2029}') => {
                    end += one.len_utf8();
                }
                _ => break,
            },
        }
    }
    end
}

pub(super) fn is_space(one: char) -> bool {
    one == '\u{feff}' || one.is_whitespace()
}
