//! What the machine lets a launcher do, found out by doing it in children.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr;

use super::{check, errno, landlock, namespace, root, walls};
use crate::machine::{Controllers, Lack, Machine};
use crate::plan::{Kind, Mount};

/// The first argument that makes a process look around and tell.
pub(crate) const ARGUMENT: &str = "__probe";

/// Looks around and writes what it found to stdout.
pub(super) fn tell() -> io::Result<()> {
    let text = serde_json::to_vec(&look())?;
    io::stdout().write_all(&text)
}

fn look() -> Machine {
    let version = landlock::version();
    let really = in_child(|| landlock::try_out(version).map_err(|error| ("landlock", error)));
    // SAFETY: no memory is touched.
    let root = unsafe { libc::geteuid() } == 0;
    Machine {
        landlock: if really.is_ok() { version } else { 0 },
        seccomp: has_action(libc::SECCOMP_RET_ERRNO),
        notify: has_action(libc::SECCOMP_RET_USER_NOTIF),
        namespaces: in_child(try_namespaces),
        root,
        kernel: kernel().unwrap_or_default(),
        groups: Controllers::default(),
    }
}

fn has_action(action: u32) -> bool {
    const GET_ACTION_AVAIL: libc::c_uint = 2;
    // SAFETY: the number lives across the call.
    unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            GET_ACTION_AVAIL,
            0_u32,
            &raw const action,
        ) == 0
    }
}

fn kernel() -> Option<(u32, u32)> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

type Tried = Result<(), (&'static str, io::Error)>;

/// All that a confined tool on the upper rungs needs. On some machines a user namespace can be made and then gives no
/// rights; in some containers `/proc` can't be mounted.
fn try_namespaces() -> Tried {
    namespace::enter_confined(false).map_err(|error| ("unshare", error))?;
    let inner = in_child(|| {
        walls::raise_loopback().map_err(|error| ("loopback", error))?;
        let usr = Kind::Bind {
            folder: true,
            writable: false,
        };
        let mounts = [
            ("/dev/null", Kind::Device),
            ("/proc", Kind::Proc),
            ("/tmp", Kind::Tmp { mb: 1 }),
            ("/usr", usr),
        ];
        let mounts = mounts.map(|(path, kind)| Mount {
            path: Path::new(path).into(),
            kind,
        });
        root::enter(&mounts).map_err(|error| ("mount", error))
    });
    inner.map_err(|lack| {
        let step = if lack.step == "loopback" {
            "a network of its own"
        } else {
            "mounts of its own"
        };
        (step, io::Error::from_raw_os_error(lack.errno))
    })
}

/// Does something in a child and gives what failed there.
fn in_child(what: impl FnOnce() -> Tried) -> Result<(), Lack> {
    let outside = |error: io::Error| Lack {
        step: "fork".into(),
        errno: errno(&error),
    };
    let (mut reader, writer) = io::pipe().map_err(outside)?;
    // SAFETY: one thread, so the child may call anything.
    let child = check(unsafe { libc::fork() }).map_err(outside)?;
    if child == 0 {
        drop(reader);
        let said = match what() {
            Ok(()) => "ok".to_owned(),
            Err((step, error)) => format!("{} {step}", errno(&error)),
        };
        // Silence is told as a failure.
        let _ = File::from(OwnedFd::from(writer)).write_all(said.as_bytes());
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(0) };
    }
    drop(writer);
    let mut said = String::new();
    let read = reader.read_to_string(&mut said);
    // SAFETY: no memory is touched.
    unsafe { libc::waitpid(child, ptr::null_mut(), 0) };
    read.map_err(outside)?;
    match said.split_once(' ') {
        None if said == "ok" => Ok(()),
        Some((number, step)) => Err(Lack {
            step: step.to_owned(),
            errno: number.parse().unwrap_or(libc::EIO),
        }),
        None => Err(Lack {
            step: "a killed attempt".into(),
            errno: libc::EIO,
        }),
    }
}
