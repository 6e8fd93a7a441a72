//! What a health check of one tool gives.

use serde::{Deserialize, Serialize};
use toolcrib_core::{Access, Standing, Tool};
use utoipa::ToSchema;

/// Whether a tool's process is asked how it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// What is known is told, at once.
    Before,
    /// It is asked, and started if need be.
    Now,
}

/// How a tool's process is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckView {
    pub name: String,
    /// `active`, `loading`, `untrusted`, `denied` or `error`.
    pub status: String,
    /// `healthy`, `degraded`, `unhealthy`, or `unknown` where nobody has asked yet and for tools without a process.
    pub health_status: String,
    /// When the process was last asked, in milliseconds since the epoch.
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

    /// How the tool is doing. What has no process, or may not run, is not asked.
    pub async fn of(tool: &Tool, asked: Asked) -> CheckView {
        let check = tool.run.check();
        let has_process = check.is_some();
        let standing = match check {
            Some(check) if asked == Asked::Now && tool.access == Access::Open => check.await,
            _ => tool.run.standing(),
        };
        let mut view = CheckView::new(tool, standing);
        if !has_process && view.message.is_none() && tool.access == Access::Open {
            view.message = Some("it has no process that could be asked".to_owned());
        }
        view
    }
}
