//! The one way to start a process: [`Command`] describes it, [`Child`] owns it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::child::{Stdin, read_report};
use crate::enclosure::{self, Account, Enclosure, Setting};
use crate::launcher::{self, Order, Report, Trouble};
use crate::machine::CannotConfine;
use crate::program::{Unfolded, check_interpreter, resolve, unfold};
use crate::proxy::Denial;
use crate::start::Start;
use crate::{Child, Confinement, Environment, Launcher, Policy};

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
    #[error("an argument contains a null byte")]
    NullByte,
    #[error(
        "`{0}` can't be executed: its arguments and environment are larger than the system allows"
    )]
    TooLarge(String),
    #[error("`{program}` could not be executed: {error}")]
    Exec { program: String, error: io::Error },
    #[error("no process could be started: {0}")]
    Spawn(#[from] io::Error),
    /// Its policy can't be enforced here, so it was not started. What helps is the refusal's own.
    #[error("it can't be confined: {}", .0.reason)]
    Refused(#[from] CannotConfine),
    /// A wall that stood before could not be put up this time, so it was not started.
    #[error("`{program}` could not be confined: the launcher can't {what}: {error}")]
    Walls {
        program: String,
        what: &'static str,
        error: io::Error,
    },
}

/// A process to be started: program, directory, what holds it, arguments, variables. Its stdin is empty unless it is
/// [piped](Command::piped_stdin).
#[derive(Debug, Clone)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    dir: PathBuf,
    vars: Vec<(OsString, OsString)>,
    piped_stdin: bool,
    /// The project whose files choose between versions of its program.
    versions: Option<PathBuf>,
    confinement: Confinement,
    denied: Option<mpsc::Sender<Denial>>,
}

impl Command {
    pub fn new(
        program: impl Into<OsString>,
        dir: impl Into<PathBuf>,
        confinement: impl Into<Confinement>,
    ) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            dir: dir.into(),
            vars: Vec::new(),
            piped_stdin: false,
            versions: None,
            confinement: confinement.into(),
            denied: None,
        }
    }

    /// Tells about hosts that the process asked for and was not allowed to reach. What does not fit the channel is lost.
    #[must_use]
    pub fn tell_denied(mut self, denied: mpsc::Sender<Denial>) -> Command {
        self.denied = Some(denied);
        self
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

    /// Lets files of this project, such as `.python-version`, choose between the versions that a version manager has of
    /// the program. Only for a process that is the project's own, and trusted with all of it.
    #[must_use]
    pub fn versions_of(mut self, project: Option<PathBuf>) -> Command {
        self.versions = project;
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
        let unentered = || StartError::Directory(self.dir.display().to_string());
        let dir = self.dir.canonicalize().map_err(|_| unentered())?;
        if !dir.is_dir() {
            return Err(unentered());
        }
        let program = resolve(&self.program, &self.dir, environment.get("PATH"))?;
        // Programs are looked up on the user's PATH, whatever PATH the tool sets for its process: who chose the
        // interpreter of somebody else's script would read that.
        check_interpreter(&program, &self.dir, environment.get("PATH"))?;
        match &self.confinement {
            Confinement::Walled(policy) => {
                self.spawn_walled(launcher, environment, &program, &dir, policy)
                    .await
            }
            Confinement::ByUser(_) => self.spawn_free(launcher, environment, &program, &dir).await,
        }
    }

    async fn spawn_free(
        &self,
        launcher: &Launcher,
        environment: &Environment,
        program: &Path,
        dir: &Path,
    ) -> Result<Child, StartError> {
        let vars = self.variables(environment, &[]);
        let start = file(Start::new(program, &self.argv(), &vars, dir, None))?;
        let (ours, theirs) = control_pair()?;
        let (reader, stdin) = self.stdin()?;
        let mut handed = vec![start.as_fd()];
        handed.extend(reader.iter().map(AsFd::as_fd));
        launcher::send_order(ours.as_fd(), launcher.order(), &handed)?;
        let process = execute(launcher, theirs.into())?;
        let mut control = UnixStream::from_std(ours)?;
        let report = read_report(&mut control).await?;
        let group = group_of(report, program)?;
        if let Some(rung) = report.and_then(Report::rung) {
            launcher.remember(rung);
        }
        Ok(Child::new(process, control, group, stdin, None))
    }

    async fn spawn_walled(
        &self,
        launcher: &Launcher,
        environment: &Environment,
        program: &Path,
        dir: &Path,
        policy: &Policy,
    ) -> Result<Child, StartError> {
        let unfolded = self.unfolded(program, environment)?;
        let setting = self.setting(environment);
        let enclosure =
            Enclosure::new(launcher, policy, &unfolded, &setting, self.denied.clone()).await?;
        let vars = self.variables(environment, &enclosure.plan.vars);
        let Unfolded {
            file: executed,
            argv,
            ..
        } = &unfolded;
        let start = Start::new(executed, argv, &vars, dir, Some(enclosure.plan.clone()));
        let start = file(start)?;
        let (ours, theirs) = control_pair()?;
        let (reader, stdin) = self.stdin()?;
        let (door, their_door) = std::os::unix::net::UnixStream::pair()?;
        let mut handed = vec![start.as_fd(), their_door.as_fd()];
        handed.extend(reader.iter().map(AsFd::as_fd));
        launcher::send_order(ours.as_fd(), Order::Confined, &handed)?;
        let process = execute(launcher, theirs.into())?;
        drop((their_door, reader, start));
        let again = ours.try_clone()?;
        let mut control = UnixStream::from_std(ours)?;
        let (keep, account) = enclosure
            .hand_over(door, process.id(), again.into())
            .await?;
        let report = read_report(&mut control).await?;
        let group = group_of(report, program)?;
        Ok(Child::new(
            process,
            control,
            group,
            stdin,
            Some((keep, account)),
        ))
    }

    /// What would hold for this process, without starting it; nothing where the user said that nothing shall.
    pub async fn account(
        &self,
        launcher: &Launcher,
        environment: &Environment,
    ) -> Result<Option<Account>, StartError> {
        let Confinement::Walled(policy) = &self.confinement else {
            return Ok(None);
        };
        let program = resolve(&self.program, &self.dir, environment.get("PATH"))?;
        let program = self.unfolded(&program, environment)?;
        let setting = self.setting(environment);
        let account = enclosure::account(launcher, policy, &program, &setting).await?;
        Ok(Some(account))
    }

    /// What is really executed.
    fn unfolded(
        &self,
        program: &Path,
        environment: &Environment,
    ) -> Result<Unfolded, CannotConfine> {
        let (dir, path) = (&self.dir, environment.get("PATH"));
        unfold(program, self.argv(), dir, self.versions.as_deref(), path)
    }

    fn setting<'a>(&'a self, environment: &'a Environment) -> Setting<'a> {
        Setting {
            dir: &self.dir,
            home: environment.get("HOME").map(Path::new),
            tmp: environment.tmp(),
        }
    }

    fn argv(&self) -> Vec<OsString> {
        [&self.program]
            .into_iter()
            .chain(&self.args)
            .cloned()
            .collect()
    }

    /// The tool's end and the crib's end of its stdin, if it has one.
    fn stdin(&self) -> io::Result<(Option<io::PipeReader>, Option<Stdin>)> {
        if !self.piped_stdin {
            return Ok((None, None));
        }
        let (reader, writer) = io::pipe()?;
        Ok((Some(reader), Some(Stdin::from_owned_fd(writer.into())?)))
    }

    /// The variables that the process sees: the allow-list, those of its private places, its own. The last one counts.
    fn variables(
        &self,
        environment: &Environment,
        places: &[(&str, PathBuf)],
    ) -> BTreeMap<OsString, OsString> {
        let own = |(name, value): (&OsString, &OsString)| (name.clone(), value.clone());
        let listed = environment.iter().map(own);
        let places = places.iter();
        let places = places.map(|(name, path)| (OsString::from(name), path.clone().into()));
        let vars = self.vars.iter().cloned();
        listed.chain(places).chain(vars).collect()
    }
}

