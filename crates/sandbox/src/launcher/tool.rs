//! From fork to exec: how a process becomes the tool.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem;
use std::os::fd::AsRawFd;
use std::ptr;

use super::walls::Step;
use super::wire::Report;
use super::{Trouble, Walls, check, errno, filter, leave_the_group, open_plainly};
use crate::start::Start;

/// What is executed.
pub(super) struct Tool(Start);

/// What the tool gives up before it runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bond {
    /// Nothing: the namespace holds it.
    Namespace,
    /// It dies with its launcher, can't leave its group, and can't reach the launcher.
    Group,
}

impl Tool {
    pub(super) fn new(start: Start) -> Tool {
        Tool(start)
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
        let more = walls.map(Walls::variables).unwrap_or_default();
        let words = match self.0.words(&more) {
            Ok(words) => words,
            Err(error) => return Failed::Exec(error),
        };
        let (argv, vars) = (pointers(&words.argv), pointers(&words.vars));
        if let Err(error) = prepare(bond, parent) {
            return Failed::Exec(error);
        }
        if let Err(error) = self.enter_directory() {
            let step = Step::Directory;
            return Failed::Walls(Trouble { step, error });
        }
        if let Some(walls) = walls
            && let Err(trouble) = walls.put_up()
        {
            return Failed::Walls(trouble);
        }
        if let Err(error) = unblock() {
            return Failed::Exec(error);
        }
        // SAFETY: the strings outlive the calls, and both lists end with a null pointer.
        unsafe {
            match walls {
                None => {
                    libc::execve(words.program.as_ptr(), argv.as_ptr(), vars.as_ptr());
                }
                Some(walls) => {
                    libc::syscall(
                        libc::SYS_execveat,
                        walls.descriptor(),
                        c"".as_ptr(),
                        argv.as_ptr(),
                        vars.as_ptr(),
                        libc::AT_EMPTY_PATH,
                    );
                }
            }
        }
        Failed::Exec(io::Error::last_os_error())
    }

    fn enter_directory(&self) -> io::Result<()> {
        let folder = open_plainly(&self.0.dir())?;
        // SAFETY: no memory is touched.
        check(unsafe { libc::fchdir(folder.as_raw_fd()) }).map(|_| ())
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
