//! A policy translated for a rung: what is mounted, ruled, filtered and limited, and what that comes to. Pure.
//!
//! Nothing of a policy is left out in silence: what can't be enforced as asked is in `lost`, named `watch`, or refused.

mod calls;
mod enforced;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[cfg(test)]
pub(crate) use calls::tests as tests_of_calls;
pub(crate) use calls::{Calls, Rules, Sockets, Test, Verdict};
pub use enforced::Enforced;

use crate::Rung;
use crate::machine::{CannotConfine, LANDLOCK_SCOPES, Machine};
use crate::policy::{Exec, Network, Policy};
use crate::resolved_paths::{ResolvedPaths, Spot};
use crate::system::{DEVICES, PROC};

/// Where the private tmp lies behind mounts.
const TMP: &str = "/tmp";
const SHARED: &str = "/dev/shm";
const STREAMS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// What the launcher does before it executes the tool, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub rung: Rung,
    /// The new root's contents; empty where there is none.
    pub mounts: Vec<Mount>,
    pub road: Road,
    /// Control groups to join, by the files that take a process in.
    pub groups: Vec<PathBuf>,
    pub limits: Limits,
    /// None on the rung without Landlock.
    pub landlock: Option<Landlock>,
    pub calls: Calls,
    pub exec: Exec,
    /// What is executed, by a path without links.
    pub program: PathBuf,
    #[serde(skip)]
    pub enforced: Enforced,
    /// What this rung can't do, in words.
    #[serde(skip)]
    pub lost: Vec<String>,
    /// Variables that say where the private places are.
    #[serde(skip)]
    pub vars: Vec<(&'static str, PathBuf)>,
    /// Folders that must be there to be protected.
    #[serde(skip)]
    pub placeholders: Vec<PathBuf>,
    /// What is left to watch from outside.
    #[serde(skip)]
    pub watch: Watch,
}

/// One thing in the new root. Paths are the same inside and outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Mount {
    pub path: PathBuf,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Kind {
    Tmp {
        mb: u64,
    },
    Proc,
    Bind {
        folder: bool,
        writable: bool,
    },
    Device,
    /// Something empty in its place.
    Hidden {
        folder: bool,
    },
    Link {
        to: PathBuf,
    },
    Folder,
}

/// How the tool reaches the crib's proxy, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Road {
    /// A network namespace of its own, with nothing in it.
    Nowhere,
    /// The same with a listener that is handed to the crib.
    Listener,
    /// Every `connect` is asked about; the proxy listens on this port of the machine.
    Asked { port: u16 },
    /// The machine's network.
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Bytes of private memory per process, where no group counts it.
    pub data: Option<u64>,
    pub processes: Option<u64>,
    pub file: u64,
}

/// The rules, by paths as they are seen by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Landlock {
    pub version: u32,
    pub rules: Vec<Rule>,
    /// Whether the network is ruled too.
    pub net: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub path: PathBuf,
    pub folder: bool,
    pub access: Access,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Access {
    /// The names in a folder, not what they hold.
    List,
    Read,
    /// Read and execute.
    Run,
    /// Read and write; execute too where that is allowed at all.
    Write,
}

/// Limits that somebody outside has to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Watch {
    pub memory: Option<u64>,
    pub cpu_percent: Option<u32>,
    pub processes: Option<u32>,
    /// How many generations from the launcher on are not the tool's.
    pub ours: usize,
    /// Are all sockets that it sees the tool's own?
    pub alone: bool,
}

impl Watch {
    pub(crate) fn is_needed(&self) -> bool {
        self.memory.is_some() || self.cpu_percent.is_some() || self.processes.is_some()
    }
}

