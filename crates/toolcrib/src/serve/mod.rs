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
pub mod lean;
pub mod lines;
pub mod mcp;
mod notices;
pub mod rest;
pub mod socket;
#[cfg(test)]
mod tests;
mod visitors;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{Answer, BoxFuture, CallError, Change, Crib, View};

use crate::grantor::Grantor;
use crate::registrar::Registrar;
use crate::store_handle::StoreHandle;
use crate::surface::SurfaceCall;

/// Looks at every source again and says what changed.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, Change> + Send + Sync>;

/// How many may listen to events at once; the other connections stay free for requests.
pub const MAX_LISTENERS: usize = 128;

/// The name of this surface as a client.
pub const CLIENT: &str = "rest";

/// How far the crib is, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readiness {
    /// The first full catalog stands.
    pub loaded: bool,
    /// What does not work, in words for people; the crib serves on without it.
    pub reasons: Vec<String>,
}

/// What the HTTP surface serves.
pub struct Served {
    pub crib: Arc<Crib>,
    pub reload: Reload,
    pub project: Option<Arc<Path>>,
    pub ready: watch::Receiver<Readiness>,
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
    /// Places for event streams, see [`MAX_LISTENERS`].
    listeners: Arc<Semaphore>,
    in_flight: watch::Sender<usize>,
}

impl Served {
    /// Serves a crib that is loaded and has nothing to reload; the `with_…` functions add the rest.
    pub fn new(crib: Arc<Crib>) -> Served {
        // A receiver keeps its last value when the sender is gone, so this crib stays ready.
        let (_, ready) = watch::channel(Readiness {
            loaded: true,
            reasons: Vec::new(),
        });
        let same = crib.clone();
        let reload: Reload = Arc::new(move || Box::pin(std::future::ready(same.apply(Vec::new()))));
        Served {
            crib,
            reload,
            project: None,
            ready,
            shutdown: CancellationToken::new(),
            given_up: CancellationToken::new(),
            config_schema: String::new(),
            memory: None,
            registrar: None,
            grantor: None,
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            in_flight: watch::Sender::new(0),
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
        self.ready = ready;
        self
    }

    #[must_use]
    pub fn with_shutdown(mut self, shutdown: CancellationToken) -> Served {
        self.shutdown = shutdown;
        self
    }

    #[must_use]
    pub fn with_memory(mut self, memory: Arc<StoreHandle>) -> Served {
        self.memory = Some(memory);
        self
    }

    #[must_use]
    pub fn with_config_schema(mut self, schema: String) -> Served {
        self.config_schema = schema;
        self
    }

    #[must_use]
    pub fn with_registrar(mut self, registrar: Registrar) -> Served {
        self.registrar = Some(Arc::new(registrar));
        self
    }

    #[must_use]
    pub fn with_grantor(mut self, grantor: Grantor) -> Served {
        self.grantor = Some(Arc::new(grantor));
        self
    }

    /// Ends when no call is running, those included whose client has gone.
    pub async fn calls_ended(&self) {
        let mut running = self.in_flight.subscribe();
        // The sender lives in `self`, so waiting can't fail.
        let _ = running.wait_for(|count| *count == 0).await;
    }

    /// What whoever asks may see and call.
    pub fn view(&self, who: &auth::Who) -> Arc<View> {
        self.crib.view(who.agent())
    }

    /// Runs a call, which counts as running from now until its future has ended or is dropped.
    pub fn call(
        self: &Arc<Self>,
        call: SurfaceCall,
    ) -> impl Future<Output = Result<Answer, CallError>> + Send + use<> {
        let running = self.begin_call();
        async move {
            let Served { crib, project, .. } = &*running.0;
            call.run(crib, project.clone()).await
        }
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
