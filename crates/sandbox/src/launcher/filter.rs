//! A seccomp filter that keeps a process, and all that come from it, in its process group.
//!
//! Written out instead of compiled by a crate: it is fourteen instructions, and it must know the numbers of 32-bit and
//! x32 programs too, which would otherwise be a way around it.

use std::io;

use super::check;

/// The kernel's name for the architecture, the numbers of `setsid` and `setpgid`, and the same for the programs of the
/// older architecture that the kernel runs beside it.
struct Numbers {
    arch: u32,
    calls: [u32; 2],
    old_arch: u32,
    old_calls: [u32; 2],
}

#[cfg(target_arch = "x86_64")]
const NUMBERS: Option<Numbers> = Some(Numbers {
    arch: 0xC000_003E,
    calls: [libc::SYS_setsid as u32, libc::SYS_setpgid as u32],
    old_arch: 0x4000_0003,
    old_calls: [66, 57],
});
#[cfg(target_arch = "aarch64")]
const NUMBERS: Option<Numbers> = Some(Numbers {
    arch: 0xC000_00B7,
    calls: [libc::SYS_setsid as u32, libc::SYS_setpgid as u32],
    old_arch: 0x4000_0028,
    old_calls: [66, 57],
});
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const NUMBERS: Option<Numbers> = None;

/// x32 programs set this bit in the number; on other architectures no number is as large.
const X32_BIT: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;
/// Where the kernel puts the number and the architecture.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const DENY: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;

fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn program(numbers: &Numbers) -> [libc::sock_filter; 14] {
    let [setsid, setpgid] = numbers.calls;
    let [old_setsid, old_setpgid] = numbers.old_calls;
    // The two last numbers say how many instructions are skipped: if equal, if not.
    [
        instruction(LOAD, ARCH, 0, 0),
        instruction(IF_EQUAL, numbers.arch, 0, 5),
        instruction(LOAD, NUMBER, 0, 0),
        instruction(AND, !X32_BIT, 0, 0),
        instruction(IF_EQUAL, setsid, 8, 0),
        instruction(IF_EQUAL, setpgid, 7, 0),
        instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        instruction(IF_EQUAL, numbers.old_arch, 1, 0),
        instruction(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        instruction(LOAD, NUMBER, 0, 0),
        instruction(IF_EQUAL, old_setsid, 2, 0),
        instruction(IF_EQUAL, old_setpgid, 1, 0),
        instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        instruction(RETURN, DENY, 0, 0),
    ]
}

/// From here on this process and its children stay in their group, and gain no rights by executing a file.
/// A kernel without filters is let be: orphans still fall to the launcher.
pub(super) fn forbid_leaving_the_group() -> io::Result<()> {
    let Some(numbers) = NUMBERS else {
        return Ok(());
    };
    let mut instructions = program(&numbers);
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
mod tests {
    use super::*;

    /// What the filter says to one call, by the rules of the kernel's machine.
    fn verdict(arch: u32, number: u32) -> u32 {
        let instructions = program(&NUMBERS.unwrap());
        let (mut at, mut value) = (0, 0);
        loop {
            let libc::sock_filter { code, jt, jf, k } = instructions[at];
            at += 1;
            match code {
                LOAD => value = if k == ARCH { arch } else { number },
                AND => value &= k,
                IF_EQUAL => at += usize::from(if value == k { jt } else { jf }),
                _ => return k,
            }
        }
    }

    #[test]
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    fn only_leaving_the_group_is_denied() {
        let Numbers {
            arch,
            calls,
            old_arch,
            old_calls,
        } = NUMBERS.unwrap();
        for number in 0..600 {
            for (arch, denied) in [(arch, calls), (old_arch, old_calls)] {
                let expected = match denied.contains(&number) {
                    true => DENY,
                    false => libc::SECCOMP_RET_ALLOW,
                };
                assert_eq!(verdict(arch, number), expected, "{arch:x} {number}");
            }
        }
        for number in calls {
            assert_eq!(verdict(arch, number | X32_BIT), DENY);
        }
        assert_eq!(verdict(1, 0), libc::SECCOMP_RET_KILL_PROCESS);
    }
}
