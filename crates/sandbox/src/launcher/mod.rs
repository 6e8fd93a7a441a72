//! The launcher: the small process between the crib and a tool, which lets nothing outlive either.
//!
//! It is this binary executed again with [`ARGUMENT`], before any runtime or thread exists. Its arguments, variables and
//! directory are always the same, for nothing of a tool may take effect before the walls stand. Its stdin is a socket to
//! the crib, its stdout and stderr are the tool's; what is executed, and the tool's stdin, come over the socket. Who attends to the tool
//! waits for one of two things: the tool's exit, or the hang-up of the socket. After either everything below it is
//! killed: by the kernel with a pid namespace (`namespace`), or by the launcher (`group`). A socket, not
//! `PR_SET_PDEATHSIG`, ties it to the crib, because that signal follows a thread, and the crib's threads come and go.
//! Between the processes here, all single-threaded, it is right.
//!
//! Why: `docs/design/0002-launcher.md`.

#![expect(unsafe_code, reason = "fork, exec and signals have no safe interface")]

mod bpf;
mod filter;
mod group;
mod landlock;
mod namespace;
mod open;
mod probe;
mod root;
mod tool;
mod walls;
mod wire;

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::ptr;

use crate::Rung;
use crate::start::Start;
use open::{open_beneath, open_plainly};
use tool::Tool;
use walls::Walls;

pub(crate) use group::{KILL_LIMIT, kill_group};
pub(crate) use open::{make_exactly, make_folder};
pub(crate) use probe::ARGUMENT as PROBE;
pub(crate) use walls::Trouble;
pub(crate) use wire::{
    Order, Report, file_of, hang_up, is_gone, receive_handed, send_order, send_terminate,
};

/// The first argument that makes a process a launcher.
pub const ARGUMENT: &str = "__launch";

/// Call this first thing in `main`: where the process was started as a launcher it does that work and gives the
/// exit code; otherwise it does nothing.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    let asked = args.next()?;
    let done = if asked == OsStr::new(ARGUMENT) {
        launch()
    } else if asked == OsStr::new(PROBE) {
        probe::tell()
    } else {
        return None;
    };
    Some(match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(125),
    })
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

/// Does the whole work. An error means that nobody looks after what may still live.
fn launch() -> io::Result<()> {
    let control = settle_in()?;
    let (order, mut handed) = wire::receive_order(control.as_fd())?;
    let lost = || io::Error::from_raw_os_error(libc::EPROTO);
    let start = File::from(handed.pop_front().ok_or_else(lost)?);
    let mut start: Start = serde_json::from_reader(io::BufReader::new(start))?;
    let plan = start.walls.take();
    if plan.is_some() != (order == Order::Confined) {
        return fail(&control, lost());
    }
    if let Some(plan) = plan {
        let door = handed.pop_front().ok_or_else(lost)?;
        let streams = Streams::new(handed.pop_front())?;
        let walls = Walls::new(plan, door);
        let tool = Tool::new(start);
        return match walls.and_then(enter) {
            Ok(walls) if walls.rung() == Rung::Group => {
                group::run(&control, streams, &tool, Some(walls))
            }
            Ok(walls) => namespace::run(control, streams, &tool, Some(walls)),
            Err(trouble) => wire::report(control.as_fd(), Report::Walls(trouble.code())),
        };
    }
    let streams = Streams::new(handed.pop_front())?;
    let tool = Tool::new(start);
    match choose(order).and_then(prepare) {
        Ok(Rung::Group) => group::run(&control, streams, &tool, None),
        Ok(_) => namespace::run(control, streams, &tool, None),
        Err(error) => fail(&control, error),
    }
}

/// Goes where the plan wants the tool to be.
fn enter(mut walls: Walls) -> Result<Walls, Trouble> {
    let entered = match walls.rung() {
        Rung::Group => group::adopt_orphans(),
        _ => namespace::enter_confined(walls.shares_network()),
    };
    if walls.rung() != Rung::Group && namespace::bound_watches().is_err() {
        walls.deny_watches();
    }
    match entered {
        Ok(()) => Ok(walls),
        Err(error) => Err(Trouble {
            step: walls::Step::Namespaces,
            error,
        }),
    }
}

/// Tells the crib that no tool will run.
fn fail(control: &OwnedFd, error: io::Error) -> io::Result<()> {
    wire::report(control.as_fd(), Report::Failed(errno(&error)))?;
    Err(error)
}

fn prepare(rung: Rung) -> io::Result<Rung> {
    match rung {
        Rung::Namespaces | Rung::NamespacesOnly => namespace::enter()?,
        Rung::Group => group::adopt_orphans()?,
    }
    Ok(rung)
}

fn choose(order: Order) -> io::Result<Rung> {
    match order {
        Order::Namespaces => Ok(Rung::Namespaces),
        Order::Group => Ok(Rung::Group),
        Order::Confined => Err(io::ErrorKind::InvalidInput.into()),
        Order::Try => match namespace::probe() {
            Ok(()) => Ok(Rung::Namespaces),
            // The machine is short of something now; that says nothing about later.
            Err(error) if lacks_resources(&error) => Err(error),
            Err(_) => Ok(Rung::Group),
        },
    }
}

