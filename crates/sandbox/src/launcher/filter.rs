//! A seccomp filter that keeps a process, and all that come from it, in its process group, and their hands off the
//! launcher that will end them.
//!
//! Written out instead of compiled by a crate: it is short, and it must know 32-bit and x32 programs too, which would
//! otherwise be a way around it.

use std::io;

use super::check;

/// The numbers that one architecture gives to the calls the filter knows.
struct Calls {
    /// The kernel's name for the architecture.
    arch: u32,
    /// `setsid`, `setpgid`.
    leave: [u32; 2],
    /// Calls that do something to the process whose number comes first: `kill`, `tkill`, `tgkill`, `rt_sigqueueinfo`,
    /// `rt_tgsigqueueinfo`, `prlimit64`, `pidfd_open`.
    reach: [u32; 7],
}

/// Has this number everywhere. A descriptor does not tell the filter whose it is; programs fall back to `kill`.
const PIDFD_SEND_SIGNAL: u32 = 424;

const LEAVE: [u32; 2] = [libc::SYS_setsid as u32, libc::SYS_setpgid as u32];
const REACH: [u32; 7] = [
    libc::SYS_kill as u32,
    libc::SYS_tkill as u32,
    libc::SYS_tgkill as u32,
    libc::SYS_rt_sigqueueinfo as u32,
    libc::SYS_rt_tgsigqueueinfo as u32,
    libc::SYS_prlimit64 as u32,
    libc::SYS_pidfd_open as u32,
];

/// The architecture, and the older one whose programs the kernel runs beside it.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURES: &[Calls] = &[
    Calls {
        arch: 0xC000_003E,
        leave: LEAVE,
        reach: REACH,
    },
    Calls {
        arch: 0x4000_0003,
        leave: [66, 57],
        reach: [37, 238, 270, 178, 335, 340, 434],
    },
];
#[cfg(target_arch = "aarch64")]
const ARCHITECTURES: &[Calls] = &[
    Calls {
        arch: 0xC000_00B7,
        leave: LEAVE,
        reach: REACH,
    },
    Calls {
        arch: 0x4000_0028,
        leave: [66, 57],
        reach: [37, 238, 268, 178, 363, 369, 434],
    },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURES: &[Calls] = &[];

/// Numbers from here on are those of x32 programs, which hardly exist; no other architecture has any as large.
const X32: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where the kernel puts the number, the architecture, and the lower half of the first argument.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const FIRST: u32 = 16;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// One instruction; the last two numbers say how many are skipped if the condition holds, and if not.
fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Ends with `verdict` if what was loaded is `value`.
fn end_if(value: u32, verdict: u32) -> [libc::sock_filter; 2] {
    [
        instruction(IF_EQUAL, value, 0, 1),
        instruction(RETURN, verdict, 0, 0),
    ]
}

/// What is asked of a call of one architecture.
fn rules(calls: &Calls, launcher: libc::pid_t) -> Vec<libc::sock_filter> {
    let mut rules = vec![
        instruction(LOAD, NUMBER, 0, 0),
        instruction(IF_AT_LEAST, X32, 0, 1),
        instruction(RETURN, UNKNOWN, 0, 0),
    ];
    for call in calls.leave {
        rules.extend(end_if(call, DENY));
    }
    rules.extend(end_if(PIDFD_SEND_SIGNAL, UNKNOWN));
    // The launcher, its group, everybody.
    let victims = [launcher, -launcher, -1];
    let mut check = vec![instruction(LOAD, FIRST, 0, 0)];
    check.extend(victims.iter().flat_map(|pid| end_if(*pid as u32, DENY)));
    check.push(instruction(RETURN, ALLOW, 0, 0));
    for call in calls.reach {
        rules.push(instruction(IF_EQUAL, call, 0, check.len() as u8));
        rules.extend(&check);
    }
    rules.push(instruction(RETURN, ALLOW, 0, 0));
    rules
}

fn program(launcher: libc::pid_t) -> Vec<libc::sock_filter> {
    let mut program = vec![instruction(LOAD, ARCH, 0, 0)];
    for calls in ARCHITECTURES {
        let rules = rules(calls, launcher);
        program.push(instruction(IF_EQUAL, calls.arch, 0, rules.len() as u8));
        program.extend(rules);
    }
    program.push(instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0));
    program
}

/// From here on this process and its children stay in their group, can't reach the launcher, and gain no rights by
/// executing a file. A kernel without filters is let be: orphans still fall to the launcher.
pub(super) fn hold(launcher: libc::pid_t) -> io::Result<()> {
    if ARCHITECTURES.is_empty() {
        return Ok(());
    }
    let mut instructions = program(launcher);
    let filter = libc::sock_fprog {
        len: instructions.len() as libc::c_ushort,
        filter: instructions.as_mut_ptr(),
    };
    // SAFETY: the filter lives across the call.
    let done = unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER as libc::c_ulong,
            &raw const filter,
            0,
            0,
        ))
    };
    match done {
        Err(error) if error.raw_os_error() != Some(libc::EINVAL) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod tests {
    use super::*;

    const LAUNCHER: libc::pid_t = 4_711;

    /// What the filter says to one call, by the rules of the kernel's machine.
    fn verdict(arch: u32, number: u32, first: i32) -> u32 {
        let instructions = program(LAUNCHER);
        let (mut at, mut value) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = instructions[at];
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            at += 1;
            match code {
                LOAD if k == ARCH => value = arch,
                LOAD if k == NUMBER => value = number,
                LOAD => value = first as u32,
                IF_EQUAL => at += jump(value == k),
                IF_AT_LEAST => at += jump(value >= k),
                _ => return k,
            }
        }
    }

    #[test]
    fn only_leaving_and_reaching_the_launcher_are_denied() {
        for Calls { arch, leave, reach } in ARCHITECTURES {
            for number in 0..600 {
                for first in [0, 1, LAUNCHER, -LAUNCHER, -1, 4_712] {
                    let expected = if number == PIDFD_SEND_SIGNAL {
                        UNKNOWN
                    } else if leave.contains(&number)
                        || reach.contains(&number) && [LAUNCHER, -LAUNCHER, -1].contains(&first)
                    {
                        DENY
                    } else {
                        ALLOW
                    };
                    let said = verdict(*arch, number, first);
                    assert_eq!(said, expected, "{arch:x} {number} {first}");
                }
                assert_eq!(verdict(*arch, number | X32, 0), UNKNOWN);
            }
        }
        assert_eq!(verdict(1, 0, 0), libc::SECCOMP_RET_KILL_PROCESS);
    }

    #[test]
    fn jumps_are_short_enough() {
        let longest = ARCHITECTURES
            .iter()
            .map(|calls| rules(calls, LAUNCHER).len());
        assert!(longest.max() <= Some(255));
    }
}
