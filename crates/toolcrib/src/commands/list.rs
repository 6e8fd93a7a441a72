//! `toolcrib list`: the tools there are, and what did not load.

use clap::Args;
use serde_json::json;
use toolcrib_core::words::counted;

use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::printer::{BOLD, Column, DIM, GREEN, RED, YELLOW, plain};
use crate::wire::{HealthView, ProblemList, ProblemView, ToolList, ToolView};

/// The status of a built-in tool that nobody wanted yet.
const OFF: &str = "off";

/// List the tools there are, and what did not load
#[derive(Debug, Args)]
#[command(after_help = "Exits 1 when something did not load; `toolcrib errors` says why.")]
pub struct List {
    /// Also list built-in tools that are off, and files without a tool
    #[arg(long)]
    pub all: bool,
    /// Print only the names, one per line
    #[arg(long, conflicts_with_all = ["all", "json"])]
    pub names: bool,
    #[command(flatten)]
    pub target: Target,
}

impl List {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let idle = self.all.then(|| ("idle", "true".to_owned()));
        let list: ToolList = reach.ask("/tools", idle.as_slice()).await?;
        if self.names {
            for tool in &list.tools {
                scene.printer.line(plain(&tool.name));
            }
            return Ok(0);
        }
        let problems: ProblemList = reach.get("/tools/errors").await?;
        let exit = u8::from(problems.has_errors());
        let printer = scene.printer;
        if printer.is_json() {
            let mut value = json!({"tools": list.tools, "counts": list.counts, "count": list.count,
                                   "errors": problems.errors});
            if let Some(idle) = &list.idle_files {
                value["idleFiles"] = json!(idle);
            }
            printer.json(&value);
            return Ok(exit);
        }
        printer.note(format!("{DIM}{}{DIM:#}", reach.line()));
        let rows = list.tools.iter().map(|tool| {
            vec![
                tool.name.clone(),
                origin(tool),
                status(tool),
                short(&tool.description),
            ]
        });
        let columns = [
            Column::whole("name"),
            Column::spare("source", 1),
            Column::whole("status"),
            Column::cut("description"),
        ];
        printer.table(&columns, &rows.collect::<Vec<_>>());
        for tool in list.tools.iter().filter(|tool| tool.status == OFF) {
            let how = tool.needs.join("; ");
            let (name, how) = (plain(&tool.name), plain(&how));
            printer.line(format!("{DIM}{name} is off: {how}{DIM:#}"));
        }
        for file in list.idle_files.iter().flatten() {
            printer.line(format!("{DIM}{} holds no tool{DIM:#}", plain(file)));
        }
        let health: Result<HealthView, _> = reach.get("/health").await;
        for reason in health.map(|health| health.reasons).unwrap_or_default() {
            printer.note(format!("{YELLOW}degraded{YELLOW:#}: {}", plain(&reason)));
        }
        summary(scene, &problems.errors);
        Ok(exit)
    }
}

fn origin(tool: &ToolView) -> String {
    match &tool.scope {
        Some(scope) => format!("{} ({scope})", tool.source),
        None => tool.source.clone(),
    }
}

fn status(tool: &ToolView) -> String {
    let mut status = tool.status.clone();
    if tool.stale {
        status.push_str(", stale");
    }
    if tool.sandbox.is_some() {
        status.push_str(", unconfined");
    }
    status
}

/// The first line, cut where a table still looks like one.
fn short(description: &str) -> String {
    let line = description.lines().next().unwrap_or_default();
    match line.char_indices().nth(72) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// How many problems there are, and where to read them.
pub(super) fn summary(scene: &Scene, problems: &[ProblemView]) {
    let count = |severity: &str| {
        let problems = problems.iter();
        problems.filter(|one| one.severity == severity).count()
    };
    let [errors, warnings, notes] = ["error", "warning", "note"].map(count);
    let counts = [(errors, "problem"), (warnings, "warning"), (notes, "note")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| counted(count, what)).collect();
    let counts = match counts.as_slice() {
        [] => return,
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    };
    let (colour, says) = match (errors, warnings) {
        (0, 0) => (GREEN, "shows them"),
        (0, _) => (YELLOW, "shows them"),
        _ => (RED, "says what to do"),
    };
    scene.printer.note(format!(
        "{colour}{counts}{colour:#}: `toolcrib errors` {says}"
    ));
}

/// How `errors` and `show` mark a severity.
pub(super) fn mark(severity: &str) -> String {
    match severity {
        "error" => format!("{RED}error{RED:#}"),
        "warning" => format!("{YELLOW}warning{YELLOW:#}"),
        other => format!("{GREEN}{other}{GREEN:#}"),
    }
}

/// A heading for a block of lines.
pub(super) fn heading(text: &str) -> String {
    format!("{BOLD}{text}{BOLD:#}")
}
