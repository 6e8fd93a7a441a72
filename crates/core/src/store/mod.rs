//! What the crib asks to be remembered, as traits and records: the store answers them, and `core` touches no disk.

mod approval;
mod call_record;
mod counters;
mod custom_tool;
mod todos;
mod worker_memory;

use std::path::Path;

pub use approval::{
    Approval, ApprovalBook, ApprovalNews, ApprovalState, Asked, Claim, Decided, Decision,
    DecisionKind, NewApproval, RunEnd, Subject,
};
pub use call_record::{CallBook, CallRecord, Level, Recorded, UNFINISHED};
pub use counters::Counters;
pub use custom_tool::{CustomTool, EnvVars, RegisteredHealth, RegisteredStatus, Registrations};
pub use todos::{Todos, TodosInMemory};
pub use worker_memory::{Descriptions, Forgetful, Logs};

/// The last good text of each tool file, so that a broken save does not take a tool away, not even over a restart.
///
/// Calls block on the disk and belong off the runtime's threads. Nothing here may fail a load: a store that cannot
/// keep a text logs it and forgets.
pub trait LastGood: Send + Sync {
    fn read(&self, folder: &Path, file: &str) -> Option<Vec<u8>>;

    /// Keeps the texts of these files, each in place of an earlier one.
    fn keep(&self, folder: &Path, texts: &[(String, Vec<u8>)]);

    fn forget(&self, folder: &Path, files: &[String]);

    /// Forgets every file of the folder that is not among `files`.
    fn retain(&self, folder: &Path, files: &[String]);
}

/// Why the store did not do what it was asked. Causes are words, so that an error can be handed to many who wait.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the store `{place}` was written by a newer Toolcrib: its format is {found}, this one knows {known}; use the newer Toolcrib, or another store"
    )]
    Newer {
        place: String,
        found: u32,
        known: u32,
    },
    #[error(
        "the store `{place}` is damaged: {why}; it was left as it is: move it away, or put a good copy in its place"
    )]
    Damaged { place: String, why: String },
    #[error("the store `{place}` can't be written: {why}")]
    ReadOnly { place: String, why: String },
    #[error("the store `{place}` has no room left: {why}; free some space on its disk")]
    Full { place: String, why: String },
    #[error("the store `{place}` is held by another process: {why}")]
    Locked { place: String, why: String },
    #[error("the store `{place}` can't be reached: {why}")]
    Unreachable { place: String, why: String },
    #[error("the store `{place}` failed: {why}")]
    Failed { place: String, why: String },
    #[error("there is already a {kind} named `{name}`")]
    Taken { kind: &'static str, name: String },
    #[error("there is no {kind} named `{name}`")]
    Missing { kind: &'static str, name: String },
    #[error(
        "the {kind} `{name}` was changed by somebody else meanwhile; read it again, then repeat the change"
    )]
    Changed { kind: &'static str, name: String },
    #[error("{what} can't be stored: {why}")]
    Unfit { what: String, why: &'static str },
}

impl StoreError {
    /// Is it the store that is in trouble, rather than the question that was wrong?
    pub fn is_trouble(&self) -> bool {
        !matches!(
            self,
            StoreError::Taken { .. }
                | StoreError::Missing { .. }
                | StoreError::Changed { .. }
                | StoreError::Unfit { .. }
        )
    }
}
