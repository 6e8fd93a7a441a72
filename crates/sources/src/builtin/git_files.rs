//! What git would open and wait for: a pipe in a repository never gives an end, nor does a device.
//!
//! Git is looked after by a deadline as every process is; this says at once what is wrong, and where.

use std::collections::VecDeque;
use std::fs::FileType;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use toolcrib_core::CallError;

/// Entries that are looked at; a repository with more is one that git itself packs soon.
const LOOKED_AT: usize = 20_000;
/// What git opens in the work tree before it has compared anything.
const IN_WORK_TREE: [&str; 4] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap"];

/// Refuses a repository that holds something to wait for. `folders` are the project and its repository's root.
pub async fn check(folders: Vec<PathBuf>) -> Result<(), CallError> {
    let look = tokio::task::spawn_blocking(move || folders.iter().find_map(|folder| find(folder)));
    match look.await {
        Ok(Some(odd)) => Err(CallError::unavailable(format!(
            "`{}` is a pipe or a device, and git would wait for it",
            odd.display()
        ))
        .hint("remove it, or restore the repository from its origin")),
        // Nothing was found, or the crib is ending.
        _ => Ok(()),
    }
}

/// The first thing in a work tree's repository that is no file.
fn find(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let named = IN_WORK_TREE.iter().map(|name| folder.join(name));
    // What lies highest comes first: that is what git opens whatever it is asked.
    let mut waiting: VecDeque<PathBuf> = named.chain([git]).collect();
    let mut looked_at = 0;
    while let Some(path) = waiting.pop_front() {
        // Links are followed as git follows them; the count bounds one that leads back.
        let Ok(meta) = path.metadata() else { continue };
        if would_wait(&path, meta.file_type()) {
            return Some(path);
        }
        if !meta.is_dir() || looked_at >= LOOKED_AT {
            continue;
        }
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        for entry in entries.take(LOOKED_AT - looked_at) {
            looked_at += 1;
            if entry.file_type().is_ok_and(|kind| !kind.is_file()) {
                waiting.push_back(entry.path());
            }
        }
    }
    None
}

/// Sockets are refused by the kernel at once, and a daemon of git's own has one there.
fn would_wait(path: &Path, kind: FileType) -> bool {
    let device = kind.is_char_device() || kind.is_block_device();
    let empty = || {
        path.canonicalize()
            .is_ok_and(|real| real == Path::new("/dev/null"))
    };
    kind.is_fifo() || (device && !empty())
}
