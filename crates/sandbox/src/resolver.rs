//! The one place in which a path becomes a place on the disk: of a policy, of a grant, of the prefix that a program is
//! installed in, of a `pyvenv.cfg`. What must not be opened is known here alone.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::machine::CannotConfine;
use crate::resolved_paths::Spot;
use crate::system;

/// Links that are followed on the way to one file, as in the kernel.
const HOPS: usize = 40;
/// No settings file that is looked into is longer.
const SMALL: u64 = 64 * 1_024;

/// Follows paths, and notes the links on the way to what is opened.
#[derive(Debug, Default)]
pub(crate) struct Resolver {
    /// The user's, without links.
    home: Option<PathBuf>,
    /// A folder as it is written, and without links: what is written as lying in it must lie in it.
    within: Option<(PathBuf, PathBuf)>,
    /// Links on the way to what is readable, so that the way stays one.
    pub links: BTreeMap<PathBuf, PathBuf>,
}

impl Resolver {
    pub(crate) fn new(home: Option<&Path>, within: Option<&Path>) -> Resolver {
        Resolver {
            home: home.map(real),
            within: within.map(|root| (root.to_path_buf(), real(root))),
            links: BTreeMap::new(),
        }
    }

    /// What every program may read, by a list that nobody can change.
    pub(crate) fn system(&mut self, path: &Path) -> Option<Spot> {
        self.noted(path).map(Spot::at)
    }

    /// A path that is the tool's own, if it is there. Links in it are followed, but not out of the project.
    pub(crate) fn own(&mut self, path: &Path) -> Result<Option<Spot>, CannotConfine> {
        absolute(path)?;
        let Ok(real) = trace(path, &mut BTreeMap::new()) else {
            return Ok(None);
        };
        opened(path, &real)?;
        if let Some((named, root)) = &self.within
            && path.starts_with(named)
            && !real.starts_with(root)
        {
            return Err(CannotConfine::new(
                format!(
                    "`{}` leads out of `{}`, to `{}`",
                    path.display(),
                    named.display(),
                    real.display()
                ),
                "put the file itself there, or grant the place that it leads to",
            ));
        }
        Ok(self.noted(path).map(Spot::at))
    }

    /// A path that was granted, if it is there. It is the place that it names and no other.
    pub(crate) fn granted(&mut self, path: &Path) -> Result<Option<Spot>, CannotConfine> {
        absolute(path)?;
        let mut links = BTreeMap::new();
        let real = match trace(path, &mut links) {
            Ok(real) => real,
            // A link to nowhere may lead somewhere one day.
            Err(_) if links.is_empty() => return Ok(None),
            Err(_) => path.to_path_buf(),
        };
        if real != path || !links.is_empty() {
            let leads = links.iter().next().map(|(link, to)| {
                format!("`{}` is a link to `{}` now", link.display(), to.display())
            });
            return Err(CannotConfine::new(
                format!(
                    "`{}` is no longer the place that was granted: {}",
                    path.display(),
                    leads.unwrap_or_else(|| format!("it leads to `{}`", real.display()))
                ),
                "remove the link, or grant the place that it leads to",
            ));
        }
        opened(path, &real)?;
        Ok(Some(Spot::at(real)))
    }

    /// A program's file, and the libraries of what it is installed in: a virtual environment, a version manager's
    /// folder, a prefix. `file` may be a link, then what it leads to has libraries too.
    pub(crate) fn program(&mut self, file: &Path) -> Vec<Spot> {
        let mut links = BTreeMap::new();
        let Ok(real) = trace(file, &mut links) else {
            return Vec::new();
        };
        let mut steps = vec![file.to_path_buf()];
        // A link in the middle of a path is no program.
        steps.extend(links.keys().filter(|path| path.is_file()).cloned());
        steps.push(real);
        self.links.extend(links);
        let mut found = Vec::new();
        for step in steps {
            found.extend(self.file(&step));
            found.extend(self.prefix_of(&step));
            // Once: an environment that was made from another names what both were made from.
            let environment = step.parent().and_then(Path::parent);
            let base = environment.and_then(system::base_of_environment);
            if let Some(python) = base.filter(|python| self.may_be_base(python)) {
                found.extend(self.file(&python));
                found.extend(self.prefix_of(&python));
            }
        }
        found
    }

    /// An environment names its base itself, so not every program is taken for one: it lies where languages are installed,
    /// or in the project.
    fn may_be_base(&self, python: &Path) -> bool {
        let real = real(python);
        let within = self.within.as_ref();
        let prefix = real.parent().and_then(Path::parent);
        within.is_some_and(|(_, root)| real.starts_with(root))
            || prefix
                .is_some_and(|prefix| system::is_shared(prefix) || system::is_installation(prefix))
    }

