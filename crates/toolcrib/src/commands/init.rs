//! `toolcrib init`: a project with one working tool, a commented config, and trust in what was written.

use std::path::Path;

use clap::Args;
use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_store::{Ownership, TrustKind};

use super::new::refuse_way_out;
use super::{Done, Scene};
use crate::config::local_folders;
use crate::config::project::{self, FoundBy, MARKER};
use crate::failure::Failure;
use crate::open::data_folder;
use crate::printer::{BOLD, GREEN};
use crate::store_handle::{StoreHandle, user};

const HELLO: &str = include_str!("../../../../templates/init/hello.json");
const CONFIG: &str = include_str!("../../../../templates/init/config.toml");

/// Make this folder a project with one working tool
#[derive(Debug, Args)]
#[command(
    after_help = "Writes .toolcrib/tools/hello.json and .toolcrib/config.toml, and trusts the project when \
    .toolcrib/ is new. Nothing that is there is overwritten."
)]
pub struct Init {}

impl Init {
    pub async fn run(self, scene: &Scene) -> Done {
        let named = scene.globals.project.clone().unwrap_or_default();
        let project = project::named(&scene.env.directory.join(named), FoundBy::Flag, &scene.env)?;
        let marker = project.root.join(MARKER);
        let is_new = match std::fs::create_dir(&marker) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && marker.is_dir() => {
                false
            }
            Err(error) => return Err(unwritable(&marker, error)),
        };
        let tools = marker.join("tools");
        let store = StoreHandle::open(&scene.env, &data_folder(&scene.env)?).await?;
        let known = store.trust_of(&scene.env, Some(&project)).await;
        if !known.is_trusted() {
            refuse_way_out(&project, &marker)?;
            refuse_way_out(&project, &tools)?;
        }
        std::fs::create_dir_all(&tools).map_err(|error| unwritable(&tools, error))?;
        let mut written = Vec::new();
        for (path, text) in [
            (tools.join("hello.json"), HELLO),
            (marker.join("config.toml"), CONFIG),
        ] {
            if write_new(&path, text)? {
                written.push(path.display().to_string());
            }
        }
        let further = local_folders(&scene.env, &project);
        // What others can change is trusted with a word of its own only.
        let ownership = Ownership::of(&project.root, &further);
        let alone = ownership.is_ok_and(|ownership| ownership.doubt(user()).is_none());
        if is_new && alone {
            let trusted = store.ready()?.trusted();
            trusted
                .trust(&project.root, TrustKind::Project, &further)
                .await?;
        }
        let trusted = store
            .trust_of(&scene.env, Some(&project))
            .await
            .is_trusted();
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&json!({"project": project.root, "written": written, "trusted": trusted}));
            return Ok(0);
        }
        for path in &written {
            printer.line(format!("{GREEN}wrote{GREEN:#}    {path}"));
        }
        if is_new && !alone {
            printer.line("not trusted: others own the folder or may write to it");
            printer.line("`toolcrib trust` says more");
        } else if is_new {
            printer.line(format!(
                "{GREEN}trusted{GREEN:#}  {}",
                project.root.display()
            ));
        } else if !trusted {
            printer.line(format!(
                "{} was there before and is not trusted yet:",
                marker.display()
            ));
            printer.line("look at its tools with `toolcrib list`, then run `toolcrib trust`");
        }
        printer.line("");
        printer.line("Next:");
        printer.line(format!(
            "  {BOLD}toolcrib call hello name=you{BOLD:#}    call your first tool"
        ));
        printer.line(format!("  {BOLD}toolcrib serve{BOLD:#}                  serve it; edit the file and it is reloaded"));
        Ok(0)
    }
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> Result<bool, Failure> {
    use std::io::Write;
    match std::fs::File::create_new(path) {
        Ok(mut file) => file
            .write_all(text.as_bytes())
            .map(|()| true)
            .map_err(|error| unwritable(path, error)),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(unwritable(path, error)),
    }
}

fn unwritable(path: &Path, error: std::io::Error) -> Failure {
    Failure::new(
        ErrorCode::Unavailable,
        format!("`{}` can't be written", path.display()),
    )
    .cause(error)
    .hint("check the folder's permissions and free space")
}
