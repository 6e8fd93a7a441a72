//! Executables: a program that answers three JSON-RPC methods is a tool.
//!
//! It comes as a file with the run bit, or as a folder with a `tool.json` or one `tool.*` file. What `tool.json` leaves
//! out the program is asked for ([`UndescribedProgram::ask`]), once per content: what it said is remembered. Of an untrusted
//! project nothing is run, so there only the text of `tool.json` and the file's name are known.
//!
//! * [`bundle`]: which files a tool's folder holds, and the hash of them all.
//! * [`manifest`]: `tool.json`, and how the program is started.
//! * [`named`]: which files `tool.json` names, wherever they lie.
//! * [`requirements`]: the packages that its folder names.
//! * [`variables`]: which variables a tool may set for itself.
//! * [`definition`]: what is known of a tool becomes a tool.
//! * [`run`]: one call.

pub mod alone;
pub mod bundle;
pub mod definition;
pub mod manifest;
pub mod named;
mod requirements;
pub mod run;
#[cfg(test)]
mod tests;
mod variables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use toolcrib_core::words::CommandLine;
use toolcrib_core::{
    Access, BoxFuture, ErrorType, Hint, Pending, Permit, Problem, Scope, SourceKind, Tool,
};

use crate::confine::Workshop;
use crate::denied::Lacking;
use crate::description::{Afterwards, Description, Undescribed};
use crate::fields::Report;
use crate::worker::{Fault, Key, Recipe};
use crate::{Loaded, Origin, Place, permits, put_off};
use definition::Definition;
use manifest::{Manifest, Start};
use requirements::Requirements;

/// The file that says what a folder's tool is.
pub const MANIFEST: &str = "tool.json";

/// What a tool's entry in a tools folder holds.
pub struct Entry<'a> {
    /// The entry's own name in the tools folder.
    pub name: &'a str,
    /// The hash of everything in it.
    pub hash: &'a str,
    /// The text of `tool.json`, where there is one.
    pub manifest: Option<&'a [u8]>,
    /// The program: the file itself, or the folder's one `tool.*` file.
    pub program: Option<&'a Path>,
    /// Is it a folder, in which its program starts?
    pub is_folder: bool,
}

/// A tool that may still have to be asked what it is.
struct UndescribedProgram {
    /// `tool.json` as it is written.
    written: Map<String, Value>,
    manifest: Manifest,
    workshop: Workshop,
    key: Key,
    home: Home,
    requirements: Option<Requirements>,
    place: Arc<Place>,
}

/// Where the tool comes from, as it will be told.
#[derive(Clone)]
pub struct Home {
    pub source: SourceKind,
    /// None for what lies in no folder.
    pub file: Option<PathBuf>,
    pub scope: Option<Scope>,
    pub module: String,
    pub access: Access,
    /// What it is called as long as nobody says otherwise: the entry's name without its suffix.
    pub stem: String,
    pub hash: String,
    /// What a grant is bound to, where that is not the tool's own hash.
    pub content: Option<String>,
    /// The packages that have to be installed for it, as a person reads them.
    pub packages: Option<String>,
}

impl Home {
    /// What was granted to its tools, whatever they are called: a file is asked before their names are known.
    pub fn granted(&self, place: &Place) -> Permit {
        let origin = self.file.as_deref().and_then(Path::to_str);
        let content = self.content.as_deref().unwrap_or_default();
        let grants = place.grants.borrow();
        let granted = origin.map(|origin| grants.for_origin(origin, content));
        granted.unwrap_or_default()
    }
}

/// What a folder's `tool.json` names outside of it is no other tool's to write.
fn note_named(entry: &Entry, folder: &Path, place: &Place) {
    let text = entry.manifest.unwrap_or_default();
    if entry.is_folder {
        let named = named::files(folder, text, &[], place.project.as_deref());
        place.code.note_real(named.iter().map(|part| &part.path));
    }
}

/// Reads an entry. Starts nothing.
pub fn read(entry: &Entry, origin: &Origin, place: &Arc<Place>) -> Description {
    let mut report = Report::new(origin.file, SourceKind::Executable);
    let mut home = home(entry, origin);
    let Some(map) = manifest::parse(entry.manifest, &mut report) else {
        return ready(Vec::new(), report);
    };
    let folder = origin.file.parent().unwrap_or(Path::new("/"));
    let base = Start {
        home: folder,
        // A tool made of a folder starts in that folder; a file alone starts in the project.
        start: if entry.is_folder {
            folder
        } else {
            place.directory()
        },
        program: entry.program,
    };
    let manifest = Manifest::read(&map, &base, place, &mut report);
    let Some(mut manifest) = manifest.filter(|_| !report.failed) else {
        return ready(Vec::new(), report);
    };
    if let Access::Untrusted { .. } = origin.access {
        let tool = Definition::unasked(&home, &map).tool(
            &manifest.shown,
            manifest.retries,
            None,
            place,
            &mut report,
        );
        return ready(tool.into_iter().collect(), report);
    }
    let versions = origin.versions(place);
    let requirements = match entry.is_folder {
        true => requirements::of(
            entry,
            folder,
            &mut home,
            &mut manifest,
            versions.is_some(),
            place,
            &mut report,
        ),
        false => None,
    };
    if report.failed {
        return ready(Vec::new(), report);
    }
    let key = Key(format!("{}-{}", entry.hash, manifest.fingerprint()).into());
    let mut blueprint = manifest.blueprint(&home.stem);
    blueprint.versions = versions;
    let own = match entry.is_folder {
        true => folder.to_path_buf(),
        false => origin.file.to_path_buf(),
    };
    note_named(entry, folder, place);
    let hidden = match origin.alone {
        true => alone::hidden(&own, entry.program, &blueprint.program, place),
        false => Vec::new(),
    };
    let environment = requirements.iter().map(|one| one.install.folder.clone());
    let own = [own].into_iter().chain(environment).collect();
    let workshop = Workshop::new(blueprint, key.clone(), own)
        .with_secrets(manifest.secrets.clone())
        .without(hidden);
    let program = UndescribedProgram {
        written: map,
        manifest,
        workshop,
        key,
        home,
        requirements,
        place: place.clone(),
    };
    program.described(report)
}

