//! The HTTP surface: translates requests into the crib's words and back, and decides nothing itself.
//!
//! - [`http`]: the port — connections, time limits, orderly stop.
//! - [`visitors`]: who has a place there, and for how long.
//! - [`guard`]: who may knock — Host and Origin.
//! - [`auth`]: who is let in — tokens, browsers' logins, scopes.
//! - [`rest`]: THE ROUTE TABLE, and a file per noun.
//!
//! [`Served`] is what all of them share. A crib alone makes one, so tests need no files and no settings.

pub mod auth;
pub mod convert;
pub mod guard;
pub mod http;
pub mod mcp;
pub mod rest;
pub mod socket;
#[cfg(test)]
mod tests;
mod visitors;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use axum::body::Bytes;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{BoxFuture, Catalog, Change, Crib};
use toolcrib_sources::Sources;
use toolcrib_store::{OutputFiles, OutputLimits};

use crate::config::Project;
use crate::env::Env;
use crate::grantor::Grantor;
use crate::open::Opened;
use crate::registrar::Registrar;
use crate::store_handle::StoreHandle;
use crate::truster::Truster;

/// Looks at every source again and says what changed.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, Change> + Send + Sync>;

/// Reloads these sources, once they are there.
pub fn reload(sources: Arc<OnceLock<Sources>>) -> Reload {
    Arc::new(move || {
        let sources = sources.clone();
        Box::pin(async move {
            match sources.get() {
                Some(sources) => sources.reload().await,
                None => Change::default(),
            }
        })
    })
}

/// How many may listen to events at once; the other connections stay free for requests.
pub const MAX_LISTENERS: usize = 128;

/// The name of this surface as a client.
pub const CLIENT: &str = "rest";
/// The name of the owner's own commands, which come this way too.
pub const COMMANDS: &str = "cli";

/// How far the crib is, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// The first full catalog stands.
    pub loaded: bool,
    /// What does not work, in words for people; the crib serves on without it.
    pub reasons: Vec<String>,
}

/// What is made of a catalog once per version, when first asked for. Two may make it at the same time; they make the same.
struct PerVersion<T>(ArcSwapOption<(u64, T)>);

impl<T> Default for PerVersion<T> {
    fn default() -> PerVersion<T> {
        PerVersion(ArcSwapOption::empty())
    }
}

impl<T> PerVersion<T> {
    fn of(&self, catalog: &Catalog, make: impl FnOnce() -> T) -> Arc<(u64, T)> {
        match self.0.load_full() {
            Some(made) if made.0 == catalog.version() => made,
            _ => {
                let made = Arc::new((catalog.version(), make()));
                self.0.store(Some(made.clone()));
                made
            }
        }
    }
}

/// What the HTTP surface serves.
pub struct Served {
    pub crib: Arc<Crib>,
    pub reload: Reload,
    pub project: Option<Arc<Path>>,
    /// How far it is, as somebody who follows it says; where nobody does, it is asked.
    ready: Option<watch::Receiver<Readiness>>,
    /// Fires when the server is to stop: event streams end at once, calls in flight get a grace.
    pub shutdown: CancellationToken,
    /// Fires when that grace is over: what still runs is given up, and recorded as such.
    pub given_up: CancellationToken,
    /// The JSON Schema of the config file, for editors; empty where there is none.
    pub config_schema: String,
    /// The store, for what is read from there; none in a crib of a test's.
    pub memory: Option<Arc<StoreHandle>>,
    /// Where tools are registered; none where nothing is remembered.
    pub registrar: Option<Arc<Registrar>>,
    /// Where grants are given; none where nothing is remembered.
    pub grantor: Option<Arc<Grantor>>,
    /// Where trust is given; none where nothing is remembered.
    pub truster: Option<Arc<Truster>>,
    /// All that the crib was wired from, for those who look it over; none where only records are offered.
    pub opened: Option<Arc<Opened>>,
    /// Places for event streams, see [`MAX_LISTENERS`].
    listeners: Arc<Semaphore>,
    in_flight: watch::Sender<usize>,
    /// The whole tool list as bytes, made once per catalog version and change of a tool's standing.
    listed: ArcSwapOption<((u64, u64), Bytes)>,
}