impl Plan {
    /// `scratch` is a private folder, made where no tmp can be mounted.
    pub(crate) fn new(
        policy: &Policy,
        ground: &ResolvedPaths,
        machine: &Machine,
        rung: Rung,
        scratch: &Path,
    ) -> Result<Plan, CannotConfine> {
        let mounted = rung != Rung::Group;
        let road = road(policy, machine, rung)?;
        let scoped = mounted || machine.landlock >= LANDLOCK_SCOPES;
        refuse_what_can_not_be(ground, rung)?;
        let tmp = if mounted { Path::new(TMP) } else { scratch };
        let groups = machine.groups;
        let by_namespace = mounted && machine.counts_by_namespace();
        let memory = policy.memory_mb.saturating_mul(1 << 20);
        let landlock = (rung != Rung::NamespacesOnly).then(|| Landlock {
            version: machine.landlock,
            rules: rules(policy, ground, mounted, tmp),
            net: road != Road::Open,
        });
        Ok(Plan {
            rung,
            mounts: if mounted {
                mounts(policy, ground)
            } else {
                Vec::new()
            },
            road,
            groups: Vec::new(),
            limits: Limits {
                data: (!groups.memory).then_some(memory),
                // The launcher and the namespace's first process are counted too.
                processes: (!groups.processes && by_namespace)
                    .then_some(u64::from(policy.processes) + 2),
                file: policy.file_mb.saturating_mul(1 << 20),
            },
            landlock,
            calls: Calls {
                exec: policy.exec,
                sockets: Sockets::on(road),
                keep_modes: !mounted,
                apart: mounted,
                scoped,
                counted: groups.memory,
                watches: mounted,
            },
            exec: policy.exec,
            program: ground.program.clone(),
            enforced: Enforced::of(policy, machine, rung, road),
            lost: lost(ground, machine, rung),
            vars: vec![("TMPDIR", tmp.to_path_buf()), ("HOME", tmp.join("home"))],
            placeholders: if mounted {
                ground.missing.clone()
            } else {
                Vec::new()
            },
            watch: Watch {
                memory: (!groups.memory).then_some(memory),
                cpu_percent: (!groups.cpu).then_some(policy.cpu_percent),
                // In a group the launcher's sentry is seen too.
                processes: (!groups.processes && !by_namespace)
                    .then_some(policy.processes.saturating_add(u32::from(!mounted))),
                ours: if mounted { 2 } else { 1 },
                alone: mounted && road != Road::Open,
            },
        })
    }
}

fn road(policy: &Policy, machine: &Machine, rung: Rung) -> Result<Road, CannotConfine> {
    match (&policy.network, rung) {
        (Network::Open, _) => Ok(Road::Open),
        (network, _) if network.hosts().is_empty() => Ok(Road::Nowhere),
        (_, Rung::Namespaces | Rung::NamespacesOnly) => Ok(Road::Listener),
        (_, Rung::Group) if machine.notify => Ok(Road::Asked { port: 0 }),
        (_, Rung::Group) => Err(CannotConfine::new(
            "single hosts can't be allowed here: there are no namespaces, and the kernel's filters can't ask",
            "allow user namespaces, use Linux 5.9 or newer, or grant the whole network",
        )),
    }
}

fn refuse_what_can_not_be(ground: &ResolvedPaths, rung: Rung) -> Result<(), CannotConfine> {
    // Nothing is mounted over a link; Landlock keeps the folder that it lies in.
    // Where the private tmp is, Landlock opens all that is mounted below it.
    let open = |link: &&PathBuf| {
        rung == Rung::NamespacesOnly || [TMP, SHARED].iter().any(|tmp| link.starts_with(tmp))
    };
    if let (true, Some(link)) = (rung != Rung::Group, ground.linked.iter().find(open)) {
        return Err(CannotConfine::new(
            format!(
                "`{}` is to stay unwritten and is a link, which a tool could replace",
                link.display()
            ),
            "put the folder itself there, or name the writable folders beside it one by one",
        ));
    }
    Ok(())
}

/// Parents come before what lies in them.
fn mounts(policy: &Policy, ground: &ResolvedPaths) -> Vec<Mount> {
    let bind = |writable: bool| {
        move |spot: &Spot| Mount {
            path: spot.path.clone(),
            kind: Kind::Bind {
                folder: spot.folder,
                writable,
            },
        }
    };
    let hidden = |spot: &Spot| Mount {
        path: spot.path.clone(),
        kind: Kind::Hidden {
            folder: spot.folder,
        },
    };
    let own = [
        (
            TMP,
            Kind::Tmp {
                mb: policy.tmp_mb.max(1),
            },
        ),
        (
            SHARED,
            Kind::Tmp {
                mb: policy.tmp_mb.max(1),
            },
        ),
        ("/tmp/home", Kind::Folder),
        ("/proc", Kind::Proc),
    ];
    let mut mounts: Vec<Mount> = own
        .map(|(path, kind)| Mount {
            path: path.into(),
            kind,
        })
        .into();
    mounts.extend(DEVICES.map(|path| Mount {
        path: path.into(),
        kind: Kind::Device,
    }));
    // A process's own descriptors, by the names that shells and programs know.
    mounts.extend(STREAMS.map(|(path, to)| Mount {
        path: path.into(),
        kind: Kind::Link { to: to.into() },
    }));
    mounts.extend(ground.read.iter().map(bind(false)));
    mounts.extend(ground.protect.iter().map(bind(false)));
    let placeholder = |path: &PathBuf| Spot {
        path: path.clone(),
        folder: true,
    };
    mounts.extend(
        ground
            .missing
            .iter()
            .map(placeholder)
            .map(|spot| bind(false)(&spot)),
    );
    mounts.extend(ground.write.iter().map(bind(true)));
    // What something is mounted on can't be renamed, and neither can what is protected be moved with it.
    let between = ground
        .between
        .iter()
        .filter(|path| !is_mounted(ground, path));
    mounts.extend(between.map(placeholder).map(|spot| bind(true)(&spot)));
    mounts.extend(ground.hide.iter().map(hidden));
    mounts.extend(ground.links.iter().map(|(path, to)| Mount {
        path: path.clone(),
        kind: Kind::Link { to: to.clone() },
    }));
    mounts.sort();
    mounts
}

