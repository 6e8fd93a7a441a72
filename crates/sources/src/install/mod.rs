//! Installing what tools need: one state machine for all of it.
//!
//! wanted → granted → installing, in the background → ready, or failed and tried again after a while.
//!
//! Who wants an [`Install`] asks [`Installs::want`], which answers at once; when something ends, [`Installs::ended`] tells,
//! and the files that wait are looked at again. Nothing is installed that a person did not grant (`install`), and nothing
//! of a package runs meanwhile unless `exec` was granted besides.
//!
//! * [`packages`]: what a list of packages may hold.
//! * [`index`]: where packages come from, and what an installer is shown of the user's settings.
//! * [`python`], [`node`]: one file per kind of environment. A new one is a function that makes an [`Install`].
//! * [`run`]: one install, behind its walls.
//!
//! Why: `docs/design/0014-scripts.md`.

pub mod index;
mod node;
pub mod packages;
mod python;
mod run;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use toolcrib_sandbox::Exec;

use crate::Place;
use crate::put_off::pause;
use crate::worker::now_ms;
use index::Installer;
use packages::Packages;

/// What may run while packages are installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nothing of theirs: only what is ready to be unpacked is taken.
    Unpacked,
    /// Their own build scripts, behind the same walls.
    Built,
}

/// Packages in an environment of their own: what they are, which programs install them, and where.
#[derive(Debug, Clone)]
pub struct Install {
    /// All that is written. Only the crib makes it and says when it is whole.
    pub folder: PathBuf,
    identity: String,
    packages: String,
    installer: Installer,
    mode: Mode,
    /// Files that are put into the folder before the first step.
    files: Vec<(&'static str, String)>,
    /// Folders in it that nobody needs afterwards.
    waste: &'static [&'static str],
    /// What the first step makes and no package may change: it says which interpreter runs, and what that reads.
    frame: &'static [&'static str],
    steps: Vec<Step>,
}

/// One run of a program.
#[derive(Debug, Clone)]
struct Step {
    program: PathBuf,
    args: Vec<OsString>,
    vars: Vec<(&'static str, OsString)>,
    exec: Exec,
    /// Does it ask the index?
    fetches: bool,
    /// What is said when it does not work.
    failed: &'static str,
}

/// Why packages are not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotInstalled {
    pub message: String,
    pub hint: String,
}

/// How far an install has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Ready,
    /// It is under way; [`Installs::ended`] tells.
    Installing,
    /// A command that ends soon begins it only for the tool that it is about.
    NotBegun,
    Failed(NotInstalled),
}

/// An install that failed: kept beside its folder, so that every process knows.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FailedInstall {
    message: String,
    hint: String,
    tries: u32,
    /// When, in milliseconds since the epoch.
    at: u64,
    /// What wanted it: something else may have luck at once.
    content: String,
}

/// Every install of this process that is not ready.
pub struct Installs {
    underway: Mutex<HashSet<PathBuf>>,
    /// Files whose installs were not begun, and those that may be.
    idle: Mutex<HashSet<PathBuf>>,
    wanted: Mutex<HashSet<PathBuf>>,
    /// Is this a crib that stays, so that all may be begun?
    stays: AtomicBool,
    /// How many have ended, or are due to be tried again.
    ended: watch::Sender<u64>,
    /// One at a time is installed.
    turn: tokio::sync::Mutex<()>,
}

