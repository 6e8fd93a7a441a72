//! The last step: what the catalog gets of an entry, and what is kept of it for later.

use std::path::PathBuf;

use toolcrib_core::Update;
use toolcrib_core::store::LastGood;

use super::draft::Draft;
use super::last_good::stale;
use super::{Folder, key};
use crate::description::Description;

impl Draft {
    /// The update that it makes, which also says what is to be kept; none as long as nobody has said what it is.
    pub fn update(&mut self, memory: &mut LastGoodChanges) -> Option<Update> {
        let loaded = self.description.loaded().filter(|_| !self.unproved)?;
        let trusted = self.folder.trusts(&self.entry.name);
        let whole = !loaded.tools.is_empty() && !loaded.is_broken() && !loaded.waits;
        let tools = match self.stale {
            true => stale(loaded.tools.clone()),
            false => loaded.tools.clone(),
        };
        let update = Update {
            key: key(&self.entry.path),
            rank: self.folder.rank(),
            file: Some(self.file.clone()),
            tools,
            problems: self.description.problems(),
        };
        if trusted && whole && !self.stale {
            // Who is asked once more may turn out to be good once more.
            let keep = match self.description {
                Description::Known(_) => self.keep.take(),
                _ => self.keep.clone(),
            };
            let keep = keep.map(|text| (self.entry.name.clone(), text));
            memory.keep.extend(keep);
        }
        Some(update)
    }
}

/// Work for [`LastGood`] that nobody has to wait for.
pub(super) struct LastGoodChanges {
    folder: PathBuf,
    pub keep: Vec<(String, Vec<u8>)>,
    pub forget: Vec<String>,
}

impl LastGoodChanges {
    pub fn of(folder: &Folder) -> LastGoodChanges {
        LastGoodChanges {
            folder: folder.path.clone(),
            keep: Vec::new(),
            forget: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.keep.is_empty() && self.forget.is_empty()
    }

    pub fn store(self, last_good: &dyn LastGood) {
        if !self.forget.is_empty() {
            last_good.forget(&self.folder, &self.forget);
        }
        last_good.keep(&self.folder, &self.keep);
    }
}
