//! Opens files by paths in which no part is a link.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::check;

const NO_LINKS: u64 = 0x04;
const BENEATH: u64 = 0x08;

#[repr(C)]
struct How {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn open(folder: RawFd, path: &Path, resolve: u64) -> io::Result<OwnedFd> {
    let how = How {
        flags: (libc::O_PATH | libc::O_CLOEXEC) as u64,
        mode: 0,
        resolve,
    };
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: string and structure live across the call; the descriptor is new.
    unsafe {
        let opened = libc::syscall(
            libc::SYS_openat2,
            folder,
            path.as_ptr(),
            &raw const how,
            size_of::<How>(),
        );
        Ok(OwnedFd::from_raw_fd(check(opened as libc::c_int)?))
    }
}

/// Names a file or folder without opening its contents. A link anywhere in the path is an error.
pub(super) fn open_plainly(path: &Path) -> io::Result<OwnedFd> {
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let path = if path == Path::new("/proc/self") {
        &own
    } else {
        path
    };
    open(libc::AT_FDCWD, path, NO_LINKS)
}

/// The same below a folder, which the path can't leave.
pub(super) fn open_beneath(folder: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    open(folder.as_raw_fd(), path, NO_LINKS | BENEATH)
}

/// Makes what is missing of a path: folders, and at its end a file where the name has a suffix. Nothing is made behind a
/// link.
pub(crate) fn make_exactly(path: &Path) -> io::Result<()> {
    make(path, path.extension().is_some())
}

/// The same for what is a folder, whatever its name.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    make(path, false)
}

fn make(path: &Path, ends_in_file: bool) -> io::Result<()> {
    let there = |path: &Path| path.symlink_metadata().is_ok();
    let mut above = path.ancestors();
    let base = above.find(|folder| there(folder)).unwrap_or(Path::new("/"));
    let mut folder = open_plainly(base)?;
    let missing: Vec<_> = path.strip_prefix(base).into_iter().flatten().collect();
    for (index, part) in missing.iter().enumerate() {
        let name = CString::new(part.as_bytes())?;
        let is_file = ends_in_file && index + 1 == missing.len();
        // SAFETY: the string lives across the calls; the descriptor is new.
        unsafe {
            if is_file {
                let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
                let mode: libc::c_uint = 0o666;
                let made = libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, mode);
                drop(OwnedFd::from_raw_fd(check(made)?));
                return Ok(());
            }
            check(libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o777))?;
        }
        folder = open_beneath(&folder, Path::new(part))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_made_and_never_behind_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("there")).unwrap();
        std::os::unix::fs::symlink("there", real.join("link")).unwrap();
        make_exactly(&real.join("a/b/c")).unwrap();
        make_exactly(&real.join("a/notes.txt")).unwrap();
        make_exactly(&real.join("a")).unwrap();
        assert!(real.join("a/b/c").is_dir() && real.join("a/notes.txt").is_file());
        assert!(make_exactly(&real.join("link/x")).is_err());
        assert!(!real.join("there/x").exists());
    }

    #[test]
    fn links_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("/etc", real.join("link")).unwrap();
        assert!(open_plainly(&real).is_ok());
        for path in [real.join("link"), real.join("link/passwd")] {
            let error = open_plainly(&path).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{path:?}");
        }
        let folder = open_plainly(&real).unwrap();
        assert!(open_beneath(&folder, Path::new("..")).is_err());
        assert!(open_plainly(Path::new("/proc/self")).is_ok());
    }
}
