//! What is remembered: trust, kept outputs, last good versions, descriptions, what workers said.
//!
//! Everything lies in files below two folders of the user's own: the data folder (trust, outputs, logs) and the cache
//! (last good versions, descriptions). Files are made for the user alone, written whole or not at all, and guarded by a lock where
//! several processes write.

mod descriptions;
mod file;
mod last_good;
mod logs;
mod outputs;
mod trust;

pub use descriptions::DescriptionFiles;
pub use file::short_hash;
pub use last_good::LastGoodFiles;
pub use logs::LogFiles;
pub use outputs::{OutputFiles, OutputLimits};
pub use trust::{Stamp as TrustStamp, TrustBook, TrustError, Trusted};
