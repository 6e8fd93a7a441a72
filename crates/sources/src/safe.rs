//! Where secrets are read: by name, at the moment a process or a request needs them. Nothing of them is kept.
//!
//! Which secrets there are, and where each lies, only the user's own settings say.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use toolcrib_core::CallError;
use toolcrib_core::words::CommandLine;
use toolcrib_sandbox::{Command, Consent, Environment, Exit, Launcher, StartError};

/// No secret is longer: it has to fit into an environment.
const MAX_SECRET: usize = 64 * 1_024;
/// The program that asks the keyring.
const KEYRING: &str = "secret-tool";
/// How long the keyring may take; a person may have to unlock it.
const KEYRING_LIMIT: Duration = Duration::from_secs(30);
/// What that program needs to find the keyring.
const KEYRING_VARIABLES: [&str; 4] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// Where a secret lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the crib's own environment.
    Variable(String),
    /// A file that nobody else may read.
    File(PathBuf),
    /// The keyring of the user's session, under `toolcrib` and the secret's name. The program that asks it needs the
    /// session's bus, which no walls let through: that setting is the user's word for it.
    Keyring(Consent),
}

/// Which secrets there are, by name.
pub type SecretSources = BTreeMap<String, SecretSource>;

/// Reads secrets.
pub struct Safe {
    sources: RwLock<Arc<SecretSources>>,
    variables: Arc<BTreeMap<String, String>>,
    launcher: Launcher,
    environment: Environment,
}

impl std::fmt::Debug for Safe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Safe")
    }
}

/// Why a secret could not be read, and what to do. Never holds anything of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub message: String,
    pub hint: String,
}

impl Unread {
    fn new(name: &str, why: impl std::fmt::Display, hint: impl Into<String>) -> Unread {
        Unread {
            message: format!("the secret `{name}` can't be read: {why}"),
            hint: hint.into(),
        }
    }

    /// What the caller of the tool that needs it is told.
    pub fn into_call_error(self, tool: &str) -> CallError {
        CallError::unavailable(format!("the tool `{tool}` can't be used: {}", self.message))
            .hint(self.hint)
    }
}

impl Safe {
    pub fn new(
        variables: Arc<BTreeMap<String, String>>,
        launcher: Launcher,
        environment: Environment,
    ) -> Safe {
        Safe {
            sources: RwLock::default(),
            variables,
            launcher,
            environment,
        }
    }

    /// These secrets there are from now on.
    pub fn set(&self, sources: SecretSources) {
        let mut held = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        *held = Arc::new(sources);
    }

    fn source(&self, name: &str) -> Option<SecretSource> {
        let sources = self.sources.read().unwrap_or_else(PoisonError::into_inner);
        sources.get(name).cloned()
    }

    /// The secret of this name, as it is now. Never an empty one.
    pub async fn read(&self, name: &str) -> Result<String, Unread> {
        let table = format!("[secrets.{}]", toml_key(name));
        let Some(source) = self.source(name) else {
            let hint = format!(
                "write `{table}` with `env = \"VARIABLE\"`, `file = \"/path\"` or `keyring = true` into your own ~/.config/toolcrib/config.toml"
            );
            return Err(Unread::new(
                name,
                "no setting says where it is stored",
                hint,
            ));
        };
        let value = match source {
            SecretSource::Variable(variable) => {
                let value = self.variables.get(&variable).cloned();
                value.ok_or_else(|| {
                    let hint =
                        format!("set `{variable}` before Toolcrib starts, or change `{table}`");
                    Unread::new(name, format!("the variable `{variable}` is not set"), hint)
                })?
            }
            SecretSource::File(path) => {
                let shown = path.display().to_string();
                let read = tokio::task::spawn_blocking(move || from_file(&path)).await;
                let read = read.unwrap_or_else(|error| Err((error.to_string(), String::new())));
                read.map_err(|(why, hint)| {
                    Unread::new(name, format!("the file `{shown}` {why}"), hint)
                })?
            }
            SecretSource::Keyring(consent) => self.keyring(name, consent).await?,
        };
        if value.trim().is_empty() {
            let hint = "put the value there, or configure another place";
            return Err(Unread::new(name, "it is empty", hint));
        }
        if value.contains('\0') || value.len() > MAX_SECRET {
            let why = format!("it has a null byte, or more than {MAX_SECRET} bytes");
            let hint = "put it into a file that the tool may read, and give the tool its path";
            return Err(Unread::new(name, why, hint));
        }
        Ok(value)
    }

