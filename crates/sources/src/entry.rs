//! An entry of a tools folder: what kind of tool its name and bits promise.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use crate::script::{Language, language};

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
    // Editors leave the version before a save beside it, with a tilde.
    name.starts_with(['_', '.']) || name.ends_with('~') || language::keeps(name)
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
