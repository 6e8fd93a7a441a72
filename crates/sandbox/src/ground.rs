//! The paths of a policy as they lie on the disk: no links, no doubles, and what is to be put aside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::machine::Refusal;
use crate::policy::Policy;
use crate::program::{Unfolded, loader};
use crate::system;

/// Links that are followed on the way to one file, as in the kernel.
const HOPS: usize = 40;
/// Entries that are opened one by one, at most.
const ENTRIES: usize = 4_000;

/// A file or folder, by a path without links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Spot {
    pub path: PathBuf,
    pub folder: bool,
}

/// What a policy and a program come to on this disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ground {
    /// Links on the way to what is readable, so that the way stays one.
    pub links: BTreeMap<PathBuf, PathBuf>,
    pub read: Vec<Spot>,
    pub write: Vec<Spot>,
    /// Unwritten inside what is written.
    pub protect: Vec<Spot>,
    /// To be protected, and not there yet.
    pub missing: Vec<PathBuf>,
    /// To be protected, and links.
    pub linked: Vec<PathBuf>,
    /// Unread inside what is read.
    pub hide: Vec<Spot>,
    /// What is opened instead of writable folders that hold something protected.
    pub entries: Vec<Spot>,
    pub program: PathBuf,
    pub loader: Option<PathBuf>,
}

impl Ground {
    /// Looks everything up. `home` is the user's.
    pub(crate) fn of(
        policy: &Policy,
        program: &Unfolded,
        home: Option<&Path>,
    ) -> Result<Ground, Refusal> {
        let mut ground = Ground::default();
        let within = policy.within.as_deref().map(|root| (root, real(root)));
        let mut write = BTreeSet::new();
        for path in &policy.write {
            write.insert(ground.listed(path, "writable", within.as_ref())?);
        }
        let mut read = BTreeSet::new();
        for path in &policy.read {
            read.insert(ground.listed(path, "readable", within.as_ref())?);
        }
        for path in system::paths() {
            read.extend(ground.found(&path));
        }
        let home = home.map(real);
        for file in program.scripts.iter().chain([&program.file]) {
            for path in ground.steps(file) {
                for path in system::belonging_to(&path, home.as_deref()) {
                    read.extend(ground.found(&path));
                }
            }
        }
        ground.program = real(&program.file);
        ground.loader = loader(&ground.program).map(|path| real(&path));
        ground.write = outermost(write.clone(), &[]);
        ground.read = outermost(read, &ground.write);
        ground.put_aside(policy, &write)?;
        Ok(ground)
    }

    /// A path that the policy names. It must be there, and be no more than it seems.
    fn listed(
        &mut self,
        path: &Path,
        what: &str,
        within: Option<&(&Path, PathBuf)>,
    ) -> Result<Spot, Refusal> {
        let shown = path.display();
        if !path.is_absolute() {
            return Err(Refusal::new(
                format!("`{shown}` is to be {what} and is no absolute path"),
                "write it from `/` on",
            ));
        }
        let real = trace(path, &mut self.links).map_err(|error| {
            Refusal::new(
                format!("`{shown}` is to be {what}, but {error}"),
                "create it, or take it off the list",
            )
        })?;
        if system::NEVER.iter().any(|never| real == Path::new(never)) || is_kernels(&real) {
            return Err(Refusal::new(
                format!("`{shown}` is to be {what}, and would show what is kept apart"),
                "name the folders below it that are needed",
            ));
        }
        if let Some((named, root)) = within
            && path.starts_with(named)
            && !real.starts_with(root)
        {
            return Err(Refusal::new(
                format!(
                    "`{shown}` leads out of `{}`, to `{}`",
                    named.display(),
                    real.display()
                ),
                "name the place it leads to, if that is meant",
            ));
        }
        Ok(spot(real))
    }

    /// A path that is used if it is there.
    fn found(&mut self, path: &Path) -> Option<Spot> {
        trace(path, &mut self.links).ok().map(spot)
    }

