//! The folder in which a confined process has its tmp and its home, where no mount gives it one. It goes with the process;
//! what a crib leaves that was killed goes when the next one serves, or makes its first.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::Environment;

const PREFIX: &str = "toolcrib-";
/// A younger folder may be somebody's who has not locked it yet.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder of one process's own.
pub(crate) struct Scratch {
    folder: PathBuf,
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
        let folder = folder.keep();
        Ok(Scratch {
            folder,
            _lock: lock,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// This folder and those beside it: a process that may write around them writes none of them. What is made later is
    /// kept too, for a folder that holds something kept is opened entry by entry.
    pub(crate) fn all_beside(&self) -> Vec<PathBuf> {
        let tmp = self.folder.parent().unwrap_or(&self.folder);
        let entries = std::fs::read_dir(tmp).into_iter().flatten().flatten();
        let named = entries.filter(|entry| is_named(&entry.file_name()));
        named
            .map(|entry| entry.path())
            .chain([self.folder.clone()])
            .collect()
    }
}

fn is_named(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(PREFIX)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = clear(&self.folder) {
            tracing::debug!(%error, folder = %self.folder.display(), "a private folder can't be removed");
        }
    }
}

/// Removes a folder with all that a tool has left in it, however deep: what lies in a folder is moved up before the folder
/// goes, so nothing here grows with the depth.
fn clear(folder: &Path) -> io::Result<()> {
    let mut count: u64 = 0;
    loop {
        let entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        if entries.is_empty() {
            return std::fs::remove_dir(folder);
        }
        for entry in entries {
            if !entry.file_type()?.is_dir() {
                std::fs::remove_file(entry.path())?;
                continue;
            }
            let inner = entry.path();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&inner, mode)?;
            for entry in std::fs::read_dir(&inner)?.collect::<Result<Vec<_>, _>>()? {
                if entry.file_type()?.is_dir() {
                    count += 1;
                    let moved = folder.join(format!(".{}-{count}", std::process::id()));
                    std::fs::rename(entry.path(), moved)?;
                } else {
                    std::fs::remove_file(entry.path())?;
                }
            }
            std::fs::remove_dir(inner)?;
        }
    }
}

/// Removes what cribs that were killed left behind, off the thread that asks.
pub fn sweep_leftovers(environment: &Environment) {
    if let Ok(tmp) = environment.tmp().canonicalize() {
        sweep_once(&tmp);
    }
}

/// Sweeps a folder the first time that this process uses it.
fn sweep_once(tmp: &Path) {
    static SWEPT: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let mut swept = SWEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if swept.get_or_insert_default().insert(tmp.to_path_buf()) {
        // Many files take a while; nobody waits for it.
        let tmp = tmp.to_path_buf();
        std::thread::spawn(move || {
            sweep(&tmp, YOUNG);
            // What was too young to tell is old enough then.
            std::thread::sleep(YOUNG);
            sweep(&tmp, YOUNG);
        });
    }
}

/// Removes what lies there of cribs that are gone.
fn sweep(tmp: &Path, young: Duration) {
    let now = SystemTime::now();
    let Ok(me) = std::fs::metadata("/proc/self").map(|meta| meta.uid()) else {
        return;
    };
    for entry in std::fs::read_dir(tmp).into_iter().flatten().flatten() {
        let named = is_named(&entry.file_name());
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
        if free && let Err(error) = clear(&entry.path()) {
            tracing::debug!(%error, folder = %entry.path().display(), "what a crib left can't be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deep_is_cleared_without_descending() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        std::fs::create_dir(&top).unwrap();
        // Deeper than a path can say, in pieces that are put into one another.
        let mut inner = dir.path().join("piece-0");
        std::fs::create_dir(&inner).unwrap();
        for piece in 1..20 {
            let outer = dir.path().join(format!("piece-{piece}"));
            let deep: PathBuf = std::iter::repeat_n("d", 200).collect();
            std::fs::create_dir_all(outer.join(&deep)).unwrap();
            std::fs::write(outer.join(&deep).join("file"), "x").unwrap();
            std::fs::rename(&inner, outer.join(&deep).join("next")).unwrap();
            inner = outer;
        }
        std::fs::rename(&inner, top.join("all")).unwrap();
        let closed = top.join("closed");
        std::fs::create_dir_all(closed.join("in")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o000);
        std::fs::set_permissions(&closed, mode).unwrap();
        clear(&top).unwrap();
        assert!(!top.exists());
    }

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
