//! What differs between the languages of scripts: how a text is read, what runs it, and what its host is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::{ErrorType, Scope, SourceKind};
use toolcrib_hosts::Host;
use toolcrib_scan::{Declared, Finding, Position, SyntaxError};

use super::texts::Script;
use super::{python, typescript};
use crate::Place;
use crate::install::packages::Packages;
use crate::install::{Install, Mode};

/// A language that has a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Language {
    Python,
    TypeScript,
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
    /// Where it uses what only Bun has.
    pub bun: Option<Position>,
}

/// An import that may lie beside a script.
pub struct Wanted {
    /// As it is written, where the host has to be told which file it means.
    pub specifier: Option<String>,
    /// The files that it may mean: the first that is there.
    pub choices: Vec<PathBuf>,
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

/// The packages that a script needs.
pub struct Needed {
    pub packages: Packages,
    /// As `package.json` has them.
    dependencies: Map<String, Value>,
}

/// Why a script can't be run here.
pub struct CannotLaunch {
    pub kind: ErrorType,
    pub message: String,
    pub hint: &'static str,
}

impl CannotLaunch {
    fn new(kind: ErrorType, message: String, hint: &'static str) -> CannotLaunch {
        CannotLaunch {
            kind,
            message,
            hint,
        }
    }
}

impl Language {
    /// The language of a file of this name.
    pub fn of(name: &str) -> Option<Language> {
        match name.rsplit_once('.')? {
            (_, "py") => Some(Language::Python),
            // Declarations hold nothing that runs.
            (stem, "ts" | "mts" | "cts") if stem.ends_with(".d") => None,
            (_, "ts" | "mts" | "cts" | "js" | "mjs" | "cjs") => Some(Language::TypeScript),
            _ => None,
        }
    }

    pub fn source(self) -> SourceKind {
        match self {
            Language::Python => SourceKind::Python,
            Language::TypeScript => SourceKind::TypeScript,
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "Python",
            Language::TypeScript => "TypeScript or JavaScript",
        }
    }

    /// The program that runs its files, where this binary has it.
    pub fn host(self) -> Option<&'static Host> {
        match self {
            Language::Python => Some(&toolcrib_hosts::PYTHON),
            Language::TypeScript => toolcrib_hosts::TYPESCRIPT.as_ref(),
        }
    }

    /// The folder of a project that its files take packages from.
    pub fn packages_folder(self) -> &'static str {
        match self {
            Language::Python => ".venv",
            Language::TypeScript => "node_modules",
        }
    }

    /// The file beside a script that names the packages it needs.
    pub fn requirements_file(self) -> &'static str {
        match self {
            Language::Python => "requirements.txt",
            Language::TypeScript => "package.json",
        }
    }

    /// What a tool of this text is called.
    pub fn tool_name(self, declared: &Declared, stem: &str) -> String {
        match (self, declared.name.as_str()) {
            (Language::Python, name) => name.to_owned(),
            (Language::TypeScript, "default") => stem.to_owned(),
            (Language::TypeScript, name) => format!("{stem}_{name}"),
        }
    }

    /// Can there be a tool in this text at all? Where not, no process is needed to say so.
    pub fn may_have_tools(self, text: &str) -> bool {
        let word: &[u8] = match self {
            Language::Python => b"tool",
            Language::TypeScript => b"export",
        };
        let mut words = text.as_bytes().windows(word.len());
        words.any(|one| one.eq_ignore_ascii_case(word))
    }

    /// Reads a text that lies at `file`; `root` is the folder of the script that it belongs to.
    pub fn outline(self, text: &str, file: &Path, root: &Path) -> Result<Outline, SyntaxError> {
        match self {
            Language::Python => python::outline(text, file, root),
            Language::TypeScript => typescript::outline(text, file),
        }
    }

    /// The packages that have to be installed for a script, or why what it names can't be.
    pub fn needed(self, script: &Script) -> Result<Option<Needed>, CannotLaunch> {
        let needed = match self {
            Language::Python => python_packages(script),
            Language::TypeScript => typescript_packages(script),
        };
        Ok(needed?.filter(|needed| !needed.packages.is_empty()))
    }

    /// How this script is run; `trusted` says whether all of its folder is.
    pub fn way(
        self,
        script: &Script,
        needed: Option<&Needed>,
        mode: Mode,
        place: &Place,
        scope: Scope,
        trusted: bool,
    ) -> Result<Launch, CannotLaunch> {
        match self {
            Language::Python => python_way(needed, mode, place, scope, trusted),
            Language::TypeScript => {
                let own = trusted && scope == Scope::Local;
                typescript_way(script, needed, mode, own, place)
            }
        }
    }

    /// Whose copy of the host is used. An interpreter that compiles the host has one of its own; a host that nobody
    /// writes is shared.
    pub fn owner(self, way: &Launch) -> Option<String> {
        let digest = Sha256::digest(&way.identity);
        (self == Language::Python).then(|| crate::folder::hex(&digest[..8]))
    }

    /// What of the host's folder a program is given to run.
    pub fn host_program(self) -> &'static str {
        match self {
            Language::Python => "toolcrib_host",
            Language::TypeScript => "host.mjs",
        }
    }

    /// Lets an interpreter prepare its copy of the host, once: a confined process can't keep what it has compiled.
    pub async fn warm_up(self, interpreter: &Path, copy: &Path, place: &Place) {
        if self == Language::Python {
            python::compile(interpreter, copy, place).await;
        }
    }

    /// What the host is told of the script's texts.
    pub fn load_request(self, script: &Script) -> Map<String, Value> {
        match self {
            Language::Python => python::load_request(script),
            Language::TypeScript => typescript::load_request(script),
        }
    }
}

