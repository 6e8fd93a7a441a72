//! A shell tool's command line: split once by POSIX quoting into an argument array that no shell ever sees.
//!
//! Why: `docs/design/0003-argument-arrays-not-shells.md`.

use serde_json::Value;
use toolcrib_core::{CallError, ErrorType, Object};

use super::evaluators::{self, Word};
use super::slots::{self, BadSlot, Piece};

/// What a shell would act upon. In a value it is plain data; that it was there is worth a log line.
const METACHARACTERS: &[char] = &[
    '|', '&', ';', '<', '>', '(', ')', '$', '`', '\\', '"', '\'', '\n', '*', '?', '[', '~', '#',
];

/// May a value begin with `-`, and so be taken for an option?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dashes {
    Refused,
    Allowed,
}

/// A command line with placeholders.
#[derive(Debug)]
pub struct Template {
    tokens: Vec<Token>,
    dashes: Dashes,
    /// It ended in `|| true`: a non-zero exit is not a failure.
    pub failure_is_fine: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Token {
    pieces: Vec<Piece>,
    quoted: bool,
}

/// Why a command line is refused when it is loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("is empty")]
    Empty,
    #[error("contains a null byte")]
    NullByte,
    #[error("contains the shell operator `{0}`, but no shell runs it")]
    Operator(char),
    #[error("contains a line break outside quotes, but it is one command")]
    LineBreak,
    #[error("contains `{0}`, which a shell would expand, but no shell runs it")]
    Expansion(char),
    #[error("contains the file pattern `{0}` outside quotes, but no shell expands it")]
    Pattern(char),
    #[error("has a word that begins with `{0}`, which a shell would treat in its own way")]
    WordStart(char),
    #[error("has a {0} that is never closed")]
    Unterminated(&'static str),
    #[error("sets the variable `{0}` before the program, which only a shell does")]
    Assignment(String),
    #[error("lets the placeholder `{{{{{0}}}}}` choose the program")]
    ProgramSlot(String),
    #[error(
        "puts `{{{{{slot}}}}}` inside a script for `{program}`, where a value could run anything"
    )]
    Script { slot: String, program: String },
    #[error(transparent)]
    Slot(#[from] BadSlot),
}

impl TemplateError {
    /// What the author of the tool can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            TemplateError::Empty => {
                "write the program and its arguments, such as `grep -rn -- '{{pattern}}'`"
            }
            TemplateError::NullByte => "remove the `\\u0000`",
            TemplateError::Operator(_) => {
                "put the steps into a script file and run that, or quote the character where it is plain text; \
                 only a trailing `|| true` is understood"
            }
            TemplateError::LineBreak => {
                "write one command on one line; several steps belong into a script file"
            }
            TemplateError::Expansion(_) => {
                "put it in single quotes where it is plain text, or make it a placeholder"
            }
            TemplateError::Pattern(_) | TemplateError::WordStart(_) => {
                "quote it where it is plain text, or write the path out"
            }
            TemplateError::Unterminated(_) => "close it, or escape the character with a backslash",
            TemplateError::Assignment(_) => {
                "run it through `env`, such as `env NAME=value program`"
            }
            TemplateError::ProgramSlot(_) => {
                "write the program itself; placeholders may stand in its arguments only"
            }
            TemplateError::Script { program, .. } if program.ends_with("sed") => {
                "let sed refuse what runs programs and writes files: `sed --sandbox …`"
            }
            TemplateError::Script { program, .. } if program.ends_with("awk") => {
                "pass the value as a variable, such as `awk -v value={{value}} '$1 == value'`"
            }
            TemplateError::Script { program, .. } if program.ends_with("jq") => {
                "pass the value as a variable, such as `jq --arg value {{value}} '.name == $value'`"
            }
            TemplateError::Script { program, .. } if program.ends_with("make") => {
                "write the target out, or pass the value through a variable of the environment: `env VALUE={{value}} make target`, \
                 which the recipe reads as \"$$VALUE\""
            }
            TemplateError::Script { .. } => {
                "pass the value as an argument of the script, such as `sh -c 'echo \"$1\"' sh {{value}}` or \
                 `python3 -c 'import sys; print(sys.argv[1])' {{value}}`"
            }
            TemplateError::Slot(_) => BadSlot::HINT,
        }
    }

    pub fn error_type(&self) -> ErrorType {
        match self {
            TemplateError::ProgramSlot(_) | TemplateError::Script { .. } => ErrorType::Security,
            _ => ErrorType::Validation,
        }
    }
}

