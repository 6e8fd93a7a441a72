//! `toolcrib search`: the tools that fit what one wants to do.

use clap::Args;

use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::printer::{Column, DIM, plain};
use crate::wire::SearchView;

/// Find the tools that fit what you want to do, as agents do
#[derive(Debug, Args)]
#[command(after_help = "Exits 1 when nothing fits.")]
pub struct Search {
    /// What you want to do, in your words; or a name
    #[arg(required = true, value_name = "WORDS")]
    pub words: Vec<String>,
    /// At most so many tools
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub limit: usize,
    /// Only tools of this module, such as `local` or `mcp.github`
    #[arg(long, value_name = "MODULE")]
    pub namespace: Option<String>,
    #[command(flatten)]
    pub target: Target,
}

impl Search {
    pub async fn run(self, scene: &Scene) -> Done {
        let reach = Reach::open(scene, &self.target).await?;
        let mut asked = vec![
            ("q", self.words.join(" ")),
            ("limit", self.limit.to_string()),
        ];
        asked.extend(self.namespace.map(|namespace| ("namespace", namespace)));
        let found: SearchView = reach.ask("/search", &asked).await?;
        let exit = u8::from(found.matches.is_empty());
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&found);
            return Ok(exit);
        }
        let rows = found.matches.iter().map(|one| {
            let description = one.description.as_deref().unwrap_or_default();
            let line = description.lines().next().unwrap_or_default();
            vec![
                one.name.clone(),
                one.module.clone().unwrap_or_default(),
                line.to_owned(),
            ]
        });
        let columns = [
            Column::whole("name"),
            Column::spare("module", 1),
            Column::cut("description"),
        ];
        if exit == 0 {
            printer.table(&columns, &rows.collect::<Vec<_>>());
            return Ok(exit);
        }
        printer.note(found.message.unwrap_or_default());
        if !found.nearest.is_empty() {
            let names = found.nearest.join(", ");
            printer.note(format!("{DIM}nearest: {}{DIM:#}", plain(&names)));
        }
        Ok(exit)
    }
}
