//! The place that tools run in: what the crib lends to every source and runner.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use tokio::sync::watch;
use toolcrib_core::store::{Descriptions, Forgetful, Todos, TodosInMemory};
use toolcrib_core::{Events, Grants, Outputs};
use toolcrib_sandbox::{Environment, Launcher};

use crate::code::Code;
use crate::confine::Walls;
use crate::install::Installs;
use crate::put_off::Forgiven;
use crate::safe::Safe;
use crate::script::{ScriptSettings, Scripts};
use crate::worker::{Limits, Workers};

/// What the crib lends to its sources and runners.
pub struct Place {
    /// The project's root, where there is a project.
    pub project: Option<Arc<Path>>,
    pub launcher: Launcher,
    pub environment: Environment,
    pub outputs: Arc<dyn Outputs>,
    pub workers: Workers,
    pub descriptions: Arc<dyn Descriptions>,
    /// What agents have to do.
    pub todos: Arc<dyn Todos>,
    /// The crib's own variables, of which a tool gets those that it was granted.
    pub variables: Arc<BTreeMap<String, String>>,
    /// Where secrets are read.
    pub safe: Arc<Safe>,
    /// Which tools are confined.
    pub walls: Walls,
    /// What tools load code from, and what decides about them: no tool's process writes there.
    pub code: Arc<Code>,
    /// What scripts need beyond that.
    pub scripts: Scripts,
    /// What is being installed for tools.
    pub installs: Installs,
    /// Which failures of earlier processes count.
    pub forgiven: Forgiven,
    /// Do examples decide whether a changed file goes live?
    pub gate: Arc<AtomicBool>,
    /// What was granted, as it stands now. Only [`crate::Sources::regrant`] changes it later.
    pub grants: watch::Sender<Arc<Grants>>,
    /// The address the crib itself listens on, once it does: no tool may call back into it.
    pub own_address: Arc<OnceLock<SocketAddr>>,
}

impl Place {
    /// A place that remembers no description and keeps no log; the crib puts its own in.
    pub fn new(
        project: Option<Arc<Path>>,
        launcher: Launcher,
        environment: Environment,
        outputs: Arc<dyn Outputs>,
    ) -> Place {
        let workers = Workers::new(
            launcher.clone(),
            environment.clone(),
            Arc::new(Forgetful),
            Events::default(),
            Limits::default(),
        );
        let safe = Safe::new(Arc::default(), launcher.clone(), environment.clone());
        Place {
            project,
            launcher,
            environment,
            outputs,
            workers,
            descriptions: Arc::new(Forgetful),
            todos: Arc::new(TodosInMemory::default()),
            variables: Arc::default(),
            safe: Arc::new(safe),
            walls: Walls::default(),
            code: Arc::default(),
            scripts: Scripts::new(ScriptSettings::default()),
            installs: Installs::default(),
            forgiven: Forgiven::default(),
            gate: Arc::default(),
            grants: watch::Sender::new(Arc::default()),
            own_address: Arc::new(OnceLock::new()),
        }
    }

    /// The directory in which processes start: the project, or the root where there is none.
    pub fn directory(&self) -> &Path {
        self.project.as_deref().unwrap_or(Path::new("/"))
    }
}
