//! The task that keeps the catalog as the store has it, and tells the store how its tools are doing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use toolcrib_core::store::{CustomTool, RegisteredHealth, RegisteredStatus, Registrations};
use toolcrib_core::{
    Change, Crib, ErrorType, Event, Health, Problem, Rank, SourceKey, SourceKind, Standing, Update,
};

use super::{Registered, content_hash, files, key, stamp, update};
use crate::{Follow, Place};

/// How often the tools' files are looked at, and a store in trouble is asked again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take to answer before the last known registrations stand.
const PATIENCE: Duration = Duration::from_secs(5);
const HEALTHS: [RegisteredHealth; 4] = [
    RegisteredHealth::Healthy,
    RegisteredHealth::Degraded,
    RegisteredHealth::Unhealthy,
    RegisteredHealth::Unknown,
];

/// The running source. Dropping it ends its task.
pub(crate) struct Handle {
    orders: mpsc::Sender<Order>,
    enabled: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

enum Order {
    Look(oneshot::Sender<Change>),
    Enable(bool, oneshot::Sender<Change>),
    Remake(oneshot::Sender<Change>),
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Handle {
    /// Opens the source: gives what is registered now, and follows from here on.
    pub async fn open(
        registered: Registered,
        crib: Arc<Crib>,
        place: Arc<Place>,
        follow: Follow,
    ) -> (Handle, Vec<Update>) {
        let Registered {
            store,
            mut changes,
            enabled,
        } = registered;
        let enabled = Arc::new(AtomicBool::new(enabled));
        let events = crib.changes();
        let mut follower = Follower {
            crib,
            place,
            store,
            enabled: enabled.clone(),
            tools: Vec::new(),
            known: BTreeMap::new(),
            trouble: None,
        };
        changes.borrow_and_update();
        let updates = follower.look().await;
        let (orders, inbox) = mpsc::channel(16);
        let task = tokio::spawn(follower.run(inbox, changes, events, follow));
        let handle = Handle {
            orders,
            enabled,
            task,
        };
        (handle, updates)
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// Reads the registrations again, now.
    pub async fn look(&self) -> Change {
        self.order(Order::Look).await
    }

    /// Makes every tool anew, after what they were granted changed.
    pub async fn remake(&self) -> Change {
        self.order(Order::Remake).await
    }

    pub async fn enable(&self, enabled: bool) -> Change {
        if self.is_enabled() == enabled {
            return Change::default();
        }
        self.order(|answer| Order::Enable(enabled, answer)).await
    }

    async fn order(&self, order: impl FnOnce(oneshot::Sender<Change>) -> Order) -> Change {
        let (answer, answered) = oneshot::channel();
        if self.orders.send(order(answer)).await.is_err() {
            return Change::default();
        }
        answered.await.unwrap_or_default()
    }
}

struct Follower {
    crib: Arc<Crib>,
    place: Arc<Place>,
    store: Arc<dyn Registrations>,
    enabled: Arc<AtomicBool>,
    /// What was read last.
    tools: Vec<CustomTool>,
    /// What the catalog has, by name: what each was made of.
    known: BTreeMap<String, String>,
    /// Why the store could not be read, as the catalog tells it.
    trouble: Option<String>,
}

impl Follower {
    /// Reads the registrations and gives what is different.
    async fn look(&mut self) -> Vec<Update> {
        let read = match self.enabled.load(Ordering::Relaxed) {
            false => Ok(Vec::new()),
            true => match tokio::time::timeout(PATIENCE, self.store.active()).await {
                Ok(read) => read.map_err(|error| error.to_string()),
                Err(_) => Err(format!("it did not answer within {} s", PATIENCE.as_secs())),
            },
        };
        let trouble = match read {
            Ok(tools) => {
                self.tools = tools;
                None
            }
            Err(error) => Some(error),
        };
        let mut updates = self.compare().await;
        if trouble != self.trouble {
            let problems = trouble.iter().map(|error| {
                let message = format!("the registered tools can't be read: {error}");
                Problem::error(SourceKind::Registered, ErrorType::Io, message)
                    .hint("the last known ones serve until the store answers again")
                    .warning()
            });
            updates.push(Update {
                key: SourceKey("registered".into()),
                rank: Rank::Registered,
                file: None,
                tools: Vec::new(),
                problems: problems.collect(),
            });
            self.trouble = trouble;
        }
        updates
    }

    /// What is different from what the catalog has, files included.
    async fn compare(&mut self) -> Vec<Update> {
        let named: Vec<_> = self.tools.iter().map(files).collect();
        let looked = tokio::task::spawn_blocking(move || {
            let stamps = named.iter().map(|files| stamp(files));
            stamps.collect::<Vec<_>>()
        });
        // Where the disk can't be looked at, files count as they were.
        let Ok(stamps) = looked.await else {
            return Vec::new();
        };
        let mut changed = Vec::new();
        let mut known = BTreeMap::new();
        for (tool, stamp) in self.tools.iter().zip(stamps) {
            let made_of = format!("{} {} {stamp}", tool.id, tool.revision);
            if self.known.get(&tool.name) != Some(&made_of) {
                changed.push((tool.clone(), stamp));
            }
            known.insert(tool.name.clone(), made_of);
        }
        let place = self.place.clone();
        let made = tokio::task::spawn_blocking(move || {
            let make = |(tool, stamp): &(CustomTool, String)| {
                update(tool, stamp, content_hash(tool), &place)
            };
            changed.iter().map(make).collect()
        });
        let Ok(mut updates): Result<Vec<Update>, _> = made.await else {
            return Vec::new();
        };
        let gone = self.known.keys().filter(|name| !known.contains_key(*name));
        updates.extend(gone.map(|name| Update::gone(key(name), Rank::Registered)));
        self.known = known;
        updates
    }

    fn bring(&self, updates: Vec<Update>) -> Change {
        self.crib.apply(updates)
    }

    async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Order>,
        mut changes: watch::Receiver<u64>,
        mut events: broadcast::Receiver<Event>,
        follow: Follow,
    ) {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let follow = follow == Follow::Changes;
        let mut told = follow;
        loop {
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(Order::Look(answer)) => {
                        let updates = self.look().await;
                        let _ = answer.send(self.bring(updates));
                    }
                    Some(Order::Enable(enabled, answer)) => {
                        self.enabled.store(enabled, Ordering::Relaxed);
                        let updates = self.look().await;
                        let _ = answer.send(self.bring(updates));
                    }
                    Some(Order::Remake(answer)) => {
                        self.known.values_mut().for_each(String::clear);
                        let updates = self.compare().await;
                        let _ = answer.send(self.bring(updates));
                    }
                    None => return,
                },
                changed = changes.changed(), if told => {
                    told = changed.is_ok();
                    let updates = self.look().await;
                    self.bring(updates);
                }
                event = events.recv(), if follow => match event {
                    Ok(event) => self.heard(&event).await,
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
                _ = tick.tick(), if follow => {
                    let updates = match self.trouble {
                        Some(_) => self.look().await,
                        None => self.compare().await,
                    };
                    self.bring(updates);
                }
            }
        }
    }

