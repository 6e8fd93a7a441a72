//! One tools folder: which of its files are tools, what changed since the last look, and what stands in for a
//! broken file.
//!
//! A look is always a whole one (list the folder, compare each file's stamp), because events lie. Only what changed
//! is read again, and only what reads differently is loaded again.
//!
//! Why: `docs/design/0007-last-good-version.md`.

mod last_good;
mod reading;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, ErrorType, Problem, Rank, Scope, SourceKey, SourceKind, Update};

use crate::Place;
use crate::entry::{FileKind, Stamp, is_passed_over, kind_of};
use crate::executable::{bundle, named};
use crate::origin::Loaded;
use crate::undescribed::{Afterwards, Read, UndescribedTool};
use last_good::{may_stand_in, stale, stand_in};
use reading::stamp_of;

/// A folder with more entries than this is not a tools folder.
const MAX_ENTRIES: usize = 10_000;
/// How many folders inside a tools folder are watched.
const MAX_INNER: usize = 512;

/// The hash of an entry whose program could not be asked what it is.
const UNANSWERED: [u8; 32] = [0xff; 32];

/// A tools folder and what holds for its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    pub scope: Scope,
    /// The place in the list of folders: lower wins a name.
    pub rank: u16,
    /// [`Access::Open`], or [`Access::Untrusted`] with the project it belongs to.
    pub access: Access,
    /// Names of entries of this folder that are trusted singly, although `access` is [`Access::Untrusted`].
    pub trusted: Vec<String>,
    /// Whether programs in it are tools.
    pub programs: bool,
}

impl Folder {
    /// What holds for one entry: it may be trusted where its folder is not.
    fn access_of(&self, name: &str) -> Access {
        match self.trusted.iter().any(|one| one == name) {
            true => Access::Open,
            false => self.access.clone(),
        }
    }

    /// Is this entry trusted by itself, and nothing that lies around it?
    fn is_alone(&self, name: &str) -> bool {
        self.access != Access::Open && self.access_of(name) == Access::Open
    }

    fn rank(&self) -> Rank {
        Rank::Folder(self.rank)
    }
}

/// What is known of one file.
struct FileState {
    stamp: Stamp,
    /// Hash of the text, or of the words of the error that reading gave.
    hash: [u8; 32],
    /// Other files that it is made of.
    beside: Vec<PathBuf>,
    /// Must it be asked afresh at every reload?
    afresh: bool,
    /// Does it wait until something was installed?
    waits: bool,
}

/// A file that may have changed.
#[derive(Clone)]
struct Candidate {
    name: String,
    path: PathBuf,
    kind: FileKind,
    stamp: Stamp,
}

/// A file that was read; `news` unless it reads as it did before.
struct EntryReading {
    name: String,
    known: FileState,
    news: Option<News>,
}

struct News {
    update: Found,
    /// The text, where it is worth standing in for a later one.
    keep: Option<Vec<u8>>,
}

/// What reading an entry gave.
enum Found {
    Update(Update),
    /// What is remembered of it stands until it has answered afresh.
    Again(Update, Box<UndescribedTool>),
    /// A program has to be asked what it is; until then what the catalog has of it stands.
    Pending {
        draft: Box<UndescribedTool>,
        problems: Vec<Problem>,
        /// Is it a last good version that stands in for a broken one?
        stale: bool,
    },
}

/// A program to be asked what it is.
pub struct PendingEntry {
    /// The text that is worth standing in for a later one, should the program answer well.
    keep: Option<Vec<u8>>,
    draft: Box<UndescribedTool>,
    /// What is wrong with it so far.
    problems: Vec<Problem>,
    stale: bool,
    folder: Folder,
    file: Candidate,
    hash: [u8; 32],
}

/// What asking a program gave.
pub struct Answered {
    asked: PendingEntry,
    loaded: Loaded,
    /// It could not be asked, or is broken.
    failed: bool,
}

impl PendingEntry {
    /// Which entry it is.
    pub fn entry(&self) -> &Path {
        &self.file.path
    }