    async fn keyring(&self, name: &str, consent: Consent) -> Result<String, Unread> {
        let asked = tokio::time::timeout(KEYRING_LIMIT, self.ask_keyring(name, consent)).await;
        let limit = KEYRING_LIMIT.as_secs();
        asked.unwrap_or_else(|_| {
            let hint = "unlock the keyring, then call again";
            let why = format!("the keyring did not answer within {limit} s");
            Err(Unread::new(name, why, hint))
        })
    }

    async fn ask_keyring(&self, name: &str, consent: Consent) -> Result<String, Unread> {
        let mut command = Command::new(KEYRING, "/", consent).args(["lookup", "toolcrib", name]);
        for variable in KEYRING_VARIABLES {
            if let Some(value) = self.variables.get(variable) {
                command = command.var(variable, value);
            }
        }
        let started = command.spawn(&self.launcher, &self.environment).await;
        let mut child = started.map_err(|error| match error {
            StartError::NotFound(_) => {
                let why = format!("`{KEYRING}`, which asks the keyring, is not on the PATH");
                let hint = format!(
                    "install `{KEYRING}` (libsecret-tools), or take `env` or `file` for `[secrets.{}]`",
                    toml_key(name)
                );
                Unread::new(name, why, hint)
            }
            other => {
                let lookup = CommandLine::new("secret-tool lookup toolcrib").operand(name);
                let hint = format!("run `{lookup}` by hand");
                Unread::new(name, other, hint)
            }
        })?;
        let mut said = Vec::new();
        // Its words are not told on: nobody knows what is in them.
        let stderr = child.stderr.take();
        let silence = async {
            if let Some(mut stderr) = stderr {
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            }
        };
        let stdout = child.stdout.take();
        let listen = async {
            if let Some(stdout) = stdout {
                let mut bounded = stdout.take(MAX_SECRET as u64 + 1);
                let _ = bounded.read_to_end(&mut said).await;
            }
        };
        tokio::join!(silence, listen);
        match child.wait().await {
            Ok(Exit::Code(0)) if !said.is_empty() => text_of(said).map_err(|why| {
                let hint = "store it again, as text";
                Unread::new(name, format!("what the keyring holds {why}"), hint)
            }),
            _ => {
                let store = CommandLine::new("secret-tool store toolcrib")
                    .operand(name)
                    .flag("--label", &format!("toolcrib {name}"));
                let hint = format!("store it with `{store}`, or unlock the keyring");
                Err(Unread::new(name, "the keyring does not give it", hint))
            }
        }
    }
}

/// A name as a key of TOML.
fn toml_key(name: &str) -> String {
    match name.contains('.') {
        true => format!("\"{name}\""),
        false => name.to_owned(),
    }
}