fn home(entry: &Entry, origin: &Origin) -> Home {
    let stem = stem(entry.name);
    Home {
        source: SourceKind::Executable,
        file: Some(origin.file.to_path_buf()),
        scope: Some(origin.scope),
        module: format!("{}.{stem}", origin.scope.as_str()),
        access: origin.access.clone(),
        stem: stem.to_owned(),
        hash: entry.hash.to_owned(),
        // The same before and after it was asked what it is: a grant may be what lets it say so.
        content: Some(entry.hash.to_owned()),
        packages: None,
    }
}

fn ready(tools: Vec<Arc<Tool>>, report: Report) -> Description {
    Description::Known(Loaded {
        tools,
        problems: report.finish(),
        ..Loaded::default()
    })
}

/// A name without its suffix.
fn stem(name: &str) -> &str {
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

impl Undescribed for UndescribedProgram {
    fn file(&self) -> Option<&Path> {
        self.home.file.as_deref()
    }

    fn describe(&self, afterwards: Afterwards) -> BoxFuture<'_, Loaded> {
        Box::pin(self.ask(afterwards))
    }

    /// What `tool.json` says. A file alone may turn out to be no tool at all.
    fn meanwhile(&self) -> Loaded {
        let tool = self.written.contains_key("name").then(|| self.as_written());
        let mut tools: Vec<Arc<Tool>> = tool.flatten().into_iter().collect();
        for tool in &mut tools {
            Arc::make_mut(tool).pending = Some(Pending::Description);
        }
        Loaded {
            tools,
            ..Loaded::default()
        }
    }

    fn put_off(&self, why: &Problem) {
        put_off::keep(self.place.descriptions.as_ref(), &self.key, why);
    }
}

impl UndescribedProgram {
    /// What is known of it, or that it has to be asked.
    fn described(self, report: Report) -> Description {
        if self.must_be_granted() {
            let tools = self.as_written().into_iter().collect();
            return ready(tools, report);
        }
        let known = match self.is_complete() {
            _ if !self.is_ready() => None,
            true => Some(Value::Object(Map::new())),
            false => self.place.descriptions.read(&self.key.0),
        };
        let problems = report.finish();
        match known {
            Some(hello) => Description::Known(self.finish(&hello).after(problems)),
            None => match self.put_off_so_far() {
                Some(waiting) => Description::Known(waiting.after(problems)),
                None => Description::Wanted {
                    tool: Arc::new(self),
                    problems,
                },
            },
        }
    }

    /// What there is to say as long as it is not asked again, because that failed and took long.
    fn put_off_so_far(&self) -> Option<Loaded> {
        let Place {
            descriptions,
            forgiven,
            installs,
            ..
        } = &*self.place;
        let file = self.home.file.as_deref();
        if file.is_some_and(|file| installs.is_wanted(file)) {
            return None;
        }
        let (memory, source) = (descriptions.as_ref(), SourceKind::Executable);
        let mut problem = put_off::read(memory, &self.key, forgiven, source)?;
        problem.file = self.home.file.clone();
        Some(Loaded {
            waits: true,
            ..Loaded::problems(vec![problem])
        })
    }

    /// The tool as far as `tool.json` and its file's name tell.
    fn as_written(&self) -> Option<Arc<Tool>> {
        let file = self.home.file.as_deref().unwrap_or(Path::new("/"));
        let mut report = Report::new(file, SourceKind::Executable);
        let Manifest { shown, retries, .. } = &self.manifest;
        let definition = Definition::unasked(&self.home, &self.written);
        definition.tool(shown, *retries, None, &self.place, &mut report)
    }

    /// Does `tool.json` say all that has to be known?
    fn is_complete(&self) -> bool {
        ["name", "description", "inputSchema"]
            .iter()
            .all(|key| self.written.get(*key).is_some_and(|value| !value.is_null()))
    }

