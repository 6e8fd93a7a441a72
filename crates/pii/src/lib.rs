//! What in a text is personal: finds it, and puts something else in its place. Text in, text out; it knows no tools.
//!
//! * [`kinds`]: THE TABLE of what is looked for. One more kind is one more row.
//! * [`Detectors`]: the kinds and patterns that somebody chose, and what they find in a text.
//! * [`Strategy`]: what stands in a finding's place.
//! * [`PiiStream`]: the same for a text that comes in chunks, none of which splits a finding.
//!
//! Why it finds what it finds: `docs/design/0016-pii.md`.

mod custom;
mod detectors;
mod kinds;
mod seek;
mod spot;
mod strategy;
mod stream;

mod email;
mod iban;
mod keys;
mod network;
mod numbers;
mod phone;
mod url;

pub use detectors::{DetectError, Detectors};
pub use strategy::{HashOf, Strategy, covered};
pub use stream::{PiiStream, safe_end};
