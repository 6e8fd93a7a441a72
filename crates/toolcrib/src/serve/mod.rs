//! The HTTP surface: translates requests into the crib's words and back, and decides nothing itself.
//!
//! - [`http`]: the port — connections, time limits, orderly stop.
//! - [`visitors`]: who has a place there, and for how long.
//! - [`guard`]: who may knock — Host and Origin.
//! - [`auth`]: who is let in — tokens, browsers' logins, scopes.
//! - [`feed`]: events as they go out, numbered. `earshot`: what one listener hears of them.
//! - [`running`]: calls that run now, and how they are stopped from elsewhere.
//! - [`rest`]: THE ROUTE TABLE, and a file per noun.
//!
//! [`Served`] is what all of them share. A crib alone makes one, so tests need no files and no settings.

pub mod auth;
pub mod convert;
mod earshot;
pub mod feed;
pub mod guard;
pub mod http;
pub mod mcp;
pub mod rest;
pub mod running;
pub mod socket;
#[cfg(test)]
mod tests;
mod visitors;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use toolcrib_core::{
    Answer, BoxFuture, CallError, ChainSettings, Change, Crib, Loading, Profiles, View,
};
use toolcrib_sources::Sources;
use toolcrib_store::{OutputFiles, OutputLimits};

use crate::approver::Approver;
use crate::config::{Project, users_profiles};
use crate::env::Env;
use crate::failure::Failure;
use crate::grantor::Grantor;
use crate::open::Opened;
use crate::registrar::Registrar;
use crate::store_handle::StoreHandle;
use crate::surface::SurfaceCall;
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

/// How long a request waits for the first look at the tools.
const FIRST_LOOK: Duration = Duration::from_secs(10);
/// How long a call waits for its own tool, where that is being loaded.
pub const NAMED: Duration = Duration::from_secs(30);

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

/// What the HTTP surface serves.
pub struct Served {
    pub crib: Arc<Crib>,
    pub reload: Reload,
    pub project: Option<Arc<Path>>,
    /// How far it is, as somebody who follows it says; where nobody does, it is asked.
    ready: Option<watch::Receiver<Readiness>>,
    /// How long a list waits for tools that are being loaded.
    list_wait: Duration,
    /// Fires when the server is to stop: event streams end at once, calls in flight get a grace.
    pub shutdown: CancellationToken,
    /// Fires when that grace is over: what still runs is given up, and its callers are told.
    pub given_up: CancellationToken,
    /// The JSON Schema of the config file, for editors; empty where there is none.
    pub config_schema: String,
    /// Where settings are, for what needs nothing else of them.
    env: Option<Env>,
    /// The store, for what is read from there; none in a crib of a test's.
    pub store: Option<Arc<StoreHandle>>,
    /// Where tools are registered; none where nothing is remembered.
    pub registrar: Option<Arc<Registrar>>,
    /// Where grants are given; none where nothing is remembered.
    pub grantor: Option<Arc<Grantor>>,
    /// Where people decide on calls; none where nothing is remembered.
    pub approver: Option<Arc<Approver>>,
    /// Where trust is given; none where nothing is remembered.
    pub truster: Option<Arc<Truster>>,
    /// All that the crib was wired from, for those who look it over; none where only records are offered.
    pub opened: Option<Arc<Opened>>,
    /// What goes out to all who listen to events.
    pub feed: Arc<feed::Feed>,
    /// Places for event streams, see [`MAX_LISTENERS`].
    listeners: Arc<Semaphore>,
    /// Calls that run now.
    pub running: running::RunningCalls,
    in_flight: watch::Sender<usize>,
}

impl Served {
    /// Serves a crib that is loaded and has nothing to reload; the `with_…` functions add the rest.
    pub fn new(crib: Arc<Crib>) -> Served {
        let same = crib.clone();
        let reload: Reload = Arc::new(move || Box::pin(std::future::ready(same.apply(Vec::new()))));
        Served {
            crib,
            reload,
            project: None,
            ready: None,
            list_wait: Duration::ZERO,
            shutdown: CancellationToken::new(),
            given_up: CancellationToken::new(),
            config_schema: String::new(),
            env: None,
            store: None,
            registrar: None,
            grantor: None,
            approver: None,
            truster: None,
            opened: None,
            feed: Arc::default(),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            running: running::RunningCalls::default(),
            in_flight: watch::Sender::new(0),
        }
    }

    /// Serves a crib that was wired. Who changes registrations and grants tells `following`, once there is somebody who
    /// goes on after the change.
    pub fn of(opened: &Arc<Opened>, following: &Arc<OnceLock<Sources>>) -> Served {
        let crib = opened.crib.clone();
        let root = opened
            .project
            .as_ref()
            .map(|project| Arc::from(project.root.as_path()));
        let desk = Some(opened.desk.clone());
        let approver = Approver::new(opened.store.clone(), crib.clone(), desk, root);
        Served {
            approver: Some(Arc::new(approver)),
            registrar: Some(Arc::new(Registrar::new(opened, following.clone()))),
            grantor: Some(Arc::new(Grantor::new(opened, following.clone()))),
            opened: Some(opened.clone()),
            list_wait: opened.settings.list_wait,
            ..Served::new(crib).with_records(&opened.env, &opened.store, opened.project.as_ref())
        }
    }

