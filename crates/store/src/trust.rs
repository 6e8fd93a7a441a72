//! Which projects a person said yes to, in one small file of the user's data folder.
//!
//! Trust is by path, as with direnv and VS Code. What can't be read is not trusted.
//!
//! Why: `docs/design/0006-trust-before-anything.md`.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::file;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("`{0}` can't be read: {1}")]
    Read(PathBuf, io::Error),
    #[error("`{0}` can't be written: {1}")]
    Write(PathBuf, io::Error),
    #[error("`{0}` is damaged: {1}")]
    Damaged(PathBuf, serde_json::Error),
    #[error("`{0}` was written by a newer Toolcrib")]
    Newer(PathBuf),
    #[error("the path `{0}` is not valid UTF-8, so it can't be remembered")]
    Path(String),
}

/// One trusted project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trusted {
    pub path: String,
    pub trusted_at_ms: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Page {
    version: u32,
    projects: Vec<Trusted>,
}

const VERSION: u32 = 1;

/// The list of trusted projects.
#[derive(Debug, Clone)]
pub struct TrustBook {
    file: PathBuf,
}

/// Changes whenever the book does; for those who follow it from another process.
pub type Stamp = Option<(SystemTime, u64, u64)>;

impl TrustBook {
    pub fn in_folder(data: &Path) -> TrustBook {
        TrustBook {
            file: data.join("trust.json"),
        }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn stamp(&self) -> Stamp {
        use std::os::unix::fs::MetadataExt;
        let meta = self.file.metadata().ok()?;
        Some((meta.modified().ok()?, meta.ino(), meta.len()))
    }

    pub fn list(&self) -> Result<Vec<Trusted>, TrustError> {
        let text = match std::fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(TrustError::Read(self.file.clone(), error)),
        };
        let page: Page = serde_json::from_slice(&text)
            .map_err(|error| TrustError::Damaged(self.file.clone(), error))?;
        match page.version {
            VERSION => Ok(page.projects),
            _ => Err(TrustError::Newer(self.file.clone())),
        }
    }

    pub fn is_trusted(&self, project: &Path) -> Result<bool, TrustError> {
        Ok(self.trusted_since(project)?.is_some())
    }

    /// When yes was said, in milliseconds since the epoch: another time means that trust was gone in between.
    pub fn trusted_since(&self, project: &Path) -> Result<Option<u64>, TrustError> {
        let projects = self.list()?;
        let found = projects
            .iter()
            .find(|trusted| Path::new(&trusted.path) == project);
        Ok(found.map(|trusted| trusted.trusted_at_ms))
    }

    /// Says yes to a project. Gives whether that is new.
    pub fn trust(&self, project: &Path, now_ms: u64) -> Result<bool, TrustError> {
        let path = project
            .to_str()
            .ok_or_else(|| TrustError::Path(project.display().to_string()))?
            .to_owned();
        self.change(|projects| {
            let new = !projects.iter().any(|trusted| trusted.path == path);
            if new {
                projects.push(Trusted {
                    path,
                    trusted_at_ms: now_ms,
                });
                projects.sort_by(|a, b| a.path.cmp(&b.path));
            }
            new
        })
    }

    /// Takes the yes back. Gives whether there was one.
    pub fn revoke(&self, project: &Path) -> Result<bool, TrustError> {
        self.change(|projects| {
            let before = projects.len();
            projects.retain(|trusted| Path::new(&trusted.path) != project);
            projects.len() != before
        })
    }

    fn change(&self, edit: impl FnOnce(&mut Vec<Trusted>) -> bool) -> Result<bool, TrustError> {
        let refused = |error| TrustError::Write(self.file.clone(), error);
        let _lock = file::lock(&self.file).map_err(refused)?;
        let mut projects = self.list()?;
        let changed = edit(&mut projects);
        if changed {
            let page = Page {
                version: VERSION,
                projects,
            };
            let mut text =
                serde_json::to_vec_pretty(&page).map_err(|error| refused(error.into()))?;
            text.push(b'\n');
            file::write_whole(&self.file, &text).map_err(refused)?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yes_is_remembered_and_taken_back() {
        let dir = tempfile::tempdir().unwrap();
        let book = TrustBook::in_folder(dir.path());
        let project = Path::new("/projects/a");
        assert!(!book.is_trusted(project).unwrap());
        assert!(book.trust(project, 1).unwrap());
        assert!(!book.trust(project, 2).unwrap());
        assert!(
            TrustBook::in_folder(dir.path())
                .is_trusted(project)
                .unwrap()
        );
        assert!(!book.is_trusted(Path::new("/projects/a/b")).unwrap());
        assert!(book.revoke(project).unwrap());
        assert!(!book.revoke(project).unwrap());
        assert!(book.list().unwrap().is_empty());
    }

    #[test]
    fn a_damaged_book_trusts_nobody_and_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let book = TrustBook::in_folder(dir.path());
        std::fs::write(book.file(), "{ nonsense").unwrap();
        assert!(matches!(
            book.is_trusted(Path::new("/a")),
            Err(TrustError::Damaged(..))
        ));
        assert!(book.trust(Path::new("/a"), 1).is_err());
        assert_eq!(std::fs::read_to_string(book.file()).unwrap(), "{ nonsense");
        std::fs::write(book.file(), r#"{"version": 9, "projects": []}"#).unwrap();
        assert!(matches!(book.list(), Err(TrustError::Newer(_))));
    }

    #[test]
    fn several_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let book = TrustBook::in_folder(dir.path());
                scope.spawn(move || {
                    for n in 0..20 {
                        assert!(
                            book.trust(Path::new(&format!("/p/{writer}/{n}")), 1)
                                .unwrap()
                        );
                    }
                });
            }
        });
        assert_eq!(TrustBook::in_folder(dir.path()).list().unwrap().len(), 160);
    }

    #[test]
    fn the_file_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let book = TrustBook::in_folder(&dir.path().join("data"));
        book.trust(Path::new("/a"), 1).unwrap();
        assert_eq!(
            book.file().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            book.file()
                .parent()
                .unwrap()
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
    }
}
