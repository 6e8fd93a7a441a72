//! `make bench`: what Toolcrib costs, as ratios against floors measured in the same run. A name runs one part alone.

#![expect(clippy::print_stdout, reason = "a bench tells its figures")]

use std::process::ExitCode;

mod calls;
mod cores;
mod folders;
mod links;
mod mcp;
mod peer;
mod pii;
mod record;
mod scan;
mod scripts;
mod spawn;
mod stats;
mod workers;

fn main() -> ExitCode {
    let role = std::env::args().nth(1);
    match role.as_deref() {
        Some("__echo") => peer::serve_echo(),
        Some("__stdio") => peer::serve_stdio(),
        Some("__noop") => peer::serve_noop(),
        _ => {
            println!(
                "cores: {}",
                std::thread::available_parallelism().map_or(1, usize::from)
            );
            let steps: [(&str, fn()); 10] = [
                ("calls", calls::run),
                ("record", record::run),
                ("mcp", mcp::run),
                ("workers", workers::run),
                ("scripts", scripts::run),
                ("spawn", spawn::run),
                ("folders", folders::run),
                ("scan", scan::run),
                ("pii", pii::run),
                ("links", links::run),
            ];
            for (name, step) in steps {
                if role.as_deref().is_none_or(|wanted| wanted == name) {
                    step();
                }
            }
            ExitCode::SUCCESS
        }
    }
}
