//! What differs between the languages of scripts: how a text is read, what runs it, and what its host is told.
//!
//! [`LANGUAGES`] is THE TABLE. To add one: write a file here with a type that implements [`Language`], and add its line.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolcrib_core::{BoxFuture, ErrorType, SourceKind};
use toolcrib_hosts::Host;
use toolcrib_scan::{Declared, Finding, Position, SyntaxError};

#[cfg(test)]
use super::made_up;
use super::texts::Script;
use super::{python, typescript};
use crate::Place;
use crate::install::packages::Packages;
use crate::install::{Install, Mode};

/// THE TABLE of languages that have a host.
static LANGUAGES: &[&dyn Language] = &[
    &python::Python,
    &typescript::TypeScript,
    #[cfg(test)]
    &made_up::MadeUp,
];

/// The language of a file of this name.
pub fn of(name: &str) -> Option<&'static dyn Language> {
    let (stem, suffix) = name.rsplit_once('.')?;
    let mut languages = LANGUAGES.iter().copied();
    languages.find(|language| language.takes(stem, suffix))
}

/// Does some language keep files or folders of this name beside its scripts, which are no tools?
pub fn keeps(name: &str) -> bool {
    LANGUAGES.iter().any(|language| language.keeps(name))
}

/// A language that has a host.
pub trait Language: Debug + Sync {
    /// What its tools are told to come from.
    fn source(&self) -> SourceKind;

    /// What people call it.
    fn name(&self) -> &'static str;

    /// Are files of this stem and suffix scripts of it?
    fn takes(&self, stem: &str, suffix: &str) -> bool;

    /// Are files or folders of this name kept beside its scripts, and no tools?
    fn keeps(&self, _name: &str) -> bool {
        false
    }

    /// The program that runs its files, or what to do where this binary has none.
    fn host(&self) -> Result<&'static Host, &'static str>;

    /// What of the host's folder a program is given to run.
    fn host_program(&self) -> &'static str;

    /// The folder of a project that its files take packages from.
    fn packages_folder(&self) -> &'static str;

    /// The file beside a script that names the packages it needs.
    fn requirements_file(&self) -> &'static str;

    /// What a tool of this text is called.
    fn tool_name(&self, declared: &Declared, stem: &str) -> String;

    /// A word without which a text has no tool: then no process is needed to say so.
    fn word(&self) -> &'static str;

    /// What a file of it is that has no tool, and what to do about it.
    fn without_tools(&self) -> (&'static str, &'static str);

    /// Reads a text that lies at `file`; `root` is the folder of the script that it belongs to.
    fn outline(&self, text: &str, file: &Path, root: &Path) -> Result<Outline, SyntaxError>;

    /// The packages that have to be installed for a script, or why what it names can't be.
    fn packages(&self, _script: &Script) -> Result<Option<Packages>, CannotLaunch> {
        Ok(None)
    }

    /// How a script is run.
    fn launch(&self, wanted: &Launching) -> Result<Launch, CannotLaunch>;

    /// Whose copy of the host is used. An interpreter that compiles the host has one of its own; a host that nobody
    /// writes is shared.
    fn owner(&self, _launch: &Launch) -> Option<String> {
        None
    }

    /// Lets an interpreter prepare its copy of the host, once: a confined process can't keep what it has compiled.
    fn warm_up<'a>(
        &'a self,
        _interpreter: &'a Path,
        _copy: &'a Path,
        _place: &'a Place,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    /// What the host gets of the script's texts, and of the environment with its packages.
    fn load_request(&self, script: &Script, environment: Option<&Path>) -> Map<String, Value>;
}

/// What a text tells without being run.
#[derive(Default)]
pub struct Outline {
    pub tools: Vec<Declared>,
    pub findings: Vec<Finding>,
    /// What it imports that may lie beside it.
    pub imports: Vec<Wanted>,
    /// The packages that it names itself, one to a line, or why they can't be read.
    pub requirements: Option<Result<String, String>>,
    /// Where it uses what only one of its language's runtimes has.
    pub only_in: Option<OnlyIn>,
}

/// A place in a text that only one runtime can run.
#[derive(Debug, Clone, Copy)]
pub struct OnlyIn {
    /// The name of its program.
    pub runtime: &'static str,
    pub at: Position,
}

/// An import that may lie beside a script.
pub struct Wanted {
    /// As it is written, where the host has to be told which file it means.
    pub specifier: Option<String>,
    /// The files that it may mean: the first that is there.
    pub choices: Vec<PathBuf>,
}

/// A script that is about to be run, and what it may use.
pub struct Launching<'a> {
    pub script: &'a Script,
    /// The packages that have to be installed for it.
    pub packages: Option<&'a Packages>,
    pub mode: Mode,
    /// Is it trusted with all of its project, and so with the interpreter that the project has?
    pub own: bool,
    pub place: &'a Place,
}

/// How a script is run.
pub struct Launch {
    pub program: PathBuf,
    /// Differs when another program stands at the same place, or other packages.
    pub identity: String,
    /// What the program is given before the host.
    pub flags: Vec<OsString>,
    /// The packages it needs.
    pub environment: Option<Install>,
}

/// Why a script can't be run here.
pub struct CannotLaunch {
    pub kind: ErrorType,
    pub message: String,
    pub hint: &'static str,
}

impl CannotLaunch {
    pub fn new(kind: ErrorType, message: String, hint: &'static str) -> CannotLaunch {
        CannotLaunch {
            kind,
            message,
            hint,
        }
    }
}

/// Nobody may install its packages, because …
pub fn not_installing(why: &str, hint: &'static str) -> CannotLaunch {
    let message = format!("its packages can't be installed: {why}");
    CannotLaunch::new(ErrorType::Security, message, hint)
}

/// What is said where a list of packages holds something else.
pub const NAMES_ONLY: &str = "name packages of the index with their versions, such as `requests>=2.31`; an index of your own goes into your own settings";
