//! Finds what stays unwritten in a writable folder: repositories, folders of tools and of packages, settings of
//! agents and editors, however deep.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::machine::CannotConfine;
use crate::policy::GUARDED;

/// Entries that are looked at in one writable folder, at most; about a second's work.
const LOOKED_AT: usize = 1_000_000;
/// Places that are kept, at most: each is a mount.
const FOUND: usize = 1_000;
/// What a repository without a work tree has at its top.
const BARE: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];

/// Entries of what is kept that are looked at for names and links; what lies beyond has them unnoticed.
const FOR_NAMES: usize = 20_000;
/// Where package managers put second names of files that they share, and links to sources.
const PACKAGES: [&str; 2] = [".venv", "node_modules"];
/// What of a repository git runs or reads as settings; the rest is data.
const OF_GIT: [&str; 4] = ["config", "config.worktree", "hooks", "modules"];

/// What is reached from outside of what is kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reached {
    /// Files that have another name somewhere, by their numbers: who writes to that name writes to them.
    pub files: BTreeMap<u64, BTreeSet<PathBuf>>,
    /// Where links in it lead: that is what is executed or read.
    pub targets: BTreeSet<PathBuf>,
}

/// Looks through what is kept, and through repositories as far as git runs what is there.
pub(crate) fn reached<'a>(kept: impl Iterator<Item = &'a PathBuf>) -> Reached {
    let mut reached = Reached::default();
    let mut looked_at = 0;
    let mut waiting: Vec<PathBuf> = kept.cloned().collect();
    while let Some(path) = waiting.pop() {
        looked_at += 1;
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        if meta.is_symlink() {
            let target = path.canonicalize().ok();
            // A folder that the link itself lies in is not led to: all of it would be.
            let target = target.filter(|target| !path.starts_with(target));
            reached.targets.extend(target);
        }
        if meta.is_file() && meta.nlink() > 1 {
            let names = reached.files.entry(meta.ino()).or_default();
            names.insert(path.clone());
        }
        if meta.is_dir() && looked_at < FOR_NAMES && !holds_packages(&path) {
            let of_git = is_repository(&path);
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let entries = entries.filter(|entry| {
                let name = entry.file_name();
                !of_git || OF_GIT.iter().any(|known| name == *known)
            });
            let entries = entries.take(FOR_NAMES.saturating_sub(waiting.len()));
            waiting.extend(entries.map(|entry| entry.path()));
        }
    }
    reached
}

fn holds_packages(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    PACKAGES.iter().any(|packages| name == *packages) || folder.join("pyvenv.cfg").exists()
}

fn is_repository(folder: &Path) -> bool {
    let has = |name: &[u8]| folder.join(OsStr::from_bytes(name)).exists();
    folder.ends_with(".git") || BARE.into_iter().all(has)
}

/// Adds the guarded entries below a folder: folders, files and links of those names, repositories without a work tree,
/// and names of these files. Links are not followed. `project` is where the names that a grant says begin: an agent's
/// worktree may well lie in `.claude` of another project, and nobody said yes to a `.claude` in it.
pub(crate) fn find(
    root: &Path,
    project: Option<&Path>,
    files: &BTreeMap<u64, BTreeSet<PathBuf>>,
    found: &mut BTreeSet<PathBuf>,
) -> Result<(), CannotConfine> {
    let too_many = |what: &str| {
        CannotConfine::new(
            format!(
                "`{}` holds too many {what} to keep them all unwritten",
                root.display()
            ),
            "grant the folders in it that are to be written, one by one",
        )
    };
    // A grant that names such a folder itself is a grant of what lies in it.
    let said = said_of(root, project);
    let named = |name: &str| said.components().any(|part| part.as_os_str() == name);
    let names: Vec<&str> = GUARDED.into_iter().filter(|name| !named(name)).collect();
    let bare = !named(".git");
    let (mut looked_at, mut count) = (0, 0);
    let mut waiting = vec![root.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let entries = match read(&folder) {
            Ok(entries) => entries,
            Err(_) if !is_ours(&folder) => continue,
            Err(error) => {
                return Err(CannotConfine::new(
                    format!(
                        "`{}` can't be looked into for what must stay unwritten: {error}",
                        folder.display()
                    ),
                    "let its owner read it (`chmod u+rx`), or grant the folders beside it",
                ));
            }
        };
        looked_at += entries.len();
        if looked_at >= LOOKED_AT {
            return Err(too_many("files"));
        }
        let has = |name: &&[u8]| {
            entries
                .iter()
                .any(|entry| entry.file_name().as_bytes() == *name)
        };
        if bare && folder != root && BARE.iter().all(has) {
            found.insert(folder);
            count += 1;
            continue;
        }
        for entry in entries {
            let name = entry.file_name();
            // Some file systems do not tell large letters from small ones.
            let guarded = names.iter().any(|one| name.eq_ignore_ascii_case(one));
            if guarded || files.contains_key(&entry.ino()) {
                found.insert(entry.path());
                count += 1;
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
        if count > FOUND {
            return Err(too_many("repositories, folders of packages and settings"));
        }
    }
    Ok(())
}

/// The part of a path that says what is granted: from the project on, or from the work tree that it lies in. Where those lie
/// says nothing of what is in them.
fn said_of<'a>(root: &'a Path, project: Option<&Path>) -> &'a Path {
    let is_tree = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let tree = root.ancestors().find(is_tree);
    let bases = [project, tree].into_iter().flatten();
    let below = bases.filter_map(|base| root.strip_prefix(base).ok());
    below
        .min_by_key(|said| said.components().count())
        .unwrap_or(root)
}