impl Served {
    /// Serves a crib that is loaded and has nothing to reload; the `with_…` functions add the rest.
    pub fn new(crib: Arc<Crib>) -> Served {
        let same = crib.clone();
        let reload: Reload = Arc::new(move || {
            let version = same.tools().version();
            Box::pin(std::future::ready(Change {
                version,
                ..Change::default()
            }))
        });
        Served {
            crib,
            reload,
            project: None,
            ready: None,
            shutdown: CancellationToken::new(),
            given_up: CancellationToken::new(),
            config_schema: String::new(),
            memory: None,
            registrar: None,
            grantor: None,
            truster: None,
            opened: None,
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            in_flight: watch::Sender::new(0),
            listed: ArcSwapOption::empty(),
        }
    }

    /// Serves a crib that was wired. Who changes registrations and grants tells `following`, once there is somebody who
    /// goes on after the change.
    pub fn of(opened: &Arc<Opened>, following: &Arc<OnceLock<Sources>>) -> Served {
        let crib = opened.crib.clone();
        Served {
            registrar: Some(Arc::new(Registrar::new(opened, following.clone()))),
            grantor: Some(Arc::new(Grantor::new(opened, following.clone()))),
            opened: Some(opened.clone()),
            ..Served::new(crib).with_records(&opened.env, &opened.memory, opened.project.as_ref())
        }
    }

    /// Serves what is in the store alone: trust, tokens, the record of calls. No settings have to be good for that, and no
    /// tool is there.
    pub fn records(
        env: &Env,
        memory: &Arc<StoreHandle>,
        data: &Path,
        project: Option<&Project>,
    ) -> Served {
        let outputs = OutputFiles::in_folder(data, OutputLimits::default());
        let crib = Crib::new(Arc::new(outputs), crate::now_ms, Duration::ZERO);
        Served::new(Arc::new(crib)).with_records(env, memory, project)
    }

    fn with_records(
        self,
        env: &Env,
        memory: &Arc<StoreHandle>,
        project: Option<&Project>,
    ) -> Served {
        let truster = Truster::new(env.clone(), memory.clone(), project.cloned());
        Served {
            memory: Some(memory.clone()),
            truster: Some(Arc::new(truster)),
            ..self.with_project(project.map(|project| project.root.clone()))
        }
    }

    #[must_use]
    pub fn with_reload(mut self, reload: Reload) -> Served {
        self.reload = reload;
        self
    }

    #[must_use]
    pub fn with_project(mut self, project: Option<PathBuf>) -> Served {
        self.project = project.map(Arc::from);
        self
    }

    #[must_use]
    pub fn with_readiness(mut self, ready: watch::Receiver<Readiness>) -> Served {
        self.ready = Some(ready);
        self
    }

    #[must_use]
    pub fn with_shutdown(mut self, shutdown: CancellationToken) -> Served {
        self.shutdown = shutdown;
        self
    }

    #[must_use]
    pub fn with_config_schema(mut self, schema: String) -> Served {
        self.config_schema = schema;
        self
    }

    /// How far the crib is, and what is wrong with it.
    pub async fn readiness(&self) -> Readiness {
        match (&self.ready, &self.opened) {
            (Some(ready), _) => ready.borrow().clone(),
            (None, opened) => Readiness {
                loaded: true,
                reasons: match opened {
                    Some(opened) => opened.trouble().await,
                    None => Vec::new(),
                },
            },
        }
    }

    /// Ends when no call is running, those included whose client has gone.
    pub async fn calls_ended(&self) {
        let mut running = self.in_flight.subscribe();
        // The sender lives in `self`, so waiting can't fail.
        let _ = running.wait_for(|count| *count == 0).await;
    }

    /// Counts a call until the returned guard is dropped.
    fn begin_call(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|count| *count += 1);
        InFlight(self.clone())
    }
}

/// A call that is running.
struct InFlight(Arc<Served>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0
            .in_flight
            .send_modify(|count| *count = count.saturating_sub(1));
    }
}
