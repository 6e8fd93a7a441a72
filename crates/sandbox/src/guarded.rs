//! Finds what stays unwritten in a writable folder: repositories, folders of tools and of packages, settings of
//! agents and editors, however deep.

use std::collections::BTreeSet;
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

/// Entries of what is kept that are looked at for files with several names; what lies beyond has them unnoticed.
const FOR_NAMES: usize = 20_000;
/// Where package managers put second names of files that they share.
const PACKAGES: [&str; 3] = [".git", ".venv", "node_modules"];

/// The files below these that have another name somewhere, by their numbers: who writes to that name writes to them.
pub(crate) fn with_other_names<'a>(kept: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<u64> {
    let mut files = BTreeSet::new();
    let mut looked_at = 0;
    let mut waiting: Vec<PathBuf> = kept.cloned().collect();
    while let Some(path) = waiting.pop() {
        looked_at += 1;
        let Ok(meta) = path.symlink_metadata() else {
            continue;
        };
        if meta.is_file() && meta.nlink() > 1 {
            files.insert(meta.ino());
        }
        let packages = || {
            let name = path.file_name().unwrap_or_default();
            PACKAGES.iter().any(|packages| name == *packages) || path.join("pyvenv.cfg").exists()
        };
        if meta.is_dir() && looked_at < FOR_NAMES && !packages() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            let entries = entries.take(FOR_NAMES.saturating_sub(waiting.len()));
            waiting.extend(entries.map(|entry| entry.path()));
        }
    }
    files
}

/// Adds the guarded entries below a folder: folders, files and links of those names, repositories without a work tree,
/// and names of these files. Links are not followed. `project` is where the names that a grant says begin: an agent's
/// worktree may well lie in `.claude` of another project, and nobody said yes to a `.claude` in it.
pub(crate) fn find(
    root: &Path,
    project: Option<&Path>,
    files: &BTreeSet<u64>,
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
    let said = project.and_then(|project| root.strip_prefix(project).ok());
    let said = said.unwrap_or(root);
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
            if guarded || files.contains(&entry.ino()) {
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
        find(root.path(), None, &BTreeSet::new(), &mut found).unwrap();
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
            let refused = find(root.path(), None, &BTreeSet::new(), &mut found).is_err();
            assert!(refused || found.contains(&closed.join(".git")), "{found:?}");
        }
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&closed, open).unwrap();
        // A file that is kept is kept under all of its names.
        std::fs::write(at("plain/code"), "").unwrap();
        std::fs::hard_link(at("plain/code"), at("a/alias")).unwrap();
        let files = with_other_names([at("plain")].iter());
        let mut found = BTreeSet::new();
        find(root.path(), None, &files, &mut found).unwrap();
        assert!(
            found.contains(&at("plain/code")) && found.contains(&at("a/alias")),
            "{found:?}"
        );
        let mut found = BTreeSet::new();
        find(&at("web/node_modules"), None, &BTreeSet::new(), &mut found).unwrap();
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
            find(root, Some(&project), &BTreeSet::new(), &mut found).unwrap();
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
    }
}
