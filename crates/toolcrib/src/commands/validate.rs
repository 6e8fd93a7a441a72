//! `toolcrib validate`: starts a registered tool's program and says whether it is what is stored.

use clap::Args;
use serde_json::json;

use super::reach::{Reach, segment};
use super::{Done, Scene, Target, register};
use crate::failure::Failure;
use crate::printer::{GREEN, RED, YELLOW, plain};
use crate::wire::{CustomToolUpdate, ValidationView};

/// Start a registered tool's program and check that it is what was registered
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 when it is not valid. A tool of status `error` that is valid again is active again."
)]
pub struct Validate {
    /// The tool's name
    pub name: String,
    /// Make it active if it is valid
    #[arg(long)]
    pub activate: bool,
    #[command(flatten)]
    pub target: Target,
}

impl Validate {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let path = format!("/custom-tools/{}", segment(&self.name)?);
        let validated: Result<ValidationView, Failure> =
            reach.post(&format!("{path}/validate"), &json!({})).await;
        let activated = match &validated {
            Ok(view) if view.valid && self.activate => {
                let update = CustomToolUpdate {
                    status: Some("active".to_owned()),
                    ..CustomToolUpdate::default()
                };
                Some(reach.patch(&path, &update).await)
            }
            _ => None,
        };
        reach.close().await;
        let validated = validated?;
        let printer = scene.printer;
        if let Some(activated) = activated {
            register::print(scene, &activated?);
            return Ok(0);
        }
        if printer.is_json() {
            printer.json(&validated);
            return Ok(u8::from(!validated.valid));
        }
        let verdict = match validated.valid {
            true => format!("{GREEN}valid{GREEN:#}"),
            false => format!("{RED}not valid{RED:#}"),
        };
        printer.line(format!("{} is {verdict}", plain(&self.name)));
        for error in &validated.errors {
            printer.line(format!("  {RED}error{RED:#} {}", plain(error)));
        }
        for warning in &validated.warnings {
            printer.line(format!("  {YELLOW}warning{YELLOW:#} {}", plain(warning)));
        }
        Ok(u8::from(!validated.valid))
    }
}
