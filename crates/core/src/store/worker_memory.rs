//! What is remembered of programs: what they said of themselves, and what they said beside the protocol.

use serde_json::Value;

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
