//! What the filter denies, call by call.

use super::*;

const OWN: u32 = 4_711;
const PROGRAM: u32 = 1_023;

/// What the rules say to one call.
pub(crate) fn verdict(rules: &Rules, call: u32, args: [u32; 6]) -> Option<Verdict> {
    let (verdict, cases) = rules.get(&call)?;
    let holds = |test: &Test| match *test {
        Test::Is(at, value) => args[at as usize] == value,
        Test::IsNot(at, value) => args[at as usize] != value,
        Test::Masked(at, mask, value) => args[at as usize] & mask == value,
    };
    let met = cases.is_empty() || cases.iter().any(|case| case.iter().all(holds));
    met.then_some(*verdict)
}

fn calls(sockets: Sockets) -> Calls {
    Calls {
        exec: Exec::Once,
        sockets,
        keep_modes: false,
        apart: true,
        scoped: true,
        counted: true,
        watches: true,
    }
}

fn says(calls: Calls, call: i64, args: &[u32]) -> Option<Verdict> {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    verdict(&calls.rules(OWN, PROGRAM), call as u32, all)
}

const DENIED: Option<Verdict> = Some(Verdict::Denied);

#[test]
fn no_program_is_executed_twice() {
    let once = calls(Sockets::None);
    let empty = libc::AT_EMPTY_PATH as u32;
    assert_eq!(says(once, libc::SYS_execve, &[]), DENIED);
    assert_eq!(
        says(once, libc::SYS_execveat, &[PROGRAM, 0, 0, 0, empty]),
        None
    );
    assert_eq!(says(once, libc::SYS_execveat, &[7, 0, 0, 0, empty]), DENIED);
    assert_eq!(
        says(once, libc::SYS_execveat, &[PROGRAM, 0, 0, 0, 0]),
        DENIED
    );
    let allowed = Calls {
        exec: Exec::Allowed,
        ..once
    };
    assert_eq!(says(allowed, libc::SYS_execve, &[]), None);
}

#[test]
fn sockets_are_those_of_the_road() {
    let unix = libc::AF_UNIX as u32;
    let datagram = libc::SOCK_DGRAM as u32;
    let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u32;
    for (sockets, args, verdict) in [
        (Sockets::None, [INET, STREAM, 0], DENIED),
        (Sockets::Tcp, [INET, STREAM | flags, 0], None),
        (Sockets::Tcp, [INET6, STREAM, IPPROTO_TCP], None),
        (Sockets::Tcp, [INET, datagram, 0], DENIED),
        (Sockets::Tcp, [INET, STREAM, 262], DENIED),
        (Sockets::Tcp, [unix, STREAM, 0], DENIED),
        (Sockets::Tcp, [NETLINK, STREAM, 0], DENIED),
        (Sockets::Asked, [INET, STREAM, 0], None),
        (Sockets::Asked, [INET, 5, 0], DENIED),
        (Sockets::Internet, [INET, datagram, 0], None),
        (Sockets::Internet, [NETLINK, datagram, 0], None),
        (Sockets::Internet, [NETLINK, datagram, 9], DENIED),
        (Sockets::Internet, [unix, STREAM, 0], DENIED),
    ] {
        assert_eq!(
            says(calls(sockets), libc::SYS_socket, &args),
            verdict,
            "{sockets:?} {args:?}"
        );
        let pair = |args: &[u32]| says(calls(sockets), libc::SYS_socketpair, args);
        for kind in [STREAM, PACKETS] {
            assert_eq!(pair(&[unix, kind]), None);
            assert_eq!(pair(&[unix, kind | flags]), None);
        }
        assert_eq!(pair(&[INET, STREAM]), DENIED);
        for kind in [datagram, libc::SOCK_RAW as u32] {
            assert_eq!(pair(&[unix, kind]), DENIED);
            assert_eq!(pair(&[unix, kind | flags]), DENIED);
        }
    }
    let asked = calls(Sockets::Asked);
    assert_eq!(says(asked, libc::SYS_connect, &[]), Some(Verdict::Asked));
    assert_eq!(says(asked, libc::SYS_bind, &[]), DENIED);
    let fast = libc::MSG_FASTOPEN as u32;
    assert_eq!(says(asked, libc::SYS_sendto, &[0, 0, 0, fast]), DENIED);
    assert_eq!(says(asked, libc::SYS_sendto, &[0, 0, 0, 0x4000]), None);
    assert_eq!(says(calls(Sockets::Tcp), libc::SYS_connect, &[]), None);
}

