//! An entry of a tools folder: what kind of tool its name and bits promise, and whether it may have changed.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::script::{Language, Script, language};

/// A stamp this young may hide a second change within one tick of the file system's clock.
const YOUNG: Duration = Duration::from_millis(50);

/// The kinds of entries that can hold tools.
#[derive(Debug, Clone, Copy)]
pub enum FileKind {
    Plugin,
    /// A file of a language that has a host, run bit or not.
    Script(&'static dyn Language),
    /// A file with the run bit.
    Program,
    /// A folder that is one tool.
    Bundle,
}

pub fn is_passed_over(name: &str) -> bool {
    name.starts_with(['_', '.']) || language::keeps(name)
}

/// Which kind of tool an entry promises, if any.
pub fn kind_of(name: &str, meta: &Metadata) -> Option<FileKind> {
    if meta.is_dir() {
        return Some(FileKind::Bundle);
    }
    match name.rsplit_once('.') {
        Some((_, "json")) => Some(FileKind::Plugin),
        _ if let Some(language) = language::of(name) => Some(FileKind::Script(language)),
        _ if meta.is_file() && meta.mode() & 0o111 != 0 => Some(FileKind::Program),
        _ => None,
    }
}

/// Tells whether an entry may have changed without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    files: Vec<FileStamp>,
    /// False while a second change could hide behind the first.
    pub settled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    inode: (u64, u64),
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub fn of<'a>(files: impl IntoIterator<Item = &'a Metadata>) -> Stamp {
        let now = SystemTime::now();
        let mut settled = true;
        let stamp = |meta: &Metadata| {
            let modified = meta.modified().ok();
            let age = modified.and_then(|at| now.duration_since(at).ok());
            settled &= age.is_some_and(|age| age > YOUNG);
            FileStamp {
                inode: (meta.dev(), meta.ino()),
                mode: meta.mode(),
                size: meta.size(),
                modified: (meta.mtime(), meta.mtime_nsec()),
                changed: (meta.ctime(), meta.ctime_nsec()),
            }
        };
        let files = files.into_iter().map(stamp).collect();
        Stamp { files, settled }
    }
}

/// What an entry holds.
pub enum Content {
    Text(Vec<u8>),
    Script(Box<Script>),
    Program {
        hash: [u8; 32],
    },
    Bundle {
        hash: [u8; 32],
        manifest: Option<Vec<u8>>,
        program: Option<PathBuf>,
    },
    /// Nothing that is a tool.
    Idle,
}

impl Content {
    pub fn hash(&self) -> [u8; 32] {
        match self {
            Content::Text(text) => Sha256::digest(text).into(),
            Content::Script(script) => Sha256::digest(script.hash()).into(),
            Content::Program { hash } | Content::Bundle { hash, .. } => *hash,
            Content::Idle => [0; 32],
        }
    }
}
