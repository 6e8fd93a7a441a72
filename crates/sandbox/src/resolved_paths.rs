//! The paths of a policy as they lie on the disk: no links, no doubles, and what is to be put aside.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::machine::CannotConfine;
use crate::policy::Policy;
use crate::program::{Unfolded, loader};
use crate::resolver::{Resolver, real, real_parent};
use crate::system;
use crate::{git_settings, guarded};

/// Entries that are opened one by one, and places that are kept, at most.
const ENTRIES: usize = 4_000;

/// A file or folder, by a path without links.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Spot {
    pub path: PathBuf,
    pub folder: bool,
}

impl Spot {
    pub(crate) fn at(path: PathBuf) -> Spot {
        let folder = path.is_dir();
        Spot { path, folder }
    }
}

/// What a policy and a program come to on this disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ResolvedPaths {
    /// Links on the way to what is readable, so that the way stays one.
    pub links: BTreeMap<PathBuf, PathBuf>,
    pub read: Vec<Spot>,
    pub write: Vec<Spot>,
    /// To be written, and not there yet.
    pub unmade: Vec<PathBuf>,
    /// Unwritten inside what is written.
    pub protect: Vec<Spot>,
    /// To be protected, and not there yet.
    pub missing: Vec<PathBuf>,
    /// To be protected, and links.
    pub linked: Vec<PathBuf>,
    /// Folders between what is written and what is protected in it: who renames one moves what is protected.
    pub between: Vec<PathBuf>,
    /// Unread inside what is read, but for what is named itself in there.
    pub hide: Vec<Spot>,
    /// What is opened instead of readable folders that hold something hidden, where nothing can be mounted over it.
    pub reading: Vec<Spot>,
    /// Those folders: what is in them can be listed.
    pub listed: Vec<Spot>,
    /// What is opened instead of writable folders that hold something protected.
    pub entries: Vec<Spot>,
    pub program: PathBuf,
    /// Only one that may be read anyway: a program names its loader itself.
    pub loader: Option<PathBuf>,
}

impl ResolvedPaths {
    /// Looks everything up. `home` is the user's.
    pub(crate) fn of(
        policy: &Policy,
        program: &Unfolded,
        home: Option<&Path>,
    ) -> Result<ResolvedPaths, CannotConfine> {
        let mut resolver = Resolver::new(home, policy.within.as_deref());
        let mut ground = ResolvedPaths::default();
        let write = ground.open_for_writing(policy, &mut resolver)?;
        let mut read = BTreeSet::new();
        for path in &policy.granted {
            read.extend(resolver.granted(path)?);
        }
        for path in &policy.read {
            read.extend(resolver.own(path)?);
        }
        for path in system::paths() {
            read.extend(resolver.system(&path));
        }
        for file in program.scripts.iter().chain([&program.file]) {
            read.extend(resolver.program(file));
        }
        ground.links = resolver.links;
        ground.program = real(&program.file);
        let hide: Vec<PathBuf> = policy.hide.iter().map(|path| real(path)).collect();
        ground.write = outermost(write.clone(), &[], &hide);
        ground.read = outermost(read, &ground.write, &hide);
        let open = |path: &Path| is_inside(path, &ground.read) || is_inside(path, &ground.write);
        let loader = loader(&ground.program).map(|path| real(&path));
        ground.loader = loader.filter(|path| open(path));
        ground.refuse_never(policy, &write)?;
        ground.put_aside(policy, &write, &hide, home)?;
        ground.hide()?;
        Ok(ground)
    }

    /// What is written alone, for who starts no program.
    pub(crate) fn written(
        policy: &Policy,
        home: Option<&Path>,
    ) -> Result<ResolvedPaths, CannotConfine> {
        let mut resolver = Resolver::new(home, policy.within.as_deref());
        let mut paths = ResolvedPaths::default();
        let write = paths.open_for_writing(policy, &mut resolver)?;
        paths.write = outermost(write.clone(), &[], &[]);
        paths.refuse_never(policy, &write)?;
        paths.put_aside(policy, &write, &[], home)?;
        Ok(paths)
    }

    /// What was granted to be written; what is not there yet is noted.
    fn open_for_writing(
        &mut self,
        policy: &Policy,
        resolver: &mut Resolver,
    ) -> Result<BTreeSet<Spot>, CannotConfine> {
        let mut write = BTreeSet::new();
        for path in &policy.write {
            match resolver.granted(path)? {
                Some(spot) => _ = write.insert(spot),
                None => self.unmade.push(path.clone()),
            }
        }
        Ok(write)
    }