impl Template {
    pub fn parse(command: &str, dashes: Dashes) -> Result<Template, TemplateError> {
        if command.contains('\0') {
            return Err(TemplateError::NullByte);
        }
        let (tokens, failure_is_fine) =
            Scanner::default().scan(command.trim_end_matches(['\n', '\r']))?;
        let program = tokens.first().ok_or(TemplateError::Empty)?;
        if let Some(slot) = program.slots().next() {
            return Err(TemplateError::ProgramSlot(slot.to_owned()));
        }
        let word = program.literal().unwrap_or_default();
        if word.is_empty() {
            return Err(TemplateError::Empty);
        }
        if let Some(variable) = assigned(&word).filter(|_| !program.quoted) {
            return Err(TemplateError::Assignment(variable.to_owned()));
        }
        let template = Template {
            tokens,
            dashes,
            failure_is_fine,
        };
        let injected = template
            .scripts()
            .filter(|(_, script)| script.sole_slot().is_none())
            .find_map(|(program, script)| {
                let slot = script.slots().next()?.to_owned();
                Some(TemplateError::Script { slot, program })
            });
        injected.map_or(Ok(template), Err)
    }

    /// The names of its placeholders.
    pub fn slots(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().flat_map(Token::slots)
    }

    /// The program that it runs, where no placeholder decides.
    pub fn program(&self) -> Option<String> {
        self.tokens.first()?.literal()
    }

    /// Its words, as far as no placeholder decides them.
    pub fn words(&self) -> impl Iterator<Item = Option<String>> {
        self.tokens.iter().map(Token::literal)
    }

    /// The placeholder that is itself a whole script: the agent then says what is run.
    pub fn script_slot(&self) -> Option<&str> {
        self.scripts().find_map(|(_, script)| script.sole_slot())
    }

    /// The programs that read one of its tokens as a script (`sh -c TOKEN`), each with that token.
    fn scripts(&self) -> impl Iterator<Item = (String, &Token)> {
        let words: Vec<Word> = self.tokens.iter().map(Token::word).collect();
        let scripts = evaluators::scripts(&words).into_iter();
        scripts.map(|(program, at)| (program, &self.tokens[at]))
    }

    /// The argument array: each value in its own token, never split again, never looked at for placeholders.
    pub fn filled(&self, arguments: &Object) -> Result<Vec<String>, CallError> {
        let mut argv = Vec::with_capacity(self.tokens.len());
        let mut left_out = None;
        let mut dashes = self.dashes;
        for token in &self.tokens {
            if let Some(name) = token.droppable()
                && arguments.get(name).is_none_or(Value::is_null)
            {
                left_out.get_or_insert(name);
                continue;
            }
            // Leaving out a middle argument would give its place to the next one.
            if let Some(name) = left_out {
                return Err(slots::unset(name));
            }
            argv.push(token.filled(arguments, dashes)?);
            if token.literal().as_deref() == Some("--") {
                dashes = Dashes::Allowed;
            }
        }
        Ok(argv)
    }
}

impl Token {
    fn push(&mut self, character: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(character),
            _ => self.pieces.push(Piece::Text(character.into())),
        }
    }

    fn slots(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Slot(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    fn sole_slot(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [Piece::Slot(name)] => Some(name),
            _ => None,
        }
    }

    /// The placeholder that may be left out together with its token.
    fn droppable(&self) -> Option<&str> {
        self.sole_slot().filter(|_| !self.quoted)
    }

    fn word(&self) -> Word {
        Word {
            start: match self.pieces.first() {
                Some(Piece::Text(text)) => text.clone(),
                _ => String::new(),
            },
            whole: self.literal().is_some(),
        }
    }

    /// Its text, where no placeholder is in it.
    fn literal(&self) -> Option<String> {
        match self.pieces.as_slice() {
            [] => Some(String::new()),
            [Piece::Text(text)] => Some(text.clone()),
            _ => None,
        }
    }

    fn filled(&self, arguments: &Object, dashes: Dashes) -> Result<String, CallError> {
        let mut token = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => token.push_str(text),
                Piece::Slot(name) => {
                    let value =
                        slots::value_of(arguments, name)?.ok_or_else(|| slots::unset(name))?;
                    if dashes == Dashes::Refused && value.starts_with('-') {
                        return Err(leading_dash(name));
                    }
                    if value.contains(METACHARACTERS) {
                        tracing::info!(
                            parameter = name,
                            "a value holds shell characters; they are passed as plain text"
                        );
                    }
                    token.push_str(&value);
                }
            }
        }
        Ok(token)
    }
}

