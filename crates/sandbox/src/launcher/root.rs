//! A root of its own for the tool: only what the plan names is in there.
//!
//! Sources are opened before anything is covered, by paths without links, and each is put in its place through a
//! descriptor. So whoever swaps a folder for a link meanwhile makes the start fail, and nothing else.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use super::{check, open_beneath, open_plainly};
use crate::plan::{Kind, Mount};

const CLONE: libc::c_uint = 1;
const RECURSIVE: libc::c_uint = 0x8000;
const EMPTY_PATH: libc::c_uint = libc::AT_EMPTY_PATH as libc::c_uint;
const FROM_EMPTY: libc::c_uint = 0x04;
const TO_EMPTY: libc::c_uint = 0x40;

const READ_ONLY: u64 = 0x1;
const NO_SUID: u64 = 0x2;
const NO_DEVICES: u64 = 0x4;

/// Folders of which one is sure to be there; nothing in it is touched, it is only covered in here.
const PLACES: [&str; 4] = ["/tmp", "/mnt", "/run", "/usr"];

#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn set_attributes(mount: &OwnedFd, set: u64, flags: libc::c_uint) -> io::Result<()> {
    let attributes = Attributes {
        set,
        ..Attributes::default()
    };
    // SAFETY: the structure and the string live across the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            EMPTY_PATH | flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    check(done as libc::c_int).map(|_| ())
}

/// A copy of what is mounted at a path, with all below it, to be put elsewhere. Flags are only added, so those that an
/// ordinary user may not take away are no trouble.
fn copy_of(path: &Path, set: u64) -> io::Result<OwnedFd> {
    let source = open_plainly(path)?;
    let flags = CLONE | RECURSIVE | EMPTY_PATH | libc::O_CLOEXEC as libc::c_uint;
    // SAFETY: the string lives across the call; the descriptor is new.
    let copy = unsafe {
        let made = libc::syscall(libc::SYS_open_tree, source.as_raw_fd(), c"".as_ptr(), flags);
        OwnedFd::from_raw_fd(check(made as libc::c_int)?)
    };
    set_attributes(&copy, set, RECURSIVE)?;
    Ok(copy)
}

fn source(mount: &Mount) -> io::Result<Option<OwnedFd>> {
    match mount.kind {
        Kind::Bind { writable, .. } => {
            let read_only = if writable { 0 } else { READ_ONLY };
            copy_of(&mount.path, NO_SUID | NO_DEVICES | read_only).map(Some)
        }
        Kind::Device => copy_of(&mount.path, NO_SUID).map(Some),
        Kind::Hidden { folder: false } => {
            copy_of(Path::new("/dev/null"), NO_SUID | READ_ONLY).map(Some)
        }
        _ => Ok(None),
    }
}

fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn mount_new(
    kind: &std::ffi::CStr,
    at: &Path,
    flags: libc::c_ulong,
    options: &str,
) -> io::Result<()> {
    let (at, options) = (c_string(at)?, c_string(Path::new(options))?);
    let flags = flags | libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: the strings live across the call.
    let done = unsafe {
        libc::mount(
            kind.as_ptr(),
            at.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    check(done).map(|_| ())
}

/// The new root while it is built.
struct Site {
    at: PathBuf,
    root: OwnedFd,
}

impl Site {
    /// Where a mount goes; made if it is not there.
    fn point(&self, path: &Path, folder: bool) -> io::Result<OwnedFd> {
        let inside = path.strip_prefix("/").unwrap_or(path);
        match open_beneath(&self.root, inside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let made = self.at.join(inside);
        if folder {
            std::fs::create_dir_all(&made)?;
        } else {
            made.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::fs::File::create_new(&made)?;
        }
        open_beneath(&self.root, inside)
    }

    fn put(&self, copy: &OwnedFd, path: &Path, folder: bool) -> io::Result<()> {
        let point = self.point(path, folder)?;
        // SAFETY: the strings live across the call.
        let done = unsafe {
            libc::syscall(
                libc::SYS_move_mount,
                copy.as_raw_fd(),
                c"".as_ptr(),
                point.as_raw_fd(),
                c"".as_ptr(),
                FROM_EMPTY | TO_EMPTY,
            )
        };
        check(done as libc::c_int).map(|_| ())
    }

    fn place(&self, mount: &Mount, source: Option<OwnedFd>) -> io::Result<()> {
        let path = &mount.path;
        // A descriptor's own name leads to it whatever became of its path.
        let named = |point: &OwnedFd| PathBuf::from(format!("/proc/self/fd/{}", point.as_raw_fd()));
        match (&mount.kind, source) {
            (Kind::Bind { folder, .. }, Some(copy)) => self.put(&copy, path, *folder),
            (Kind::Device | Kind::Hidden { .. }, Some(copy)) => self.put(&copy, path, false),
            (Kind::Tmp { mb }, _) => {
                let point = self.point(path, true)?;
                // A file that holds nothing takes memory too, about a kilobyte.
                let entries = mb.saturating_mul(1_024);
                let options = format!("size={mb}m,nr_inodes={entries},mode=1777");
                mount_new(c"tmpfs", &named(&point), 0, &options)
            }
            (Kind::Hidden { .. }, _) => {
                let point = self.point(path, true)?;
                // Closed once everything is in its place: what is named itself is mounted in there.
                mount_new(c"tmpfs", &named(&point), 0, "size=64k,mode=755")
            }
            (Kind::Proc, _) => {
                let point = self.point(path, true)?;
                mount_new(
                    c"proc",
                    &named(&point),
                    libc::MS_RDONLY | libc::MS_NOEXEC,
                    "",
                )
            }
            (Kind::Folder, _) => self.point(path, true).map(|_| ()),
            (Kind::Link { to }, _) => {
                let made = self.at.join(path.strip_prefix("/").unwrap_or(path));
                // It is there already where the folder that holds it is.
                if made.symlink_metadata().is_ok() {
                    return Ok(());
                }
                made.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                std::os::unix::fs::symlink(to, made)
            }
            (Kind::Bind { .. } | Kind::Device, None) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// Builds the root and goes there. This process has a mount namespace of its own, and stands nowhere afterwards.
pub(super) fn enter(mounts: &[Mount]) -> io::Result<()> {
    let nothing = ptr::null();
    // SAFETY: the string ends with a null byte, and null pointers stand for what is not needed.
    unsafe {
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        check(libc::mount(
            nothing,
            c"/".as_ptr(),
            nothing,
            flags,
            nothing.cast(),
        ))?;
    }
    let sources: Vec<_> = mounts.iter().map(source).collect::<Result<_, _>>()?;
    let at = PLACES.iter().map(Path::new).find(|place| place.is_dir());
    let at = at.ok_or(io::ErrorKind::NotFound)?.to_path_buf();
    mount_new(c"tmpfs", &at, 0, "size=1m,mode=755")?;
    let root = open_plainly(&at)?;
    let site = Site { at, root };
    for (mount, source) in mounts.iter().zip(sources) {
        site.place(mount, source)?;
    }
    // SAFETY: the strings end with null bytes.
    unsafe {
        check(libc::fchdir(site.root.as_raw_fd()))?;
        let here = c".".as_ptr();
        check(libc::syscall(libc::SYS_pivot_root, here, here) as libc::c_int)?;
        check(libc::umount2(here, libc::MNT_DETACH))?;
        check(libc::chdir(c"/".as_ptr()))?;
    }
    let emptied = |mount: &&Mount| mount.kind == Kind::Hidden { folder: true };
    for mount in mounts.iter().filter(emptied) {
        set_attributes(&open_plainly(&mount.path)?, READ_ONLY, 0)?;
    }
    // Only the root itself; what is mounted in it is as it was put there.
    set_attributes(&open_plainly(Path::new("/"))?, READ_ONLY, 0)
}
