//! Examples of a tool as `toolcrib test --save` makes them: the arguments of a call, and the shape of what it gave.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolcrib_core::{ErrorCode, Object};
use toolcrib_sources::examples::{self, Example, MAX_EXAMPLES, Unusable};

use super::super::Scene;
use super::super::reach::Reach;
use crate::failure::Failure;
use crate::whole_file;
use crate::wire::OutcomeView;

/// How deep a shape goes; below, anything fits.
const MAX_DEPTH: usize = 16;

/// The example that a call makes.
pub fn example(arguments: &Object, outcome: &OutcomeView) -> Result<Example, Failure> {
    let arguments = serde_json::from_str(arguments.text());
    let arguments = arguments.map_err(|error| {
        Failure::new(
            ErrorCode::BadRequest,
            format!("this makes no example: {error}"),
        )
    })?;
    Ok(Example {
        arguments,
        expect: expected(outcome),
    })
}

/// What is wrong with an outcome; nothing where it has the shape.
pub fn wrong(example: &Example, outcome: &OutcomeView) -> Option<String> {
    let value = serde_json::to_value(outcome).unwrap_or_default();
    let violations = example.violations(&value);
    let first = violations.first()?;
    Some(match violations.len() {
        1 => first.to_string(),
        count => format!("{first}, and {} more", count - 1),
    })
}

/// The shape of an outcome: whether it failed, its data, whether there is a text, what is attached.
fn expected(outcome: &OutcomeView) -> Value {
    let mut properties = json!({"isError": {"const": outcome.is_error}});
    let mut required = vec!["isError"];
    match &outcome.structured {
        Some(data) => {
            properties["structured"] = shape(data.value(), 0);
            required.push("structured");
        }
        None => {
            let least = usize::from(!outcome.output.is_empty());
            properties["output"] = json!({"type": "string", "minLength": least});
            required.push("output");
        }
    }
    if !outcome.attachments.is_empty() {
        let types = outcome.attachments.iter();
        let types = types.map(|one| json!({"properties": {"mimeType": {"const": one.mime_type}}}));
        let types: Vec<Value> = types.collect();
        properties["attachments"] =
            json!({"type": "array", "minItems": types.len(), "prefixItems": types});
        required.push("attachments");
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// The shape of data: the types in it, and the keys of its objects.
fn shape(value: &Value, depth: usize) -> Value {
    if depth == MAX_DEPTH {
        return json!({});
    }
    match value {
        // What may be missing may be anything else another time.
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(_) => json!({"type": "number"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) => {
            let mut shapes = items.iter().map(|item| shape(item, depth + 1));
            match shapes.next() {
                Some(first) if shapes.all(|other| other == first) => {
                    json!({"type": "array", "items": first})
                }
                _ => json!({"type": "array"}),
            }
        }
        Value::Object(members) => {
            let each = members.iter();
            let properties: Map<String, Value> = each
                .map(|(key, value)| (key.clone(), shape(value, depth + 1)))
                .collect();
            let required: Vec<&String> = members.keys().collect();
            json!({"type": "object", "properties": properties, "required": required})
        }
    }
}

/// Keeps an example, in place of one with the same arguments.
pub fn save(folder: &Path, tool: &str, example: Example) -> Result<PathBuf, Failure> {
    let mut all = examples::read(folder, tool).map_err(unusable)?;
    let file = examples::file(folder, tool);
    all.retain(|other| other.arguments != example.arguments);
    if all.len() >= MAX_EXAMPLES {
        let message = format!("`{tool}` has {MAX_EXAMPLES} examples, which is the most");
        let hint = format!("remove some from `{}`", file.display());
        return Err(Failure::new(ErrorCode::BadRequest, message).hint(hint));
    }
    all.push(example);
    let write = || -> io::Result<()> {
        let written = serde_json::to_string_pretty(&all)? + "\n";
        // A clone may bring a link to somewhere else.
        let is_link = |path: &Path| {
            let meta = path.symlink_metadata();
            meta.is_ok_and(|meta| meta.is_symlink())
        };
        let mut folders = file.ancestors().skip(1).take(3);
        if folders.any(is_link) {
            return Err(io::Error::other("a folder on the way is a link"));
        }
        whole_file::write(&file, written.as_bytes())
    };
    write().map_err(|error| {
        unusable(Unusable {
            file: file.clone(),
            why: error.to_string(),
        })
    })?;
    Ok(file)
}

/// The tools folder that keeps the examples of tools of this scope.
pub fn folder(scene: &Scene, scope: Option<&str>) -> Result<PathBuf, Failure> {
    let project = Reach::project(scene).map(|project| project.root.join(".toolcrib/tools"));
    let own = || scene.env.config_folder().map(|folder| folder.join("tools"));
    let folder = match scope {
        Some("global") => own(),
        _ => project.or_else(own),
    };
    folder.ok_or_else(|| {
        Failure::new(
            ErrorCode::BadRequest,
            "there is no folder to keep examples in",
        )
        .hint("run this in a project")
    })
}

pub fn unusable(error: Unusable) -> Failure {
    Failure::new(ErrorCode::BadRequest, error.to_string()).hint("correct the file, or remove it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(structured: Option<Value>, output: &str) -> OutcomeView {
        let mut outcome = toolcrib_core::Outcome::text(output);
        outcome.structured = structured.map(Into::into);
        outcome.into()
    }

    fn made(outcome: &OutcomeView) -> Example {
        let arguments: Object = json!({"a": 1}).as_object().unwrap().clone().into();
        example(&arguments, outcome).unwrap()
    }

    #[test]
    fn an_outcome_of_the_same_shape_fits_and_another_does_not() {
        let data =
            json!({"name": "x", "list": [{"n": 1}, {"n": 2}], "mixed": [1, "a"], "none": null});
        let example = made(&outcome(Some(data), ""));
        let with = |data: Value| wrong(&example, &outcome(Some(data), ""));
        let other = json!({"name": "y", "list": [], "mixed": [], "none": 3, "more": 1});
        assert_eq!(with(other), None);
        let number = json!({"name": 1, "list": [], "mixed": [], "none": 3});
        assert!(with(number).unwrap().contains("name"));
        assert!(with(json!({"name": "y", "list": [{"m": 1}], "mixed": [], "none": 3})).is_some());
        assert!(with(json!({"name": "y"})).is_some());
        let text = made(&outcome(None, "some"));
        assert_eq!(wrong(&text, &outcome(None, "other")), None);
        assert!(wrong(&text, &outcome(None, "")).is_some());
        let mut failed = outcome(None, "other");
        failed.is_error = true;
        assert!(wrong(&text, &failed).is_some());
    }

    #[test]
    fn examples_are_kept_and_read() {
        let folder = tempfile::tempdir().unwrap();
        let example = made(&outcome(None, "x"));
        assert!(examples::read(folder.path(), "t").unwrap().is_empty());
        save(folder.path(), "t", example.clone()).unwrap();
        save(folder.path(), "t", example.clone()).unwrap();
        let kept = examples::read(folder.path(), "t").unwrap();
        assert_eq!((kept.len(), &kept[0].arguments), (1, &example.arguments));
        std::fs::write(folder.path().join("_examples/t.json"), "[{]").unwrap();
        assert!(examples::read(folder.path(), "t").is_err());
    }
}