fn leading_dash(name: &str) -> CallError {
    CallError::invalid(format!("`{name}` begins with `-`, so the program could take it for an option")).hint(format!(
        "give `{name}` without the leading `-` (a path may begin with `./`); the tool's author can put `--` before \
         the placeholder or set \"allowDashValues\": true"
    ))
}

/// The variable that `word` sets, if it has the form `NAME=…`.
fn assigned(word: &str) -> Option<&str> {
    let (name, _) = word.split_once('=')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(fits))
        .then_some(name)
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Quote {
    #[default]
    None,
    Single,
    Double,
}

#[derive(Default)]
struct Scanner {
    tokens: Vec<Token>,
    current: Option<Token>,
    quote: Quote,
}

impl Scanner {
    /// The tokens, and whether a trailing `|| true` was there.
    fn scan(mut self, mut rest: &str) -> Result<(Vec<Token>, bool), TemplateError> {
        let mut failure_is_fine = false;
        while let Some(character) = rest.chars().next() {
            if rest.starts_with("{{") {
                let (name, after) = slots::take(rest)?;
                self.token().pieces.push(Piece::Slot(name.to_owned()));
                rest = after;
                continue;
            }
            if self.quote == Quote::None
                && rest
                    .strip_prefix("||")
                    .is_some_and(|end| end.trim() == "true")
            {
                failure_is_fine = true;
                break;
            }
            rest = &rest[character.len_utf8()..];
            match self.quote {
                Quote::None => rest = self.bare(character, rest)?,
                Quote::Single if character == '\'' => self.quote = Quote::None,
                Quote::Single => self.token().push(character),
                Quote::Double => rest = self.double(character, rest)?,
            }
        }
        match self.quote {
            Quote::None => {}
            Quote::Single => return Err(TemplateError::Unterminated("single quote")),
            Quote::Double => return Err(TemplateError::Unterminated("double quote")),
        }
        self.tokens.extend(self.current);
        Ok((self.tokens, failure_is_fine))
    }

    fn token(&mut self) -> &mut Token {
        self.current.get_or_insert_default()
    }

    fn open(&mut self, quote: Quote) {
        self.quote = quote;
        self.token().quoted = true;
    }

    fn bare<'a>(&mut self, character: char, rest: &'a str) -> Result<&'a str, TemplateError> {
        match character {
            ' ' | '\t' => self.tokens.extend(self.current.take()),
            '\'' => self.open(Quote::Single),
            '"' => self.open(Quote::Double),
            '\\' => {
                let escaped = rest
                    .chars()
                    .next()
                    .ok_or(TemplateError::Unterminated("backslash"))?;
                // A backslash before a line break joins the lines.
                if escaped != '\n' {
                    let token = self.token();
                    token.quoted = true;
                    token.push(escaped);
                }
                return Ok(&rest[escaped.len_utf8()..]);
            }
            '|' | '&' | ';' | '<' | '>' | '(' | ')' => {
                return Err(TemplateError::Operator(character));
            }
            '\n' | '\r' => return Err(TemplateError::LineBreak),
            '$' | '`' => return Err(TemplateError::Expansion(character)),
            '*' | '?' | '[' => return Err(TemplateError::Pattern(character)),
            '#' | '~' if self.current.is_none() => return Err(TemplateError::WordStart(character)),
            other => self.token().push(other),
        }
        Ok(rest)
    }

    fn double<'a>(&mut self, character: char, rest: &'a str) -> Result<&'a str, TemplateError> {
        match character {
            '"' => self.quote = Quote::None,
            '$' | '`' => return Err(TemplateError::Expansion(character)),
            '\\' => match rest.chars().next() {
                Some('\n') => return Ok(&rest[1..]),
                Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                    self.token().push(escaped);
                    return Ok(&rest[1..]);
                }
                _ => self.token().push('\\'),
            },
            other => self.token().push(other),
        }
        Ok(rest)
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
