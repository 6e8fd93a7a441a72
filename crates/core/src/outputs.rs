//! Whole outputs that were too large to hand over: kept for a day, read on in pages.

use std::io;

use crate::BoxFuture;

/// The name of a kept output. Unguessable, so that holding it is part of being allowed to read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputId(String);

impl OutputId {
    /// Ids are made by the store: lower-case hex and dashes, nothing that a path could be built from.
    pub fn parse(text: &str) -> Option<OutputId> {
        let fits = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c) || c == '-';
        ((8..=64).contains(&text.len()) && text.chars().all(fits))
            .then(|| OutputId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for OutputId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A kept output and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Whole {
    pub id: OutputId,
    pub bytes: u64,
    pub lines: u64,
    /// The tool gave more than a call may keep; what came after is lost.
    pub cut: bool,
}

/// A kept output, as its owner finds it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOutput {
    pub id: OutputId,
    pub bytes: u64,
    /// When it was kept, in milliseconds since the epoch.
    pub at_ms: u64,
}

/// A part of a kept output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub offset: u64,
    pub bytes: Vec<u8>,
    /// The size of the whole.
    pub total: u64,
}

/// Keeps whole outputs. They belong to the agent that made them: another one's id is not found.
pub trait Outputs: Send + Sync {
    fn keep<'a>(&'a self, owner: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>>;

    /// Opens a spool for output that arrives bit by bit.
    fn spool<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>>;

    /// The kept outputs of this owner, newest first, at most so many.
    fn list<'a>(&'a self, _owner: &'a str, _most: usize) -> BoxFuture<'a, Vec<KeptOutput>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Reads at most `max` bytes from `offset`. An unknown id is `NotFound`.
    fn read<'a>(
        &'a self,
        owner: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>>;

    /// Forgets an output. An unknown id is `NotFound`.
    fn remove<'a>(&'a self, owner: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>>;
}

/// An output that is still being written. Dropping it unfinished removes it.
pub trait Spool: Send {
    /// Takes what fits under the call's limit and drops the rest.
    fn write<'a>(&'a mut self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<()>>;

    fn finish(self: Box<Self>) -> BoxFuture<'static, io::Result<Whole>>;
}
