//! Packages that a script asks for, installed once per list and interpreter into an environment in the cache.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use toolcrib_sandbox::{Command, Exit};

use super::python::{Interpreter, on_path};
use crate::Place;
use crate::process::capture;

/// How long installing may take.
const LIMIT: Duration = Duration::from_secs(600);
/// How often another process that installs the same is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many lines of what the installer said are told.
const LINES: usize = 12;

/// The environment of one list of packages.
#[derive(Debug, Clone)]
pub struct Environment {
    folder: PathBuf,
    base: Interpreter,
    packages: String,
}

/// Why an environment could not be made.
pub struct NotMade {
    pub message: String,
    pub hint: String,
}

impl Environment {
    pub fn new(packages: &str, base: Interpreter, cache: &Path) -> Environment {
        let digest = Sha256::new()
            .chain_update(&base.identity)
            .chain_update([0])
            .chain_update(packages)
            .finalize();
        let name = format!("python-{}", crate::folder::hex(&digest[..12]));
        Environment {
            folder: cache.join("environments").join(name),
            base,
            packages: packages.to_owned(),
        }
    }

    /// The interpreter that finds the packages.
    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// What makes it differ from every other.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.folder.display(), self.base.identity)
    }

    fn mark(&self) -> PathBuf {
        self.folder.join(".complete")
    }

    pub fn is_ready(&self) -> bool {
        self.mark().is_file()
    }

    /// Makes the environment, unless it is there. `whose` is the file that asks for it.
    pub async fn make(&self, place: &Place, whose: &str) -> Result<(), NotMade> {
        if self.is_ready() {
            return Ok(());
        }
        let _turn = place.scripts.making.lock().await;
        let _lock = self.lock().await.map_err(|error| self.unwritable(&error))?;
        if self.is_ready() {
            return Ok(());
        }
        let told = format!("installing packages for {whose}: {}", self.told());
        tracing::info!("{told}");
        place.scripts.working.send_replace(Some(told));
        let made = tokio::time::timeout(LIMIT, self.install(place)).await;
        place.scripts.working.send_replace(None);
        let made = made.unwrap_or_else(|_| {
            Err(NotMade {
                message: format!("installing its packages took more than {} s", LIMIT.as_secs()),
                hint: "install them by hand once, so that they lie in the installer's cache; then `toolcrib reload`".to_owned(),
            })
        });
        if made.is_err() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
        made
    }

    /// The packages as a person reads them.
    fn told(&self) -> String {
        let lines = self.packages.lines().map(str::trim);
        let names: Vec<&str> = lines
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        match names.len() {
            0..=4 => names.join(", "),
            many => format!("{} and {} more", names[..3].join(", "), many - 3),
        }
    }

    /// Keeps other processes from making the same environment at the same time.
    async fn lock(&self) -> std::io::Result<File> {
        if let Some(parent) = self.folder.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let file = File::create(self.folder.with_extension("lock"))?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOOK_EVERY).await,
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    async fn install(&self, place: &Place) -> Result<(), NotMade> {
        let _ = std::fs::remove_dir_all(&self.folder);
        let base = self.base.program.as_os_str();
        let folder = self.folder.as_os_str();
        let python = self.python();
        let list = self.folder.join("requirements.txt");
        let uv = on_path("uv", place);
        let make = match &uv {
            Some(uv) => self
                .command(uv, place)
                .args(["venv", "--quiet", "--no-project", "--python"])
                .args([base, folder]),
            None => self
                .command(&self.base.program, place)
                .args(["-m", "venv"])
                .args([folder]),
        };
        self.run(
            make,
            place,
            "an environment could not be made for its packages",
        )
        .await?;
        std::fs::write(&list, &self.packages).map_err(|error| self.unwritable(&error))?;
        let install = match &uv {
            Some(uv) => self
                .command(uv, place)
                .args(["pip", "install", "--quiet", "--python"])
                .args([python.as_os_str()]),
            None => self.command(&python, place).args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
            ]),
        };
        let install = install.args(["-r"]).args([list.as_os_str()]);
        self.run(install, place, "its packages could not be installed")
            .await?;
        std::fs::write(self.mark(), "").map_err(|error| self.unwritable(&error))
    }

    /// An installer: the user's settings for indexes, proxies and certificates reach it, and nothing is fetched that
    /// was not asked for.
    fn command(&self, program: &Path, place: &Place) -> Command {
        let dir = self.folder.parent().unwrap_or(Path::new("/"));
        let mut command = Command::new(program, dir).var("UV_PYTHON_DOWNLOADS", "never");
        for (name, value) in &place.scripts.settings.installing {
            command = command.var(name, value);
        }
        command
    }

    async fn run(&self, command: Command, place: &Place, failed: &str) -> Result<(), NotMade> {
        let done = capture(command, place, "toolcrib").await;
        let done = done.map_err(|error| NotMade {
            message: format!("{failed}: {}", error.message),
            hint: error.hint.unwrap_or_default(),
        })?;
        if done.exit == Exit::Code(0) {
            return Ok(());
        }
        let said = [done.stdout.head.trim_end(), done.stderr.trim_end()].join("\n");
        let lines: Vec<&str> = said
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        Err(NotMade {
            message: format!("{failed}: {last}"),
            hint: "check the names and versions, and whether this machine can reach the package index; `toolcrib reload` tries again".to_owned(),
        })
    }

    fn unwritable(&self, error: &std::io::Error) -> NotMade {
        NotMade {
            message: format!("`{}` can't be written: {error}", self.folder.display()),
            hint: "make room, or set XDG_CACHE_HOME to a folder that this user may write"
                .to_owned(),
        }
    }
}
