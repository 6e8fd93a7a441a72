//! `toolcrib agents`: which tools each agent sees, and why not.

use clap::Args;
use serde_json::Value;
use toolcrib_core::words::counted;

use super::list::heading;
use super::reach::{Reach, segment};
use super::{Done, Scene, Target};
use crate::printer::{Column, DIM, YELLOW, plain};
use crate::wire::{AgentList, AgentView, in_words};

/// List the agents of your settings, or show what one of them sees and why not
#[derive(Debug, Args)]
#[command(after_help = "`toolcrib help profiles` says how to define one.")]
pub struct Agents {
    /// One agent; all of them when it is not given
    pub name: Option<String>,
    #[command(flatten)]
    pub target: Target,
}

impl Agents {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        match &self.name {
            Some(name) => {
                let path = format!("/agents/{}", segment(name)?);
                show(scene, &reach.get(&path).await?)
            }
            None => list(scene, &reach.get("/agents").await?),
        }
    }
}

fn list(scene: &Scene, list: &AgentList) -> Done {
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(list);
        return Ok(0);
    }
    let rows = list.agents.iter().map(|agent| {
        let all = agent.tools.len() + agent.hidden.len();
        let links = agent.middleware.iter().filter_map(|link| link.get("name"));
        let links: Vec<&str> = links.filter_map(Value::as_str).collect();
        vec![
            agent.name.clone(),
            agent.mode.clone(),
            format!("{} of {all}", agent.tools.len()),
            match links.is_empty() {
                true => "-".to_owned(),
                false => links.join(", "),
            },
        ]
    });
    let columns = [
        Column::whole("agent"),
        Column::whole("mode"),
        Column::whole("tools"),
        Column::cut("middleware"),
    ];
    printer.table(&columns, &rows.collect::<Vec<_>>());
    for agent in &list.agents {
        warn(scene, agent);
    }
    Ok(0)
}

fn show(scene: &Scene, agent: &AgentView) -> Done {
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(agent);
        return Ok(0);
    }
    let is_inner = agent.mode == "subagent";
    let inner = if is_inner { ", for sessions only" } else { "" };
    let sees = counted(agent.tools.len(), "tool");
    printer.line(heading(&format!("{} sees {sees}{inner}", agent.name)));
    for name in &agent.tools {
        printer.line(format!("  {}", plain(name)));
    }
    if !agent.hidden.is_empty() {
        printer.line(heading("it does not see"));
        let widest = agent.hidden.iter().map(|tool| tool.name.chars().count());
        let width = widest.max().unwrap_or_default();
        for tool in &agent.hidden {
            let (name, reason) = (plain(&tool.name), plain(&tool.reason));
            printer.line(format!("  {name:width$}  {DIM}{reason}{DIM:#}"));
        }
    }
    if !agent.middleware.is_empty() {
        printer.line(heading("its calls pass"));
        for link in &agent.middleware {
            printer.line(format!("  {}", plain(&in_words(link))));
        }
    }
    warn(scene, agent);
    Ok(0)
}

fn warn(scene: &Scene, agent: &AgentView) {
    for pattern in &agent.unmatched {
        let (name, pattern) = (plain(&agent.name), plain(pattern));
        scene.printer.note(format!(
            "{YELLOW}note{YELLOW:#}: no tool fits `{pattern}` of agent `{name}`"
        ));
    }
}