/// What the launcher executes, as a file in memory.
fn file(start: Option<Start>) -> Result<OwnedFd, StartError> {
    let start = start.ok_or(StartError::NullByte)?;
    let text = serde_json::to_vec(&start).map_err(io::Error::from)?;
    Ok(launcher::file_of(&text)?)
}

/// Executes the launcher. Nothing that a tool, a project or a person chose reaches it but over the socket: its
/// arguments, variables and directory are always the same.
fn execute(launcher: &Launcher, control: OwnedFd) -> Result<tokio::process::Child, StartError> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that starts processes"
    )]
    let mut command = tokio::process::Command::new(launcher.program());
    command
        .arg0("toolcrib")
        .arg(launcher::ARGUMENT)
        .current_dir("/")
        .env_clear()
        .stdin(control)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command.spawn()?)
}

/// The crib's end, which does not block, and the launcher's.
fn control_pair() -> io::Result<(
    std::os::unix::net::UnixStream,
    std::os::unix::net::UnixStream,
)> {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((ours, theirs))
}

/// The group of a tool that was started in one; an error where none was started.
fn group_of(report: Option<Report>, program: &Path) -> Result<Option<i32>, StartError> {
    match report {
        Some(Report::InNamespaces) => Ok(None),
        Some(Report::InGroup(tool)) => Ok(Some(tool)),
        Some(Report::ExecFailed(errno)) => Err(exec_error(program, errno)),
        Some(Report::Failed(errno)) => Err(StartError::Spawn(setup_error(errno))),
        Some(Report::Walls(code)) => Err(walls_error(program, code)),
        other => {
            let said = format!("the launcher said {other:?}");
            Err(StartError::Spawn(io::Error::other(said)))
        }
    }
}

fn walls_error(program: &Path, code: i32) -> StartError {
    match Trouble::from_code(code) {
        Some(trouble) => StartError::Walls {
            program: program.display().to_string(),
            what: trouble.step.words(),
            error: trouble.error,
        },
        None => StartError::Spawn(io::Error::from_raw_os_error(code)),
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
