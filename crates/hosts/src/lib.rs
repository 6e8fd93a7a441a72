//! The programs in which tool files run, carried in the binary and laid out in the cache before their first use.
//!
//! A host is a folder of files, named by the hash of them all: a new version of the binary lays out its own beside the
//! old one. A copy holds exactly the binary's files, and bytecode of the one interpreter that it is for; a copy that
//! holds anything else is laid out anew before its first use.
//!
//! What tool files import of a host is also a package, for people's editors and tests: [`package`].

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

mod archive;
pub mod package;

/// Where interpreters keep what they have compiled.
const BYTECODE: &str = "__pycache__";

/// Names and contents.
pub type Files = &'static [(&'static str, &'static [u8])];

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A program in which tool files of one language run.
pub struct Host {
    name: &'static str,
    files: Files,
    hash: OnceLock<String>,
}

/// The host of Python files; its folder is what an interpreter is given to run.
pub static PYTHON: Host = Host::new("python", PYTHON_FILES);

/// The host of TypeScript and JavaScript files; none where the build had no Node.
pub static TYPESCRIPT: Option<Host> = match TYPESCRIPT_FILES {
    Some(files) => Some(Host::new("typescript", files)),
    None => None,
};

impl Host {
    pub const fn new(name: &'static str, files: Files) -> Host {
        Host {
            name,
            files,
            hash: OnceLock::new(),
        }
    }

    /// What the language calls it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Differs wherever a file of the host does.
    pub fn hash(&self) -> &str {
        self.hash.get_or_init(|| {
            let mut hash = Sha256::new();
            for (name, content) in self.files {
                for part in [name.as_bytes(), content] {
                    hash.update((part.len() as u64).to_le_bytes());
                    hash.update(part);
                }
            }
            let digest = hash.finalize();
            digest[..8]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        })
    }

    /// Where a copy of the host lies, or will lie, below a cache folder. `owner` is whose copy it is; what an interpreter
    /// compiles in its own copy no other reads.
    pub fn folder(&self, cache: &Path, owner: Option<&str>) -> PathBuf {
        let own = owner.map(|owner| format!("-{owner}")).unwrap_or_default();
        cache
            .join("hosts")
            .join(format!("{}-{}{own}", self.name, self.hash()))
    }

    /// Lays a copy out below a cache folder, unless it lies there as it should. Several processes may do so at once.
    pub fn lay_out(&self, cache: &Path, owner: Option<&str>) -> io::Result<PathBuf> {
        let folder = self.folder(cache, owner);
        if self.is_intact(&folder) {
            return Ok(folder);
        }
        let draft = PathBuf::from(format!("{}.{}.draft", folder.display(), std::process::id()));
        let _ = std::fs::remove_dir_all(&draft);
        let moved = self.write(&draft).and_then(|()| {
            // Nothing, a folder that was changed, or something that is no folder.
            let _ = std::fs::remove_dir_all(&folder).or_else(|_| std::fs::remove_file(&folder));
            std::fs::rename(&draft, &folder)
        });
        if moved.is_err() {
            let _ = std::fs::remove_dir_all(&draft);
        }
        match moved {
            // Somebody else was quicker, with the same files.
            Err(_) if self.is_intact(&folder) => Ok(folder),
            Err(error) => Err(error),
            Ok(()) => Ok(folder),
        }
    }

    /// The folders that hold bytecode once an interpreter has compiled this copy.
    pub fn bytecode_folders(&self, folder: &Path) -> Vec<PathBuf> {
        let python = self.files.iter().filter(|(name, _)| name.ends_with(".py"));
        let parents = python.filter_map(|(name, _)| Path::new(name).parent());
        let parents: BTreeSet<&Path> = parents.collect();
        let caches = parents.into_iter();
        caches
            .map(|parent| folder.join(parent).join(BYTECODE))
            .collect()
    }

