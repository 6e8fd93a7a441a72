//! Which projects, and which single tools of other projects, a person said yes to, in one small file of the user's
//! data folder.
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

/// One trusted project, or one trusted entry of a tools folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trusted {
    pub path: String,
    pub trusted_at_ms: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Page {
    version: u32,
    projects: Vec<Trusted>,
    /// Files and folders of tools that are trusted singly; books written before there were any have no such list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Trusted>,
}

const VERSION: u32 = 1;

/// The list of trusted projects, and of entries that are trusted singly.
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
        Ok(self.read()?.projects)
    }

    /// Every entry that is trusted singly, of whatever project.
    pub fn list_entries(&self) -> Result<Vec<Trusted>, TrustError> {
        Ok(self.read()?.entries)
    }

    fn read(&self) -> Result<Page, TrustError> {
        let text = match std::fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Page::default()),
            Err(error) => return Err(TrustError::Read(self.file.clone(), error)),
        };
        let page: Page = serde_json::from_slice(&text)
            .map_err(|error| TrustError::Damaged(self.file.clone(), error))?;
        match page.version {
            VERSION => Ok(page),
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
        let path = text_of(project)?;
        self.change(|page| add(&mut page.projects, path, now_ms))
    }

    /// Takes the yes back, also from single entries of the project. Gives whether there was one.
    pub fn revoke(&self, project: &Path) -> Result<bool, TrustError> {
        self.change(|page| {
            let projects = remove(&mut page.projects, |path| path == project);
            let entries = remove(&mut page.entries, |path| path.starts_with(project));
            projects || entries
        })
    }

    /// Says yes to one file or folder of a tools folder, and to nothing beside it. Gives whether that is new.
    pub fn trust_entry(&self, entry: &Path, now_ms: u64) -> Result<bool, TrustError> {
        let path = text_of(entry)?;
        self.change(|page| add(&mut page.entries, path, now_ms))
    }

    /// Takes the yes to one entry back. Gives whether there was one.
    pub fn revoke_entry(&self, entry: &Path) -> Result<bool, TrustError> {
        self.change(|page| remove(&mut page.entries, |path| path == entry))
    }

    /// The entries below a project's root that are trusted singly, sorted.
    pub fn trusted_entries(&self, project_root: &Path) -> Result<Vec<PathBuf>, TrustError> {
        let entries = self.list_entries()?.into_iter();
        Ok(entries
            .map(|entry| PathBuf::from(entry.path))
            .filter(|path| path.starts_with(project_root))
            .collect())
    }

    fn change(&self, edit: impl FnOnce(&mut Page) -> bool) -> Result<bool, TrustError> {
        let refused = |error| TrustError::Write(self.file.clone(), error);
        let _lock = file::lock(&self.file).map_err(refused)?;
        let mut page = self.read()?;
        let changed = edit(&mut page);
        if changed {
            page.version = VERSION;
            let mut text =
                serde_json::to_vec_pretty(&page).map_err(|error| refused(error.into()))?;
            text.push(b'\n');
            file::write_whole(&self.file, &text).map_err(refused)?;
        }
        Ok(changed)
    }
}

fn text_of(path: &Path) -> Result<String, TrustError> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| TrustError::Path(path.display().to_string()))
}

/// Adds a path that is not there yet. Gives whether it was not.
fn add(list: &mut Vec<Trusted>, path: String, now_ms: u64) -> bool {
    let new = !list.iter().any(|trusted| trusted.path == path);
    if new {
        list.push(Trusted {
            path,
            trusted_at_ms: now_ms,
        });
        list.sort_by(|a, b| a.path.cmp(&b.path));
    }
    new
}

/// Removes paths. Gives whether there were any.
fn remove(list: &mut Vec<Trusted>, which: impl Fn(&Path) -> bool) -> bool {
    let before = list.len();
    list.retain(|trusted| !which(Path::new(&trusted.path)));
    list.len() != before
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
    fn an_entry_is_trusted_without_its_project_and_goes_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let book = TrustBook::in_folder(dir.path());
        let project = Path::new("/p/a");
        let entries = ["/p/a/.toolcrib/tools/x", "/p/a/.toolcrib/tools/b.json"];
        for entry in entries {
            assert!(book.trust_entry(Path::new(entry), 1).unwrap());
            assert!(!book.trust_entry(Path::new(entry), 2).unwrap());
        }
        book.trust_entry(Path::new("/p/ab/.toolcrib/tools/x"), 3)
            .unwrap();
        assert!(!book.is_trusted(project).unwrap());
        assert!(book.list().unwrap().is_empty());
        let known = |book: &TrustBook| book.trusted_entries(project).unwrap();
        assert_eq!(
            known(&book),
            [PathBuf::from(entries[1]), PathBuf::from(entries[0])]
        );
        assert!(book.revoke_entry(Path::new(entries[0])).unwrap());
        assert!(!book.revoke_entry(Path::new(entries[0])).unwrap());
        assert_eq!(known(&book), [PathBuf::from(entries[1])]);
        // A project's own yes and its entries end together; a neighbour keeps his.
        book.trust(project, 4).unwrap();
        assert!(book.revoke(project).unwrap());
        assert_eq!(known(&book), Vec::<PathBuf>::new());
        assert!(!book.revoke(project).unwrap());
        assert_eq!(book.list_entries().unwrap().len(), 1);
        assert!(book.revoke(Path::new("/p/ab")).unwrap());
    }

    #[test]
    fn a_book_from_before_there_were_entries_is_read_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let book = TrustBook::in_folder(dir.path());
        let old = r#"{"version": 1, "projects": [{"path": "/a", "trustedAtMs": 7}]}"#;
        std::fs::write(book.file(), old).unwrap();
        assert_eq!(book.trusted_since(Path::new("/a")).unwrap(), Some(7));
        assert!(book.trusted_entries(Path::new("/a")).unwrap().is_empty());
        book.trust_entry(Path::new("/b/x"), 8).unwrap();
        assert_eq!(book.trusted_since(Path::new("/a")).unwrap(), Some(7));
        book.revoke_entry(Path::new("/b/x")).unwrap();
        // Without entries the file is what an older Toolcrib writes.
        let text = std::fs::read_to_string(book.file()).unwrap();
        assert!(!text.contains("entries"), "{text}");
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
