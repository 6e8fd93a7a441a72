//! A place in a text that may be a finding, with what stands around it.

/// How far back words are read that tell what a number is.
const NEAR: usize = 48;

/// A candidate.
pub struct Spot<'a> {
    pub text: &'a str,
    pub start: usize,
    pub end: usize,
    /// The name of the JSON member whose value the text is.
    pub label: Option<&'a str>,
}

impl<'a> Spot<'a> {
    pub fn value(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    pub fn before(&self) -> &'a [u8] {
        &self.text.as_bytes()[..self.start]
    }

    pub fn after(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.end..]
    }

    /// Does the candidate stand alone, or is it a part of a longer number, id or name?
    pub fn stands_alone(&self) -> bool {
        self.starts_alone() && self.ends_alone()
    }

    pub fn starts_alone(&self) -> bool {
        match self.before() {
            [] => true,
            // In the text of JSON a letter may be the end of an escape.
            [.., b'\\', b'n' | b'r' | b't'] => true,
            [.., b'-' | b'.' | b'/' | b'_' | b'#' | b'+' | b','] => false,
            [.., last] => !is_word(*last),
        }
    }

    pub fn ends_alone(&self) -> bool {
        match self.after() {
            [] => true,
            [b'-' | b'.' | b'/' | b',' | b':', next, ..] => !next.is_ascii_alphanumeric(),
            [first, ..] => !is_word(*first),
        }
    }

    /// The words shortly before the candidate on its line, or on the one above where it begins its own, in lower case.
    pub fn words_before(&self) -> String {
        let from = self
            .text
            .floor_char_boundary(self.start.saturating_sub(NEAR));
        let near = &self.text[from..self.start];
        let line = near.rsplit('\n').find(|line| !line.trim().is_empty());
        line.unwrap_or_default().to_ascii_lowercase()
    }

    /// The name that the candidate is the value of, in lower case: the word before `:` or `=`, or its JSON member's.
    pub fn name(&self) -> Option<String> {
        let words = self.words_before();
        let bare = words.trim_end_matches([' ', '"', '\'', '\\']);
        let Some(named) = bare.strip_suffix([':', '=']) else {
            return self.label.map(str::to_lowercase);
        };
        let named = named.trim_end_matches([' ', '"', '\'', '\\']);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        let rest = named.trim_end_matches(is_part);
        Some(named[rest.len()..].to_owned())
    }

    /// The value is called an id of some kind.
    pub fn is_called_id(&self) -> bool {
        const IDS: [&str; 8] = [
            "id", "uuid", "guid", "order", "ref", "sku", "trace", "build",
        ];
        let name = self.name();
        name.is_some_and(|name| {
            let mut parts = name.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| IDS.contains(&part)) || (name.ends_with("id") && name.len() < 24)
        })
    }

    /// One of these words stands shortly before the candidate, or in its name.
    pub fn is_near(&self, words: &[&str]) -> bool {
        let label = self.label.map(str::to_lowercase);
        let label = label.unwrap_or_default();
        let before = self.words_before();
        // In names of members a word may begin anywhere: `homePhone`, `userphone`.
        words.iter().any(|word| label.contains(word)) || begins_word(&before, words)
    }
}

/// Does a word of the text begin with one of these?
fn begins_word(text: &str, words: &[&str]) -> bool {
    let bytes = text.as_bytes();
    let starts = |at: &usize| is_word(bytes[*at]) && (*at == 0 || !is_word(bytes[at - 1]));
    let mut starts = (0..bytes.len()).filter(starts);
    starts.any(|at| {
        let rest = &bytes[at..];
        words.iter().any(|word| {
            let word = word.as_bytes();
            rest[0] == word[0] && rest.starts_with(word)
        })
    })
}

pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The digits of a text.
pub fn digits(text: &str) -> impl Iterator<Item = u8> + Clone + '_ {
    let digits = text.bytes().filter(u8::is_ascii_digit);
    digits.map(|digit| digit - b'0')
}