    /// Remembers how a tool is doing. One whose restarts failed, too, leaves the catalog until it is mended.
    async fn heard(&self, event: &Event) {
        let (Event::ToolFailed { tool: name, .. }
        | Event::HealthChanged { tool: name, .. }
        | Event::StatusChanged { tool: name, .. }) = event
        else {
            return;
        };
        let Some(registration) = self.tools.iter().find(|tool| tool.name == *name) else {
            return;
        };
        let view = self.crib.owners_view();
        let Some(tool) = view
            .get(name)
            .filter(|tool| tool.source == SourceKind::Registered)
        else {
            return;
        };
        let standing = tool.run.standing();
        if let Event::HealthChanged { health, .. } = event {
            let at = standing.checked_ms.unwrap_or_else(crate::worker::now_ms);
            let noted = self.store.set_health(name, stored(*health), at).await;
            if let Err(error) = noted {
                tracing::debug!(%error, tool = name, "its health could not be noted");
            }
        }
        if is_hopeless(registration, &standing) {
            let why = standing
                .message
                .as_deref()
                .unwrap_or("it failed too often in a row");
            let noted = self
                .store
                .set_status(name, RegisteredStatus::Error, Some(why))
                .await;
            if let Err(error) = noted {
                tracing::warn!(%error, tool = name, "its status could not be noted");
            }
        }
    }
}

/// Crashes alone do not count, for a call may be to blame: it must not start any more. `maxRetries` starts in a row may
/// fail, and one more is always tried.
fn is_hopeless(registration: &CustomTool, standing: &Standing) -> bool {
    standing.failed_starts > registration.max_retries.saturating_add(1)
}

fn stored(health: Health) -> RegisteredHealth {
    let same = HEALTHS
        .into_iter()
        .find(|one| one.as_str() == health.as_str());
    same.unwrap_or_default()
}
