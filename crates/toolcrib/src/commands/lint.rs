//! `toolcrib lint`: what makes tools hard to choose, hard to call or costly.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use toolcrib_core::words::counted;
use toolcrib_core::{CallError, ErrorCode};

use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::lint::{Finding, Level, Subject, fix, lint};
use crate::printer::{DIM, GREEN, YELLOW, plain};
use crate::whole_file;
use crate::wire::{ToolList, ToolView};

/// No tool's file is longer.
const MAX_FILE: u64 = 1_024 * 1_024;

/// Look for what makes tools hard to choose, hard to call or costly
#[derive(Debug, Args)]
#[command(
    after_help = "Exits 1 when there is a warning, or with --strict anything; 0 otherwise. docs/reference/lint.md lists all checks."
)]
pub struct Lint {
    /// A tool's name, or a file with tools; all tools of yours where none is named
    #[arg(value_name = "NAME | FILE")]
    pub what: Option<String>,
    /// Also exit 1 when there is advice
    #[arg(long)]
    pub strict: bool,
    /// Fix in JSON files what changes no meaning
    #[arg(long)]
    pub fix: bool,
    #[command(flatten)]
    pub target: Target,
}

impl Lint {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let list: ToolList = reach.get("/tools").await?;
        let tools = match &self.what {
            None => list.tools,
            Some(what) => chosen(list.tools, what, &scene.env.directory)?,
        };
        let mut found = all(&tools);
        let mut settled = 0;
        if self.fix {
            settled = fixed(&tools, &found)?;
            if settled > 0 {
                found.retain(|finding| !is_fixable(finding));
            }
        }
        let warnings = found
            .iter()
            .filter(|one| one.level == Level::Warning)
            .count();
        let exit = u8::from(warnings > 0 || (self.strict && !found.is_empty()));
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&json!({"findings": found, "tools": tools.len(), "fixed": settled}));
            return Ok(exit);
        }
        for finding in &found {
            print(scene, finding);
        }
        if settled > 0 {
            printer.note(format!(
                "{GREEN}fixed{GREEN:#} {}",
                counted(settled, "description")
            ));
        }
        let advice = found.len() - warnings;
        let summary = match (warnings, advice) {
            (0, 0) => format!("{GREEN}nothing found{GREEN:#}"),
            (0, advice) => format!("{advice} to improve"),
            (warnings, 0) => counted(warnings, "warning"),
            (warnings, advice) => {
                format!("{} and {advice} to improve", counted(warnings, "warning"))
            }
        };
        printer.note(format!("{summary} in {}", counted(tools.len(), "tool")));
        Ok(exit)
    }
}

/// Findings in all of these tools.
fn all(tools: &[ToolView]) -> Vec<Finding> {
    let mut texts: BTreeMap<&str, Option<String>> = BTreeMap::new();
    let mut found = Vec::new();
    for tool in tools {
        let file = tool.file.as_deref();
        let text = file.map(|file| texts.entry(file).or_insert_with(|| read(Path::new(file))));
        let text = text.and_then(|text| text.as_deref());
        found.extend(lint(&Subject { tool, text }));
    }
    found
}

/// Advice on tools that were just written or called: one line, and nothing where there is nothing to say.
pub(super) fn advise(scene: &Scene, tools: &[ToolView]) {
    let found = all(tools);
    if let (Some(first), [tool, ..]) = (found.first(), tools) {
        let rest = match found.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let said = plain(&first.message);
        scene.printer.note(format!(
            "{DIM}lint: {said}{rest}; `toolcrib lint {}` says what to do{DIM:#}",
            plain(&tool.name)
        ));
    }
}

/// The text of a file that is not too long to be one of a tool's.
fn read(file: &Path) -> Option<String> {
    let is_short =
        std::fs::metadata(file).is_ok_and(|about| about.is_file() && about.len() <= MAX_FILE);
    is_short
        .then(|| std::fs::read_to_string(file).ok())
        .flatten()
}