    /// Nobody grants what would change the walls themselves, nor to read what is kept there of others.
    fn refuse_never(&self, policy: &Policy, write: &BTreeSet<Spot>) -> Result<(), CannotConfine> {
        let never: Vec<PathBuf> = policy.never.iter().map(|path| real(path)).collect();
        let records: Vec<PathBuf> = policy.records.iter().map(|path| real(path)).collect();
        let lies_there = |path: &PathBuf| never.iter().any(|never| path.starts_with(never));
        let decides = |path: &&PathBuf| {
            lies_there(path) || records.iter().any(|record| record.starts_with(path))
        };
        // What is not there yet has no links on its way.
        let mut written = write.iter().map(|spot| &spot.path).chain(&self.unmade);
        if let Some(path) = written.find(decides) {
            return Err(CannotConfine::new(
                format!(
                    "`{}` holds what decides about tools, and no tool may write there",
                    path.display()
                ),
                "grant another folder",
            ));
        }
        // What is the tool's own may lie there, and stays its own.
        let is_own = |path: &PathBuf| policy.read.iter().any(|own| path.starts_with(real(own)));
        let mut read = policy.granted.iter();
        match read.find(|path| lies_there(path) && !is_own(path)) {
            None => Ok(()),
            Some(path) => Err(CannotConfine::new(
                format!(
                    "`{}` is one of Toolcrib's own, which no tool may read",
                    path.display()
                ),
                "grant another path",
            )),
        }
    }

    /// What is protected and hidden, as far as it lies in what is open.
    fn put_aside(
        &mut self,
        policy: &Policy,
        write: &BTreeSet<Spot>,
        hide: &[PathBuf],
        home: Option<&Path>,
    ) -> Result<(), CannotConfine> {
        let mut aside: BTreeSet<PathBuf> = BTreeSet::new();
        let project = policy.within.as_deref().map(real);
        let folders = || write.iter().filter(|spot| spot.folder);
        let code = match write.is_empty() {
            true => guarded::Reached::default(),
            false => guarded::reached(policy.keep.iter().chain(&policy.protect)),
        };
        refuse_other_names(write, &code)?;
        for spot in folders() {
            guarded::find(&spot.path, project.as_deref(), &code.files, &mut aside)?;
        }
        let roots = folders().map(|spot| spot.path.as_path());
        let mut by_git = git_settings::named_around(roots, &aside, home);
        by_git.retain(|path| !aside.iter().any(|kept| path.starts_with(kept)));
        aside.extend(by_git);
        // What is kept may be reached by other names, and by what links in it lead to.
        let reached = guarded::reached(aside.iter());
        if !reached.files.is_empty() {
            for spot in folders() {
                guarded::find(&spot.path, project.as_deref(), &reached.files, &mut aside)?;
            }
        }
        let holds_root = |path: &PathBuf| write.iter().any(|spot| spot.path.starts_with(path));
        let targets = code.targets.into_iter().chain(reached.targets);
        aside.extend(targets.filter(|path| !holds_root(path)));
        let granted = |path: &Path| write.iter().any(|spot| spot.path == path);
        aside.retain(|path| !granted(path));
        let both = |path: &PathBuf| [real(path), real_parent(path)];
        let kept = policy.keep.iter().flat_map(both);
        let kept = kept.filter(|path| path.symlink_metadata().is_ok());
        let held = policy.protect.iter().flat_map(both);
        let held = held.chain(kept).filter(|path| !granted(path));
        aside.extend(held.chain(policy.never.iter().flat_map(both)));
        aside.retain(|path| is_inside(path, &self.write));
        for path in &aside {
            match path.symlink_metadata() {
                Ok(meta) if meta.is_symlink() => self.linked.push(path.clone()),
                Ok(_) => self.protect.push(Spot::at(path.clone())),
                Err(_) => self.missing.push(path.clone()),
            }
        }
        // What a link leads to is what is executed.
        let targets = self.linked.iter().map(|path| real(path));
        let targets = targets.filter(|path| path.exists() && is_inside(path, &self.write));
        let targets: Vec<PathBuf> = targets.collect();
        for target in targets.into_iter().filter(|path| !granted(path)) {
            if aside.insert(target.clone()) {
                self.protect.push(Spot::at(target));
            }
        }
        self.protect.sort();
        let hide = hide.iter().filter(|path| path.exists());
        let open = |path: &&PathBuf| is_inside(path, &self.read) || is_inside(path, &self.write);
        self.hide = hide.filter(open).cloned().map(Spot::at).collect();
        let hidden = self.hide.iter().map(|spot| spot.path.clone());
        aside.extend(hidden.filter(|path| is_inside(path, &self.write)));
        self.between(&aside, write);
        // Inside what is protected, what is granted by its own path is open again.
        let again = |spot: &&Spot| {
            let mut kept = self.protect.iter();
            kept.any(|kept| spot.path.starts_with(&kept.path))
        };
        let again: Vec<Spot> = write.iter().filter(again).cloned().collect();
        let aside: Vec<PathBuf> = aside.into_iter().collect();
        let named = "name the folders in it that are to be written";
        for spot in &self.write {
            expand(&spot.path, &aside, &mut self.entries, named)?;
        }
        for spot in &again {
            let inside = aside.iter().filter(|kept| kept.starts_with(&spot.path));
            let inside: Vec<PathBuf> = inside.cloned().collect();
            expand(&spot.path, &inside, &mut self.entries, named)?;
        }
        self.write.extend(again);
        self.write.sort();
        self.write.dedup();
        Ok(())
    }

