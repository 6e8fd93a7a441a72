//! `write-file`: writes a text whole or not at all, in what was granted, and nowhere that decides what runs.
//!
//! The same rules hold as for a process with that grant ([`Written`]): what is guarded stays
//! unwritten. The folder is opened below the granted place by the kernel and judged by where it really is; then all is
//! done in that open folder, so that nobody can swap a part of the way.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt, PermissionsExt};
use serde_json::json;
use toolcrib_core::permit::paths;
use toolcrib_core::words::{CommandLine, counted};
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Hint, Outcome, Permit, Run};
use toolcrib_sandbox::Written;

use super::switch::Asks;
use super::{Builtin, Effects, Switch, flag, off_the_runtime, text, unique};
use crate::{Place, permits};

/// The longest text of one call, and of a file that is added to.
const MAX_CONTENT: usize = 10_000_000;
const MAX_FILE: u64 = 64_000_000;
/// Folders that are made on the way, at most.
const MAX_MADE: usize = 32;

struct WriteFile {
    place: Arc<Place>,
    /// One at a time, so that nothing that is added gets lost.
    turn: tokio::sync::Mutex<()>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "write-file",
        title: "Write file",
        description: "Write a text file of the project, whole or not at all; missing folders are made.",
        parameters: json!({
            "path": {"type": "string", "minLength": 1, "description": "The file, starting at the project's root."},
            "content": {"type": "string", "maxLength": MAX_CONTENT, "description": "The text to write."},
            "append": {"type": "boolean", "default": false, "description": "Add to the end of the file instead of replacing it."},
        }),
        required: &["path", "content"],
        effects: Effects::Writes,
        switch: Switch::Granted(Asks {
            all: Permit {
                write: vec![".".to_owned()],
                ..Permit::default()
            },
            flag: ("--write", "PATH"),
            what: "write files",
        }),
        run: Arc::new(WriteFile {
            place: place.clone(),
            turn: tokio::sync::Mutex::default(),
        }),
    }
}

impl Run for WriteFile {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.write(call))
    }
}

impl WriteFile {
    async fn write(&self, call: &Call) -> CallResult {
        let (path, content) = (text(call, "path"), text(call, "content"));
        let job = Job {
            path: path.unwrap_or_default().to_owned(),
            content: content.unwrap_or_default().to_owned(),
            append: flag(call, "append"),
        };
        if job.content.len() > MAX_CONTENT {
            return Err(CallError::invalid(format!(
                "`content` is longer than {MAX_CONTENT} bytes"
            ))
            .hint("write it in parts, with `append`"));
        }
        let _turn = self.turn.lock().await;
        let (place, permit) = (self.place.clone(), call.tool.permit.clone());
        off_the_runtime(move || job.run(&place, &permit)).await
    }
}

/// What one call wants.
struct Job {
    path: String,
    content: String,
    append: bool,
}

/// A file, as a name in an open folder.
struct Target {
    folder: Dir,
    name: String,
}

impl Job {
    fn run(&self, place: &Place, permit: &Permit) -> CallResult {
        let path = self.absolute(place)?;
        let root = permit.write.iter().map(PathBuf::from);
        let root = root.filter(|root| path.starts_with(root));
        let Some(root) = root.max_by_key(|root| root.as_os_str().len()) else {
            return Err(self.not_granted(&path));
        };
        let written = place.code.writable(permit, place).map_err(|error| {
            CallError::denied(format!(
                "`{}` can't be written: {}",
                self.path, error.reason
            ))
            .hint(error.remedy)
        })?;
        let target = self.target(&root, &path, &written)?;
        let before = self.before(&target)?;
        let is_new = before.is_none();
        let bytes = self.replace(&target, before)?;
        let shown = &self.path;
        let added = counted(self.content.len(), "byte");
        let said = match (self.append && !is_new, is_new) {
            (true, _) => format!("Added {added} to {shown}, which has {bytes} now"),
            (false, true) => format!("Wrote {added} to {shown}, a new file"),
            (false, false) => format!("Wrote {added} to {shown}"),
        };
        Ok(Outcome::text(said)
            .title(format!("Wrote {shown}"))
            .meta("path", shown.as_str())
            .meta("bytes", bytes)
            .meta("isNew", is_new))
    }

