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
    asks_again: bool,
    reads_only: bool,
}

/// What a client calls the call, and the run and the turn that it belongs to.
#[derive(Debug, Default)]
pub struct ClientIds {
    pub call: Option<String>,
    /// The conversation, which goes on over runs.
    pub thread: Option<String>,
    /// The run of it that limits are counted in.
    pub run: Option<String>,
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
            asks_again: false,
            reads_only: false,
        }
    }

    #[must_use]
    pub fn with_ids(mut self, ids: ClientIds) -> SurfaceCall {
        self.ids = ClientIds {
            call: ids.call.map(bounded),
            thread: ids.thread.map(bounded),
            run: ids.run.map(bounded),
            session: ids.session.map(bounded),
            message: ids.message.map(bounded),
        };
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

    /// Whoever asks opens a page that it is handed, and asks again then.
    #[must_use]
    pub fn asking_again(mut self) -> SurfaceCall {
        self.asks_again = true;
        self
    }

    /// It may look and nothing else.
    #[must_use]
    pub fn reading_only(mut self) -> SurfaceCall {
        self.reads_only = true;
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

    /// Who calls.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whose call it is, and of which tool.
    pub fn names(&self) -> (&str, &str) {
        (&self.caller.agent, &self.tool)
    }

    /// Runs it in its agent's view. Dropping the future cancels the call.
    pub async fn run(self, crib: &Crib, project: Option<Arc<Path>>) -> Result<Answer, CallError> {
        let request = self.request(project);
        let view = crib.view(&request.caller.agent);
        let mut answer = view.call(request).await?;
        answer
            .outcome
            .title
            .get_or_insert_with(|| answer.tool.title().to_owned());
        Ok(answer)
    }

    /// As the crib knows it.
    pub fn request(self, project: Option<Arc<Path>>) -> Request {
        let ClientIds {
            call,
            thread,
            run,
            session,
            message,
        } = self.ids;
        let mut context = Context::new(call.map_or_else(|| self.id.clone(), Arc::from));
        context.record_id = Some(self.id);
        context.thread = thread.map(Arc::from);
        context.run = run.map(Arc::from);
        context.session_id = session.map(Arc::from);
        // A client that tells of no message has one for each call.
        context.message_id = Some(message.map_or_else(|| context.call_id.clone(), Arc::from));
        context.directory = project;
        context.peer = self.peer;
        context.stop = self.stop;
        context.asks_again = self.asks_again;
        context.reads_only = self.reads_only;
        if let Some(sink) = self.progress {
            context = context.with_progress(sink);
        }
        Request {
            tool: self.tool,
            arguments: self.arguments,
            caller: self.caller,
            context,
        }
    }
}

/// The most of a client's id that is taken: it goes into events, which are kept, and into logs.
const MAX_ID: usize = 256;

fn bounded(mut id: String) -> String {
    id.truncate(id.floor_char_boundary(MAX_ID));
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_calls_things_is_taken_in_little() {
        let long = || Some("ä".repeat(1_000_000));
        let call = SurfaceCall::new(Caller::new("test"), "t", Object::default());
        let call = call.with_ids(ClientIds {
            call: long(),
            thread: long(),
            run: long(),
            session: long(),
            message: long(),
        });
        let context = call.request(None).context;
        let ids = [
            Some(context.call_id),
            context.thread,
            context.run,
            context.session_id,
            context.message_id,
        ];
        assert!(ids.iter().flatten().all(|id| id.len() <= MAX_ID));
        assert_eq!(ids.iter().flatten().count(), 5);
    }
}
