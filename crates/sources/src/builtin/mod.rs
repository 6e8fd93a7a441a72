//! The tools that come with the binary.
//!
//! To add one: write a file here with a `pub(super) fn tool(place: &Arc<Place>) -> Builtin`, and add its line to
//! [`all`]. It says in its annotations what it does ([`Effects`]), describes every parameter, and is listed even where
//! there is no project (its call then answers `unavailable`). One that does more than look is [`Switch::Granted`] or
//! [`Switch::Set`]: agents do not see it until a person granted or configured it.
//!
//! Why they need no walls of their own: `docs/design/0020-built-in-tools.md`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use toolcrib_core::{
    Call, CallError, ErrorType, Problem, Rank, Run, SourceKey, SourceKind, Update,
};

use crate::Place;
use crate::remotes::Remotes;
use crate::source::{Configuration, Follow, Source, Updates};
use switch::Switch;

mod effects;
mod fetch_page;
mod file_reader;
mod find_in_output;
mod git;
mod git_diff_summary;
mod git_files;
mod git_status;
mod near;
mod read_file;
mod read_output;
mod search_code;
mod send_email;
mod send_webhook;
mod switch;
mod todo_write;
mod visit;
mod web_search;
mod workspace_info;
mod write_file;

use effects::Effects;

/// THE LIST of built-in tools.
fn all(place: &Arc<Place>, remotes: &Remotes) -> Vec<Builtin> {
    vec![
        git_status::tool(place),
        git_diff_summary::tool(place),
        workspace_info::tool(place),
        file_reader::tool(place),
        read_output::tool(place),
        read_file::tool(place),
        write_file::tool(place),
        search_code::tool(place),
        todo_write::tool(place),
        fetch_page::tool(place),
        web_search::tool(place, remotes),
        send_webhook::tool(place, remotes),
        send_email::tool(place, remotes),
    ]
}

/// The names that [`all`] has, for settings that choose among them.
pub const NAMES: [&str; 13] = [
    "git-status",
    "git-diff-summary",
    "workspace-info",
    "file-reader",
    "read-output",
    "read-file",
    "write-file",
    "search-code",
    "todo-write",
    "fetch-page",
    "web-search",
    "send-webhook",
    "send-email",
];

/// The built-in tools that are wanted, as the one part of their source.
pub fn load(place: &Arc<Place>, configuration: &Configuration) -> Update {
    let wanted = configuration.builtins.as_deref();
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name));
    for builtin in all(place, &configuration.remotes) {
        let name = builtin.name;
        if !is_wanted(name) {
            continue;
        }
        match builtin.into_tool(place) {
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

/// The source of all built-in tools: they are there from the first. Settings change which there are, and settings and
/// grants which of them are on.
pub struct BuiltinSource {
    place: Arc<Place>,
    configuration: Configuration,
}

impl BuiltinSource {
    pub fn new(place: Arc<Place>) -> BuiltinSource {
        BuiltinSource {
            place,
            configuration: Configuration::default(),
        }
    }

    fn all(&self) -> Updates<'static> {
        let update = load(&self.place, &self.configuration);
        Box::pin(std::future::ready(vec![update]))
    }
}

impl Source for BuiltinSource {
    fn open<'a>(&'a mut self, configuration: &'a Configuration, _: Follow) -> Updates<'a> {
        self.configure(configuration)
    }

    fn configure<'a>(&'a mut self, to: &'a Configuration) -> Updates<'a> {
        self.configuration.clone_from(to);
        self.all()
    }

    fn regrant(&mut self) -> Updates<'_> {
        self.all()
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
    effects: Effects,
    switch: Switch,
    run: Arc<dyn Run>,
}

/// The project that a tool looks at.
fn project(place: &Place) -> Result<&Path, CallError> {
    place.project.as_deref().ok_or_else(|| {
        CallError::unavailable("there is no project to look at").hint(
            "start Toolcrib inside a project, or name one with `--project DIR` or TOOLCRIB_PROJECT",
        )
    })
}

/// Work that blocks on the disk, off the runtime's threads. Dropping the future does not stop it: it looks at the call's
/// token for that.
async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| CallError::internal(format!("the work ended early: {error}")))?
}

/// A name that nothing else here has.
fn unique() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |now| now.as_nanos());
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{nanos:x}-{:x}-{next:x}", std::process::id())
}

fn flag(call: &Call, name: &str) -> bool {
    call.arguments.get(name).and_then(Value::as_bool) == Some(true)
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
