//! Kept together by a process group, where namespaces can't be had.
//!
//! A filter forbids the tool to leave its group, so one signal reaches all of it, and to send one to the launcher. Who
//! loses its parent falls to the launcher, which kills its children until there are none. If somebody else kills the
//! launcher, the tool dies with it, and a sentry in the group kills the rest; so does the crib.

use std::io::{self, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use super::tool::{Bond, Tool};
use super::wire::{self, Report};
use super::{Streams, Walls, check, child_signals, errno, fail, watch};

/// How long the launcher goes on killing before it gives up on processes that the kernel does not let die.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(5);

/// From here on, whoever below this process loses its parent becomes its child, and no process of the same user may
/// look into it or trace it.
pub(super) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: no memory is touched.
    unsafe {
        check(libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))?;
        check(libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0))?;
    }
    Ok(())
}

/// Runs the tool to its end and to the end of all it started; this process has adopted.
pub(super) fn run(
    control: &OwnedFd,
    streams: Streams,
    tool: &Tool,
    walls: Option<Walls>,
) -> io::Result<()> {
    let start = || {
        let signals = child_signals()?;
        Ok((signals, tool.start(Bond::Group, walls.as_ref())?))
    };
    let (signals, tool) = match start() {
        Ok((signals, Ok(tool))) => (signals, tool),
        Ok((_, Err(report))) => return wire::report(control.as_fd(), report),
        Err(error) => return fail(control, error),
    };
    drop(walls);
    let ending = streams.let_go().and_then(|()| {
        let _sentry = post_sentry(tool)?;
        wire::report(control.as_fd(), Report::InGroup(tool))?;
        watch(control.as_fd(), signals.as_fd(), tool)
    });
    // Whatever happened, also when the crib is already gone: from here on nothing of the tool may live.
    kill_tree(tool);
    let last = ending.unwrap_or_else(|error| Report::Failed(errno(&error)));
    // Nobody may be left to hear it, and all is done.
    let _ = wire::report(control.as_fd(), last);
    Ok(())
}

/// Forks a process into the tool's group that kills the group, and itself with it, once this one is gone: it holds the
/// other end of a pipe. The crib would do it too, but may be killed in the same moment. While a sentry stands, the
/// group's number is no other's.
fn post_sentry(tool: libc::pid_t) -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    // SAFETY: one thread, so the child may call anything.
    if check(unsafe { libc::fork() })? > 0 {
        return Ok(writer);
    }
    let pipe = reader.as_raw_fd() as libc::c_uint;
    // SAFETY: the child owns no object that it would still use, and the buffer lives across the call. No signal that
    // can be held back reaches it, so the read ends only with the launcher.
    unsafe {
        // Above all it must not hold the socket, nor its own pipe's other end.
        libc::syscall(libc::SYS_close_range, 0, pipe - 1, 0);
        libc::syscall(libc::SYS_close_range, pipe + 1, libc::c_uint::MAX, 0);
        // A crib that runs in a tool has no groups to make; its outer crib's group is not to be killed.
        if libc::setpgid(0, tool) == 0 {
            let mut byte = 0_u8;
            libc::read(pipe as libc::c_int, ptr::from_mut(&mut byte).cast(), 1);
            libc::kill(0, libc::SIGKILL);
        }
        libc::_exit(0)
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
    fn a_parent_is_found_by_asking() {
        let own = std::process::id() as libc::pid_t;
        // SAFETY: no memory is touched.
        assert_eq!(parent_of(own), Some(unsafe { libc::getppid() }));
    }
}
