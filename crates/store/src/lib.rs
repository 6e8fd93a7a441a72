//! What is remembered: in a database (registrations, calls, grants, trust, tokens), and in files beside it.
//!
//! Files lie below two folders of the user's own: the data folder (trust, outputs, logs, the database of SQLite) and
//! the cache (last good versions, descriptions). They are made for the user alone, written whole or not at all, and guarded by a lock
//! where several processes write.

mod descriptions;
mod file;
mod last_good;
mod logs;
mod outputs;
mod ownership;
mod sql;
mod trust;

pub use descriptions::DescriptionFiles;
pub use file::short_hash;
pub use last_good::LastGoodFiles;
pub use logs::LogFiles;
pub use outputs::{OutputFiles, OutputLimits};
pub use ownership::Ownership;
pub use sql::{
    Approvals, CallCursor, CallFilter, CallLog, CallPage, Calls, CustomTools, Ending, GrantBook,
    LogState, Making, NewDecision, NewToken, Pulse, Retention, Revisions, Signer, Store, StoreUrl,
    StoreUrlError, Token, Tokens, ToolPage, TrustKind, TrustedPath, Verdict, counter_path,
    fingerprint, hmac_sha256, is_hmac_sha256, new_secret,
};
pub use toolcrib_core::store::StoreError;
pub use trust::{TrustBook, Trusted};
