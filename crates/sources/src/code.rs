//! What tools load code from, and what decides about tools: no tool's process writes there, however much it was granted.
//!
//! Folders of tools, files that tools are made of, the environments of their interpreters. A tool that could write there
//! would run in another's place, with that one's grants and keys. It is looked up at every start, so a tool that came
//! later is kept from those that start after it.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolcrib_core::{CallError, permit};
use toolcrib_sandbox::{Confinement, GUARDED};

/// What no tool's process writes.
#[derive(Debug, Default)]
pub struct Code {
    /// The crib's own settings, records and caches, which nobody can grant, and which are hidden in what tools read.
    never: Vec<PathBuf>,
    /// The file that trust and grants are kept in, wherever the user keeps it.
    records: Vec<PathBuf>,
    /// Folders of tools, whether they are there or not.
    folders: Mutex<Vec<PathBuf>>,
    /// What single tools are made of.
    files: Mutex<BTreeSet<PathBuf>>,
    /// Where tools would take code from if it were there.
    held: Mutex<BTreeSet<PathBuf>>,
}

impl Code {
    /// `never` is what nobody can grant, `records` are files that no writable folder may hold.
    pub fn new(never: Vec<PathBuf>, records: Vec<PathBuf>) -> Code {
        Code {
            never,
            records,
            ..Code::default()
        }
    }

    /// These are the folders of tools from now on.
    pub fn set_folders(&self, folders: impl IntoIterator<Item = PathBuf>) {
        *lock(&self.folders) = folders.into_iter().collect();
    }

    /// A tool would take code from here: nobody else makes it.
    pub fn hold(&self, folder: PathBuf) {
        lock(&self.held).insert(folder);
    }

    /// A tool is made of these.
    pub fn note<'a>(&self, files: impl IntoIterator<Item = &'a Path>) {
        let mut known = lock(&self.files);
        for file in files
            .into_iter()
            .filter(|file| !known.contains(*file))
            .collect::<Vec<_>>()
        {
            known.insert(file.to_path_buf());
        }
    }

    /// The same for files that a text names, wherever the way there leads.
    pub fn note_real(&self, files: impl IntoIterator<Item = impl AsRef<Path>>) {
        let real = |file: &dyn AsRef<Path>| file.as_ref().canonicalize().ok();
        let files: Vec<PathBuf> = files.into_iter().filter_map(|file| real(&file)).collect();
        self.note(files.iter().map(PathBuf::as_path));
    }

    /// Refuses a file of the crib's own that was opened for a tool which reads `base`: keys, records, what the calls of
    /// others gave. Only a folder that lies in there and is named itself is read.
    pub fn check_read(&self, base: &Path, file: &File, path: &str) -> Result<(), CallError> {
        // By what was opened, not by the path that led there.
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let base = real(base);
        let mut own = self.never.iter().map(|own| real(own));
        let hidden = |own: &Path, opened: &Path| {
            opened.starts_with(own) && (base == own || !base.starts_with(own))
        };
        match opened {
            Ok(opened) if own.any(|own| hidden(&own, &opened)) => Err(CallError::denied(format!(
                "`{path}` is one of Toolcrib's own files, which tools do not read"
            ))
            .hint("keep Toolcrib's folders outside of the project (XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME)")),
            _ => Ok(()),
        }
    }

    /// What is the crib's own, by where it really is: nobody reads it in a folder that it lies in.
    pub fn hidden(&self) -> Vec<PathBuf> {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        self.never.iter().map(real).collect()
    }

    /// The same walls, which keep all of this unwritten, and what is the crib's own unread.
    pub fn guarded(&self, confinement: Confinement) -> Confinement {
        match confinement {
            Confinement::Walled(mut policy) => {
                policy.hide.extend(self.never.iter().cloned());
                policy
                    .hide
                    .extend(self.records.iter().flat_map(|file| with_its_journal(file)));
                policy.never.extend(self.never.iter().cloned());
                // Who writes nothing needs no more.
                if !policy.write.is_empty() {
                    policy.protect.extend(lock(&self.folders).iter().cloned());
                    policy.protect.extend(lock(&self.held).iter().cloned());
                    policy.keep.extend(lock(&self.files).iter().cloned());
                    policy.records.extend(self.records.iter().cloned());
                }
                Confinement::Walled(policy)
            }
            other => other,
        }
    }
}

/// A database's file with those that it keeps beside it.
fn with_its_journal(file: &Path) -> impl Iterator<Item = PathBuf> {
    ["", "-wal", "-shm", "-journal", "-lock"]
        .into_iter()
        .map(|end| {
            let mut name = file.as_os_str().to_owned();
            name.push(end);
            PathBuf::from(name)
        })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// A grant by text and the walls agree on what must be named itself.
const _: () = {
    assert!(permit::GUARDED.len() == GUARDED.len());
    let mut index = 0;
    while index < GUARDED.len() {
        let (a, b) = (permit::GUARDED[index].as_bytes(), GUARDED[index].as_bytes());
        assert!(a.len() == b.len());
        let mut at = 0;
        while at < a.len() {
            assert!(a[at] == b[at]);
            at += 1;
        }
        index += 1;
    }
};
