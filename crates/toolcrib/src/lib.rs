//! The binary's rooms: settings, commands, surfaces, and the one place that wires them together.

use std::process::ExitCode;

pub(crate) mod approver;
pub mod audit;
pub mod commands;
pub mod config;
mod counters;
pub mod env;
pub mod error;
pub mod failure;
pub(crate) mod grantor;
pub mod lint;
pub mod log;
pub mod open;
pub(crate) mod printer;
pub(crate) mod registrar;
pub mod serve;
pub(crate) mod store_handle;
pub(crate) mod surface;
pub(crate) mod truster;
mod whole_file;
pub mod wire;

/// The version that is told to clients.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Reads the command line, runs the command, and turns what came of it into an exit code.
pub fn run() -> ExitCode {
    commands::run()
}

/// Milliseconds since the epoch: the crib's clock.
pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
