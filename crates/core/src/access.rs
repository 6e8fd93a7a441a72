//! Whether a tool may run at all.

use std::path::PathBuf;

use crate::{CallError, Ungranted};

/// May this tool run at all, before any single call is looked at?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    Open,
    /// The project it belongs to was not trusted.
    Untrusted {
        project: PathBuf,
        /// Why nobody knows whether it was, if so.
        unknown: Option<String>,
    },
    /// It declares something beyond the default policy that hasn't been granted.
    NeedsGrant(Ungranted),
    /// It comes with the crib and does nothing until a person wants it: what calls to it are told, and what to do.
    Off(Box<CallError>),
}

impl Access {
    /// Nobody said yes to this project.
    pub fn untrusted(project: impl Into<PathBuf>) -> Access {
        Access::Untrusted {
            project: project.into(),
            unknown: None,
        }
    }
}
