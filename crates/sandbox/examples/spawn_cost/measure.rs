//! Start to end of `/bin/true`, plainly by `std` and through the launcher on both rungs, by turns in one run.
//!
//! `make bench` measures with the same file.

use std::fmt;
use std::time::{Duration, Instant};

use toolcrib_sandbox::{Command, Consent, Environment, Exit, Launcher, Rung};

/// What one way of starting a process took.
pub struct Cost {
    name: &'static str,
    rung: Option<Rung>,
    /// Sorted.
    times: Vec<Duration>,
}

impl Cost {
    pub fn at(&self, percent: usize) -> Duration {
        let index = self.times.len() * percent / 100;
        self.times.get(index).copied().unwrap_or_default()
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |percent| self.at(percent).as_secs_f64() * 1e3;
        let (name, rung) = (self.name, self.rung);
        write!(
            f,
            "{name:<18} p50 {:.2} ms  p90 {:.2} ms  {rung:?}",
            millis(50),
            millis(90)
        )
    }
}

/// The plain way first; nothing where a process could not be started.
pub async fn costs(launcher: &Launcher, rounds: usize) -> Option<[Cost; 3]> {
    let environment = Environment::default();
    let ways = [
        ("std, no launcher", None),
        ("namespaces", Some(launcher.clone())),
        ("group", Some(launcher.clone().at_most(Rung::Group))),
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
                return None;
            }
            times.push(begin.elapsed());
        }
    }
    let mut times = times.into_iter();
    Some(ways.map(|(name, launcher)| {
        let mut times = times.next().unwrap_or_default();
        times.sort_unstable();
        let rung = launcher.as_ref().and_then(Launcher::rung);
        Cost { name, rung, times }
    }))
}

async fn through(launcher: &Launcher, environment: &Environment) -> bool {
    match Command::new("/bin/true", "/", free())
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

/// What is compared with walls, or needs none: processes of the tests' own.
fn free() -> Consent {
    #[expect(clippy::disallowed_methods, reason = "a test's own processes")]
    Consent::from_user_settings()
}
