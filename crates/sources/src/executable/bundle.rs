//! A folder that is one tool: which files it holds, and the hash of them all.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::MANIFEST;
use crate::script::Language;

/// How many files of a folder are looked at, how many entries of any kind, and how deep.
const MAX_FILES: usize = 2_000;
const MAX_SEEN: usize = 10_000;
const MAX_DEPTH: usize = 6;
/// The content of larger files is not read; their size and time stand for it.
const MAX_HASHED: u64 = 8 * 1_024 * 1_024;

/// One file of a tool's folder.
pub struct Part {
    pub path: PathBuf,
    pub meta: Metadata,
}

/// The files of a folder, sorted. What tools and package managers leave lying there is passed over, links are not
/// followed.
pub fn parts(folder: &Path) -> Vec<Part> {
    let mut parts = Vec::new();
    walk(folder, 0, &mut parts, &mut 0);
    parts.sort_by(|a, b| a.path.cmp(&b.path));
    parts
}

fn walk(folder: &Path, depth: usize, parts: &mut Vec<Part>, seen: &mut usize) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        *seen += 1;
        if parts.len() >= MAX_FILES || *seen > MAX_SEEN {
            return;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || ["node_modules", "__pycache__", "target"].contains(&&*name) {
            continue;
        }
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() && depth < MAX_DEPTH {
            walk(&entry.path(), depth + 1, parts, seen);
        } else if meta.is_file() {
            parts.push(Part {
                path: entry.path(),
                meta,
            });
        }
    }
}

/// The folder and those in it that hold parts.
pub fn folders(folder: &Path, parts: &[Part]) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_path_buf()];
    let parents = parts.iter().filter_map(|part| part.path.parent());
    folders.extend(parents.map(Path::to_path_buf));
    folders.sort();
    folders.dedup();
    folders
}

/// Is this folder a tool?
pub fn is_tool(folder: &Path, parts: &[Part]) -> bool {
    parts.iter().any(|part| {
        part.path.parent() == Some(folder)
            && part
                .path
                .file_name()
                .is_some_and(|name| name == MANIFEST || is_program_name(&name.to_string_lossy()))
    })
}

fn is_program_name(name: &str) -> bool {
    name == "tool" || (name.starts_with("tool.") && name != MANIFEST)
}

/// The folder's one `tool.*` file that can be run; none where there are several.
pub fn program<'a>(folder: &Path, parts: &'a [Part]) -> Option<&'a Path> {
    let mut found = parts.iter().filter(|part| {
        let name = part.path.file_name().unwrap_or_default().to_string_lossy();
        part.path.parent() == Some(folder)
            && is_program_name(&name)
            && part.meta.permissions().mode() & 0o111 != 0
    });
    let one = found.next()?;
    found.next().is_none().then_some(one.path.as_path())
}

/// The folder's one `tool.*` file that is a script, run bit or not, where no `tool.json` says otherwise.
pub fn script<'a>(folder: &Path, parts: &'a [Part]) -> Option<(Language, &'a Path)> {
    let mut found = parts.iter().filter(|part| {
        let name = part.path.file_name().unwrap_or_default().to_string_lossy();
        part.path.parent() == Some(folder) && (name == MANIFEST || is_program_name(&name))
    });
    let one = found.next()?.path.as_path();
    let language = Language::of(one.file_name()?.to_str()?)?;
    found.next().is_none().then_some((language, one))
}

/// The hash of all parts: their names and what they hold; with another text in place of `tool.json`, if one is given.
pub fn hash(folder: &Path, parts: &[Part], manifest: Option<&[u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        let name = part.path.strip_prefix(folder).unwrap_or(&part.path);
        hash.update(name.as_os_str().as_encoded_bytes());
        hash.update([0]);
        hash.update((part.meta.permissions().mode() & 0o111).to_le_bytes());
        let held = match manifest.filter(|_| name == Path::new(MANIFEST)) {
            Some(text) => Ok(Sha256::digest(text).into()),
            None => content(&part.path, &part.meta),
        };
        match held {
            Ok(digest) => hash.update(digest),
            Err(error) => hash.update(error.to_string()),
        }
    }
    hash.finalize().into()
}

/// The hash of one file's content.
pub fn content(path: &Path, meta: &Metadata) -> io::Result<[u8; 32]> {
    use std::os::unix::fs::MetadataExt;
    let mut hash = Sha256::new();
    if meta.len() > MAX_HASHED {
        let stamp = (meta.len(), meta.mtime(), meta.mtime_nsec(), meta.ino());
        hash.update(format!("{stamp:?}"));
        return Ok(hash.finalize().into());
    }
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let mut file = file.take(MAX_HASHED + 1);
    let mut chunk = vec![0; 64 * 1_024];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(&chunk[..read]),
        }
    }
}

/// Does the file begin as a program does: with `#!` or as ELF?
pub fn is_program(head: &[u8]) -> bool {
    head.starts_with(b"#!") || head.starts_with(b"\x7fELF")
}
