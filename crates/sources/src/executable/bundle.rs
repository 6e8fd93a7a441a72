//! A folder that is one tool: which files it holds, and the hash of them all.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Deref;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::MANIFEST;
use crate::script::{Language, language};

/// How many files a folder may hold, how many entries of any kind, how deep, and how much in all. What is beyond that
/// would be part of the tool, and of nobody's yes to it; so a folder with more is none.
const MAX_FILES: usize = 2_000;
const MAX_SEEN: usize = 10_000;
const MAX_DEPTH: usize = 16;
const MAX_BYTES: u64 = 64 * MB;
/// The content of larger files is not read; their size, times and place stand for it.
const MAX_HASHED: u64 = 8 * MB;
const MB: u64 = 1_024 * 1_024;

/// How it is said that a folder holds too much.
pub const TOO_MUCH: &str = "its folder has more than";
/// What tools and package managers leave lying, beside what begins with a dot.
const PASSED_OVER: [&str; 3] = ["node_modules", "__pycache__", "target"];

/// One file of a tool's folder.
pub struct Part {
    pub path: PathBuf,
    pub meta: Metadata,
}

/// The files of a folder, sorted.
pub struct Parts {
    files: Vec<Part>,
    /// What there is more than, where these are not all.
    excess: Option<String>,
}

impl Deref for Parts {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        &self.files
    }
}

/// The files of a folder. What tools and package managers leave lying there is passed over, links are not followed.
pub fn parts(folder: &Path) -> Parts {
    let mut files = Vec::new();
    let excess = walk(folder, &mut files).err();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Parts { files, excess }
}

/// What lies highest comes first, so that a tool is known as one however much lies below.
fn walk(folder: &Path, files: &mut Vec<Part>) -> Result<(), String> {
    let mut waiting = VecDeque::from([(folder.to_path_buf(), 0)]);
    let mut seen = 0;
    while let Some((inside, depth)) = waiting.pop_front() {
        for entry in std::fs::read_dir(inside).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_SEEN {
                return Err(format!("{MAX_SEEN} entries"));
            }
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || PASSED_OVER.contains(&&*name) {
                continue;
            }
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            if meta.is_dir() {
                if depth >= MAX_DEPTH {
                    return Err(format!("{MAX_DEPTH} folders in each other"));
                }
                waiting.push_back((path, depth + 1));
            } else if meta.is_file() {
                if files.len() >= MAX_FILES {
                    return Err(format!("{MAX_FILES} files"));
                }
                files.push(Part { path, meta });
            }
        }
    }
    Ok(())
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
pub fn script<'a>(folder: &Path, parts: &'a [Part]) -> Option<(&'static dyn Language, &'a Path)> {
    let mut found = parts.iter().filter(|part| {
        let name = part.path.file_name().unwrap_or_default().to_string_lossy();
        part.path.parent() == Some(folder) && (name == MANIFEST || is_program_name(&name))
    });
    let one = found.next()?.path.as_path();
    let language = language::of(one.file_name()?.to_str()?)?;
    found.next().is_none().then_some((language, one))
}

/// The hash of all parts: their names and what they hold; with another text in place of `tool.json`, if one is given.
/// None of a folder that holds too much to look at all of it.
pub fn hash(folder: &Path, parts: &Parts, manifest: Option<&[u8]>) -> Result<[u8; 32], String> {
    let lengths = parts.iter().map(|part| part.meta.len());
    let bytes: u64 = lengths.filter(|bytes| *bytes <= MAX_HASHED).sum();
    let too_large = || format!("{} MB in small files", MAX_BYTES / MB);
    let too_large = (bytes > MAX_BYTES).then(too_large);
    if let Some(excess) = parts.excess.clone().or(too_large) {
        return Err(format!(
            "{TOO_MUCH} {excess}, too much to tell when it changes"
        ));
    }
    let mut hash = Sha256::new();
    for part in parts.iter() {
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
    Ok(hash.finalize().into())
}

/// The hash of one file's content.
pub fn content(path: &Path, meta: &Metadata) -> io::Result<[u8; 32]> {
    use std::os::unix::fs::MetadataExt;
    let mut hash = Sha256::new();
    if meta.len() > MAX_HASHED {
        let modified = (meta.mtime(), meta.mtime_nsec());
        let changed = (meta.ctime(), meta.ctime_nsec());
        let stamp = (meta.len(), modified, changed, meta.ino());
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
