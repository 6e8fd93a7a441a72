//! Tools folders: what their files hold becomes updates of the catalog, in steps of one direction.
//!
//! ```text
//! list → compare → read → draft → ask → update
//! ```
//!
//! * [`list`]: which entries of a folder can be tools.
//! * [`compare`]: which of them may have changed, by their stamps, and which are gone.
//! * [`read`]: what an entry holds, and the hash of it.
//! * [`draft`]: what that makes: tools, problems, or a program that has to be asked; `last_good` stands in for a broken one.
//! * [`ask`]: asks programs what they are, a few at a time, and gathers what they say.
//! * [`update`]: what the catalog gets of it, and what is kept of it for later.
//!
//! What takes something away from the catalog (a file that is gone, empty, broken, or has fewer tools) may be half of a save:
//! [`withheld`] waits a moment for the other half. A new version of a program takes over once a process of it has answered.
//!
//! [`look`] goes through the steps for one folder. A look is always a whole one (list the folder, compare each file's
//! stamp), because events lie. Only what changed is read again, and only what reads differently is drafted again.
//! [`source`] looks at all folders whenever something may have changed ([`watch`]).
//!
//! Why: `docs/design/0007-last-good-version.md`.

mod ask;
mod compare;
mod draft;
mod last_good;
mod list;
mod look;
mod read;
mod source;
#[cfg(test)]
mod tests;
mod update;
mod watch;
mod withheld;
mod without_tools;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib_core::store::LastGood;
use toolcrib_core::{Access, Rank, Scope, SourceKey};

use crate::Place;
pub use source::FolderSource;

/// A tools folder and what holds for its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    pub scope: Scope,
    /// The place in the list of folders: lower wins a name.
    pub rank: u16,
    /// [`Access::Open`], or [`Access::Untrusted`] with the project it belongs to.
    pub access: Access,
    /// Names of entries of this folder that are trusted singly, although `access` is [`Access::Untrusted`].
    pub trusted: Vec<String>,
    /// Whether programs in it are tools.
    pub programs: bool,
}

impl Folder {
    /// What holds for one entry: it may be trusted where its folder is not.
    fn access_of(&self, name: &str) -> Access {
        match self.trusted.iter().any(|one| one == name) {
            true => Access::Open,
            false => self.access.clone(),
        }
    }

    /// Is this entry trusted, by itself or with its folder?
    fn trusts(&self, name: &str) -> bool {
        self.access_of(name) == Access::Open
    }

    /// Is this entry trusted by itself, and nothing that lies around it?
    fn is_alone(&self, name: &str) -> bool {
        self.access != Access::Open && self.trusts(name)
    }

    fn rank(&self) -> Rank {
        Rank::Folder(self.rank)
    }
}

/// What the steps need besides the folder.
#[derive(Clone)]
struct Needs {
    place: Arc<Place>,
    last_good: Arc<dyn LastGood>,
    /// Is there time to see whether a save is finished? Not where one look is all there is.
    patient: bool,
}

/// What an entry, or the folder itself, is kept under in the catalog.
fn key(path: &Path) -> SourceKey {
    SourceKey(path.to_string_lossy().into())
}
