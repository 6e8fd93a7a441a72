//! Where tools come from: sources find tools and problems, and bring them to the crib.
//!
//! [`all`] is THE LIST of sources; [`source`] says what one is, and [`open`] runs them. Start-up is the same path as every
//! later change, with one large batch: there is no separate code for loading. To add a source: write a file or a folder
//! with a type that implements [`source::Source`], and add its line to [`all`].

use std::sync::Arc;

use tokio::sync::watch;
use toolcrib_core::Crib;
use toolcrib_core::store::{LastGood, Registrations};

mod beneath;
pub mod builtin;
mod code;
mod command_files;
mod confine;
mod denied;
mod description;
mod directory;
mod entry;
pub mod examples;
mod executable;
mod fields;
mod folders;
pub mod install;
#[cfg(test)]
mod made_up;
mod options;
mod origin;
mod outbound;
pub mod permits;
mod place;
pub mod plugin;
mod process;
mod put_off;
pub mod registered;
pub mod remotes;
mod safe;
pub mod script;
mod shell_script;
pub mod source;
mod sources;
#[cfg(test)]
mod testing;
pub mod worker;

pub use code::Code;
pub use confine::Walls;
pub use folders::{Folder, FolderSource};
pub(crate) use origin::Loaded;
pub use origin::Origin;
pub use place::Place;
pub use plugin::HostPattern;
pub use put_off::Forgiven;
pub use safe::{Safe, SecretSource, SecretSources};
pub use source::{Configuration, Follow};
pub use sources::{Sources, open};

/// What sources are made of.
pub struct Needs {
    pub crib: Arc<Crib>,
    pub place: Arc<Place>,
    pub last_good: Arc<dyn LastGood>,
    pub registrations: Arc<dyn Registrations>,
    /// Rings whenever some process changed what is registered.
    pub registered: watch::Receiver<u64>,
}

/// THE LIST of sources.
pub fn all(needs: Needs) -> Vec<Box<dyn source::Source>> {
    let Needs {
        crib,
        place,
        last_good,
        registrations,
        registered,
    } = needs;
    vec![
        Box::new(builtin::BuiltinSource::new(place.clone())),
        Box::new(folders::FolderSource::new(place.clone(), last_good)),
        Box::new(registered::RegisteredSource::new(
            registrations,
            registered,
            crib,
            place,
        )),
        #[cfg(test)]
        Box::new(made_up::MadeUp),
    ]
}

/// Bytes as people write hashes.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
