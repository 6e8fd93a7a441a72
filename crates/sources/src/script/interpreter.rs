//! Programs that run scripts, and where they are found.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use toolcrib_sandbox::{behind, is_stand_in};

use crate::Place;

/// A program that runs scripts of some language.
#[derive(Debug, Clone)]
pub struct Interpreter {
    pub program: PathBuf,
    /// Differs when another program stands at the same place.
    pub identity: String,
}

impl Interpreter {
    /// The program at this place, if it can be run.
    pub fn at(program: PathBuf) -> Option<Interpreter> {
        let meta = std::fs::metadata(&program).ok()?;
        if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
            return None;
        }
        let modified = (meta.mtime(), meta.mtime_nsec());
        let changed = (meta.ctime(), meta.ctime_nsec());
        let stamp = (meta.dev(), meta.ino(), meta.size(), modified, changed);
        let identity = format!("{}:{stamp:?}", program.display());
        Some(Interpreter { program, identity })
    }

    /// What a setting names: a path from the project on, or a name on the PATH.
    pub fn named(
        name: &str,
        setting: &str,
        place: &Place,
        own: bool,
    ) -> Result<Interpreter, String> {
        let program = match name.contains('/') {
            true => Some(place.directory().join(name)),
            false => on_path(name, place, own),
        };
        program.and_then(Interpreter::at).ok_or_else(|| {
            format!(
                "`{name}`, which the setting `{setting}` names, is not a program that can be run"
            )
        })
    }

    /// The first program of this name on the PATH.
    pub fn on_path(name: &str, place: &Place, own: bool) -> Option<Interpreter> {
        on_path(name, place, own).and_then(Interpreter::at)
    }

    /// The program that may install packages in this one's stead: it is shown the settings of the user's package index. A
    /// program of the project is not; a link there to one of the user's own stands for that.
    pub fn installing(&self, place: &Place) -> Result<Interpreter, String> {
        let project = place
            .project
            .as_deref()
            .and_then(|one| one.canonicalize().ok());
        let is_inside = |path: &Path| {
            let mut projects = place
                .project
                .as_deref()
                .into_iter()
                .chain(project.as_deref());
            projects.any(|project| path.starts_with(project))
        };
        let real = self.program.canonicalize();
        let real = real.map_err(|error| format!("`{}`: {error}", self.program.display()))?;
        if is_inside(&real) {
            return Err(format!(
                "`{}` is in the project; an installer sees the settings of your package index, so the project's own Python may not be one",
                self.program.display()
            ));
        }
        let holder = self
            .program
            .parent()
            .and_then(|holder| holder.canonicalize().ok());
        let by_project = is_inside(&self.program) || holder.is_none_or(|holder| is_inside(&holder));
        let own = if by_project {
            Interpreter::at(real)
        } else {
            Some(self.clone())
        };
        own.ok_or_else(|| format!("`{}` can't be run", self.program.display()))
    }

    /// The program's own name.
    pub fn name(&self) -> &str {
        let name = self.program.file_name().and_then(OsStr::to_str);
        name.unwrap_or_default()
    }
}

/// Does a setting name a program from the project on?
pub fn leads_into_project(named: &str) -> bool {
    named.contains('/') && !named.starts_with('/')
}

/// The first program of this name on the PATH that can be run; where that is a version manager's stand-in, the program
/// behind it. The project's files choose between versions only of what runs its `own` tools.
pub fn on_path(name: &str, place: &Place, own: bool) -> Option<PathBuf> {
    let path = place.environment.get("PATH").unwrap_or(OsStr::new(""));
    let mut programs = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name));
    let found = programs.find(|program| is_runnable(program))?;
    match is_stand_in(&found) {
        true => {
            let project = place.project.as_deref().filter(|_| own);
            behind(&found, place.directory(), project, path)
        }
        false => Some(found),
    }
}

fn is_runnable(program: &Path) -> bool {
    std::fs::metadata(program)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
