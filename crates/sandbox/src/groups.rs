//! Control groups, where this process may make some: exact limits for memory, processor and processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::machine::Controllers;
use crate::policy::Policy;

/// Where groups for one kind of limit can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupParent {
    parent: PathBuf,
    /// One tree for all kinds, or one of the older ones.
    unified: bool,
}

/// The places that were found by trying.
#[derive(Debug, Clone, Default)]
struct GroupParents {
    memory: Option<GroupParent>,
    cpu: Option<GroupParent>,
    processes: Option<GroupParent>,
}

fn group_parents() -> &'static GroupParents {
    static FOUND: OnceLock<GroupParents> = OnceLock::new();
    FOUND.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (mounts, own) = (read("/proc/self/mounts"), read("/proc/self/cgroup"));
        let find = |controller: &str| {
            candidates(&mounts, &own, controller)
                .into_iter()
                .find(|place| works(place, controller))
        };
        GroupParents {
            memory: find("memory"),
            cpu: find("cpu"),
            processes: find("pids"),
        }
    })
}

/// What groups can bound here.
pub(crate) fn controllers() -> Controllers {
    let places = group_parents();
    Controllers {
        memory: places.memory.is_some(),
        cpu: places.cpu.is_some(),
        processes: places.processes.is_some(),
    }
}

/// Where a group might be made: in our own group of the older trees, beside our own in the unified one, because there a
/// group with limited children holds no processes itself.
fn candidates(mounts: &str, own: &str, controller: &str) -> Vec<GroupParent> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let own_path = |wanted: &dyn Fn(&str) -> bool| {
        own.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, names, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(names).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let mut found = Vec::new();
    for line in mounts.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(at), Some(kind), Some(options)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let at = Path::new(at);
        if kind == "cgroup" && has(options) {
            let inside = own_path(&|names| has(names)).map(|path| at.join(path));
            let parent = inside.filter(|folder| folder.is_dir()).unwrap_or(at.into());
            found.push(GroupParent {
                parent,
                unified: false,
            });
        }
        if kind == "cgroup2" {
            let inside = own_path(&str::is_empty).map(|path| at.join(path));
            let own = inside.filter(|folder| folder.is_dir()).unwrap_or(at.into());
            let beside = own.parent().filter(|_| own != at).unwrap_or(&own);
            found.push(GroupParent {
                parent: beside.into(),
                unified: true,
            });
        }
    }
    found
}

/// Whether a group can be made there and limited.
fn works(place: &GroupParent, controller: &str) -> bool {
    if place.unified {
        let given = fs::read_to_string(place.parent.join("cgroup.subtree_control"));
        if !given.is_ok_and(|given| given.split_whitespace().any(|name| name == controller)) {
            return false;
        }
    }
    clear_up(&place.parent);
    let Ok(folder) = new_folder(place) else {
        return false;
    };
    let files = files(controller, place.unified, &Policy::default());
    let written = files
        .iter()
        .all(|(name, value)| fs::write(folder.join(name), value).is_ok());
    // A group that nobody entered can always be removed.
    let _ = fs::remove_dir(&folder);
    written
}

/// Makes a group that is named after this process. In another pid namespace another may have the same number.
fn new_folder(place: &GroupParent) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolcrib-{}-{count}", std::process::id());
        let folder = place.parent.join(name);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}

/// Nobody takes this long to enter a group that it made.
const ABANDONED: Duration = Duration::from_secs(60);

