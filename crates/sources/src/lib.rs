//! Where tools come from: sources find tools and problems, and bring them to the crib.
//!
//! [`open`] is THE LIST of sources. Start-up is the same path as every later change, with one large batch: there is
//! no separate code for loading.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, mpsc, oneshot, watch as status};
use tokio::task::{AbortHandle, JoinError, JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;
use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, Change, Crib, Grants, Update};

mod beneath;
pub mod builtin;
mod code;
mod confine;
mod denied;
mod directory;
mod entry;
mod executable;
mod fields;
mod folder;
pub mod install;
mod options;
mod origin;
pub mod permits;
mod place;
pub mod plugin;
mod process;
pub mod registered;
mod safe;
pub mod script;
#[cfg(test)]
mod testing;
mod undescribed;
mod watch;
pub mod worker;

pub use code::Code;
pub use confine::Walls;
pub use folder::Folder;
pub use origin::{Loaded, Origin};
pub use place::Place;
pub use plugin::HostPattern;
pub use safe::{Safe, SecretSource, SecretSources};

use registered::{Handle, Registered};

use folder::{Answered, LastGoodChanges, PendingEntry, Reread, Seen, WatchedFolder};
use undescribed::Afterwards;
use watch::Watch;

/// How often missing folders are looked for, and all folders where watching fails.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A whole look now and then, for what no event told (network mounts, lost events).
const WHOLE_LOOK_EVERY: u32 = 60;

/// How many programs are asked at once what they are.
const ASKED_AT_ONCE: usize = 4;
/// Where more than these are to be asked, none of them stays.
const STAYING: usize = 16;

/// Should changes on disk be followed?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Changes,
    Nothing,
}

/// The running sources. Dropping it ends their task.
pub struct Sources {
    orders: mpsc::Sender<Order>,
    trouble: status::Receiver<Option<String>>,
    registered: Option<Handle>,
    place: Arc<Place>,
    /// One at a time reads what is granted, so that a later reading is never replaced by an earlier one.
    granting: Mutex<()>,
}

enum Order {
    Reload(oneshot::Sender<Change>),
    Folders(Vec<Folder>, oneshot::Sender<Change>),
    Remake(oneshot::Sender<Change>),
    Install(Vec<PathBuf>, oneshot::Sender<Change>),
}

/// Opens every source and brings what they hold to the crib in one batch.
pub async fn open(
    crib: Arc<Crib>,
    place: Arc<Place>,
    folders: Vec<Folder>,
    last_good: Arc<dyn LastGood>,
    registered: Option<Registered>,
    follow: Follow,
) -> Sources {
    let mut extra = vec![builtin::load(&place)];
    let mut handle = None;
    if let Some(registered) = registered {
        let opened = Handle::open(registered, crib.clone(), place.clone(), follow).await;
        handle = Some(opened.0);
        extra.extend(opened.1);
    }
    place
        .code
        .set_folders(folders.iter().map(|folder| folder.path.clone()));
    let shelves = folders.into_iter().map(WatchedFolder::new).collect();
    let granting = Mutex::new(());
    let lent = place.clone();
    let mut room = FolderSource {
        crib,
        place,
        last_good,
        shelves,
        extra,
        remembering: None,
        asking: JoinSet::new(),
        entries: HashMap::new(),
        asked: 0,
        turns: Arc::new(Semaphore::new(ASKED_AT_ONCE)),
    };
    if follow == Follow::Changes {
        room.place.workers.attend();
        room.place.installs.attend();
        room.place.scripts.prune();
    }
    let (orders, inbox) = mpsc::channel(16);
    let (tell, trouble) = status::channel(None);
    let mut watch = (follow == Follow::Changes).then(Watch::new);
    // Watched before the first look, so that nothing falls between the two.
    if let Some(watch) = &mut watch {
        watch.follow(room.paths());
    }
    room.look(Reread::Nothing).await;
    room.all_answered().await;
    if follow == Follow::Nothing {
        // The process may end right after its one answer.
        room.remembered().await;
    }
    tokio::spawn(room.run(inbox, watch, tell));
    Sources {
        orders,
        trouble,
        registered: handle,
        place: lent,
        granting,
    }
}

