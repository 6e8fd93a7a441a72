//! The place that tools run in: what the crib lends to every source and runner.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use toolcrib_core::Outputs;
use toolcrib_sandbox::{Environment, Launcher};

/// What the crib lends to its sources and runners.
pub struct Place {
    /// The project's root, where there is a project.
    pub project: Option<Arc<Path>>,
    pub launcher: Launcher,
    pub environment: Environment,
    pub outputs: Arc<dyn Outputs>,
    /// The address the crib itself listens on, once it does: no tool may call back into it.
    pub own_address: Arc<OnceLock<SocketAddr>>,
}

impl Place {
    /// The directory in which processes start: the project, or the root where there is none.
    pub fn directory(&self) -> &Path {
        self.project.as_deref().unwrap_or(Path::new("/"))
    }
}
