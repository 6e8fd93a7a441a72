//! Which cores a process may use.

use std::sync::OnceLock;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Every core that this process had when it started. Counted once: later it may be bound to a few of them.
pub fn all() -> Vec<usize> {
    static COUNT: OnceLock<usize> = OnceLock::new();
    let count = || std::thread::available_parallelism().map_or(1, usize::from);
    (0..*COUNT.get_or_init(count)).collect()
}

/// Binds every thread of a process to these cores. What they start later is bound with them.
pub fn pin(pid: u32, cores: &[usize]) {
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    for task in tasks(pid) {
        // A thread that is gone is no harm.
        let _ = sched_setaffinity(Some(task), &set);
    }
}

pub fn pin_self(cores: &[usize]) {
    pin(std::process::id(), cores);
}

/// Binds a process and all below it.
pub fn pin_tree(pid: u32, core: usize) {
    for process in tree(pid) {
        pin(process, &[core]);
    }
}

/// Does a process, with at least one below it, run on this core alone?
pub fn is_tree_pinned(pid: u32, core: usize) -> bool {
    let processes = tree(pid);
    processes.len() > 1
        && processes.iter().all(|process| {
            let allowed = field(*process, "Cpus_allowed_list:");
            // One that has ended meanwhile runs nowhere.
            allowed.is_none_or(|list| list == core.to_string())
        })
}

fn tasks(pid: u32) -> impl Iterator<Item = Pid> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let ids = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    ids.filter_map(Pid::from_raw)
}

/// A process and all below it.
fn tree(root: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid| Some((pid, field(pid, "PPid:")?.parse().ok()?)))
        .collect();
    let mut tree = vec![root];
    let mut at = 0;
    while let Some(parent) = tree.get(at).copied() {
        let below = parents.iter().filter(|(_, of)| *of == parent);
        tree.extend(below.map(|(pid, _)| *pid));
        at += 1;
    }
    tree
}

fn field(pid: u32, name: &str) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}