/// The tools of this name, or of this file.
fn chosen(tools: Vec<ToolView>, what: &str, cwd: &Path) -> Result<Vec<ToolView>, Failure> {
    let path = |file: &str| cwd.join(file).canonicalize().ok();
    let wanted: Option<PathBuf> = path(what);
    let (by_name, others): (Vec<_>, Vec<_>) = tools.into_iter().partition(|tool| tool.name == what);
    if !by_name.is_empty() {
        return Ok(by_name);
    }
    let in_file = |tool: &ToolView| {
        let file = tool.file.as_deref().and_then(path);
        // A folder holds its tool.
        file.zip(wanted.as_ref())
            .is_some_and(|(file, wanted)| file.starts_with(wanted))
    };
    let of_file: Vec<ToolView> = others.into_iter().filter(in_file).collect();
    if of_file.is_empty() {
        let message =
            format!("no tool is called `{what}`, and none comes from a file of that name");
        let error = CallError::new(ErrorCode::NotFound, message);
        return Err(error
            .hint("`toolcrib list` shows the tools there are; `toolcrib errors` what did not load")
            .into());
    }
    Ok(of_file)
}

fn is_fixable(finding: &Finding) -> bool {
    finding.code == "description-space"
        && finding
            .file
            .as_deref()
            .is_some_and(|file| file.ends_with(".json"))
}

/// Fixes what can be fixed, file by file, and says how much that was.
fn fixed(tools: &[ToolView], found: &[Finding]) -> Result<usize, Failure> {
    let mut by_file: BTreeMap<&str, Vec<&ToolView>> = BTreeMap::new();
    for tool in tools {
        if let Some(file) = tool.file.as_deref().filter(|file| file.ends_with(".json")) {
            by_file.entry(file).or_default().push(tool);
        }
    }
    let mut settled = 0;
    for (file, tools) in by_file {
        let path = Path::new(file);
        let of = |tool: &ToolView| {
            let own = found.iter().filter(|finding| finding.tool == tool.name);
            own.cloned().collect::<Vec<_>>()
        };
        let findings: Vec<_> = tools.iter().map(|tool| of(tool)).collect();
        let pairs: Vec<_> = tools
            .iter()
            .zip(&findings)
            .map(|(tool, own)| (*tool, own.as_slice()))
            .collect();
        let Some(made) = read(path).and_then(|text| fix(&text, &pairs)) else {
            continue;
        };
        whole_file::write(path, made.text.as_bytes()).map_err(|error| {
            let message = format!("`{file}` can't be written");
            Failure::new(ErrorCode::BadRequest, message)
                .cause(error)
                .hint("make it writable, or fix it by hand")
        })?;
        settled += made.settled;
    }
    Ok(settled)
}

fn print(scene: &Scene, finding: &Finding) {
    let place = match (&finding.file, finding.line) {
        (Some(file), Some(line)) => format!("{}:{line}: ", shown(scene, file)),
        (Some(file), None) => format!("{}: ", shown(scene, file)),
        (None, _) => String::new(),
    };
    let level = match finding.level {
        Level::Warning => format!("{YELLOW}warning{YELLOW:#}"),
        Level::Advice => format!("{GREEN}advice{GREEN:#}"),
    };
    let (place, message) = (plain(&place), plain(&finding.message));
    let tool = plain(&finding.tool);
    scene.printer.line(format!(
        "{place}{level} {}: `{tool}`: {message}",
        finding.code
    ));
    scene
        .printer
        .line(format!("  {DIM}{}{DIM:#}", finding.hint));
}

/// A file as one would type it from here.
fn shown(scene: &Scene, file: &str) -> String {
    let below = Path::new(file).strip_prefix(&scene.env.directory);
    below.map_or_else(|_| file.to_owned(), |below| below.display().to_string())
}
