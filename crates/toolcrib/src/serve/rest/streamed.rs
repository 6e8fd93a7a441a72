//! One call as server-sent events: its id before anything else, what it tells while it runs, and how it ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::{Event, KeepAlive};
use axum::response::{IntoResponse, Response, Sse};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use tokio::sync::mpsc;
use toolcrib_core::call::ProgressSink;
use toolcrib_core::{Answer, CallError, Progress};

use crate::wire::{CallProgressView, CallStartView, ErrorView, OutcomeView};

/// How many signs of life wait for a slow reader; what comes beyond is left out, for the next says more.
const WAITING: usize = 64;
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Does whoever asks want a stream?
pub fn is_wanted(headers: &HeaderMap) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter();
    accepted.any(|value| {
        let kinds = value.to_str().unwrap_or_default().split(',');
        let mut kinds = kinds.map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds.any(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
    })
}

/// Where a call's progress goes until the stream reads it.
pub struct Steps {
    sender: mpsc::Sender<Progress>,
    receiver: mpsc::Receiver<Progress>,
}

/// A call whose stream goes on.
struct Streamed<F> {
    call_id: String,
    tool: String,
    steps: mpsc::Receiver<Progress>,
    /// The call, until it has ended.
    running: Option<F>,
    /// How it ended, until that was said.
    ended: Option<Result<Answer, CallError>>,
}

impl Steps {
    pub fn new() -> Steps {
        let (sender, receiver) = mpsc::channel(WAITING);
        Steps { sender, receiver }
    }

    pub fn sink(&self) -> ProgressSink {
        let sender = self.sender.clone();
        Arc::new(move |progress| {
            // Nobody reads any more, or not fast enough: the call goes on.
            let _ = sender.try_send(progress);
        })
    }

    /// The stream of a call that begins so and ends with this.
    pub fn answer(
        self,
        start: CallStartView,
        running: impl Future<Output = Result<Answer, CallError>> + Send + 'static,
    ) -> Response {
        let first = event("tool.start", &start);
        let streamed = Streamed {
            call_id: start.call_id,
            tool: start.tool,
            steps: self.receiver,
            running: Some(Box::pin(running)),
            ended: None,
        };
        let rest = stream::unfold(streamed, async |mut streamed| {
            let next = streamed.next().await?;
            Some((next, streamed))
        });
        let events = stream::once(std::future::ready(first))
            .chain(rest)
            .map(Ok::<_, Infallible>);
        Sse::new(Box::pin(events))
            .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
            .into_response()
    }
}

impl<F: Future<Output = Result<Answer, CallError>> + Unpin> Streamed<F> {
    async fn next(&mut self) -> Option<Event> {
        if let Some(running) = &mut self.running {
            tokio::select! {
                biased;
                Some(step) = self.steps.recv() => return Some(self.step(step)),
                ended = running => {
                    self.running = None;
                    self.ended = Some(ended);
                    self.steps.close();
                }
            }
        }
        if let Ok(step) = self.steps.try_recv() {
            return Some(self.step(step));
        }
        Some(match self.ended.take()? {
            Ok(answer) => event("result", &OutcomeView::from(answer.outcome)),
            Err(error) => event("error", &ErrorView::from(&error)),
        })
    }

    fn step(&self, progress: Progress) -> Event {
        event(
            "tool.progress",
            &CallProgressView {
                call_id: self.call_id.clone(),
                tool: self.tool.clone(),
                title: progress.title,
                message: progress.message,
                progress: progress.progress,
                total: progress.total,
                data: progress.data,
            },
        )
    }
}

fn event<T: Serialize>(name: &str, data: &T) -> Event {
    // JSON text holds no line break, which is all that the stream's form forbids.
    let data = serde_json::to_string(data).unwrap_or_default();
    Event::default().event(name).data(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_for_those_who_ask_for_one() {
        let asks = |accept: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            is_wanted(&headers)
        };
        assert!(asks("text/event-stream"));
        assert!(asks("application/json, Text/Event-Stream; q=0.9"));
        assert!(!asks("*/*") && !asks("application/json") && !asks("text/*"));
        assert!(!is_wanted(&HeaderMap::new()));
    }
}