    /// The path from the root on, by its text alone: the kernel judges it later.
    fn absolute(&self, place: &Place) -> Result<PathBuf, CallError> {
        if self.path.contains('\0') {
            return Err(CallError::invalid("the path contains a null byte"));
        }
        let project = place.project.as_deref();
        let real = project.map(|project| {
            project
                .canonicalize()
                .unwrap_or_else(|_| project.to_path_buf())
        });
        // A project that is named through a link is the same project.
        let inside = project.and_then(|project| Path::new(&self.path).strip_prefix(project).ok());
        let found = match (inside, &real) {
            (Some(inside), Some(real)) => real.join(inside).to_str().map(paths::clean),
            _ => paths::absolute(real.as_deref(), &self.path),
        };
        let Some(found) = found else {
            return Err(CallError::unavailable(format!(
                "`{}` starts at a project, and there is none",
                self.path
            ))
            .hint("start Toolcrib inside a project, or name an absolute path that was granted"));
        };
        let ends = ["/", "/.", "/.."]
            .iter()
            .any(|end| self.path.ends_with(end));
        match ends {
            true => Err(
                CallError::invalid(format!("`{}` names a folder", self.path)).hint("name a file"),
            ),
            false => Ok(PathBuf::from(found)),
        }
    }

    fn not_granted(&self, path: &Path) -> CallError {
        let folder = path.parent().unwrap_or(path).display().to_string();
        let grant = CommandLine::new("toolcrib grant")
            .operand("write-file")
            .flag("--write", &folder);
        CallError::denied(format!(
            "`{}` is not in a place that write-file was granted",
            self.path
        ))
        .hint(
            Hint::run(grant)
                .before("`toolcrib grant write-file --list` shows which those are; ")
                .after(" adds this one"),
        )
    }

    fn guarded(&self) -> CallError {
        CallError::denied(format!(
            "`{}` stays as it is: it belongs to what agents, editors, version control or tools run",
            self.path
        ))
        .hint("write another file; only a grant that names this very place opens it")
    }

    /// Opens the folder that the file lies in, and makes it where it is missing.
    fn target(&self, root: &Path, path: &Path, written: &Written) -> Result<Target, CallError> {
        if !written.allows(path) {
            return Err(self.guarded());
        }
        let failed = |error: io::Error| self.failed(&error);
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| CallError::invalid("the path names no file"))?;
        let (top, inside) = match path == root {
            // The file itself was granted.
            true => (root.parent().unwrap_or(root), Path::new("")),
            false => (
                root,
                path.parent()
                    .and_then(|folder| folder.strip_prefix(root).ok())
                    .unwrap_or(Path::new("")),
            ),
        };
        let mut folder = match Dir::open_ambient_dir(top, ambient_authority()) {
            // What was granted and is not there yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_all(top).map_err(failed)?
            }
            other => other.map_err(failed)?,
        };
        if real_path(&folder) != Some(top.to_path_buf()) {
            return Err(CallError::denied(format!(
                "`{}` leads elsewhere than when it was granted",
                top.display()
            ))
            .hint("check where it leads, then grant that place"));
        }
        let mut made = 0;
        for part in inside.components() {
            let Component::Normal(part) = part else {
                return Err(CallError::invalid("the path has a part that is no name"));
            };
            folder = match folder.open_dir(part) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && made < MAX_MADE => {
                    made += 1;
                    // Where a link led by now, nothing is made.
                    let real = real_path(&folder).ok_or_else(|| self.guarded())?;
                    if !written.allows(&real.join(part)) {
                        return Err(self.guarded());
                    }
                    folder.create_dir(part).map_err(failed)?;
                    folder.open_dir(part).map_err(failed)?
                }
                other => other.map_err(failed)?,
            };
        }
        let real = real_path(&folder).ok_or_else(|| self.guarded())?;
        match written.allows(&real.join(name)) {
            true => Ok(Target {
                folder,
                name: name.to_owned(),
            }),
            false => Err(self.guarded()),
        }
    }

    /// The file as it is: what it holds, where that is wanted, and who may do what with it.
    fn before(&self, target: &Target) -> Result<Option<Before>, CallError> {
        let meta = match target.folder.symlink_metadata(&target.name) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
        };
        if !meta.is_file() {
            let what = match (meta.is_dir(), meta.is_symlink()) {
                (true, _) => "is a folder",
                (_, true) => "is a link",
                _ => "is not a regular file",
            };
            return Err(CallError::invalid(format!("`{}` {what}", self.path))
                .hint("name a regular file, or the one that the link leads to"));
        }
        let mut before = Before {
            mode: meta.permissions().mode() & 0o777,
            bytes: Vec::new(),
        };
        if self.append {
            let mut options = OpenOptions::new();
            options
                .read(true)
                .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
            let file = target.folder.open_with(&target.name, &options);
            let file = file.map_err(|error| self.failed(&error))?;
            file.take(MAX_FILE + 1)
                .read_to_end(&mut before.bytes)
                .map_err(|error| self.failed(&error))?;
            if before.bytes.len() as u64 > MAX_FILE {
                return Err(CallError::invalid(format!(
                    "`{}` is larger than {MAX_FILE} bytes, and is not added to",
                    self.path
                ))
                .hint("begin another file"));
            }
        }
        Ok(Some(before))
    }

    /// Writes the text beside the file, and then puts it in its place. Gives how long the file is.
    fn replace(&self, target: &Target, before: Option<Before>) -> Result<u64, CallError> {
        let Target { folder, name } = target;
        let temporary = Temporary {
            folder,
            name: format!(".{}.write-file", unique()),
            kept: std::cell::Cell::new(false),
        };
        let write = || -> io::Result<u64> {
            let mut options = OpenOptions::new();
            options
                .write(true)
                .create_new(true)
                .custom_flags(libc::O_NOFOLLOW);
            let mut file: File = folder.open_with(&temporary.name, &options)?.into_std();
            let mut bytes = self.content.len() as u64;
            if let Some(before) = &before {
                bytes += before.bytes.len() as u64;
                file.write_all(&before.bytes)?;
                let mode = std::os::unix::fs::PermissionsExt::from_mode(before.mode);
                file.set_permissions(mode)?;
            }
            file.write_all(self.content.as_bytes())?;
            file.sync_data()?;
            folder.rename(&temporary.name, folder, name)?;
            temporary.kept.set(true);
            Ok(bytes)
        };
        write().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> CallError {
        let path = &self.path;
        let leads_out = error.raw_os_error() == Some(libc::EXDEV)
            || (error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none());
        if leads_out {
            return CallError::denied(format!("`{path}` leads out of the place that was granted"))
                .hint("give a path without links that lead out");
        }
        match error.kind() {
            io::ErrorKind::NotADirectory => {
                CallError::invalid(format!("a part of `{path}` is not a folder"))
                    .hint("name a file in a folder")
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                CallError::denied(format!("`{path}` can't be written by this user: {error}"))
            }
            _ => CallError::unavailable(format!("`{path}` could not be written: {error}"))
                .hint("nothing was changed; check the disk, then call again"),
        }
    }
}

