//! `toolcrib test`: one call with everything shown: validation, timing, what the tool said on stderr.

use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use super::call::{attended, is_pair, print, read_arguments, whole};
use super::lint::advise;
use super::logs::read_on;
use super::reach::{About, Reach};
use super::{Done, Scene, Target};
use crate::error::{EXIT_INTERRUPTED, EXIT_TOOL_FAILED};
use crate::printer::{BOLD, DIM, GREEN, RED};

/// The most that is shown of stderr.
const STDERR: u64 = 16 * 1_024;

/// Call a tool and show validation, timing and stderr
#[derive(Debug, Args)]
#[command(
    after_help = "Arguments are given as for `toolcrib call`:\n\n  toolcrib test greet '{\"text\": \"hi\"}'"
)]
pub struct Test {
    /// The tool's name
    pub name: String,
    /// One JSON object, or `-`, or key=value pairs
    #[arg(value_name = "JSON | KEY=VALUE")]
    pub arguments: Vec<String>,
    /// Print the whole output, also what agents are not shown
    #[arg(long)]
    pub full: bool,
    #[command(flatten)]
    pub target: Target,
}

impl Test {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open_for(scene, &self.target, About::CallOf(&self.name)).await?;
        let pairs = self.arguments.iter().any(|argument| is_pair(argument));
        let tool = match reach.tool(&self.name).await {
            Ok(tool) => Some(tool),
            Err(error) if pairs => return Err(error),
            // The call says what is wrong.
            Err(_) => None,
        };
        let schema = tool
            .as_ref()
            .map_or(Value::Null, |tool| tool.input_schema.clone());
        let arguments = read_arguments(&self.arguments, &schema, &self.name)?;
        // A tool without a process of its own has no log, and not everybody may read one.
        let from = read_on(&reach, &self.name, 0, Some(0)).await.ok();
        let begun = Instant::now();
        let Some(attended) = attended(scene, &reach, (&self.name, None), arguments).await else {
            return Ok(EXIT_INTERRUPTED);
        };
        let mut called = attended.called;
        let took = begun.elapsed();
        reach.close().await;
        if let Ok(outcome) = called.as_mut()
            && self.full
        {
            whole(&reach, outcome).await?;
        }
        // What was shown while it ran is not shown again.
        let from = attended.shown_to.or(from.map(|log| log.end));
        let stderr = match from {
            Some(end) => read_on(&reach, &self.name, end, Some(STDERR)).await.ok(),
            None => None,
        };
        let stderr = stderr.map(|log| log.text).unwrap_or_default();
        let duration_ms = took.as_secs_f64() * 1_000.0;

        let printer = scene.printer;
        let failed = match &called {
            Ok(outcome) => outcome.is_error,
            Err(_) => true,
        };
        if printer.is_json() {
            if let Ok(outcome) = &called {
                printer.json(&json!({"ok": !failed, "durationMs": duration_ms, "stderr": stderr, "outcome": outcome}));
            }
        } else {
            if let Ok(outcome) = &called {
                print(printer, outcome);
            }
            if !stderr.is_empty() {
                printer.note(format!("{BOLD}stderr{BOLD:#}"));
                printer.note(crate::printer::plain(stderr.trim_end()));
            }
            let verdict = match failed {
                false => format!("{GREEN}ok{GREEN:#}"),
                true => format!("{RED}failed{RED:#}"),
            };
            printer.note(format!("{verdict} {DIM}in {duration_ms:.1} ms{DIM:#}"));
            advise(scene, tool.as_slice());
        }
        called?;
        Ok(if failed { EXIT_TOOL_FAILED } else { 0 })
    }
}
