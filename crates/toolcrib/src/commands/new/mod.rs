//! `toolcrib new`: a working tool from a template, trusted by itself and without the rest of its project.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use toolcrib_core::{Access, ErrorCode, ToolName};

use super::lint::advise;
use super::{Done, Scene};
use toolcrib_store::TrustKind;

use crate::config::Flags;
use crate::env::Env;
use crate::failure::Failure;
use crate::grantor::Grantor;
use crate::open::Opened;
use crate::printer::{BOLD, GREEN, YELLOW, plain};
use crate::store_handle::Trust;
use crate::wire::ToolView;

mod build;
mod destination;
mod staging;
mod template;

pub use destination::refuse_way_out;
use destination::{global_folder, local_folder, make_folder, refuse_taken, taken, unwritable};
use staging::StagingFolder;
use template::Template;

/// Arguments that every template's tool takes.
const EXAMPLE: &str = r#"{"text": "hi"}"#;

/// Write a new tool from a template, ready to be changed
#[derive(Debug, Args)]
#[command(
    after_help = "Writes into .toolcrib/tools/ of the project, or with --global into the folder whose tools every \
    project has. Nothing that is there is overwritten. In a project that is not trusted, the new tool alone is \
    trusted, by its path; the rest of the project still waits for `toolcrib trust`."
)]
pub struct New {
    /// A name for the tool: letters, digits, `_` and `-`
    pub name: String,
    /// What it is written in
    #[arg(long, value_enum, default_value_t = Template::Python)]
    pub template: Template,
    /// Write it for every project, into the user's own tools folder
    #[arg(long)]
    pub global: bool,
}

/// What was written.
struct Written {
    entry: PathBuf,
    files: Vec<PathBuf>,
    warnings: Vec<String>,
    /// What it declares, and was granted whatever becomes of it.
    granted: Vec<String>,
    /// Is there a program to run? False only where building it failed.
    built: bool,
}

impl New {
    pub async fn run(self, scene: &Scene) -> Done {
        let name = self.checked_name()?;
        let flag = scene.globals.project.as_deref();
        let mut opened = Opened::wire(scene.env.clone(), Flags::default(), flag).await?;
        let tools = match self.global {
            true => global_folder(&scene.env)?,
            false => local_folder(&opened, scene, &name)?,
        };
        let single = !self.global && !opened.trust.is_trusted();
        if single && let Trust::Unknown(_) = &opened.trust {
            // Says why, before anything is written.
            opened.store.ready()?;
        }
        refuse_taken(&opened, &tools, &name).await?;
        make_folder(&tools)?;
        let mut written = self.write(scene, &opened, &tools, &name).await?;
        if single {
            let trusted = opened.store.ready()?.trusted();
            trusted.trust(&written.entry, TrustKind::Entry, &[]).await?;
        }
        if !opened.settings.folders.iter().any(|f| f.path == tools) {
            written.warnings.push(format!(
                "the setting `tools_dir` replaces `{}`, so the tool is not seen there",
                tools.display()
            ));
        }
        if written.built {
            let given = grant_declared(&mut opened, &tools, &written.entry).await?;
            written.granted = given;
        }
        self.tell(scene, &name, &written, single);
        if let Some(tool) = opened.crib.owners_view().get(name.as_str()) {
            advise(scene, &[ToolView::from(&**tool)]);
        }
        Ok(u8::from(!written.built))
    }

    /// A name that a tool may have, and a file or folder that is looked at.
    fn checked_name(&self) -> Result<ToolName, Failure> {
        let name = ToolName::new(&self.name).map_err(|error| {
            Failure::new(ErrorCode::BadRequest, error.to_string())
                .hint("use 1 to 64 letters, digits, `_` and `-`, such as `word-count`")
        })?;
        let entry = self.template.entry(name.as_str());
        let config = |start: &str| entry.starts_with(start) && entry.ends_with(".json");
        let passed_over = entry.starts_with('_')
            || entry == "node_modules"
            || config("package")
            || config("tsconfig");
        if passed_over {
            let message = format!("`{entry}` would not be looked at: such names are not for tools");
            return Err(Failure::new(ErrorCode::BadRequest, message).hint("take another name"));
        }
        Ok(name)
    }

