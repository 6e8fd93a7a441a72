//! The folder in which a confined process has its tmp and its home, where no mount gives it one. It goes with the process;
//! what a crib leaves that was killed goes when the next one makes its first.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const PREFIX: &str = "toolcrib-";
/// A younger folder may be somebody's who has not locked it yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder of one process's own.
pub(crate) struct Scratch {
    folder: TempDir,
    /// The kernel lets go of it when the crib is gone, however it goes: then nobody needs the folder.
    _lock: File,
}

impl Scratch {
    pub(crate) fn new(tmp: &Path) -> io::Result<Scratch> {
        let tmp = tmp.canonicalize()?;
        sweep_once(&tmp);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(tmp)?;
        let lock = File::open(folder.path())?;
        lock.try_lock()?;
        std::fs::create_dir(folder.path().join("home"))?;
        Ok(Scratch {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Sweeps a folder the first time that this process uses it.
fn sweep_once(tmp: &Path) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.get_or_insert_default().insert(tmp.to_path_buf()) {
        sweep(tmp, YOUNG);
    }
}

/// Removes what lies there of cribs that are gone.
fn sweep(tmp: &Path, young: Duration) {
    let now = SystemTime::now();
    let Ok(me) = std::fs::metadata("/proc/self").map(|meta| meta.uid()) else {
        return;
    };
    for entry in std::fs::read_dir(tmp).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // Of the entry itself: a link is nobody's scratch folder.
        let Ok(meta) = entry.metadata() else { continue };
        let age = meta
            .modified()
            .ok()
            .and_then(|at| now.duration_since(at).ok());
        let old = age.is_some_and(|age| age >= young);
        if !named || !meta.is_dir() || meta.uid() != me || !old {
            continue;
        }
        let free = File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
        if free && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::debug!(%error, folder = %entry.path().display(), "what a crib left can't be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let held = Scratch::new(dir.path()).unwrap();
        let left = dir.path().join("toolcrib-left");
        std::fs::create_dir_all(left.join("home")).unwrap();
        std::fs::write(left.join("home/file"), "x").unwrap();
        let other = dir.path().join("somebody-else");
        std::fs::create_dir(&other).unwrap();
        sweep(dir.path(), YOUNG);
        assert!(left.exists(), "it is young");
        sweep(dir.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(held.path().join("home").exists() && other.exists());
        let path = held.path().to_path_buf();
        drop(held);
        assert!(!path.exists());
    }
}
