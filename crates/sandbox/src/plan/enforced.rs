//! What enforces what, as `doctor` shows it for each tool.

use std::fmt;

use serde::Serialize;

use super::Road;
use crate::Rung;
use crate::machine::Machine;
use crate::policy::{Network, Policy};

/// For each part of a policy the names of what holds it: `mount`, `landlock`, `seccomp`, `namespace`, `proxy`,
/// `notify`, `cgroup`, `rlimit`, `watch`; `allowed` where there is nothing to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Enforced {
    pub read: &'static str,
    pub write: &'static str,
    pub exec: &'static str,
    pub net: &'static str,
    pub hosts: &'static str,
    pub mem: &'static str,
    pub cpu: &'static str,
    pub pids: &'static str,
}

impl Enforced {
    pub(super) fn of(policy: &Policy, machine: &Machine, rung: Rung, road: Road) -> Enforced {
        let files = match rung {
            Rung::Namespaces => "mount+landlock",
            Rung::NamespacesOnly => "mount",
            Rung::Group => "landlock",
        };
        let groups = machine.groups;
        Enforced {
            read: files,
            write: match rung {
                Rung::Group => "landlock+seccomp",
                _ => files,
            },
            exec: match policy.exec {
                crate::Exec::Once => "seccomp",
                crate::Exec::Allowed => "allowed",
            },
            net: match (road, rung) {
                (Road::Open, _) => "allowed",
                (_, Rung::Group) => "seccomp",
                _ => "namespace+seccomp",
            },
            hosts: match (&policy.network, road) {
                (Network::Open, _) => "allowed",
                (_, Road::Listener) => "proxy",
                (_, Road::Asked { .. }) => "proxy+notify",
                _ => "none",
            },
            mem: if groups.memory {
                "cgroup"
            } else {
                "rlimit+watch"
            },
            cpu: if groups.cpu { "cgroup" } else { "watch" },
            pids: match (groups.processes, rung) {
                (true, _) => "cgroup",
                (false, Rung::Namespaces | Rung::NamespacesOnly)
                    if machine.counts_by_namespace() =>
                {
                    "rlimit"
                }
                _ => "watch",
            },
        }
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "read={} write={} exec={} net={} hosts={} mem={} cpu={} pids={}",
            self.read, self.write, self.exec, self.net, self.hosts, self.mem, self.cpu, self.pids
        )
    }
}
