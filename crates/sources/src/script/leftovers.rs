//! Copies of hosts and environments that nobody uses any more: a new interpreter, version or list of packages has a folder
//! of its own, and the old one would lie in the cache for ever.
//!
//! Beside each folder lies a file of the same name and `.use`. Whoever uses the folder touches it and holds a shared lock
//! on it until its process ends. What was not touched for [`KEPT`] and is locked by nobody goes.

use std::collections::HashMap;
use std::fs::{File, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How long a folder is kept that nobody uses.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3_600);
/// Where such folders lie in the cache.
const PLACES: [&str; 2] = ["hosts", "environments"];

/// The folders that this process uses, with the locks that say so.
#[derive(Debug, Default)]
pub struct InUse(Mutex<HashMap<PathBuf, File>>);

impl InUse {
    /// From here on until this process ends, the folder is used. Where that can't be noted, it may go after a month, and
    /// is made anew.
    pub fn hold(&self, folder: &Path) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held.get(folder).filter(|file| is_there(file, folder));
        let noted = match known {
            Some(file) => touch(file).map(|()| None),
            None => lock(folder).map(Some),
        };
        match noted {
            Ok(Some(file)) => drop(held.insert(folder.to_path_buf(), file)),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(%error, folder = %folder.display(), "its use is not noted");
            }
        }
    }
}

fn beside(folder: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}.{end}", folder.display()))
}

fn touch(file: &File) -> io::Result<()> {
    file.set_times(FileTimes::new().set_modified(SystemTime::now()))
}

fn open(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false);
    options.open(beside(folder, "use"))
}

fn lock(folder: &Path) -> io::Result<File> {
    loop {
        let file = open(folder)?;
        // Who removes a folder holds it for a moment.
        file.lock_shared()?;
        touch(&file)?;
        if is_there(&file, folder) {
            return Ok(file);
        }
    }
}

/// Is this still the file that lies beside the folder?
fn is_there(file: &File, folder: &Path) -> bool {
    let there = std::fs::metadata(beside(folder, "use"));
    match (file.metadata(), there) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

/// Removes what nobody used for long.
pub fn prune(cache: &Path) {
    for place in PLACES {
        let entries = std::fs::read_dir(cache.join(place));
        for entry in entries.into_iter().flatten().flatten() {
            let folder = entry.path();
            // Of an install that failed nothing else may be left.
            if folder.extension().is_some_and(|end| end == "failed")
                && entry
                    .metadata()
                    .is_ok_and(|meta| is_old(&meta).unwrap_or(false))
            {
                let _ = std::fs::remove_file(&folder);
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir())
                && let Err(error) = prune_one(&folder)
            {
                tracing::debug!(%error, folder = %folder.display(), "an old folder can't be removed");
            }
        }
    }
}

fn is_old(meta: &std::fs::Metadata) -> io::Result<bool> {
    let age = meta.modified()?.elapsed().unwrap_or_default();
    Ok(age > KEPT)
}

fn prune_one(folder: &Path) -> io::Result<()> {
    let old = is_old;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.ends_with(".draft") || name.ends_with(".gone") {
        // Somebody ended in the middle of making or removing it.
        return match old(&folder.metadata()?)? {
            true => std::fs::remove_dir_all(folder),
            false => Ok(()),
        };
    }
    let file = match beside(folder, "use").metadata() {
        Ok(meta) if old(&meta)? => open(folder)?,
        Ok(_) => return Ok(()),
        // Its time begins now.
        Err(_) => return open(folder).map(drop),
    };
    // Whoever uses it holds the lock, and whoever just began to has touched it.
    if file.try_lock().is_err() || !old(&file.metadata()?)? || !is_there(&file, folder) {
        return Ok(());
    }
    let gone = beside(folder, &format!("{}.gone", std::process::id()));
    for end in ["complete", "lock", "failed"] {
        let _ = std::fs::remove_file(beside(folder, end));
    }
    std::fs::rename(folder, &gone)?;
    std::fs::remove_file(beside(folder, "use"))?;
    drop(file);
    std::fs::remove_dir_all(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(path: &Path, days: u64) {
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 3_600);
        File::open(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn what_nobody_used_for_a_month_goes_and_nothing_else() {
        let cache = tempfile::tempdir().unwrap();
        let at = |path: &str| cache.path().join(path);
        for name in ["old", "young", "used", "unknown", "half.draft"] {
            for place in PLACES {
                std::fs::create_dir_all(at(place).join(name).join("inside")).unwrap();
            }
        }
        std::fs::write(at("environments/old.complete"), "").unwrap();
        std::fs::write(at("environments/old.lock"), "").unwrap();
        let in_use = InUse::default();
        for place in PLACES.map(&at) {
            in_use.hold(&place.join("used"));
            for name in ["old", "young"] {
                open(&place.join(name)).unwrap();
            }
            for (name, days) in [("old.use", 31), ("young.use", 29), ("used.use", 99)] {
                age(&place.join(name), days);
            }
            age(&place.join("unknown"), 99);
            age(&place.join("half.draft"), 99);
        }
        prune(cache.path());
        for place in PLACES.map(&at) {
            let entries = std::fs::read_dir(place).unwrap().flatten();
            let mut left: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            left.sort();
            let wanted = [
                "unknown",
                "unknown.use",
                "used",
                "used.use",
                "young",
                "young.use",
            ];
            assert_eq!(left, wanted);
        }
        // To be used again is to be young again.
        in_use.hold(&at("hosts/used"));
        let meta = at("hosts/used.use").metadata().unwrap();
        assert!(meta.modified().unwrap().elapsed().unwrap_or_default() < KEPT);
        drop(in_use);
        age(&at("hosts/used.use"), 99);
        prune(cache.path());
        assert!(!at("hosts/used").exists());
    }
}