    /// Serves what is in the store alone: trust, tokens, the record of calls. No settings have to be good for that, and no
    /// tool is there.
    pub fn records(
        env: &Env,
        store: &Arc<StoreHandle>,
        data: &Path,
        project: Option<&Project>,
    ) -> Served {
        let outputs = OutputFiles::in_folder(data, OutputLimits::default());
        let profiles = Profiles::everybody(ChainSettings::new(Duration::ZERO));
        let crib = Crib::new(Arc::new(outputs), crate::now_ms, profiles);
        Served::new(Arc::new(crib)).with_records(env, store, project)
    }

    fn with_records(
        self,
        env: &Env,
        store: &Arc<StoreHandle>,
        project: Option<&Project>,
    ) -> Served {
        let truster = Truster::new(env.clone(), store.clone(), project.cloned());
        let root = project.map(|project| Arc::from(project.root.as_path()));
        let approver = Approver::new(store.clone(), self.crib.clone(), None, root);
        Served {
            approver: Some(Arc::new(approver)),
            env: Some(env.clone()),
            store: Some(store.clone()),
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
    pub fn with_list_wait(mut self, wait: Duration) -> Served {
        self.list_wait = wait;
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

    /// Waits for the first look at the tools, which takes a moment. Who would have to wait long is told so: there is no list
    /// of tools that nobody has looked for.
    pub async fn looked(&self) -> Result<(), CallError> {
        if self.crib.loading() > Loading::Opening {
            return Ok(());
        }
        let looked = self.crib.loaded(Loading::Describing);
        let looked = tokio::time::timeout(FIRST_LOOK, looked).await;
        looked.map_err(|_| {
            CallError::unavailable("the crib is starting and has not seen the tools yet")
                .hint("ask again in a moment; `/readyz` says when it is ready")
        })
    }

    /// Waits for tools that are being loaded, as long as a list does, and says whether all are there.
    pub async fn settled(&self) -> bool {
        let whole = self.crib.loaded(Loading::Done);
        tokio::time::timeout(self.list_wait, whole).await.is_ok()
    }

    /// Waits for this one tool, where that is being loaded, and for nothing else.
    pub async fn described(&self, agent: &str, tool: &str) {
        if self.crib.loading() == Loading::Done {
            return;
        }
        let patience = match self.crib.view(agent).get(tool) {
            Some(_) => NAMED,
            None => self.list_wait,
        };
        let described = self.crib.described(agent, tool);
        let _ = tokio::time::timeout(patience, described).await;
    }

    /// The same for who keeps the crib and means no agent.
    pub async fn described_to_keeper(&self, tool: &str) {
        if self.crib.loading() == Loading::Done {
            return;
        }
        let patience = match self.crib.owners_view().get(tool) {
            Some(_) => NAMED,
            None => self.list_wait,
        };
        let _ = tokio::time::timeout(patience, self.crib.described_to_owner(tool)).await;
    }

    /// Ends when no call is running, those included whose client has gone.
    pub async fn calls_ended(&self) {
        let mut running = self.in_flight.subscribe();
        // The sender lives in `self`, so waiting can't fail.
        let _ = running.wait_for(|count| *count == 0).await;
    }

    /// Ends when nobody has to wait any longer once a stop was asked for: what was in flight has had its grace, and who
    /// was told that it is given up the time to read that.
    pub async fn over(&self) {
        let grace = http::GRACE + http::LAST_WORDS;
        let _ = tokio::time::timeout(grace, self.given_up.cancelled()).await;
        self.given_up.cancel();
        // sleeps: how long the last answers may take to be read
        tokio::time::sleep(http::LAST_WORDS).await;
    }

    /// Says why no caller can be this agent, if so.
    pub fn admits(&self, agent: &str) -> Result<(), CallError> {
        match &self.env {
            // A crib of records has no settings.
            Some(env) if self.opened.is_none() => {
                users_profiles(env).map_err(Failure::from)?.admits(agent)
            }
            _ => self.crib.admits(agent),
        }
    }

    /// What whoever asks may look at: everything for who keeps the crib, and what their agent sees for everybody else. It
    /// is the only way in which a route gets at more than one agent's tools.
    pub fn kept(&self, who: &auth::Who) -> Arc<View> {
        match who.keeps() {
            true => self.crib.owners_view(),
            false => self.view(who),
        }
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
        let call = call.until(self.given_up.clone());
        let listed = self.running.list(call.id(), call.caller());
        let stopped = running::stopped(call.names().1);
        async move {
            let work = async {
                let mut waiting = Waiting {
                    served: &running.0,
                    call: Some(call),
                };
                let Some(call) = waiting.known().await else {
                    return Err(CallError::internal("the call is gone"));
                };
                let Served { crib, project, .. } = &*running.0;
                call.run(crib, project.clone()).await
            };
            // Dropping a call cancels it; one that has ended has ended.
            tokio::select! {
                biased;
                ended = work => ended,
                () = listed.stop.cancelled() => Err(stopped),
            }
        }
    }

    /// Counts a call until the returned guard is dropped.
    fn begin_call(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|count| *count += 1);
        InFlight(self.clone())
    }
}

/// A call that waits until its tool is known. Given up meanwhile, it is recorded like any other.
struct Waiting<'a> {
    served: &'a Served,
    call: Option<SurfaceCall>,
}

impl Waiting<'_> {
    /// The call, as soon as it can run or be told that it can't.
    async fn known(&mut self) -> Option<SurfaceCall> {
        let (agent, tool) = self.call.as_ref()?.names();
        tokio::select! {
            biased;
            () = self.served.described(agent, tool) => {}
            () = self.served.given_up.cancelled() => {}
        }
        self.call.take()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            let Served { crib, project, .. } = self.served;
            crib.given_up(&call.request(project.clone()));
        }
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
