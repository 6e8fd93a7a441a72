//! What differs between the languages of scripts: how a text is read, what runs it, and what its host is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::{ErrorType, Scope, SourceKind};
use toolcrib_hosts::Host;
use toolcrib_scan::{Declared, Finding, Position, SyntaxError};

use super::requirements::Environment;
use super::texts::Script;
use super::{python, typescript};
use crate::Place;

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
pub struct Way {
    pub program: PathBuf,
    /// Differs when another program stands at the same place, or other packages.
    pub identity: String,
    /// What the program is given before the host.
    pub flags: Vec<OsString>,
    /// The packages it needs.
    pub environment: Option<Environment>,
}

/// Why a script can't be run here.
pub struct NoWay {
    pub kind: ErrorType,
    pub message: String,
    pub hint: &'static str,
}

impl NoWay {
    fn new(kind: ErrorType, message: String, hint: &'static str) -> NoWay {
        NoWay {
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

    /// How this script is run; `trusted` says whether all of its folder is.
    pub fn way(
        self,
        script: &Script,
        place: &Place,
        scope: Scope,
        trusted: bool,
    ) -> Result<Way, NoWay> {
        match self {
            Language::Python => python_way(script, place, scope, trusted),
            Language::TypeScript => typescript_way(script, place),
        }
    }

    /// Whose copy of the host is used. An interpreter that compiles the host has one of its own; a host that nobody
    /// writes is shared.
    pub fn owner(self, way: &Way) -> Option<String> {
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
    pub fn told(self, script: &Script) -> Map<String, Value> {
        match self {
            Language::Python => python::told(script),
            Language::TypeScript => typescript::told(script),
        }
    }
}

fn python_way(script: &Script, place: &Place, scope: Scope, trusted: bool) -> Result<Way, NoWay> {
    let base = python::interpreter(place, scope, trusted).map_err(|why| {
        let hint = "install Python 3.9 or later, or name one with `python = \"…\"` in config.toml";
        NoWay::new(
            ErrorType::Io,
            format!("no Python was found to run it: {why}"),
            hint,
        )
    })?;
    let packages = script.packages().transpose().map_err(|why| {
        let hint = "write `# /// script`, `# dependencies = [\"name\"]`, `# ///`, each on a line of its own";
        let message = format!("the packages it names can't be read: {why}");
        NoWay::new(ErrorType::Validation, message, hint)
    })?;
    let environment = packages
        .filter(|text| !text.trim().is_empty())
        .map(|text| Environment::python(text, &base, place));
    let (program, identity) = match &environment {
        Some(environment) => (
            environment.folder.join("bin/python"),
            environment.identity(),
        ),
        None => (base.program, base.identity),
    };
    Ok(Way {
        program,
        identity,
        flags: vec!["-X".into(), "utf8".into()],
        environment,
    })
}

fn typescript_way(script: &Script, place: &Place) -> Result<Way, NoWay> {
    let runtime = typescript::runtime(place, script.bun()).map_err(|why| {
        let message = format!("nothing was found to run it: {}", why.message);
        NoWay::new(ErrorType::Import, message, why.hint)
    })?;
    let packages = match script.requirements.as_deref().map(typescript::packages) {
        None => None,
        Some(Ok(packages)) => packages,
        Some(Err(why)) => {
            let message = format!("the package.json beside it can't be read: {why}");
            return Err(NoWay::new(
                ErrorType::Validation,
                message,
                "mend it and save",
            ));
        }
    };
    // Packages that somebody has installed beside the file are taken as they are.
    let own = script.file.with_file_name("node_modules");
    let environment = packages
        .filter(|_| !own.is_dir())
        .map(|packages| Environment::node(&packages, &runtime.interpreter, place));
    let mut identity = runtime.interpreter.identity.clone();
    if let Some(environment) = &environment {
        identity.push_str(&environment.identity());
    }
    Ok(Way {
        program: runtime.interpreter.program,
        identity,
        flags: runtime.flags,
        environment,
    })
}