impl Sources {
    /// Reads every file again, whatever its stamp says.
    pub async fn reload(&self) -> Change {
        let mut change = self.order(Order::Reload).await;
        change.join(self.reread_registered().await);
        change
    }

    /// Reads what is registered again, for whoever just changed it and must not wait until that is noticed.
    pub async fn reread_registered(&self) -> Change {
        match &self.registered {
            Some(registered) => registered.look().await,
            None => Change::default(),
        }
    }

    /// Says whether there may be registered tools, after settings changed.
    pub async fn enable_registered(&self, enabled: bool) -> Change {
        match &self.registered {
            Some(registered) => registered.enable(enabled).await,
            None => Change::default(),
        }
    }

    pub fn is_registered_enabled(&self) -> bool {
        self.registered.as_ref().is_some_and(Handle::is_enabled)
    }

    /// Replaces the list of folders, after trust or settings changed.
    pub async fn set_folders(&self, folders: Vec<Folder>) -> Change {
        self.order(|answer| Order::Folders(folders, answer)).await
    }

    /// Reads what is granted, and makes every tool anew if that differs. No process is started again for it.
    pub async fn regrant(&self, read: impl Future<Output = Grants>) -> Change {
        let _turn = self.granting.lock().await;
        let grants = read.await;
        let differs = self.place.grants.send_if_modified(|held| {
            let differs = **held != grants;
            if differs {
                *held = Arc::new(grants);
            }
            differs
        });
        if !differs {
            return Change::default();
        }
        let mut change = self.order(Order::Remake).await;
        if let Some(registered) = &self.registered {
            change.join(registered.remake().await);
        }
        change
    }

    /// Installs what these files need and waits for it. Only a command that is about their tools does so: a crib that
    /// stays installs in the background.
    pub async fn install(&self, files: Vec<PathBuf>) -> Change {
        self.order(|answer| Order::Install(files, answer)).await
    }

    /// Why changes may be noticed late, if they may.
    pub fn trouble(&self) -> status::Receiver<Option<String>> {
        self.trouble.clone()
    }

    async fn order(&self, order: impl FnOnce(oneshot::Sender<Change>) -> Order) -> Change {
        let (answer, answered) = oneshot::channel();
        if self.orders.send(order(answer)).await.is_err() {
            return Change::default();
        }
        answered.await.unwrap_or_default()
    }
}

/// Everything the sources' task owns.
struct FolderSource {
    crib: Arc<Crib>,
    place: Arc<Place>,
    last_good: Arc<dyn LastGood>,
    shelves: Vec<WatchedFolder>,
    /// Updates that go along with the next look.
    extra: Vec<Update>,
    /// The last look's memories, on their way to the disk.
    remembering: Option<JoinHandle<()>>,
    /// Programs that are being asked what they are.
    asking: JoinSet<Answered>,
    /// The entries that are being asked: an answer for a version that is no more is not waited for.
    entries: HashMap<PathBuf, AbortHandle>,
    /// How many were asked since nobody was.
    asked: usize,
    turns: Arc<Semaphore>,
}

