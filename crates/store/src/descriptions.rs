//! What programs said of themselves, in the cache folder: one file per hash.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolcrib_core::store::Descriptions;

use crate::file;

/// The most descriptions that are kept; the oldest go first.
const MOST: usize = 5_000;
/// One that is older goes with them.
const OLD: Duration = Duration::from_secs(30 * 24 * 60 * 60);

pub struct DescriptionFiles {
    folder: PathBuf,
}

impl DescriptionFiles {
    pub fn in_folder(cache: &Path) -> DescriptionFiles {
        DescriptionFiles {
            folder: cache.join("descriptions"),
        }
    }

    fn path(&self, hash: &str) -> PathBuf {
        let name = file::short_hash(hash.as_bytes());
        self.folder.join(format!("{name}.json"))
    }

    /// Makes room when there are too many.
    fn tidy(&self, most: usize) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        let entries: Vec<_> = entries.flatten().collect();
        if entries.len() <= most {
            return;
        }
        let modified = |entry: &DirEntry| entry.metadata().and_then(|meta| meta.modified()).ok();
        let mut entries: Vec<_> = entries
            .iter()
            .map(|one| (modified(one), one.path()))
            .collect();
        entries.sort();
        // A tenth more than need be, so that it is not looked for again at once.
        let least = entries.len() - (most - most / 10);
        let now = SystemTime::now();
        for (at, (modified, path)) in entries.into_iter().enumerate() {
            let age = modified.and_then(|at| now.duration_since(at).ok());
            if at < least || age.is_none_or(|age| age > OLD) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Descriptions for DescriptionFiles {
    fn read(&self, hash: &str) -> Option<Value> {
        let text = std::fs::read(self.path(hash)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn keep(&self, hash: &str, description: &Value) {
        let text = description.to_string();
        if let Err(error) = file::write_cache(&self.path(hash), text.as_bytes()) {
            tracing::warn!(%error, "a description could not be kept; the program is asked again at the next start");
        }
        self.tidy(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_kept_is_read_and_what_is_damaged_is_not() {
        let cache = tempfile::tempdir().unwrap();
        let files = DescriptionFiles::in_folder(cache.path());
        assert_eq!(files.read("a/../b"), None);
        files.keep("a/../b", &json!({"name": "x"}));
        assert_eq!(files.read("a/../b"), Some(json!({"name": "x"})));
        std::fs::write(files.path("a/../b"), "{").unwrap();
        assert_eq!(files.read("a/../b"), None);
    }

    #[test]
    fn there_are_never_more_than_may_be() {
        let cache = tempfile::tempdir().unwrap();
        let files = DescriptionFiles::in_folder(cache.path());
        for n in 0..30 {
            files.keep(&n.to_string(), &json!(n));
            files.tidy(10);
            let kept = std::fs::read_dir(&files.folder).unwrap().count();
            assert!(kept <= 10, "{kept}");
        }
        assert_eq!(files.read("29"), Some(json!(29)));
    }
}
