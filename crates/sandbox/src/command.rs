//! The one way to start a process: [`Command`] describes it, [`Child`] owns it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};

use crate::Environment;
use crate::launcher::{self, Report};

/// The program that is executed as the launcher: this binary itself.
#[derive(Debug, Clone)]
pub struct Launcher(PathBuf);

impl Launcher {
    /// The running binary, which must call [`launcher::run_if_asked`] first thing in `main`. The link names the
    /// very file that runs, even after an upgrade replaced it on disk.
    pub fn current() -> Launcher {
        Launcher(PathBuf::from("/proc/self/exe"))
    }

    /// Another program that calls [`launcher::run_if_asked`]; for tests, whose own binary does not.
    pub fn at(program: impl Into<PathBuf>) -> Launcher {
        Launcher(program.into())
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("program `{0}` was not found")]
    NotFound(String),
    #[error("`{0}` is not an executable file")]
    NotExecutable(String),
    #[error("the working directory `{0}` can't be entered")]
    Directory(String),
    #[error("an argument holds a null byte")]
    NullByte,
    #[error("`{program}` could not be executed: {error}")]
    Exec { program: String, error: io::Error },
    #[error("no process could be started: {0}")]
    Spawn(#[from] io::Error),
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The launcher itself was killed; the tool died with it and its group is killed, but a descendant that left the
    /// group may live on.
    Lost,
}

impl Exit {
    pub fn success(self) -> bool {
        self == Exit::Code(0)
    }
}

/// A process to be started: program, arguments, directory, variables. Its stdin is empty.
#[derive(Debug, Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    dir: PathBuf,
    vars: Vec<(OsString, OsString)>,
}

impl Command {
    pub fn new(program: impl Into<OsString>, dir: impl Into<PathBuf>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            dir: dir.into(),
            vars: Vec::new(),
        }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Command {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Command {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable on top of the allow-list.
    #[must_use]
    pub fn var(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Command {
        self.vars.push((name.into(), value.into()));
        self
    }

    /// Starts the process. It lives no longer than the returned [`Child`].
    pub async fn spawn(
        self,
        launcher: &Launcher,
        environment: &Environment,
    ) -> Result<Child, StartError> {
        if !self.dir.is_dir() {
            return Err(StartError::Directory(self.dir.display().to_string()));
        }
        let program = resolve(&self.program, &self.dir, environment.get("PATH"))?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts processes"
        )]
        let mut command = tokio::process::Command::new(&launcher.0);
        command
            .arg0("toolcrib")
            .arg(launcher::ARGUMENT)
            .arg(&program)
            .arg(&self.program)
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(environment.iter())
            .envs(self.vars)
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput => StartError::NullByte,
            _ => StartError::Spawn(error),
        })?;
        drop(command);
        let (Some(stdout), Some(stderr)) = (process.stdout.take(), process.stderr.take()) else {
            return Err(StartError::Spawn(io::Error::other("no pipes")));
        };
        let mut control = UnixStream::from_std(ours)?;
        match read_report(&mut control).await? {
            Some(Report::Started(tool)) => Ok(Child {
                tool,
                stdout: Some(stdout),
                stderr: Some(stderr),
                process,
                control,
            }),
            Some(Report::ExecFailed(errno)) => {
                let error = io::Error::from_raw_os_error(errno);
                Err(StartError::Exec {
                    program: program.display().to_string(),
                    error,
                })
            }
            other => Err(StartError::Spawn(io::Error::other(format!(
                "the launcher said {other:?}"
            )))),
        }
    }
}

/// Finds the file to execute: a name with a slash starts at `dir`, one without is looked up on `path`.
fn resolve(program: &OsStr, dir: &Path, path: Option<&OsStr>) -> Result<PathBuf, StartError> {
    let shown = || program.to_string_lossy().into_owned();
    let executable = |file: &Path| {
        file.metadata()
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if program.as_encoded_bytes().contains(&b'/') {
        let file = dir.join(program);
        return match (executable(&file), file.exists()) {
            (true, _) => Ok(file),
            (false, true) => Err(StartError::NotExecutable(shown())),
            (false, false) => Err(StartError::NotFound(shown())),
        };
    }
    let path = path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|file| executable(file))
        .ok_or_else(|| StartError::NotFound(shown()))
}

async fn read_report(control: &mut UnixStream) -> io::Result<Option<Report>> {
    let mut message = [0; Report::SIZE];
    match control.read_exact(&mut message).await {
        Ok(_) => Ok(Report::decode(message)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A running process. Dropping it kills the whole tree.
#[derive(Debug)]
pub struct Child {
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    process: tokio::process::Child,
    control: UnixStream,
    /// The tool's pid and group.
    tool: i32,
}

impl Child {
    /// Waits for the end: the tool has exited and its whole tree is gone.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        let exit = match read_report(&mut self.control).await? {
            Some(Report::Code(code)) => Exit::Code(code),
            Some(Report::Signal(signal)) => Exit::Signal(signal),
            _ => {
                launcher::kill_group(self.tool);
                Exit::Lost
            }
        };
        self.process.wait().await?;
        Ok(exit)
    }

    /// The launcher's process id, for tests that count descendants.
    pub fn launcher_id(&self) -> Option<u32> {
        self.process.id()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_path_or_beside() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("prog");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let path = dir.path().as_os_str();
        let find = |name: &str| resolve(OsStr::new(name), dir.path(), Some(path));
        assert!(matches!(find("prog"), Err(StartError::NotFound(_))));
        assert!(matches!(find("./prog"), Err(StartError::NotExecutable(_))));
        assert!(matches!(find("./none"), Err(StartError::NotFound(_))));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find("prog").unwrap(), file);
        assert_eq!(find("./prog").unwrap(), dir.path().join("./prog"));
    }

    #[test]
    fn a_relative_path_entry_is_never_searched() {
        let dir = tempfile::tempdir().unwrap();
        assert!(resolve(OsStr::new("prog"), dir.path(), Some(OsStr::new(".:"))).is_err());
    }
}