impl FolderSource {
    /// The folders to watch: never a home directory, and nothing that an untrusted project links to.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let watched = self
            .shelves
            .iter()
            .filter(|shelf| shelf.may_be_watched(&self.place));
        watched.flat_map(WatchedFolder::watched)
    }

    /// Looks at every folder, off the runtime's threads, and brings what changed to the crib.
    async fn look(&mut self, reread: Reread) -> Change {
        self.remembered().await;
        let folders: Vec<Folder> = self
            .shelves
            .iter()
            .map(|shelf| shelf.folder.clone())
            .collect();
        let mut shelves = std::mem::take(&mut self.shelves);
        let (place, last_good) = (self.place.clone(), self.last_good.clone());
        let looked = tokio::task::spawn_blocking(move || {
            let look = |shelf: &mut WatchedFolder| shelf.look(&reread, &place, last_good.as_ref());
            let seen: Vec<Seen> = shelves.iter_mut().map(look).collect();
            (shelves, seen)
        });
        let (shelves, seen) = match looked.await {
            Ok(looked) => looked,
            Err(error) => {
                tracing::error!(%error, "looking at the tools folders failed; the next look begins anew");
                self.shelves = folders.into_iter().map(WatchedFolder::new).collect();
                return Change::default();
            }
        };
        self.shelves = shelves;
        let mut updates = std::mem::take(&mut self.extra);
        let (mut memories, mut all) = (Vec::new(), Vec::new());
        for Seen {
            updates: found,
            asked,
            memory,
        } in seen
        {
            updates.extend(found);
            memories.push(memory);
            all.extend(asked);
        }
        let afterwards = match all.len() > STAYING {
            true => Afterwards::End,
            false => Afterwards::Stay,
        };
        all.into_iter()
            .for_each(|asked| self.ask(asked, afterwards));
        let change = self.bring(updates);
        self.remember(memories);
        change
    }

    /// Asks a program what it is, a few at a time. What the catalog has of it stands until it answers.
    fn ask(&mut self, asked: PendingEntry, afterwards: Afterwards) {
        let turns = self.turns.clone();
        let (place, last_good) = (self.place.clone(), self.last_good.clone());
        let entry = asked.entry().to_path_buf();
        let task = self.asking.spawn(async move {
            let _turn = turns.acquire_owned().await;
            asked.ask(&place, &last_good, afterwards).await
        });
        self.asked += 1;
        if let Some(before) = self.entries.insert(entry, task) {
            before.abort();
        }
        self.tell_progress();
    }

    /// Says how far asking has come, where it takes long.
    fn tell_progress(&mut self) {
        let (left, all) = (self.asking.len(), self.asked);
        if left == 0 {
            self.asked = 0;
            self.entries.clear();
        }
        let told = (left > 0 && all > STAYING).then(|| {
            let done = all.saturating_sub(left);
            format!("asking the tools what they are: {done} of {all}")
        });
        self.place.scripts.working.send_replace(told);
    }

    /// Takes in what one program said, unless its file has changed since.
    async fn answered(&mut self, answer: Result<Answered, JoinError>) -> Change {
        self.tell_progress();
        match answer {
            Ok(answer) if answer.is_current(&mut self.shelves) => {
                let Seen {
                    updates, memory, ..
                } = answer.seen();
                let change = self.bring(updates);
                self.remembered().await;
                self.remember(vec![memory]);
                change
            }
            Ok(_) => self.bring(Vec::new()),
            Err(error) => {
                if !error.is_cancelled() {
                    tracing::error!(%error, "asking a program what it is failed");
                }
                self.bring(Vec::new())
            }
        }
    }

    /// Waits until every program has answered.
    async fn all_answered(&mut self) -> Change {
        let mut whole = self.bring(Vec::new());
        while let Some(answer) = self.asking.join_next().await {
            whole.join(self.answered(answer).await);
        }
        whole
    }

    /// Stores what is to be remembered while the new catalog already serves.
    fn remember(&mut self, mut memories: Vec<LastGoodChanges>) {
        memories.retain(|memory| !memory.is_empty());
        if memories.is_empty() {
            return;
        }
        let last_good = self.last_good.clone();
        self.remembering = Some(tokio::task::spawn_blocking(move || {
            memories
                .into_iter()
                .for_each(|memory| memory.store(last_good.as_ref()));
        }));
    }

    /// Waits until everything is remembered.
    async fn remembered(&mut self) {
        if let Some(task) = self.remembering.take() {
            let _ = task.await;
        }
    }

    fn bring(&self, updates: Vec<Update>) -> Change {
        self.crib.apply(updates)
    }

    /// Keeps the shelves that stay as they are; the others are taken down and looked at anew.
    async fn set_folders(&mut self, folders: Vec<Folder>) -> Change {
        let paths = folders.iter().map(|folder| folder.path.clone());
        self.place.code.set_folders(paths);
        let mut old: Vec<WatchedFolder> = std::mem::take(&mut self.shelves);
        for folder in folders {
            match old.iter().position(|shelf| shelf.folder == folder) {
                Some(at) => self.shelves.push(old.swap_remove(at)),
                None => self.shelves.push(WatchedFolder::new(folder)),
            }
        }
        for mut shelf in old {
            let now = self
                .shelves
                .iter()
                .find(|new| new.folder.path == shelf.folder.path);
            // A folder that only the project's config named leaves the list with the project's trust.
            if now.is_none_or(|new| matches!(new.folder.access, Access::Untrusted { .. })) {
                self.remembered().await;
                shelf.forget_last_good(self.last_good.as_ref());
            }
            self.extra.extend(shelf.clear());
        }
        self.look(Reread::Nothing).await
    }

    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Order>,
        mut watch: Option<Watch>,
        trouble: status::Sender<Option<String>>,
    ) {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks: u32 = 0;
        let mut installed = self.place.installs.ended();
        loop {
            let Some(watching) = &mut watch else {
                match inbox.recv().await {
                    Some(order) => self.obey(order).await,
                    None => return,
                }
                continue;
            };
            trouble.send_if_modified(|told| {
                let now = watching.trouble().map(str::to_owned);
                let differs = *told != now;
                *told = now;
                differs
            });
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                Some(answer) = self.asking.join_next() => {
                    self.answered(answer).await;
                }
                Ok(()) = installed.changed() => {
                    self.look(Reread::Waiting).await;
                }
                reread = watching.changed() => {
                    self.look(reread).await;
                    // A folder that just came may have been filled before it was watched.
                    if watching.follow(self.paths()) {
                        self.look(Reread::Nothing).await;
                    }
                }
                _ = tick.tick() => {
                    ticks = ticks.wrapping_add(1);
                    let moved = watching.follow(self.paths());
                    let blind = watching.trouble().is_some() && ticks.is_multiple_of(2);
                    if moved || blind || ticks.is_multiple_of(WHOLE_LOOK_EVERY) {
                        self.look(Reread::Nothing).await;
                    }
                }
            }
        }
    }

    /// Makes every tool anew. Answers that are on their way were judged by what was granted before; they are asked for
    /// again where they are still needed.
    async fn remake(&mut self) -> Change {
        self.asking = JoinSet::new();
        self.tell_progress();
        self.look(Reread::Anew).await
    }

    /// Waits until what these files need is installed, or can't be.
    async fn installed(&mut self, files: &[PathBuf]) -> Change {
        self.place.installs.allow(files);
        let mut ended = self.place.installs.ended();
        let mut whole = Change::default();
        loop {
            whole.join(self.look(Reread::Waiting).await);
            whole.join(self.all_answered().await);
            let busy = self.place.installs.is_busy();
            if !busy && !ended.has_changed().unwrap_or_default() {
                return whole;
            }
            let _ = ended.changed().await;
        }
    }

    async fn obey(&mut self, order: Order) {
        let (mut change, answer) = match order {
            Order::Remake(answer) => {
                let change = self.remake().await;
                let _ = answer.send(change);
                return;
            }
            Order::Install(files, answer) => {
                let change = self.installed(&files).await;
                let _ = answer.send(change);
                return;
            }
            Order::Reload(answer) => {
                self.place.installs.forget_failures();
                (self.look(Reread::All).await, answer)
            }
            Order::Folders(folders, answer) => (self.set_folders(folders).await, answer),
        };
        change.join(self.all_answered().await);
        let _ = answer.send(change);
    }
}