    /// Asks the program what it is, and remembers what it says.
    async fn ask(&self, afterwards: Afterwards) -> Loaded {
        if let Some(loaded) = self.unready() {
            return loaded;
        }
        if self.is_complete() {
            return self.finish(&Value::Object(Map::new()));
        }
        // Held until its tools are made: a tool that was granted nothing goes on with the worker that answered.
        let permit = self.granted();
        let first = self.workshop.first_pool(&permit, &self.place);
        let recipe = self.workshop.unproved(&permit, &self.place);
        let hello = match afterwards {
            Afterwards::Stay => first.hello().await,
            Afterwards::End => self.place.workers.try_out(&recipe).await,
        };
        let hello = match hello {
            Ok(hello) => hello,
            Err(fault) => return self.refused(fault, &recipe),
        };
        let loaded = self.finish(&hello);
        if !loaded.tools.is_empty() {
            let (memory, key) = (self.place.descriptions.clone(), self.key.clone());
            let kept = tokio::task::spawn_blocking(move || memory.keep(&key.0, &hello));
            let _ = kept.await;
        }
        loaded
    }

    fn granted(&self) -> Permit {
        permits::located(&self.home.granted(&self.place), &self.place)
    }

    fn refused(&self, fault: Fault, recipe: &Recipe) -> Loaded {
        let kind = match &fault {
            Fault::Handshake { .. } => ErrorType::Timeout,
            Fault::Greeting(_) | Fault::Refused(_) | Fault::Rpc(_) => ErrorType::Validation,
            _ => ErrorType::Io,
        };
        let held = recipe.held(&self.place.launcher);
        let lacking = held.and_then(|held| {
            let told = fault.lacking(&self.home.stem, self.place.directory(), &held);
            // Who says nothing of use may hide what its shell says of it.
            told.or_else(|| Lacking::other_program(&recipe.starts_other()?, &held))
        });
        let tool = self.lacking(lacking.as_ref().is_some_and(Lacking::is_exec));
        let message = format!(
            "the program could not be asked what it is: {}",
            fault.message()
        );
        let named = tool
            .as_ref()
            .map_or(self.home.stem.as_str(), |tool| tool.name());
        let hint = match &lacking {
            Some(lacking) => lacking.hint(named),
            None => fault.into_call_error(named).hint.unwrap_or_default(),
        };
        let mut problem = Problem::error(SourceKind::Executable, kind, message).hint(hint);
        problem.file = self.home.file.clone();
        Loaded {
            tools: tool.into_iter().collect(),
            problems: vec![problem],
            ..Loaded::default()
        }
    }

    /// The tool as far as it is known, where it could not be asked for want of a grant. A shell script can't even say what
    /// it is without running other programs.
    fn lacking(&self, exec: bool) -> Option<Arc<Tool>> {
        let mut tool = self.as_written()?;
        let known = Arc::make_mut(&mut tool);
        if exec {
            let exec = Permit {
                exec: true,
                ..Permit::default()
            };
            known.asks = known.asks.join(&exec);
            permits::judge(known, &self.place);
        }
        matches!(tool.access, Access::NeedsGrant(_)).then_some(tool)
    }

    /// Makes the tools of what the program said, which `tool.json` overrules.
    fn finish(&self, hello: &Value) -> Loaded {
        let file = self.home.file.as_deref().unwrap_or(Path::new("/"));
        let mut report = Report::new(file, SourceKind::Executable);
        let definitions = Definition::all(&self.home, &self.written, hello, &mut report);
        let tools: Vec<Arc<Tool>> = definitions
            .iter()
            .filter_map(|one| {
                report.failed = false;
                let Manifest { shown, retries, .. } = &self.manifest;
                one.tool(
                    shown,
                    *retries,
                    Some(&self.workshop),
                    &self.place,
                    &mut report,
                )
            })
            .collect();
        for tool in tools.iter().filter(|tool| tool.access == Access::Open) {
            if let Some(missing) = tool.run.missing() {
                report.tool = Some(tool.name().to_owned());
                report.absent("command", &missing);
                continue;
            }
            let recipe = self.workshop.recipe(tool, &self.place);
            if let Some((what, hint)) = warned(&recipe, tool.name(), &self.place) {
                report.tool = Some(tool.name().to_owned());
                let problem = Problem::error(SourceKind::Executable, ErrorType::Validation, what);
                report.push(problem.hint(hint).warning());
            }
        }
        Loaded {
            tools,
            problems: report.finish(),
            ..Loaded::default()
        }
    }
}

/// Of a shell script that starts other programs and may not: what that is, and what to do about it.
pub fn warned(recipe: &Recipe, name: &str, place: &Place) -> Option<(String, Hint)> {
    let held = recipe.held(&place.launcher)?;
    let program = recipe.starts_other()?;
    let lacking = Lacking::other_program(&program, &held)?;
    let grant = CommandLine::new("toolcrib grant")
        .operand(name)
        .switch("--exec");
    let what = format!(
        "its script starts other programs, and the sandbox will keep it from {}",
        lacking.words()
    );
    Some((what, Hint::run(grant).before("if it should, run ")))
}
