//! Which system calls a confined process is denied, and when.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::Road;
use crate::policy::Exec;

/// What decides about the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Calls {
    pub exec: Exec,
    pub sockets: Sockets,
    /// Modes, owners and times of files stay: no mount keeps other files away.
    pub keep_modes: bool,
    /// In namespaces of its own.
    pub apart: bool,
    /// Something else keeps signals in.
    pub scoped: bool,
    /// The kernel counts all memory, that of files without a name too.
    pub counted: bool,
    /// Files may be watched: how many watches there are is limited for this process alone.
    pub watches: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    None,
    /// Connections over TCP, which lead to the proxy only.
    Tcp,
    /// The same, and somebody is asked about each.
    Asked,
    /// All of the internet's, and the one that tells about interfaces.
    Internet,
}

impl Sockets {
    pub(super) fn on(road: Road) -> Sockets {
        match road {
            Road::Nowhere => Sockets::None,
            Road::Listener => Sockets::Tcp,
            Road::Asked { .. } => Sockets::Asked,
            Road::Open => Sockets::Internet,
        }
    }
}

/// A condition on the lower half of one argument, which is all that the kernel reads of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Is(u8, u32),
    IsNot(u8, u32),
    /// What is left of the argument under the mask is the value.
    Masked(u8, u32, u32),
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Denied,
    /// As if the kernel did not know it; programs then use another.
    Unknown,
    /// As if the file system did not know it.
    Unsupported,
    /// Nothing is done, and success is told.
    Ignored,
    Asked,
}

/// For each call what happens to it, and in which cases: in all without any test, else when all tests of one case hold.
pub(crate) type Rules = BTreeMap<u32, (Verdict, Vec<Vec<Test>>)>;

const IPPROTO_TCP: u32 = libc::IPPROTO_TCP as u32;
const UNIX: u32 = libc::AF_UNIX as u32;
const INET: u32 = libc::AF_INET as u32;
const INET6: u32 = libc::AF_INET6 as u32;
const NETLINK: u32 = libc::AF_NETLINK as u32;
const STREAM: u32 = libc::SOCK_STREAM as u32;
const PACKETS: u32 = libc::SOCK_SEQPACKET as u32;
/// The flags of a socket's type lie above.
const TYPE: u32 = 0xf;

/// Calls that no tool needs, and many an escape does.
const NEVER: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_migrate_pages,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    // process_mrelease, quotactl_fd, open_tree_attr
    448,
    443,
    467,
];

#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[i64] = &[
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_kexec_file_load,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[i64] = &[];

const FCHMODAT2: i64 = 452;
/// The part of `O_TMPFILE` that makes a file; the other says that the path is a folder.
const TMPFILE: u32 = (libc::O_TMPFILE & !libc::O_DIRECTORY) as u32;

/// Calls that change a file's mode or times, by path or by a descriptor that need not be writable. They do nothing and
/// say that all is well: copying a file ends with one of them, and would fail otherwise.
const MODES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    FCHMODAT2,
];
#[cfg(target_arch = "x86_64")]
const MODES_HERE: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_futimesat,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const MODES_HERE: &[i64] = &[];

/// Calls that change a file's owner or attributes.
const OWNERS: &[i64] = &[
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    // setxattrat, removexattrat, file_setattr
    463,
    466,
    469,
];
#[cfg(target_arch = "x86_64")]
const OWNERS_HERE: &[i64] = &[libc::SYS_chown, libc::SYS_lchown];
#[cfg(not(target_arch = "x86_64"))]
const OWNERS_HERE: &[i64] = &[];

/// Calls that read a file's attributes, which Landlock does not know. They answer as on a file system that has none:
/// whoever lists or copies files asks for them, and takes any other answer for a failure.
const ATTRIBUTES: &[i64] = &[
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
];
/// The same by newer calls, for which programs have the others: getxattrat, listxattrat, file_getattr.
const ATTRIBUTES_AT: &[i64] = &[464, 465, 468];

/// Requests that change a file's attributes: SETFLAGS, FSSETXATTR, ENABLE_VERITY.
const MODES_IOCTL: [u32; 3] = [0x4008_6602, 0x401c_5820, 0x4080_6685];
/// Requests that type into a terminal: TIOCSTI, TIOCLINUX.
const TYPING_IOCTL: [u32; 2] = [0x5412, 0x541c];
/// Requests that choose who gets signals: FIOSETOWN, SIOCSPGRP.
const OWNER_IOCTL: [u32; 2] = [0x8901, 0x8902];

/// Commands that make everybody else wait who opens a file, or tell who does: SETLEASE, NOTIFY, SETDELEG.
const LEASES: [u32; 3] = [1_024, 1_026, 1_040];
/// Sets how large a process's table of waiting threads is, in memory that nobody counts: PR_FUTEX_HASH.
const FUTEX_HASH: u32 = 78;

/// Options that say how much a socket holds: SNDBUF, RCVBUF, and both by force.
const BUFFERS: [u32; 4] = [7, 8, 32, 33];

