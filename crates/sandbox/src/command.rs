//! The one way to start a process: [`Command`] describes it, [`Child`] owns it.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::UnixStream;

use crate::child::{Stdin, read_report};
use crate::launcher::{self, Report};
use crate::program::{check_interpreter, resolve};
use crate::{Child, Environment, Launcher};

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("program `{0}` was not found")]
    NotFound(String),
    #[error("`{0}` is not an executable file")]
    NotExecutable(String),
    #[error(
        "the interpreter `{interpreter}` that `{program}` names in its first line was not found"
    )]
    Interpreter {
        program: String,
        interpreter: String,
    },
    #[error("the working directory `{0}` can't be entered")]
    Directory(String),
    #[error("an argument holds a null byte")]
    NullByte,
    #[error(
        "`{0}` can't be executed: its arguments and environment are larger than the system allows"
    )]
    TooLarge(String),
    #[error("`{program}` could not be executed: {error}")]
    Exec { program: String, error: io::Error },
    #[error("no process could be started: {0}")]
    Spawn(#[from] io::Error),
}

/// A process to be started: program, arguments, directory, variables. Its stdin is empty unless it is
/// [piped](Command::piped_stdin).
#[derive(Debug, Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    dir: PathBuf,
    vars: Vec<(OsString, OsString)>,
    piped_stdin: bool,
}

impl Command {
    pub fn new(program: impl Into<OsString>, dir: impl Into<PathBuf>) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            dir: dir.into(),
            vars: Vec::new(),
            piped_stdin: false,
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

    /// Gives the process a stdin of its own, to be written by the crib; otherwise it is empty.
    #[must_use]
    pub fn piped_stdin(mut self) -> Command {
        self.piped_stdin = true;
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
        check_interpreter(&program, &self.dir, self.path(environment))?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let stdin = self.order(&ours, launcher)?;
        let process = self.start(launcher, environment, &program, theirs.into())?;
        let mut control = UnixStream::from_std(ours)?;
        let report = read_report(&mut control).await?;
        let group = match report {
            Some(Report::InNamespaces) => None,
            Some(Report::InGroup(tool)) => Some(tool),
            Some(Report::ExecFailed(errno)) => return Err(exec_error(&program, errno)),
            Some(Report::Failed(errno)) => return Err(StartError::Spawn(setup_error(errno))),
            other => {
                let said = format!("the launcher said {other:?}");
                return Err(StartError::Spawn(io::Error::other(said)));
            }
        };
        if let Some(rung) = report.and_then(Report::rung) {
            launcher.remember(rung);
        }
        Ok(Child::new(process, control, group, stdin))
    }

    /// The PATH that the process will see.
    fn path<'a>(&'a self, environment: &'a Environment) -> Option<&'a OsStr> {
        let set = self.vars.iter().rev().find(|(name, _)| name == "PATH");
        set.map(|(_, path)| path.as_os_str())
            .or_else(|| environment.get("PATH"))
    }

    /// Tells the launcher, which is yet to be started, what to do, and hands it the tool's stdin.
    fn order(
        &self,
        control: &std::os::unix::net::UnixStream,
        launcher: &Launcher,
    ) -> io::Result<Option<Stdin>> {
        let order = launcher.order();
        if !self.piped_stdin {
            launcher::send_order(control.as_fd(), order, None)?;
            return Ok(None);
        }
        let (reader, writer) = io::pipe()?;
        launcher::send_order(control.as_fd(), order, Some(reader.as_fd()))?;
        Stdin::from_owned_fd(writer.into()).map(Some)
    }

    /// Executes the launcher with the tool's directory, variables and streams.
    fn start(
        &self,
        launcher: &Launcher,
        environment: &Environment,
        program: &Path,
        control: OwnedFd,
    ) -> Result<tokio::process::Child, StartError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts processes"
        )]
        let mut command = tokio::process::Command::new(launcher.program());
        command
            .arg0("toolcrib")
            .arg(launcher::ARGUMENT)
            .arg(program)
            .arg(&self.program)
            .args(&self.args)
            .current_dir(&self.dir)
            .env_clear()
            .envs(environment.iter())
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .stdin(control)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().map_err(|error| match error.raw_os_error() {
            Some(libc::E2BIG) => StartError::TooLarge(program.display().to_string()),
            None if error.kind() == io::ErrorKind::InvalidInput => StartError::NullByte,
            _ => StartError::Spawn(error),
        })
    }
}

fn exec_error(program: &Path, errno: i32) -> StartError {
    let program = program.display().to_string();
    match errno {
        libc::E2BIG => StartError::TooLarge(program),
        _ => StartError::Exec {
            program,
            error: io::Error::from_raw_os_error(errno),
        },
    }
}

/// What the launcher could not do for itself, in words. Namespaces that worked before and fail now are an error, never
/// a silent step down: who was promised more must not get less.
fn setup_error(errno: i32) -> io::Error {
    let error = io::Error::from_raw_os_error(errno);
    if launcher::lacks_resources(&error) {
        return error;
    }
    match errno {
        libc::ENOSPC | libc::EUSERS => io::Error::other(
            "the system allows no more namespaces now (user.max_pid_namespaces, user.max_user_namespaces)",
        ),
        _ => io::Error::other(format!("namespaces for it can't be made any more: {error}")),
    }
}
