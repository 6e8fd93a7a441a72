//! Who asks, on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who asks, and what they may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MeView {
    /// `owner` for commands on this machine, `token`, `login` for a browser, `anybody` where no token is asked for.
    #[schema(example = "token")]
    pub who: String,
    /// Which token was shown, never the token itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<String>,
    pub scopes: Vec<String>,
    /// The agent that calls are made for.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
}
