//! What programs said of themselves, in the cache folder: one file per hash.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use toolcrib_core::store::Descriptions;

use crate::file;

/// How many descriptions are kept before old ones go.
const MOST: usize = 5_000;
/// A description that nobody asked for in this time may go.
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
    fn tidy(&self) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        let entries: Vec<_> = entries.flatten().collect();
        if entries.len() <= MOST {
            return;
        }
        let now = SystemTime::now();
        for entry in entries {
            let modified = entry.metadata().and_then(|meta| meta.modified());
            let age = modified.ok().and_then(|at| now.duration_since(at).ok());
            if age.is_none_or(|age| age > OLD) {
                let _ = std::fs::remove_file(entry.path());
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
        self.tidy();
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
}
