//! What the launcher costs: `cargo run --release -p toolcrib-sandbox --example spawn_cost [rounds]`.

use std::process::ExitCode;

use toolcrib_sandbox::{Launcher, launcher};

mod confined;
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
    for (program, args) in confined::PROGRAMS {
        let launcher = Launcher::current();
        let lanes = confined::lanes(&launcher, program, args, rounds / 5);
        for lane in runtime.block_on(lanes).unwrap_or_default() {
            let millis = |percent| lane.at(percent).as_secs_f64() * 1e3;
            let name = &lane.name;
            println!(
                "{program:<8} {name:<8} p50 {:.2} ms  p90 {:.2} ms",
                millis(50),
                millis(90)
            );
        }
    }
    ExitCode::SUCCESS
}
