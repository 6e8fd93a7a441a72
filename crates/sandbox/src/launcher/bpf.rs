//! Rules about system calls as the kernel takes them: a small program that looks at each call.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::check;
use crate::plan::{Rules, Test, Verdict};

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: u32 = 0;

/// Numbers from here on are those of x32 programs, which hardly exist; no other architecture has any as large.
const X32: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Where the kernel puts the number, the architecture, and the arguments.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ARGUMENTS: u32 = 16;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

fn word(verdict: Verdict) -> u32 {
    match verdict {
        Verdict::Denied => libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
        Verdict::Unknown => libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        Verdict::Unsupported => libc::SECCOMP_RET_ERRNO | libc::EOPNOTSUPP as u32,
        Verdict::Ignored => libc::SECCOMP_RET_ERRNO,
        Verdict::Asked => libc::SECCOMP_RET_USER_NOTIF,
    }
}

fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// Falls through when the test holds, else skips what is left of its case.
fn test(test: Test, skipped: u8) -> Vec<libc::sock_filter> {
    // The lower half comes first on both architectures.
    let load = |at: u8| instruction(LOAD, ARGUMENTS + 8 * u32::from(at), 0, 0);
    match test {
        Test::Is(at, value) => vec![load(at), instruction(IF_EQUAL, value, 0, skipped)],
        Test::IsNot(at, value) => vec![load(at), instruction(IF_EQUAL, value, skipped, 0)],
        Test::Masked(at, mask, value) => vec![
            load(at),
            instruction(AND, mask, 0, 0),
            instruction(IF_EQUAL, value, 0, skipped),
        ],
    }
}

/// One case: its tests, then the verdict. Built from the end, where it is known how much there is to skip.
fn case(tests: &[Test], verdict: u32) -> Vec<libc::sock_filter> {
    let mut built = vec![instruction(RETURN, verdict, 0, 0)];
    for one in tests.iter().rev() {
        let mut longer = test(*one, built.len() as u8);
        longer.extend(built);
        built = longer;
    }
    built
}

/// The whole program. A program of another architecture is killed: its calls have other numbers.
pub(super) fn compile(rules: &Rules) -> Vec<libc::sock_filter> {
    let mut program = vec![
        instruction(LOAD, ARCH, 0, 0),
        instruction(IF_EQUAL, ARCHITECTURE, 1, 0),
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        instruction(LOAD, NUMBER, 0, 0),
        instruction(IF_AT_LEAST, X32, 0, 1),
        instruction(RETURN, word(Verdict::Unknown), 0, 0),
    ];
    for (call, (verdict, cases)) in rules {
        let mut block: Vec<libc::sock_filter> = cases
            .iter()
            .flat_map(|tests| case(tests, word(*verdict)))
            .collect();
        let rest = if cases.is_empty() {
            word(*verdict)
        } else {
            ALLOW
        };
        block.push(instruction(RETURN, rest, 0, 0));
        program.push(instruction(IF_EQUAL, *call, 0, block.len() as u8));
        program.extend(block);
    }
    program.push(instruction(RETURN, ALLOW, 0, 0));
    program
}

/// Puts the filter on this process and all that come from it. Where calls are asked about, gives the descriptor on
/// which that is heard.
pub(super) fn install(
    mut program: Vec<libc::sock_filter>,
    asked: bool,
) -> io::Result<Option<OwnedFd>> {
    const SET_MODE_FILTER: libc::c_uint = 1;
    const NEW_LISTENER: libc::c_uint = 8;
    let filter = libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        filter: program.as_mut_ptr(),
    };
    let flags = if asked { NEW_LISTENER } else { 0 };
    // SAFETY: the filter lives across the call; a descriptor that is given is new.
    unsafe {
        let given = libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, flags, &raw const filter);
        let given = check(given as libc::c_int)?;
        Ok(asked.then(|| OwnedFd::from_raw_fd(given)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests_of_calls::verdict;
    use crate::plan::{Calls, Sockets};
    use crate::policy::Exec;

    /// What the program says to one call, by the rules of the kernel's machine.
    fn run(program: &[libc::sock_filter], arch: u32, number: u32, args: [u32; 6]) -> u32 {
        let (mut at, mut value) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = program[at];
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            at += 1;
            match code {
                LOAD if k == ARCH => value = arch,
                LOAD if k == NUMBER => value = number,
                LOAD => value = args[((k - ARGUMENTS) / 8) as usize],
                AND => value &= k,
                IF_EQUAL => at += jump(value == k),
                IF_AT_LEAST => at += jump(value >= k),
                _ => return k,
            }
        }
    }

    #[test]
    fn the_program_says_what_the_rules_say() {
        let values = [
            0,
            1,
            2,
            3,
            5,
            6,
            10,
            16,
            262,
            1_023,
            4_096,
            0x2000,
            0x5412,
            0x1000_0000,
            0x2000_0000,
            u32::MAX,
        ];
        for sockets in [
            Sockets::None,
            Sockets::Tcp,
            Sockets::Asked,
            Sockets::Internet,
        ] {
            for apart in [true, false] {
                let calls = Calls {
                    exec: Exec::Once,
                    sockets,
                    keep_modes: !apart,
                    apart,
                    scoped: apart,
                    counted: apart,
                    watches: true,
                };
                let rules = calls.rules(5, 1_023);
                let program = compile(&rules);
                assert!(program.len() < 4_096);
                for number in 0..480 {
                    for (index, value) in values.iter().enumerate() {
                        for at in 0..5 {
                            let mut args = [values[(index + at) % values.len()]; 6];
                            args[at] = *value;
                            let expected = verdict(&rules, number, args).map_or(ALLOW, word);
                            assert_eq!(
                                run(&program, ARCHITECTURE, number, args),
                                expected,
                                "{number} {args:?}"
                            );
                        }
                    }
                }
                assert_eq!(
                    run(&program, ARCHITECTURE, X32 | 1, [0; 6]),
                    word(Verdict::Unknown)
                );
                assert_eq!(run(&program, 1, 0, [0; 6]), libc::SECCOMP_RET_KILL_PROCESS);
            }
        }
    }

    #[test]
    fn jumps_are_short_enough() {
        let calls = Calls {
            exec: Exec::Once,
            sockets: Sockets::Asked,
            keep_modes: true,
            apart: false,
            scoped: false,
            counted: false,
            watches: true,
        };
        for (_, cases) in calls.rules(1, 2).values() {
            let length: usize = cases.iter().map(|tests| case(tests, 0).len()).sum();
            assert!(length < 255);
        }
    }
}
