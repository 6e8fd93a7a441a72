//! One call, on whatever surface it came: its request is built here, its agent's view found and called, and nowhere else.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolcrib_core::call::ProgressSink;
use toolcrib_core::{Answer, CallError, Caller, Context, Crib, Object, Peer, Request};

/// A call as a surface knows it.
pub struct SurfaceCall {
    /// The id of its record, and of the call itself where the client gives none.
    id: Arc<str>,
    caller: Caller,
    tool: String,
    arguments: Object,
    ids: ClientIds,
    progress: Option<ProgressSink>,
    peer: Option<Arc<dyn Peer>>,
    stop: Option<CancellationToken>,
}

/// What a client calls the call, and the run and the turn that it belongs to.
#[derive(Debug, Default)]
pub struct ClientIds {
    pub call: Option<String>,
    pub session: Option<String>,
    pub message: Option<String>,
}

impl SurfaceCall {
    pub fn new(caller: Caller, tool: impl Into<String>, arguments: Object) -> SurfaceCall {
        SurfaceCall {
            id: uuid::Uuid::now_v7().to_string().into(),
            caller,
            tool: tool.into(),
            arguments,
            ids: ClientIds::default(),
            progress: None,
            peer: None,
            stop: None,
        }
    }

    #[must_use]
    pub fn with_ids(mut self, ids: ClientIds) -> SurfaceCall {
        self.ids = ids;
        self
    }

    /// Somebody wants to hear how far it is.
    #[must_use]
    pub fn with_progress(mut self, sink: ProgressSink) -> SurfaceCall {
        self.progress = Some(sink);
        self
    }

    /// The client can be asked something while the call runs.
    #[must_use]
    pub fn with_peer(mut self, peer: Arc<dyn Peer>) -> SurfaceCall {
        self.peer = Some(peer);
        self
    }

    /// When this fires, nobody waits for the call any longer.
    #[must_use]
    pub fn until(mut self, stop: CancellationToken) -> SurfaceCall {
        self.stop = Some(stop);
        self
    }

    /// The id under which it is recorded.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whose call it is, and of which tool.
    pub fn names(&self) -> (&str, &str) {
        (&self.caller.agent, &self.tool)
    }

    /// Runs it in its agent's view. Dropping the future cancels the call.
    pub async fn run(self, crib: &Crib, project: Option<Arc<Path>>) -> Result<Answer, CallError> {
        let ClientIds {
            call,
            session,
            message,
        } = self.ids;
        let mut context = Context::new(call.map_or_else(|| self.id.clone(), Arc::from));
        context.record_id = Some(self.id);
        context.session_id = session.map(Arc::from);
        // A client that tells of no message has one for each call.
        context.message_id = Some(message.map_or_else(|| context.call_id.clone(), Arc::from));
        context.directory = project;
        context.peer = self.peer;
        context.stop = self.stop;
        if let Some(sink) = self.progress {
            context = context.with_progress(sink);
        }
        let view = crib.view(&self.caller.agent);
        let request = Request {
            tool: self.tool,
            arguments: self.arguments,
            caller: self.caller,
            context,
        };
        let mut answer = view.call(request).await?;
        answer
            .outcome
            .title
            .get_or_insert_with(|| answer.tool.title().to_owned());
        Ok(answer)
    }
}
