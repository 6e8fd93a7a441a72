//! How deep a TypeScript or JavaScript text is, before it is parsed.
//!
//! The parser has no lexer to lend, so this is one of our own, good enough to tell strings, templates, comments and
//! regular expressions from the rest, and to see where a statement has ended for certain. Where it can't tell, and a
//! wrong guess would hide what follows, the text is refused.

#[cfg(test)]
mod tests;
mod words;

use crate::budget::{Excess, Gauge};

use words::{is_space, meaning, word_end};

/// The deepest nesting of brackets and templates.
const BRACKETS: usize = 200;
/// How many parameters or arguments one function has, and how many private names a file: the parser compares each with
/// all others.
const PARAMETERS: usize = 1_000;
const PRIVATE: usize = 5_000;

/// What came last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Something after which a value is due.
    Operator,
    /// The same, and it was a colon.
    Colon,
    /// A value, or the end of one.
    Value,
    /// The same, in brackets that may have been parameters.
    Group,
    /// A word that may be a value, and may be something that a value follows.
    Either,
    /// A word after which a condition stands in brackets.
    Control,
    /// The end of such a condition.
    Condition,
    /// A dot: the word after it is a name, whatever it says.
    Dot,
    /// What ended a type's arguments, perhaps.
    Angle,
    /// `}`
    Brace,
    /// `;`, or the beginning.
    Nothing,
}

/// What is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Round {
        control: bool,
        /// It does not belong to what stands before it.
        group: bool,
        commas: usize,
    },
    Square,
    Brace,
    /// `${`
    Piece,
    Template,
}

struct Shape<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    types: bool,
    gauge: Gauge,
    open: Vec<Open>,
    last: Last,
    /// Has a line ended since the last token?
    line_ended: bool,
    /// How many `<` of this statement are open.
    angles: usize,
    private: usize,
}

/// Refuses a text that is too deep for the parser. `types` says whether it is TypeScript. Gives whether everything that
/// opens was closed, as it must be in what the parser accepts.
pub fn check(text: &str, types: bool) -> Result<bool, Excess> {
    let mut shape = Shape {
        text,
        bytes: text.as_bytes(),
        at: 0,
        types,
        gauge: Gauge::new(),
        open: Vec::new(),
        last: Last::Nothing,
        line_ended: true,
        angles: 0,
        private: 0,
    };
    if text.starts_with("#!") {
        shape.skip_line();
    }
    while shape.at < text.len() {
        match shape.open.last() {
            Some(Open::Template) => shape.template()?,
            _ => shape.token()?,
        }
    }
    Ok(shape.open.is_empty())
}