    /// Writes the template's files, out of sight until they are whole.
    async fn write(
        &self,
        scene: &Scene,
        opened: &Opened,
        tools: &Path,
        name: &ToolName,
    ) -> Result<Written, Failure> {
        let template = self.template;
        let entry = tools.join(template.entry(name.as_str()));
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => taken(name, &entry),
            _ => unwritable(&entry, error),
        };
        let draft = StagingFolder::in_folder(tools).map_err(refused)?;
        let mut names = Vec::new();
        for file in template.files() {
            draft
                .write(file.name, &file.text(name.as_str()), file.executable)
                .map_err(refused)?;
            names.push(file.name);
        }
        let mut warnings = missing(template, &scene.env);
        let mut built = true;
        if template == Template::Rust && warnings.is_empty() {
            scene
                .printer
                .note(format!("building `{name}` with rustc …"));
            match build::build(opened, &scene.env, draft.folder()).await {
                Ok(()) => names.push("tool"),
                Err(reason) => {
                    built = false;
                    warnings.push(format!("it could not be built: {reason}"));
                }
            }
        }
        if template == Template::Rust && !names.contains(&"tool") {
            warnings.push(format!(
                "build it before the first call: cd '{}' && rustc --edition 2021 -O -o tool main.rs",
                entry.display()
            ));
        }
        let files = match template.is_folder() {
            true => {
                draft.place(&entry).map_err(refused)?;
                names.iter().map(|name| entry.join(name)).collect()
            }
            false => {
                draft
                    .place_file(template.files()[0].name, &entry)
                    .map_err(refused)?;
                vec![entry.clone()]
            }
        };
        Ok(Written {
            entry,
            files,
            warnings,
            granted: Vec::new(),
            built,
        })
    }

    fn tell(&self, scene: &Scene, name: &ToolName, written: &Written, single: bool) {
        let project = match &scene.globals.project {
            Some(project) => {
                let path = project.display().to_string().replace('\'', r"'\''");
                format!("--project '{path}' ")
            }
            None => String::new(),
        };
        let next = format!("toolcrib {project}test {name} '{EXAMPLE}'");
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&json!({
                "name": name.as_str(),
                "template": self.template.as_str(),
                "scope": if self.global { "global" } else { "local" },
                "written": written.files,
                "trustedEntry": single.then_some(&written.entry),
                "granted": written.granted,
                "warnings": written.warnings,
                "next": next,
            }));
            return;
        }
        for file in &written.files {
            printer.line(format!("{GREEN}wrote{GREEN:#}    {}", file.display()));
        }
        if single {
            printer.line(format!(
                "{GREEN}trusted{GREEN:#}  {}",
                written.entry.display()
            ));
            printer.line("         (this tool alone; the rest of the project is not trusted)");
        }
        for words in &written.granted {
            printer.line(format!("{GREEN}granted{GREEN:#}  {}", plain(words)));
        }
        for warning in &written.warnings {
            printer.note(format!("{YELLOW}warning:{YELLOW:#} {}", plain(warning)));
        }
        printer.line("");
        printer.line("Next:");
        printer.line(format!("  {BOLD}{next}{BOLD:#}"));
    }
}

/// Grants the new tool what it declares, whatever becomes of it: it is the user's own. Nothing else of its folder is run.
async fn grant_declared(
    opened: &mut Opened,
    tools: &Path,
    entry: &Path,
) -> Result<Vec<String>, Failure> {
    let name = entry.file_name().and_then(|name| name.to_str());
    let real = tools.canonicalize().unwrap_or_else(|_| tools.to_path_buf());
    let folders = &mut opened.settings.folders;
    folders.retain(|folder| folder.path == tools);
    for folder in folders {
        folder.access = Access::untrusted(real.clone());
        folder.trusted = name.into_iter().map(str::to_owned).collect();
    }
    let _sources = opened.load_all().await;
    let view = opened.crib.owners_view();
    let written = view.tools().filter(|tool| {
        let file = tool.file.as_deref();
        file.is_some_and(|file| file.starts_with(entry))
    });
    let grantor = Grantor::new(opened, Arc::default());
    let given = grantor.give_declared(written, true).await?;
    opened.close().await;
    Ok(given
        .iter()
        .flat_map(|grant| grant.permit.words())
        .collect())
}

/// What the template needs and nobody finds on PATH.
fn missing(template: Template, env: &Env) -> Vec<String> {
    let path = env.get("PATH").unwrap_or_default();
    let found = |program: &str| {
        std::env::split_paths(path).any(|folder| {
            let file = folder.join(program).metadata();
            file.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        })
    };
    let needs = template.needs().iter().filter(|need| !found(need.program));
    needs
        .map(|need| format!("`{}` is not on PATH: {}", need.program, need.remedy))
        .collect()
}
