//! The block `# /// script` at the head of a file (PEP 723).

use toml::{Table, Value};

use super::Metadata;
use crate::budget::BUDGET;
use crate::place::Lines;
use crate::{Cause, SyntaxError};

/// The block's metadata; `None` where there is no such block.
pub fn read(text: &str, lines: &Lines<'_>) -> Option<Result<Metadata, SyntaxError>> {
    let mut blocks = Vec::new();
    let mut offset = 0;
    // Lines of the block that is open, and where it began.
    let mut open: Option<(usize, Vec<&str>)> = None;
    for line in text.split_inclusive('\n') {
        let at = offset;
        offset += line.len();
        let line = line.trim_end_matches(['\n', '\r']);
        let comment = match line.strip_prefix('#') {
            Some("") => Some(""),
            Some(rest) => rest.strip_prefix(' '),
            None => None,
        };
        match (&mut open, comment) {
            (None, Some(word)) if word.trim_end() == "/// script" => open = Some((at, Vec::new())),
            (Some((_, body)), Some(line)) => body.push(line),
            (Some(_), None) => blocks.extend(open.take().and_then(closed)),
            (None, _) => {}
        }
    }
    blocks.extend(open.and_then(closed));
    let (at, body) = blocks.first()?;
    let error = |at: usize, message: String| SyntaxError {
        cause: Cause::Language,
        message,
        at: lines.at(at),
    };
    if let Some((second, _)) = blocks.get(1) {
        let message = "the file has two `# /// script` blocks; keep one".to_owned();
        return Some(Err(error(*second, message)));
    }
    if body.len() > BUDGET.metadata {
        let most = BUDGET.metadata;
        let message = format!(
            "the `# /// script` block has {} bytes, and {most} are the most that is read; name fewer packages",
            body.len()
        );
        return Some(Err(error(*at, message)));
    }
    Some(fields(body).map_err(|message| error(*at, format!("the `# /// script` block {message}"))))
}

/// A block ends at its last `# ///`; without one it is no block.
fn closed((at, body): (usize, Vec<&str>)) -> Option<(usize, String)> {
    let end = body.iter().rposition(|line| line.trim_end() == "///")?;
    Some((at, body[..end].join("\n")))
}

fn fields(body: &str) -> Result<Metadata, String> {
    let table: Table = body
        .parse()
        .map_err(|error: toml::de::Error| format!("is not TOML: {}", error.message()))?;
    let requires_python = match table.get("requires-python") {
        None => None,
        Some(Value::String(version)) => Some(version.clone()),
        Some(_) => return Err("must give `requires-python` as a string".to_owned()),
    };
    let mut dependencies = Vec::new();
    if let Some(list) = table.get("dependencies") {
        let wrong = || "must give `dependencies` as a list of strings".to_owned();
        for entry in list.as_array().ok_or_else(wrong)? {
            dependencies.push(entry.as_str().ok_or_else(wrong)?.to_owned());
        }
    }
    Ok(Metadata {
        dependencies,
        requires_python,
    })
}
