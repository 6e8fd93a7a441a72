//! What a health check of one tool gives.

use serde::{Deserialize, Serialize};
use toolcrib_core::{Standing, Tool};
use utoipa::ToSchema;

/// How a tool's process is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckView {
    pub name: String,
    /// `active`, `untrusted`, `denied` or `error`.
    pub status: String,
    /// `healthy`, `degraded`, `unhealthy`, or `unknown` for tools without a process.
    pub health_status: String,
    /// When the process was asked, in milliseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_health_check: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl CheckView {
    pub fn new(tool: &Tool, standing: Standing) -> CheckView {
        CheckView {
            name: tool.name().to_owned(),
            status: tool.status().as_str().to_owned(),
            health_status: standing.health.as_str().to_owned(),
            last_health_check: standing.checked_ms,
            message: standing.message,
        }
    }

    /// Asks the process behind the tool, starting one if need be. What has no process, or may not run, is not asked.
    pub async fn of(tool: &Tool) -> CheckView {
        let standing = match tool.run.check() {
            Some(check) if tool.access == toolcrib_core::Access::Open => check.await,
            _ => tool.run.standing(),
        };
        CheckView::new(tool, standing)
    }
}
