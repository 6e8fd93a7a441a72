//! `toolcrib trust`: yes to a project's code, by a person who saw what it holds.

use std::path::{Path, PathBuf};

use clap::Args;
use toolcrib_core::words::CommandLine;

use super::errors::place;
use super::list::{heading, mark};
use super::reach::{Reach, with_query};
use super::{Done, Scene, Target};
use crate::config::{Project, ProjectError, project};
use crate::printer::{GREEN, plain};
use crate::wire::{TrustCreate, TrustGiven, TrustList, TrustTaken, TrustedView};

/// Trust a project's tools, or take trust back
#[derive(Debug, Args)]
#[command(
    after_help = "Until a project is trusted nothing of it runs and its config is not read: its tools are \
    listed, and calls to them are denied. In a terminal, `trust` shows what its files tell and asks; then its tools are \
    asked what they are, and it asks again before they are granted what they declare, as they are now. `--yes`, and any \
    call without a terminal, asks nothing. `toolcrib grant` gives more."
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
    /// Ask nothing
    #[arg(long, short, conflicts_with_all = ["list", "revoke"])]
    pub yes: bool,
    /// List the trusted projects, and tools that are trusted singly
    #[arg(long)]
    pub list: bool,
}

impl Trust {
    pub async fn run(self, scene: &Scene) -> Done {
        let flag = self.dir.clone().or(scene.globals.project.clone());
        let found = project::find(flag.as_deref(), &scene.env);
        let project = found.as_ref().ok().and_then(Option::as_ref);
        let reach = Reach::records(scene, &Target::default(), project).await?;
        if self.list {
            return list(scene, &reach).await;
        }
        if self.revoke {
            return revoke(scene, &reach, flag, found).await;
        }
        if found?.is_none() {
            return Err(ProjectError::NoProject(scene.env.directory.clone()).into());
        }
        let wanted = TrustCreate {
            no_grants: self.no_grants,
            shared: self.shared,
            look: false,
        };
        let printer = scene.printer;
        if printer.has_person() && !self.yes {
            return ask(scene, &reach, wanted).await;
        }
        let given: TrustGiven = reach.post("/trust", &wanted).await?;
        if printer.is_json() {
            printer.json(&given);
            return Ok(0);
        }
        tell_trusted(scene, &given);
        tell(scene, &given);
        if given.new {
            printer.hint(TAKE_BACK);
        }
        Ok(0)
    }
}

const TAKE_BACK: &str = "`toolcrib trust --revoke` takes it back";

/// What a project's files tell comes first, then a yes to its code, then what it declares, then a yes to that.
async fn ask(scene: &Scene, reach: &Reach, wanted: TrustCreate) -> Done {
    let printer = scene.printer;
    let seen: TrustGiven = reach
        .post(
            "/trust",
            &TrustCreate {
                look: true,
                ..wanted.clone()
            },
        )
        .await?;
    if !seen.trusted {
        printer.line(format!(
            "{} is not trusted yet. Its files tell of:",
            seen.project
        ));
        tell(scene, &seen);
        printer.note(
            "Its code will run, confined, and may read the project. What a tool declares beyond this is asked next.",
        );
        if !printer.ask("Trust this project?") {
            printer.line("nothing was trusted");
            return Ok(DECLINED);
        }
    }
    let only_trust = TrustCreate {
        no_grants: true,
        ..wanted.clone()
    };
    let mut given: TrustGiven = reach.post("/trust", &only_trust).await?;
    tell_trusted(scene, &given);
    tell(scene, &given);
    let lacking = given.tools.iter().filter(|tool| !tool.needs.is_empty());
    let names: Vec<&str> = lacking.map(|tool| tool.name.as_str()).collect();
    if !wanted.no_grants && !names.is_empty() {
        let question = format!("Grant what they ask for to {}?", names.join(", "));
        if printer.ask(&question) {
            let new = given.new;
            given = reach.post("/trust", &wanted).await?;
            given.new = new;
            for grant in &given.grants {
                printer.line(format!(
                    "{GREEN}granted{GREEN:#} {}, as it is now",
                    grant.tool
                ));
            }
        }
    }
    if given.new {
        printer.hint(TAKE_BACK);
    }
    Ok(0)
}