    /// A program itself. It could be executed when it was looked up, and may have become a link to something else since.
    fn file(&mut self, program: &Path) -> Option<Spot> {
        let real = self.noted(program)?;
        let meta = std::fs::symlink_metadata(&real).ok()?;
        let is_program = meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        let spot = Spot {
            path: real,
            folder: false,
        };
        is_program.then_some(spot)
    }

    /// What belongs to the program at this path, as far as it really lies in the folder that it is installed in.
    fn prefix_of(&mut self, program: &Path) -> Vec<Spot> {
        let written = program
            .parent()
            .filter(|folder| folder.ends_with("bin"))
            .and_then(Path::parent);
        let Some((written, prefix)) = written.map(|written| (written, real(written))) else {
            return Vec::new();
        };
        let home = self.home.as_deref();
        if prefix == Path::new("/")
            || system::is_never_opened(&prefix)
            || home.is_some_and(|home| home.starts_with(&prefix))
        {
            return Vec::new();
        }
        // A folder with a `bin` may be anything; only what is an installation, or the machine's own, has libraries.
        let own = self.within.as_ref();
        let own = own.is_some_and(|(_, root)| prefix.starts_with(root));
        if !own && !system::is_shared(&prefix) && !system::is_installation(&prefix) {
            return Vec::new();
        }
        let mut found = Vec::new();
        for name in system::parts_of(&prefix) {
            let part = written.join(name);
            // A link out of it is not followed, wherever it leads.
            if real(&part).starts_with(&prefix) {
                found.extend(self.noted(&part).map(Spot::at));
            }
        }
        found
    }

    /// Where a path leads, if it is there; the links on the way are noted.
    fn noted(&mut self, path: &Path) -> Option<PathBuf> {
        let mut links = BTreeMap::new();
        let real = trace(path, &mut links).ok()?;
        self.links.extend(links);
        Some(real)
    }
}

fn absolute(path: &Path) -> Result<(), CannotConfine> {
    let plain = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
    if path.is_absolute() && path.components().all(plain) {
        return Ok(());
    }
    Err(CannotConfine::new(
        format!("`{}` is not an absolute path", path.display()),
        "write it from `/` on, without `..`",
    ))
}

/// Refuses what would show what is kept apart.
fn opened(path: &Path, real: &Path) -> Result<(), CannotConfine> {
    if !system::is_never_opened(real) {
        return Ok(());
    }
    Err(CannotConfine::new(
        format!("`{}` would show what is kept apart", path.display()),
        "name the folders below it that are needed",
    ))
}

/// The path without links, or as it is where there is no such file.
pub(crate) fn real(path: &Path) -> PathBuf {
    trace(path, &mut BTreeMap::new()).unwrap_or_else(|_| path.to_path_buf())
}

/// Without links but for the last part, which may be missing.
pub(crate) fn real_parent(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// Follows a path part by part, noting every link, and gives where it really leads.
fn trace(path: &Path, links: &mut BTreeMap<PathBuf, PathBuf>) -> io::Result<PathBuf> {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components()
            .map(|part| part.as_os_str().to_os_string())
            .collect()
    };
    let mut rest: VecDeque<OsString> = parts(path).into();
    let mut at = PathBuf::from("/");
    let mut hops = 0;
    while let Some(part) = rest.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::Normal(_)) => {}
            Some(Component::ParentDir) => {
                at.pop();
                continue;
            }
            Some(Component::RootDir) => {
                at = PathBuf::from("/");
                continue;
            }
            _ => continue,
        }
        let next = at.join(&part);
        if !next.symlink_metadata()?.is_symlink() {
            at = next;
            continue;
        }
        hops += 1;
        if hops > HOPS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        let target = next.read_link()?;
        for part in parts(&target).into_iter().rev() {
            rest.push_front(part);
        }
        links.insert(next, target);
    }
    Ok(at)
}

/// What a small settings file holds.
pub(crate) fn read_small(path: &Path) -> Option<String> {
    read_at_most(path, SMALL)
}

/// What the first so many bytes of a settings file hold. A project chooses what lies there: a pipe must not make the crib
/// wait, nor a large file fill its memory.
pub(crate) fn read_at_most(path: &Path, bytes: u64) -> Option<String> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text).ok()?;
    // Where it ends in the middle of a letter, the rest still counts.
    Some(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
#[path = "resolver_tests.rs"]
mod tests;
