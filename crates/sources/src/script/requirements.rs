//! Packages that a script asks for, installed once per list and interpreter into an environment in the cache.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolcrib_sandbox::{Command, Exit};

use super::interpreter::{Interpreter, on_path};
use crate::process::capture;
use crate::{Place, confine};

/// How long installing may take.
const LIMIT: Duration = Duration::from_secs(600);
/// How often another process that installs the same is looked after.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many lines of what the installer said are told.
const LINES: usize = 12;

/// The environment of one list of packages.
#[derive(Debug, Clone)]
pub struct Environment {
    pub folder: PathBuf,
    base: String,
    /// The packages as a person reads them.
    told: String,
    /// A file that has to be there before the first step.
    list: (PathBuf, String),
    steps: Vec<Step>,
}

/// One run of an installer.
#[derive(Debug, Clone)]
struct Step {
    program: PathBuf,
    args: Vec<OsString>,
    /// What is said when it does not work.
    failed: &'static str,
}

impl Step {
    fn new(program: &Path, failed: &'static str) -> Step {
        Step {
            program: program.to_path_buf(),
            args: Vec::new(),
            failed,
        }
    }

    fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Step {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }
}

/// Why an environment could not be made.
pub struct NotMade {
    pub message: String,
    pub hint: String,
}

const NOT_MADE: &str = "an environment could not be made for its packages";
const NOT_INSTALLED: &str = "its packages could not be installed";

impl Environment {
    fn new(kind: &str, packages: &str, base: &Interpreter, place: &Place) -> Environment {
        let digest = Sha256::new()
            .chain_update(&base.identity)
            .chain_update([0])
            .chain_update(packages)
            .finalize();
        let name = format!("{kind}-{}", crate::folder::hex(&digest[..12]));
        let cache = &place.scripts.settings.cache;
        Environment {
            folder: cache.join("environments").join(name),
            base: base.identity.clone(),
            told: String::new(),
            list: (PathBuf::new(), packages.to_owned()),
            steps: Vec::new(),
        }
    }

    /// An environment of Python packages, by `uv` where there is one, else by the interpreter's own `pip`.
    pub fn python(packages: &str, base: &Interpreter, place: &Place) -> Environment {
        let mut made = Environment::new("python", packages, base, place);
        let folder = made.folder.clone();
        let list = folder.with_extension("txt");
        let python = folder.join("bin/python");
        made.steps = match on_path("uv", place) {
            Some(uv) => vec![
                Step::new(&uv, NOT_MADE)
                    .args(["venv", "--quiet", "--no-project", "--python"])
                    .args([&base.program, &folder]),
                Step::new(&uv, NOT_INSTALLED)
                    .args(["pip", "install", "--quiet", "--python"])
                    .args([&python])
                    .args(["-r"])
                    .args([&list]),
            ],
            None => vec![
                Step::new(&base.program, NOT_MADE)
                    .args(["-m", "venv"])
                    .args([&folder]),
                Step::new(&python, NOT_INSTALLED)
                    .args(["-m", "pip", "install", "--quiet", "--no-input"])
                    .args(["--disable-pip-version-check", "-r"])
                    .args([&list]),
            ],
        };
        let lines = packages.lines().map(str::trim);
        let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        made.told = told(&names.collect::<Vec<_>>());
        made.list.0 = list;
        made
    }