    /// Asks the program. Where it is broken, its last good version stands in for it.
    pub async fn ask(
        self,
        place: &Arc<Place>,
        last_good: &Arc<dyn LastGood>,
        afterwards: Afterwards,
    ) -> Answered {
        let mut loaded = self.draft.describe(afterwards).await;
        let failed = loaded.tools.is_empty() && loaded.is_broken();
        if !self.stale && may_stand_in(&loaded) {
            let (folder, file) = (self.folder.clone(), self.file.clone());
            let (place, last_good) = (place.clone(), last_good.clone());
            let once = move || folder.once_good(&file, &place, last_good.as_ref());
            let once = tokio::task::spawn_blocking(once).await.ok().flatten();
            let good = match once {
                Some(Read::Ready(good) | Read::Again(good, _)) => good.tools,
                Some(Read::Pending(draft, _)) => draft.describe(afterwards).await.tools,
                None => Vec::new(),
            };
            stand_in(&mut loaded, good);
        }
        Answered {
            asked: self,
            loaded,
            failed,
        }
    }
}

impl Answered {
    /// What the answer makes.
    pub fn seen(self) -> Seen {
        let Answered {
            asked, mut loaded, ..
        } = self;
        let good = !loaded.tools.is_empty() && !loaded.is_broken() && !loaded.waits && !asked.stale;
        loaded.problems.splice(0..0, asked.problems);
        if asked.stale {
            loaded.tools = stale(loaded.tools);
        }
        let keep = asked.keep.filter(|_| good);
        let rank = asked.folder.rank();
        let memory = LastGoodChanges {
            folder: asked.folder.path,
            keep: keep
                .map(|text| (asked.file.name, text))
                .into_iter()
                .collect(),
            forget: Vec::new(),
        };
        let update = Update {
            key: key(&asked.file.path),
            rank,
            file: asked.draft.file().map(Path::to_path_buf),
            tools: loaded.tools,
            problems: loaded.problems,
        };
        Seen {
            updates: vec![update],
            asked: Vec::new(),
            memory,
        }
    }

    /// Is this still what the folder holds? Who could not be asked is asked again when the file is read again.
    pub fn is_current(&self, shelves: &mut [WatchedFolder]) -> bool {
        let name = &self.asked.file.name;
        let here = |shelf: &&mut WatchedFolder| {
            shelf.folder.path == self.asked.folder.path
                && shelf.folder.access_of(name) == Access::Open
        };
        let shelf = shelves.iter_mut().find(here);
        let known = shelf.and_then(|shelf| shelf.known.get_mut(name));
        let Some(known) = known.filter(|known| known.hash == self.asked.hash) else {
            return false;
        };
        known.afresh = self.loaded.afresh;
        known.waits = self.loaded.waits;
        if self.failed || self.loaded.waits {
            known.hash = UNANSWERED;
        }
        true
    }
}

/// Which files a look must read whatever their stamps say.
#[derive(Debug, Clone, Default)]
pub enum Reread {
    #[default]
    Nothing,
    Paths(HashSet<PathBuf>),
    /// Those that waited for something to be installed.
    Waiting,
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
            Reread::All | Reread::Anew => true,
        }
    }
}

/// What a look gave.
#[derive(Default)]
pub struct Seen {
    pub updates: Vec<Update>,
    /// Programs that have to be asked.
    pub asked: Vec<PendingEntry>,
    /// What has to be remembered of it, after the updates were brought to the crib.
    pub memory: LastGoodChanges,
}

/// Work for [`LastGood`] that nobody has to wait for.
#[derive(Default)]
pub struct LastGoodChanges {
    folder: PathBuf,
    keep: Vec<(String, Vec<u8>)>,
    forget: Vec<String>,
}

impl LastGoodChanges {
    pub fn is_empty(&self) -> bool {
        self.keep.is_empty() && self.forget.is_empty()
    }

    pub fn store(self, last_good: &dyn LastGood) {
        if !self.forget.is_empty() {
            last_good.forget(&self.folder, &self.forget);
        }
        last_good.keep(&self.folder, &self.keep);
    }
}

/// A folder under observation.
pub struct WatchedFolder {
    pub folder: Folder,
    known: BTreeMap<String, FileState>,
    /// Does the catalog hold a problem about the folder itself?
    troubled: bool,
    /// Was it looked at before?
    looked: bool,
    /// Folders in it that are tools or may become some, and those inside them.
    inner: Vec<PathBuf>,
}

impl WatchedFolder {
    pub fn new(folder: Folder) -> WatchedFolder {
        WatchedFolder {
            folder,
            known: BTreeMap::new(),
            troubled: false,
            looked: false,
            inner: Vec::new(),
        }
    }

