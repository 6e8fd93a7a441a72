//! A root of its own for the tool: only what the plan names is in there.
//!
//! Sources are opened before anything is covered, by paths without links, and each is put in its place through a
//! descriptor. So whoever swaps a folder for a link meanwhile, before or after it was mounted, makes the start fail, and
//! nothing else.

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
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

fn mount_new(kind: &CStr, at: &Path, flags: libc::c_ulong, options: &str) -> io::Result<()> {
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

/// The new root while it is built. Whatever is made in it is made by descriptor, and only in file systems of its own: what is
/// mounted from outside is other people's, who may swap its folders for links at any moment.
struct Site {
    root: OwnedFd,
    /// Its file systems. Nobody else has a name for them.
    own: Vec<libc::dev_t>,
}

impl Site {
    /// Where a mount goes; made if it is not there.
    fn point(&self, path: &Path, folder: bool) -> io::Result<OwnedFd> {
        let inside = inside(path);
        match (open_beneath(&self.root, inside), inside.file_name()) {
            (Err(error), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
                let holder = self.point(&above(inside), true)?;
                self.make(&holder, Path::new(name), folder)?;
                open_beneath(&holder, Path::new(name))
            }
            (other, _) => other,
        }
    }

    fn make(&self, holder: &OwnedFd, name: &Path, folder: bool) -> io::Result<()> {
        self.check_own(holder)?;
        let name = c_string(name)?;
        // SAFETY: the string lives across the calls; the descriptor is new.
        unsafe {
            if folder {
                return check(libc::mkdirat(holder.as_raw_fd(), name.as_ptr(), 0o755)).map(|_| ());
            }
            let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC;
            let mode: libc::c_uint = 0o644;
            let made = libc::openat(holder.as_raw_fd(), name.as_ptr(), flags, mode);
            drop(OwnedFd::from_raw_fd(check(made)?));
        }
        Ok(())
    }

    fn link(&self, path: &Path, to: &Path) -> io::Result<()> {
        let inside = inside(path);
        let name = c_string(Path::new(inside.file_name().unwrap_or_default()))?;
        let holder = self.point(&above(inside), true)?;
        // It is there already where the folder that holds it is.
        if status(&holder, &name).is_ok() {
            return Ok(());
        }
        self.check_own(&holder)?;
        let to = c_string(to)?;
        // SAFETY: the strings live across the call.
        let made = unsafe { libc::symlinkat(to.as_ptr(), holder.as_raw_fd(), name.as_ptr()) };
        check(made).map(|_| ())
    }

    /// Something may be made in the site's own file systems only.
    fn check_own(&self, holder: &OwnedFd) -> io::Result<()> {
        match self.own.contains(&status(holder, c"")?.st_dev) {
            true => Ok(()),
            // It was there when the plan was made.
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Covers a folder with a file system of the site's own.
    fn cover(&mut self, path: &Path, options: &str) -> io::Result<()> {
        let point = self.point(path, true)?;
        mount_new(c"tmpfs", &named(&point), 0, options)?;
        let covered = open_beneath(&self.root, inside(path))?;
        self.own.push(status(&covered, c"")?.st_dev);
        Ok(())
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

    fn place(&mut self, mount: &Mount, source: Option<OwnedFd>) -> io::Result<()> {
        let path = &mount.path;
        match (&mount.kind, source) {
            (Kind::Bind { folder, .. }, Some(copy)) => self.put(&copy, path, *folder),
            (Kind::Device | Kind::Hidden { .. }, Some(copy)) => self.put(&copy, path, false),
            (Kind::Tmp { mb }, _) => {
                // A file that holds nothing takes memory too, about a kilobyte.
                let entries = mb.saturating_mul(1_024);
                let options = format!("size={mb}m,nr_inodes={entries},mode=1777");
                self.cover(path, &options)
            }
            // Closed once everything is in its place: what is named itself is mounted in there.
            (Kind::Hidden { .. }, _) => self.cover(path, "size=64k,mode=755"),
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
            (Kind::Link { to }, _) => self.link(path, to),
            (Kind::Bind { .. } | Kind::Device, None) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// A descriptor's own name, which leads to it whatever became of its path.
fn named(point: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", point.as_raw_fd()))
}

/// A path as seen from the root.
fn inside(path: &Path) -> &Path {
    match path.strip_prefix("/").unwrap_or(path) {
        root if root == Path::new("") => Path::new("."),
        inside => inside,
    }
}

/// The folder that holds it, from the root on.
fn above(inside: &Path) -> PathBuf {
    Path::new("/").join(inside.parent().unwrap_or(Path::new("")))
}

/// What is known of an entry of a folder, or of the folder itself; links are not followed.
fn status(holder: &OwnedFd, name: &CStr) -> io::Result<libc::stat> {
    let mut found = MaybeUninit::uninit();
    let flags = libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW;
    // SAFETY: the string and the structure live across the call, which fills the structure where it gives no error.
    unsafe {
        let done = libc::fstatat(holder.as_raw_fd(), name.as_ptr(), found.as_mut_ptr(), flags);
        check(done)?;
        Ok(found.assume_init())
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
    let at = at.ok_or(io::ErrorKind::NotFound)?;
    mount_new(c"tmpfs", at, 0, "size=1m,mode=755")?;
    let root = open_plainly(at)?;
    let own = vec![status(&root, c"")?.st_dev];
    let mut site = Site { root, own };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A site that stands in a folder, and a link in it that leads elsewhere.
    fn site(folder: &Path) -> Site {
        let real = folder.canonicalize().unwrap();
        std::fs::create_dir_all(real.join("site/there")).unwrap();
        std::fs::create_dir(real.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(real.join("elsewhere"), real.join("site/swapped")).unwrap();
        let root = open_plainly(&real.join("site")).unwrap();
        let own = Vec::new();
        Site { root, own }
    }

    fn entries(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn nothing_is_made_in_what_others_can_reach() {
        let folder = tempfile::tempdir().unwrap();
        let site = site(folder.path());
        assert!(site.point(Path::new("/there"), true).is_ok());
        for path in ["/there/new", "/new", "/swapped/new", "/swapped"] {
            let path = Path::new(path);
            assert!(site.point(path, true).is_err(), "{path:?}");
            assert!(site.point(path, false).is_err(), "{path:?}");
        }
        for path in ["/there/link", "/link", "/swapped/link"] {
            let made = site.link(Path::new(path), Path::new("/etc"));
            assert!(made.is_err(), "{path}");
        }
        // A link that is there already is left as it is.
        site.link(Path::new("/swapped"), Path::new("/etc")).unwrap();
        let place = |name: &str| folder.path().join(name);
        let left = ["site", "site/there", "elsewhere"].map(|name| entries(&place(name)));
        assert_eq!(left, [2, 0, 0]);
    }

    #[test]
    fn what_is_made_in_its_own_lies_beneath_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut site = site(folder.path());
        site.own = vec![status(&site.root, c"").unwrap().st_dev];
        assert!(site.point(Path::new("/a/b"), true).is_ok());
        assert!(site.point(Path::new("/a/c/file"), false).is_ok());
        site.link(Path::new("/d/link"), Path::new("/etc")).unwrap();
        assert!(site.point(Path::new("/"), true).is_ok());
        assert!(site.point(Path::new("/swapped/new"), true).is_err());
        assert!(
            site.link(Path::new("/swapped/new"), Path::new("/etc"))
                .is_err()
        );
        let place = |name: &str| folder.path().join(name);
        assert!(place("site/a/b").is_dir() && place("site/a/c/file").is_file());
        assert!(place("site/d/link").is_symlink());
        assert_eq!(entries(&place("elsewhere")), 0);
    }
}
