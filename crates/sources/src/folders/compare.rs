//! The second step: which entries may have changed since the last look, and which are gone.

use std::collections::{BTreeMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolcrib_core::Access;

use super::Folder;
use super::list::Entry;
use crate::Place;
use crate::entry::FileKind;
use crate::executable::{bundle, named};

/// A stamp this young may hide a second change within one tick of the file system's clock.
const YOUNG: Duration = Duration::from_millis(50);

/// Which files a look must read whatever their stamps say.
#[derive(Debug, Clone, Default)]
pub(super) enum Reread {
    #[default]
    Nothing,
    Paths(HashSet<PathBuf>),
    /// Those that waited for something to be installed.
    Waiting,
    /// All, because nobody knows what has changed.
    Lost,
    /// All, because somebody wants it.
    All,
    /// All, and each is made anew although it reads as before: what it was granted is different.
    Anew,
}

impl Reread {
    fn covers(&self, path: &Path) -> bool {
        match self {
            Reread::Nothing | Reread::Waiting => false,
            // A change inside a folder is a change of the tool that the folder is.
            Reread::Paths(paths) => {
                paths.contains(path) || paths.iter().any(|dirty| dirty.starts_with(path))
            }
            Reread::Lost | Reread::All | Reread::Anew => true,
        }
    }

    /// Does somebody want to see what is there now, finished or not?
    pub fn is_ordered(&self) -> bool {
        matches!(self, Reread::All | Reread::Anew)
    }

    /// Must this entry be read, whatever its stamp says?
    fn wants(&self, path: &Path, known: Option<&FileState>) -> bool {
        let beside = known.map_or(&[][..], |known| &known.beside);
        let waits = known.is_some_and(|known| known.waits);
        self.covers(path)
            || (waits && matches!(self, Reread::Waiting))
            || beside.iter().any(|one| self.covers(one))
    }
}

/// Tells whether an entry may have changed without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    files: Vec<FileStamp>,
    /// False while a second change could hide behind the first.
    settled: bool,
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
    fn of<'a>(files: impl IntoIterator<Item = &'a Metadata>) -> Stamp {
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

    /// The stamp of a file and of what lies beside it that it is made of.
    pub fn of_file(file: &Path, beside: &[PathBuf]) -> Option<Stamp> {
        let meta = std::fs::metadata(file).ok()?;
        let others: Vec<Metadata> = beside
            .iter()
            .filter_map(|path| std::fs::metadata(path).ok())
            .collect();
        Some(Stamp::of(std::iter::once(&meta).chain(&others)))
    }
}

/// What is known of one file.
pub(super) struct FileState {
    pub stamp: Stamp,
    /// Hash of what it held, or of the words of the error that reading gave.
    pub hash: [u8; 32],
    /// Other files that it is made of.
    pub beside: Vec<PathBuf>,
    /// Must it be asked afresh at every reload?
    pub afresh: bool,
    /// Does it wait until something was installed?
    pub waits: bool,
}

/// What is different from the last look, as far as that can be told without reading.
#[derive(Default)]
pub(super) struct Compared {
    /// Entries that may have changed, with the stamps that they have now.
    pub changed: Vec<(Entry, Stamp)>,
    pub gone: Vec<String>,
    /// Folders in the folder that are tools or may become some, and those inside them.
    pub inner: Vec<PathBuf>,
}

pub(super) fn compare(
    folder: &Folder,
    entries: Vec<Entry>,
    known: &BTreeMap<String, FileState>,
    reread: &Reread,
    place: &Place,
) -> Compared {
    let mut compared = Compared::default();
    let mut present = HashSet::new();
    for entry in entries {
        let before = known.get(&entry.name);
        let Some(stamp) = stamp(folder, &entry, before, place, &mut compared.inner) else {
            continue;
        };
        present.insert(entry.name.clone());
        let untouched = before.is_some_and(|before| before.stamp == stamp && stamp.settled);
        if !untouched || reread.wants(&entry.path, before) {
            compared.changed.push((entry, stamp));
        }
    }
    let gone = known.keys().filter(|name| !present.contains(*name));
    compared.gone = gone.cloned().collect();
    compared
}

/// The stamp that an entry has now; none of a folder that is no tool. Folders to be watched go to `inner`.
fn stamp(
    folder: &Folder,
    entry: &Entry,
    before: Option<&FileState>,
    place: &Place,
    inner: &mut Vec<PathBuf>,
) -> Option<Stamp> {
    let path = &entry.path;
    match entry.kind {
        FileKind::Program => Some(Stamp::of([&entry.meta])),
        FileKind::Script(_) | FileKind::Plugin => {
            let beside = before.map_or(&[][..], |before| &before.beside);
            let stamp = Stamp::of_file(path, beside);
            Some(stamp.unwrap_or_else(|| Stamp::of([&entry.meta])))
        }
        FileKind::Bundle => {
            let leads_out = || std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
            if folder.access != Access::Open && leads_out() {
                return None;
            }
            let parts = bundle::parts(path);
            inner.extend(bundle::folders(path, &parts));
            if !bundle::is_tool(path, &parts) {
                return None;
            }
            let named = match folder.trusts(&entry.name) {
                true => named::of(path, &parts, place.project.as_deref()),
                false => Vec::new(),
            };
            inner.extend(bundle::folders(path, &named));
            Some(Stamp::of(parts.iter().chain(&named).map(|part| &part.meta)))
        }
    }
}
