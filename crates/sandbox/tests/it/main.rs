//! What the launcher promises, with real processes: on both rungs, and as root and as an ordinary user.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod confined;
mod owner;
mod start;
mod streams;
mod support;
mod survivors;
