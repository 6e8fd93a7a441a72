//! One call: who asks, what for, and the context that the tool is given.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Object, OutputLimit, Peer, Tool};

/// The profile that holds when none was chosen.
pub const DEFAULT_AGENT: &str = "default";

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The program that asks: `claude`, `codex`, `rest`, `cli` …
    pub client: Arc<str>,
    /// Our profile of that name.
    pub agent: Arc<str>,
    /// The id of the token that was shown, where one was.
    pub token: Option<Arc<str>>,
}

impl Caller {
    pub fn new(client: &str) -> Caller {
        Caller {
            client: client.into(),
            agent: DEFAULT_AGENT.into(),
            token: None,
        }
    }
}

/// One sign of life of a running call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    pub title: Option<String>,
    pub message: Option<String>,
    pub progress: Option<f64>,
    pub total: Option<f64>,
    pub data: Map<String, Value>,
}

/// Where a call's progress goes.
pub type ProgressSink = Arc<dyn Fn(Progress) + Send + Sync>;

/// What a tool knows about its call.
#[derive(Clone)]
pub struct Context {
    pub call_id: Arc<str>,
    /// The id of the call's record, where `call_id` came from the client: a name that others choose is no identity.
    pub record_id: Option<Arc<str>>,
    pub session_id: Option<Arc<str>>,
    pub message_id: Option<Arc<str>>,
    /// The project, where there is one.
    pub directory: Option<Arc<Path>>,
    /// Set by the chain's `timeout` link.
    pub deadline: Option<Instant>,
    /// Fires when the call was given up: by its caller, by its deadline, or by shutdown.
    pub cancel: CancellationToken,
    /// Fires when the crib stops and waits for the call no longer.
    pub stop: Option<CancellationToken>,
    /// The client, where it can be asked something while the call runs.
    pub peer: Option<Arc<dyn Peer>>,
    /// How much text the caller is handed at once; set by the chain's `trim` link.
    pub output_limit: OutputLimit,
    progress: Option<ProgressSink>,
    /// The arguments came through the chain's links that may refuse or redact them.
    pub(crate) admitted: bool,
}

impl Context {
    pub fn new(call_id: impl Into<Arc<str>>) -> Context {
        Context {
            call_id: call_id.into(),
            record_id: None,
            session_id: None,
            message_id: None,
            directory: None,
            deadline: None,
            cancel: CancellationToken::new(),
            stop: None,
            peer: None,
            output_limit: OutputLimit::DEFAULT,
            progress: None,
            admitted: false,
        }
    }

    /// A context for tests: nothing listens, nothing cancels.
    pub fn noop() -> Context {
        Context::new("noop")
    }

    #[must_use]
    pub fn with_progress(mut self, sink: ProgressSink) -> Context {
        self.progress = Some(sink);
        self
    }

    pub(crate) fn add_progress(&mut self, sink: ProgressSink) {
        self.progress = Some(match self.progress.take() {
            None => sink,
            Some(first) => Arc::new(move |progress: Progress| {
                first(progress.clone());
                sink(progress);
            }),
        });
    }

    /// Lets all progress pass through this before anybody hears of it.
    pub(crate) fn filter_progress(
        &mut self,
        filter: Arc<dyn Fn(Progress) -> Progress + Send + Sync>,
    ) {
        if let Some(sink) = self.progress.take() {
            self.progress = Some(Arc::new(move |progress| sink(filter(progress))));
        }
    }

    /// Tells whoever listens how far the call is.
    pub fn progress(&self, progress: Progress) {
        if let Some(sink) = &self.progress {
            sink(progress);
        }
    }

    /// Streams a title while the call runs.
    pub fn metadata(&self, title: impl Into<String>, data: Map<String, Value>) {
        self.progress(Progress {
            title: Some(title.into()),
            data,
            ..Progress::default()
        });
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("call_id", &self.call_id)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// One use of one tool. The tool is the one of the snapshot taken when the call began.
#[derive(Debug, Clone)]
pub struct Call {
    pub tool: Arc<Tool>,
    /// As they came, until somebody edits them.
    pub arguments: Object,
    pub caller: Caller,
    pub context: Context,
}
