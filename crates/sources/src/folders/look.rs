//! One look at one tools folder, through all steps but asking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, ErrorType, Problem, SourceKind, Update};

use super::compare::{FileState, Reread, Stamp, compare};
use super::draft::Draft;
use super::list::{self, Entry};
use super::read::Reader;
use super::update::LastGoodChanges;
use super::{Folder, Needs, key};
use crate::Place;

/// How many folders inside a tools folder are watched.
const MAX_INNER: usize = 512;
/// Fewer files than these are read by one thread.
const MANY: usize = 64;

/// The hash of an entry whose program could not be asked what it is.
const UNANSWERED: [u8; 32] = [0xff; 32];

/// What a look gave.
pub(super) struct Look {
    pub updates: Vec<Update>,
    /// Programs that have to be asked.
    pub questions: Vec<Draft>,
    /// What has to be remembered of it.
    pub memory: LastGoodChanges,
}

/// A folder under observation.
pub(super) struct WatchedFolder {
    pub folder: Arc<Folder>,
    known: BTreeMap<String, FileState>,
    /// Does the catalog hold a problem about the folder itself?
    troubled: bool,
    /// Was it looked at before?
    looked: bool,
    /// Folders in it that are tools or may become some, and those inside them.
    inner: Vec<PathBuf>,
}

impl WatchedFolder {
    pub fn new(folder: Arc<Folder>) -> WatchedFolder {
        WatchedFolder {
            folder,
            known: BTreeMap::new(),
            troubled: false,
            looked: false,
            inner: Vec::new(),
        }
    }

    /// Looks at the folder and gives an update for each file that is new, different or gone.
    pub fn look(&mut self, reread: &Reread, needs: &Needs) -> Look {
        let names = match list::names(&self.folder, &needs.place) {
            Ok(names) => names,
            Err(reason) => return self.trouble(&reason),
        };
        let mut look = Look {
            updates: Vec::new(),
            questions: Vec::new(),
            memory: LastGoodChanges::of(&self.folder),
        };
        if std::mem::take(&mut self.troubled) {
            look.updates.push(self.gone(&self.folder.path));
        }
        if !std::mem::replace(&mut self.looked, true) {
            self.retain_last_good(&names, needs.last_good.as_ref());
        }
        let (entries, dangling) = list::entries(&self.folder, names);
        if !dangling.is_empty() {
            // What they led to was removed, and takes its last good version along.
            needs.last_good.forget(&self.folder.path, &dangling);
        }
        let compared = compare(&self.folder, entries, &self.known, reread, &needs.place);
        for name in compared.gone {
            self.known.remove(&name);
            look.updates.push(self.gone(&self.folder.path.join(&name)));
            look.memory.forget.push(name);
        }
        for (name, state, draft) in self.read_all(compared.changed, reread, needs) {
            self.known.insert(name, state);
            if let Some(mut draft) = draft {
                look.updates.extend(draft.update(&mut look.memory));
                look.questions
                    .extend(Some(draft).filter(Draft::is_question));
            }
        }
        self.watch_inner(compared.inner);
        look
    }

