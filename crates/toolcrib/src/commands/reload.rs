//! `toolcrib reload`: reads every tool file again, here or in the crib that serves.

use clap::Args;
use serde_json::json;
use toolcrib_core::words::counted;

use super::list::summary;
use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::wire::ReloadView;

/// Read every tool file again
#[derive(Debug, Args)]
#[command(
    after_help = "A serving crib follows changes by itself; this is for file systems that do not report them. \
    Without --host and --port the files are read here, which checks them."
)]
pub struct Reload {
    #[command(flatten)]
    pub target: Target,
}

impl Reload {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let view: ReloadView = reach.post("/tools/reload", &json!({})).await?;
        let exit = u8::from(!view.success);
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&view);
            return Ok(exit);
        }
        let (added, changed, removed) = (view.added.len(), view.changed.len(), view.removed.len());
        printer.line(format!(
            "{}: {added} added, {changed} changed, {removed} removed",
            counted(view.tool_count, "tool")
        ));
        summary(scene, &view.errors);
        Ok(exit)
    }
}
