//! The source of registered tools: keeps the catalog as the store has it, and tells the store how its tools are doing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Interval, MissedTickBehavior};
use toolcrib_core::store::{CustomTool, RegisteredHealth, RegisteredStatus, Registrations};
use toolcrib_core::{
    BoxFuture, Crib, ErrorType, Event, Health, Problem, Rank, SourceKey, SourceKind, Standing,
    Update,
};

use super::{content_hash, key, run_files, stamp, update};
use crate::Place;
use crate::source::{Configuration, Follow, Source, Updates};

/// How often the tools' files are looked at, and a store in trouble is asked again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the store may take to answer before the last known registrations stand.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take for its tools to come with the first ones of all sources.
const AT_ONCE: Duration = Duration::from_millis(200);
const HEALTHS: [RegisteredHealth; 4] = [
    RegisteredHealth::Healthy,
    RegisteredHealth::Degraded,
    RegisteredHealth::Unhealthy,
    RegisteredHealth::Unknown,
];

/// What the store has, or why it can't be read.
type Stored = Result<Vec<CustomTool>, String>;

/// All registered tools.
pub struct RegisteredSource {
    crib: Arc<Crib>,
    place: Arc<Place>,
    store: Arc<dyn Registrations>,
    /// Rings when what is registered changed; closed, it rings no more.
    changes: Option<watch::Receiver<u64>>,
    /// How the tools are doing.
    events: Option<broadcast::Receiver<Event>>,
    tick: Interval,
    /// The first reading, where the store takes its time.
    reading: Option<JoinHandle<Stored>>,
    /// Whether there may be registered tools.
    enabled: bool,
    follow: Follow,
    due: Option<Due>,
    /// What was read last.
    tools: Vec<CustomTool>,
    /// What the catalog has, by name: what each was made of.
    known: BTreeMap<String, String>,
    /// Why the store could not be read, as the catalog tells it.
    trouble: Option<String>,
}

/// What was waited for.
enum Due {
    Read(Result<Stored, JoinError>),
    Changed,
    Heard(Event),
    Tick,
}

impl RegisteredSource {
    /// `changes` rings whenever some process changed what is registered.
    pub fn new(
        store: Arc<dyn Registrations>,
        changes: watch::Receiver<u64>,
        crib: Arc<Crib>,
        place: Arc<Place>,
    ) -> RegisteredSource {
        let mut tick = tokio::time::interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        RegisteredSource {
            events: Some(crib.changes()),
            crib,
            place,
            store,
            changes: Some(changes),
            tick,
            reading: None,
            enabled: false,
            follow: Follow::Nothing,
            due: None,
            tools: Vec::new(),
            known: BTreeMap::new(),
            trouble: None,
        }
    }

    /// Reads the registrations and gives what is different.
    async fn look(&mut self) -> Vec<Update> {
        // What is read now is newer than what was begun before.
        if let Some(reading) = self.reading.take() {
            reading.abort();
        }
        let stored = match self.enabled {
            true => read(self.store.clone()).await,
            false => Ok(Vec::new()),
        };
        self.take_in(stored).await
    }

    /// Gives what is different from what the catalog has, and tells of a store in trouble.
    async fn take_in(&mut self, stored: Stored) -> Vec<Update> {
        let trouble = match stored {
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
        let named: Vec<_> = self.tools.iter().map(run_files).collect();
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

    async fn first(&mut self, read: Result<Stored, JoinError>) -> Vec<Update> {
        self.reading = None;
        match read {
            Ok(stored) => self.take_in(stored).await,
            Err(error) => self.take_in(Err(error.to_string())).await,
        }
    }

    /// Remembers how a tool is doing. One whose restarts failed, too, leaves the catalog until it is mended.
    async fn note(&self, event: &Event) {
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

impl Source for RegisteredSource {
    fn open<'a>(&'a mut self, configuration: &'a Configuration, follow: Follow) -> Updates<'a> {
        Box::pin(async move {
            self.enabled = configuration.registered;
            self.follow = follow;
            if let Some(changes) = &mut self.changes {
                changes.borrow_and_update();
            }
            if !self.enabled {
                return Vec::new();
            }
            let mut reading = tokio::spawn(read(self.store.clone()));
            match tokio::time::timeout(AT_ONCE, &mut reading).await {
                Ok(read) => self.first(read).await,
                Err(_) => {
                    self.reading = Some(reading);
                    Vec::new()
                }
            }
        })
    }

    fn wait(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let follows = self.follow == Follow::Changes;
            loop {
                let due = tokio::select! {
                    read = joined(&mut self.reading) => Due::Read(read),
                    rings = rung(&mut self.changes), if follows => {
                        if !rings {
                            self.changes = None;
                        }
                        Due::Changed
                    }
                    event = heard(&mut self.events), if follows => match event {
                        Ok(event) => Due::Heard(event),
                        Err(RecvError::Lagged(_)) => continue,
                        Err(RecvError::Closed) => {
                            self.events = None;
                            continue;
                        }
                    },
                    _ = self.tick.tick(), if follows => Due::Tick,
                };
                self.due = Some(due);
                return;
            }
        })
    }

    fn take(&mut self) -> Updates<'_> {
        Box::pin(async move {
            match self.due.take() {
                None => Vec::new(),
                Some(Due::Read(read)) => self.first(read).await,
                Some(Due::Changed) => self.look().await,
                Some(Due::Heard(event)) => {
                    self.note(&event).await;
                    Vec::new()
                }
                Some(Due::Tick) if self.trouble.is_some() => self.look().await,
                Some(Due::Tick) => self.compare().await,
            }
        })
    }

    fn is_busy(&mut self) -> bool {
        self.reading.is_some()
    }

    fn refresh(&mut self) -> Updates<'_> {
        Box::pin(self.look())
    }

    fn regrant(&mut self) -> Updates<'_> {
        self.known.values_mut().for_each(String::clear);
        Box::pin(self.compare())
    }

    fn configure<'a>(&'a mut self, to: &'a Configuration) -> Updates<'a> {
        Box::pin(async move {
            match std::mem::replace(&mut self.enabled, to.registered) == to.registered {
                true => Vec::new(),
                false => self.look().await,
            }
        })
    }
}

/// What is registered, as soon as the store says.
async fn read(store: Arc<dyn Registrations>) -> Stored {
    match tokio::time::timeout(PATIENCE, store.active()).await {
        Ok(read) => read.map_err(|error| error.to_string()),
        Err(_) => Err(format!("it did not answer within {} s", PATIENCE.as_secs())),
    }
}

async fn joined(reading: &mut Option<JoinHandle<Stored>>) -> Result<Stored, JoinError> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

/// False when it will never ring again.
async fn rung(changes: &mut Option<watch::Receiver<u64>>) -> bool {
    match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

async fn heard(events: &mut Option<broadcast::Receiver<Event>>) -> Result<Event, RecvError> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
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