#[test]
fn threads_are_made_and_namespaces_are_not() {
    let calls = calls(Sockets::None);
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD) as u32;
    assert_eq!(says(calls, libc::SYS_clone, &[thread]), None);
    assert_eq!(says(calls, libc::SYS_clone, &[libc::SIGCHLD as u32]), None);
    let user = libc::CLONE_NEWUSER as u32;
    assert_eq!(says(calls, libc::SYS_clone, &[user | thread]), DENIED);
    assert_eq!(says(calls, libc::SYS_clone3, &[]), Some(Verdict::Unknown));
    for call in [
        libc::SYS_unshare,
        libc::SYS_ptrace,
        libc::SYS_io_uring_setup,
        libc::SYS_mount,
    ] {
        assert_eq!(says(calls, call, &[]), DENIED);
    }
    assert_eq!(says(calls, libc::SYS_ioctl, &[1, 0x5412]), DENIED);
    assert_eq!(says(calls, libc::SYS_ioctl, &[1, 0x5401]), None);
    assert_eq!(
        says(calls, libc::SYS_mknodat, &[0, 0, libc::S_IFIFO | 0o600]),
        None
    );
    assert_eq!(
        says(calls, libc::SYS_mknodat, &[0, 0, libc::S_IFCHR | 0o600]),
        DENIED
    );
}

#[test]
fn without_namespaces_others_are_left_alone() {
    let group = Calls {
        apart: false,
        keep_modes: true,
        ..calls(Sockets::None)
    };
    for call in [libc::SYS_fchown, libc::SYS_fchownat, libc::SYS_fsetxattr] {
        assert_eq!(says(group, call, &[]), DENIED);
        assert_eq!(says(calls(Sockets::None), call, &[]), None);
    }
    let ignored = Some(Verdict::Ignored);
    for call in [libc::SYS_fchmod, libc::SYS_fchmodat, libc::SYS_utimensat] {
        assert_eq!(says(group, call, &[]), ignored);
        assert_eq!(says(calls(Sockets::None), call, &[]), None);
    }
    assert_eq!(says(group, libc::SYS_prlimit64, &[0]), None);
    assert_eq!(says(group, libc::SYS_prlimit64, &[OWN]), None);
    assert_eq!(says(group, libc::SYS_prlimit64, &[1]), DENIED);
    assert_eq!(
        says(group, libc::SYS_kill, &[1]),
        None,
        "Landlock keeps signals in"
    );
    let old = Calls {
        scoped: false,
        ..group
    };
    assert_eq!(says(old, libc::SYS_kill, &[1]), DENIED);
    assert_eq!(says(old, libc::SYS_kill, &[OWN]), None);
    assert_eq!(
        says(old, libc::SYS_fcntl, &[0, libc::F_SETOWN as u32]),
        DENIED
    );
}

