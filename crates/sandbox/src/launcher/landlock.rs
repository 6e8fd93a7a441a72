//! Landlock: rules about files and ports that a process puts on itself and all that come from it.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{check, open_plainly};
use crate::plan::{Access, Landlock, Rule};
use crate::policy::Exec;

const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

const READ: u64 = READ_FILE | READ_DIR;
const WRITE: u64 = READ
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE;
/// What can be said of a file that is no folder.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

const BIND_TCP: u64 = 1 << 0;
const CONNECT_TCP: u64 = 1 << 1;
const SCOPES: u64 = 0b11;

const RULE_PATH: libc::c_long = 1;
const RULE_PORT: libc::c_long = 2;

#[repr(C)]
struct Ruleset {
    files: u64,
    net: u64,
    scopes: u64,
}

#[repr(C, packed)]
struct Beneath {
    access: u64,
    parent: i32,
}

#[repr(C)]
struct Port {
    access: u64,
    port: u64,
}

/// Everything about files that this version knows; what it does not know it does not restrict.
fn files(version: u32) -> u64 {
    let bits = match version {
        0 => 0,
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << bits) - 1
}

fn rights(rule: &Rule, exec: Exec) -> u64 {
    let rights = match rule.access {
        Access::List => READ_DIR,
        Access::Read => READ,
        Access::Run => READ | EXECUTE,
        Access::Write if exec == Exec::Allowed => WRITE | EXECUTE,
        Access::Write => WRITE,
    };
    if rule.folder {
        rights
    } else {
        rights & OF_FILES
    }
}

/// The version that the kernel has; 0 for none.
pub(super) fn version() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads nothing.
    let version = unsafe { libc::syscall(CREATE_RULESET, 0_usize, 0_usize, VERSION) };
    u32::try_from(version).unwrap_or(0)
}

fn create(version: u32, net: bool) -> io::Result<OwnedFd> {
    let set = Ruleset {
        files: files(version),
        net: if net && version >= 4 {
            BIND_TCP | CONNECT_TCP
        } else {
            0
        },
        scopes: if version >= 6 { SCOPES } else { 0 },
    };
    let size = match version {
        0..=3 => size_of::<u64>(),
        4 | 5 => 2 * size_of::<u64>(),
        _ => size_of::<Ruleset>(),
    };
    // SAFETY: the structure lives across the call; the descriptor is new.
    unsafe {
        let made = libc::syscall(CREATE_RULESET, &raw const set, size, 0_u32);
        Ok(OwnedFd::from_raw_fd(check(made as libc::c_int)?))
    }
}

fn add<T>(set: &OwnedFd, kind: libc::c_long, rule: &T) -> io::Result<()> {
    // SAFETY: the structure is the one that the kind of rule takes, and lives across the call.
    let added = unsafe {
        libc::syscall(
            ADD_RULE,
            set.as_raw_fd(),
            kind,
            std::ptr::from_ref(rule),
            0_u32,
        )
    };
    check(added as libc::c_int).map(|_| ())
}

fn restrict(set: &OwnedFd) -> io::Result<()> {
    // SAFETY: no memory is touched.
    let done = unsafe { libc::syscall(RESTRICT_SELF, set.as_raw_fd(), 0_u32) };
    check(done as libc::c_int).map(|_| ())
}

/// Puts the rules on this process. A path that is not there any more is an error: what was planned holds, or nothing
/// runs.
pub(super) fn apply(plan: &Landlock, exec: Exec, port: Option<u16>) -> io::Result<()> {
    let set = create(plan.version, plan.net)?;
    let known = files(plan.version);
    for rule in &plan.rules {
        let file = open_plainly(&rule.path)?;
        let beneath = Beneath {
            access: rights(rule, exec) & known,
            parent: file.as_raw_fd(),
        };
        add(&set, RULE_PATH, &beneath)?;
    }
    if let (true, Some(port)) = (plan.net && plan.version >= 4, port) {
        let port = Port {
            access: CONNECT_TCP,
            port: port.into(),
        };
        add(&set, RULE_PORT, &port)?;
    }
    restrict(&set)
}

/// Finds out whether it can really be applied; only for a process that ends then.
pub(super) fn try_out(version: u32) -> io::Result<()> {
    // SAFETY: no memory is touched.
    unsafe { check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))? };
    restrict(&create(version, true)?)
}

const _: () = assert!(mem::size_of::<Beneath>() == 12);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_fit_what_they_are_for() {
        let rule = |folder, access| Rule {
            path: "/x".into(),
            folder,
            access,
        };
        assert_eq!(
            rights(&rule(true, Access::Read), Exec::Once),
            READ_FILE | READ_DIR
        );
        assert_eq!(
            rights(&rule(false, Access::Run), Exec::Once),
            READ_FILE | EXECUTE
        );
        assert_eq!(rights(&rule(true, Access::Write), Exec::Once) & EXECUTE, 0);
        assert_ne!(
            rights(&rule(true, Access::Write), Exec::Allowed) & EXECUTE,
            0
        );
        assert_eq!(
            rights(&rule(false, Access::Write), Exec::Once) & !OF_FILES,
            0
        );
        assert_eq!(files(1), 0x1fff);
        assert_eq!(files(3), 0x7fff);
        assert_eq!(files(7), 0xffff);
    }
}
