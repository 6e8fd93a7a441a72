//! Programs as tools, and everything they may do wrong: real processes behind the real launcher, called through the
//! whole chain. Programs are Python's standard library or `sh`, written by the tests.

#![expect(clippy::unwrap_used, reason = "a test that can't go on fails")]

#[path = "support/lent.rs"]
mod lent;
#[path = "worker/memory.rs"]
mod memory;
#[path = "worker/program.rs"]
mod program;
#[path = "worker/traces.rs"]
mod traces;
#[path = "worker/waiting.rs"]
mod waiting;
#[path = "worker/world.rs"]
mod world;

#[path = "worker/cancel.rs"]
mod cancel;
#[path = "worker/entries.rs"]
mod entries;
#[path = "worker/faults_at_start.rs"]
mod faults_at_start;
#[path = "worker/faults_at_the_end.rs"]
mod faults_at_the_end;
#[path = "worker/faults_in_calls.rs"]
mod faults_in_calls;
#[path = "worker/faults_of_streams.rs"]
mod faults_of_streams;
#[path = "worker/hostile_lines.rs"]
mod hostile_lines;
#[path = "worker/pool.rs"]
mod pool;
#[path = "worker/protocol.rs"]
mod protocol;
#[path = "worker/reload.rs"]
mod reload;
#[path = "worker/retry.rs"]
mod retry;
#[path = "worker/scripts.rs"]
mod scripts;
#[path = "worker/scripts_over_time.rs"]
mod scripts_over_time;
#[path = "worker/scripts_packages.rs"]
mod scripts_packages;
#[path = "worker/scripts_side_by_side.rs"]
mod scripts_side_by_side;
#[path = "worker/scripts_taking_turns.rs"]
mod scripts_taking_turns;
#[path = "worker/scripts_typescript.rs"]
mod scripts_typescript;
#[path = "worker/shutdown.rs"]
mod shutdown;
#[path = "worker/side_by_side.rs"]
mod side_by_side;
#[path = "worker/standing.rs"]
mod standing;
