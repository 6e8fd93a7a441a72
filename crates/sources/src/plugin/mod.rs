//! JSON plugin files: one collection of tools per file, each with a `shell`, `http` or `file-read` handler.
//!
//! A file is read field by field ([`crate::fields`]), so that a bad tool is reported and its neighbours still load. Nothing
//! is executed at load, and nothing opened but the programs of a trusted project, for their hash; of an untrusted project nothing but the file's own text is looked at.
//!
//! * [`definition`] makes one tool of one entry, [`crate::options`] reads what all kinds share, [`crate::permits`] finds what asks for a grant.
//! * [`template`] and [`shell`]: a command line becomes an argument array, and no shell ever sees a value.
//! * [`endpoint`], [`reach`], [`send`], [`headers`], [`body`] and [`http`]: a URL, whom it may reach, what comes back.
//! * [`file_read`]: one file beneath one folder.

mod body;
mod definition;
mod endpoint;
pub mod evaluators;
mod file_read;
#[cfg(test)]
mod fuzz;
mod headers;
mod http;
pub mod programs;
mod reach;
mod send;
mod shell;
mod slots;
mod template;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolcrib_core::{Access, ErrorType, Problem, SourceKind, Tool};

use crate::fields::{Fields, Report, nearest};
use crate::{Loaded, Origin, Place};
use definition::Collection;
pub(crate) use file_read::{attachment, mime_of};
pub use reach::HostPattern;
pub(crate) use reach::host_of;

/// The largest file that is read as a plugin.
pub const MAX_FILE: usize = 1_024 * 1_024;
const MAX_COLLECTION_NAME: usize = 64;

const FILE_FIELDS: [&str; 5] = ["$schema", "name", "version", "description", "tools"];

/// Reads one plugin file.
pub fn load(text: &[u8], origin: &Origin, place: &Arc<Place>) -> Loaded {
    let mut report = Report::new(origin.file, SourceKind::Plugin);
    let tools = read(text, origin, place, &mut report).unwrap_or_default();
    Loaded {
        tools,
        problems: report.finish(),
        ..Loaded::default()
    }
}

fn read(
    text: &[u8],
    origin: &Origin,
    place: &Arc<Place>,
    report: &mut Report,
) -> Option<Vec<Arc<Tool>>> {
    let value = match parse(text) {
        Ok(value) => value,
        Err(problem) => {
            report.push(*problem);
            return None;
        }
    };
    let Value::Object(map) = &value else {
        report.push(problem(
            ErrorType::Validation,
            "the file is JSON, but not an object",
            "write {\"name\": \"my-tools\", \"tools\": [ … ]}",
        ));
        return None;
    };
    let fields = Fields::new("", map);
    // JSON of another kind may lie in a tools folder; without `tools` nobody meant it for us.
    let Some(list) = fields.get("tools") else {
        meant_for_us(map, report);
        return None;
    };
    let Some(list) = list.as_array() else {
        report.invalid(
            "tools",
            "must be a list of tools",
            "write \"tools\": [{\"name\": …, \"handler\": …}]",
        );
        return None;
    };
    if list.is_empty() {
        return None;
    }
    fields.unknown(&FILE_FIELDS, |field, what, hint| {
        report.warn(field, what, hint)
    });
    let name = collection_name(&fields, report);
    let optional = |report: &mut Report, key: &str| {
        let value = fields.get(key)?;
        if value.as_str().is_none() {
            report.warn(
                key,
                "must be a string, and is passed over",
                &format!("write \"{key}\": \"…\""),
            );
        }
        value.as_str()
    };
    optional(report, "description");
    let version = optional(report, "version");
    let programs = origin.programs(text, place);
    if !matches!(origin.access, Access::Untrusted { .. }) {
        place.code.note_real(&programs);
    }
    let collection = Collection {
        name: name.unwrap_or_default(),
        version,
        text: programs::add(Sha256::new().chain_update(text), &programs),
        origin,
        place,
    };
    let mut seen = HashSet::new();
    let mut tools = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        report.tool = None;
        report.failed = false;
        tools.extend(collection.tool(index, entry, &mut seen, report));
    }
    // Without its collection's name a tool has no module, and so no agent could be said to trust it.
    name.map(|_| tools)
}

