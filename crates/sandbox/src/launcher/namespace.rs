//! Kept together by a pid namespace.
//!
//! The launcher forks the namespace's first process, which forks the tool and attends to it. When the first process
//! ends, however it does, the kernel kills every other process of the namespace, and only then does the launcher, which
//! waits for nothing else, see it end. From inside it can't be killed: the kernel drops signals to a first process that
//! does not ask for them.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;

use super::tool::{Bond, Tool};
use super::wire::{self, Report};
use super::{Streams, Walls, check, child_signals, errno, fail, watch};

/// Gives the next child a pid namespace, and this process a copy of the mounts. Who may not do that is given a user
/// namespace too, in which it may, and in which it is the same user as outside.
pub(super) fn enter() -> io::Result<()> {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    // SAFETY: no memory is touched.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: as above; the process has one thread.
    match check(unsafe { libc::unshare(flags) }) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => enter_as_user(flags, uid, gid),
        other => other.map(|_| ()),
    }
}

/// The same with a user namespace in any case, and with all other kinds: what a confined tool sees of the machine's
/// processes, network and messages is its own.
pub(super) fn enter_confined(shares_network: bool) -> io::Result<()> {
    let network = if shares_network {
        0
    } else {
        libc::CLONE_NEWNET
    };
    let kinds = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
    let more = libc::CLONE_NEWUTS | libc::CLONE_NEWCGROUP;
    // SAFETY: no memory is touched.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    enter_as_user(kinds | more | network, uid, gid)
}

/// Bounds what the tool may take of what all programs of the user share: they would run out of it too. Only who has a
/// user namespace can have bounds of its own there.
pub(super) fn bound_watches() -> io::Result<()> {
    for (name, most) in [("instances", "16"), ("watches", "8192")] {
        std::fs::write(format!("/proc/sys/user/max_inotify_{name}"), most)?;
    }
    Ok(())
}

fn enter_as_user(flags: libc::c_int, uid: libc::uid_t, gid: libc::gid_t) -> io::Result<()> {
    // SAFETY: no memory is touched; the process has one thread.
    check(unsafe { libc::unshare(flags | libc::CLONE_NEWUSER) })?;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

/// In the first process: a `/proc` that shows the new namespace. Mounts still come in from outside, none goes out.
fn mount_proc() -> io::Result<()> {
    let guarded = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    // SAFETY: the strings end with null bytes, and null pointers stand for what is not needed.
    unsafe {
        check(libc::mount(
            ptr::null(),
            c"/".as_ptr(),
            ptr::null(),
            libc::MS_REC | libc::MS_SLAVE,
            ptr::null(),
        ))?;
        check(libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            guarded,
            ptr::null(),
        ))?;
    }
    Ok(())
}

/// Finds out whether all of it works here, by doing it in a child. Settings don't tell: on some machines a user
/// namespace can be made and then gives no rights.
pub(super) fn probe() -> io::Result<()> {
    in_child(|| {
        enter()?;
        in_child(mount_proc)
    })
}

/// Does something in a child and gives the error it had there.
fn in_child(what: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: one thread, so the child may call anything.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        let code = what().map_or_else(|error| errno(&error), |()| 0);
        // SAFETY: ends the child without running what belongs to the parent. Errnos fit an exit code.
        unsafe { libc::_exit(code) };
    }
    match wait_for(child)? {
        0 => Ok(()),
        status if libc::WIFEXITED(status) => {
            Err(io::Error::from_raw_os_error(libc::WEXITSTATUS(status)))
        }
        _ => Err(io::Error::from_raw_os_error(libc::EIO)),
    }
}

fn wait_for(child: libc::pid_t) -> io::Result<libc::c_int> {
    let mut status = 0;
    // SAFETY: the number lives across the call.
    check(unsafe { libc::waitpid(child, &mut status, 0) })?;
    Ok(status)
}

/// Runs the tool to its end and to the end of all it started; this process has entered.
pub(super) fn run(
    control: OwnedFd,
    streams: Streams,
    tool: &Tool,
    walls: Option<Walls>,
) -> io::Result<()> {
    let (launcher, ours) = match io::pipe() {
        Ok(pipe) => pipe,
        Err(error) => return fail(&control, error),
    };
    // SAFETY: one thread, so the child may call anything.
    match check(unsafe { libc::fork() }) {
        Ok(0) => {
            drop(ours);
            if let Err(error) = be_first(&control, streams, tool, walls, &launcher) {
                // Where the crib is gone too there is nobody to tell.
                let _ = fail(&control, error);
            }
            // SAFETY: ends this process, and with it the namespace.
            unsafe { libc::_exit(0) }
        }
        Ok(first) => {
            // Only the first process holds the socket from here on: the crib sees at once when it is gone.
            drop((control, walls));
            streams.let_go()?;
            wait_for(first).map(|_| ())
        }
        Err(error) => fail(&control, error),
    }
}

/// The whole life of the first process.
fn be_first(
    control: &OwnedFd,
    streams: Streams,
    tool: &Tool,
    mut walls: Option<Walls>,
    launcher: &PipeReader,
) -> io::Result<()> {
    die_with(launcher)?;
    match &mut walls {
        Some(walls) => {
            if let Err(trouble) = walls.furnish() {
                return wire::report(control.as_fd(), Report::Walls(trouble.code()));
            }
            // The tool, which is the same user, is not to look into this process.
            // SAFETY: no memory is touched.
            check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) })?;
        }
        None => mount_proc()?,
    }
    let signals = child_signals()?;
    let started = tool.start(Bond::Namespace, walls.as_ref())?;
    drop(walls);
    let tool = match started {
        Ok(tool) => tool,
        Err(report) => return wire::report(control.as_fd(), report),
    };
    streams.let_go()?;
    wire::report(control.as_fd(), Report::InNamespaces)?;
    let ending = watch(control.as_fd(), signals.as_fd(), tool)?;
    wire::report(control.as_fd(), ending)
}

/// Ties this process to the launcher, which may be gone already. Its number can't be asked for in here, but its end of
/// the pipe is open as long as it lives.
fn die_with(launcher: &PipeReader) -> io::Result<()> {
    let mut polled = libc::pollfd {
        fd: launcher.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let signal = libc::SIGKILL as libc::c_ulong;
    // SAFETY: the structure lives across the call.
    let closed = unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0))?;
        check(libc::poll(&mut polled, 1, 0))?
    };
    match closed {
        0 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}