    /// Reads entries, on all cores when they are many.
    fn read_all(
        &self,
        changed: Vec<(Entry, Stamp)>,
        reread: &Reread,
        needs: &Needs,
    ) -> Vec<(String, FileState, Option<Draft>)> {
        let reader = Reader::new(&self.folder, &needs.place);
        let read = |(entry, stamp): (Entry, Stamp)| {
            let name = entry.name.clone();
            let (state, draft) = self.read(entry, stamp, &reader, reread, needs);
            (name, state, draft)
        };
        // Of an untrusted project the same files are read every time: in their order.
        let workers = match self.folder.access {
            Access::Untrusted { .. } => 1,
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        if changed.len() < MANY || workers == 1 {
            return changed.into_iter().map(read).collect();
        }
        let share = changed.len().div_ceil(workers.min(8));
        let mut changed = changed.into_iter();
        let parts = std::iter::from_fn(|| {
            let part: Vec<_> = changed.by_ref().take(share).collect();
            (!part.is_empty()).then_some(part)
        });
        std::thread::scope(|scope| {
            let work = |part: Vec<_>| part.into_iter().map(&read).collect::<Vec<_>>();
            let threads: Vec<_> = parts.map(|part| scope.spawn(move || work(part))).collect();
            let threads = threads.into_iter();
            threads
                .flat_map(|thread| thread.join().unwrap_or_default())
                .collect()
        })
    }

    /// Reads an entry, and drafts it unless it reads as before.
    fn read(
        &self,
        entry: Entry,
        stamp: Stamp,
        reader: &Reader,
        reread: &Reread,
        needs: &Needs,
    ) -> (FileState, Option<Draft>) {
        let content = reader.read(&entry);
        let hash: [u8; 32] = match &content {
            Ok(content) => content.hash(),
            Err(error) => Sha256::digest(error.as_bytes()).into(),
        };
        let beside = content
            .as_ref()
            .ok()
            .and_then(|content| content.beside(&entry));
        let stamp = match &beside {
            Some(beside) => Stamp::of_file(&entry.path, beside).unwrap_or(stamp),
            None => stamp,
        };
        let whole = matches!(reread, Reread::All);
        let same = self
            .known
            .get(&entry.name)
            .filter(|known| known.hash == hash);
        let same = same.filter(|known| !(known.afresh && whole));
        let answered = same.is_some_and(|known| known.afresh);
        let state = FileState {
            stamp,
            hash,
            beside: beside.unwrap_or_default(),
            afresh: answered,
            waits: same.is_some_and(|known| known.waits),
        };
        let draft = || Draft::new(&self.folder, entry, hash, content, needs);
        let draft = match (same, reread) {
            (None, _) => Some(draft()),
            (Some(_), Reread::Anew) => Some(draft().anew(answered)),
            (Some(_), _) => None,
        };
        (state, draft)
    }

    /// Takes in that a program has answered; false where that is no longer what the folder holds. Who could not be asked
    /// is asked again when the file is read again.
    pub fn takes(&mut self, answer: &Draft) -> bool {
        let name = &answer.entry.name;
        let here = self.folder.path == answer.folder.path && self.folder.trusts(name);
        let known = self.known.get_mut(name);
        let known = known.filter(|known| here && known.hash == answer.hash);
        let (Some(known), Some(loaded)) = (known, answer.description.loaded()) else {
            return false;
        };
        known.afresh = loaded.afresh;
        known.waits = loaded.waits;
        // Only what stands in for it is stale.
        let failed = loaded.is_broken() && loaded.tools.iter().all(|tool| tool.stale);
        if failed || loaded.waits {
            known.hash = UNANSWERED;
        }
        true
    }

    /// The folders in which a change may be a change of a tool.
    pub fn watched(&self) -> impl Iterator<Item = &Path> {
        let inner = self.inner.iter().map(PathBuf::as_path);
        std::iter::once(self.folder.path.as_path()).chain(inner)
    }

    fn watch_inner(&mut self, mut inner: Vec<PathBuf>) {
        let beside = self.known.values().flat_map(|known| &known.beside);
        let folders = beside.filter_map(|path| path.parent());
        let folders = folders.filter(|folder| *folder != self.folder.path);
        inner.extend(folders.map(Path::to_path_buf));
        inner.sort();
        inner.dedup();
        inner.truncate(MAX_INNER);
        self.inner = inner;
    }

    /// A missing folder may be watched as soon as it is there.
    pub fn may_be_watched(&self, place: &Place) -> bool {
        list::check_walkable(&self.folder, place).is_ok()
    }

    fn gone(&self, path: &Path) -> Update {
        Update::gone(key(path), self.folder.rank())
    }

    /// The updates that take everything of this folder out of the catalog.
    pub fn clear(&mut self) -> Vec<Update> {
        let mut updates = self.clear_entries();
        updates.push(self.gone(&self.folder.path));
        self.troubled = false;
        updates
    }

    fn clear_entries(&mut self) -> Vec<Update> {
        let known = std::mem::take(&mut self.known);
        let paths = known.keys().map(|name| self.folder.path.join(name));
        paths.map(|path| self.gone(&path)).collect()
    }

    /// What was removed, or lost its trust, while nobody looked does not come back.
    fn retain_last_good(&self, names: &[String], last_good: &dyn LastGood) {
        let present = names.iter().filter(|name| self.folder.trusts(name));
        let present: Vec<String> = present.cloned().collect();
        last_good.retain(&self.folder.path, &present);
    }

    /// Trust was withdrawn: what stood in for broken files ends with it.
    pub fn forget_last_good(&self, last_good: &dyn LastGood) {
        last_good.retain(&self.folder.path, &[]);
    }

    /// The folder can't be looked at: nothing in it is a tool.
    fn trouble(&mut self, reason: &str) -> Look {
        let mut updates = self.clear_entries();
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
        Look {
            updates,
            questions: Vec::new(),
            memory: LastGoodChanges::of(&self.folder),
        }
    }
}
