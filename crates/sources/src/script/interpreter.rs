//! Programs that run scripts, and where they are found.

use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

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
        let stamp = (meta.dev(), meta.ino(), meta.size(), meta.mtime());
        let identity = format!("{}:{stamp:?}", program.display());
        Some(Interpreter { program, identity })
    }

    /// What a setting names: a path from the project on, or a name on the PATH.
    pub fn named(name: &str, setting: &str, place: &Place) -> Result<Interpreter, String> {
        let program = match name.contains('/') {
            true => Some(place.directory().join(name)),
            false => on_path(name, place),
        };
        program.and_then(Interpreter::at).ok_or_else(|| {
            format!("`{name}`, which the setting `{setting}` names, is no program that can be run")
        })
    }

    /// The first program of this name on the PATH.
    pub fn on_path(name: &str, place: &Place) -> Option<Interpreter> {
        on_path(name, place).and_then(Interpreter::at)
    }

    /// The program's own name.
    pub fn name(&self) -> &str {
        let name = self.program.file_name().and_then(OsStr::to_str);
        name.unwrap_or_default()
    }
}

/// The first program of this name on the PATH that can be run. What version managers put there to look up another one is
/// passed over, or looked through where that takes no process: a confined process runs one program, not two.
pub fn on_path(name: &str, place: &Place) -> Option<PathBuf> {
    let path = place.environment.get("PATH").unwrap_or(OsStr::new(""));
    let programs = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .filter(|program| is_runnable(program));
    let mut found = programs.filter_map(|program| match manager(&program) {
        None => Some(program),
        Some(root) => chosen(&root, name, place),
    });
    found.next()
}

/// The folder of the version manager whose stand-in this is.
fn manager(program: &Path) -> Option<PathBuf> {
    let folder = program.parent()?;
    let stands_in = folder.ends_with("shims") || folder.ends_with(".volta/bin");
    stands_in.then(|| folder.parent().map(Path::to_path_buf))?
}

/// The program that pyenv would take here: by its variable, the nearest `.python-version`, or its own setting.
fn chosen(root: &Path, name: &str, place: &Place) -> Option<PathBuf> {
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let named = place.variables.get("PYENV_VERSION").cloned();
    let mut above = place.directory().ancestors();
    let named = named
        .or_else(|| above.find_map(|folder| read(folder.join(".python-version"))))
        .or_else(|| read(root.join("version")))?;
    let versions = named.split([':', '\n']).map(str::trim);
    let mut programs = versions
        .filter(|version| !version.is_empty() && !version.contains('/'))
        .map(|version| root.join("versions").join(version).join("bin").join(name));
    programs.find(|program| is_runnable(program))
}

fn is_runnable(program: &Path) -> bool {
    std::fs::metadata(program)
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
