//! Builds what a template leaves as source: one program with rustc.

use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use toolcrib_sandbox::Command;

use crate::env::Env;
use crate::open::Opened;

/// A small program takes a second or two; this is for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);
/// How much of what the compiler says is shown.
const SHOWN: usize = 8 * 1_024;
/// Variables by which rustup finds its compilers.
const RUSTUP: [&str; 3] = ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"];

/// Builds `main.rs` of the folder into `tool`, or says why that failed.
pub async fn build(opened: &Opened, env: &Env, folder: &Path) -> Result<(), String> {
    // Not in the folder: there rustup would read a `rust-toolchain.toml` of a project that nobody trusted.
    let mut command = Command::new("rustc", "/")
        .args(["--edition", "2021", "-O", "-o"])
        .arg(folder.join("tool"))
        .arg(folder.join("main.rs"));
    for name in RUSTUP {
        if let Some(value) = env.get(name) {
            command = command.var(name, value);
        }
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
