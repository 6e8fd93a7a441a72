//! `toolcrib trust`: yes to a project's code, by a person and without a prompt.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolcrib_core::store::LastGood;
use toolcrib_core::{Scope, Tool};
use toolcrib_sources::Follow;
use toolcrib_store::{TrustKind, TrustedPath, TrustedPaths};

use super::list::heading;
use super::{Done, Scene};
use crate::config::{Flags, Project, ProjectError, project};
use crate::failure::Failure;
use crate::memory::Memory;
use crate::open::{Opened, data_folder, last_good_files};
use crate::printer::{GREEN, plain};
use crate::wire::ToolView;

/// Say yes to a project's tools, or take it back
#[derive(Debug, Args)]
#[command(
    after_help = "Until a project is trusted nothing of it runs and its config is not read: its tools are \
    listed, and calls to them are denied. Look at what it holds first: `toolcrib list`."
)]
pub struct Trust {
    /// The project; the one around the working directory if not given
    pub dir: Option<PathBuf>,
    /// Take trust back, from a project or from one tool that `new` trusted (give its path)
    #[arg(long, conflicts_with = "list")]
    pub revoke: bool,
    /// List the trusted projects, and tools that are trusted singly
    #[arg(long)]
    pub list: bool,
}

impl Trust {
    pub async fn run(self, scene: &Scene) -> Done {
        let memory = Memory::open(&scene.env, &data_folder(&scene.env)?).await?;
        let book = memory.store()?.trusted();
        if self.list {
            return list(scene, &book).await;
        }
        let flag = self.dir.clone().or(scene.globals.project.clone());
        if self.revoke {
            return revoke(scene, &book, flag).await;
        }
        let project = find(scene, flag)?;
        let tools = declared(scene, &project).await?;
        let new = book.trust(&project.root, TrustKind::Project).await?;
        let printer = scene.printer;
        if printer.is_json() {
            let tools: Vec<ToolView> = tools.iter().map(ToolView::from).collect();
            printer.json(
                &json!({"project": project.root, "trusted": true, "new": new, "tools": tools}),
            );
            return Ok(0);
        }
        let word = if new {
            "trusted"
        } else {
            "was trusted already:"
        };
        printer.line(format!("{GREEN}{word}{GREEN:#} {}", project.root.display()));
        if tools.is_empty() {
            printer.line("it holds no tools yet");
        }
        for tool in &tools {
            printer.line(format!(
                "  {}  {}",
                heading(tool.name()),
                plain(&tool.spec.description)
            ));
            for need in &tool.declares {
                printer.line(format!("      {}", plain(need)));
            }
        }
        if new {
            printer.hint("`toolcrib trust --revoke` takes it back");
        }
        Ok(0)
    }
}

fn find(scene: &Scene, flag: Option<PathBuf>) -> Result<Project, Failure> {
    let found = project::find(flag.as_deref(), &scene.env)?;
    Ok(found.ok_or_else(|| ProjectError::NoProject(scene.env.directory.clone()))?)
}

/// The project's own tools, read as an untrusted project's are: without running anything.
async fn declared(scene: &Scene, project: &Project) -> Result<Vec<Tool>, Failure> {
    let mut opened = Opened::wire(scene.env.clone(), Flags::default(), Some(&project.root)).await?;
    // A config that can't be used names no folders; every later command says what is wrong with it.
    let _ = opened.foresee_trust();
    let _sources = opened.load(Follow::Nothing).await;
    let catalog = opened.crib.tools();
    let own = catalog
        .tools()
        .filter(|tool| tool.scope == Some(Scope::Local));
    Ok(own.map(|tool| tool.as_ref().clone()).collect())
}

async fn revoke(scene: &Scene, book: &TrustedPaths, flag: Option<PathBuf>) -> Done {
    if let Some(entry) = flag.as_deref().and_then(|path| entry_at(scene, path))
        && let Some(found) = book.get(&entry).await?
        && found.kind == TrustKind::Entry
        && book.revoke(&entry).await?
    {
        return revoked(scene, &entry);
    }
    // A project that is gone can still be forgotten, by the path it had.
    let root = match find(scene, flag.clone()) {
        Ok(project) => project.root,
        Err(failure) => match flag {
            Some(path) => scene.env.directory.join(path),
            None => return Err(failure),
        },
    };
    // While it is trusted its config can be read, and that names its folders.
    let opened = Opened::wire(scene.env.clone(), Flags::default(), Some(&root)).await;
    let was = book.revoke_project(&root).await?;
    if let Ok(opened) = opened {
        opened.forget_last_good();
    }
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&json!({"project": root, "trusted": false, "new": was}));
    } else if was {
        printer.line(format!("no longer trusted: {}", root.display()));
    } else {
        printer.line(format!("was not trusted: {}", root.display()));
    }
    Ok(0)
}

/// The path that an entry of a tools folder has in the book: links in its folder's path are followed, itself is not.
fn entry_at(scene: &Scene, path: &Path) -> Option<PathBuf> {
    let path = scene.env.directory.join(path);
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

fn revoked(scene: &Scene, entry: &Path) -> Done {
    // What stood in for it while it was broken ends with its trust.
    if let (Some(folder), Some(name)) = (entry.parent(), entry.file_name()) {
        let name = name.to_string_lossy().into_owned();
        last_good_files(&scene.env)?.forget(folder, &[name]);
    }
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&json!({"entry": entry, "trusted": false, "new": true}));
    } else {
        printer.line(format!("no longer trusted: {}", entry.display()));
    }
    Ok(0)
}

async fn list(scene: &Scene, book: &TrustedPaths) -> Done {
    let all = book.list().await?;
    let (projects, entries): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|one| one.kind == TrustKind::Project);
    let printer = scene.printer;
    if printer.is_json() {
        let view = |all: &[TrustedPath]| -> Vec<Value> {
            let one = |one: &TrustedPath| json!({"path": one.path, "trustedAtMs": one.since_ms});
            all.iter().map(one).collect()
        };
        printer.json(&json!({"projects": view(&projects), "entries": view(&entries)}));
        return Ok(0);
    }
    if projects.is_empty() {
        printer.line("no project is trusted");
    }
    for project in projects {
        printer.line(project.path);
    }
    for entry in entries {
        printer.line(format!("{} (this tool alone)", entry.path));
    }
    Ok(0)
}
