//! What the launcher costs: `cargo run --release -p toolcrib-sandbox --example spawn_cost [rounds]`.
//!
//! Start to end of `/bin/true`, plainly by `std` and through the launcher on both rungs, by turns in one run.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use toolcrib_sandbox::{Command, Environment, Exit, Launcher, Rung, launcher};

fn main() -> ExitCode {
    if let Some(code) = launcher::run_if_asked() {
        return code;
    }
    let rounds = std::env::args().nth(1).map_or(Ok(500), |text| text.parse());
    let runtime = tokio::runtime::Runtime::new();
    match (rounds, runtime) {
        (Ok(rounds), Ok(runtime)) => runtime.block_on(measure(rounds)),
        _ => ExitCode::FAILURE,
    }
}

#[expect(clippy::print_stdout, reason = "its figures are what it is for")]
async fn measure(rounds: usize) -> ExitCode {
    let environment = Environment::default();
    let ways = [
        ("std, no launcher", None),
        ("namespaces", Some(Launcher::current())),
        ("group", Some(Launcher::current().at_most(Rung::Group))),
    ];
    let mut times = ways.each_ref().map(|_| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for ((_, launcher), times) in ways.iter().zip(&mut times) {
            let begin = Instant::now();
            let ended = match launcher {
                Some(launcher) => through(launcher, &environment).await,
                None => plainly().await,
            };
            if !ended {
                return ExitCode::FAILURE;
            }
            times.push(begin.elapsed());
        }
    }
    for ((name, launcher), times) in ways.iter().zip(&mut times) {
        times.sort_unstable();
        let at = |percent: usize| millis(times[times.len() * percent / 100]);
        let rung = launcher.as_ref().and_then(Launcher::rung);
        println!(
            "{name:<18} p50 {:.2} ms  p90 {:.2} ms  {rung:?}",
            at(50),
            at(90)
        );
    }
    ExitCode::SUCCESS
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn through(launcher: &Launcher, environment: &Environment) -> bool {
    match Command::new("/bin/true", "/")
        .spawn(launcher, environment)
        .await
    {
        Ok(mut child) => child.wait().await.is_ok_and(Exit::success),
        Err(_) => false,
    }
}

/// With the same streams and the same way of waiting, but nobody in between.
async fn plainly() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the launcher is compared with"
    )]
    let mut command = tokio::process::Command::new("/bin/true");
    let status = command
        .current_dir("/")
        .env_clear()
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    match status.spawn() {
        Ok(mut child) => child.wait().await.is_ok_and(|status| status.success()),
        Err(_) => false,
    }
}
