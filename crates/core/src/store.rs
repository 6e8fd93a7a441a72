//! What the crib asks to be remembered, as traits: the store answers them, and `core` touches no disk.

use std::path::Path;

/// The last good text of each tool file, so that a broken save does not take a tool away, not even over a restart.
///
/// Calls block on the disk and belong off the runtime's threads. Nothing here may fail a load: a store that cannot
/// keep a text logs it and forgets.
pub trait LastGood: Send + Sync {
    fn read(&self, folder: &Path, file: &str) -> Option<Vec<u8>>;

    /// Keeps the texts of these files, each in place of an earlier one.
    fn keep(&self, folder: &Path, texts: &[(String, Vec<u8>)]);

    fn forget(&self, folder: &Path, files: &[String]);

    /// Forgets every file of the folder that is not among `files`.
    fn retain(&self, folder: &Path, files: &[String]);
}
