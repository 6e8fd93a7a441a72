//! What the crib asks to be remembered, as traits: the store answers them, and `core` touches no disk.

use std::path::Path;

use serde_json::Value;

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

/// What a program said of itself when it was asked, by the hash of what was asked: so that a start with a thousand
/// tools starts no process.
///
/// Calls block on the disk and belong off the runtime's threads.
pub trait Descriptions: Send + Sync {
    fn read(&self, hash: &str) -> Option<Value>;

    fn keep(&self, hash: &str, description: &Value);
}

/// What workers say beside the protocol, kept for the person who looks for it.
pub trait Logs: Send + Sync {
    /// Appends what a tool's worker said. Never blocks: where writing is slower than speaking, words are lost.
    fn append(&self, tool: &str, text: &[u8]);
}

/// Remembers nothing; for tests and for commands that need no memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Forgetful;

impl Descriptions for Forgetful {
    fn read(&self, _: &str) -> Option<Value> {
        None
    }

    fn keep(&self, _: &str, _: &Value) {}
}

impl Logs for Forgetful {
    fn append(&self, _: &str, _: &[u8]) {}
}
