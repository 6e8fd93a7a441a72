//! The packages that a program's folder names: they are installed once, and the program runs with the interpreter of that
//! environment.

use std::io::Read;
use std::path::{Path, PathBuf};

use toolcrib_core::{ErrorType, Pending, Problem, SourceKind};

use super::manifest::Manifest;
use super::{Entry, Home, UndescribedProgram};
use crate::fields::Report;
use crate::install::packages::Packages;
use crate::install::{Install, Mode, Progress};
use crate::script::interpreter::Interpreter;
use crate::script::{NAMES_ONLY, not_there_yet, pend};
use crate::{Loaded, Place};

/// What names packages for a program in Python.
const PYTHON: &str = "requirements.txt";
/// What names packages for a program in JavaScript, and where they are.
const NODE: (&str, &str) = ("package.json", "node_modules");
/// The longest list that is read.
const MAX: u64 = 64 * 1_024;

/// Packages that a program needs, and the interpreter that has them.
pub struct Requirements {
    pub install: Install,
    /// Were they granted?
    pub granted: bool,
}

/// The packages that the folder names for its program, and the program changed so that it has them. What can't be taken is
/// told, and so is what only a person can install.
pub fn of(
    entry: &Entry,
    folder: &Path,
    home: &mut Home,
    manifest: &mut Manifest,
    versions: bool,
    place: &Place,
    report: &mut Report,
) -> Option<Requirements> {
    let (program, script) = interpreter_of(manifest, entry.program)?;
    if program == "node" {
        warn_of_node(folder, report);
    }
    let name = program.strip_prefix("python")?;
    name.chars()
        .all(|c| c.is_ascii_digit() || c == '.')
        .then_some(())?;
    let text = read(&folder.join(PYTHON))?;
    let packages = match Packages::python(&text) {
        Ok(packages) if packages.is_empty() => return None,
        Ok(packages) => packages,
        Err(why) => {
            report.invalid(PYTHON, &format!("can't be taken: {why}"), NAMES_ONLY);
            return None;
        }
    };
    home.packages = Some(packages.shown());
    let granted = home.granted(place);
    let mode = match granted.install && granted.exec {
        true => Mode::Built,
        false => Mode::Unpacked,
    };
    let found = Interpreter::on_path(&program, place, versions)
        .ok_or_else(|| format!("there is no `{program}` on the PATH"));
    let base = match found.and_then(|found| found.installing(place)) {
        Ok(base) => base,
        Err(why) => {
            let what = format!("can't be installed: {why}");
            report.invalid(PYTHON, &what, "install Python 3.9 or later");
            return None;
        }
    };
    let install = Install::python(&packages, &base, mode, place);
    manifest.program = install.folder.join("bin/python").into_os_string();
    if let Some(script) = script {
        manifest.args.insert(0, script.into_os_string());
    }
    Some(Requirements {
        install,
        granted: granted.install,
    })
}

/// The name of the interpreter that runs the program, and the script, where that is what is executed.
fn interpreter_of(
    manifest: &Manifest,
    program: Option<&Path>,
) -> Option<(String, Option<PathBuf>)> {
    let written = Path::new(&manifest.program);
    if program != Some(written) {
        let bare = written.components().count() == 1;
        return bare.then(|| Some((written.to_str()?.to_owned(), None)))?;
    }
    let text = read(written)?;
    let line = text.lines().next()?.strip_prefix("#!")?;
    let mut words = line
        .split_whitespace()
        .filter(|word| !word.starts_with('-'));
    let first = Path::new(words.next()?).file_name()?.to_str()?;
    let name = match first {
        "env" => words.next()?,
        name => name,
    };
    Some((name.to_owned(), Some(written.to_path_buf())))
}

/// The beginning of a text file.
fn read(path: &Path) -> Option<String> {
    let file = std::fs::metadata(path).ok().filter(|meta| meta.is_file());
    file?;
    let mut text = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A program of one's own finds packages only beside it, and there a person has to put them.
fn warn_of_node(folder: &Path, report: &mut Report) {
    let (list, installed) = NODE;
    let text = read(&folder.join(list)).unwrap_or_default();
    let named = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
    let dependencies = named.get("dependencies").and_then(|list| list.as_object());
    let wants = dependencies.is_some_and(|list| !list.is_empty());
    if wants && !folder.join(installed).exists() {
        report.warn(
            list,
            "names packages that are not installed beside the program",
            "run `npm install` in the tool's folder, or make it a TypeScript tool, whose packages Toolcrib installs",
        );
    }
}

impl UndescribedProgram {
    /// Were its packages not granted, so that nothing can be asked?
    pub(super) fn must_be_granted(&self) -> bool {
        self.requirements.as_ref().is_some_and(|one| !one.granted)
    }

    /// Are the packages there that it needs? From then on they are in use.
    pub(super) fn is_ready(&self) -> bool {
        let Some(Requirements { install, .. }) = &self.requirements else {
            return true;
        };
        if install.folder.is_dir() {
            self.place.scripts.in_use.hold(&install.folder);
        }
        install.is_ready()
    }

    /// What there is to say as long as its packages are not there. Begins to install them; never waits.
    pub(super) fn unready(&self) -> Option<Loaded> {
        let Requirements { install, .. } = self.requirements.as_ref()?;
        let file = self.home.file.as_deref()?;
        let progress = self
            .place
            .installs
            .want(install, file, &self.home.hash, &self.place);
        let problem = match progress {
            Progress::Ready => {
                self.place.scripts.in_use.hold(&install.folder);
                return None;
            }
            Progress::Failed(why) => {
                Problem::error(SourceKind::Executable, ErrorType::Import, why.message)
                    .hint(why.hint)
            }
            progress => {
                let (why, hint) = not_there_yet(&progress, install.packages());
                Problem::error(SourceKind::Executable, ErrorType::Import, why)
                    .hint(hint)
                    .warning()
            }
        };
        let mut loaded = Loaded {
            tools: self.as_written().into_iter().collect(),
            waits: true,
            ..Loaded::default()
        };
        let why = problem.message.clone();
        let hint = "`toolcrib errors` says what to do; `toolcrib reload` tries again";
        pend(&mut loaded, Pending::Preparation, why, hint);
        loaded.problems.push(problem.file(file));
        Some(loaded)
    }
}
