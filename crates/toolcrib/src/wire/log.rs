//! What a tool's worker said, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A part of what a tool's worker said on stderr.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogView {
    pub tool: String,
    /// What was said since `from`, its end if that is too much.
    pub text: String,
    /// How far the log reaches now: the `from` to read on with.
    pub end: u64,
}