    /// Does this folder hold the binary's files and nothing else but bytecode?
    fn is_intact(&self, folder: &Path) -> bool {
        let expected = |path: &Path| {
            let name = path.strip_prefix(folder).ok()?.to_str()?;
            let mut files = self.files.iter();
            files.find(|(known, _)| *known == name)
        };
        let mut found = 0;
        let mut waiting = vec![folder.to_path_buf()];
        while let Some(inside) = waiting.pop() {
            let Ok(entries) = std::fs::read_dir(&inside) else {
                return false;
            };
            for entry in entries.flatten() {
                let path = entry.path();
                // Links are not followed: there are none in a copy.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && entry.file_name() == BYTECODE => {}
                    Ok(kind) if kind.is_dir() => waiting.push(path),
                    Ok(kind) if kind.is_file() => match expected(&path) {
                        Some((_, content)) if holds(&path, content) => found += 1,
                        _ => return false,
                    },
                    _ => return false,
                }
            }
        }
        found == self.files.len()
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        for (name, content) in self.files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            std::fs::write(path, content)?;
        }
        Ok(())
    }
}

fn holds(path: &Path, content: &[u8]) -> bool {
    std::fs::read(path).is_ok_and(|there| there == content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_laid_out_once() {
        let cache = tempfile::tempdir().unwrap();
        let folder = PYTHON.lay_out(cache.path(), Some("one")).unwrap();
        assert!(folder.join("toolcrib/__init__.py").is_file());
        assert!(folder.join("toolcrib_host/__main__.py").is_file());
        let bytecode = PYTHON.bytecode_folders(&folder);
        assert!(bytecode.contains(&folder.join("toolcrib_host/__pycache__")));
        std::fs::create_dir(&bytecode[0]).unwrap();
        std::fs::write(bytecode[0].join("mark"), "").unwrap();
        assert_eq!(PYTHON.lay_out(cache.path(), Some("one")).unwrap(), folder);
        assert!(
            bytecode[0].join("mark").is_file(),
            "it was not written again"
        );
        let all: Vec<_> = std::fs::read_dir(cache.path().join("hosts"))
            .unwrap()
            .collect();
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn each_owner_has_a_copy() {
        let cache = tempfile::tempdir().unwrap();
        let one = PYTHON.lay_out(cache.path(), Some("one")).unwrap();
        let other = PYTHON.lay_out(cache.path(), Some("other")).unwrap();
        assert_ne!(one, other);
        assert!(one.is_dir() && other.is_dir());
    }

    #[test]
    fn a_copy_that_was_changed_is_laid_out_anew() {
        let cache = tempfile::tempdir().unwrap();
        let changes: [fn(&Path); 5] = [
            |folder| std::fs::write(folder.join("toolcrib/__init__.py"), "evil").unwrap(),
            |folder| std::fs::write(folder.join("asyncio.py"), "evil").unwrap(),
            |folder| std::fs::create_dir(folder.join("toolcrib/json")).unwrap(),
            |folder| std::fs::remove_file(folder.join("toolcrib/plain.py")).unwrap(),
            |folder| {
                let file = folder.join("toolcrib/plain.py");
                let elsewhere = folder.with_extension("elsewhere");
                std::fs::copy(&file, &elsewhere).unwrap();
                std::fs::remove_file(&file).unwrap();
                std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
            },
        ];
        for (index, change) in changes.iter().enumerate() {
            let folder = PYTHON.lay_out(cache.path(), None).unwrap();
            change(&folder);
            assert_eq!(PYTHON.lay_out(cache.path(), None).unwrap(), folder);
            // A folder without a file in it is no harm.
            assert!(PYTHON.is_intact(&folder), "{index}");
            let plain = folder.join("toolcrib/plain.py");
            assert!(plain.symlink_metadata().unwrap().is_file(), "{index}");
            assert!(!folder.join("asyncio.py").exists(), "{index}");
        }
    }

    #[test]
    fn who_can_not_write_is_told() {
        let cache = tempfile::tempdir().unwrap();
        let file = cache.path().join("hosts");
        std::fs::write(&file, "").unwrap();
        assert!(PYTHON.lay_out(cache.path(), None).is_err());
    }
}
