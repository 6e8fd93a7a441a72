//! WHAT A TOOL FILE'S TEXT TELLS, without running it: the tools it declares, what it imports, and places that deserve a look.
//!
//! The scan advises; the sandbox enforces. A file that hides what it does well enough is not found here.
//! Knows no other crate of ours. Each parser is used in one folder: `python/` (ruff) and `script/` (oxc).
//!
//! No input makes it panic, overflow the stack, or take more than [`BUDGET`] allows: what would is refused with a word.

mod budget;
mod deep;
mod findings;
mod fold;
mod place;
pub mod python;
pub mod script;
mod value;

pub use budget::{BUDGET, Budget};
pub use findings::Finding;
pub use place::Position;

/// A file that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    pub cause: Cause,
    pub message: String,
    pub at: Position,
}

impl std::fmt::Display for SyntaxError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} (line {})", self.message, self.at.line)
    }
}

impl std::error::Error for SyntaxError {}

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It is not written in its language.
    Language,
    /// Reading it would take more than [`BUDGET`] allows.
    Budget,
}

/// A tool as far as its text tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    pub name: String,
    pub description: Option<String>,
    pub at: Position,
}
