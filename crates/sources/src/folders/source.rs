//! The source of all tools folders: looks at them whenever something may have changed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch as status;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior};
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, BoxFuture, Update};

use super::ask::Asking;
use super::compare::Reread;
use super::look::{Look, WatchedFolder};
use super::update::LastGoodChanges;
use super::watch::Watch;
use super::{Folder, Needs};
use crate::Place;
use crate::source::{Configuration, Follow, Source, Updates};

/// How often missing folders are looked for, and all folders where watching fails.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often what was put off is looked at, in looks.
const WAITING_EVERY: u32 = 20;
/// A whole look now and then, for what no event told (network mounts, lost events).
const WHOLE_LOOK_EVERY: u32 = 60;

/// All tools folders.
pub struct FolderSource {
    needs: Needs,
    folders: Vec<WatchedFolder>,
    /// What goes along with the next look: folders that are no longer listed take their tools away.
    cleared: Vec<Update>,
    asking: Asking,
    /// The last look's memories, on their way to the disk.
    remembering: Option<JoinHandle<()>>,
    follow: Follow,
    watch: Option<Watch>,
    tick: Interval,
    ticks: u32,
    /// Tells when something was installed.
    installed: status::Receiver<u64>,
    /// Does somebody wait until all is installed that may be?
    installing: bool,
    due: Option<Due>,
    /// Is somebody waiting for a reload, who wants to see what is there now?
    ordered: bool,
}

/// What was waited for.
enum Due {
    Answers,
    /// Something that was withheld is to be told.
    Withheld,
    Installed,
    Changed(Reread),
    Tick,
}

impl FolderSource {
    pub fn new(place: Arc<Place>, last_good: Arc<dyn LastGood>) -> FolderSource {
        let needs = Needs {
            place,
            last_good,
            patient: false,
        };
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        FolderSource {
            folders: Vec::new(),
            cleared: Vec::new(),
            asking: Asking::new(needs.clone()),
            remembering: None,
            follow: Follow::Nothing,
            watch: None,
            tick,
            ticks: 0,
            installed: needs.place.installs.ended(),
            installing: false,
            due: None,
            ordered: false,
            needs,
        }
    }

    /// Looks at every folder, off the runtime's threads.
    async fn look(&mut self, reread: Reread) -> Vec<Update> {
        self.remembered().await;
        let listed: Vec<Arc<Folder>> = self.folders.iter().map(|one| one.folder.clone()).collect();
        let mut folders = std::mem::take(&mut self.folders);
        let needs = self.needs.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = |folder: &mut WatchedFolder| folder.look(&reread, &needs);
            let looks: Vec<Look> = folders.iter_mut().map(look).collect();
            (folders, looks)
        });
        let (folders, looks) = match looked.await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(%error, "looking at the tools folders failed; the next look starts over");
                self.folders = listed.into_iter().map(WatchedFolder::new).collect();
                return Vec::new();
            }
        };
        self.folders = folders;
        let mut updates = std::mem::take(&mut self.cleared);
        let (mut questions, mut memories) = (Vec::new(), Vec::new());
        for look in looks {
            updates.extend(look.updates);
            questions.extend(look.questions);
            memories.push(look.memory);
        }
        self.asking.ask(questions);
        self.remember(memories).await;
        updates
    }

    /// Takes in what programs said, unless their files have changed since.
    async fn take_answers(&mut self) -> Vec<Update> {
        let (mut updates, mut memories) = (Vec::new(), Vec::new());
        for mut answer in self.asking.take() {
            answer.patient &= !self.ordered;
            let path = &answer.folder.path;
            let mut folders = self.folders.iter_mut();
            let Some(folder) = folders.find(|one| one.folder.path == *path) else {
                continue;
            };
            let mut look = Look::of(&answer.folder);
            folder.hear(answer, &mut look);
            updates.extend(look.updates);
            memories.push(look.memory);
        }
        self.ordered &= self.asking.is_busy();
        self.remembered().await;
        self.remember(memories).await;
        updates
    }

    /// Stores what is to be remembered while the new catalog already serves.
    async fn remember(&mut self, mut memories: Vec<LastGoodChanges>) {
        memories.retain(|memory| !memory.is_empty());
        if memories.is_empty() {
            return;
        }
        let last_good = self.needs.last_good.clone();
        self.remembering = Some(tokio::task::spawn_blocking(move || {
            let memories = memories.into_iter();
            memories.for_each(|memory| memory.store(last_good.as_ref()));
        }));
        if self.follow == Follow::Nothing {
            // The process may end right after its one answer.
            self.remembered().await;
        }
    }

    /// Waits until everything is remembered.
    async fn remembered(&mut self) {
        if let Some(task) = self.remembering.take() {
            let _ = task.await;
        }
    }

    /// Keeps the folders that stay as they are; the others are taken down and looked at anew.
    async fn set_folders(&mut self, folders: &[Folder]) {
        let paths = folders.iter().map(|folder| folder.path.clone());
        self.needs.place.code.set_folders(paths);
        let mut old: Vec<WatchedFolder> = std::mem::take(&mut self.folders);
        for folder in folders {
            let same = old.iter().position(|known| *known.folder == *folder);
            self.folders.push(match same {
                Some(at) => old.swap_remove(at),
                None => WatchedFolder::new(Arc::new(folder.clone())),
            });
        }
        for mut gone in old {
            let mut listed = self.folders.iter();
            let now = listed.find(|new| new.folder.path == gone.folder.path);
            // A folder that only the project's config named leaves the list with the project's trust.
            // Trust that nobody can look up is not taken back.
            let taken_back =
                |access: &Access| matches!(access, Access::Untrusted { unknown: None, .. });
            if now.is_none_or(|new| taken_back(&new.folder.access)) {
                self.remembered().await;
                gone.forget_last_good(self.needs.last_good.as_ref());
            }
            self.cleared.extend(gone.clear());
        }
    }

    /// Watches the folders as they are now; true where one appeared, vanished or was replaced.
    fn rewatch(&mut self) -> bool {
        // Never a home directory, and nothing that an untrusted project links to.
        let place = &self.needs.place;
        let watched = self.folders.iter().filter(|one| one.may_be_watched(place));
        let paths = watched.flat_map(WatchedFolder::watched);
        let watch = self.watch.as_mut();
        watch.is_some_and(|watch| watch.follow(paths))
    }

    async fn on_change(&mut self, reread: Reread) -> Vec<Update> {
        let mut updates = self.look(reread).await;
        // A folder that just came may have been filled before it was watched.
        if self.rewatch() {
            updates.extend(self.look(Reread::Nothing).await);
        }
        updates
    }

    async fn on_tick(&mut self) -> Vec<Update> {
        self.ticks = self.ticks.wrapping_add(1);
        let moved = self.rewatch();
        if self.ticks.is_multiple_of(WAITING_EVERY) && self.folders.iter().any(WatchedFolder::waits)
        {
            return self.look(Reread::Waiting).await;
        }
        let blind = self.trouble().is_some() && self.ticks.is_multiple_of(2);
        match moved || blind || self.ticks.is_multiple_of(WHOLE_LOOK_EVERY) {
            true => self.look(Reread::Nothing).await,
            false => Vec::new(),
        }
    }
}