impl Default for Installs {
    fn default() -> Installs {
        Installs {
            underway: Mutex::default(),
            idle: Mutex::default(),
            wanted: Mutex::default(),
            stays: AtomicBool::new(false),
            ended: watch::Sender::new(0),
            turn: tokio::sync::Mutex::new(()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Installs {
    /// This crib stays: whatever is granted is installed in the background.
    pub fn attend(&self) {
        self.stays.store(true, Ordering::Relaxed);
    }

    /// Says how far an install has come, and begins it where it may be begun. The caller has seen that it is granted:
    /// `file` wants it, with this content.
    pub fn want(
        &self,
        install: &Install,
        file: &Path,
        content: &str,
        place: &Arc<Place>,
    ) -> Progress {
        if install.is_ready() {
            return Progress::Ready;
        }
        let mut underway = lock(&self.underway);
        if underway.contains(&install.folder) {
            return Progress::Installing;
        }
        let before = install.failed();
        if let Some(failed) = &before
            && failed.content == content
            && place.forgiven.holds(failed.at, failed.tries)
        {
            return Progress::Failed(failed.why());
        }
        let tries = before.map_or(0, |failed| failed.tries);
        let may_begin = self.stays.load(Ordering::Relaxed) || lock(&self.wanted).contains(file);
        if !may_begin {
            lock(&self.idle).insert(file.to_path_buf());
            return Progress::NotBegun;
        }
        lock(&self.idle).remove(file);
        underway.insert(install.folder.clone());
        drop(underway);
        let (place, install, content) = (place.clone(), install.clone(), content.to_owned());
        let whose = file.file_name().unwrap_or_default();
        let whose = whose.to_string_lossy().into_owned();
        tokio::spawn(async move {
            let installs = &place.installs;
            let made = {
                let _turn = installs.turn.lock().await;
                run::install(&install, &whose, &place).await
            };
            let failed = made.err().map(|why| FailedInstall {
                message: why.message,
                hint: why.hint,
                tries: tries.saturating_add(1),
                at: now_ms(),
                content,
            });
            installs.end(&install, failed).await;
        });
        Progress::Installing
    }

    /// Takes in how an install ended. Where it failed, those who wait are told once more when it is due again.
    async fn end(&self, install: &Install, failed: Option<FailedInstall>) {
        install.note(failed.as_ref());
        lock(&self.underway).remove(&install.folder);
        self.tell();
        if let Some(failed) = failed {
            let pause = pause(failed.tries);
            tracing::warn!(
                folder = %install.folder.display(),
                seconds = pause.as_secs(),
                "packages could not be installed; they are tried again later: {}",
                failed.message
            );
            tokio::time::sleep(pause).await;
            self.tell();
        }
    }

    fn tell(&self) {
        self.ended.send_modify(|count| *count += 1);
    }

    /// Tells whenever something ended, or is due to be tried again.
    pub fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Is something being installed?
    pub fn is_busy(&self) -> bool {
        !lock(&self.underway).is_empty()
    }

    /// Files whose packages wait for somebody who needs them.
    pub fn idle(&self) -> Vec<PathBuf> {
        lock(&self.idle).iter().cloned().collect()
    }

    /// What these files need may be begun.
    pub fn allow(&self, files: &[PathBuf]) {
        lock(&self.wanted).extend(files.iter().cloned());
    }

    /// Does somebody wait for the tools of this file?
    pub fn is_wanted(&self, file: &Path) -> bool {
        lock(&self.wanted).contains(file)
    }
}

impl FailedInstall {
    fn why(&self) -> NotInstalled {
        NotInstalled {
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}

impl Install {
    fn new(
        kind: &str,
        base: &str,
        packages: &Packages,
        installer: Installer,
        mode: Mode,
        place: &Place,
    ) -> Install {
        let digest = Sha256::new()
            .chain_update(base)
            .chain_update([0])
            .chain_update(packages.text())
            .chain_update([0])
            .chain_update(format!("{mode:?} {}", installer.name()))
            .finalize();
        let cache = &place.scripts.settings.cache;
        // What is written is named by where it really lies.
        let cache = cache.canonicalize().unwrap_or_else(|_| cache.clone());
        let name = format!("{kind}-{}", crate::hex(&digest[..12]));
        let folder = cache.join("environments").join(name);
        Install {
            identity: format!("{}:{base}", folder.display()),
            folder,
            packages: packages.shown(),
            installer,
            mode,
            files: Vec::new(),
            waste: &[],
            frame: &[],
            steps: Vec::new(),
        }
    }

    /// What makes it differ from every other.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The packages as a person reads them.
    pub fn packages(&self) -> &str {
        &self.packages
    }

    /// A file beside the folder: who writes the folder does not write it.
    fn beside(&self, end: &str) -> PathBuf {
        PathBuf::from(format!("{}.{end}", self.folder.display()))
    }

    pub fn is_ready(&self) -> bool {
        self.beside("complete").is_file() && self.folder.is_dir()
    }

    /// How it failed last, in whichever process that was.
    fn failed(&self) -> Option<FailedInstall> {
        let text = std::fs::read(self.beside("failed")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Notes how it ended, for other processes.
    fn note(&self, failed: Option<&FailedInstall>) {
        let path = self.beside("failed");
        let noted = match failed {
            Some(failed) => serde_json::to_vec(failed)
                .map_err(std::io::Error::other)
                .and_then(|text| std::fs::write(&path, text)),
            None => match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            },
        };
        if let Err(error) = noted {
            tracing::debug!(%error, path = %path.display(), "how an install ended could not be noted");
        }
    }
}

impl Step {
    fn new(program: &Path, failed: &'static str) -> Step {
        Step {
            program: program.to_path_buf(),
            args: Vec::new(),
            vars: Vec::new(),
            exec: Exec::Once,
            fetches: false,
            failed,
        }
    }

    fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Step {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    fn var(mut self, name: &'static str, value: impl Into<OsString>) -> Step {
        self.vars.push((name, value.into()));
        self
    }

    fn fetches(self) -> Step {
        Step {
            fetches: true,
            ..self
        }
    }

    fn executes(self, executes: bool) -> Step {
        let exec = match executes {
            true => Exec::Allowed,
            false => Exec::Once,
        };
        Step { exec, ..self }
    }
}

const NOT_MADE: &str = "an environment could not be made for its packages";
const NOT_FETCHED: &str = "its packages could not be installed";