/// Are writable folders opened entry by entry? Without mounts that is what keeps something in them unwritten; with mounts
/// it is needed for links alone.
fn by_entries(ground: &ResolvedPaths, mounted: bool) -> bool {
    !mounted || !ground.linked.is_empty()
}

/// Is something mounted there anyway?
fn is_mounted(ground: &ResolvedPaths, path: &Path) -> bool {
    let mut spots = ground.write.iter().chain(&ground.protect);
    spots.any(|spot| spot.path == path)
}

fn rules(policy: &Policy, ground: &ResolvedPaths, mounted: bool, tmp: &Path) -> Vec<Rule> {
    let reading = match policy.exec {
        Exec::Once => Access::Read,
        Exec::Allowed => Access::Run,
    };
    let rule = |spot: &Spot, access| Rule {
        path: spot.path.clone(),
        folder: spot.folder,
        access,
    };
    let at = |path: &Path, folder, access| Rule {
        path: path.to_path_buf(),
        folder,
        access,
    };
    let mut rules = Vec::new();
    if mounted || ground.hide.is_empty() {
        rules.extend(ground.read.iter().map(|spot| rule(spot, reading)));
    } else {
        rules.extend(ground.listed.iter().map(|spot| rule(spot, Access::List)));
        rules.extend(ground.reading.iter().map(|spot| rule(spot, reading)));
    }
    if by_entries(ground, mounted) {
        // All of it is read, and written as far as nothing in it stays closed.
        if mounted || ground.hide.is_empty() {
            rules.extend(ground.write.iter().map(|spot| rule(spot, reading)));
        }
        rules.extend(ground.entries.iter().map(|spot| rule(spot, Access::Write)));
    } else {
        rules.extend(ground.write.iter().map(|spot| rule(spot, Access::Write)));
    }
    if mounted {
        rules.push(at(Path::new("/proc"), true, Access::Read));
        rules.push(at(Path::new(SHARED), true, Access::Write));
    } else {
        let proc = PROC
            .iter()
            .map(|path| at(Path::new(path), path.ends_with("self"), Access::Read));
        rules.extend(proc);
    }
    rules.push(at(tmp, true, Access::Write));
    rules.push(at(Path::new("/dev/null"), false, Access::Write));
    let sources = DEVICES.iter().filter(|path| **path != "/dev/null");
    rules.extend(sources.map(|path| at(Path::new(path), false, Access::Read)));
    let executed = [Some(&ground.program), ground.loader.as_ref()];
    rules.extend(
        executed
            .into_iter()
            .flatten()
            .map(|path| at(path, false, Access::Run)),
    );
    rules
}

fn lost(ground: &ResolvedPaths, machine: &Machine, rung: Rung) -> Vec<String> {
    let mut lost = Vec::new();
    let mut say = |holds: bool, text: &str| lost.extend(holds.then(|| text.to_owned()));
    let group = rung == Rung::Group;
    say(
        rung == Rung::NamespacesOnly,
        "mounts and namespaces hold alone: there is no Landlock behind them",
    );
    say(
        group,
        "names, sizes, times and link targets of files elsewhere can be seen, though not what is in them",
    );
    say(
        group,
        "the machine's tables of sockets and routes can be read",
    );
    say(
        group,
        "the private tmp has no size of its own; only each file's is limited",
    );
    say(group, "POSIX semaphores and shared memory can't be used");
    say(
        group,
        "changing modes and times of files does nothing, not even in the private tmp",
    );
    let kept = [
        ground.protect.is_empty(),
        ground.missing.is_empty(),
        ground.linked.is_empty(),
    ];
    say(
        by_entries(ground, !group) && kept.contains(&false),
        "new entries are refused at the top of a writable folder that holds something protected, such as `.git`",
    );
    say(
        group && !ground.hide.is_empty(),
        "the names of the crib's own files can be seen, and what comes to be beside its folders is not read before the next start",
    );
    say(
        !machine.groups.memory,
        "memory is looked at every 50 ms and may pass its limit in between; sockets and pipes count as if they were full; \
         shared memory that is no longer mapped, and locks of files, are not seen",
    );
    let counted = machine.groups.processes || !group && machine.counts_by_namespace();
    say(
        !counted,
        "processes are counted every 50 ms and may pass their limit in between",
    );
    say(
        !machine.groups.cpu,
        "processor time is kept to its share by stopping and continuing the processes; that of short-lived processes which \
         nobody waits for is estimated",
    );
    lost
}
