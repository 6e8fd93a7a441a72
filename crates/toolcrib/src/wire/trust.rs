//! Trust on the wire: what is sent to give it, and what was found.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ErrorBody, GrantView, ProblemView, ToolView};

/// Trusts the project that is served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct TrustCreate {
    /// Grant nothing of what its tools declare.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_grants: bool,
    /// Trust it although others own it or may write to it. Only for the owner on this machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Trust and grant nothing: only say what the project's files tell without being run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub look: bool,
}

/// A project that is trusted now or was looked at, and what its tools are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustGiven {
    pub project: String,
    pub trusted: bool,
    /// False where it was trusted before, or is not trusted.
    pub new: bool,
    pub tools: Vec<ToolView>,
    /// What is wrong in its files, and what the scan found there.
    #[serde(default)]
    pub problems: Vec<ProblemView>,
    /// What was granted to them just now.
    pub grants: Vec<GrantView>,
    /// Why its tools could not be looked at, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<ErrorBody>,
}

/// A project, or a tool that was trusted by itself, that is not trusted any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustTaken {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
    pub trusted: bool,
    /// False where it was not trusted before.
    pub new: bool,
}

/// A project or tool that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedView {
    pub path: String,
    /// In milliseconds since the epoch.
    pub trusted_at_ms: u64,
    /// Why it no longer holds, if so.
    #[serde(default)]
    pub lapsed: Option<String>,
}

/// What is trusted: projects, and tools by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrustList {
    pub projects: Vec<TrustedView>,
    pub entries: Vec<TrustedView>,
}
