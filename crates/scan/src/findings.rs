//! Places that deserve a look: gathered, each once, bounded.

use std::collections::{BTreeMap, HashSet};

use crate::place::{Lines, Position};

/// One place that deserves a look, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static str,
    pub message: String,
    pub at: Position,
}

impl Finding {
    /// Is it worth a warning though the sandbox decides what comes of it? What many honest tools do is worth a note.
    pub fn is_odd(&self) -> bool {
        !matches!(self.rule, MODULE | NETWORK | WRITE | ENVIRONMENT)
    }

    /// Does a strict scan refuse it? What the sandbox allows only where it was granted needs no second refusal.
    pub fn is_banned(&self) -> bool {
        !matches!(self.rule, NETWORK | WRITE | ENVIRONMENT)
    }
}

/// Imports or reaches a module that can do harm.
pub const MODULE: &str = "banned-module";
/// Uses a function that runs code, starts a process or ends one.
pub const CALL: &str = "banned-call";
/// Reaches something by the back door.
pub const TRICK: &str = "attribute-trick";
/// Talks to other machines.
pub const NETWORK: &str = "network";
/// Writes files.
pub const WRITE: &str = "file-write";
/// Reads the environment.
pub const ENVIRONMENT: &str = "environment";
/// Loads code under a name that is made up at run time.
pub const DYNAMIC: &str = "dynamic-import";
/// Says how many places were left out.
const MORE: &str = "more";

/// How many findings a file gets.
const SHOWN: usize = 100;
/// How long the words of one are. Names in them are as long as the file likes.
const WORDS: usize = 300;

#[derive(Default)]
pub struct Findings {
    /// The first of the text.
    found: BTreeMap<usize, (&'static str, String)>,
    /// Where something was found.
    places: HashSet<usize>,
}

impl Findings {
    /// Reports the place at this offset, unless something was reported there before.
    pub fn tell(&mut self, offset: usize, rule: &'static str, message: impl FnOnce() -> String) {
        if !self.places.insert(offset) {
            return;
        }
        let last = self.found.last_key_value().map(|(last, _)| *last);
        if self.found.len() > SHOWN {
            if last.is_some_and(|last| last < offset) {
                return;
            }
            self.found.pop_last();
        }
        let mut message = message();
        if let Some((end, _)) = message.char_indices().nth(WORDS) {
            message.truncate(end);
            message.push('…');
        }
        self.found.insert(offset, (rule, message));
    }

    /// What was found, in the order of the text.
    pub fn list(self, lines: &Lines<'_>) -> Vec<Finding> {
        let more = self.places.len().saturating_sub(SHOWN);
        let list = self.found.into_iter().enumerate();
        list.map(|(place, (offset, (rule, message)))| {
            let (rule, message) = match place < SHOWN {
                true => (rule, message),
                false => {
                    let places = if more == 1 { "place" } else { "places" };
                    (MORE, format!("{more} more {places} like these"))
                }
            };
            Finding {
                rule,
                message,
                at: lines.at(offset),
            }
        })
        .collect()
    }
}
