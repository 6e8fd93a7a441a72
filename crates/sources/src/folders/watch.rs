//! Hears of changes in the tools folders: raw events become "these paths are dirty", once per settled change.
//!
//! A burst of saves is one change: it is passed on in the first quiet moment, at the latest after a while. A save that has
//! visibly ended needs little quiet. Where a burst goes on after that, quiet has to last longer.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::compare::Reread;

/// A change has settled when nothing more was heard for this long.
const QUIET: Duration = Duration::from_millis(30);
/// The same where the last that was heard is how a save ends: the file was closed, or got its name.
const QUIET_AFTER_END: Duration = Duration::from_millis(8);
/// The same where another change was passed on a moment ago.
const QUIET_AGAIN: Duration = Duration::from_millis(100);
/// How long ago that is.
const MOMENT: Duration = Duration::from_millis(150);
/// A file that is saved over and over is not held back longer than this.
const ONE_FILE: Duration = Duration::from_secs(1);
/// Many files that come one after the other are passed on this far apart.
const MANY_FILES: Duration = Duration::from_millis(200);
/// More paths than these are many files: editors touch a few beside the one that is saved.
const FEW: usize = 8;
/// More paths than this are no longer told apart.
const MAX_PATHS: usize = 4_096;

/// What was heard and not yet passed on.
#[derive(Default)]
struct Heard {
    dirty: Mutex<Dirty>,
    signal: Notify,
}

#[derive(Default)]
struct Dirty {
    paths: HashSet<PathBuf>,
    all: bool,
    /// Whether the last event is one that a save ends with.
    ended: bool,
}

pub struct Watch {
    heard: Arc<Heard>,
    watcher: Option<RecommendedWatcher>,
    /// Folders that are watched, with the inode that was there.
    watched: Vec<(PathBuf, u64)>,
    last: Option<Instant>,
    /// What was heard and not passed on yet.
    settling: Option<Settling>,
    trouble: Option<String>,
}

/// A change that may go on. It is kept here because whoever waits may be interrupted, and then waits no longer for that.
struct Settling {
    since: Instant,
    /// Whether another change was passed on a moment ago.
    again: bool,
    /// When quiet will have lasted long enough.
    quiet: Instant,
}

impl Watch {
    pub fn new() -> Watch {
        let heard = Arc::new(Heard::default());
        let ear = heard.clone();
        let (watcher, trouble) = match notify::recommended_watcher(move |event| ear.hear(event)) {
            Ok(watcher) => (Some(watcher), None),
            Err(error) => (
                None,
                Some(format!(
                    "files can't be watched ({error}); folders are looked at every second"
                )),
            ),
        };
        Watch {
            heard,
            watcher,
            watched: Vec::new(),
            last: None,
            settling: None,
            trouble,
        }
    }

    /// Why changes may be noticed late, if they may.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Watches just these folders. Those that are missing, or were replaced by another, are tried again at each
    /// call. Gives whether a folder appeared, vanished or was replaced since the last call.
    pub fn follow<'a>(&mut self, folders: impl Iterator<Item = &'a Path>) -> bool {
        let wanted: Vec<(PathBuf, u64)> = folders
            .filter_map(|path| Some((path.to_owned(), inode(path)?)))
            .collect();
        if wanted == self.watched {
            return false;
        }
        let Some(watcher) = &mut self.watcher else {
            self.watched = wanted;
            return true;
        };
        for (path, _) in self.watched.iter().filter(|old| !wanted.contains(old)) {
            // A folder that is gone took its watch with it.
            let _ = watcher.unwatch(path);
        }
        let mut kept = Vec::new();
        self.trouble = None;
        for new in wanted {
            if self.watched.contains(&new) {
                kept.push(new);
                continue;
            }
            match watcher.watch(&new.0, RecursiveMode::NonRecursive) {
                Ok(()) => kept.push(new),
                Err(error) => {
                    let reason = format!(
                        "`{}` can't be watched ({error}); it is looked at every second",
                        new.0.display()
                    );
                    self.trouble = Some(reason);
                    kept.push(new);
                }
            }
        }
        self.watched = kept;
        true
    }

    /// Waits for a settled change.
    pub async fn changed(&mut self) -> Reread {
        // What an interrupted wait already heard is still there.
        while !self.heard.is_dirty() {
            self.heard.signal.notified().await;
        }
        let heard = &self.heard;
        let last = self.last;
        let settling = self.settling.get_or_insert_with(|| {
            let since = Instant::now();
            let again = last.is_some_and(|last| since - last < MOMENT);
            Settling {
                since,
                again,
                quiet: since + heard.enough_quiet(again),
            }
        });
        loop {
            let limit = match heard.paths() > FEW {
                true => settling.since + MANY_FILES,
                false => settling.since + ONE_FILE,
            };
            let quiet = settling.quiet.min(limit);
            match tokio::time::timeout_at(quiet, heard.signal.notified()).await {
                Ok(()) if Instant::now() < limit => {
                    settling.quiet = Instant::now() + heard.enough_quiet(settling.again);
                }
                _ => break,
            }
        }
        self.last = Some(Instant::now());
        self.settling = None;
        self.heard.take()
    }
}