    /// What is readable, without what is hidden in it.
    fn hide(&mut self) -> Result<(), CannotConfine> {
        if self.hide.is_empty() {
            return Ok(());
        }
        for spot in self.read.iter().chain(&self.write) {
            // Who is named inside of what is hidden is not hidden with it.
            let hidden = self.hide.iter().map(|hidden| &hidden.path);
            let hidden = hidden.filter(|path| spot.path == **path || !spot.path.starts_with(path));
            let hidden: Vec<PathBuf> = hidden.cloned().collect();
            let moved = "keep the crib's folders outside of what tools read (XDG_DATA_HOME, XDG_CACHE_HOME, …), or allow user namespaces";
            expand(&spot.path, &hidden, &mut self.reading, moved)?;
            if hidden
                .iter()
                .any(|path| path != &spot.path && path.starts_with(&spot.path))
            {
                self.listed.push(spot.clone());
            }
        }
        Ok(())
    }

    /// The folders on the way from what is written to what is protected in it. Inside what is protected nothing is opened
    /// for it: what lies there can't be renamed anyway.
    fn between(&mut self, aside: &BTreeSet<PathBuf>, write: &BTreeSet<Spot>) {
        let is_root = |folder: &Path| write.iter().any(|spot| spot.path == folder);
        let mut between = BTreeSet::new();
        for path in aside {
            let mut above = path.ancestors().skip(1);
            let end = above.find(|folder| is_root(folder) || aside.contains(*folder));
            let Some(root) = end.filter(|folder| is_root(folder)) else {
                continue;
            };
            let above = path.ancestors().skip(1);
            let above = above.take_while(|folder| *folder != root);
            between.extend(above.map(Path::to_path_buf));
        }
        self.between = between.into_iter().collect();
    }
}

/// A yes to a file is none to another tool's code that has this file under another name.
fn refuse_other_names(
    write: &BTreeSet<Spot>,
    code: &guarded::Reached,
) -> Result<(), CannotConfine> {
    use std::os::unix::fs::MetadataExt;
    let granted = |path: &PathBuf| write.iter().any(|spot| path.starts_with(&spot.path));
    for spot in write.iter().filter(|spot| !spot.folder) {
        let number = spot.path.metadata().map(|meta| meta.ino()).unwrap_or(0);
        let mut names = code.files.get(&number).into_iter().flatten();
        if let Some(other) = names.find(|name| !granted(name)) {
            return Err(CannotConfine::new(
                format!(
                    "`{}` is another name of `{}`, which other tools are made of",
                    spot.path.display(),
                    other.display()
                ),
                "copy the file, so that it has one name",
            ));
        }
    }
    Ok(())
}

fn is_inside(path: &Path, open: &[Spot]) -> bool {
    open.iter().any(|spot| path.starts_with(&spot.path))
}

/// Drops what lies in another of the same list, or in one of `others`, unless it is hidden in that.
fn outermost(spots: BTreeSet<Spot>, others: &[Spot], hide: &[PathBuf]) -> Vec<Spot> {
    let hidden = |path: &Path, outer: &Path| {
        let mut hide = hide.iter();
        hide.any(|hide| hide.starts_with(outer) && path != hide && path.starts_with(hide))
    };
    let mut kept: Vec<Spot> = Vec::new();
    for spot in spots {
        let path = &spot.path;
        let mut outer = kept.iter().chain(others).map(|spot| &spot.path);
        if !outer.any(|outer| path.starts_with(outer) && !hidden(path, outer)) {
            kept.push(spot);
        }
    }
    kept
}

/// Opens a folder's entries one by one where something in it stays closed.
fn expand(
    path: &Path,
    aside: &[PathBuf],
    entries: &mut Vec<Spot>,
    remedy: &str,
) -> Result<(), CannotConfine> {
    if aside.iter().any(|kept| path.starts_with(kept)) {
        return Ok(());
    }
    if !aside.iter().any(|kept| kept.starts_with(path)) {
        entries.push(Spot::at(path.to_path_buf()));
        return Ok(());
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let plain = entry
            .file_type()
            .is_ok_and(|kind| kind.is_dir() || kind.is_file());
        if plain {
            expand(&entry.path(), aside, entries, remedy)?;
        }
        if entries.len() > ENTRIES {
            return Err(CannotConfine::new(
                format!(
                    "`{}` has too many entries to open them one by one",
                    path.display()
                ),
                remedy,
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
