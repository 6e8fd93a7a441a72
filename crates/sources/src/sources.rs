//! The running sources: a task for each, which brings what its source finds to the crib.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use toolcrib_core::{Change, Crib, Grants, Update};

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
    Install(Arc<[PathBuf]>),
}

/// Opens these sources and brings what they hold to the crib in one batch. What they are busy with is waited for; what
/// else is on its way comes later.
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
    let opening = list
        .iter_mut()
        .map(|source| source.open(&configuration, follow));
    let found = join_all(opening).await;
    bring(&crib, found.concat());
    join_all(list.iter_mut().map(|source| finish(source.as_mut(), &crib))).await;
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

    /// Installs what these files need and waits for it. Only a command that is about their tools does so: a crib that
    /// stays installs in the background.
    pub async fn install(&self, files: Vec<PathBuf>) -> Change {
        self.order(Order::Install(files.into())).await
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

/// Brings what is different to the crib.
fn bring(crib: &Crib, updates: Vec<Update>) -> Change {
    match updates.is_empty() {
        true => Change {
            version: crib.tools().version(),
            ..Change::default()
        },
        false => crib.apply(updates),
    }
}

/// Waits for what a source is busy with, and brings it.
async fn finish(source: &mut dyn Source, crib: &Crib) -> Change {
    let mut whole = Change::default();
    while source.is_busy() {
        source.wait().await;
        whole.join(bring(crib, source.take().await));
    }
    whole
}

/// One source and its task.
struct Task {
    source: Box<dyn Source>,
    crib: Arc<Crib>,
    trouble: watch::Sender<Vec<Option<String>>>,
    number: usize,
}

impl Task {
    async fn run(mut self, mut inbox: mpsc::Receiver<(Order, oneshot::Sender<Change>)>) {
        loop {
            self.tell_trouble();
            tokio::select! {
                order = inbox.recv() => {
                    let Some((order, answer)) = order else { return };
                    let change = self.obey(order).await;
                    let _ = answer.send(change);
                }
                () = self.source.wait() => {
                    let updates = self.source.take().await;
                    bring(&self.crib, updates);
                }
            }
        }
    }

    async fn obey(&mut self, order: Order) -> Change {
        let source = self.source.as_mut();
        let (updates, waits) = match &order {
            Order::Refresh => (source.refresh().await, false),
            Order::Regrant => (source.regrant().await, false),
            Order::Reload => (source.reload().await, true),
            Order::Configure(to) => (source.configure(to).await, true),
            Order::Install(files) => (source.install(files).await, true),
        };
        let mut change = bring(&self.crib, updates);
        if waits {
            change.join(finish(source, &self.crib).await);
        }
        change
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