#[test]
fn without_mounts_attributes_of_files_are_not_read() {
    let mounted = calls(Sockets::None);
    let group = Calls {
        apart: false,
        ..mounted
    };
    for (calls, verdict) in [
        (ATTRIBUTES, Verdict::Unsupported),
        (ATTRIBUTES_AT, Verdict::Unknown),
    ] {
        for call in calls {
            assert_eq!(says(group, *call, &[]), Some(verdict), "{call}");
            assert_eq!(says(mounted, *call, &[]), None, "{call}");
        }
    }
    assert_eq!(ATTRIBUTES.len() + ATTRIBUTES_AT.len(), 9);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn the_old_ways_to_open_make_none_either() {
    let calls = calls(Sockets::None);
    for flags in [libc::O_CREAT, libc::O_TMPFILE] {
        let flags = flags as u32;
        assert_eq!(says(calls, libc::SYS_open, &[0, flags, 0o4755]), DENIED);
        assert_eq!(says(calls, libc::SYS_open, &[0, flags, 0o755]), None);
    }
    assert_eq!(says(calls, libc::SYS_open, &[0, 0, 0o4755]), None);
}

#[test]
fn no_file_is_made_that_runs_as_its_owner() {
    let calls = calls(Sockets::None);
    let create = (libc::O_CREAT | libc::O_WRONLY) as u32;
    let nameless = (libc::O_TMPFILE | libc::O_WRONLY) as u32;
    for (call, args, verdict) in [
        (libc::SYS_fchmod, [3, 0o755, 0, 0], None),
        (libc::SYS_fchmod, [3, 0o4755, 0, 0], DENIED),
        (libc::SYS_fchmodat, [3, 0, 0o2755, 0], DENIED),
        (libc::SYS_openat, [3, 0, create, 0o644], None),
        (libc::SYS_openat, [3, 0, create, 0o4755], DENIED),
        (libc::SYS_openat, [3, 0, 0, 0o4755], None),
        (libc::SYS_openat, [3, 0, nameless, 0o600], None),
        (libc::SYS_openat, [3, 0, nameless, 0o4755], DENIED),
        (libc::SYS_openat, [3, 0, nameless, 0o2755], DENIED),
        (libc::SYS_openat, [3, 0, 0o20000000, 0o4755], DENIED),
        (libc::SYS_openat2, [3, 0, 0, 0], Some(Verdict::Unknown)),
    ] {
        assert_eq!(says(calls, call, &args), verdict, "{call} {args:?}");
    }
}

#[test]
fn memory_that_nobody_would_see_is_not_to_be_had() {
    let counted = calls(Sockets::None);
    let watched = Calls {
        counted: false,
        ..counted
    };
    assert_eq!(says(counted, libc::SYS_memfd_create, &[]), None);
    let unknown = Some(Verdict::Unknown);
    assert_eq!(says(watched, libc::SYS_memfd_create, &[]), unknown);
    let hide = [libc::PR_SET_DUMPABLE as u32, 0];
    assert_eq!(says(counted, libc::SYS_prctl, &hide), DENIED);
    assert_eq!(says(counted, libc::SYS_prctl, &[hide[0], 1]), None);
}

#[test]
fn what_is_counted_from_outside_does_not_grow_unseen() {
    let uncounted = Calls {
        counted: false,
        watches: false,
        ..calls(Sockets::None)
    };
    let options = |option| [3, libc::SOL_SOCKET as u32, option];
    let ignored = Some(Verdict::Ignored);
    for option in BUFFERS {
        let said = says(uncounted, libc::SYS_setsockopt, &options(option));
        assert_eq!(said, ignored);
        assert_eq!(
            says(calls(Sockets::None), libc::SYS_setsockopt, &options(option)),
            None
        );
    }
    let reuse = libc::SO_REUSEADDR as u32;
    assert_eq!(says(uncounted, libc::SYS_setsockopt, &options(reuse)), None);
    let pipe = [3, libc::F_SETPIPE_SZ as u32];
    assert_eq!(says(uncounted, libc::SYS_fcntl, &pipe), DENIED);
    assert_eq!(says(uncounted, libc::SYS_inotify_init1, &[]), DENIED);
    assert_eq!(
        says(calls(Sockets::None), libc::SYS_inotify_init1, &[]),
        None
    );
}