/// The exit code where the person said no.
const DECLINED: u8 = 1;

fn tell_trusted(scene: &Scene, given: &TrustGiven) {
    let word = match given.new {
        true => "trusted",
        false => "was trusted already:",
    };
    let line = format!("{GREEN}{word}{GREEN:#} {}", given.project);
    scene.printer.line(line);
}

/// The tools of a project: what each runs and asks for, and what is odd in its files.
fn tell(scene: &Scene, given: &TrustGiven) {
    let printer = scene.printer;
    match &given.trouble {
        Some(trouble) => printer.note(format!(
            "its tools were not looked at: {}",
            plain(&trouble.message)
        )),
        None if given.tools.is_empty() => printer.line("it holds no tools yet"),
        None => {}
    }
    for tool in &given.tools {
        printer.line(format!(
            "  {}  {}",
            heading(&tool.name),
            plain(&tool.description)
        ));
        for does in &tool.declares {
            printer.line(format!("      {}", plain(does)));
        }
        let granted = given.grants.iter().any(|grant| grant.tool == tool.name);
        if granted {
            printer.line(format!("      {GREEN}granted{GREEN:#}, as it is now"));
        } else if !tool.needs.is_empty() {
            let grant = CommandLine::new("toolcrib grant").operand(&tool.name);
            let grant = grant.switch("--all");
            printer.line(format!("      not granted: `{grant}`"));
        }
    }
    for problem in &given.problems {
        let message = plain(&problem.message);
        printer.line(format!(
            "  {}: {}: {message}",
            mark(&problem.severity),
            plain(&place(problem))
        ));
    }
}

async fn revoke(
    scene: &Scene,
    reach: &Reach,
    flag: Option<PathBuf>,
    found: Result<Option<Project>, ProjectError>,
) -> Done {
    let entry = flag.as_deref().and_then(|path| entry_at(scene, path));
    let list: TrustList = reach.get("/trust").await?;
    let entry = entry.filter(|entry| list.entries.iter().any(|one| Path::new(&one.path) == entry));
    // A project that is gone can still be forgotten, by the path it had.
    let path = match (entry, found, flag) {
        (Some(entry), ..) => entry,
        (None, Ok(Some(project)), _) => project.root,
        (None, _, Some(flag)) => scene.env.directory.join(flag),
        (None, Ok(None), None) => {
            return Err(ProjectError::NoProject(scene.env.directory.clone()).into());
        }
        (None, Err(error), None) => return Err(error.into()),
    };
    let query = [("path", path.to_string_lossy().into_owned())];
    let taken: TrustTaken = reach.delete(&with_query("/trust", &query)).await?;
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&taken);
        return Ok(0);
    }
    let path = taken.project.or(taken.entry).unwrap_or_default();
    match taken.new {
        true => printer.line(format!("no longer trusted: {path}")),
        false => printer.line(format!("was not trusted: {path}")),
    }
    Ok(0)
}

/// The path that an entry of a tools folder has in the book: links in its folder's path are followed, itself is not.
fn entry_at(scene: &Scene, path: &Path) -> Option<PathBuf> {
    let path = scene.env.directory.join(path);
    let folder = path.parent()?.canonicalize().ok()?;
    Some(folder.join(path.file_name()?))
}

async fn list(scene: &Scene, reach: &Reach) -> Done {
    let list: TrustList = reach.get("/trust").await?;
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(&list);
        return Ok(0);
    }
    if list.projects.is_empty() {
        printer.line("no project is trusted");
    }
    let why = |one: &TrustedView| match &one.lapsed {
        Some(reason) => format!(" (no longer: {reason})"),
        None => String::new(),
    };
    for project in &list.projects {
        let line = format!("{}{}", project.path, why(project));
        printer.line(plain(&line));
    }
    for entry in &list.entries {
        let line = format!("{} (this tool alone){}", entry.path, why(entry));
        printer.line(plain(&line));
    }
    Ok(0)
}