/// What a file holds, if it is the user's alone; else why not, and what to do.
fn from_file(path: &Path) -> Result<String, (String, String)> {
    // A pipe in its place must not make anyone wait.
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = opened.map_err(|error| {
        let hint = "put the secret there, or change `file`";
        (format!("can't be opened: {error}"), hint.to_owned())
    })?;
    let failed = |error: std::io::Error| (format!("can't be read: {error}"), String::new());
    let meta = file.metadata().map_err(failed)?;
    if let Some(why) = unsafe_to_read(&meta) {
        let chown = CommandLine::new("chown").operand(user());
        let chown = chown.operand(path.display());
        let chmod = CommandLine::new("chmod 600").operand(path.display());
        let hint = format!("`{chown} && {chmod}`");
        return Err((why, hint));
    }
    let mut bytes = Vec::new();
    let mut bounded = file.take(MAX_SECRET as u64 + 3);
    bounded.read_to_end(&mut bytes).map_err(failed)?;
    text_of(bytes).map_err(|why| (why.to_owned(), "save it as UTF-8 text".to_owned()))
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Why a file is no place for a secret, if so.
fn unsafe_to_read(meta: &Metadata) -> Option<String> {
    let mode = meta.mode() & 0o7777;
    if !meta.is_file() {
        return Some("is not a regular file".to_owned());
    }
    if meta.uid() != user() {
        return Some(format!("belongs to another user (uid {})", meta.uid()));
    }
    (mode & 0o177 != 0).then(|| {
        format!("has mode {mode:04o}, so others may get at it; 0600 is the most it may have")
    })
}

/// Text without the newline at its end.
fn text_of(bytes: Vec<u8>) -> Result<String, &'static str> {
    let mut text = String::from_utf8(bytes).map_err(|_| "is not UTF-8 text")?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn safe(name: &str, source: SecretSource) -> Safe {
        let variables = [("A_TOKEN", "value-1"), ("EMPTY", "")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let path = [("PATH".into(), "/nonexistent".into())];
        let safe = Safe::new(
            Arc::new(BTreeMap::from(variables)),
            Launcher::at("/nonexistent"),
            Environment::from_vars(path),
        );
        safe.set(BTreeMap::from([(name.to_owned(), source)]));
        safe
    }

    #[tokio::test]
    async fn a_variable_is_read_and_its_absence_told() {
        let of = |name: &str| safe("a", SecretSource::Variable(name.to_owned()));
        assert_eq!(of("A_TOKEN").read("a").await.unwrap(), "value-1");
        let error = of("MISSING").read("a").await.unwrap_err();
        assert!(error.message.contains("`MISSING` is not set"), "{error:?}");
        assert!(of("EMPTY").read("a").await.is_err());
        let error = of("A_TOKEN").read("b.c").await.unwrap_err();
        assert!(error.hint.contains("[secrets.\"b.c\"]"), "{error:?}");
        assert!(!format!("{:?}", of("A_TOKEN")).contains("value-1"));
    }

    #[tokio::test]
    async fn a_file_is_read_only_if_it_is_the_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let read = async |mode: u32, text: &str| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let safe = safe("a", SecretSource::File(path.clone()));
            safe.read("a").await
        };
        assert_eq!(read(0o600, "value\n").await.unwrap(), "value");
        assert_eq!(read(0o600, "two\nlines\r\n").await.unwrap(), "two\nlines");
        for mode in [0o644, 0o640, 0o660, 0o604, 0o700] {
            let error = read(mode, "value").await.unwrap_err();
            assert!(error.message.contains(&format!("{mode:04o}")), "{error:?}");
            assert!(error.hint.contains("chmod 600"), "{error:?}");
            assert!(!format!("{error:?}").contains("value"), "{error:?}");
        }
        assert!(
            read(0o600, "\n")
                .await
                .unwrap_err()
                .message
                .contains("empty")
        );
        assert!(read(0o600, "a\0b").await.is_err());
        let long = "x".repeat(MAX_SECRET + 1);
        assert!(read(0o600, &long).await.is_err());
        let gone = safe("a", SecretSource::File(folder.path().join("gone")));
        assert!(gone.read("a").await.unwrap_err().message.contains("opened"));
        let there = safe("a", SecretSource::File(folder.path().to_path_buf()));
        let error = there.read("a").await.unwrap_err();
        assert!(error.message.contains("regular"), "{error:?}");
    }

    #[tokio::test]
    async fn a_keyring_without_its_program_says_what_to_install() {
        #[expect(clippy::disallowed_methods, reason = "as the settings make it")]
        let consent = Consent::from_user_settings();
        let error = safe("a", SecretSource::Keyring(consent)).read("a").await;
        let error = error.unwrap_err();
        assert!(error.message.contains("not on the PATH"), "{error:?}");
        assert!(error.hint.contains("libsecret-tools"), "{error:?}");
    }
}
