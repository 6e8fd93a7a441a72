//! A plan carried out: who does what before the tool runs. A step that fails is told, and no tool runs.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

use super::{bpf, check, landlock, open_plainly, root, wire};
use crate::plan::{Plan, Road};
use crate::policy::Exec;
use crate::{Rung, launcher::errno};

/// The highest number that the program's descriptor gets.
const HIGHEST: u64 = 1_023;

/// Signals that wait and timers, and bytes in message queues. The kernel has so many for the user as a whole, which one
/// tool could take from all other programs.
const SIGNALS: u64 = 1_024;
const MESSAGES: u64 = 64 * 1_024;

/// How large the picture of a crashed process may be: too small for a file, and the one number at which the kernel hands none
/// to a program either, which would run outside of all walls. It does so at zero.
const NO_PICTURE: u64 = 1;

/// Variables by which programs find a proxy.
const PROXY: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];

/// What was being done when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Program = 1,
    Groups,
    Namespaces,
    Network,
    Mounts,
    Directory,
    Limits,
    Rights,
    Landlock,
    Filter,
    Handover,
}

impl Step {
    const ALL: [Step; 11] = [
        Step::Program,
        Step::Groups,
        Step::Namespaces,
        Step::Network,
        Step::Mounts,
        Step::Directory,
        Step::Limits,
        Step::Rights,
        Step::Landlock,
        Step::Filter,
        Step::Handover,
    ];

    /// What could not be done, in words that follow "can't".
    pub(crate) fn words(self) -> &'static str {
        match self {
            Step::Program => "open its program",
            Step::Groups => "enter its control group",
            Step::Namespaces => "make its namespaces",
            Step::Network => "make its network",
            Step::Mounts => "make its mounts",
            Step::Directory => "enter its working directory",
            Step::Limits => "set its limits",
            Step::Rights => "give its rights up",
            Step::Landlock => "apply Landlock",
            Step::Filter => "apply its filter of system calls",
            Step::Handover => "hand a descriptor over",
        }
    }
}

/// A step that failed, and why.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub step: Step,
    pub error: io::Error,
}

impl Trouble {
    /// As one number, for the wire; never that of an error alone.
    pub(super) fn code(&self) -> i32 {
        ((self.step as i32) << 16) | errno(&self.error)
    }

    pub(crate) fn from_code(code: i32) -> Option<Trouble> {
        let step = Step::ALL
            .into_iter()
            .find(|step| *step as i32 == code >> 16)?;
        let error = io::Error::from_raw_os_error(code & 0xffff);
        Some(Trouble { step, error })
    }
}

/// Names the step that an error belongs to.
fn at<T>(step: Step, done: io::Result<T>) -> Result<T, Trouble> {
    done.map_err(|error| Trouble { step, error })
}

/// A plan with all that must be opened before it is carried out.
pub(super) struct Walls {
    plan: Plan,
    /// Where descriptors are handed to the crib.
    door: OwnedFd,
    program: OwnedFd,
    groups: Vec<File>,
    /// The proxy's, as the tool sees it.
    port: Option<u16>,
}

impl Walls {
    /// Opens what is seen from outside only.
    pub(super) fn new(plan: Plan, door: OwnedFd) -> Result<Walls, Trouble> {
        let program = open_plainly(&plan.program);
        let open = |path: &PathBuf| File::options().write(true).open(path);
        let groups = plan.groups.iter().map(open).collect::<Result<_, _>>();
        let port = match plan.road {
            Road::Asked { port } => Some(port),
            _ => None,
        };
        Ok(Walls {
            door,
            program: at(Step::Program, program)?,
            groups: at(Step::Groups, groups)?,
            port,
            plan,
        })
    }

    pub(super) fn rung(&self) -> Rung {
        self.plan.rung
    }

    /// No files are watched, where the number of watches can't be bounded.
    pub(super) fn deny_watches(&mut self) {
        self.plan.calls.watches = false;
    }

    pub(super) fn shares_network(&self) -> bool {
        self.plan.road == Road::Open
    }

    /// In the first process of the namespaces: its network and its mounts.
    pub(super) fn furnish(&mut self) -> Result<(), Trouble> {
        if self.plan.road == Road::Listener {
            let listener = at(
                Step::Network,
                raise_loopback().and_then(|()| TcpListener::bind("127.0.0.1:0")),
            )?;
            let port = at(Step::Network, listener.local_addr())?.port();
            at(
                Step::Handover,
                wire::hand_over(self.door.as_fd(), listener.as_fd()),
            )?;
            self.port = Some(port);
        }
        at(Step::Mounts, root::enter(&self.plan.mounts))
    }