    /// A file's path, those it leads to, and the real one.
    fn steps(&mut self, file: &Path) -> Vec<PathBuf> {
        let mut links = BTreeMap::new();
        let real = trace(file, &mut links);
        let mut steps = vec![file.to_path_buf()];
        // A link in the middle of a path is no program.
        steps.extend(links.keys().filter(|path| path.is_file()).cloned());
        steps.extend(real);
        self.links.extend(links);
        steps
    }

    /// What is protected and hidden, as far as it lies in what is open.
    fn put_aside(&mut self, policy: &Policy, write: &BTreeSet<Spot>) -> Result<(), Refusal> {
        let inside =
            |path: &Path, open: &[Spot]| open.iter().any(|spot| path.starts_with(&spot.path));
        for path in &policy.protect {
            let path = real_parent(path);
            let granted = write.iter().any(|spot| spot.path == path);
            if granted || !inside(&path, &self.write) {
                continue;
            }
            match path.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => self.linked.push(path),
                Ok(_) => self.protect.push(spot(path)),
                Err(_) => self.missing.push(path),
            }
        }
        for path in &policy.hide {
            let path = real(path);
            if path.exists() && (inside(&path, &self.read) || inside(&path, &self.write)) {
                self.hide.push(spot(path));
            }
        }
        // Inside what is protected, what is granted by its own path is open again.
        let again: Vec<Spot> = write
            .iter()
            .filter(|spot| {
                self.protect
                    .iter()
                    .any(|kept| spot.path.starts_with(&kept.path))
            })
            .cloned()
            .collect();
        let mut aside: Vec<PathBuf> = self.protect.iter().map(|spot| spot.path.clone()).collect();
        aside.extend(self.missing.iter().chain(&self.linked).cloned());
        for spot in &self.write {
            expand(&spot.path, &aside, &mut self.entries)?;
        }
        self.entries.extend(again.iter().cloned());
        self.write.extend(again);
        self.write.sort();
        self.write.dedup();
        Ok(())
    }
}

fn is_kernels(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/sys") || path.starts_with("/dev")
}

fn spot(path: PathBuf) -> Spot {
    let folder = path.is_dir();
    Spot { path, folder }
}

/// The path without links, or as it is where there is no such file.
fn real(path: &Path) -> PathBuf {
    trace(path, &mut BTreeMap::new()).unwrap_or_else(|_| path.to_path_buf())
}

