//! Opens files beneath a folder so that the kernel, not a string comparison, keeps the path inside.
//!
//! Why: `docs/design/0004-paths-by-the-kernel.md`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use toolcrib_core::CallError;

/// A regular file that lies beneath its folder, and its size when it was opened.
#[derive(Debug)]
pub struct Opened {
    pub file: File,
    pub size: u64,
}

/// Opens `path` beneath `base`. `..`, absolute paths, links that lead out and swapped links all fail in the kernel
/// (`openat2`, or step by step where that is missing); pipes, devices and folders are refused after the opening,
/// which does not wait for anyone.
pub fn open(base: &Path, path: &str) -> Result<Opened, CallError> {
    open_in(&folder(base)?, path)
}

/// Opens `path` beneath the folder `base` of `root`, where `base` itself must not lead out of `root` either, even
/// when a part of it was swapped for a link after it was looked at.
pub fn open_nested(root: &Path, base: &Path, path: &str) -> Result<Opened, CallError> {
    let root = folder(root)?;
    if base.as_os_str().is_empty() {
        return open_in(&root, path);
    }
    let dir = root.open_dir(base).map_err(|error| {
        let shown = base.display();
        if leads_out(&error) {
            CallError::denied(format!("the folder `{shown}` leads out of the project"))
                .hint("the tool's folder must be in the project, with all links followed")
        } else {
            unopened(&shown.to_string(), &error)
        }
    })?;
    open_in(&dir, path)
}

fn folder(path: &Path) -> Result<Dir, CallError> {
    Dir::open_ambient_dir(path, ambient_authority())
        .map_err(|error| unopened(&path.display().to_string(), &error))
}

fn unopened(folder: &str, error: &io::Error) -> CallError {
    CallError::unavailable(format!("the folder `{folder}` can't be opened: {error}"))
        .hint("make the folder, or change it in the tool's file")
}

fn open_in(dir: &Dir, path: &str) -> Result<Opened, CallError> {
    if path.contains('\0') {
        return Err(CallError::invalid("the path contains a null byte"));
    }
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = dir
        .open_with(path, &options)
        .map_err(|error| refusal(path, &error))?
        .into_std();
    let meta = file.metadata().map_err(|error| refusal(path, &error))?;
    if !meta.is_file() {
        let what = if meta.is_dir() {
            "a folder"
        } else {
            "not a regular file"
        };
        return Err(CallError::invalid(format!("`{path}` is {what}")).hint("name a regular file"));
    }
    Ok(Opened {
        size: meta.len(),
        file,
    })
}

/// Checks that `path` is a folder beneath `base`, by the same rules as [`open`].
pub fn check_folder(base: &Path, path: &str) -> Result<(), CallError> {
    if path.contains('\0') {
        return Err(CallError::invalid("the path contains a null byte"));
    }
    let dir = Dir::open_ambient_dir(base, ambient_authority()).map_err(|error| {
        CallError::unavailable(format!(
            "the folder `{}` can't be opened: {error}",
            base.display()
        ))
    })?;
    dir.open_dir(path)
        .map(drop)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CallError::invalid(format!("there is no folder `{path}`"))
                .hint("paths start at the project"),
            io::ErrorKind::NotADirectory => CallError::invalid(format!("`{path}` is not a folder"))
                .hint("name the folder it is in"),
            _ => refusal(path, &error),
        })
}

/// Makes an absolute path that lies in `base` by its text relative, so that the kernel can judge it.
pub fn relative_to(base: &Path, path: &str) -> String {
    match Path::new(path).strip_prefix(base) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.to_string_lossy().into_owned(),
        _ => path.to_owned(),
    }
}

fn refusal(path: &str, error: &io::Error) -> CallError {
    match error.kind() {
        _ if leads_out(error) => outside(path),
        io::ErrorKind::NotFound => CallError::invalid(format!("there is no file `{path}`"))
            .hint("paths start at the tool's folder"),
        io::ErrorKind::PermissionDenied => {
            CallError::invalid(format!("`{path}` may not be read by this user"))
        }
        _ => CallError::invalid(format!("`{path}` can't be opened: {error}")),
    }
}

fn outside(path: &str) -> CallError {
    CallError::denied(format!(
        "`{path}` leads out of the folder this tool may read"
    ))
    .hint("give a path inside the folder, without `..` and without links that lead out")
}

/// Did the kernel, or cap-std step by step, stop at the folder's edge?
fn leads_out(error: &io::Error) -> bool {
    (error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none())
        || error.raw_os_error() == Some(libc::EXDEV)
}

/// The folder a plugin's `basePath` means: relative ones start at the project.
pub fn base_folder(project: Option<&Path>, base: &str) -> Option<PathBuf> {
    let path = Path::new(base);
    match project {
        _ if path.is_absolute() => Some(path.to_path_buf()),
        Some(project) => Some(project.join(path)),
        None => None,
    }
}