/// A file as it was.
struct Before {
    mode: u32,
    bytes: Vec<u8>,
}

/// A file beside its target, which goes unless it took that one's place.
struct Temporary<'a> {
    folder: &'a Dir,
    name: String,
    kept: std::cell::Cell<bool>,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept.get() {
            let _ = self.folder.remove_file(&self.name);
        }
    }
}

/// Makes a granted folder, part by part below the part that is there, without links.
fn make_all(path: &Path) -> io::Result<Dir> {
    let there = path.ancestors().find(|part| part.is_dir());
    let there = there.ok_or(io::ErrorKind::NotFound)?;
    if there.canonicalize()? != there {
        return Err(io::Error::from_raw_os_error(libc::EXDEV));
    }
    let dir = Dir::open_ambient_dir(there, ambient_authority())?;
    let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
    dir.create_dir_all(rest)?;
    dir.open_dir(rest)
}

/// Where an open folder is.
fn real_path(folder: &Dir) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", folder.as_raw_fd());
    std::fs::read_link(link).ok()
}

impl crate::Code {
    /// What may be written in this place with this permit, by the same rules that hold a process.
    fn writable(
        &self,
        permit: &Permit,
        place: &Place,
    ) -> Result<Written, toolcrib_sandbox::CannotConfine> {
        let limits = toolcrib_core::SandboxOptions::default();
        let reads = toolcrib_core::Reads::Project;
        let project = place.project.as_deref();
        let mut policy = crate::confine::policy(&[], permit, &reads, &limits, place);
        policy.within = project
            .and_then(|project| permits::absolute(Some(project), "."))
            .map(PathBuf::from);
        let guarded = self.guarded(policy.into());
        let home = place.environment.get("HOME").map(Path::new);
        match guarded.policy() {
            Some(policy) => Written::of(policy, home),
            None => Err(toolcrib_sandbox::CannotConfine {
                reason: "nothing says what may be written".to_owned(),
                remedy: "report this".to_owned(),
            }),
        }
    }
}
