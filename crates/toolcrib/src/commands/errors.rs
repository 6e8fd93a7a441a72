//! `toolcrib errors`: what did not load, why, and what to do.

use clap::Args;
use toolcrib_core::Severity;

use super::list::mark;
use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::printer::plain;
use crate::wire::{ProblemList, ProblemView};

/// Show what did not load, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = "Exits 1 when there is an error; warnings alone exit 0.")]
pub struct Errors {
    #[command(flatten)]
    pub target: Target,
}

impl Errors {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let problems: ProblemList = reach.get("/tools/errors").await?;
        let exit = u8::from(problems.has_errors());
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&problems);
            return Ok(exit);
        }
        if problems.errors.is_empty() {
            printer.line("nothing is wrong");
        }
        for problem in &problems.errors {
            printer.line(format!(
                "{}: {}",
                mark(&problem.severity),
                plain(&place(problem))
            ));
            // A note is about nothing that went wrong.
            let message = plain(&problem.message);
            match problem.severity == Severity::Note.as_str() {
                true => printer.line(format!("  {message}")),
                false => printer.line(format!("  {}: {message}", problem.error_type)),
            }
            if !problem.hint.is_empty() {
                printer.line(format!("  hint: {}", plain(&problem.hint)));
            }
        }
        Ok(exit)
    }
}

/// `file:line:column, tool name`.
pub fn place(problem: &ProblemView) -> String {
    let mut place = problem
        .file
        .clone()
        .unwrap_or_else(|| problem.source.clone());
    for number in [problem.line, problem.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    match &problem.tool_name {
        Some(name) => format!("{place}, tool `{name}`"),
        None => place,
    }
}
