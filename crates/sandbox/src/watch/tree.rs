//! All processes below a launcher, and what they use, as `/proc` tells it.

#![expect(unsafe_code, reason = "signals have no safe interface")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

/// What a tree uses now.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// The tool's own processes: neither launcher nor the namespace's first.
    pids: Vec<u32>,
    pub threads: u64,
    /// Bytes; shared memory counts once per process.
    pub resident: u64,
    /// Processor time of all that live and of those that were waited for.
    pub used: Duration,
}

/// The number that follows the name in `stat`, counted from the state on.
fn field(stat: &str, index: usize) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(index)?.parse().ok()
}

fn stat(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok()
}

/// When a process was started, in the kernel's ticks.
pub(super) fn started(pid: u32) -> Option<u64> {
    field(&stat(pid)?, 19)
}

/// A process's threads and children; nothing where it is gone.
fn threads_and_children(pid: u32) -> (u64, Vec<u32>) {
    let (mut threads, mut children) = (0, Vec::new());
    for task in fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
    {
        threads += 1;
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        children.extend(
            list.split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    (threads, children)
}

/// Whether the kernel keeps lists of children.
fn has_lists() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

/// Children by asking every process for its parent.
fn by_asking() -> HashMap<u32, Vec<u32>> {
    let mut found: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let Some((pid, parent)) = pid.and_then(|pid| Some((pid, field(&stat(pid)?, 1)?))) {
            found.entry(parent as u32).or_default().push(pid);
        }
    }
    found
}

/// Measures what lies below a launcher. Its first `ours` generations are not the tool's.
pub(super) fn look(launcher: u32, ours: usize) -> Tree {
    let asked = (!has_lists()).then(by_asking);
    let tick = Duration::from_secs(1) / 100;
    let mut tree = Tree::default();
    let mut seen = HashSet::new();
    let mut next = vec![(launcher, 0)];
    while let Some((pid, depth)) = next.pop() {
        if !seen.insert(pid) {
            continue;
        }
        let (threads, mut children) = threads_and_children(pid);
        if let Some(lists) = &asked {
            children.extend(lists.get(&pid).into_iter().flatten());
        }
        next.extend(children.into_iter().map(|child| (child, depth + 1)));
        let Some(stat) = stat(pid) else {
            continue;
        };
        let ticks: u64 = (11..=14).filter_map(|index| field(&stat, index)).sum();
        tree.used += tick * u32::try_from(ticks).unwrap_or(u32::MAX);
        if depth < ours {
            continue;
        }
        tree.threads += threads;
        tree.resident += resident(pid);
        tree.pids.push(pid);
    }
    tree
}

fn resident(pid: u32) -> u64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    // SAFETY: no memory is touched.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * u64::try_from(size).unwrap_or(4_096)
}

impl Tree {
    /// What is resident, with what several processes share divided between them. Slow, so asked for only when it
    /// matters.
    pub(super) fn proportional(&self) -> u64 {
        self.pids
            .iter()
            .map(|pid| {
                let text =
                    fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
                let kilobytes =
                    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
                kilobytes.map_or_else(|| resident(*pid), |kilobytes| kilobytes * 1_024)
            })
            .sum()
    }

    fn signal(pid: u32, signal: libc::c_int) {
        // SAFETY: no memory is touched. The process was found below the launcher a moment ago.
        unsafe { libc::kill(pid as libc::pid_t, signal) };
    }

    pub(super) fn stop(&self, stopped: &mut HashSet<u32>) {
        for pid in &self.pids {
            Tree::signal(*pid, libc::SIGSTOP);
            stopped.insert(*pid);
        }
    }

    pub(super) fn go_on(&self, stopped: &mut HashSet<u32>) {
        for pid in self.pids.iter().filter(|pid| stopped.contains(pid)) {
            Tree::signal(*pid, libc::SIGCONT);
        }
        stopped.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_measured() {
        let own = std::process::id();
        assert!(started(own).is_some());
        assert!(resident(own) > 1 << 20);
        let (threads, _) = threads_and_children(own);
        assert!(threads >= 1);
        assert!(!look(own, 1).pids.contains(&own));
        assert!(look(own, 0).pids.contains(&own));
        let parent = field(&stat(own).unwrap(), 1).unwrap() as u32;
        assert!(
            by_asking()
                .get(&parent)
                .is_some_and(|children| children.contains(&own))
        );
    }
}
