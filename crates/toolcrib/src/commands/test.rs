//! `toolcrib test`: one call with everything shown: validation, timing, what the tool said on stderr; and examples, kept
//! and tried again.

mod all;
mod examples;

use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, Object};

use super::call::{attended, is_pair, print, read_arguments, whole};
use super::lint::advise;
use super::logs::read_on;
use super::reach::{About, Reach};
use super::{Done, Scene, Target};
use crate::error::{EXIT_INTERRUPTED, EXIT_TOOL_FAILED};
use crate::failure::Failure;
use crate::printer::{BOLD, DIM, GREEN, RED};
use crate::wire::OutcomeView;

/// The most that is shown of stderr.
const STDERR: u64 = 16 * 1_024;

/// Call a tool and show validation, timing and stderr
#[derive(Debug, Args)]
#[command(
    after_help = "Arguments are given as for `toolcrib call`:\n\n  toolcrib test greet '{\"text\": \"hi\"}'\n\n\
    Examples are in `_examples/NAME.json` of the tools folder: arguments, and a JSON Schema of what they give."
)]
pub struct Test {
    /// The tool's name
    #[arg(required_unless_present = "all")]
    pub name: Option<String>,
    /// One JSON object, or `-`, or key=value pairs
    #[arg(value_name = "JSON | KEY=VALUE")]
    pub arguments: Vec<String>,
    /// Print the whole output, also what agents are not shown
    #[arg(long)]
    pub full: bool,
    /// Keep this call as an example: its arguments, and the shape of what they gave
    #[arg(long, conflicts_with = "all")]
    pub save: bool,
    /// Try the examples of all tools, or of the one that is named
    #[arg(long, conflicts_with_all = ["arguments", "full"])]
    pub all: bool,
    #[command(flatten)]
    pub target: Target,
}

impl Test {
    pub async fn run(self, scene: &Scene) -> Done {
        if (self.all || self.save) && (self.target.host.is_some() || self.target.port.is_some()) {
            return Err(Failure::new(
                ErrorCode::BadRequest,
                "examples are kept here, and not where another crib serves",
            )
            .hint("leave out --host and --port"));
        }
        match self.name.clone() {
            name if self.all => all::run(scene, &self.target, name.as_deref()).await,
            Some(name) => self.one(scene, &name).await,
            // The command line asks for it.
            None => Ok(0),
        }
    }

    async fn one(self, scene: &Scene, name: &str) -> Done {
        let reach = Reach::open_for(scene, &self.target, About::CallOf(name)).await?;
        let pairs = self.arguments.iter().any(|argument| is_pair(argument));
        let tool = match reach.tool_with_schema(name).await {
            Ok(tool) => Some(tool),
            Err(error) if pairs => return Err(error),
            // The call says what is wrong.
            Err(_) => None,
        };
        let schema = tool
            .as_ref()
            .map_or(Value::Null, |tool| tool.input_schema.clone());
        let arguments = read_arguments(&self.arguments, &schema, name)?;
        // A tool without a process of its own has no log, and not everybody may read one.
        let from = read_on(&reach, name, 0, Some(0)).await.ok();
        let begun = Instant::now();
        let Some(attended) = attended(scene, &reach, (name, None), arguments.clone()).await else {
            return Ok(EXIT_INTERRUPTED);
        };
        let mut called = attended.called;
        let took = begun.elapsed();
        let scope = match self.save {
            true => reach.tool(name).await?.scope,
            false => None,
        };
        reach.close().await;
        if let Ok(outcome) = called.as_mut()
            && self.full
        {
            whole(&reach, outcome).await?;
        }
        // What was shown while it ran is not shown again.
        let from = attended.shown_to.or(from.map(|log| log.end));
        let stderr = match from {
            Some(end) => read_on(&reach, name, end, Some(STDERR)).await.ok(),
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
        let outcome = called?;
        if self.save {
            keep(scene, name, scope.as_deref(), &arguments, &outcome)?;
        }
        Ok(if failed { EXIT_TOOL_FAILED } else { 0 })
    }
}

/// Keeps a call as an example of its tool.
fn keep(
    scene: &Scene,
    name: &str,
    scope: Option<&str>,
    arguments: &Object,
    outcome: &OutcomeView,
) -> Result<(), Failure> {
    let folder = examples::folder(scene, scope)?;
    let path = examples::save(&folder, name, examples::example(arguments, outcome)?)?;
    let shown = path.display().to_string();
    let shown = crate::printer::plain(&shown);
    scene.printer.note(format!(
        "kept in {shown}; `toolcrib test --all` tries it again"
    ));
    Ok(())
}
