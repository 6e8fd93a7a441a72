//! A running process, and who looks after its launcher.

use std::io;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::enclosure::{Account, Keep};
use crate::launcher::{self, Report};
use crate::watch::{Breach, BreachCell};

/// The crib's end of a tool's stdin. The tool reads its end once this is dropped.
pub type Stdin = tokio::net::unix::pipe::Sender;

/// How long a launcher may take to kill all, once it was told; a second more than it takes before it gives up itself.
const PATIENCE: Duration = launcher::KILL_LIMIT.saturating_add(Duration::from_secs(1));

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The launcher itself was killed. The tool's processes are killed as well, but may take a moment to be gone.
    Lost,
}

impl Exit {
    pub fn success(self) -> bool {
        self == Exit::Code(0)
    }
}

/// A running process. Dropping it kills the whole tree.
#[derive(Debug)]
pub struct Child {
    /// There only with [`crate::Command::piped_stdin`].
    pub stdin: Option<Stdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    control: UnixStream,
    launcher_id: Option<u32>,
    guard: JoinHandle<io::Result<ExitStatus>>,
    /// Gone once the crib has hung up.
    attached: Option<oneshot::Sender<()>>,
    told: Option<Exit>,
    gone: bool,
    /// The tool's, where it is kept in one.
    group: Option<i32>,
    /// There only for a confined process.
    confined: Option<(Account, BreachCell)>,
}

impl Child {
    /// Takes over a launcher that has said that the tool runs. `group` is the tool's, where it is kept in one; what a
    /// confined tool needs is kept until the launcher has ended.
    pub(crate) fn new(
        mut process: tokio::process::Child,
        control: UnixStream,
        group: Option<i32>,
        stdin: Option<Stdin>,
        confined: Option<(Keep, Account)>,
    ) -> Child {
        let (attached, detached) = oneshot::channel();
        let (keep, account) = confined.unzip();
        let told = keep.as_ref().map(Keep::breach_cell);
        Child {
            stdin,
            stdout: process.stdout.take(),
            stderr: process.stderr.take(),
            control,
            launcher_id: process.id(),
            guard: tokio::spawn(guard(process, group, detached, keep)),
            attached: Some(attached),
            told: None,
            gone: false,
            group,
            confined: account.zip(told),
        }
    }

    /// What holds for a confined process; nothing for another.
    pub fn account(&self) -> Option<&Account> {
        self.confined.as_ref().map(|(account, _)| account)
    }

    /// The limit that the process was killed for, if that is how it ended.
    pub fn breach(&self) -> Option<Breach> {
        self.confined.as_ref()?.1.get().copied()
    }

    /// Waits for the end: the tool has exited and its whole tree is gone. May be dropped and called again.
    pub async fn wait(&mut self) -> io::Result<Exit> {
        let exit = match self.told {
            Some(exit) => exit,
            None => match read_report(&mut self.control).await {
                Ok(Some(Report::Code(code))) => Exit::Code(code),
                Ok(Some(Report::Signal(signal))) => Exit::Signal(signal),
                _ => Exit::Lost,
            },
        };
        self.told = Some(exit);
        if !self.gone {
            let ended = (&mut self.guard).await;
            self.gone = true;
            ended.map_err(io::Error::other)??;
        }
        Ok(exit)
    }

    /// Asks the tool's own process to end (SIGTERM); its tree is killed once it has.
    pub fn terminate(&self) {
        // An error means that there is nobody to ask.
        let _ = launcher::send_terminate(self.control.as_fd());
    }

    /// Hangs up: the launcher kills the whole tree now. Dropping does the same; [`Child::wait`] may be awaited after it.
    pub fn kill(&mut self) {
        self.attached = None;
        // An error means that the launcher is gone.
        let _ = launcher::hang_up(self.control.as_fd());
    }

    /// The launcher's process id, while it runs.
    pub fn launcher_id(&self) -> Option<u32> {
        self.launcher_id.filter(|_| !self.guard.is_finished())
    }
}

/// The guard does it all, unless the runtime goes down before it comes to it.
impl Drop for Child {
    fn drop(&mut self) {
        let orderly = matches!(self.told, Some(Exit::Code(_) | Exit::Signal(_)));
        if let Some(group) = self.group
            && !orderly
            && !self.guard.is_finished()
            && launcher::is_gone(self.control.as_fd())
        {
            launcher::kill_group(group);
        }
    }
}

/// Looks after a launcher to its end, whether or not somebody waits. A launcher that went without doing its work has
/// left the tool's group to us; one that can't do it in time is stopped, or stuck, and is killed.
async fn guard(
    mut process: tokio::process::Child,
    group: Option<i32>,
    mut detached: oneshot::Receiver<()>,
    keep: Option<Keep>,
) -> io::Result<ExitStatus> {
    let first = tokio::select! {
        ended = process.wait() => Some(ended),
        _ = &mut detached => None,
    };
    let ended = match first {
        Some(ended) => ended,
        None => match tokio::time::timeout(PATIENCE, process.wait()).await {
            Ok(ended) => ended,
            Err(_) => {
                process.start_kill()?;
                process.wait().await
            }
        },
    };
    if let Some(group) = group
        && !ended.as_ref().is_ok_and(ExitStatus::success)
    {
        launcher::kill_group(group);
    }
    if let Some(keep) = keep {
        keep.note_the_end();
    }
    ended
}

/// The launcher's next report; `None` once it has nothing more to say.
pub(crate) async fn read_report(control: &mut UnixStream) -> io::Result<Option<Report>> {
    let mut message = [0; Report::SIZE];
    match control.read_exact(&mut message).await {
        Ok(_) => Ok(Report::decode(message)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
