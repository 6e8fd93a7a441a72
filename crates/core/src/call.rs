//! One call: who asks, what for, and the context that the tool is given.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::store::Approval;
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
    /// What that token is called.
    pub token_name: Option<Arc<str>>,
}

impl Caller {
    pub fn new(client: &str) -> Caller {
        Caller {
            client: client.into(),
            agent: DEFAULT_AGENT.into(),
            token: None,
            token_name: None,
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

/// That a link did something to a call, as its record says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// As settings call it.
    pub middleware: Cow<'static, str>,
    pub deed: Deed,
}

/// What a link did to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Its arguments or its outcome are other ones now.
    Changed,
    /// It waited.
    Delayed,
    /// It did not run, or its outcome was held back.
    Refused,
}

impl Deed {
    pub fn as_str(self) -> &'static str {
        match self {
            Deed::Changed => "changed",
            Deed::Delayed => "delayed",
            Deed::Refused => "refused",
        }
    }

    pub fn parse(word: &str) -> Option<Deed> {
        [Deed::Changed, Deed::Delayed, Deed::Refused]
            .into_iter()
            .find(|deed| deed.as_str() == word)
    }
}

/// Who decided about a call, when, and how: such as `approve`, `edit`, `reject` or `respond`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub approver: Arc<str>,
    /// In milliseconds since the epoch.
    pub at_ms: u64,
    pub how: Arc<str>,
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
    /// Whoever asked let it look and nothing else: a tool that is not known to only read is refused.
    pub reads_only: bool,
    /// How much text the caller is handed at once; set by the chain's `trim` link.
    pub output_limit: OutputLimit,
    /// The conversation that the call belongs to, where it is known.
    pub thread: Option<Arc<str>>,
    /// The run of that conversation, where the client names it.
    pub run: Option<Arc<str>>,
    /// What links did to the call, for its record.
    pub marks: Vec<Mark>,
    /// What a person said about the call, for its record.
    pub decision: Option<Decision>,
    /// Whoever asks can open a page that it is sent, and then asks again: it is not kept waiting for a person.
    pub asks_again: bool,
    /// The person's decision that the call runs by, once it does.
    pub approved: Option<ApprovedBy>,
    /// A person's own arguments, on their way through the links that arguments pass.
    pub(crate) edit: Option<Edit>,
    progress: Option<ProgressSink>,
    /// Whoever counts calls is told here that the tool was started.
    pub(crate) started: Option<Arc<AtomicBool>>,
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
            reads_only: false,
            output_limit: OutputLimit::DEFAULT,
            thread: None,
            run: None,
            marks: Vec::new(),
            decision: None,
            asks_again: false,
            approved: None,
            edit: None,
            progress: None,
            started: None,
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

    /// Notes for the record what a link did to the call, once.
    pub fn mark(&mut self, middleware: &'static str, deed: Deed) {
        let mark = Mark {
            middleware: middleware.into(),
            deed,
        };
        if !self.marks.contains(&mark) {
            self.marks.push(mark);
        }
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

/// The decision that a call ran by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedBy {
    pub id: Arc<str>,
    /// `approved`, `edited` or `responded`.
    pub decision: &'static str,
    pub by: String,
    pub how: String,
    pub at_ms: u64,
}

/// A person's own arguments for a call.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    pub arguments: Object,
    pub canonical: String,
    pub approval: Box<Approval>,
    /// They went back to `validate`.
    pub is_checked: bool,
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
