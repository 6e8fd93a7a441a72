//! Starting a program behind walls, against starting it plainly.

use std::time::Duration;

use toolcrib_sandbox::Launcher;

use crate::stats::{ratio, verdict};

#[path = "../../crates/sandbox/examples/spawn_cost/confined.rs"]
mod confined;

const ROUNDS: usize = 100;
/// The aim: how much longer the best rung may take.
const MORE: Duration = Duration::from_millis(15);

pub fn run() {
    println!("\nstart to end, plainly and behind walls, by turns ({ROUNDS} each)");
    for (program, args) in confined::PROGRAMS {
        if told(program, args).is_none() {
            println!("  {program}: could not be measured");
        }
    }
}

fn told(program: &str, args: &[&str]) -> Option<()> {
    let binary = std::env::current_exe().ok()?.with_file_name("toolcrib");
    let runtime = tokio::runtime::Runtime::new().ok()?;
    let launcher = Launcher::at(binary);
    let lanes = runtime.block_on(confined::lanes(&launcher, program, args, ROUNDS))?;
    let plain = lanes.first()?.at(50);
    for lane in &lanes {
        println!(
            "  {program:<8} {:<8} p50 {:>9.1?}  p90 {:>9.1?}  {:.2} times plain, {:.1?} more",
            lane.name,
            lane.at(50),
            lane.at(90),
            ratio(lane.at(50), plain),
            lane.at(50).saturating_sub(plain)
        );
    }
    if let Some(best) = lanes.get(1) {
        let more = best.at(50).saturating_sub(plain);
        println!(
            "  {program:<8} {} adds {more:.1?}, aim {MORE:?}: {}",
            best.name,
            verdict(more <= MORE)
        );
    }
    Some(())
}