/// Whether the same may well work once less is going on.
pub(crate) fn lacks_resources(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE)
    )
}

/// Leaves behind what came from the crib's own parents: open files, ignored signals. Only SIGKILL and SIGSTOP reach a
/// launcher; everything else it is told over the socket, which this gives.
fn settle_in() -> io::Result<OwnedFd> {
    // SAFETY: the process has one thread, and nothing in it owns the descriptors that are closed. The set is filled
    // by the calls that get it.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0);
        // The kernel's own call: the library's refuses the two signals that it keeps for itself, and ignores them in
        // what it starts. All zeros ask for the default.
        let default = [0_u64; 4];
        for signal in 1..=64 {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null::<u64>(),
                size_of::<u64>(),
            );
        }
        let mut all = mem::zeroed();
        libc::sigfillset(&mut all);
        check(libc::sigprocmask(libc::SIG_SETMASK, &all, ptr::null_mut()))?;
        leave_the_group()?;
        let control = check(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3))?;
        Ok(OwnedFd::from_raw_fd(control))
    }
}

/// Makes a process group of this process's own. A crib that itself runs in a tool may not be allowed to; then the
/// outer crib's group holds all of it, and orphans still fall to the launcher.
fn leave_the_group() -> io::Result<()> {
    // SAFETY: no memory is touched.
    match check(unsafe { libc::setpgid(0, 0) }) {
        Err(error) if error.raw_os_error() != Some(libc::EPERM) => Err(error),
        _ => Ok(()),
    }
}

/// Descriptors 0, 1 and 2 while they are the tool's.
struct Streams {
    null: OwnedFd,
}

impl Streams {
    fn new(stdin: Option<OwnedFd>) -> io::Result<Streams> {
        // SAFETY: the path is a string that ends with a null byte; the descriptor is new.
        let null = unsafe {
            let flags = libc::O_RDWR | libc::O_CLOEXEC;
            OwnedFd::from_raw_fd(check(libc::open(c"/dev/null".as_ptr(), flags))?)
        };
        replace(0, stdin.as_ref().unwrap_or(&null).as_fd())?;
        Ok(Streams { null })
    }

    /// The tool's streams must end with the tool, so a process that stays with it lets go of its own copies.
    fn let_go(self) -> io::Result<()> {
        (0..=2).try_for_each(|stream| replace(stream, self.null.as_fd()))
    }
}

fn replace(number: libc::c_int, by: BorrowedFd) -> io::Result<()> {
    // SAFETY: 0, 1 and 2 are open, and no object in this process owns them.
    check(unsafe { libc::dup2(by.as_raw_fd(), number) }).map(|_| ())
}

/// Becomes readable when a child ended.
fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is filled before it is read; the descriptor is new.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        Ok(OwnedFd::from_raw_fd(check(libc::signalfd(
            -1, &set, flags,
        ))?))
    }
}

/// Stays with the tool until it ends or the crib hangs up, and gives how it ended or is to end.
fn watch(control: BorrowedFd, signals: BorrowedFd, tool: libc::pid_t) -> io::Result<Report> {
    let mut polled = [control, signals].map(|descriptor| libc::pollfd {
        fd: descriptor.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    loop {
        if let Some(ending) = reap(tool) {
            return Ok(ending);
        }
        // SAFETY: the array lives across the call.
        match check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) }) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let mut heard = [0_u8; 128];
        if polled[1].revents != 0 {
            // SAFETY: the buffer lives across the call; the descriptor does not block.
            unsafe { libc::read(polled[1].fd, heard.as_mut_ptr().cast(), heard.len()) };
        }
        if polled[0].revents != 0 {
            let flags = libc::MSG_DONTWAIT;
            // SAFETY: the buffer lives across the call.
            let read =
                unsafe { libc::recv(polled[0].fd, heard.as_mut_ptr().cast(), heard.len(), flags) };
            match read {
                1.. => {
                    // SAFETY: the tool is a child that nobody has taken in yet.
                    unsafe { libc::kill(tool, libc::SIGTERM) };
                }
                // It may have ended by itself in the same moment.
                _ => return Ok(reap(tool).unwrap_or(Report::Signal(libc::SIGKILL))),
            }
        }
    }
}

/// Takes in every other child that has ended, and tells how the tool ended if it did. The tool itself is left as it
/// is: while nobody takes it in, its number can't become that of a foreign process or group.
fn reap(tool: libc::pid_t) -> Option<Report> {
    loop {
        // SAFETY: the structure lives across the calls, and stays all zeros where no child has ended.
        unsafe {
            let mut seen: libc::siginfo_t = mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            if libc::waitid(libc::P_ALL, 0, &mut seen, flags) < 0 || seen.si_pid() == 0 {
                return None;
            }
            if seen.si_pid() == tool {
                return Some(match seen.si_code {
                    libc::CLD_EXITED => Report::Code(seen.si_status()),
                    _ => Report::Signal(seen.si_status()),
                });
            }
            libc::waitpid(seen.si_pid(), ptr::null_mut(), libc::WNOHANG);
        }
    }
}
