//! The launcher: the small process between the crib and a tool, which lets nothing outlive either.
//!
//! It is this binary executed again with [`ARGUMENT`], before any runtime or thread exists. Its stdin is a socket to
//! the crib; its stdout and stderr are the tool's. It starts the tool in a process group of its own, declares itself
//! the reaper of orphans, and waits for one of two things: the tool's exit, or the hang-up of the socket. After either
//! it kills everything below it and goes. A socket, not `PR_SET_PDEATHSIG`, ties it to the crib, because that signal
//! follows a thread, and the crib's threads come and go. Between launcher and tool, both single-threaded, it is right.
//!
//! Why: `docs/design/0002-launcher.md`.

#![expect(unsafe_code, reason = "fork, exec and signals have no safe interface")]

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::ptr;
use std::time::{Duration, Instant};

/// The first argument that makes a process a launcher.
pub const ARGUMENT: &str = "__launch";

/// How long the launcher goes on killing before it gives up on processes that the kernel does not let die.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// What the launcher tells the crib.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// The tool runs; its pid, which is its group's too.
    Started(i32),
    ExecFailed(i32),
    Code(i32),
    Signal(i32),
}

impl Report {
    pub(crate) const SIZE: usize = 5;

    fn encode(self) -> [u8; Report::SIZE] {
        let (kind, number) = match self {
            Report::Started(tool) => (b'+', tool),
            Report::ExecFailed(errno) => (b'e', errno),
            Report::Code(code) => (b'x', code),
            Report::Signal(signal) => (b's', signal),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(crate) fn decode([kind, a, b, c, d]: [u8; Report::SIZE]) -> Option<Report> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            b'+' => Some(Report::Started(number)),
            b'e' => Some(Report::ExecFailed(number)),
            b'x' => Some(Report::Code(number)),
            b's' => Some(Report::Signal(number)),
            _ => None,
        }
    }
}

/// Call this first thing in `main`: where the process was started as a launcher it does that work and gives the
/// exit code; otherwise it does nothing.
pub fn run_if_asked() -> Option<ExitCode> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != OsStr::new(ARGUMENT) {
        return None;
    }
    let program = args.next()?;
    Some(match launch(&program, &args.collect::<Vec<_>>()) {
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

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

fn launch(program: &OsStr, argv: &[OsString]) -> io::Result<()> {
    let program = c_string(program)?;
    let argv = argv
        .iter()
        .map(|arg| c_string(arg))
        .collect::<io::Result<Vec<_>>>()?;
    // SAFETY: plain system calls on descriptors of our own; the process has one thread.
    let (control, signals) = unsafe {
        let control = check(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3))?;
        let null = check(libc::open(
            c"/dev/null".as_ptr(),
            libc::O_RDWR | libc::O_CLOEXEC,
        ))?;
        check(libc::dup2(null, 0))?;
        check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()))?;
        (
            control,
            check(libc::signalfd(
                -1,
                &set,
                libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
            ))?,
        )
    };
    let tool = match start(&program, &argv)? {
        Ok(tool) => tool,
        Err(errno) => return report(control, Report::ExecFailed(errno)),
    };
    let ending = attend(control, signals, tool);
    // Whatever happened, also when the crib is already gone: from here on nothing of the tool may live.
    kill_tree(tool);
    match ending? {
        Some(ending) => report(control, ending),
        None => Ok(()),
    }
}

/// Stays with the tool until it ends (`Some`) or the crib hangs up (`None`).
fn attend(
    control: libc::c_int,
    signals: libc::c_int,
    tool: libc::pid_t,
) -> io::Result<Option<Report>> {
    // The tool's streams must end with the tool, so the launcher lets go of its own copies.
    // SAFETY: descriptor 0 is /dev/null by now.
    unsafe {
        check(libc::dup2(0, 1))?;
        check(libc::dup2(0, 2))?;
    }
    report(control, Report::Started(tool))?;
    watch(control, signals, tool)
}

fn report(control: libc::c_int, report: Report) -> io::Result<()> {
    let message = report.encode();
    // SAFETY: the buffer lives across the call; MSG_NOSIGNAL because the crib may be gone.
    let sent = unsafe {
        libc::send(
            control,
            message.as_ptr().cast(),
            message.len(),
            libc::MSG_NOSIGNAL,
        )
    };
    if sent == message.len() as isize {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Forks and executes the tool. The inner error is the errno of a failed exec, told through a pipe that a
/// successful exec closes.
fn start(program: &CString, argv: &[CString]) -> io::Result<Result<libc::pid_t, i32>> {
    let mut pointers: Vec<*const libc::c_char> = argv.iter().map(|arg| arg.as_ptr()).collect();
    pointers.push(ptr::null());
    let mut pipe = [0; 2];
    // SAFETY: one thread, so the child may call anything; all pointers live until exec or `_exit`.
    unsafe {
        check(libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC))?;
        let parent = libc::getpid();
        let tool = check(libc::fork())?;
        if tool == 0 {
            become_tool(program, &pointers, parent);
            let errno = io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO);
            libc::write(pipe[1], ptr::from_ref(&errno).cast(), size_of::<i32>());
            libc::_exit(127);
        }
        libc::close(pipe[1]);
        let mut errno: i32 = 0;
        let read = loop {
            let read = libc::read(pipe[0], ptr::from_mut(&mut errno).cast(), size_of::<i32>());
            if read >= 0 || *libc::__errno_location() != libc::EINTR {
                break read;
            }
        };
        libc::close(pipe[0]);
        if read == size_of::<i32>() as isize {
            libc::waitpid(tool, ptr::null_mut(), 0);
            return Ok(Err(errno));
        }
        Ok(Ok(tool))
    }
}

