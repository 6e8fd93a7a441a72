//! Looks through what version managers put on PATH: small programs that look up another one and execute it. A process that
//! may execute one program is given that other one.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::resolver::read_small;

/// Is this a version manager's stand-in for another program?
pub fn is_stand_in(program: &Path) -> bool {
    program
        .parent()
        .is_some_and(|folder| folder.ends_with("shims") || folder.ends_with(".volta/bin"))
}

/// The program that a stand-in would execute for a process in `dir`: what pyenv's files choose, else the next of that
/// name on `path`. Nothing is started to find out. Of the files in folders only those of `project` count: a process that
/// is not that project's own lets nobody choose what runs it.
pub fn behind(program: &Path, dir: &Path, project: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let name = program.file_name()?;
    let root = program.parent()?.parent()?;
    chosen(root, name, dir, project).or_else(|| {
        std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|file| is_runnable(file) && !is_stand_in(file))
    })
}

/// What pyenv would take: by the nearest `.python-version` in the project, or by its own setting.
fn chosen(root: &Path, name: &OsStr, dir: &Path, project: Option<&Path>) -> Option<PathBuf> {
    let read = |path: PathBuf| read_small(&path);
    let inside = |folder: &&Path| project.is_some_and(|project| folder.starts_with(project));
    let named = dir
        .ancestors()
        .take_while(inside)
        .find_map(|folder| read(folder.join(".python-version")))
        .or_else(|| read(root.join("version")))?;
    let versions = named.split([':', '\n']).map(str::trim);
    versions
        .filter(|version| {
            !version.is_empty() && !version.contains('/') && !version.starts_with('.')
        })
        .map(|version| root.join("versions").join(version).join("bin").join(name))
        .find(|program| is_runnable(program))
}

fn is_runnable(program: &Path) -> bool {
    program
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_path_buf()
    }

    #[test]
    fn the_program_behind_is_what_the_managers_files_choose() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let shim = program(&dir.join("pyenv/shims/python3"));
        let old = program(&dir.join("pyenv/versions/3.9.1/bin/python3"));
        let new = program(&dir.join("pyenv/versions/3.12.2/bin/python3"));
        let plain = program(&dir.join("bin/python3"));
        let path = format!(
            "{}:{}",
            dir.join("pyenv/shims").display(),
            dir.join("bin").display()
        );
        let project = dir.join("work/project");
        std::fs::create_dir_all(&project).unwrap();
        let of = |own: Option<&Path>| behind(&shim, &project, own, OsStr::new(&path));
        let behind = || of(Some(&project));
        assert!(is_stand_in(&shim) && !is_stand_in(&plain));
        assert_eq!(behind(), Some(plain));
        std::fs::write(dir.join("pyenv/version"), "missing\n3.9.1\n").unwrap();
        assert_eq!(behind(), Some(old.clone()));
        std::fs::write(dir.join("work/.python-version"), "3.12.2\n").unwrap();
        assert_eq!(behind(), Some(old.clone()), "it lies in no project");
        std::fs::write(project.join(".python-version"), "3.12.2\n").unwrap();
        assert_eq!(behind(), Some(new));
        assert_eq!(of(None), Some(old), "whoever is not of the project");
    }
}
