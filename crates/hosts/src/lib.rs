//! The programs in which tool files run, carried in the binary and laid out in the cache before their first use.
//!
//! A host is a folder of files, named by the hash of them all: a new version of the binary lays out its own beside the
//! old one, and what lies there is never changed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

/// Names and contents.
type Files = &'static [(&'static str, &'static [u8])];

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
    const fn new(name: &'static str, files: Files) -> Host {
        Host {
            name,
            files,
            hash: OnceLock::new(),
        }
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

    /// Where the host lies, or will lie, below a cache folder.
    pub fn folder(&self, cache: &Path) -> PathBuf {
        cache
            .join("hosts")
            .join(format!("{}-{}", self.name, self.hash()))
    }

    /// Lays the host out below a cache folder, unless it lies there. Several processes may do so at once.
    pub fn lay_out(&self, cache: &Path) -> io::Result<PathBuf> {
        let folder = self.folder(cache);
        if folder.is_dir() {
            return Ok(folder);
        }
        let draft = folder.with_extension(format!("{}.draft", std::process::id()));
        let written = self.write(&draft);
        let moved = written.and_then(|()| std::fs::rename(&draft, &folder));
        if moved.is_err() {
            let _ = std::fs::remove_dir_all(&draft);
        }
        match moved {
            // Somebody else was quicker, with the same files.
            Err(_) if folder.is_dir() => Ok(folder),
            Err(error) => Err(error),
            Ok(()) => Ok(folder),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_laid_out_once() {
        let cache = tempfile::tempdir().unwrap();
        let folder = PYTHON.lay_out(cache.path()).unwrap();
        assert!(folder.join("toolcrib/__init__.py").is_file());
        assert!(folder.join("toolcrib_host/__main__.py").is_file());
        std::fs::write(folder.join("mark"), "").unwrap();
        assert_eq!(PYTHON.lay_out(cache.path()).unwrap(), folder);
        assert!(folder.join("mark").is_file(), "it was not written again");
        let all: Vec<_> = std::fs::read_dir(cache.path().join("hosts"))
            .unwrap()
            .collect();
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn who_can_not_write_is_told() {
        let cache = tempfile::tempdir().unwrap();
        let file = cache.path().join("hosts");
        std::fs::write(&file, "").unwrap();
        assert!(PYTHON.lay_out(cache.path()).is_err());
    }
}
