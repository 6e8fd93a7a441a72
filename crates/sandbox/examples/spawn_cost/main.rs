//! What the launcher costs: `cargo run --release -p toolcrib-sandbox --example spawn_cost [rounds]`.

use std::process::ExitCode;

use toolcrib_sandbox::{Launcher, launcher};

mod measure;

#[expect(clippy::print_stdout, reason = "its figures are what it is for")]
fn main() -> ExitCode {
    if let Some(code) = launcher::run_if_asked() {
        return code;
    }
    let rounds = std::env::args().nth(1).map_or(Ok(500), |text| text.parse());
    let runtime = tokio::runtime::Runtime::new();
    let (Ok(rounds), Ok(runtime)) = (rounds, runtime) else {
        return ExitCode::FAILURE;
    };
    let Some(costs) = runtime.block_on(measure::costs(&Launcher::current(), rounds)) else {
        return ExitCode::FAILURE;
    };
    for cost in costs {
        println!("{cost}");
    }
    ExitCode::SUCCESS
}