    /// A `node_modules` folder, by Bun where it runs the tool, else by npm. Nothing of a package runs meanwhile.
    pub fn node(packages: &str, base: &Interpreter, place: &Place) -> Environment {
        let mut made = Environment::new("node", packages, base, place);
        let folder = made.folder.clone();
        let npm = match base.name().contains("bun") {
            true => base.program.clone(),
            false => on_path("npm", place).unwrap_or_else(|| PathBuf::from("npm")),
        };
        let install = Step::new(&npm, NOT_INSTALLED);
        made.steps = vec![match base.name().contains("bun") {
            true => install
                .args([
                    "install",
                    "--production",
                    "--ignore-scripts",
                    "--silent",
                    "--cwd",
                ])
                .args([&folder]),
            false => install
                .args([
                    "install",
                    "--omit=dev",
                    "--ignore-scripts",
                    "--no-audit",
                    "--no-fund",
                ])
                .args(["--loglevel=error", "--no-update-notifier", "--prefix"])
                .args([&folder]),
        }];
        let package: Value = serde_json::from_str(packages).unwrap_or_default();
        let names = package.get("dependencies").and_then(Value::as_object);
        let names: Vec<&str> = names
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        made.told = told(&names);
        made.list.0 = folder.join("package.json");
        made
    }

    /// What makes it differ from every other.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.folder.display(), self.base)
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
        let told = format!("installing packages for {whose}: {}", self.told);
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
        let (list, text) = &self.list;
        let parent = list.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(list, text));
        written.map_err(|error| self.unwritable(&error))?;
        for step in &self.steps {
            self.run(step, place).await?;
        }
        std::fs::write(self.mark(), "").map_err(|error| self.unwritable(&error))
    }

    /// Runs an installer: the user's settings for indexes, proxies and certificates reach it, and nothing is fetched
    /// that was not asked for.
    async fn run(&self, step: &Step, place: &Place) -> Result<(), NotMade> {
        let dir = self.folder.parent().unwrap_or(Path::new("/"));
        let cache = &place.scripts.settings.cache;
        let (settings, read) = own_settings(place);
        let holding = place.holding(confine::installing(cache, read));
        let mut command = Command::new(&step.program, dir, holding)
            .args(&step.args)
            .var("UV_PYTHON_DOWNLOADS", "never")
            .var("UV_CACHE_DIR", cache.join("uv"))
            .var("PIP_CACHE_DIR", cache.join("pip"))
            .var("NPM_CONFIG_CACHE", cache.join("npm"));
        for (name, path) in settings {
            command = command.var(name, path);
        }
        for (name, value) in &place.scripts.settings.installing {
            command = command.var(name, value);
        }
        let failed = step.failed;
        let done = capture(command, place, "toolcrib").await;
        let done = done.map_err(|error| NotMade {
            message: format!("{failed}: {}", error.message),
            hint: error.hint.unwrap_or_default(),
        })?;
        if done.exit == Exit::Code(0) {
            return Ok(());
        }
        let said = [done.stdout.head.trim_end(), done.stderr.trim_end()].join("\n");
        let lines = said.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<&str> = lines.collect();
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

/// The user's own settings of installers, which these would look for in a home that they do not see: variables that name
/// them, and all that has to be read.
fn own_settings(place: &Place) -> (Vec<(&'static str, PathBuf)>, Vec<PathBuf>) {
    let home = place.environment.get("HOME").map(Path::new);
    let named = [
        ("PIP_CONFIG_FILE", ".config/pip/pip.conf"),
        ("PIP_CONFIG_FILE", ".pip/pip.conf"),
        ("UV_CONFIG_FILE", ".config/uv/uv.toml"),
        ("NPM_CONFIG_USERCONFIG", ".npmrc"),
    ];
    let found = named.into_iter().filter_map(|(name, file)| {
        let path = home?.join(file);
        path.is_file().then_some((name, path))
    });
    let found: Vec<_> = found.collect();
    let given = place.scripts.settings.installing.iter();
    let files = given.map(|(_, value)| PathBuf::from(value));
    let files = files.filter(|path| path.is_absolute() && path.exists());
    let read = found.iter().map(|(_, path)| path.clone()).chain(files);
    let read = read.collect();
    (found, read)
}

/// Names of packages as a person reads them.
fn told(names: &[&str]) -> String {
    match names.len() {
        0..=4 => names.join(", "),
        many => format!("{} and {} more", names[..3].join(", "), many - 3),
    }
}
