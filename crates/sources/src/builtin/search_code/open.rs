//! Opens the files of a search below its project, and looks at what would make a walk wait.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;
use toolcrib_core::CallError;

/// Files in which a folder says what to skip.
const LISTS: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// No such file is longer.
const LONGEST_LIST: u64 = 4 * 1_024 * 1_024;

/// The project as an open folder.
pub struct Root {
    folder: OwnedFd,
    real: PathBuf,
    hidden: Vec<PathBuf>,
}

impl Root {
    /// `hidden` is what is the crib's own, and not read.
    pub fn open(project: &Path, hidden: Vec<PathBuf>) -> Result<Root, CallError> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let unread = |error: io::Error| {
            CallError::unavailable(format!("the project can't be read: {error}"))
        };
        let folder = rustix::fs::open(project, flags, Mode::empty())
            .map_err(|error| unread(error.into()))?;
        let real = project.canonicalize().map_err(unread)?;
        let hidden = hidden
            .into_iter()
            .filter(|own| !real.starts_with(own) || *own == real);
        Ok(Root {
            folder,
            hidden: hidden.collect(),
            real,
        })
    }

    pub fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    /// The path from the project on.
    pub fn inside<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        path.strip_prefix(&self.real).ok()
    }

    /// Opens a regular file, with no link anywhere on the way to it.
    pub fn file(&self, inside: &Path) -> io::Result<File> {
        let flags =
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let opened = match rustix::fs::openat2(&self.folder, inside, flags, Mode::empty(), how) {
            Err(Errno::NOSYS | Errno::PERM) => self.step_by_step(inside, flags)?,
            other => other?,
        };
        let stat = rustix::fs::fstat(&opened)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(opened.into()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The same where the kernel has no such call: part by part, none of which may be a link.
    fn step_by_step(&self, inside: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let folder_flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let name = inside.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut folder: Option<OwnedFd> = None;
        for part in inside.parent().into_iter().flat_map(Path::components) {
            let at = folder.as_ref().unwrap_or(&self.folder).as_fd();
            folder = Some(rustix::fs::openat(
                at,
                part.as_os_str(),
                folder_flags,
                Mode::empty(),
            )?);
        }
        let at = folder.as_ref().unwrap_or(&self.folder).as_fd();
        Ok(rustix::fs::openat(at, name, flags, Mode::empty())?)
    }
}

/// A file that is read no further once the call was given up.
pub struct Watched<'a> {
    pub file: File,
    pub cancel: &'a CancellationToken,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.cancel.is_cancelled() {
            true => Err(io::Error::other("the call was given up")),
            false => self.file.read(buffer),
        }
    }
}

/// Are the files in which this folder says what to skip, as far as they are there, regular and small? A pipe would be
/// waited for without end.
pub fn lists_are_plain(folder: &Path) -> bool {
    LISTS.iter().all(|name| match folder.join(name).metadata() {
        Ok(meta) => meta.is_file() && meta.len() <= LONGEST_LIST || meta.is_dir(),
        Err(_) => true,
    })
}
