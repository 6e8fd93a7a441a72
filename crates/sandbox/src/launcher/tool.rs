//! From fork to exec: how a process becomes the tool.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use super::wire::Report;
use super::{Trouble, Walls, check, errno, filter, leave_the_group};

/// The file to execute and its arguments, as exec takes them.
pub(super) struct Tool {
    program: CString,
    argv: Vec<CString>,
}

/// What the tool gives up before it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bond {
    /// Nothing: the namespace holds it.
    Namespace,
    /// It dies with its launcher, can't leave its group, and can't reach the launcher.
    Group,
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

impl Tool {
    pub(super) fn new(program: &OsStr, argv: impl Iterator<Item = OsString>) -> io::Result<Tool> {
        Ok(Tool {
            program: c_string(program)?,
            argv: argv.map(|arg| c_string(&arg)).collect::<Result<_, _>>()?,
        })
    }

    /// Forks and executes, behind walls if there are any. The inner error is what failed in the child, told through a
    /// pipe that a successful exec closes.
    pub(super) fn start(
        &self,
        bond: Bond,
        walls: Option<&Walls>,
    ) -> io::Result<Result<libc::pid_t, Report>> {
        let (mut reader, writer) = io::pipe()?;
        // SAFETY: one thread, so the child may call anything.
        let (parent, tool) = unsafe { (libc::getpid(), check(libc::fork())?) };
        if tool == 0 {
            let failed = match self.execute(bond, parent, walls) {
                Failed::Exec(error) => errno(&error),
                Failed::Walls(trouble) => trouble.code(),
            };
            let mut writer = File::from(std::os::fd::OwnedFd::from(writer));
            // Nobody is left to hear of an error here.
            let _ = writer.write_all(&failed.to_le_bytes());
            // SAFETY: ends the child without running what belongs to the parent.
            unsafe { libc::_exit(127) };
        }
        drop(writer);
        let mut failed = [0; 4];
        match reader.read_exact(&mut failed) {
            Ok(()) => {
                // SAFETY: no memory is touched.
                unsafe { libc::waitpid(tool, ptr::null_mut(), 0) };
                let code = i32::from_le_bytes(failed);
                Ok(Err(match Trouble::from_code(code) {
                    Some(_) => Report::Walls(code),
                    None => Report::ExecFailed(code),
                }))
            }
            Err(_) => Ok(Ok(tool)),
        }
    }

    /// The last steps of the child; returns only when one of them failed.
    fn execute(&self, bond: Bond, parent: libc::pid_t, walls: Option<&Walls>) -> Failed {
        let argv = pointers(&self.argv);
        if let Err(error) = prepare(bond, parent) {
            return Failed::Exec(error);
        }
        let Some(walls) = walls else {
            return match unblock() {
                // SAFETY: the strings live in `self`, and the list of them ends with a null pointer.
                Ok(()) => unsafe {
                    libc::execv(self.program.as_ptr(), argv.as_ptr());
                    Failed::Exec(io::Error::last_os_error())
                },
                Err(error) => Failed::Exec(error),
            };
        };
        let variables = match walls.variables() {
            Ok(variables) => variables,
            Err(error) => return Failed::Exec(error),
        };
        if let Err(trouble) = walls.put_up() {
            return Failed::Walls(trouble);
        }
        let variables = pointers(&variables);
        match unblock() {
            // SAFETY: the strings outlive the call, and both lists end with a null pointer.
            Ok(()) => unsafe {
                libc::syscall(
                    libc::SYS_execveat,
                    walls.descriptor(),
                    c"".as_ptr(),
                    argv.as_ptr(),
                    variables.as_ptr(),
                    libc::AT_EMPTY_PATH,
                );
                Failed::Exec(io::Error::last_os_error())
            },
            Err(error) => Failed::Exec(error),
        }
    }
}

/// What kept the child from becoming the tool.
enum Failed {
    Exec(io::Error),
    Walls(Trouble),
}

/// A list as exec takes it.
fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let all = strings.iter().map(|text| text.as_ptr());
    all.chain([ptr::null()]).collect()
}

/// From here on signals reach the process.
fn unblock() -> io::Result<()> {
    // SAFETY: the set is filled before it is read.
    unsafe {
        let mut none = mem::zeroed();
        libc::sigemptyset(&mut none);
        check(libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut())).map(|_| ())
    }
}

fn prepare(bond: Bond, parent: libc::pid_t) -> io::Result<()> {
    leave_the_group()?;
    // SAFETY: no memory is touched. All that was opened since the launcher began is closed by exec.
    unsafe {
        if bond == Bond::Group {
            check(libc::prctl(
                libc::PR_SET_PDEATHSIG,
                libc::SIGKILL as libc::c_ulong,
                0,
                0,
                0,
            ))?;
            if libc::getppid() != parent {
                libc::_exit(127);
            }
            filter::hold(parent)?;
        }
    }
    Ok(())
}
