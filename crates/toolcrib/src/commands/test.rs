//! `toolcrib test`: one call with everything shown: validation, timing, what the tool said on stderr.

use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use super::call::{is_pair, print, read_arguments};
use super::logs::log_of;
use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::config::Flags;
use crate::error::EXIT_TOOL_FAILED;
use crate::open::Opened;
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
    #[command(flatten)]
    pub target: Target,
}

impl Test {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        reach.prepare(&self.name).await;
        let schema = match self.arguments.iter().any(|argument| is_pair(argument)) {
            true => reach.tool(&self.name).await?.input_schema,
            false => Value::Null,
        };
        let arguments = read_arguments(&self.arguments, &schema, &self.name)?;
        // The log lies in the user's own data folder, whichever crib runs the tool.
        let opened = Opened::wire(
            scene.env.clone(),
            Flags::default(),
            scene.globals.project.as_deref(),
        )
        .await?;
        let log = log_of(&opened, &self.name).await.ok();
        let from = log.as_ref().map(|log| opened.logs.end(log));
        let begun = Instant::now();
        let called = reach.call(&self.name, arguments).await;
        let took = begun.elapsed();
        reach.close().await;
        if let Reach::Here(opened, _) = &reach {
            opened.logs.flush();
        }
        let stderr = match (&log, from) {
            (Some(log), Some(from)) => opened.logs.read(log, from, STDERR).ok(),
            _ => None,
        };
        let stderr = stderr.map(|(text, _)| String::from_utf8_lossy(&text).into_owned());
        let stderr = stderr.unwrap_or_default();
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
        }
        called?;
        Ok(if failed { EXIT_TOOL_FAILED } else { 0 })
    }
}