/// Calls that do something to another process by its number, which comes first unless it is 0 for oneself.
const OTHERS: &[i64] = &[
    libc::SYS_prlimit64,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];
/// Calls that send a signal to the process whose number comes first.
const SIGNALS: &[i64] = &[
    libc::SYS_kill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_tgkill,
];

impl Calls {
    /// The whole filter for a process of this number whose program is this descriptor.
    pub(crate) fn rules(&self, own: u32, program: u32) -> Rules {
        let mut rules = Filter::default();
        rules.never(NEVER);
        rules.never(NEVER_HERE);
        for flag in [
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWNS,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWCGROUP,
        ] {
            rules.deny(libc::SYS_clone, [Test::Masked(0, flag as u32, flag as u32)]);
        }
        // Its flags lie in memory, where a filter can't look; the library falls back to `clone`.
        rules
            .0
            .insert(libc::SYS_clone3 as u32, (Verdict::Unknown, Vec::new()));
        for request in TYPING_IOCTL {
            rules.deny(libc::SYS_ioctl, [Test::Is(1, request)]);
        }
        // Whoever watches a process must be able to look into it.
        let look = libc::PR_SET_DUMPABLE as u32;
        rules.deny(libc::SYS_prctl, [Test::Is(0, look), Test::IsNot(1, 1)]);
        rules.deny(libc::SYS_prctl, [Test::Is(0, FUTEX_HASH)]);
        for command in LEASES {
            rules.deny(libc::SYS_fcntl, [Test::Is(1, command)]);
        }
        // The machine has a few of these for all users; who finds none left reads and writes plainly.
        rules
            .0
            .insert(libc::SYS_io_setup as u32, (Verdict::Unknown, Vec::new()));
        if !self.counted {
            for call in [libc::SYS_memfd_create, libc::SYS_memfd_secret] {
                rules.0.insert(call as u32, (Verdict::Unknown, Vec::new()));
            }
            // What a socket and a pipe can hold stays what it is: somebody counts them.
            let socket = libc::SOL_SOCKET as u32;
            let cases = BUFFERS.map(|option| vec![Test::Is(1, socket), Test::Is(2, option)]);
            let buffers = (Verdict::Ignored, cases.to_vec());
            rules.0.insert(libc::SYS_setsockopt as u32, buffers);
            let pipe = libc::F_SETPIPE_SZ as u32;
            rules.deny(libc::SYS_fcntl, [Test::Is(1, pipe)]);
        }
        if !self.watches {
            rules.never(&[libc::SYS_inotify_init1]);
            #[cfg(target_arch = "x86_64")]
            rules.never(&[libc::SYS_inotify_init]);
        }
        self.devices(&mut rules);
        self.foreign_rights(&mut rules);
        self.execution(&mut rules, program);
        self.network(&mut rules);
        if self.keep_modes {
            for call in MODES.iter().chain(MODES_HERE) {
                rules.0.insert(*call as u32, (Verdict::Ignored, Vec::new()));
            }
            rules.never(OWNERS);
            rules.never(OWNERS_HERE);
            for request in MODES_IOCTL {
                rules.deny(libc::SYS_ioctl, [Test::Is(1, request)]);
            }
        }
        if !self.apart {
            self.others(&mut rules, own);
        }
        rules.0
    }

    /// Pipes with names may be made, devices not.
    fn devices(&self, rules: &mut Filter) {
        for kind in [libc::S_IFCHR, libc::S_IFBLK] {
            let is = |argument| [Test::Masked(argument, libc::S_IFMT, kind)];
            rules.deny(libc::SYS_mknodat, is(2));
            #[cfg(target_arch = "x86_64")]
            rules.deny(libc::SYS_mknod, is(1));
        }
    }