/// Removes what a crib that was killed has left behind. A maker that is not seen may live in another pid namespace, so a
/// group that was made a moment ago stays: it may be about to be entered.
fn clear_up(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let made = entry.metadata().and_then(|meta| meta.modified());
        let age = made.ok().and_then(|made| made.elapsed().ok());
        if age.is_none_or(|age| age < ABANDONED) {
            continue;
        }
        let name = entry.file_name();
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix("toolcrib-")?.split('-').next());
        let lives = |pid: &str| Path::new("/proc").join(pid).exists();
        if maker.is_some_and(|pid| pid.parse::<u32>().is_ok() && !lives(pid)) {
            // It may be in use in another pid namespace; then it stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The files that hold a limit, and what is written to them.
fn files(controller: &str, unified: bool, policy: &Policy) -> Vec<(&'static str, String)> {
    let bytes = policy.memory_mb.saturating_mul(1 << 20).to_string();
    // Microseconds in each tenth of a second.
    let share = u64::from(policy.cpu_percent.max(1)) * 1_000;
    match (controller, unified) {
        ("memory", false) => vec![("memory.limit_in_bytes", bytes)],
        ("memory", true) => vec![("memory.max", bytes), ("memory.oom.group", "1".to_owned())],
        ("cpu", false) => vec![
            ("cpu.cfs_period_us", "100000".to_owned()),
            ("cpu.cfs_quota_us", share.to_string()),
        ],
        ("cpu", true) => vec![("cpu.max", format!("{share} 100000"))],
        _ => vec![("pids.max", policy.processes.to_string())],
    }
}

/// The groups of one tool. They go when it has gone.
#[derive(Debug, Default)]
pub(crate) struct Group {
    folders: Vec<PathBuf>,
}

impl Group {
    /// Makes groups with the policy's limits, as far as there are places for them.
    pub(crate) fn new(policy: &Policy) -> io::Result<Group> {
        let mut group = Group::default();
        let places = group_parents();
        let mut made: Vec<(&GroupParent, PathBuf)> = Vec::new();
        for (controller, place) in [
            ("memory", &places.memory),
            ("cpu", &places.cpu),
            ("pids", &places.processes),
        ] {
            let Some(place) = place else {
                continue;
            };
            let known = made.iter().find(|(other, _)| *other == place);
            let folder = match known {
                Some((_, folder)) => folder.clone(),
                None => {
                    let folder = new_folder(place)?;
                    group.folders.push(folder.clone());
                    made.push((place, folder.clone()));
                    folder
                }
            };
            for (name, value) in files(controller, place.unified, policy) {
                fs::write(folder.join(name), value)?;
            }
        }
        Ok(group)
    }

    /// The files by which a process enters.
    pub(crate) fn doors(&self) -> Vec<PathBuf> {
        self.folders
            .iter()
            .map(|folder| folder.join("cgroup.procs"))
            .collect()
    }

    /// Whether the kernel killed somebody in here for memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        ["memory.oom_control", "memory.events"].iter().any(|name| {
            self.folders.iter().any(|folder| {
                let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
                text.lines().any(|line| {
                    line.strip_prefix("oom_kill ")
                        .is_some_and(|count| count != "0")
                })
            })
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut left: Vec<PathBuf> = std::mem::take(&mut self.folders);
        left.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
        if left.is_empty() {
            return;
        }
        // Processes that were killed leave a group a moment later.
        std::thread::spawn(move || {
            for _ in 0..100 {
                left.retain(|folder| fs::remove_dir(folder).is_err() && folder.exists());
                if left.is_empty() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_the_kernels_lists() {
        let mounts = "cgroup /none/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n\
                      cgroup /none/memory cgroup rw,memory 0 0\n\
                      cgroup2 /none/unified cgroup2 rw,nsdelegate 0 0\n";
        let own = "4:memory:/a\n1:cpu,cpuacct:/\n0::/user.slice/x.scope\n";
        let found = candidates(mounts, own, "memory");
        let shown: Vec<_> = found
            .iter()
            .map(|place| (place.parent.to_str().unwrap(), place.unified))
            .collect();
        assert_eq!(shown, [("/none/memory", false), ("/none/unified", true)]);
        assert_eq!(
            candidates(mounts, own, "cpu")[0].parent,
            Path::new("/none/cpu")
        );
        assert!(candidates("", own, "memory").is_empty());
    }

    #[test]
    fn only_what_was_abandoned_is_cleared_up() {
        let parent = tempfile::tempdir().unwrap();
        // No process has this number.
        let gone = u32::MAX - 7;
        let make = |name: String, age: Duration| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            let made = std::time::SystemTime::now() - age;
            fs::File::open(&folder).unwrap().set_modified(made).unwrap();
            folder
        };
        let old = make(format!("toolcrib-{gone}-0"), ABANDONED * 2);
        let new = make(format!("toolcrib-{gone}-1"), Duration::ZERO);
        let own = make(format!("toolcrib-{}-0", std::process::id()), ABANDONED * 2);
        let other = make("other".to_owned(), ABANDONED * 2);
        clear_up(parent.path());
        let left = [&old, &new, &own, &other].map(|folder| folder.exists());
        assert_eq!(left, [false, true, true, true]);
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let policy = Policy {
            cpu_percent: 50,
            memory_mb: 1,
            ..Policy::default()
        };
        assert_eq!(
            files("cpu", true, &policy),
            [("cpu.max", "50000 100000".to_owned())]
        );
        assert_eq!(
            files("memory", false, &policy),
            [("memory.limit_in_bytes", "1048576".to_owned())]
        );
        assert_eq!(
            files("pids", true, &policy),
            [("pids.max", "64".to_owned())]
        );
    }
}
