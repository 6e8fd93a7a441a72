//! The running sources: a task for each, which brings what its source finds to the crib.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use futures_util::future::join_all;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use toolcrib_core::{Change, Crib, Grants, Loading};

use crate::Place;
use crate::source::{Configuration, Follow, Source};

/// The running sources. Dropping it ends their tasks.
pub struct Sources {
    inboxes: Vec<mpsc::Sender<(Order, oneshot::Sender<Change>)>>,
    configuration: watch::Sender<Arc<Configuration>>,
    trouble: watch::Receiver<Vec<Option<String>>>,
    place: Arc<Place>,
    /// One at a time reads what is granted, so that a later reading is never replaced by an earlier one.
    granting: Mutex<()>,
    _tasks: JoinSet<()>,
}

/// What every source is told.
#[derive(Clone)]
enum Order {
    Refresh,
    Reload,
    Regrant,
    Configure(Arc<Configuration>),
    Want(Arc<[PathBuf]>),
    PutOff,
}

/// Opens these sources and brings what they know at once to the crib in one batch. What they are busy with comes later:
/// [`Crib::loaded`] tells when all is there.
pub async fn open(
    crib: Arc<Crib>,
    place: Arc<Place>,
    mut list: Vec<Box<dyn Source>>,
    configuration: Configuration,
    follow: Follow,
) -> Sources {
    if follow == Follow::Changes {
        place.workers.attend();
        place.installs.attend();
        place.scripts.prune();
    }
    crib.set_loading(Loading::Opening);
    let opening = list
        .iter_mut()
        .map(|source| source.open(&configuration, follow));
    let found = join_all(opening).await;
    crib.apply(found.concat());
    let busy = list.iter_mut().map(|source| source.is_busy()).collect();
    let busy = Arc::new(Busy {
        crib: crib.clone(),
        sources: std::sync::Mutex::new(busy),
    });
    busy.tell();
    let (tell, trouble) = watch::channel(vec![None; list.len()]);
    let mut inboxes = Vec::new();
    let mut tasks = JoinSet::new();
    for (number, source) in list.into_iter().enumerate() {
        let (orders, inbox) = mpsc::channel(16);
        inboxes.push(orders);
        let task = Task {
            source,
            crib: crib.clone(),
            trouble: tell.clone(),
            busy: busy.clone(),
            waiting: Vec::new(),
            number,
        };
        tasks.spawn(task.run(inbox));
    }
    Sources {
        inboxes,
        configuration: watch::Sender::new(Arc::new(configuration)),
        trouble,
        place,
        granting: Mutex::new(()),
        _tasks: tasks,
    }
}

/// Which sources are busy; the crib is told whether one is.
struct Busy {
    crib: Arc<Crib>,
    sources: std::sync::Mutex<Vec<bool>>,
}

impl Busy {
    fn tell(&self) {
        self.tell_of(&self.sources.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn set(&self, number: usize, busy: bool) {
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources[number] = busy;
        self.tell_of(&sources);
    }

    fn tell_of(&self, sources: &[bool]) {
        self.crib.set_loading(match sources.contains(&true) {
            true => Loading::Describing,
            false => Loading::Done,
        });
    }
}

impl Sources {
    /// Looks at once whether something changed, for whoever just changed it and must not wait until that is noticed.
    pub async fn refresh(&self) -> Change {
        self.order(Order::Refresh).await
    }

    /// Reads everything again.
    pub async fn reload(&self) -> Change {
        self.order(Order::Reload).await
    }

    /// Tells every source what settings and trust say now.
    pub async fn configure(&self, to: Configuration) -> Change {
        let to = Arc::new(to);
        self.configuration.send_replace(to.clone());
        self.order(Order::Configure(to)).await
    }

    /// What settings and trust said last.
    pub fn configuration(&self) -> Arc<Configuration> {
        self.configuration.borrow().clone()
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
        match differs {
            true => self.order(Order::Regrant).await,
            false => Change::default(),
        }
    }

    /// Installs what these files need, asks what they are, and waits for it. Only a command that is about their tools does
    /// so: a crib that stays does it in the background.
    pub async fn want(&self, files: Vec<PathBuf>) -> Change {
        self.order(Order::Want(files.into())).await
    }

    /// Waits no longer for what is on its way, and has the next process not wait for it again.
    pub async fn put_off(&self) {
        self.order(Order::PutOff).await;
    }

    /// Why changes may be noticed late, where they may.
    pub fn trouble(&self) -> watch::Receiver<Vec<Option<String>>> {
        self.trouble.clone()
    }

    /// Tells every source, and waits until all have done it.
    async fn order(&self, order: Order) -> Change {
        let told = self.inboxes.iter().map(async |inbox| {
            let (answer, answered) = oneshot::channel();
            inbox.send((order.clone(), answer)).await.ok()?;
            answered.await.ok()
        });
        let mut whole = Change::default();
        for change in join_all(told).await.into_iter().flatten() {
            whole.join(change);
        }
        whole
    }
}

/// One source and its task.
struct Task {
    source: Box<dyn Source>,
    crib: Arc<Crib>,
    trouble: watch::Sender<Vec<Option<String>>>,
    busy: Arc<Busy>,
    /// Who waits until the source is no longer busy, and what changed meanwhile.
    waiting: Vec<(Change, oneshot::Sender<Change>)>,
    number: usize,
}

impl Task {
    async fn run(mut self, mut inbox: mpsc::Receiver<(Order, oneshot::Sender<Change>)>) {
        loop {
            self.tell_trouble();
            self.tell_busy();
            tokio::select! {
                order = inbox.recv() => {
                    let Some((order, answer)) = order else { return };
                    self.obey(order, answer).await;
                }
                () = self.source.wait() => {
                    let updates = self.source.take().await;
                    let change = self.crib.apply(updates);
                    for (so_far, _) in &mut self.waiting {
                        so_far.join(change.clone());
                    }
                }
            }
        }
    }

    /// An order that is waited for holds up no other: its sender hears when the source is no longer busy.
    async fn obey(&mut self, order: Order, answer: oneshot::Sender<Change>) {
        let source = self.source.as_mut();
        let (updates, waits) = match &order {
            Order::Refresh => (source.refresh().await, false),
            Order::Regrant => (source.regrant().await, false),
            Order::PutOff => (source.put_off().await, false),
            Order::Reload => (source.reload().await, true),
            Order::Configure(to) => (source.configure(to).await, false),
            Order::Want(files) => (source.want(files).await, true),
        };
        let change = self.crib.apply(updates);
        match waits {
            true => self.waiting.push((change, answer)),
            false => {
                let _ = answer.send(change);
            }
        }
    }

    fn tell_busy(&mut self) {
        let busy = self.source.is_busy();
        self.busy.set(self.number, busy);
        if !busy {
            for (change, answer) in self.waiting.drain(..) {
                let _ = answer.send(change);
            }
        }
    }

    fn tell_trouble(&self) {
        let now = self.source.trouble();
        self.trouble.send_if_modified(|told| {
            let told = &mut told[self.number];
            let differs = *told != now;
            *told = now;
            differs
        });
    }
}
