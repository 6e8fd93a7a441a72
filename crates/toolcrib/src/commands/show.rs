//! `toolcrib show`: one tool, with where it comes from, its options and its schema.

use clap::Args;
use toolcrib_core::Reads;

use super::list::heading;
use super::reach::{About, Reach, segment};
use super::{Done, Scene, Target};
use crate::printer::plain;
use crate::wire::ToolView;

/// Show one tool: where it comes from, its options, its schema
#[derive(Debug, Args)]
pub struct Show {
    /// The tool's name
    pub name: String,
    /// As this agent sees it, and what its call would pass
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    #[command(flatten)]
    pub target: Target,
}

impl Show {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open_for(scene, &self.target, About::Tool(&self.name)).await?;
        let tool = match self.agent {
            None => reach.tool(&self.name).await?,
            Some(agent) => {
                let path = format!("/tools/{}", segment(&self.name)?);
                reach.ask(&path, &[("agent", agent)]).await?
            }
        };
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&tool);
            return Ok(0);
        }
        printer.line(heading(&tool.name));
        printer.line(plain(&tool.description));
        printer.line("");
        for (name, value) in facts(&tool) {
            printer.line(format!("{name:<13}{}", plain(&value)));
        }
        if let Some(call) = &tool.call {
            printer.line("");
            printer.line(heading(&format!(
                "a call of `{}` passes",
                plain(&call.agent)
            )));
            for one in &call.passes {
                printer.line(format!("  {}", plain(one)));
            }
        }
        printer.line("");
        printer.line(heading("input schema"));
        printer.line(serde_json::to_string_pretty(&tool.input_schema).unwrap_or_default());
        if let Some(schema) = &tool.output_schema {
            printer.line(heading("output schema"));
            printer.line(serde_json::to_string_pretty(schema).unwrap_or_default());
        }
        Ok(0)
    }
}

fn facts(tool: &ToolView) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut fact = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
    let stale = if tool.stale {
        ", stale: the file is broken, its last good version serves"
    } else {
        ""
    };
    fact("status", Some(format!("{}{stale}", tool.status)));
    fact(
        "source",
        Some(match &tool.scope {
            Some(scope) => format!("{} ({scope})", tool.source),
            None => tool.source.clone(),
        }),
    );
    fact("file", tool.file.clone());
    fact("runs with", tool.interpreter.clone());
    let off = "off: it may do what you may, as your settings say";
    fact("sandbox", tool.sandbox.as_ref().map(|_| off.to_owned()));
    fact("module", Some(tool.module.clone()));
    fact("for agents", Some(tool.mcp_name.clone()));
    fact("version", tool.version.clone());
    fact("tags", joined(&tool.tags));
    fact("time limit", tool.timeout_ms.map(|ms| format!("{ms} ms")));
    fact("declares", joined(&tool.declares));
    fact("reads", tool.reads.as_deref().map(Reads::words));
    fact("needs grant", joined(&tool.needs));
    fact("granted", joined(&tool.granted.words()));
    fact("shadows", joined(&tool.shadows));
    facts
}

fn joined(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| items.join(", "))
}