    /// The folders in which a change may be a change of a tool.
    pub fn watched(&self) -> impl Iterator<Item = &Path> {
        let inner = self.inner.iter().map(PathBuf::as_path);
        std::iter::once(self.folder.path.as_path()).chain(inner)
    }

    /// Looks at the folder and gives an update for each file that is new, different or gone.
    pub fn look(&mut self, reread: &Reread, place: &Arc<Place>, last_good: &dyn LastGood) -> Seen {
        let names = match self.names(place) {
            Ok(names) => names,
            Err(reason) => return self.trouble(&reason),
        };
        let mut memory = LastGoodChanges {
            folder: self.folder.path.clone(),
            ..LastGoodChanges::default()
        };
        let mut updates = Vec::new();
        if std::mem::take(&mut self.troubled) {
            updates.push(Update::gone(key(&self.folder.path), self.folder.rank()));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.retain_last_good(&names, last_good);
        }
        let mut candidates = Vec::new();
        let mut present = HashSet::new();
        let mut inner = Vec::new();
        for name in names {
            let path = self.folder.path.join(&name);
            let meta = match std::fs::metadata(&path) {
                Ok(meta) => meta,
                Err(error) => {
                    // A link that leads nowhere is told of; a file that just went is not.
                    let Ok(link) = std::fs::symlink_metadata(&path) else {
                        continue;
                    };
                    if error.kind() == io::ErrorKind::NotFound {
                        // What it led to was removed, and takes its last good version along.
                        last_good.forget(&self.folder.path, std::slice::from_ref(&name));
                    }
                    link
                }
            };
            let Some(kind) = kind_of(&name, &meta) else {
                continue;
            };
            if matches!(kind, FileKind::Program) && !self.folder.programs {
                continue;
            }
            let waits = self.known.get(&name).is_some_and(|known| known.waits);
            let mut touched = reread.covers(&path) || (waits && matches!(reread, Reread::Waiting));
            let stamp = match kind {
                FileKind::Bundle => {
                    let leads_out =
                        || std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_symlink());
                    if self.folder.access != Access::Open && leads_out() {
                        continue;
                    }
                    let parts = bundle::parts(&path);
                    inner.extend(bundle::folders(&path, &parts));
                    if !bundle::is_tool(&path, &parts) {
                        continue;
                    }
                    let named = match self.folder.access_of(&name) {
                        Access::Open => named::of(&path, &parts, place.project.as_deref()),
                        _ => Vec::new(),
                    };
                    inner.extend(bundle::folders(&path, &named));
                    Stamp::of(parts.iter().chain(&named).map(|part| &part.meta))
                }
                FileKind::Script(_) | FileKind::Plugin => {
                    let beside = self.known.get(&name).map(|known| known.beside.as_slice());
                    let beside = beside.unwrap_or_default();
                    touched |= beside.iter().any(|one| reread.covers(one));
                    stamp_of(&path, beside).unwrap_or_else(|| Stamp::of([&meta]))
                }
                FileKind::Program => Stamp::of([&meta]),
            };
            present.insert(name.clone());
            let known = self.known.get(&name);
            let untouched = known.is_some_and(|known| known.stamp == stamp && stamp.settled);
            if untouched && !touched {
                continue;
            }
            candidates.push(Candidate {
                name,
                path,
                kind,
                stamp,
            });
        }
        let gone: Vec<String> = self
            .known
            .keys()
            .filter(|name| !present.contains(*name))
            .cloned()
            .collect();
        for name in gone {
            self.known.remove(&name);
            updates.push(Update::gone(
                key(&self.folder.path.join(&name)),
                self.folder.rank(),
            ));
            memory.forget.push(name);
        }
        let mut asked = Vec::new();
        let files: BTreeMap<String, Candidate> = candidates
            .iter()
            .map(|file| (file.name.clone(), file.clone()))
            .collect();
        for read in self.read_all(candidates, place, last_good, reread) {
            if let (Some(News { update, keep }), Some(file)) = (read.news, files.get(&read.name)) {
                let ask = |draft, problems, stale, keep| PendingEntry {
                    keep,
                    draft,
                    problems,
                    stale,
                    folder: self.folder.clone(),
                    file: file.clone(),
                    hash: read.known.hash,
                };
                let update = match update {
                    Found::Update(update) => Some(update),
                    Found::Again(update, draft) => {
                        let problems = update.problems.clone();
                        asked.push(ask(draft, problems, false, keep.clone()));
                        Some(update)
                    }
                    Found::Pending {
                        draft,
                        problems,
                        stale,
                    } => {
                        asked.push(ask(draft, problems, stale, keep.clone()));
                        None
                    }
                };
                if let Some(update) = update {
                    updates.push(update);
                    let keep = keep.map(|text| (read.name.clone(), text));
                    memory.keep.extend(keep);
                }
            }
            self.known.insert(read.name, read.known);
        }
        let beside = self.known.values().flat_map(|known| &known.beside);
        let folders = beside.filter_map(|path| path.parent());
        let folders = folders.filter(|folder| *folder != self.folder.path);
        inner.extend(folders.map(Path::to_path_buf));
        inner.sort();
        inner.dedup();
        inner.truncate(MAX_INNER);
        self.inner = inner;
        Seen {
            updates,
            asked,
            memory,
        }
    }

    /// The updates that take everything of this folder out of the catalog.
    pub fn clear(&mut self) -> Vec<Update> {
        let rank = self.folder.rank();
        let mut keys: Vec<PathBuf> = self
            .known
            .keys()
            .map(|name| self.folder.path.join(name))
            .collect();
        keys.push(self.folder.path.clone());
        self.known.clear();
        self.troubled = false;
        keys.iter()
            .map(|path| Update::gone(key(path), rank))
            .collect()
    }

    /// What was removed, or lost its trust, while nobody looked does not come back.
    fn retain_last_good(&self, names: &[String], last_good: &dyn LastGood) {
        let present = names
            .iter()
            .filter(|name| self.folder.access_of(name) == Access::Open);
        let present: Vec<String> = present.cloned().collect();
        last_good.retain(&self.folder.path, &present);
    }

    /// Trust was withdrawn: what stood in for broken files ends with it.
    pub fn forget_last_good(&self, last_good: &dyn LastGood) {
        last_good.retain(&self.folder.path, &[]);
    }

    fn names(&self, place: &Place) -> Result<Vec<String>, String> {
        let entries = match std::fs::read_dir(&self.folder.path) {
            Ok(entries) => entries,
            // A missing folder is fine and may appear later.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("the tools folder can't be read: {error}")),
        };
        self.check_walkable(place)?;
        let mut names = Vec::new();
        for (count, entry) in entries.enumerate() {
            if count >= MAX_ENTRIES {
                return Err(format!(
                    "the tools folder has more than {MAX_ENTRIES} entries"
                ));
            }
            let entry =
                entry.map_err(|error| format!("the tools folder can't be read: {error}"))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if !is_passed_over(&name) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// A missing folder may be watched as soon as it is there.
    pub fn may_be_watched(&self, place: &Place) -> bool {
        self.check_walkable(place).is_ok()
    }

    /// A home directory is never walked, and an untrusted project can't lead out of itself by a link.
    fn check_walkable(&self, place: &Place) -> Result<(), String> {
        let real = self
            .folder
            .path
            .canonicalize()
            .map_err(|error| format!("the tools folder can't be read: {error}"))?;
        let home = place
            .environment
            .get("HOME")
            .and_then(|home| Path::new(home).canonicalize().ok());
        if real == Path::new("/") || home.is_some_and(|home| real == home) {
            return Err("the tools folder is a home directory or the root".to_owned());
        }
        match &self.folder.access {
            Access::Untrusted { project } if !real.starts_with(project) => {
                Err("the tools folder of an untrusted project leads out of it by a link".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn trouble(&mut self, reason: &str) -> Seen {
        let mut updates = self.clear();
        updates.pop();
        self.troubled = true;
        let problem = Problem::error(SourceKind::Plugin, ErrorType::Io, reason)
            .file(&self.folder.path)
            .hint("make it a plain folder that this user may read, holding tool files only");
        updates.push(Update {
            key: key(&self.folder.path),
            rank: self.folder.rank(),
            file: None,
            tools: Vec::new(),
            problems: vec![problem],
        });
        Seen {
            updates,
            ..Seen::default()
        }
    }
}

/// Bytes as people write hashes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn key(path: &Path) -> SourceKey {
    SourceKey(path.to_string_lossy().into())
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
