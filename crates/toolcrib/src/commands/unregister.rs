//! `toolcrib unregister`: takes a registered tool away.

use clap::Args;
use serde::de::IgnoredAny;
use serde_json::json;

use super::reach::{Reach, segment};
use super::{Done, Scene, Target};

/// Remove a registered tool
#[derive(Debug, Args)]
pub struct Unregister {
    /// The tool's name
    pub name: String,
    #[command(flatten)]
    pub target: Target,
}

impl Unregister {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let path = format!("/custom-tools/{}", segment(&self.name)?);
        let _: IgnoredAny = reach.delete(&path).await?;
        match scene.printer.is_json() {
            true => scene
                .printer
                .json(&json!({"name": self.name, "removed": true})),
            false => scene.printer.line(format!("removed {}", self.name)),
        }
        Ok(0)
    }
}