/// Says so where a file without `tools` looks like a collection all the same, or like one tool of it.
fn meant_for_us(map: &serde_json::Map<String, Value>, report: &mut Report) {
    let holds_tools = |value: &Value| match value {
        Value::Array(items) => items.iter().any(is_entry),
        other => is_entry(other),
    };
    let misspelt =
        |(key, value): &(&String, &Value)| nearest(key, &["tools"]).is_some() && holds_tools(value);
    if let Some((key, _)) = map.iter().find(misspelt) {
        let key: String = key.chars().take(40).collect();
        report.invalid(
            &key,
            "is no field of a plugin file",
            "did you mean \"tools\"?",
        );
    } else if is_entry(&Value::Object(map.clone())) {
        let hint = "write {\"name\": \"my-tools\", \"tools\": [ … ]} around it";
        report.invalid(
            "tools",
            "is missing: the file is one tool, and not a list of tools",
            hint,
        );
    }
}

fn is_entry(value: &Value) -> bool {
    let handler = value.get("handler").is_some_and(Value::is_object);
    handler && value.get("name").is_some()
}

fn collection_name<'a>(fields: &Fields<'a>, report: &mut Report) -> Option<&'a str> {
    let hint = "give the collection a name, such as \"name\": \"my-tools\"";
    let name = fields.required_text(report, "name", hint)?;
    if name.chars().count() > MAX_COLLECTION_NAME || name.contains(char::is_control) {
        let what = format!("must be at most {MAX_COLLECTION_NAME} characters on one line");
        report.invalid("name", &what, hint);
        return None;
    }
    Some(name)
}

fn problem(kind: ErrorType, message: &str, hint: &str) -> Problem {
    Problem::error(SourceKind::Plugin, kind, message).hint(hint)
}

/// The file as JSON, or what is wrong with it and where.
fn parse(text: &[u8]) -> Result<Value, Box<Problem>> {
    if text.len() > MAX_FILE {
        // How much more is not known: no more than this is read.
        let message = format!("the file has more than the {MAX_FILE} bytes a plugin file may have");
        let hint = "split it into several files; keep data that is not a tool elsewhere";
        return Err(Box::new(problem(ErrorType::Validation, &message, hint)));
    }
    let plain = std::str::from_utf8(text).map_err(|error| {
        let before = &text[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before
            .iter()
            .rev()
            .take_while(|byte| **byte != b'\n')
            .count()
            + 1;
        let hint = "save the file as UTF-8";
        Box::new(problem(ErrorType::Syntax, "the file is not UTF-8 text", hint).at(line, column))
    })?;
    // Some editors put a byte order mark in front.
    let plain = plain.trim_start_matches('\u{feff}');
    if plain.trim().is_empty() {
        let hint = "write {\"name\": \"my-tools\", \"tools\": [ … ]}, or remove the file";
        return Err(Box::new(
            problem(ErrorType::Syntax, "the file is empty", hint).at(1, 1),
        ));
    }
    serde_json::from_str(plain).map_err(|error| {
        let said = error.to_string();
        let (message, hint) = if said.starts_with("recursion limit") {
            ("the JSON is nested too deeply".to_owned(), "write it with fewer levels")
        } else {
            let reason = said.split(" at line ").next().unwrap_or_default();
            let hint = "check this line for a missing or extra comma, quote or bracket; JSON has no comments";
            (format!("the file is not valid JSON: {reason}"), hint)
        };
        Box::new(problem(ErrorType::Syntax, &message, hint).at(error.line(), error.column()))
    })
}
