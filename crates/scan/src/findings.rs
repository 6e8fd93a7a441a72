//! Places that deserve a look: gathered, each once, bounded.

use std::collections::HashSet;

use crate::place::{Lines, Position};

/// One place that deserves a look, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: &'static str,
    pub message: String,
    pub at: Position,
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

#[derive(Default)]
pub struct Findings {
    found: Vec<(usize, &'static str, String)>,
    places: HashSet<usize>,
}

impl Findings {
    /// Tells of the place at this offset, unless something was told of it before.
    pub fn tell(&mut self, offset: usize, rule: &'static str, message: impl FnOnce() -> String) {
        if self.places.insert(offset) {
            self.found.push((offset, rule, message()));
        }
    }

    /// What was found, in the order of the text.
    pub fn list(mut self, lines: &Lines<'_>) -> Vec<Finding> {
        self.found.sort_by_key(|(offset, ..)| *offset);
        let rest = self.found.get(SHOWN).map(|(offset, ..)| {
            let count = self.found.len() - SHOWN;
            let places = if count == 1 { "place" } else { "places" };
            (*offset, MORE, format!("{count} more {places} like these"))
        });
        self.found.truncate(SHOWN);
        self.found.extend(rest);
        let list = self.found.into_iter();
        list.map(|(offset, rule, message)| Finding {
            rule,
            message,
            at: lines.at(offset),
        })
        .collect()
    }
}