fn read(folder: &Path) -> io::Result<Vec<DirEntry>> {
    std::fs::read_dir(folder)?.take(LOOKED_AT).collect()
}

/// Could this user change what lies there? What is gone is nobody's, and of others' folders nothing can be written.
fn is_ours(folder: &Path) -> bool {
    let me = std::fs::metadata("/proc/self").map(|meta| meta.uid());
    match (me, folder.symlink_metadata()) {
        (Ok(me), Ok(meta)) => me == meta.uid() || me == 0,
        (_, Err(error)) => error.kind() != io::ErrorKind::NotFound,
        (Err(_), _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_executed_later_is_found_however_deep() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        for folder in [
            ".git/hooks",
            "a/b/.git/sub/.git",
            "a/.venv/lib",
            "web/node_modules/x/node_modules",
            "bare/objects",
            "bare/refs",
            "plain/objects",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("bare/HEAD"), "").unwrap();
        std::fs::create_dir(at("tree")).unwrap();
        std::fs::write(at("tree/.git"), "gitdir: elsewhere").unwrap();
        std::os::unix::fs::symlink("/usr", at("a/.toolcrib")).unwrap();
        std::os::unix::fs::symlink(root.path(), at("a/loop")).unwrap();
        let mut found = BTreeSet::new();
        find(root.path(), None, &BTreeMap::new(), &mut found).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(root.path()).unwrap().to_str().unwrap())
            .collect();
        let wanted = [
            ".git",
            "a/.toolcrib",
            "a/.venv",
            "a/b/.git",
            "bare",
            "tree/.git",
            "web/node_modules",
        ];
        assert_eq!(names, wanted);
        // What can't be looked into may hold anything; root looks into everything.
        let closed = at("a/b");
        for mode in [0o311, 0o600, 0o000] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&closed, mode).unwrap();
            let mut found = BTreeSet::new();
            let refused = find(root.path(), None, &BTreeMap::new(), &mut found).is_err();
            assert!(refused || found.contains(&closed.join(".git")), "{found:?}");
        }
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&closed, open).unwrap();
        // A file that is kept is kept under all of its names.
        std::fs::write(at("plain/code"), "").unwrap();
        std::fs::hard_link(at("plain/code"), at("a/alias")).unwrap();
        let files = reached([at("plain")].iter()).files;
        let mut found = BTreeSet::new();
        find(root.path(), None, &files, &mut found).unwrap();
        assert!(
            found.contains(&at("plain/code")) && found.contains(&at("a/alias")),
            "{found:?}"
        );
        let mut found = BTreeSet::new();
        find(&at("web/node_modules"), None, &BTreeMap::new(), &mut found).unwrap();
        assert!(
            found.is_empty(),
            "who may write it may write all of it: {found:?}"
        );
    }

    #[test]
    fn settings_that_run_programs_are_found_and_only_a_grant_in_the_project_names_them() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let project = at(".claude/worktrees/one");
        std::fs::create_dir_all(project.join(".claude")).unwrap();
        std::fs::create_dir_all(project.join("deep/.vscode")).unwrap();
        for file in [".mcp.json", "deep/Opencode.JSON", ".envrc", "mcp.json"] {
            std::fs::write(project.join(file), "").unwrap();
        }
        let found = |root: &Path| {
            let mut found = BTreeSet::new();
            find(root, Some(&project), &BTreeMap::new(), &mut found).unwrap();
            let below = found
                .iter()
                .map(|path| path.strip_prefix(&project).unwrap());
            below.map(Path::to_path_buf).collect::<Vec<_>>()
        };
        let wanted = [
            ".claude",
            ".envrc",
            ".mcp.json",
            "deep/.vscode",
            "deep/Opencode.JSON",
        ];
        assert_eq!(found(&project), wanted.map(PathBuf::from));
        std::fs::create_dir(project.join(".claude/.claude")).unwrap();
        assert_eq!(found(&project.join(".claude")), [] as [PathBuf; 0]);
        // Nor does a work tree beside the project that lies in such a folder.
        let other = at(".claude/worktrees/two");
        std::fs::create_dir_all(other.join(".claude")).unwrap();
        std::fs::write(other.join(".git"), "gitdir: elsewhere").unwrap();
        let mut beside = BTreeSet::new();
        find(&other, Some(&project), &BTreeMap::new(), &mut beside).unwrap();
        assert_eq!(
            beside,
            [".claude", ".git"].map(|name| other.join(name)).into()
        );
    }

    #[test]
    fn what_is_kept_is_looked_through_for_names_and_links() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        for folder in [
            ".git/hooks",
            ".git/objects",
            ".claude",
            "src",
            "node_modules",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        std::fs::write(at("src/hook"), "").unwrap();
        for (name, of) in [(".git/hooks/a", "src/a"), (".git/objects/b", "src/b")] {
            std::fs::write(at(name), "").unwrap();
            std::fs::hard_link(at(name), at(of)).unwrap();
        }
        for (link, to) in [
            (".git/hooks/c", "src/hook"),
            (".claude/up", "."),
            (".claude/nowhere", "gone"),
            ("node_modules/one", "src"),
        ] {
            std::os::unix::fs::symlink(at(to), at(link)).unwrap();
        }
        let kept = [".git", ".claude", "node_modules"].map(at);
        let found = reached(kept.iter());
        let files: Vec<_> = found.files.into_values().flatten().collect();
        assert_eq!(files, [at(".git/hooks/a")]);
        assert_eq!(found.targets, [at("src/hook")].into());
    }
}
