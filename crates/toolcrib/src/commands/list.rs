//! `toolcrib list`: the tools there are, and what did not load.

use clap::Args;
use serde_json::json;
use toolcrib_core::words::counted;

use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::printer::{BOLD, Column, DIM, GREEN, RED, YELLOW, plain};
use crate::wire::{HealthView, ProblemList, ToolList, ToolView};

/// List the tools there are, and what did not load
#[derive(Debug, Args)]
#[command(after_help = "Exits 1 when something did not load; `toolcrib errors` says why.")]
pub struct List {
    /// Also list files without a tool
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
        for file in list.idle_files.iter().flatten() {
            printer.line(format!("{DIM}{} holds no tool{DIM:#}", plain(file)));
        }
        let health: Result<HealthView, _> = reach.get("/health").await;
        for reason in health.map(|health| health.reasons).unwrap_or_default() {
            printer.note(format!("{YELLOW}degraded{YELLOW:#}: {}", plain(&reason)));
        }
        summary(scene, &problems);
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

fn summary(scene: &Scene, problems: &ProblemList) {
    let errors = problems
        .errors
        .iter()
        .filter(|problem| problem.severity == "error")
        .count();
    let warnings = problems.errors.len() - errors;
    match (errors, warnings) {
        (0, 0) => {}
        (0, n) => scene.printer.note(format!(
            "{YELLOW}{}{YELLOW:#}: `toolcrib errors` shows them",
            counted(n, "warning")
        )),
        (n, 0) => scene.printer.note(format!(
            "{RED}{}{RED:#}: `toolcrib errors` says what to do",
            counted(n, "problem")
        )),
        (n, m) => {
            let both = format!("{} and {}", counted(n, "problem"), counted(m, "warning"));
            scene.printer.note(format!(
                "{RED}{both}{RED:#}: `toolcrib errors` says what to do"
            ));
        }
    }
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
