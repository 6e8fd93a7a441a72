//! What the event stream says: one view per event; none carries arguments or output.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcrib_core::{Change, Event};
use utoipa::ToSchema;

use super::ProblemView;

/// `tools_changed`: the catalog changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeView {
    pub version: u64,
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
}

impl From<&Change> for ChangeView {
    fn from(change: &Change) -> ChangeView {
        ChangeView {
            version: change.version,
            added: change.added.clone(),
            changed: change.changed.clone(),
            removed: change.removed.clone(),
        }
    }
}

/// `tool.start`: a call began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallStartView {
    pub call_id: String,
    pub tool: String,
    pub client: String,
    pub agent: String,
}

/// `tool.progress`: a sign of life of a running call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallProgressView {
    pub call_id: String,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub data: Map<String, Value>,
}

/// `tool.complete` and, with `error`, `tool.failed`: a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallEndView {
    pub call_id: String,
    pub tool: String,
    pub duration_ms: f64,
    /// An error code, `tool_failed` or `cancelled`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `worker.spawn` and, with `reason`, `worker.exit`: a process that runs tools began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    pub tool: String,
    pub process: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// `status_changed` and `health_changed`: the new state of a tool's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StandingView {
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health_status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `approval_requested` and, with `decision`, `approval_decided`: a call waits for a person, or no longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalEventView {
    pub id: String,
    pub tool: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Where a person decides, if there is such a page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `approved`, `edited`, `rejected`, `responded` or `expired`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
}

/// `lagged`: the listener was too slow and lost this many events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LaggedView {
    pub missed: u64,
}

/// An event's data as JSON text.
pub fn event_json(event: &Event) -> serde_json::Result<String> {
    match event {
        Event::ToolsChanged(change) => serde_json::to_string(&ChangeView::from(change.as_ref())),
        Event::ToolError(problem) => serde_json::to_string(&ProblemView::from(problem)),
        Event::ToolStart {
            call_id,
            tool,
            client,
            agent,
        } => serde_json::to_string(&CallStartView {
            call_id: call_id.to_string(),
            tool: tool.clone(),
            client: client.to_string(),
            agent: agent.to_string(),
        }),
        Event::ToolProgress {
            call_id,
            tool,
            progress,
            ..
        } => serde_json::to_string(&CallProgressView {
            call_id: call_id.to_string(),
            tool: tool.clone(),
            title: progress.title.clone(),
            message: progress.message.clone(),
            progress: progress.progress,
            total: progress.total,
            data: progress.data.clone(),
        }),
        Event::ToolComplete {
            call_id,
            tool,
            duration_ms,
            ..
        } => call_end(call_id, tool, *duration_ms, None),
        Event::ToolFailed {
            call_id,
            tool,
            duration_ms,
            failure,
            ..
        } => call_end(call_id, tool, *duration_ms, Some(failure.as_str())),
        Event::WorkerSpawn { tool, process } => serde_json::to_string(&WorkerView {
            tool: tool.clone(),
            process: *process,
            reason: None,
        }),
        Event::WorkerExit {
            tool,
            process,
            reason,
        } => serde_json::to_string(&WorkerView {
            tool: tool.clone(),
            process: *process,
            reason: Some(reason.clone()),
        }),
        Event::ApprovalRequested { .. } | Event::ApprovalDecided { .. } => {
            serde_json::to_string(&approval(event))
        }
        Event::StatusChanged {
            tool,
            status,
            message,
        } => serde_json::to_string(&StandingView {
            tool: tool.clone(),
            status: Some(status.as_str().to_owned()),
            health_status: None,
            message: message.clone(),
        }),
        Event::HealthChanged {
            tool,
            health,
            message,
        } => serde_json::to_string(&StandingView {
            tool: tool.clone(),
            status: None,
            health_status: Some(health.as_str().to_owned()),
            message: message.clone(),
        }),
    }
}

fn approval(event: &Event) -> ApprovalEventView {
    let (id, tool) = match event {
        Event::ApprovalRequested { id, tool, .. } | Event::ApprovalDecided { id, tool, .. } => {
            (id.to_string(), tool.to_string())
        }
        _ => Default::default(),
    };
    let mut view = ApprovalEventView {
        id,
        tool,
        client: None,
        agent: None,
        url: None,
        decision: None,
    };
    match event {
        Event::ApprovalRequested {
            client, agent, url, ..
        } => {
            view.client = Some(client.to_string());
            view.agent = Some(agent.to_string());
            view.url.clone_from(url);
        }
        Event::ApprovalDecided { state, .. } => view.decision = Some(state.as_str().to_owned()),
        _ => {}
    }
    view
}

fn call_end(
    call_id: &str,
    tool: &str,
    duration_ms: f64,
    error: Option<&str>,
) -> serde_json::Result<String> {
    serde_json::to_string(&CallEndView {
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        duration_ms,
        error: error.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolcrib_core::event::Failure;
    use toolcrib_core::{ErrorCode, Progress};

    fn said(event: &Event) -> Value {
        serde_json::from_str(&event_json(event).unwrap()).unwrap()
    }

    #[test]
    fn a_call_is_told_from_start_to_end() {
        let (call_id, tool) = (std::sync::Arc::from("7"), "echo".to_owned());
        let start = Event::ToolStart {
            call_id: std::sync::Arc::clone(&call_id),
            tool: tool.clone(),
            client: "rest".into(),
            agent: "default".into(),
        };
        assert_eq!(
            said(&start),
            json!({"callId": "7", "tool": "echo", "client": "rest", "agent": "default"})
        );
        let progress = Progress {
            title: Some("half".into()),
            progress: Some(0.5),
            ..Progress::default()
        };
        let event = Event::ToolProgress {
            call_id: call_id.clone(),
            tool: tool.clone(),
            agent: "default".into(),
            progress,
        };
        assert_eq!(
            said(&event),
            json!({"callId": "7", "tool": "echo", "title": "half", "progress": 0.5})
        );
        let failure = Failure::Error(ErrorCode::TimedOut);
        let event = Event::ToolFailed {
            call_id,
            tool,
            agent: "default".into(),
            duration_ms: 1.5,
            failure,
        };
        assert_eq!(
            said(&event),
            json!({"callId": "7", "tool": "echo", "durationMs": 1.5, "error": "timed_out"})
        );
    }
}
