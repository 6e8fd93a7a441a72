//! Tokens on the wire: what is sent to make one, and how they are shown. The secret is in one answer only.

use serde::{Deserialize, Serialize};
use toolcrib_store::Token;
use utoipa::ToSchema;

use super::rfc3339;

/// Makes a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenCreate {
    /// What people will know it by: 1 to 64 characters on one line.
    #[serde(default)]
    #[schema(required, example = "ci", min_length = 1, max_length = 64)]
    pub name: String,
    /// What it may be used for: `read`, `call`, `manage`, `approve`; `read` and `call` when it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    /// The agent that its calls are made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How long it is valid; until it is revoked if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub expires_in_seconds: Option<u64>,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenView {
    pub id: String,
    pub name: String,
    /// `active`, `expired` or `revoked`.
    #[schema(example = "active")]
    pub state: String,
    pub scopes: Vec<String>,
    #[serde(default)]
    pub agent: Option<String>,
    #[serde(default)]
    #[schema(format = DateTime)]
    pub expires_at: Option<String>,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// To the minute.
    #[serde(default)]
    #[schema(format = DateTime)]
    pub last_used_at: Option<String>,
    /// The id of the token that it was made with, and ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

impl TokenView {
    pub fn is_active(&self) -> bool {
        self.state == ACTIVE
    }
}

const ACTIVE: &str = "active";

impl From<Token> for TokenView {
    fn from(token: Token) -> TokenView {
        let state = match &token {
            token if token.revoked_ms.is_some() => "revoked",
            token if token.expires_ms.is_some_and(|at| at <= crate::now_ms()) => "expired",
            _ => ACTIVE,
        };
        TokenView {
            id: token.id,
            name: token.name,
            state: state.to_owned(),
            scopes: token.scopes,
            agent: token.agent,
            expires_at: token.expires_ms.map(rfc3339),
            created_at: rfc3339(token.created_ms),
            last_used_at: token.last_used_ms.map(rfc3339),
            made_by: token.made_by,
        }
    }
}

/// The tokens there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    pub tokens: Vec<TokenView>,
    pub count: usize,
}

/// A token that was just made.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenCreated {
    #[serde(flatten)]
    pub view: TokenView,
    /// The secret. It is shown once.
    pub token: String,
}

/// A token that was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRevoked {
    pub id: String,
    pub name: String,
    pub revoked: bool,
    /// False where it was revoked before.
    pub new: bool,
}
