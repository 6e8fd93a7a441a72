//! Scripts: Python files whose functions are tools, TypeScript and JavaScript files whose exports are, run by the host of
//! their language.
//!
//! A script is read as text first: scanned, and gathered with the files beside it that it imports ([`texts`]). The host
//! is then given exactly these texts, so what was scanned is what runs, and a file that breaks or vanishes takes
//! nothing away from the version that serves. What a host says of its tools is remembered by the hash of all that it
//! depends on ([`undescribed`]).
//!
//! * [`language`]: what differs between languages, and THE TABLE of them. A new one is a file here and a line there.
//! * [`texts`]: a script with the files that it imports.
//! * [`python`], [`typescript`]: what their imports mean, and what runs them; [`interpreter`]: where that is found.
//! * [`undescribed`]: asks the host, and makes tools of its answer.
//! * [`leftovers`]: removes copies of hosts and environments that nobody uses.
//!
//! Why: `docs/design/0014-scripts.md`.

pub(crate) mod interpreter;
pub mod language;
mod leftovers;
#[cfg(test)]
mod made_up;
mod python;
mod texts;
mod typescript;
mod undescribed;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use toolcrib_core::{Access, ErrorType, Problem, Severity};
use toolcrib_hosts::Host;
use toolcrib_scan::Finding;

pub use language::Language;
pub use language::NAMES_ONLY;
use leftovers::InUse;
pub use texts::{Around, Script};
use undescribed::UndescribedScript;
pub use undescribed::{not_there_yet, pend};

use crate::Place;
use crate::description::Description;
use crate::executable::Home;
use crate::executable::definition::Definition;
use crate::fields::Report;
use crate::install::packages::Packages;
use crate::origin::{Loaded, Origin};
use crate::worker::Key;

/// What a finding of the scan means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scan {
    /// It is told.
    #[default]
    Warn,
    /// The file is not loaded.
    Strict,
}

/// How scripts are run.
#[derive(Debug, Clone, Default)]
pub struct ScriptSettings {
    /// Where hosts and environments lie.
    pub cache: PathBuf,
    /// The interpreter of Python files that the user has set.
    pub python: Option<String>,
    /// What runs TypeScript files, where the user has set it.
    pub javascript: Option<String>,
    /// The environment in which the crib was started.
    pub virtual_env: Option<PathBuf>,
    pub scan: Scan,
    /// Variables for the installers of packages alone: indexes, proxies, certificates.
    pub installing: Vec<(String, String)>,
}