impl Shape<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn follows(&self, what: &str) -> bool {
        self.bytes[self.at..].starts_with(what.as_bytes())
    }

    fn token(&mut self) -> Result<(), Excess> {
        let at = self.at;
        match self.byte(0) {
            b'\n' | b'\r' => {
                self.line_ended = true;
                self.at += 1;
            }
            b' ' | b'\t' | 0x0b | 0x0c => {
                self.at += 1;
                while self.byte(0) == b' ' {
                    self.at += 1;
                }
            }
            b'/' if self.byte(1) == b'/' => self.skip_line(),
            b'/' if self.byte(1) == b'*' => self.skip_comment(),
            b'/' => return self.slash(),
            b'\'' | b'"' => {
                self.value_begins();
                self.skip_string();
                self.gauge.token(at)?;
                self.last = Last::Value;
            }
            b'`' => {
                self.after_statement(false);
                self.at += 1;
                self.push(Open::Template, at)?;
            }
            byte @ (b'(' | b'[' | b'{') => return self.bracket(byte),
            byte @ (b')' | b']' | b'}') => {
                self.at += 1;
                self.close(byte, at)?;
            }
            b';' => {
                self.at += 1;
                self.gauge.token(at)?;
                self.last = Last::Nothing;
            }
            b',' => return self.comma(),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'$' | b'#' | b'\\' => {
                return self.word();
            }
            byte if byte < 0x80 => return self.operator(byte),
            _ => {
                let Some(one) = self.text.get(at..).and_then(|rest| rest.chars().next()) else {
                    self.at += 1;
                    return Ok(());
                };
                if matches!(one, '\u{2028}' | '\u{2029}') {
                    self.line_ended = true;
                } else if !is_space(one) {
                    return self.word();
                }
                self.at += one.len_utf8();
            }
        }
        Ok(())
    }

    /// An opening bracket.
    fn bracket(&mut self, byte: u8) -> Result<(), Excess> {
        let at = self.at;
        self.after_statement(false);
        let kind = match byte {
            b'(' => Open::Round {
                control: self.last == Last::Control,
                group: !matches!(self.last, Last::Value | Last::Group | Last::Control),
                commas: 0,
            },
            b'[' => Open::Square,
            _ => Open::Brace,
        };
        self.at += 1;
        self.push(kind, at)?;
        if matches!(kind, Open::Round { group: true, .. }) {
            self.gauge.guess_until_close();
        }
        self.last = Last::Nothing;
        Ok(())
    }

    fn comma(&mut self) -> Result<(), Excess> {
        let at = self.at;
        self.after_statement(false);
        self.at += 1;
        self.gauge.comma();
        self.gauge.token(at)?;
        if let Some(Open::Round { commas, .. }) = self.open.last_mut() {
            *commas += 1;
            if *commas > PARAMETERS {
                let message = format!(
                    "there are more than {PARAMETERS} parameters or arguments here, and no more is read; use a list"
                );
                return Err(Excess::new(at, message));
            }
        }
        self.last = Last::Operator;
        Ok(())
    }

    fn push(&mut self, open: Open, at: usize) -> Result<(), Excess> {
        self.gauge.open(at)?;
        self.open.push(open);
        self.line_ended = false;
        if self.open.len() > BRACKETS {
            let message = format!(
                "brackets and templates are nested more than {BRACKETS} deep, and that is the most that is read; split this up"
            );
            return Err(Excess::new(at, message));
        }
        Ok(())
    }

    fn close(&mut self, byte: u8, at: usize) -> Result<(), Excess> {
        self.line_ended = false;
        let top = self.open.last().copied();
        let last = match (byte, top) {
            (b')', Some(Open::Round { control: true, .. })) => Last::Condition,
            (b')', Some(Open::Round { group: true, .. })) => Last::Group,
            (b')', Some(Open::Round { .. })) | (b']', Some(Open::Square)) => Last::Value,
            (b'}', Some(Open::Brace)) => Last::Brace,
            (b'}', Some(Open::Piece)) => Last::Operator,
            // It closes nothing, and the parser will say so.
            _ => return self.gauge.link(at),
        };
        self.open.pop();
        self.gauge.close();
        self.angles = 0;
        self.last = last;
        Ok(())
    }

    /// The text of a template, up to its end or to a piece of code.
    fn template(&mut self) -> Result<(), Excess> {
        let at = self.at;
        match self.byte(0) {
            b'\\' => self.at += 2,
            b'`' => {
                self.at += 1;
                self.open.pop();
                self.gauge.close();
                self.last = Last::Value;
            }
            b'$' if self.byte(1) == b'{' => {
                self.at += 2;
                self.gauge.comma();
                self.push(Open::Piece, at)?;
                self.last = Last::Nothing;
            }
            _ => {
                let rest = &self.bytes[at..];
                self.at +=
                    memchr::memchr3(b'\\', b'`', b'$', rest).map_or(rest.len(), |end| end.max(1));
            }
        }
        Ok(())
    }

    /// A value, a word or a bracket begins: has the statement before it ended?
    fn after_statement(&mut self, is_word: bool) {
        let ends = match self.last {
            Last::Nothing => true,
            Last::Brace => is_word,
            Last::Value | Last::Group => is_word && self.line_ended,
            Last::Angle => is_word && self.line_ended && self.types,
            _ => false,
        };
        if ends {
            self.gauge.end();
            self.angles = 0;
        }
    }

    fn value_begins(&mut self) {
        self.after_statement(true);
        self.line_ended = false;
    }

    fn word(&mut self) -> Result<(), Excess> {
        let at = self.at;
        let rest = self.text.get(at..).unwrap_or_default();
        let word = &rest[..word_end(rest)];
        self.at += word.len().max(1);
        if word.starts_with('#') {
            self.private += 1;
            if self.private > PRIVATE {
                let message = format!(
                    "private names are used more than {PRIVATE} times up to here, and no more is read; split the file"
                );
                return Err(Excess::new(at, message));
            }
        }
        if self.last == Last::Dot {
            self.line_ended = false;
            self.last = Last::Value;
            return self.gauge.token(at);
        }
        let (last, goes_on) = meaning(word);
        if (word == "case" || word == "default") && self.last == Last::Colon {
            self.gauge.end();
        } else if !goes_on {
            self.after_statement(true);
        }
        if word == "var" {
            // It belongs to the function, through all blocks around it.
            self.gauge.guess_through(at)?;
        }
        self.line_ended = false;
        self.last = last;
        let is_number = word.starts_with(|one: char| one.is_ascii_digit());
        match is_number {
            true => self.gauge.token(at),
            false => self.gauge.link(at),
        }
    }

    fn operator(&mut self, byte: u8) -> Result<(), Excess> {
        let at = self.at;
        let line_ended = self.line_ended;
        if self.follows("<!--") || (line_ended && self.follows("-->")) {
            let message = "`<!--` and `-->` may begin a comment here, and may not; leave them out";
            return Err(Excess::new(at, message));
        }
        // `@` begins a class or a part of one.
        self.after_statement(byte == b'@' && self.last == Last::Brace);
        self.line_ended = false;
        self.at += 1;
        match byte {
            b'<' => {
                self.last = Last::Operator;
                self.angles += 1;
                self.gauge.link(at)?;
                if self.types {
                    self.gauge.guess();
                }
                return self.gauge.lasting(at);
            }
            b'>' => {
                let arrow = at > 0 && self.bytes[at - 1] == b'=';
                self.last = match self.angles > 0 && !arrow {
                    true => Last::Angle,
                    false => Last::Operator,
                };
                if !arrow {
                    self.angles = self.angles.saturating_sub(1);
                    self.gauge.relent();
                }
            }
            b'.' => self.last = Last::Dot,
            b':' => {
                // `a ? (b) : c => d`: is `c` what a function gives?
                if self.types && self.last == Last::Group {
                    self.gauge.guess_until_comma();
                }
                self.last = Last::Colon;
            }
            // `a!` is a value as `a` is.
            b'!' if !line_ended
                && matches!(self.last, Last::Value | Last::Group)
                && self.byte(0) != b'=' =>
            {
                self.last = Last::Either;
            }
            b'+' | b'-' if self.byte(0) == byte => {
                self.at += 1;
                self.last = Last::Either;
            }
            _ => self.last = Last::Operator,
        }
        // The second sign of one operator adds nothing.
        let again = at > 0 && self.bytes[at - 1] == byte && b"=&|*?>".contains(&byte);
        match again {
            true => self.gauge.token(at),
            false => self.gauge.link(at),
        }
    }

    /// A division, or a regular expression.
    fn slash(&mut self) -> Result<(), Excess> {
        let at = self.at;
        let end = self.expression_end();
        let divides = match self.last {
            Last::Value | Last::Group => true,
            // Either way what is between the signs is read as code, so it must not hide anything.
            Last::Either | Last::Brace | Last::Angle => {
                if end.is_some_and(|end| !self.is_plain(at + 1, end)) {
                    let message = "`/` may divide here, and may begin a regular expression; put brackets around the expression, or `;` before it";
                    return Err(Excess::new(at, message));
                }
                true
            }
            _ => false,
        };
        self.line_ended = false;
        match end {
            Some(end) if !divides => {
                self.after_statement(true);
                self.at = end + 1;
                self.last = Last::Value;
                self.gauge.token(at)
            }
            _ => {
                self.at += 1;
                self.last = Last::Operator;
                self.gauge.link(at)
            }
        }
    }

    /// Where a regular expression that begins here would end: at a `/` on the same line.
    fn expression_end(&self) -> Option<usize> {
        let mut class = false;
        let mut at = self.at + 1;
        loop {
            match *self.bytes.get(at)? {
                b'\n' | b'\r' => return None,
                b'\\' => at += 1,
                b'[' => class = true,
                b']' => class = false,
                b'/' if !class => return Some(at),
                0xe2 if self.bytes[at..].starts_with(b"\xe2\x80\xa8") => return None,
                0xe2 if self.bytes[at..].starts_with(b"\xe2\x80\xa9") => return None,
                _ => {}
            }
            at += 1;
        }
    }

    /// Does this text read the same as code and as a regular expression?
    fn is_plain(&self, from: usize, end: usize) -> bool {
        let mut open = Vec::new();
        for byte in &self.bytes[from..end] {
            match byte {
                b'\'' | b'"' | b'`' | b'/' => return false,
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b')' | b']' | b'}' if open.pop() != Some(*byte) => return false,
                _ => {}
            }
        }
        open.is_empty() && !matches!(self.bytes.get(end + 1), Some(b'/' | b'*'))
    }

    fn skip_line(&mut self) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = |one| matches!(one, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        self.at += rest.find(ends).unwrap_or(rest.len());
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at + 2..];
        let end = rest.find("*/").unwrap_or(rest.len());
        let ends = |one| matches!(one, '\n' | '\r' | '\u{2028}' | '\u{2029}');
        self.line_ended |= rest[..end].contains(ends);
        self.at += 2 + (end + 2).min(rest.len());
    }

    fn skip_string(&mut self) {
        let quote = self.byte(0);
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b'\\' if self.byte(1) == b'\r' && self.byte(2) == b'\n' => self.at += 3,
                b'\\' => self.at += 2,
                b'\n' | b'\r' => return,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return;
                    }
                }
            }
        }
    }
}
