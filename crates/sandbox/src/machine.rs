//! What the machine offers for walls, found out by doing, and the rung that follows from it.

use serde::{Deserialize, Serialize};

use crate::Rung;

/// The least Landlock that can stand alone: before it, files could be truncated in spite of it.
pub(crate) const LANDLOCK_ALONE: u32 = 3;
/// The first one that keeps signals and abstract sockets in.
pub(crate) const LANDLOCK_SCOPES: u32 = 6;

/// What the machine offers for walls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The version of Landlock; 0 where there is none.
    pub landlock: u32,
    /// Filters of system calls.
    pub seccomp: bool,
    /// Filters that ask somebody else.
    pub notify: bool,
    /// Why user, pid, network and mount namespaces can't be had, all of them, with mounts made in them.
    pub namespaces: Result<(), Lack>,
    /// Who is root is not bound by limits of a user.
    pub root: bool,
    /// The kernel's version.
    pub kernel: (u32, u32),
    /// What control groups can bound.
    pub groups: Controllers,
}

/// What could not be done, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lack {
    pub step: String,
    pub errno: i32,
}

/// Which controllers can be used in groups of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Controllers {
    pub memory: bool,
    pub cpu: bool,
    pub processes: bool,
}

/// Why a process is not started at all: walls that can't be built are never left out in silence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct CannotConfine {
    pub reason: String,
    pub remedy: String,
}

impl CannotConfine {
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> CannotConfine {
        CannotConfine {
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }
}

/// What helps where no rung is left.
const REMEDY: &str = "allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0; \
    in a container, a seccomp profile that permits unshare), or use Linux 6.2 or newer with Landlock enabled (lsm=landlock,…)";

impl Machine {
    /// The best rung that the machine offers and that is allowed.
    pub(crate) fn rung(&self, most: Rung) -> Result<Rung, CannotConfine> {
        if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            let here = std::env::consts::ARCH;
            let reason = format!("no filter of system calls is known for {here}");
            return Err(CannotConfine::new(reason, "use x86_64 or aarch64"));
        }
        let mut missing = Vec::new();
        if !self.seccomp {
            missing.push("this kernel has no filters of system calls (seccomp)".to_owned());
        }
        if let Err(lack) = &self.namespaces {
            missing.push(format!("namespaces can't be made: {lack}"));
        }
        match self.landlock {
            0 => missing.push("Landlock is not there".to_owned()),
            old if old < LANDLOCK_ALONE => missing.push(format!(
                "Landlock is version {old}, and without namespaces version {LANDLOCK_ALONE} is needed"
            )),
            _ => {}
        }
        let fits = |rung: Rung| {
            self.seccomp
                && match rung {
                    Rung::Namespaces => self.namespaces.is_ok() && self.landlock > 0,
                    Rung::NamespacesOnly => self.namespaces.is_ok(),
                    Rung::Group => self.landlock >= LANDLOCK_ALONE,
                }
        };
        Rung::ALL
            .into_iter()
            .filter(|rung| *rung >= most)
            .find(|rung| fits(*rung))
            .ok_or_else(|| {
                CannotConfine::new(
                    format!("no tool can be confined here: {}", missing.join("; ")),
                    REMEDY,
                )
            })
    }

    /// Whether a limit of processes counts those of one namespace only.
    pub(crate) fn counts_by_namespace(&self) -> bool {
        self.kernel >= (5, 14) && !self.root
    }
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = std::io::Error::from_raw_os_error(self.errno);
        write!(f, "{}: {error}", self.step)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn full() -> Machine {
        Machine {
            landlock: 7,
            seccomp: true,
            notify: true,
            namespaces: Ok(()),
            root: false,
            kernel: (6, 8),
            groups: Controllers::default(),
        }
    }

    pub(crate) fn no_namespaces() -> Machine {
        let step = "unshare".to_owned();
        Machine {
            namespaces: Err(Lack {
                step,
                errno: libc::EPERM,
            }),
            ..full()
        }
    }

    #[test]
    fn the_ladder() {
        use Rung::{Group, Namespaces, NamespacesOnly};
        let old = |landlock| Machine { landlock, ..full() };
        let bare = |landlock| Machine {
            landlock,
            ..no_namespaces()
        };
        for (machine, most, rung) in [
            (full(), Namespaces, Some(Namespaces)),
            (full(), NamespacesOnly, Some(NamespacesOnly)),
            (full(), Group, Some(Group)),
            (old(0), Namespaces, Some(NamespacesOnly)),
            (old(1), Namespaces, Some(Namespaces)),
            (old(2), Group, None),
            (no_namespaces(), Namespaces, Some(Group)),
            (no_namespaces(), NamespacesOnly, Some(Group)),
            (bare(2), Namespaces, None),
            (bare(0), Namespaces, None),
            (
                Machine {
                    seccomp: false,
                    ..full()
                },
                Namespaces,
                None,
            ),
        ] {
            assert_eq!(machine.rung(most).ok(), rung, "{machine:?} {most:?}");
        }
        let told = bare(0).rung(Namespaces).unwrap_err();
        assert!(
            told.reason.contains("unshare: Operation not permitted"),
            "{told}"
        );
        assert!(
            told.reason.contains("Landlock is not there")
                && told.remedy.contains("user namespaces")
        );
    }
}