    /// Files that run as their owner are not made: outside they would be executed with the user's rights.
    fn foreign_rights(&self, rules: &mut Filter) {
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            let has = |argument| Test::Masked(argument, bit, bit);
            rules.deny(libc::SYS_fchmod, [has(1)]);
            rules.deny(libc::SYS_fchmodat, [has(2)]);
            rules.deny(FCHMODAT2, [has(2)]);
            rules.deny(libc::SYS_mknodat, [has(2)]);
            // Each of the two makes a file, with or without a name; only then the kernel reads the mode.
            for creates in [libc::O_CREAT as u32, TMPFILE] {
                let creating = |argument| Test::Masked(argument, creates, creates);
                rules.deny(libc::SYS_openat, [creating(2), has(3)]);
                #[cfg(target_arch = "x86_64")]
                rules.deny(libc::SYS_open, [creating(1), has(2)]);
            }
            #[cfg(target_arch = "x86_64")]
            {
                rules.deny(libc::SYS_chmod, [has(1)]);
                rules.deny(libc::SYS_creat, [has(1)]);
                rules.deny(libc::SYS_mknod, [has(1)]);
            }
        }
        // Its mode lies in memory, where a filter can't look.
        rules
            .0
            .insert(libc::SYS_openat2 as u32, (Verdict::Unknown, Vec::new()));
    }

    /// The program's descriptor closes when it is executed, and no other can ever have its number.
    fn execution(&self, rules: &mut Filter, program: u32) {
        if self.exec == Exec::Once {
            rules.never(&[libc::SYS_execve]);
            rules.deny(libc::SYS_execveat, [Test::IsNot(0, program)]);
            let empty = libc::AT_EMPTY_PATH as u32;
            rules.deny(libc::SYS_execveat, [Test::IsNot(4, empty)]);
        }
    }

    fn network(&self, rules: &mut Filter) {
        let socket = libc::SYS_socket;
        rules.deny(libc::SYS_socketpair, [Test::IsNot(0, UNIX)]);
        // A socket for datagrams sends to any path, though nobody connected it. One for packets does not, and browsers
        // need pairs of them.
        for kind in (0..=TYPE).filter(|kind| ![STREAM, PACKETS].contains(kind)) {
            rules.deny(libc::SYS_socketpair, [Test::Masked(1, TYPE, kind)]);
        }
        match self.sockets {
            Sockets::None => rules.never(&[socket]),
            Sockets::Tcp | Sockets::Asked => {
                rules.deny(socket, [Test::IsNot(0, INET), Test::IsNot(0, INET6)]);
                let others = (0..=TYPE).filter(|kind| *kind != STREAM);
                others.for_each(|kind| rules.deny(socket, [Test::Masked(1, TYPE, kind)]));
                rules.deny(socket, [Test::IsNot(2, 0), Test::IsNot(2, IPPROTO_TCP)]);
                rules.never(&[libc::SYS_bind, libc::SYS_listen]);
            }
            Sockets::Internet => {
                let families = [INET, INET6, NETLINK].map(|family| Test::IsNot(0, family));
                rules.deny(socket, families);
                // Only the kind that tells about interfaces and routes.
                rules.deny(socket, [Test::Is(0, NETLINK), Test::IsNot(2, 0)]);
            }
        }
        if self.sockets == Sockets::Asked {
            rules
                .0
                .insert(libc::SYS_connect as u32, (Verdict::Asked, Vec::new()));
            // With this flag sending connects too.
            let fast = libc::MSG_FASTOPEN as u32;
            for (call, argument) in [
                (libc::SYS_sendto, 3),
                (libc::SYS_sendmsg, 2),
                (libc::SYS_sendmmsg, 3),
            ] {
                rules.deny(call, [Test::Masked(argument, fast, fast)]);
            }
        }
    }

    /// What reaches processes and files that no namespace hides.
    fn others(&self, rules: &mut Filter, own: u32) {
        for (calls, verdict) in [
            (ATTRIBUTES, Verdict::Unsupported),
            (ATTRIBUTES_AT, Verdict::Unknown),
        ] {
            for call in calls {
                rules.0.insert(*call as u32, (verdict, Vec::new()));
            }
        }
        for call in OTHERS {
            rules.deny(*call, [Test::IsNot(0, 0), Test::IsNot(0, own)]);
        }
        rules.deny(libc::SYS_setpriority, [Test::IsNot(0, 0)]);
        rules.deny(
            libc::SYS_setpriority,
            [Test::IsNot(1, 0), Test::IsNot(1, own)],
        );
        // Of processes, groups and users only processes are told by such a number.
        rules.deny(libc::SYS_ioprio_set, [Test::IsNot(0, 1)]);
        rules.deny(
            libc::SYS_ioprio_set,
            [Test::IsNot(1, 0), Test::IsNot(1, own)],
        );
        rules.never(&[
            libc::SYS_inotify_add_watch,
            libc::SYS_mq_open,
            libc::SYS_mq_unlink,
        ]);
        if !self.scoped {
            for call in SIGNALS {
                rules.deny(*call, [Test::IsNot(0, own)]);
            }
            rules.never(&[libc::SYS_tkill, libc::SYS_pidfd_send_signal]);
            for command in [libc::F_SETOWN as u32, 15] {
                rules.deny(libc::SYS_fcntl, [Test::Is(1, command)]);
            }
            for request in OWNER_IOCTL {
                rules.deny(libc::SYS_ioctl, [Test::Is(1, request)]);
            }
        }
    }
}

#[derive(Default)]
struct Filter(Rules);

impl Filter {
    fn never(&mut self, calls: &[i64]) {
        for call in calls {
            self.0.insert(*call as u32, (Verdict::Denied, Vec::new()));
        }
    }

    /// Denies a call when all these tests hold; more cases may follow.
    fn deny<const N: usize>(&mut self, call: i64, when: [Test; N]) {
        match self.0.entry(call as u32) {
            Entry::Vacant(entry) => {
                entry.insert((Verdict::Denied, vec![when.to_vec()]));
            }
            // Without cases it is denied in all.
            Entry::Occupied(mut entry) if !entry.get().1.is_empty() => {
                entry.get_mut().1.push(when.to_vec());
            }
            Entry::Occupied(_) => {}
        }
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
pub(crate) mod tests;