impl Source for FolderSource {
    fn open<'a>(&'a mut self, configuration: &'a Configuration, follow: Follow) -> Updates<'a> {
        Box::pin(async move {
            self.follow = follow;
            self.needs.patient = follow == Follow::Changes;
            self.watch = (follow == Follow::Changes).then(Watch::new);
            self.set_folders(&configuration.folders).await;
            // Watched before the first look, so that nothing falls between the two.
            self.rewatch();
            self.look(Reread::Nothing).await
        })
    }

    fn wait(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let follows = self.follow == Follow::Changes;
            let watch = &mut self.watch;
            let changed = async {
                match watch {
                    Some(watch) => watch.changed().await,
                    None => std::future::pending().await,
                }
            };
            let withheld = self.folders.iter().filter_map(WatchedFolder::due).min();
            let withheld = async {
                match withheld {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            let due = tokio::select! {
                () = self.asking.answered() => Due::Answers,
                () = withheld => Due::Withheld,
                Ok(()) = self.installed.changed(), if follows || self.installing => Due::Installed,
                reread = changed => Due::Changed(reread),
                _ = self.tick.tick(), if follows => Due::Tick,
            };
            self.due = Some(due);
        })
    }

    fn take(&mut self) -> Updates<'_> {
        Box::pin(async move {
            match self.due.take() {
                None => Vec::new(),
                Some(Due::Answers) => self.take_answers().await,
                Some(Due::Withheld) => self.look(Reread::Nothing).await,
                Some(Due::Installed) => self.look(Reread::Waiting).await,
                Some(Due::Changed(reread)) => self.on_change(reread).await,
                Some(Due::Tick) => self.on_tick().await,
            }
        })
    }

    fn is_busy(&mut self) -> bool {
        let news = self.installed.has_changed().unwrap_or_default();
        self.installing &= self.asking.is_busy() || news || self.needs.place.installs.is_busy();
        self.asking.is_busy() || self.installing
    }

    fn reload(&mut self) -> Updates<'_> {
        self.needs.place.forgiven.all();
        Box::pin(async move {
            let updates = self.look(Reread::All).await;
            self.ordered = self.asking.is_busy();
            updates
        })
    }

    /// Answers that are on their way were judged by what was granted before; they are asked for again where they are
    /// still needed.
    fn regrant(&mut self) -> Updates<'_> {
        self.asking.stop();
        Box::pin(self.look(Reread::Anew))
    }

    fn configure<'a>(&'a mut self, to: &'a Configuration) -> Updates<'a> {
        Box::pin(async move {
            self.set_folders(&to.folders).await;
            self.look(Reread::Nothing).await
        })
    }

    fn want<'a>(&'a mut self, files: &'a [PathBuf]) -> Updates<'a> {
        self.needs.place.installs.allow(files);
        self.asking.hurry(files);
        self.installing = true;
        Box::pin(self.look(Reread::Waiting))
    }

    fn put_off(&mut self) -> Updates<'_> {
        Box::pin(async move {
            let paths = self.asking.put_off().await;
            for folder in &mut self.folders {
                folder.forget(&paths);
            }
            self.look(Reread::Paths(paths)).await
        })
    }

    fn trouble(&self) -> Option<String> {
        let watch = self.watch.as_ref()?;
        watch.trouble().map(str::to_owned)
    }
}
