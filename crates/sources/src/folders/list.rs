//! The first step: which entries of a tools folder can be tools.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use toolcrib_core::Access;

use super::Folder;
use crate::Place;
use crate::entry::{FileKind, is_passed_over, kind_of};

/// A folder with more entries than this is not a tools folder.
const MAX_ENTRIES: usize = 10_000;

/// An entry of a tools folder that can be a tool.
#[derive(Clone)]
pub(super) struct Entry {
    pub name: String,
    pub path: PathBuf,
    pub kind: FileKind,
    pub meta: Metadata,
}

/// The names in a folder, in order, but for those that are never tools; or why it can't be walked.
pub(super) fn names(folder: &Folder, place: &Place) -> Result<Vec<String>, String> {
    let unreadable = |error: io::Error| format!("the tools folder can't be read: {error}");
    let entries = match std::fs::read_dir(&folder.path) {
        Ok(entries) => entries,
        // A missing folder is fine and may appear later.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    check_walkable(folder, place)?;
    let mut names = Vec::new();
    for (count, entry) in entries.enumerate() {
        if count >= MAX_ENTRIES {
            return Err(format!(
                "the tools folder has more than {MAX_ENTRIES} entries"
            ));
        }
        let Ok(name) = entry.map_err(unreadable)?.file_name().into_string() else {
            continue;
        };
        if !is_passed_over(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A home directory is never walked, and an untrusted project can't lead out of itself by a link.
pub(super) fn check_walkable(folder: &Folder, place: &Place) -> Result<(), String> {
    let real = folder
        .path
        .canonicalize()
        .map_err(|error| format!("the tools folder can't be read: {error}"))?;
    let home = place
        .environment
        .get("HOME")
        .and_then(|home| Path::new(home).canonicalize().ok());
    if real == Path::new("/") || home.is_some_and(|home| real == home) {
        return Err("the tools folder is a home directory or the root".to_owned());
    }
    match &folder.access {
        Access::Untrusted { project, .. } if !real.starts_with(project) => {
            Err("the tools folder of an untrusted project leads out of it by a link".to_owned())
        }
        _ => Ok(()),
    }
}

/// The entries of these names, and the names of links that lead nowhere any more.
pub(super) fn entries(folder: &Folder, names: Vec<String>) -> (Vec<Entry>, Vec<String>) {
    let (mut entries, mut dangling) = (Vec::new(), Vec::new());
    for name in names {
        let path = folder.path.join(&name);
        let meta = match std::fs::metadata(&path) {
            Ok(meta) => meta,
            Err(error) => {
                // A link that leads nowhere is a problem; a file that just went is not.
                let Ok(link) = std::fs::symlink_metadata(&path) else {
                    continue;
                };
                if error.kind() == io::ErrorKind::NotFound {
                    dangling.push(name.clone());
                }
                link
            }
        };
        let kind = kind_of(&name, &meta);
        let kind = kind.filter(|kind| folder.programs || !matches!(kind, FileKind::Program));
        if let Some(kind) = kind {
            entries.push(Entry {
                name,
                path,
                kind,
                meta,
            });
        }
    }
    (entries, dangling)
}
