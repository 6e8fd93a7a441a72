//! `toolcrib trust`: yes to a project's code, by a person and without a prompt.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use clap::Args;
use serde_json::{Value, json};
use toolcrib_core::store::LastGood;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{Access, ErrorCode, Scope, Tool};
use toolcrib_sources::{Follow, Sources};
use toolcrib_store::{Ownership, Store, TrustKind, TrustedPath, TrustedPaths};

use super::list::heading;
use super::{Done, Scene};
use crate::config::project::{self, FoundBy};
use crate::config::{Flags, Project, ProjectError, local_folders};
use crate::failure::Failure;
use crate::grantor::Grantor;
use crate::open::{Opened, data_folder, last_good_files};
use crate::printer::{GREEN, plain};
use crate::store_handle::{StoreHandle, user};
use crate::wire::{GrantView, ToolView};

/// Say yes to a project's tools, or take it back
#[derive(Debug, Args)]
#[command(
    after_help = "Until a project is trusted nothing of it runs and its config is not read: its tools are \
    listed, and calls to them are denied. Look at what it holds first: `toolcrib list`. Its tools are then asked what \
    they are, and granted what they declare, as they are now; `toolcrib grant` gives more."
)]
pub struct Trust {
    /// The project; the one around the working directory if not given
    pub dir: Option<PathBuf>,
    /// Take trust back, from a project or from one tool that `new` trusted (give its path)
    #[arg(long, conflicts_with = "list")]
    pub revoke: bool,
    /// Grant nothing of what its tools declare
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub no_grants: bool,
    /// Trust it although others own it or may write to it: they then decide what runs as you
    #[arg(long, conflicts_with_all = ["list", "revoke"])]
    pub shared: bool,
    /// List the trusted projects, and tools that are trusted singly
    #[arg(long)]
    pub list: bool,
}

impl Trust {
    pub async fn run(self, scene: &Scene) -> Done {
        let memory = StoreHandle::open(&scene.env, &data_folder(&scene.env)?).await?;
        let store = memory.store()?;
        let book = store.trusted();
        if self.list {
            return list(scene, &book).await;
        }
        let flag = self.dir.clone().or(scene.globals.project.clone());
        if self.revoke {
            return revoke(scene, &store, flag).await;
        }
        let project = find(scene, flag)?;
        let further = local_folders(&scene.env, &project);
        if !self.shared {
            refuse_shared(&project.root, &further)?;
        }
        let kind = TrustKind::Project;
        let new = book.trust(&project.root, kind, &further).await?;
        let found = Found::load(scene, &project, !self.no_grants).await?;
        let Found { tools, given, .. } = &found;
        let printer = scene.printer;
        if printer.is_json() {
            let tools: Vec<ToolView> = tools.iter().map(|tool| tool.as_ref().into()).collect();
            printer.json(
                &json!({"project": project.root, "trusted": true, "new": new, "tools": tools, "grants": given}),
            );
            return Ok(0);
        }
        let word = if new {
            "trusted"
        } else {
            "was trusted already:"
        };
        printer.line(format!("{GREEN}{word}{GREEN:#} {}", project.root.display()));
        found.tell(scene);
        if new {
            printer.hint("`toolcrib trust --revoke` takes it back");
        }
        Ok(0)
    }
}

/// Asks for one word more where others than this user can change what would run.
fn refuse_shared(root: &Path, further: &[PathBuf]) -> Result<(), Failure> {
    let doubt = match Ownership::of(root, further) {
        Ok(ownership) => ownership.doubt(user()),
        Err(error) => Some(format!("whom it belongs to can't be told: {error}")),
    };
    let Some(doubt) = doubt else {
        return Ok(());
    };
    let shown = root.display();
    let trust = CommandLine::new("toolcrib trust").operand(shown.to_string());
    let failure = Failure::new(
        ErrorCode::Denied,
        format!("`{}` was not trusted: {doubt}", plain(&shown.to_string())),
    );
    Err(failure
        .cause("whoever can change its tools decides what runs as you, now and later")
        .hint(format!(
            "make it yours alone, or say that you mean it: `{}`",
            trust.switch("--shared")
        )))
}

fn find(scene: &Scene, flag: Option<PathBuf>) -> Result<Project, Failure> {
    let found = project::find(flag.as_deref(), &scene.env)?;
    Ok(found.ok_or_else(|| ProjectError::NoProject(scene.env.directory.clone()))?)
}

