//! What the machine offers, in words for `doctor`: each feature, what it gives, what is lost without it, how to get it.

use std::io;

use serde::Serialize;

use crate::machine::{CannotConfine, LANDLOCK_ALONE, LANDLOCK_SCOPES, Machine};
use crate::{Launcher, Rung};

/// The rung that confined processes get here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// None where nothing can be confined, and so nothing is started.
    pub rung: Option<Rung>,
    pub reason: String,
    /// What helps where there is no rung.
    pub remedy: Option<String>,
    pub features: Vec<Feature>,
}

/// One thing that the sandbox is built with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Feature {
    pub name: &'static str,
    pub value: String,
    pub gives: &'static str,
    /// What is lost without it; nothing where it is there.
    pub lost: Option<&'static str>,
    /// How to get it; nothing where it is there.
    pub how: Option<&'static str>,
}

impl Launcher {
    /// Looks the machine over, once; later it is remembered.
    pub async fn survey(&self) -> io::Result<Survey> {
        let (machine, rung) = self.walls().await?;
        Ok(Survey::of(machine, self.most(), rung.clone()))
    }
}

impl Survey {
    fn of(machine: &Machine, most: Rung, rung: Result<Rung, CannotConfine>) -> Survey {
        let (rung, reason, remedy) = match rung {
            Ok(rung) => (Some(rung), reason(rung, machine, most), None),
            Err(refusal) => (None, refusal.reason, Some(refusal.remedy)),
        };
        Survey {
            rung,
            reason,
            remedy,
            features: features(machine),
        }
    }
}

fn reason(rung: Rung, machine: &Machine, most: Rung) -> String {
    let forced = if most == Rung::Namespaces {
        ""
    } else {
        " (TOOLCRIB_MAX_RUNG allows no more)"
    };
    match (rung, &machine.namespaces) {
        (Rung::Namespaces, _) => "namespaces, Landlock and seccomp can all be used".to_owned(),
        (Rung::NamespacesOnly, _) => format!("namespaces and seccomp, without Landlock{forced}"),
        (Rung::Group, Err(lack)) => {
            format!("Landlock and seccomp; namespaces can't be made: {lack}")
        }
        (Rung::Group, Ok(())) => format!("Landlock and seccomp, without namespaces{forced}"),
    }
}

fn feature(
    name: &'static str,
    value: String,
    there: bool,
    gives: &'static str,
    lost: &'static str,
    how: &'static str,
) -> Feature {
    Feature {
        name,
        value,
        gives,
        lost: (!there).then_some(lost),
        how: (!there).then_some(how),
    }
}

fn features(machine: &Machine) -> Vec<Feature> {
    let yes = |there: bool| if there { "yes" } else { "no" }.to_owned();
    let groups = machine.groups;
    let group = |name, there: bool, gives, lost| {
        let how = "run Toolcrib where it may make control groups: as root, or in a delegated scope (systemd-run --user --scope -p Delegate=yes)";
        feature(name, yes(there), there, gives, lost, how)
    };
    vec![
        feature(
            "namespaces",
            machine
                .namespaces
                .as_ref()
                .map_or_else(ToString::to_string, |()| "yes".to_owned()),
            machine.namespaces.is_ok(),
            "mounts, processes and a network of a tool's own",
            "names, sizes and times of files elsewhere stay visible; limits of processes and of the private tmp are watched, not exact",
            "sysctl user.max_user_namespaces; on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0; in a container, a seccomp profile that permits unshare and mount",
        ),
        feature(
            "landlock",
            match machine.landlock {
                0 => "no".to_owned(),
                version => format!("version {version}"),
            },
            machine.landlock >= LANDLOCK_ALONE,
            "rules about files that a process can't take back",
            "one layer less behind namespaces, and no rung without them",
            "Linux 6.2 or newer, with landlock in the kernel's `lsm=` list",
        ),
        feature(
            "landlock scopes",
            yes(machine.landlock >= LANDLOCK_SCOPES),
            machine.landlock >= LANDLOCK_SCOPES,
            "signals and abstract sockets stay among a tool's own processes",
            "without namespaces a tool may signal no process but itself",
            "Linux 6.12 or newer",
        ),
        feature(
            "seccomp",
            yes(machine.seccomp),
            machine.seccomp,
            "no second program, no sockets, none of the kernel's dangerous calls",
            "nothing can be confined",
            "a kernel with CONFIG_SECCOMP_FILTER",
        ),
        feature(
            "seccomp notify",
            yes(machine.notify),
            machine.notify,
            "single hosts without namespaces",
            "without namespaces, tools that need single hosts are refused",
            "Linux 5.9 or newer",
        ),
        group(
            "cgroup memory",
            groups.memory,
            "an exact limit of memory",
            "memory is watched, every 50 ms",
        ),
        group(
            "cgroup cpu",
            groups.cpu,
            "an exact share of the processor",
            "the share is kept by stopping processes",
        ),
        group(
            "cgroup pids",
            groups.processes,
            "an exact limit of processes",
            "processes are limited per namespace, or watched",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::tests::{full, no_namespaces};

    fn surveyed(machine: &Machine, most: Rung) -> Survey {
        Survey::of(machine, most, machine.rung(most))
    }

    #[test]
    fn what_is_missing_says_how_to_get_it() {
        let survey = surveyed(&full(), Rung::Namespaces);
        assert_eq!(survey.rung, Some(Rung::Namespaces));
        let missing = |survey: &Survey| -> Vec<&str> {
            let missing = survey
                .features
                .iter()
                .filter(|feature| feature.how.is_some());
            missing.map(|feature| feature.name).collect()
        };
        assert_eq!(
            missing(&survey),
            ["cgroup memory", "cgroup cpu", "cgroup pids"]
        );
        let survey = surveyed(&no_namespaces(), Rung::Namespaces);
        assert_eq!(survey.rung, Some(Rung::Group));
        assert!(
            survey.reason.contains("Operation not permitted"),
            "{}",
            survey.reason
        );
        assert!(missing(&survey).contains(&"namespaces"));
        let nothing = Machine {
            landlock: 0,
            ..no_namespaces()
        };
        let survey = surveyed(&nothing, Rung::Namespaces);
        assert!(survey.rung.is_none() && survey.remedy.is_some());
        let forced = surveyed(&full(), Rung::NamespacesOnly);
        assert!(forced.reason.contains("TOOLCRIB_MAX_RUNG"));
    }
}