/// The last steps of the child; returns only when one of them failed.
///
/// # Safety
/// Runs after fork in a process with one thread; `argv` ends with a null pointer.
unsafe fn become_tool(program: &CString, argv: &[*const libc::c_char], parent: libc::pid_t) {
    // SAFETY: system calls only; the pointers are valid by the caller's promise.
    unsafe {
        if libc::setpgid(0, 0) < 0
            || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) < 0
        {
            return;
        }
        if libc::getppid() != parent {
            libc::_exit(127);
        }
        // Rust ignores SIGPIPE and we blocked SIGCHLD; a tool starts with neither.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        // Whatever the crib's own parent left open stays behind.
        libc::syscall(
            libc::SYS_close_range,
            3,
            libc::c_uint::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        );
        libc::execv(program.as_ptr(), argv.as_ptr());
    }
}

/// Waits for the tool's exit (`Some`) or the crib's hang-up (`None`).
fn watch(
    control: libc::c_int,
    signals: libc::c_int,
    tool: libc::pid_t,
) -> io::Result<Option<Report>> {
    let mut polled = [
        libc::pollfd {
            fd: control,
            events: libc::POLLIN,
            revents: 0,
        },
        libc::pollfd {
            fd: signals,
            events: libc::POLLIN,
            revents: 0,
        },
    ];
    loop {
        if let Some(ending) = reap(tool) {
            return Ok(Some(ending));
        }
        // SAFETY: the array lives across the call.
        match check(unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) }) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
            Err(error) => return Err(error),
        }
        if polled[0].revents != 0 {
            return Ok(None);
        }
        let mut seen = [0_u8; 128];
        // SAFETY: the buffer lives across the call; the descriptor does not block.
        unsafe { libc::read(signals, seen.as_mut_ptr().cast(), seen.len()) };
    }
}

/// Takes in every other child that has ended, and tells how the tool ended if it did. The tool itself is left as it
/// is: while nobody takes it in, its number can't become that of a foreign group, and [`kill_tree`] may use it.
fn reap(tool: libc::pid_t) -> Option<Report> {
    loop {
        // SAFETY: the structure lives across the calls, and stays all zeros where no child has ended.
        unsafe {
            let mut seen: libc::siginfo_t = std::mem::zeroed();
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

/// Kills the tool's group and every other descendant: who loses its parent becomes our child and is next.
fn kill_tree(tool: libc::pid_t) {
    let deadline = Instant::now() + KILL_LIMIT;
    // Once, while the tool's number is still its own. A process with this signal waiting can't fork.
    // SAFETY: the group was made for the tool, which nobody has taken in yet.
    unsafe { libc::kill(-tool, libc::SIGKILL) };
    loop {
        for child in children() {
            // SAFETY: a child of ours, which nobody else can take in.
            unsafe { libc::kill(child, libc::SIGKILL) };
        }
        // SAFETY: no memory is touched.
        while unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) } > 0 {}
        // SAFETY: no memory is touched.
        let none_left = unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) } < 0;
        if none_left || Instant::now() > deadline {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a tool's group from outside, when its launcher is gone. The tool itself died with the launcher, so the
/// number still names a group only if somebody of that group lives.
pub(crate) fn kill_group(tool: libc::pid_t) {
    if tool > 1 {
        // SAFETY: no memory is touched.
        unsafe { libc::kill(-tool, libc::SIGKILL) };
    }
}

/// The pids of our own children: from the kernel's list, or by asking every process for its parent.
fn children() -> Vec<libc::pid_t> {
    // SAFETY: no memory is touched.
    let own = unsafe { libc::getpid() };
    if let Ok(list) = std::fs::read_to_string(format!("/proc/self/task/{own}/children")) {
        return list
            .split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect();
    }
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent_of(*pid) == Some(own)).collect()
}

fn parent_of(pid: libc::pid_t) -> Option<libc::pid_t> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; the parent is the second field after its last bracket.
    stat.rsplit_once(')')?
        .1
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_read_back() {
        for report in [
            Report::Started(7),
            Report::ExecFailed(2),
            Report::Code(-1),
            Report::Signal(9),
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
    }

    #[test]
    fn a_parent_is_found_by_asking() {
        let own = std::process::id() as libc::pid_t;
        // SAFETY: no memory is touched.
        assert_eq!(parent_of(own), Some(unsafe { libc::getppid() }));
    }
}