/// Without links but for the last part, which may be missing.
fn real_parent(path: &Path) -> PathBuf {
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

/// Drops what lies in another of the same list, or in one of `others`.
fn outermost(spots: BTreeSet<Spot>, others: &[Spot]) -> Vec<Spot> {
    let mut kept: Vec<Spot> = Vec::new();
    for spot in spots {
        let covered = kept
            .iter()
            .chain(others)
            .any(|outer| spot.path.starts_with(&outer.path));
        if !covered {
            kept.push(spot);
        }
    }
    kept
}

/// Opens a folder's entries one by one where something in it stays closed.
fn expand(path: &Path, aside: &[PathBuf], entries: &mut Vec<Spot>) -> Result<(), Refusal> {
    if aside.iter().any(|kept| path.starts_with(kept)) {
        return Ok(());
    }
    if !aside.iter().any(|kept| kept.starts_with(path)) {
        entries.push(spot(path.to_path_buf()));
        return Ok(());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let plain = entry
            .file_type()
            .is_ok_and(|kind| kind.is_dir() || kind.is_file());
        if plain {
            expand(&entry.path(), aside, entries)?;
        }
        if entries.len() > ENTRIES {
            return Err(Refusal::new(
                format!(
                    "`{}` has too many entries to open them one by one",
                    path.display()
                ),
                "name the folders in it that are to be written",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Place {
            let place = Place(tempfile::tempdir().unwrap());
            for folder in ["project/.git/hooks", "project/src", "secret", "tool"] {
                std::fs::create_dir_all(place.at(folder)).unwrap();
            }
            std::fs::write(place.at("project/readme"), "").unwrap();
            place
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn ground(&self, change: impl FnOnce(&mut Policy)) -> Result<Ground, Refusal> {
            let mut policy = Policy::default_for(&self.at("tool"), Some(&self.at("project")));
            change(&mut policy);
            let program = Unfolded {
                file: "/bin/sh".into(),
                argv: Vec::new(),
                scripts: Vec::new(),
            };
            Ground::of(&policy, &program, None)
        }

        fn shown(&self, spots: &[Spot]) -> Vec<String> {
            let root = self.at("");
            spots
                .iter()
                .filter_map(|spot| Some(spot.path.strip_prefix(&root).ok()?.display().to_string()))
                .collect()
        }
    }

    #[test]
    fn nothing_is_written_by_default() {
        let place = Place::new();
        let ground = place.ground(|_| {}).unwrap();
        assert_eq!(place.shown(&ground.read), ["project", "tool"]);
        assert!(ground.write.is_empty() && ground.protect.is_empty() && ground.entries.is_empty());
        assert!(
            ground
                .read
                .iter()
                .any(|spot| spot.path == Path::new("/usr"))
        );
        assert!(ground.program.is_absolute() && ground.loader.is_some());
    }

    #[test]
    fn a_written_project_keeps_what_is_executed_later() {
        let place = Place::new();
        let ground = place
            .ground(|policy| policy.write.push(place.at("project")))
            .unwrap();
        assert_eq!(place.shown(&ground.write), ["project"]);
        assert_eq!(place.shown(&ground.protect), ["project/.git"]);
        assert_eq!(ground.missing, [place.at("project/.toolcrib")]);
        let mut entries = place.shown(&ground.entries);
        entries.sort();
        assert_eq!(entries, ["project/readme", "project/src"]);
        assert_eq!(
            place.shown(&ground.read),
            ["tool"],
            "what is written is read"
        );
    }

    #[test]
    fn what_is_granted_by_its_own_path_is_written() {
        let place = Place::new();
        let ground = place
            .ground(|policy| {
                policy.write = vec![place.at("project"), place.at("project/.git/hooks")]
            })
            .unwrap();
        assert_eq!(
            place.shown(&ground.write),
            ["project", "project/.git/hooks"]
        );
        assert!(
            place
                .shown(&ground.entries)
                .contains(&"project/.git/hooks".to_owned())
        );
        let ground = place
            .ground(|policy| policy.write = vec![place.at("project"), place.at("project/.git")])
            .unwrap();
        assert!(ground.protect.is_empty());
    }

    #[test]
    fn links_are_followed_and_noted_but_widen_nothing() {
        let place = Place::new();
        symlink("project", place.at("alias")).unwrap();
        let ground = place
            .ground(|policy| policy.read.push(place.at("alias/src")))
            .unwrap();
        assert_eq!(
            ground.links.get(&place.at("alias")),
            Some(&"project".into())
        );
        assert_eq!(place.shown(&ground.read), ["project", "tool"]);

        symlink(place.at("secret"), place.at("project/out")).unwrap();
        let told = place
            .ground(|policy| policy.write.push(place.at("project/out")))
            .unwrap_err();
        assert!(told.reason.contains("leads out of"), "{told}");
        let ground = place
            .ground(|policy| policy.write.push(place.at("project")))
            .unwrap();
        assert!(!place.shown(&ground.entries).contains(&"secret".to_owned()));
    }

    #[test]
    fn what_can_not_be_is_refused() {
        let place = Place::new();
        for path in [
            "/",
            "/proc/1",
            "/sys",
            "/tmp",
            "relative",
            "/no/such/folder",
        ] {
            let told = place
                .ground(|policy| policy.read.push(path.into()))
                .unwrap_err();
            assert!(told.reason.contains(path), "{told}");
        }
        symlink("loop", place.at("loop")).unwrap();
        assert!(
            place
                .ground(|policy| policy.read.push(place.at("loop")))
                .is_err()
        );
    }
}
