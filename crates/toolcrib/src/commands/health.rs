//! `toolcrib health`: asks the processes behind tools how they are.

use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::reach::{Reach, segment};
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::printer::{GREEN, RED, YELLOW, plain};
use crate::wire::{CheckView, ToolList};

/// How many are asked at the same time.
const AT_ONCE: usize = 8;

/// Ask a tool's process how it is, starting one if needed
#[derive(Debug, Args)]
#[command(
    after_help = "Without a name every tool is asked; one without a process of its own is `unknown`. Exit code 1 when one is unhealthy."
)]
pub struct Health {
    /// The tool's name
    pub name: Option<String>,
    #[command(flatten)]
    pub target: Target,
}

impl Health {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let checked = self.check(&reach).await;
        reach.close().await;
        let checked = checked?;
        let unwell = checked.iter().any(|one| one.health_status == "unhealthy");
        let printer = scene.printer;
        if printer.is_json() {
            match (&self.name, checked.as_slice()) {
                (Some(_), [one]) => printer.json(one),
                _ => printer.json(&checked),
            }
            return Ok(u8::from(unwell));
        }
        if checked.is_empty() {
            printer.line("there is no tool that could be asked");
        }
        for one in &checked {
            let style = match one.health_status.as_str() {
                "healthy" => GREEN,
                "unhealthy" => RED,
                _ => YELLOW,
            };
            let message = one.message.as_deref().map(plain).unwrap_or_default();
            printer.line(format!(
                "{:<24} {style}{:<10}{style:#} {:<11} {message}",
                one.name, one.health_status, one.status
            ));
        }
        Ok(u8::from(unwell))
    }

    async fn check(&self, reach: &Reach) -> Result<Vec<CheckView>, Failure> {
        if let Some(name) = &self.name {
            return Ok(vec![ask(reach, name).await?]);
        }
        let list: ToolList = reach.get("/tools").await?;
        let tools = list.tools.iter().filter(|tool| tool.status != "untrusted");
        let asked = tools.map(|tool| ask(reach, &tool.name));
        stream::iter(asked).buffered(AT_ONCE).try_collect().await
    }
}

async fn ask(reach: &Reach, name: &str) -> Result<CheckView, Failure> {
    reach
        .get(&format!("/tools/{}/health?check=true", segment(name)?))
        .await
}