/// The tools of a project that was just trusted.
#[derive(Default)]
struct Found {
    tools: Vec<Arc<Tool>>,
    given: Vec<GrantView>,
    /// Why nothing could be looked at, if so.
    trouble: Option<Failure>,
}

impl Found {
    /// Loads the project's own tools: what a program declares is known only once it may run. Grants what they declare.
    async fn load(scene: &Scene, project: &Project, grant: bool) -> Result<Found, Failure> {
        let root = Some(project.root.as_path());
        let opened = match Opened::wire(scene.env.clone(), Flags::default(), root).await {
            Ok(opened) => opened,
            // Every later command says what is wrong with its config, too.
            Err(failure) => {
                return Ok(Found {
                    trouble: Some(failure),
                    ..Found::default()
                });
            }
        };
        let sources: Arc<OnceLock<Sources>> = Arc::default();
        let loaded = opened.load(Follow::Nothing).await;
        sources.get_or_init(|| loaded);
        let own = || {
            let view = opened.crib.owners_view();
            let own = view.tools().filter(|tool| tool.scope == Some(Scope::Local));
            own.cloned().collect::<Vec<Arc<Tool>>>()
        };
        let given = match grant {
            true => {
                let grantor = Grantor::new(&opened, sources.clone());
                grantor.give_declared(own().iter(), false).await?
            }
            false => Vec::new(),
        };
        let tools = own();
        opened.close().await;
        Ok(Found {
            tools,
            given: given.into_iter().map(GrantView::from).collect(),
            trouble: None,
        })
    }

    fn tell(&self, scene: &Scene) {
        let printer = scene.printer;
        match &self.trouble {
            Some(failure) => printer.note(format!(
                "its tools were not looked at: {}",
                plain(&failure.message)
            )),
            None if self.tools.is_empty() => printer.line("it holds no tools yet"),
            None => {}
        }
        for tool in &self.tools {
            printer.line(format!(
                "  {}  {}",
                heading(tool.name()),
                plain(&tool.spec.description)
            ));
            for does in &tool.declares {
                printer.line(format!("      {}", plain(does)));
            }
            let granted = self.given.iter().any(|grant| grant.tool == tool.name());
            if granted {
                printer.line(format!("      {GREEN}granted{GREEN:#}, as it is now"));
            } else if !tool.asks.is_empty() && tool.access != Access::Open {
                let grant = CommandLine::new("toolcrib grant").operand(tool.name());
                let grant = grant.switch("--all");
                printer.line(format!("      not granted: `{grant}`"));
            }
        }
    }
}

async fn revoke(scene: &Scene, store: &Store, flag: Option<PathBuf>) -> Done {
    let (book, grants) = (store.trusted(), store.grants());
    if let Some(entry) = flag.as_deref().and_then(|path| entry_at(scene, path))
        && let Some(found) = book.get(&entry).await?
        && found.kind == TrustKind::Entry
        && book.revoke(&entry).await?
    {
        grants.revoke_below(&entry).await?;
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
    grants.revoke_below(&root).await?;
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
            let one = |one: &TrustedPath| json!({"path": one.path, "trustedAtMs": one.since_ms, "lapsed": lapsed(scene, one)});
            all.iter().map(one).collect()
        };
        printer.json(&json!({"projects": view(&projects), "entries": view(&entries)}));
        return Ok(0);
    }
    if projects.is_empty() {
        printer.line("no project is trusted");
    }
    let why = |one: &TrustedPath| match lapsed(scene, one) {
        Some(reason) => format!(" (no longer: {reason})"),
        None => String::new(),
    };
    for project in projects {
        let line = format!("{}{}", project.path, why(&project));
        printer.line(plain(&line));
    }
    for entry in entries {
        let line = format!("{} (this tool alone){}", entry.path, why(&entry));
        printer.line(plain(&line));
    }
    Ok(0)
}

/// Why the yes no longer counts, if so. One to what is gone waits for its return.
fn lapsed(scene: &Scene, one: &TrustedPath) -> Option<String> {
    let root = PathBuf::from(&one.path);
    let there = root.exists();
    let further = match one.kind {
        TrustKind::Project => {
            let found_by = FoundBy::Flag;
            local_folders(&scene.env, &Project { root, found_by })
        }
        TrustKind::Entry => Vec::new(),
    };
    one.lapsed(user(), &further).filter(|_| there)
}