impl Heard {
    fn hear(&self, event: notify::Result<Event>) {
        {
            let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) if event.need_rescan() => dirty.all = true,
                Ok(event) if is_reading(&event.kind) => return,
                Ok(event) => {
                    dirty.ended = ends_a_save(&event.kind);
                    dirty.paths.extend(event.paths);
                }
                Err(_) => dirty.all = true,
            }
            if dirty.paths.len() > MAX_PATHS {
                dirty.paths.clear();
                dirty.all = true;
            }
        }
        self.signal.notify_one();
    }

    fn is_dirty(&self) -> bool {
        let dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.all || !dirty.paths.is_empty()
    }

    /// How long it has to be quiet from now on.
    fn enough_quiet(&self, again: bool) -> Duration {
        let dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        match (again, dirty.ended) {
            (true, _) => QUIET_AGAIN,
            (false, true) => QUIET_AFTER_END,
            (false, false) => QUIET,
        }
    }

    fn paths(&self) -> usize {
        let dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.paths.len()
    }

    fn take(&self) -> Reread {
        let dirty = std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner));
        if dirty.all {
            Reread::Lost
        } else {
            Reread::Paths(dirty.paths)
        }
    }
}

/// Reads, our own among them, change nothing.
fn is_reading(kind: &EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
        EventKind::Access(_) => true,
        _ => false,
    }
}

/// Whoever wrote a file has closed it, or it has been given its name.
fn ends_a_save(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(RenameMode::To | RenameMode::Both))
    )
}

fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    let meta = path.metadata().ok()?;
    meta.is_dir().then(|| meta.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_atomic_save_is_heard_once_and_a_read_never() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new();
        assert!(watch.follow([dir.path()].into_iter()));
        assert!(!watch.follow([dir.path()].into_iter()));
        let file = dir.path().join("a.json");
        let draft = dir.path().join(".a.json.swp");
        std::fs::write(&draft, "{}").unwrap();
        std::fs::rename(&draft, &file).unwrap();
        let Reread::Paths(paths) = watch.changed().await else {
            panic!("paths are known")
        };
        assert!(paths.contains(&file));
        std::fs::read(&file).unwrap();
        let more = tokio::time::timeout(Duration::from_millis(50), watch.changed()).await;
        assert!(more.is_err(), "a read was heard: {more:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_is_interrupted_does_not_begin_anew() {
        let mut watch = Watch::new();
        let start = Instant::now();
        watch.last = Some(start);
        let save = Event::new(EventKind::Any).add_path("a.json".into());
        watch.heard.hear(Ok(save));
        let mut patience = QUIET_AGAIN / 2 + QUIET_AGAIN / 10;
        while tokio::time::timeout(patience, watch.changed())
            .await
            .is_err()
        {
            patience /= 2;
        }
        let took = start.elapsed();
        assert!(took < QUIET_AGAIN + QUIET_AGAIN / 5, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_save_that_has_ended_is_passed_on_sooner() {
        let opened = EventKind::Modify(ModifyKind::Any);
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        let named = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        let cases: [(&[EventKind], Duration); 4] = [
            (&[opened], QUIET),
            (&[opened, closed], QUIET_AFTER_END),
            (&[closed, named], QUIET_AFTER_END),
            (&[closed, opened], QUIET),
        ];
        for (events, quiet) in cases {
            let mut watch = Watch::new();
            for kind in events {
                let event = Event::new(*kind).add_path("a.json".into());
                watch.heard.hear(Ok(event));
            }
            let start = Instant::now();
            watch.changed().await;
            let took = start.elapsed();
            assert!(took >= quiet && took < quiet * 2, "{events:?}: {took:?}");
        }
    }

    #[tokio::test]
    async fn a_folder_may_appear_and_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("tools");
        let mut watch = Watch::new();
        assert!(!watch.follow([folder.as_path()].into_iter()));
        std::fs::create_dir(&folder).unwrap();
        assert!(watch.follow([folder.as_path()].into_iter()));
        std::fs::rename(&folder, dir.path().join("old")).unwrap();
        std::fs::create_dir(&folder).unwrap();
        assert!(watch.follow([folder.as_path()].into_iter()));
        std::fs::write(folder.join("a.json"), "{}").unwrap();
        while let Reread::Paths(paths) = watch.changed().await {
            if paths.contains(&folder.join("a.json")) {
                break;
            }
        }
    }
}