/// Where each language's host lies, for each interpreter that has a copy of its own; or why it does not.
type Hosts = HashMap<(&'static str, Option<String>), Result<PathBuf, String>>;

/// What scripts need beyond what every tool does.
pub struct Scripts {
    pub settings: ScriptSettings,
    /// What long work is under way, for whoever waits.
    pub working: watch::Sender<Option<String>>,
    /// How often each script was described afresh, which makes its pools differ.
    rounds: Mutex<HashMap<Arc<str>, u64>>,
    /// Where each copy of a host lies that was looked at: a copy is compared with the binary's files once per process.
    hosts: Mutex<Hosts>,
    /// One copy of a host at a time is compiled.
    making: tokio::sync::Mutex<()>,
    pub(crate) in_use: InUse,
}

impl Scripts {
    pub fn new(settings: ScriptSettings) -> Scripts {
        Scripts {
            settings,
            working: watch::Sender::new(None),
            rounds: Mutex::default(),
            hosts: Mutex::default(),
            making: tokio::sync::Mutex::new(()),
            in_use: InUse::default(),
        }
    }

    /// Removes, in the background, what nobody has used for long.
    pub fn prune(&self) {
        let cache = self.settings.cache.clone();
        // A thread of its own: a crib that ends does not wait for it.
        std::thread::spawn(move || leftovers::prune(&cache));
    }

    /// The key of the workers that a script has now.
    fn current(&self, key: &Key) -> Key {
        let rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        match rounds.get(&key.0) {
            Some(round) => Key(format!("{}-{round}", key.0).into()),
            None => key.clone(),
        }
    }

    /// The key of workers that no script has had yet.
    fn renewed(&self, key: &Key) -> Key {
        let mut rounds = self.rounds.lock().unwrap_or_else(PoisonError::into_inner);
        *rounds.entry(key.0.clone()).or_default() += 1;
        drop(rounds);
        self.current(key)
    }

    /// The copy of a language's host that is this owner's, laid out on first use.
    fn host(&self, language: &dyn Language, owner: Option<String>) -> Result<PathBuf, MissingHost> {
        let host = language.host().map_err(|hint| {
            let why = format!(
                "{} tools are not in this build of Toolcrib",
                language.name()
            );
            MissingHost { why, hint }
        })?;
        self.laid_out(host, owner).map_err(|why| {
            let hint = "make room, or set XDG_CACHE_HOME to a folder that this user may write";
            MissingHost { why, hint }
        })
    }

    fn laid_out(&self, host: &'static Host, owner: Option<String>) -> Result<PathBuf, String> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host.name(), owner);
        // Who removes the cache while the crib runs gets a new one.
        if let Some(known) = hosts.get(&key).filter(|known| {
            let folder = known.as_deref();
            folder.is_ok_and(Path::is_dir)
        }) {
            let _ = known.as_deref().map(|folder| self.in_use.hold(folder));
            return known.clone();
        }
        let cache = &self.settings.cache;
        let place = host.folder(cache, key.1.as_deref());
        // Held before it is looked at, so that nobody removes it meanwhile.
        if cache.join("hosts").is_dir() {
            self.in_use.hold(&place);
        }
        let laid = host
            .lay_out(cache, key.1.as_deref())
            .map_err(|error| format!("`{}` can't be written: {error}", place.display()));
        let _ = laid.as_deref().map(|folder| self.in_use.hold(folder));
        hosts.insert(key, laid.clone());
        laid
    }
}

/// Why a host can't be run, and what to do.
struct MissingHost {
    why: String,
    hint: &'static str,
}

/// Where a script lies, and what is known of it before it is asked.
fn home(script: &Script, origin: &Origin, packages: Option<&Packages>) -> Home {
    let hash = script.hash();
    Home {
        source: script.language.source(),
        file: Some(origin.file.to_path_buf()),
        scope: Some(origin.scope),
        module: format!("{}.{}", origin.scope.as_str(), script.stem),
        access: origin.access.clone(),
        stem: script.stem.clone(),
        // The same before and after it was described: a grant may be what lets it be described.
        content: Some(hash.clone()),
        packages: packages.map(Packages::shown),
        hash,
    }
}

/// Reads a script. Starts nothing.
/// `start` is the folder in which its process starts, `project` whether all of its folder is trusted.
pub fn read(
    script: Script,
    origin: &Origin,
    place: &Arc<Place>,
    start: &Path,
    project: bool,
) -> Description {
    let packages = script.language.packages(&script);
    let packages = packages.map(|packages| packages.filter(|packages| !packages.is_empty()));
    let shown = packages.as_ref().ok().and_then(Option::as_ref);
    let home = home(&script, origin, shown);
    let mut problems = script.problems();
    if problems
        .iter()
        .any(|problem| problem.error_type == ErrorType::Syntax)
    {
        return broken(problems);
    }
    let scan = place.scripts.settings.scan;
    let found = findings(&script, scan, is_confined(&script, place));
    let refused = found.iter().any(|one| one.severity == Severity::Error);
    problems.extend(found);
    if refused {
        return broken(problems);
    }
    let packages = match packages {
        Ok(packages) => packages,
        Err(why) => {
            let problem = Problem::error(home.source, why.kind, why.message).hint(why.hint);
            problems.push(problem.file(&script.file));
            return broken(problems);
        }
    };
    let other = match script.has_tools() {
        true => None,
        false => script.something_else(),
    };
    if let Some((what, hint)) = other {
        let problem = Problem::error(home.source, ErrorType::Validation, what).hint(hint);
        problems.push(problem.file(&script.file).warning());
        return broken(problems);
    }
    if let Access::Untrusted { .. } = origin.access {
        return ready_with(unasked(&script, &home, place), problems);
    }
    if !script.may_have_tools() {
        return Description::Known(Loaded {
            without_tools: script.without_tools(),
            ..Loaded::problems(problems)
        });
    }
    match UndescribedScript::new(script, home, packages, place, start, project) {
        // Without the packages it can't say what it is, and it has no grant to install them.
        Ok(script) if !script.may_install() => ready_with(script.as_text_tells(), problems),
        Ok(script) => match script.remembered() {
            Some(known) if known.afresh => Description::Remembered {
                known,
                tool: Arc::new(script.renewed()),
                problems,
            },
            Some(known) => ready_with(known, problems),
            None => match script.put_off() {
                Some(waiting) => ready_with(waiting, problems),
                None => Description::Wanted {
                    tool: Arc::new(script),
                    problems,
                },
            },
        },
        Err(problem) => {
            problems.push(*problem);
            broken(problems)
        }
    }
}

/// The tools as far as the text tells: their names and descriptions.
fn unasked(script: &Script, home: &Home, place: &Arc<Place>) -> Loaded {
    let mut report = Report::new(&script.file, home.source);
    let shown = script.shown();
    let tools = script.declared().filter_map(|(name, description)| {
        report.failed = false;
        let definition = Definition::declared(home, &name, description);
        definition.tool(&shown, Default::default(), None, place, &mut report)
    });
    let tools = tools.collect();
    Loaded {
        tools,
        problems: report.finish(),
        ..Loaded::default()
    }
}

fn ready_with(loaded: Loaded, problems: Vec<Problem>) -> Description {
    Description::Known(loaded.after(problems))
}

fn broken(problems: Vec<Problem>) -> Description {
    Description::Known(Loaded::problems(problems))
}

/// Does the sandbox hold all that comes of this file?
fn is_confined(script: &Script, place: &Place) -> bool {
    let file = script.file.to_string_lossy();
    let meant = |tool: &str| tool == file || script.declared().any(|(name, _)| name == tool);
    place.walls.none.is_none() && !place.walls.off.keys().any(|tool| meant(tool))
}

/// What the scan found, as problems of the weight that settings give them. Where the sandbox decides what comes of it, what
/// many tools do is a note.
fn findings(script: &Script, scan: Scan, confined: bool) -> Vec<Problem> {
    let found = script.findings().map(|(file, finding)| {
        let problem = finding_problem(script, file, finding);
        match scan {
            Scan::Strict if finding.is_banned() => problem,
            _ if finding.is_odd() || !confined => problem.warning(),
            _ => Problem {
                error_type: ErrorType::Validation,
                ..problem.note()
            },
        }
    });
    found.collect()
}

fn finding_problem(script: &Script, file: &Path, finding: &Finding) -> Problem {
    let source = script.language.source();
    let message = format!("the scan found that it {}", finding.message);
    Problem::error(source, ErrorType::Security, message)
        .file(file)
        .at(finding.at.line as usize, finding.at.column as usize)
        .hint("look at this line before you let agents call the tool; `toolcrib help scan` explains it")
}
