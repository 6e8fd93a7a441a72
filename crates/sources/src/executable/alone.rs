//! What a program does not see that is trusted by itself: what an interpreter would load code from around it.
//!
//! The project is there to be read, but nobody trusts it. A file beside the program, a package in a folder above it, or
//! settings of the runtime would run in the program's place, with what was granted to it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::Place;

/// Folders in which interpreters look for packages.
const PACKAGES: [&str; 2] = ["node_modules", ".venv"];
/// What runtimes read of the folder they start in and of those above a file: it preloads code, maps names to other
/// files, sets variables.
const SETTINGS: [&str; 11] = [
    "bunfig.toml",
    "tsconfig.json",
    "jsconfig.json",
    "deno.json",
    "deno.jsonc",
    ".env",
    ".env.local",
    ".env.development",
    ".env.development.local",
    ".env.production",
    ".env.production.local",
];
/// The runtimes that do.
const READERS: [&str; 2] = ["bun", "deno"];

/// What is hidden from the entry `own`, a file or a folder, whose program is started as `command`.
pub fn hidden(own: &Path, program: Option<&Path>, command: &OsStr, place: &Place) -> Vec<PathBuf> {
    let Some(neighbours) = own.parent() else {
        return Vec::new();
    };
    // What is its own is named itself, and stays.
    let mut hidden = vec![neighbours.to_path_buf()];
    let named = program.is_some_and(|file| is_reader(&head(file)));
    let above = neighbours.parent().unwrap_or(neighbours);
    hidden.extend(in_folders(
        above,
        named || is_reader(&command.to_string_lossy()),
        place,
    ));
    hidden.sort();
    hidden.dedup();
    hidden
}

/// What is hidden from a command of a plugin that is trusted by itself and starts in this folder of the project.
pub fn around<'a>(
    folder: &Path,
    mut command: impl Iterator<Item = &'a str>,
    place: &Place,
) -> Vec<PathBuf> {
    in_folders(folder, command.any(is_reader), place)
}

fn is_reader(text: &str) -> bool {
    READERS.iter().any(|reader| text.contains(reader))
}

/// Packages, and settings where the runtime reads them, in this folder and those above it in the project.
fn in_folders(folder: &Path, settings: bool, place: &Place) -> Vec<PathBuf> {
    let project = place.project.as_deref();
    let above = folder.ancestors();
    let above = above.take_while(|folder| project.is_some_and(|root| folder.starts_with(root)));
    let mut hidden = Vec::new();
    for folder in above.chain(project) {
        hidden.extend(PACKAGES.map(|name| folder.join(name)));
        if settings {
            hidden.extend(SETTINGS.map(|name| folder.join(name)));
        }
    }
    hidden
}

/// The first line, which may name an interpreter.
fn head(file: &Path) -> String {
    let open = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(file);
    let mut start = Vec::new();
    if let Ok(file) = open {
        let _ = file.take(256).read_to_end(&mut start);
    }
    let start = String::from_utf8_lossy(&start);
    let line = start.lines().next().unwrap_or_default();
    line.strip_prefix("#!").unwrap_or_default().to_owned()
}