    /// In the process that becomes the tool: everything that it can't take back.
    pub(super) fn put_up(&self) -> Result<(), Trouble> {
        for mut group in &self.groups {
            at(Step::Groups, group.write_all(b"0"))?;
        }
        let number = at(Step::Limits, self.limit())?;
        at(Step::Rights, give_up_rights())?;
        if let Some(rules) = &self.plan.landlock {
            at(
                Step::Landlock,
                landlock::apply(rules, self.plan.exec, self.port),
            )?;
        }
        // SAFETY: no memory is touched.
        let own = unsafe { libc::getpid() } as u32;
        let asked = matches!(self.plan.road, Road::Asked { .. });
        let program = bpf::compile(&self.plan.calls.rules(own, number as u32));
        let listener = at(Step::Filter, bpf::install(program, asked))?;
        if let Some(listener) = listener {
            at(
                Step::Handover,
                wire::hand_over(self.door.as_fd(), listener.as_fd()),
            )?;
        }
        Ok(())
    }

    /// Sets the limits and gives the number that the program's descriptor has from then on. Where one program is
    /// executed once, no later descriptor can have it.
    fn limit(&self) -> io::Result<libc::c_int> {
        let limits = &self.plan.limits;
        set_limit(libc::RLIMIT_CORE, NO_PICTURE)?;
        set_limit(libc::RLIMIT_FSIZE, limits.file)?;
        set_limit(libc::RLIMIT_SIGPENDING, SIGNALS)?;
        set_limit(libc::RLIMIT_MSGQUEUE, MESSAGES)?;
        limits
            .data
            .map_or(Ok(()), |bytes| set_limit(libc::RLIMIT_DATA, bytes))?;
        limits
            .processes
            .map_or(Ok(()), |count| set_limit(libc::RLIMIT_NPROC, count))?;
        let mut files = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the structure lives across the calls; the number is free, because what this process opened is below.
        unsafe {
            check(libc::getrlimit(libc::RLIMIT_NOFILE, &mut files))?;
            let number = files.rlim_max.min(HIGHEST + 1) - 1;
            files.rlim_cur = files.rlim_cur.max(number + 1);
            check(libc::setrlimit(libc::RLIMIT_NOFILE, &files))?;
            let descriptor = number as libc::c_int;
            check(libc::dup3(
                self.program.as_raw_fd(),
                descriptor,
                libc::O_CLOEXEC,
            ))?;
            if self.plan.exec == Exec::Once {
                set_limit(libc::RLIMIT_NOFILE, number)?;
            }
            Ok(descriptor)
        }
    }

    /// The number of the program's descriptor, once [`Walls::put_up`] is done.
    pub(super) fn descriptor(&self) -> libc::c_int {
        let mut files = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: the structure lives across the call.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut files) };
        match self.plan.exec {
            Exec::Once => files.rlim_max as libc::c_int,
            Exec::Allowed => self.program.as_raw_fd(),
        }
    }

    /// The variables that lead to the proxy, where there is one.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let Some(port) = self.port else {
            return Vec::new();
        };
        let proxy = format!("http://127.0.0.1:{port}");
        let to_proxy = PROXY.map(|name| (name, proxy.clone()));
        let rest = [
            ("NO_PROXY", ""),
            ("no_proxy", ""),
            ("NODE_USE_ENV_PROXY", "1"),
        ];
        let rest = rest.map(|(name, value)| (name, value.to_owned()));
        to_proxy.into_iter().chain(rest).collect()
    }
}

fn set_limit(what: libc::__rlimit_resource_t, most: u64) -> io::Result<()> {
    let mut now = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the structures live across the calls.
    unsafe {
        check(libc::getrlimit(what, &mut now))?;
        let most = most.min(now.rlim_max);
        let limit = libc::rlimit {
            rlim_cur: most,
            rlim_max: most,
        };
        check(libc::setrlimit(what, &limit)).map(|_| ())
    }
}

/// No capability is left, and none is gained by executing a file.
fn give_up_rights() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let none = [0_u32; 6];
    // SAFETY: the structures live across the call; the rest touches no memory.
    unsafe {
        for capability in 0..64 {
            // Who may not do this has none to lose by it.
            if libc::prctl(libc::PR_CAPBSET_DROP, capability as libc::c_ulong, 0, 0, 0) != 0 {
                break;
            }
        }
        let all = libc::PR_CAP_AMBIENT_CLEAR_ALL as libc::c_ulong;
        libc::prctl(libc::PR_CAP_AMBIENT, all, 0, 0, 0);
        check(libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) as libc::c_int)?;
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
    }
    Ok(())
}

/// The new network's only interface.
pub(super) fn raise_loopback() -> io::Result<()> {
    // SAFETY: the structure lives across the call; the descriptor is new.
    unsafe {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        let socket = OwnedFd::from_raw_fd(check(libc::socket(libc::AF_INET, kind, 0))?);
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l' as libc::c_char, b'o' as libc::c_char]);
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(
            socket.as_raw_fd(),
            libc::SIOCSIFFLAGS as _,
            &raw const request,
        ))
        .map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troubles_read_back() {
        for step in Step::ALL {
            let trouble = Trouble {
                step,
                error: io::Error::from_raw_os_error(libc::EPERM),
            };
            let back = Trouble::from_code(trouble.code()).unwrap();
            assert_eq!(
                (back.step, back.error.raw_os_error()),
                (step, Some(libc::EPERM))
            );
        }
        assert!(
            Trouble::from_code(libc::ENOENT).is_none(),
            "an error alone is none"
        );
    }
}
