//! Start to end of real programs, plainly by `std` and behind walls on every rung, by turns in one run.
//!
//! `make bench` measures with the same file.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use toolcrib_sandbox::{Command, Environment, Exit, Launcher, Policy, Rung};

/// What is started: the smallest program, and the two interpreters.
pub const PROGRAMS: [(&str, &[&str]); 3] = [
    ("true", &[]),
    ("python3", &["-c", "pass"]),
    ("node", &["-e", "0"]),
];
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What one program took in one way.
pub struct Lane {
    pub name: String,
    /// Sorted.
    times: Vec<Duration>,
}

impl Lane {
    pub fn at(&self, percent: usize) -> Duration {
        let index = self.times.len() * percent / 100;
        self.times.get(index).copied().unwrap_or_default()
    }
}

/// One program, plainly first, then on each rung that the machine has; nothing where it can't be started.
pub async fn lanes(
    launcher: &Launcher,
    program: &str,
    args: &[&str],
    rounds: usize,
) -> Option<Vec<Lane>> {
    let folder = PathBuf::from("/usr/share");
    let mut ways = vec![("plain".to_owned(), None)];
    for rung in [Rung::Namespaces, Rung::NamespacesOnly, Rung::Group] {
        let held = launcher.clone().at_most(rung);
        if held.survey().await.ok()?.rung == Some(rung) {
            ways.push((format!("rung {}", rung.letter()), Some(held)));
        }
    }
    let mut times: Vec<Vec<Duration>> = ways.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for _ in 0..rounds {
        for ((_, launcher), times) in ways.iter().zip(&mut times) {
            let begin = Instant::now();
            let ended = match launcher {
                Some(launcher) => confined(launcher, program, args, &folder).await,
                None => plainly(program, args, &folder).await,
            };
            if !ended {
                return None;
            }
            times.push(begin.elapsed());
        }
    }
    let lanes = ways.into_iter().zip(times).map(|((name, _), mut times)| {
        times.sort_unstable();
        Lane { name, times }
    });
    Some(lanes.collect())
}

async fn confined(launcher: &Launcher, program: &str, args: &[&str], folder: &Path) -> bool {
    let environment = Environment::from_vars([("PATH".into(), PATH.into())]);
    let command =
        Command::new(program, folder, Policy::default_for(folder, None)).args(args.iter().copied());
    match command.spawn(launcher, &environment).await {
        Ok(mut child) => child.wait().await.is_ok_and(Exit::success),
        Err(_) => false,
    }
}

/// With the same streams and the same way of waiting, but nobody in between.
async fn plainly(program: &str, args: &[&str], folder: &Path) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the walls are compared with"
    )]
    let mut command = tokio::process::Command::new(program);
    command
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", PATH)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    match command.spawn() {
        Ok(mut child) => child.wait().await.is_ok_and(|status| status.success()),
        Err(_) => false,
    }
}
