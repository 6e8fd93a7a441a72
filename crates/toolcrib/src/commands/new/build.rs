//! Builds what a template leaves as source: one program with rustc.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use toolcrib_sandbox::{Command, Exec, Policy};

use crate::env::Env;
use crate::open::Opened;

/// A small program takes a second or two; this is for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much of what the compiler says is shown.
const SHOWN: usize = 8 * 1_024;
/// Variables by which rustup finds its compilers, and where these lie in a home unless the variables say otherwise.
const RUSTUP: [(&str, &str); 2] = [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")];
/// The variable by which the user chooses one of them.
const TOOLCHAIN: &str = "RUSTUP_TOOLCHAIN";

/// Builds `main.rs` of the folder into `tool`, or says why that failed.
pub async fn build(opened: &Opened, env: &Env, folder: &Path) -> Result<(), String> {
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    let homes = homes(env);
    // Not in the folder: there rustup would read a `rust-toolchain.toml` of a project that nobody trusted.
    let holding = opened.place.holding(policy(&folder, &homes));
    let mut command = Command::new("rustc", "/", holding)
        .args(["--edition", "2021", "-O", "-o"])
        .arg(folder.join("tool"))
        .arg(folder.join("main.rs"));
    for (name, path) in homes {
        command = command.var(name, path);
    }
    if let Some(value) = env.get(TOOLCHAIN) {
        command = command.var(TOOLCHAIN, value);
    }
    let work = async {
        let place = &opened.place;
        let child = command.spawn(&place.launcher, &place.environment).await;
        let mut child = child.map_err(|error| error.to_string())?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (_, said) = tokio::join!(head(stdout), head(stderr));
        let exit = child.wait().await.map_err(|error| error.to_string())?;
        match exit.success() {
            true => Ok(()),
            false => Err(said.trim_end().to_owned()),
        }
    };
    tokio::time::timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|_| Err(format!("rustc took longer than {} s", PATIENCE.as_secs())))
}

/// Where rustup keeps its compilers, as far as it is there.
fn homes(env: &Env) -> Vec<(&'static str, PathBuf)> {
    let home = env.get("HOME").map(PathBuf::from);
    let place = |(variable, name): (&'static str, &str)| {
        let named = env.get(variable).map(PathBuf::from);
        let path = named.or_else(|| Some(home.as_ref()?.join(name)))?;
        Some((variable, path.canonicalize().ok()?))
    };
    RUSTUP.into_iter().filter_map(place).collect()
}

/// The compiler runs a linker, and writes the one program.
fn policy(folder: &Path, homes: &[(&str, PathBuf)]) -> Policy {
    Policy {
        granted: homes.iter().map(|(_, path)| path.clone()).collect(),
        write: vec![folder.to_path_buf()],
        exec: Exec::Allowed,
        memory_mb: 4_096,
        cpu_percent: 1_600,
        processes: 256,
        tmp_mb: 1_024,
        ..Policy::default()
    }
}

/// Reads a stream to its end and keeps the beginning.
async fn head(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else {
        return String::new();
    };
    let mut buffer = [0; 4_096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        let room = SHOWN.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&buffer[..room]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
