//! What runs on this machine: counted by marker and by parent, and killed one by one.

use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How many processes have this text in their command line or environment-free name.
pub fn count_processes(marker: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.windows(marker.len())
                .any(|part| part == marker.as_bytes())
        })
        .count()
}

/// How many descriptors a process holds.
pub fn count_descriptors(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .count()
}

/// What the descriptors of a process lead to.
pub fn descriptors(pid: u32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let target = |one: std::fs::DirEntry| one.path().read_link().ok();
    let mut targets: Vec<String> = all
        .flatten()
        .filter_map(target)
        .map(|target| target.display().to_string())
        .collect();
    targets.sort();
    targets
}

/// The pids of all descendants of a process.
pub fn descendants(pid: u32) -> Vec<u32> {
    let children = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let direct: Vec<u32> = children
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .collect();
    direct
        .iter()
        .flat_map(|child| std::iter::once(*child).chain(descendants(*child)))
        .collect()
}

#[expect(unsafe_code, reason = "a signal to a process of this test's own")]
pub fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: no memory is touched; the pid is a child that was not waited for yet.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// One process, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    pub parent: u32,
    group: u32,
    /// When it was started; with the pid, this names no other process ever.
    started: u64,
    pub args: Vec<String>,
}

impl Process {
    /// Nothing where it is gone, or dead and not yet taken in.
    pub fn read(pid: u32) -> Option<Process> {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let text = String::from_utf8_lossy(&line);
        let args = text.split_terminator('\0').map(str::to_owned).collect();
        let alive = !["Z", "X"].contains(fields.first()?);
        alive.then_some(Process {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
            args,
        })
    }

    pub fn is_launcher(&self) -> bool {
        self.args.get(1).is_some_and(|arg| arg == "__launch")
    }

    /// Is this the program itself, rather than its launcher?
    pub fn runs(&self, program: &str) -> bool {
        let first = self.args.first().map(Path::new);
        first
            .and_then(Path::file_name)
            .is_some_and(|name| name == program)
    }

    /// Is it what a launcher started, rather than something that was left behind? Tools lead their group.
    pub fn is_tool(&self) -> bool {
        self.group == self.pid && Process::read(self.parent).is_some_and(|p| p.is_launcher())
    }

    pub fn is_alive(&self) -> bool {
        Process::read(self.pid).is_some_and(|now| now.started == self.started)
    }

    /// Kills this very process: never another one that got its number since.
    pub fn kill(&self) {
        let pid = Pid::from_raw(self.pid as i32).unwrap();
        if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty())
            && self.is_alive()
        {
            let _ = pidfd_send_signal(handle, Signal::KILL);
        }
    }
}

/// Every living process that has the marker in its command line.
pub fn marked(marker: &str) -> Vec<Process> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read)
        .filter(|process| process.args.iter().any(|arg| arg.contains(marker)))
        .collect()
}

/// How long nothing may outlive its owner.
const LIMIT: Duration = Duration::from_secs(5);

/// Waits until no process has the marker, and gives how long that took.
pub async fn all_gone(marker: &str) -> Duration {
    let begin = Instant::now();
    loop {
        let left = marked(marker);
        if left.is_empty() {
            return begin.elapsed();
        }
        assert!(
            begin.elapsed() < LIMIT,
            "after {LIMIT:?} there live {left:#?}"
        );
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Resident memory of a process in kB.
pub fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.unwrap().split_ascii_whitespace().next();
    number.unwrap().parse().unwrap()
}

/// The full count when asked for, a part of it otherwise.
pub fn soak(full: usize, otherwise: usize) -> usize {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have a variable of their own"
    )]
    let asked = std::env::var_os("TOOLCRIB_SOAK").is_some();
    if asked { full } else { otherwise }
}
