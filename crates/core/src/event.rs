//! What the crib tells about itself while it runs. Events carry no arguments and no output.

use std::sync::Arc;

use crate::{Change, ErrorCode, Problem, Progress};

#[derive(Debug, Clone)]
pub enum Event {
    ToolsChanged(Arc<Change>),
    ToolError(Problem),
    ToolStart {
        call_id: Arc<str>,
        tool: String,
        client: Arc<str>,
        agent: Arc<str>,
    },
    ToolProgress {
        call_id: Arc<str>,
        tool: String,
        progress: Progress,
    },
    ToolComplete {
        call_id: Arc<str>,
        tool: String,
        duration_ms: f64,
    },
    ToolFailed {
        call_id: Arc<str>,
        tool: String,
        duration_ms: f64,
        failure: Failure,
    },
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The tool itself reports it.
    Tool,
    Error(ErrorCode),
    /// The caller went away before the end.
    Cancelled,
}

impl Failure {
    pub fn as_str(self) -> &'static str {
        match self {
            Failure::Tool => "tool_failed",
            Failure::Error(code) => code.as_str(),
            Failure::Cancelled => "cancelled",
        }
    }
}

impl Event {
    pub fn name(&self) -> &'static str {
        match self {
            Event::ToolsChanged(_) => "tools_changed",
            Event::ToolError(_) => "tool_error",
            Event::ToolStart { .. } => "tool.start",
            Event::ToolProgress { .. } => "tool.progress",
            Event::ToolComplete { .. } => "tool.complete",
            Event::ToolFailed { .. } => "tool.failed",
        }
    }
}
