//! One look at one tools folder, through all steps but asking.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use sha2::{Digest, Sha256};
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, ErrorType, Problem, SourceKind, Update};

use super::compare::{FileState, Reread, Stamp, compare};
use super::draft::Draft;
use super::list::{self, Entry};
use super::read::Reader;
use super::update::LastGoodChanges;
use super::withheld::{News, Standing, Withheld};
use super::without_tools::WithoutTools;
use super::{Folder, Needs, key};
use crate::Place;
use crate::description::Description;
use crate::examples;

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

impl Look {
    pub fn of(folder: &Folder) -> Look {
        Look {
            updates: Vec::new(),
            questions: Vec::new(),
            memory: LastGoodChanges::of(folder),
        }
    }
}

/// A folder under observation.
pub(super) struct WatchedFolder {
    pub folder: Arc<Folder>,
    known: BTreeMap<String, FileState>,
    /// What the catalog has of each entry, and what is withheld from it.
    standing: BTreeMap<String, Standing>,
    withheld: Withheld,
    /// How many drafts there were.
    drafts: u64,
    without_tools: WithoutTools,
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
            standing: BTreeMap::new(),
            withheld: Withheld::default(),
            drafts: 0,
            without_tools: WithoutTools::default(),
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
        let mut look = Look::of(&self.folder);
        if std::mem::take(&mut self.troubled) {
            look.updates.push(self.gone(&self.folder.path));
        }
        let first = !std::mem::replace(&mut self.looked, true);
        if first {
            self.retain_last_good(&names, needs.last_good.as_ref());
        }
        let (entries, dangling) = list::entries(&self.folder, names);
        if !dangling.is_empty() {
            // What they led to was removed, and takes its last good version along.
            needs.last_good.forget(&self.folder.path, &dangling);
        }
        let compared = compare(&self.folder, entries, &self.known, reread, &needs.place);
        let patient = needs.patient && !first && !reread.is_ordered();
        for name in compared.gone {
            self.known.remove(&name);
            let news = self.news(None);
            self.bring(&name, news, patient, &mut look);
        }
        for (name, state, draft) in self.read_all(compared.changed, reread, needs) {
            self.known.insert(name.clone(), state);
            if let Some(draft) = draft {
                self.take_draft(&name, draft, patient, needs, &mut look);
            }
        }
        self.release(patient, &mut look);
        self.tell_without_tools(patient, &mut look);
        self.watch_inner(compared.inner);
        look
    }

    /// An entry reads differently: what is known of it goes to the catalog, the rest is asked for.
    fn take_draft(
        &mut self,
        name: &str,
        mut draft: Draft,
        patient: bool,
        needs: &Needs,
        look: &mut Look,
    ) {
        let standing = self.standing.get(name);
        draft.patient = patient;
        if patient {
            draft.takes_over(standing.map_or_else(Vec::new, |standing| standing.tools.clone()));
        }
        // Where one look is all there is, nothing runs for it.
        if needs.patient && needs.place.gate.load(Ordering::Relaxed) && self.has_examples(name) {
            draft.is_gated(standing.map_or_else(Vec::new, |standing| standing.tools.clone()));
        }
        if let Description::Known(loaded) = &draft.description
            && loaded.waits
            && let Some(known) = self.known.get_mut(name)
        {
            known.waits = true;
            known.hash = UNANSWERED;
        }
        let seen = standing.is_some();
        let mut news = self.news(Some(draft));
        let Some(draft) = news.draft.as_mut().filter(|draft| draft.is_question()) else {
            return self.bring(name, news, patient, look);
        };
        // What would be withheld of it is another version, which nobody has to see any more.
        self.withheld.outdo(name, draft.number);
        let update = draft.update(&mut look.memory);
        let update = update.or_else(|| draft.meanwhile(needs).filter(|_| !seen));
        if let Some(update) = update {
            // The answer comes after it.
            let number = draft.number - 1;
            self.give(name, update, number, look);
        }
        look.questions.extend(news.draft);
    }

    /// Nothing of an entry that nobody trusts is run.
    fn has_examples(&self, name: &str) -> bool {
        self.folder.trusts(name) && examples::any(&self.folder.path)
    }

    fn news(&mut self, draft: Option<Draft>) -> News {
        // Two for each: what is known before the answer, and the answer.
        self.drafts += 2;
        let number = self.drafts;
        let draft = draft.map(|draft| Draft { number, ..draft });
        News { draft, number }
    }

    /// Brings what is new of an entry to the catalog, unless it is withheld for a while.
    fn bring(&mut self, name: &str, news: News, patient: bool, look: &mut Look) {
        let pause = news.pause(self.standing.get(name));
        let news = match pause.filter(|_| patient) {
            Some(pause) => self.withheld.put(name, news, pause),
            None => Some(news),
        };
        let Some(News { draft, number }) = news else {
            return;
        };
        self.withheld.outdo(name, number);
        match draft {
            Some(mut draft) => {
                if let Some(update) = draft.update(&mut look.memory) {
                    self.give(name, update, number, look);
                }
                let loaded = draft.description.loaded();
                if let (Some(standing), Some(loaded)) = (self.standing.get_mut(name), loaded) {
                    standing.without_tools.clone_from(&loaded.without_tools);
                }
            }
            None => {
                self.standing.remove(name);
                look.updates.push(self.gone(&self.folder.path.join(name)));
                look.memory.forget.push(name.to_owned());
            }
        }
    }

    fn give(&mut self, name: &str, update: Update, number: u64, look: &mut Look) {
        let tools = update.tools.clone();
        let standing = Standing {
            tools,
            without_tools: None,
            number,
        };
        self.standing.insert(name.to_owned(), standing);
        look.updates.push(update);
    }

    /// Brings what was withheld long enough; and what other entries have taken over, which was renamed.
    pub fn release(&mut self, patient: bool, look: &mut Look) {
        let given = look.updates.iter().flat_map(|update| &update.tools);
        let given: HashSet<&str> = given.map(|tool| tool.name()).collect();
        let standing = &self.standing;
        let renamed = |name: &str, news: &News| {
            let had = standing.get(name).map_or(&[][..], |had| &had.tools);
            news.draft.is_none() && had.iter().all(|tool| given.contains(tool.name()))
        };
        let taken = self
            .withheld
            .take(|name, news| !patient || renamed(name, news));
        for (name, news) in taken {
            self.bring(&name, news, false, look);
        }
    }

    /// When something that is withheld is due.
    pub fn due(&self) -> Option<Instant> {
        let due = [self.withheld.due(), self.without_tools.due()];
        due.into_iter().flatten().min()
    }

    /// Says which files have no tool and are imported by none that has.
    fn tell_without_tools(&mut self, patient: bool, look: &mut Look) {
        let is_idle = |name: &str| {
            let standing = self.standing.get(name);
            standing.is_some_and(|standing| standing.without_tools.is_some())
        };
        let known = self.known.iter().filter(|(name, _)| !is_idle(name));
        let imported: HashSet<&Path> = known
            .flat_map(|(_, known)| &known.beside)
            .map(PathBuf::as_path)
            .collect();
        let standing = self.standing.values();
        let problems = standing
            .filter_map(|standing| standing.without_tools.as_deref())
            .filter(|problem| {
                let file = problem.file.as_deref();
                !file.is_some_and(|file| imported.contains(file))
            });
        let problems = problems.cloned().collect();
        if let Some(problems) = self.without_tools.news(problems, patient) {
            look.updates.push(Update {
                problems,
                ..self.gone(&self.folder.path)
            });
        }
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

    /// Takes in that a program has answered, unless what the catalog has is newer. Who could not be asked is asked again
    /// when the file is read again.
    pub fn hear(&mut self, answer: Draft, look: &mut Look) {
        let name = answer.entry.name.clone();
        let here = self.folder.path == answer.folder.path && self.folder.trusts(&name);
        let standing = self
            .standing
            .get(&name)
            .map_or(0, |standing| standing.number);
        let known = self.known.get_mut(&name);
        let known = known.filter(|_| here && answer.number > standing);
        let (Some(known), Some(loaded)) = (known, answer.description.loaded()) else {
            return;
        };
        let current = known.hash == answer.hash;
        if current {
            known.afresh = loaded.afresh;
            known.waits = loaded.waits;
            // Only what stands in for it is stale.
            let failed = loaded.is_broken() && loaded.tools.iter().all(|tool| tool.stale);
            if failed || loaded.waits {
                known.hash = UNANSWERED;
            }
        } else if loaded.is_broken() || loaded.tools.is_empty() {
            // A newer version is being asked; this one would do until then, if it were good.
            return;
        }
        let Draft {
            number, patient, ..
        } = answer;
        let news = News {
            draft: Some(answer),
            number,
        };
        self.bring(&name, news, patient, look);
        self.release(true, look);
        self.tell_without_tools(patient, look);
    }

    /// These entries are read again as if they were new.
    pub fn forget(&mut self, paths: &HashSet<PathBuf>) {
        for (name, known) in &mut self.known {
            if paths.contains(&self.folder.path.join(name)) {
                known.hash = UNANSWERED;
            }
        }
    }

    /// Does an entry wait for something?
    pub fn waits(&self) -> bool {
        self.known.values().any(|known| known.waits)
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
        self.known.clear();
        self.withheld = Withheld::default();
        self.without_tools = WithoutTools::default();
        let standing = std::mem::take(&mut self.standing);
        let paths = standing.keys().map(|name| self.folder.path.join(name));
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
            ..Look::of(&self.folder)
        }
    }
}
