//! Examples of tools: arguments, and the shape of what they give. With the setting `gate` they decide whether a changed
//! file goes live.
//!
//! They are in `_examples/NAME.json` of the tools folder, which is passed over when tools are looked for. `expect` is a JSON
//! Schema of the outcome as REST gives it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolcrib_core::middleware::rehearse;
use toolcrib_core::{Access, Outcome, Schema, Tool, Violation};

use crate::Place;

/// The folder of a tools folder that holds them.
const FOLDER: &str = "_examples";
const MAX_FILE: u64 = 1_024 * 1_024;
/// The most that one tool has.
pub const MAX_EXAMPLES: usize = 50;
/// The most that are tried at a save, and how long one may take.
const TRIED: usize = 20;
const LIMIT: Duration = Duration::from_secs(10);

/// One example of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    pub arguments: Map<String, Value>,
    /// The shape of what they give.
    pub expect: Value,
}

impl Example {
    /// What of an outcome has another shape.
    pub fn violations(&self, outcome: &Value) -> Vec<Violation> {
        match Schema::parse_result(self.expect.clone()) {
            Ok(schema) => schema.violations(outcome),
            Err(error) => vec![Violation {
                path: String::new(),
                message: format!("`expect` is no JSON Schema: {error}"),
            }],
        }
    }
}

/// Why a file of examples can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the examples `{}` can't be used: {why}", file.display())]
pub struct Unusable {
    pub file: PathBuf,
    pub why: String,
}

/// The file of a tool's examples in a tools folder.
pub fn file(folder: &Path, tool: &str) -> PathBuf {
    folder.join(FOLDER).join(format!("{tool}.json"))
}

/// The examples of a tool that a tools folder has.
pub fn read(folder: &Path, tool: &str) -> Result<Vec<Example>, Unusable> {
    let file = file(folder, tool);
    let unusable = |why: String| Unusable {
        file: file.clone(),
        why,
    };
    match text(&file) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| unusable(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(unusable(error.to_string())),
    }
}

/// A regular file of bounded size: nobody waits for a pipe.
fn text(path: &Path) -> io::Result<String> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_FILE {
        true => Err(io::Error::other("it is larger than 1 MB")),
        false => Ok(text),
    }
}

/// Does a tools folder have any?
pub fn any(folder: &Path) -> bool {
    folder.join(FOLDER).is_dir()
}

/// Is this a tool that runs at a save? One that only reads is.
pub fn may_try(tool: &Arc<Tool>) -> bool {
    let reads = tool.spec.annotations.read_only_hint == Some(true);
    reads && tool.access == Access::Open && tool.pending.is_none() && !tool.stale
}

/// Which example of these tools no longer gives what it gave, in words, if one does not. Tried are those of tools that only
/// read; nothing with effects runs at a save. What a tool gave is in none of the words: it may hold what it was handed.
pub async fn first_wrong(tools: &[Arc<Tool>], folder: &Path, place: &Place) -> Option<String> {
    let mut tried = 0;
    for tool in tools {
        if !may_try(tool) {
            continue;
        }
        let (at, name) = (folder.to_path_buf(), tool.name().to_owned());
        let kept = tokio::task::spawn_blocking(move || read(&at, &name)).await;
        let kept = match kept.ok()? {
            Ok(kept) => kept,
            Err(error) => return Some(error.to_string()),
        };
        for (number, example) in kept.iter().enumerate() {
            if tried == TRIED {
                return None;
            }
            tried += 1;
            if let Some(wrong) = wrong(tool, example, place).await {
                let number = number + 1;
                return Some(format!("example {number} of `{}` {wrong}", tool.name()));
            }
        }
    }
    None
}

async fn wrong(tool: &Arc<Tool>, example: &Example, place: &Place) -> Option<String> {
    let arguments = example.arguments.clone().into();
    let called = rehearse(tool.clone(), arguments, place.outputs.clone(), LIMIT).await;
    let outcome = match called {
        Ok(outcome) => outcome,
        Err(error) => return Some(format!("ends as `{}`", error.code)),
    };
    let violations = example.violations(&as_rest_gives(&outcome));
    let first = violations.first()?;
    Some(match first.path.as_str() {
        "" => "gives another shape".to_owned(),
        path => format!("gives another shape at `{path}`"),
    })
}

/// The parts of an outcome that a shape speaks of.
fn as_rest_gives(outcome: &Outcome) -> Value {
    let attached = outcome.attachments.iter();
    let attached: Vec<Value> = attached
        .map(|one| json!({"mimeType": one.mime_type}))
        .collect();
    let mut value = json!({
        "isError": outcome.is_error, "output": outcome.output, "attachments": attached, "metadata": {},
    });
    if let Some(data) = &outcome.structured {
        value["structured"] = data.value().clone();
    }
    value
}
