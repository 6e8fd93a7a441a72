//! The `toolcrib` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A launcher must come before any runtime or thread.
    match toolcrib_sandbox::launcher::run_if_asked() {
        Some(code) => code,
        None => toolcrib::run(),
    }
}
