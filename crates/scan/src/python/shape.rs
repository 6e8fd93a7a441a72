//! How deep a Python text is, before it is parsed.

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

use crate::budget::{Excess, Gauge};

/// CPython's own limits: blocks, and brackets of one line.
const BLOCKS: usize = 100;
const BRACKETS: usize = 200;

/// Refuses a text that is too deep for the parser; says how many tokens it has.
pub fn check(text: &str) -> Result<usize, Excess> {
    let excess = match measure(text) {
        Ok(tokens) => return Ok(tokens),
        Err(excess) => excess,
    };
    // The lexer does not say where it is. The lines up to the first that is too deep are as deep as the whole.
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = ends.partition_point(|end| measure(&text[..*end]).is_ok());
    let before = line.checked_sub(1).and_then(|line| ends.get(line));
    Err(excess.at(before.map_or(0, |end| end + 1)))
}

fn measure(text: &str) -> Result<usize, Excess> {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut gauge = Gauge::new();
    let (mut blocks, mut open) = (0, Vec::new());
    let mut tokens = 0;
    loop {
        let offset = 0;
        let kind = lexer.next_token();
        tokens += 1;
        match kind {
            TokenKind::EndOfFile => return Ok(tokens),
            TokenKind::Indent => {
                blocks += 1;
                gauge.open(offset)?;
                within(blocks, BLOCKS, "blocks are indented", offset)?;
            }
            TokenKind::Dedent => {
                blocks -= usize::from(blocks > 0);
                gauge.close();
            }
            TokenKind::Newline | TokenKind::Semi => gauge.end(),
            TokenKind::Comma => gauge.comma(),
            // Its parameters have commas of their own.
            TokenKind::Lambda => gauge.lasting(offset)?,
            TokenKind::String
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::FStringMiddle
            | TokenKind::TStringMiddle
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => gauge.token(offset)?,
            kind => match closed_by(kind) {
                Some(end) => {
                    open.push(end);
                    gauge.open(offset)?;
                    within(
                        open.len(),
                        BRACKETS,
                        "brackets and f-strings are nested",
                        offset,
                    )?;
                }
                // What closes nothing leaves the depth as it is: the parser may take it for anything.
                None if open.last() == Some(&kind) => {
                    open.pop();
                    gauge.close();
                }
                None => gauge.link(offset)?,
            },
        }
    }
}

fn within(depth: usize, most: usize, what: &str, offset: usize) -> Result<(), Excess> {
    if depth <= most {
        return Ok(());
    }
    let message =
        format!("{what} more than {most} deep, which Python itself refuses; split this up");
    Err(Excess::new(offset, message))
}

/// What closes this bracket or string, if it is one that opens.
fn closed_by(kind: TokenKind) -> Option<TokenKind> {
    Some(match kind {
        TokenKind::Lpar => TokenKind::Rpar,
        TokenKind::Lsqb => TokenKind::Rsqb,
        TokenKind::Lbrace => TokenKind::Rbrace,
        TokenKind::FStringStart => TokenKind::FStringEnd,
        TokenKind::TStringStart => TokenKind::TStringEnd,
        _ => return None,
    })
}
