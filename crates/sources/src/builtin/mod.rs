//! The tools that come with the binary.
//!
//! To add one: write a file here with a `pub(super) fn tool(place: &Arc<Place>) -> Builtin`, and add its line to
//! [`all`]. A built-in only looks, unless a person granted more; it says so in its annotations, describes every
//! parameter, and is listed even where there is no project (its call then answers `unavailable`).

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_core::{
    Access, Annotations, Call, CallError, ErrorType, Problem, Rank, Run, Schema, SourceKey,
    SourceKind, Spec, Tool, ToolName, Update,
};

use crate::Place;
use crate::source::{Configuration, Follow, Source, Updates};

mod file_reader;
mod find_in_output;
mod git;
mod git_diff_summary;
mod git_files;
mod git_status;
mod read_output;
mod workspace_info;

/// THE LIST of built-in tools.
fn all(place: &Arc<Place>) -> [Builtin; 5] {
    [
        git_status::tool(place),
        git_diff_summary::tool(place),
        workspace_info::tool(place),
        file_reader::tool(place),
        read_output::tool(place),
    ]
}

/// The names that [`all`] has, for settings that choose among them.
pub const NAMES: [&str; 5] = [
    "git-status",
    "git-diff-summary",
    "workspace-info",
    "file-reader",
    "read-output",
];

/// The built-in tools that are wanted, as the one part of their source.
pub fn load(place: &Arc<Place>, wanted: Option<&[String]>) -> Update {
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name));
    for builtin in all(place) {
        let name = builtin.name;
        if !is_wanted(name) {
            continue;
        }
        match builtin.into_tool() {
            Ok(tool) => tools.push(Arc::new(tool)),
            // A mistake in a built-in is a problem like any other, so that it hides no neighbour.
            Err(reason) => problems.push(
                Problem::error(SourceKind::Builtin, ErrorType::Validation, reason)
                    .tool(name)
                    .hint("this is a mistake in Toolcrib itself; please report it"),
            ),
        }
    }
    Update {
        key: SourceKey("builtin".into()),
        rank: Rank::Builtin,
        file: None,
        tools,
        problems,
    }
}

/// The source of all built-in tools: they are there from the first, and only settings change which.
pub struct BuiltinSource(pub Arc<Place>);

impl Source for BuiltinSource {
    fn open<'a>(&'a mut self, configuration: &'a Configuration, _: Follow) -> Updates<'a> {
        self.configure(configuration)
    }

    fn configure<'a>(&'a mut self, to: &'a Configuration) -> Updates<'a> {
        let update = load(&self.0, to.builtins.as_deref());
        Box::pin(std::future::ready(vec![update]))
    }
}

/// What one file of this folder says about its tool.
struct Builtin {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// The described parameters: the `properties` of the schema.
    parameters: Value,
    required: &'static [&'static str],
    run: Arc<dyn Run>,
}

impl Builtin {
    fn into_tool(self) -> Result<Tool, String> {
        let mut schema = Map::from_iter([
            ("type".to_owned(), json!("object")),
            ("properties".to_owned(), self.parameters),
            ("additionalProperties".to_owned(), json!(false)),
        ]);
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), json!(self.required));
        }
        let schema = Schema::parse(Value::Object(schema)).map_err(|error| error.to_string())?;
        let name = ToolName::new(self.name).map_err(|error| error.to_string())?;
        let version = env!("CARGO_PKG_VERSION");
        let mut spec = Spec::new(name, self.description, schema);
        spec.version = Some(version.to_owned());
        spec.annotations = Annotations::read_only(self.title);
        Ok(Tool::new(
            spec,
            SourceKind::Builtin,
            Access::Open,
            format!("builtin:{}:{version}", self.name),
            self.run,
        ))
    }
}

/// The project that a tool looks at.
fn project(place: &Place) -> Result<&Path, CallError> {
    place.project.as_deref().ok_or_else(|| {
        CallError::unavailable("there is no project to look at").hint(
            "start Toolcrib inside a project, or name one with `--project DIR` or TOOLCRIB_PROJECT",
        )
    })
}

fn text<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.arguments.get(name).and_then(Value::as_str)
}

/// A whole number that is not negative. JSON Schema counts `3.0` as one, so it is read as one.
fn number(call: &Call, name: &str) -> Option<u64> {
    let value = call.arguments.get(name)?;
    let rounded = || {
        value
            .as_f64()
            .filter(|float| *float >= 0.0)
            .map(|float| float as u64)
    };
    value.as_u64().or_else(rounded)
}
