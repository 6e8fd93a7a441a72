//! Settings in layers: the user's file, the trusted project's file (which may only tighten), variables, flags.
//!
//! A new setting is a field in [`file::ConfigFile`], a field in [`Settings`], and `make docs`.

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod file;
mod folders;
pub(crate) mod limits;
mod output_limit;
pub mod private;
mod profiles;
pub mod project;
pub mod remotes;
mod secrets;
mod settings;
mod tighten;

pub use approvals::{ApprovalSettings, decides_at_terminal};
pub use folders::{local_folders, say_why, trust_entries};
pub use profiles::{profiles, users_profiles};
pub use project::{Project, ProjectError};
pub use settings::{DEFAULT_PORT, Flags, Settings, lets_out, store_grace, store_url};

use std::path::PathBuf;

/// Why settings can't be used: which file or variable, what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ConfigError {
    pub place: String,
    pub reason: String,
    pub hint: String,
}

impl ConfigError {
    pub fn new(
        place: impl Into<String>,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> ConfigError {
        ConfigError {
            place: place.into(),
            reason: reason.into(),
            hint: hint.into(),
        }
    }

    fn in_file(
        file: &std::path::Path,
        reason: impl Into<String>,
        hint: impl Into<String>,
    ) -> ConfigError {
        ConfigError::new(format!("`{}`", file.display()), reason, hint)
    }
}

/// Where the project's own config file lies.
pub fn project_config(project: &Project) -> PathBuf {
    project.root.join(project::MARKER).join("config.toml")
}
