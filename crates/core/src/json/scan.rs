//! Walks over the text of JSON that is known to be well-formed, token by token, and builds no tree.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{JsonError, MAX_DEPTH};

/// One token and the part of the text that it is. Commas, colons and white space are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a member, quotes included.
    Key,
    /// A string, quotes included.
    Text,
    Number,
    /// `true`, `false` or `null`.
    Word,
    Open,
    Close,
}

impl Token {
    pub fn of<'a>(&self, text: &'a str) -> &'a str {
        &text[self.start..self.end]
    }
}

/// The tokens of a text, in its order.
pub struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn of(text: &'a str) -> Tokens<'a> {
        Tokens { text, at: 0 }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        let start = self.at + bytes[self.at..].iter().position(|byte| !between(byte))?;
        let (kind, end) = match bytes[start] {
            b'{' | b'[' => (Kind::Open, start + 1),
            b'}' | b']' => (Kind::Close, start + 1),
            b'"' => {
                let end = end_of_string(bytes, start);
                let next = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace());
                match next == Some(&b':') {
                    true => (Kind::Key, end),
                    false => (Kind::Text, end),
                }
            }
            first => {
                let ends = |byte: &u8| between(byte) || matches!(byte, b'}' | b']');
                let length = bytes[start..].iter().position(ends);
                let kind = match first {
                    b'-' | b'0'..=b'9' => Kind::Number,
                    _ => Kind::Word,
                };
                (kind, length.map_or(bytes.len(), |length| start + length))
            }
        };
        self.at = end;
        Some(Token { kind, start, end })
    }
}

/// Where the string that starts here is over.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// What a string says, quotes and escapes taken away. Nothing where an escape is half of a character.
pub fn decoded(string: &str) -> Option<Cow<'_, str>> {
    let inner = string.get(1..string.len().checked_sub(1)?)?;
    match inner.contains('\\') {
        false => Some(Cow::Borrowed(inner)),
        true => serde_json::from_str(string).ok().map(Cow::Owned),
    }
}

/// What is odd about a text.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Oddities {
    /// An object has two members of one name.
    pub repeats: bool,
    /// There are line breaks, which no message in a line may hold.
    pub line_breaks: bool,
}

/// How many names of an object are compared one by one before a set is worth it.
const FEW: usize = 16;

/// The names of one open object.
#[derive(Default)]
struct Names<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    /// False where the name was there already.
    fn add(&mut self, name: Cow<'a, str>) -> bool {
        if self.many.is_empty() {
            if self.few.contains(&name) {
                return false;
            }
            self.few.push(name);
            if self.few.len() > FEW {
                self.many.extend(self.few.drain(..));
            }
            return true;
        }
        self.many.insert(name)
    }
}

/// Are names that stand twice looked for?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    Sought,
    Fine,
}

/// Refuses what is nested too deep or holds half a character, and tells what else is odd.
pub fn check(text: &str, repeats: Repeats) -> Result<Oddities, JsonError> {
    let mut odd = Oddities {
        line_breaks: text.contains(['\n', '\r']),
        repeats: false,
    };
    let mut open: Vec<Names> = Vec::new();
    for token in Tokens::of(text) {
        match token.kind {
            Kind::Open if open.len() >= MAX_DEPTH => return Err(JsonError::Depth),
            Kind::Open => open.push(Names::default()),
            Kind::Close => drop(open.pop()),
            Kind::Key => {
                let name = decoded(token.of(text)).ok_or(JsonError::HalfCharacter)?;
                if repeats == Repeats::Sought {
                    odd.repeats |= open.last_mut().is_some_and(|names| !names.add(name));
                }
            }
            // Only escapes above the plain ones can be halves.
            Kind::Text if token.of(text).contains("\\u") => {
                decoded(token.of(text)).ok_or(JsonError::HalfCharacter)?;
            }
            Kind::Text | Kind::Number | Kind::Word => {}
        }
    }
    Ok(odd)
}

/// The text with other tokens in the place of some, or nothing where all stay. What is between them stays too.
/// The second argument is the name of the member whose value the token is, as it is written.
pub fn rewritten(
    text: &str,
    mut other: impl FnMut(Token, Option<&str>) -> Option<String>,
) -> Option<String> {
    let mut made: Option<String> = None;
    let mut copied = 0;
    let mut name = None;
    for token in Tokens::of(text) {
        if let Some(new) = other(token, name) {
            let made = made.get_or_insert_default();
            made.push_str(&text[copied..token.start]);
            made.push_str(&new);
            copied = token.end;
        }
        name = (token.kind == Kind::Key).then(|| token.of(text));
    }
    let mut made = made?;
    made.push_str(&text[copied..]);
    Some(made)
}

/// The text without white space between its tokens.
pub fn compact(text: &str) -> Cow<'_, str> {
    let mut made = String::new();
    let (mut from, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                made.push_str(&text[from..at]);
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    made.push_str(&text[from..]);
    Cow::Owned(made)
}

/// The parts of an object or a list: each value's text, with its name in an object.
pub struct Parts<'a> {
    text: &'a str,
    tokens: Tokens<'a>,
}

impl<'a> Parts<'a> {
    /// Of anything else there are none.
    pub fn of(text: &'a str) -> Parts<'a> {
        let mut tokens = Tokens::of(text);
        if !text.starts_with(['{', '[']) {
            tokens.at = text.len();
        } else {
            tokens.next();
        }
        Parts { text, tokens }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<(Cow<'a, str>, &'a str)> {
        let mut name = Cow::Borrowed("");
        let mut token = self.tokens.next()?;
        if token.kind == Kind::Key {
            name = decoded(token.of(self.text)).unwrap_or_default();
            token = self.tokens.next()?;
        }
        let start = token.start;
        let mut depth = 0_usize;
        loop {
            match token.kind {
                Kind::Open => depth += 1,
                // The end of the whole.
                Kind::Close if depth == 0 => return None,
                Kind::Close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some((name, &self.text[start..token.end]));
            }
            token = self.tokens.next()?;
        }
    }
}