const NAMES_ONLY: &str = "name packages of the index with their versions, such as `requests>=2.31`; an index of your own goes into your own settings";

fn python_packages(script: &Script) -> Result<Option<Needed>, CannotLaunch> {
    let packages = script.packages().transpose().map_err(|why| {
        let hint = "write `# /// script`, `# dependencies = [\"name\"]`, `# ///`, each on a line of its own";
        let message = format!("the packages it names can't be read: {why}");
        CannotLaunch::new(ErrorType::Validation, message, hint)
    })?;
    let read = packages.map(Packages::python).transpose();
    let packages = read.map_err(|why| {
        let message = format!("the packages it names can't be installed: {why}");
        CannotLaunch::new(ErrorType::Validation, message, NAMES_ONLY)
    })?;
    Ok(packages.map(|packages| Needed {
        packages,
        dependencies: Map::new(),
    }))
}

fn typescript_packages(script: &Script) -> Result<Option<Needed>, CannotLaunch> {
    // Packages that somebody has installed beside the file are taken as they are.
    let own = script.file.with_file_name("node_modules");
    let Some(text) = script.requirements.as_deref().filter(|_| !own.is_dir()) else {
        return Ok(None);
    };
    let wrong = |why: String, hint: &'static str| {
        let message = format!("the package.json beside it can't be taken: {why}");
        CannotLaunch::new(ErrorType::Validation, message, hint)
    };
    let dependencies =
        typescript::dependencies(text).map_err(|why| wrong(why, "fix it and save"))?;
    let packages = Packages::node(&dependencies).map_err(|why| wrong(why, NAMES_ONLY))?;
    Ok(Some(Needed {
        packages,
        dependencies,
    }))
}

fn python_way(
    needed: Option<&Needed>,
    mode: Mode,
    place: &Place,
    scope: Scope,
    trusted: bool,
) -> Result<Launch, CannotLaunch> {
    let base = python::interpreter(place, scope, trusted).map_err(|why| {
        let hint = "install Python 3.9 or later, or name one with `python = \"…\"` in config.toml";
        CannotLaunch::new(
            ErrorType::Io,
            format!("no Python was found to run it: {why}"),
            hint,
        )
    })?;
    let environment = needed.map(|needed| Install::python(&needed.packages, &base, mode, place));
    let (program, identity) = match &environment {
        Some(environment) => (
            environment.folder.join("bin/python"),
            environment.identity().to_owned(),
        ),
        None => (base.program, base.identity),
    };
    Ok(Launch {
        program,
        identity,
        flags: vec!["-X".into(), "utf8".into()],
        environment,
    })
}

fn typescript_way(
    script: &Script,
    needed: Option<&Needed>,
    mode: Mode,
    own: bool,
    place: &Place,
) -> Result<Launch, CannotLaunch> {
    let runtime = typescript::runtime(place, script.bun(), own).map_err(|why| {
        let message = format!("nothing was found to run it: {}", why.message);
        CannotLaunch::new(ErrorType::Import, message, why.hint)
    })?;
    let environment = needed.map(|needed| {
        let Needed {
            packages,
            dependencies,
        } = needed;
        Install::node(packages, dependencies, &runtime.interpreter, mode, place)
    });
    let mut identity = runtime.interpreter.identity.clone();
    if let Some(environment) = &environment {
        identity.push_str(environment.identity());
    }
    Ok(Launch {
        program: runtime.interpreter.program,
        identity,
        flags: runtime.flags,
        environment,
    })
}
