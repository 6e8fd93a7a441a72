//! The last good text of each tool file, in the cache folder.
//!
//! One file per text, named `<folder>-<file>-<content>`, each part a hash: whether a text is already kept is one
//! look at a name, and what belongs to a folder is found by its prefix.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use toolcrib_core::store::LastGood;

use crate::file;

pub struct LastGoodFiles {
    folder: PathBuf,
}

impl LastGoodFiles {
    pub fn in_folder(cache: &Path) -> LastGoodFiles {
        LastGoodFiles {
            folder: cache.join("last-good"),
        }
    }

    /// The names of kept texts that start so.
    fn kept(&self, prefix: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let names = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| name.starts_with(prefix)).collect()
    }

    fn remove<'a>(&self, names: impl Iterator<Item = &'a String>) {
        for name in names {
            let _ = std::fs::remove_file(self.folder.join(name));
        }
    }
}

fn folder_prefix(folder: &Path) -> String {
    format!(
        "{}-",
        file::short_hash(folder.as_os_str().as_encoded_bytes())
    )
}

fn file_prefix(folder: &Path, file: &str) -> String {
    format!(
        "{}{}-",
        folder_prefix(folder),
        file::short_hash(file.as_bytes())
    )
}

/// A kept name without the content's hash: what [`file_prefix`] gives.
fn file_part(name: &str) -> &str {
    &name[..name.rfind('-').map_or(0, |at| at + 1)]
}

impl LastGood for LastGoodFiles {
    fn read(&self, folder: &Path, file: &str) -> Option<Vec<u8>> {
        let name = self.kept(&file_prefix(folder, file)).pop()?;
        let text = std::fs::read(self.folder.join(&name)).ok()?;
        // A text that is not what its name says was cut short, damaged or tampered with.
        name.ends_with(&file::short_hash(&text)).then_some(text)
    }

    fn keep(&self, folder: &Path, texts: &[(String, Vec<u8>)]) {
        if texts.is_empty() {
            return;
        }
        let mut before: HashMap<String, Vec<String>> = HashMap::new();
        for name in self.kept(&folder_prefix(folder)) {
            let part = file_part(&name).to_owned();
            before.entry(part).or_default().push(name);
        }
        for (file, text) in texts {
            let prefix = file_prefix(folder, file);
            let name = format!("{prefix}{}", file::short_hash(text));
            let old = before.remove(&prefix).unwrap_or_default();
            if !old.contains(&name)
                && let Err(error) = file::write_cache(&self.folder.join(&name), text)
            {
                tracing::warn!(%error, file, "the last good version could not be kept");
                continue;
            }
            self.remove(old.iter().filter(|other| **other != name));
        }
    }

    fn forget(&self, folder: &Path, files: &[String]) {
        let prefixes: HashSet<String> =
            files.iter().map(|file| file_prefix(folder, file)).collect();
        let kept = self.kept(&folder_prefix(folder));
        self.remove(
            kept.iter()
                .filter(|name| prefixes.contains(file_part(name))),
        );
    }

    fn retain(&self, folder: &Path, files: &[String]) {
        let prefixes: HashSet<String> =
            files.iter().map(|file| file_prefix(folder, file)).collect();
        let kept = self.kept(&folder_prefix(folder));
        self.remove(
            kept.iter()
                .filter(|name| !prefixes.contains(file_part(name))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(store: &LastGoodFiles, file: &str, text: &str) {
        let texts = [(file.to_owned(), text.as_bytes().to_vec())];
        store.keep(Path::new("/tools"), &texts);
    }

    #[test]
    fn the_newest_text_is_kept_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let store = LastGoodFiles::in_folder(dir.path());
        let folder = Path::new("/tools");
        assert_eq!(store.read(folder, "a.json"), None);
        keep(&store, "a.json", "one");
        keep(&store, "a.json", "two");
        keep(&store, "b.json", "bee");
        assert_eq!(store.read(folder, "a.json").as_deref(), Some(&b"two"[..]));
        assert_eq!(
            std::fs::read_dir(dir.path().join("last-good"))
                .unwrap()
                .count(),
            2
        );
        store.retain(folder, &["b.json".to_owned()]);
        assert_eq!(store.read(folder, "a.json"), None);
        store.forget(folder, &["b.json".to_owned()]);
        assert_eq!(store.read(folder, "b.json"), None);
    }

    #[test]
    fn a_damaged_text_is_not_served() {
        let dir = tempfile::tempdir().unwrap();
        let store = LastGoodFiles::in_folder(dir.path());
        keep(&store, "a.json", "one");
        let kept = std::fs::read_dir(dir.path().join("last-good"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        std::fs::write(kept, "other").unwrap();
        assert_eq!(store.read(Path::new("/tools"), "a.json"), None);
    }
}
