//! What the crib tells about itself while it runs. Events carry no arguments and no output.

use std::sync::Arc;

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::broadcast;

use crate::store::ApprovalState;
use crate::{Change, ErrorCode, Health, Problem, Progress, Status};

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
        agent: Arc<str>,
        progress: Progress,
    },
    ToolComplete {
        call_id: Arc<str>,
        tool: String,
        agent: Arc<str>,
        duration_ms: f64,
    },
    ToolFailed {
        call_id: Arc<str>,
        tool: String,
        agent: Arc<str>,
        duration_ms: f64,
        failure: Failure,
    },
    /// A worker was started for this tool; the process is its launcher's.
    WorkerSpawn {
        tool: String,
        process: u32,
    },
    WorkerExit {
        tool: String,
        process: u32,
        reason: String,
    },
    StatusChanged {
        tool: String,
        status: Status,
        message: Option<String>,
    },
    HealthChanged {
        tool: String,
        health: Health,
        message: Option<String>,
    },
    /// A call waits for a person.
    ApprovalRequested {
        id: Arc<str>,
        tool: Arc<str>,
        client: Arc<str>,
        agent: Arc<str>,
        /// Where a person decides, if there is such a page.
        url: Option<String>,
    },
    /// A person has decided, or nobody did in time.
    ApprovalDecided {
        id: Arc<str>,
        tool: Arc<str>,
        agent: Arc<str>,
        state: ApprovalState,
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

/// What an event is about.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    Catalog(&'a Change),
    Problem(&'a Problem),
    /// The process behind this tool.
    Tool(&'a str),
    /// A call of this tool by this agent.
    Call {
        tool: &'a str,
        agent: &'a str,
    },
}

impl Event {
    /// What it is about: who does not see that does not hear of it either.
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Event::ToolsChanged(change) => Subject::Catalog(change),
            Event::ToolError(problem) => Subject::Problem(problem),
            Event::ToolStart { tool, agent, .. }
            | Event::ToolProgress { tool, agent, .. }
            | Event::ToolComplete { tool, agent, .. }
            | Event::ToolFailed { tool, agent, .. } => Subject::Call { tool, agent },
            Event::WorkerSpawn { tool, .. }
            | Event::WorkerExit { tool, .. }
            | Event::StatusChanged { tool, .. }
            | Event::HealthChanged { tool, .. } => Subject::Tool(tool),
            Event::ApprovalRequested { tool, agent, .. }
            | Event::ApprovalDecided { tool, agent, .. } => Subject::Call { tool, agent },
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Event::ToolsChanged(_) => "tools_changed",
            Event::ToolError(_) => "tool_error",
            Event::ToolStart { .. } => "tool.start",
            Event::ToolProgress { .. } => "tool.progress",
            Event::ToolComplete { .. } => "tool.complete",
            Event::ToolFailed { .. } => "tool.failed",
            Event::WorkerSpawn { .. } => "worker.spawn",
            Event::WorkerExit { .. } => "worker.exit",
            Event::StatusChanged { .. } => "status_changed",
            Event::HealthChanged { .. } => "health_changed",
            Event::ApprovalRequested { .. } => "approval_requested",
            Event::ApprovalDecided { .. } => "approval_decided",
        }
    }
}

/// How many events a slow listener may fall behind before it loses the oldest.
const BACKLOG: usize = 1_024;

/// Where events are told and heard. Clones tell the same listeners.
#[derive(Debug, Clone)]
pub struct Events {
    events: broadcast::Sender<Event>,
    standings: Arc<AtomicU64>,
}

impl Default for Events {
    fn default() -> Events {
        Events {
            events: broadcast::channel(BACKLOG).0,
            standings: Arc::default(),
        }
    }
}

impl Events {
    pub fn tell(&self, event: Event) {
        if matches!(
            event,
            Event::StatusChanged { .. } | Event::HealthChanged { .. }
        ) {
            self.standings.fetch_add(1, Ordering::Release);
        }
        // Nobody listening is fine.
        let _ = self.events.send(event);
    }

    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    pub fn is_heard(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// Goes up whenever the status or health of any tool has changed.
    pub fn standings(&self) -> u64 {
        self.standings.load(Ordering::Acquire)
    }
}
