//! How an answer goes out over HTTP: as JSON where it comes first, as a stream of events where anything comes before.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc::Receiver;

use super::methods::Later;
use super::reply::Answer;

/// A quiet stream says so this often; otherwise proxies and clients would take it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const UNBUFFERED: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-accel-buffering"),
    HeaderValue::from_static("no"),
);

pub fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let kind = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, kind)], body).into_response()
}

/// Messages as events, one each. There is no event without one: some clients drop the server over it.
pub fn events(messages: impl Stream<Item = Vec<u8>> + Send + 'static) -> Response {
    let events = messages.map(|message| {
        let text = String::from_utf8(message).unwrap_or_default();
        Ok::<_, Infallible>(Event::default().data(text))
    });
    let events = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    let mut response = events.into_response();
    response.headers_mut().insert(UNBUFFERED.0, UNBUFFERED.1);
    response
}

/// Waits for the answer, or for the first message that comes before it. Dropping what is given back drops the work.
pub async fn answer(
    messages: Option<Receiver<Vec<u8>>>,
    work: Later,
    status: impl Fn(&Answer) -> StatusCode,
) -> Response {
    let Some(messages) = messages else {
        return whole(work.await, status);
    };
    let mut work = Work {
        messages,
        work: Some(work),
        last: None,
    };
    match work.message().await {
        None => whole(work.last, status),
        Some(first) => {
            let rest = futures_util::stream::unfold(work, async |mut work| {
                let next = work.message().await;
                let next = next.or_else(|| work.last.take().map(|answer| answer.body));
                next.map(|message| (message, work))
            });
            let first = futures_util::stream::once(std::future::ready(first));
            events(first.chain(rest))
        }
    }
}

/// An answer with nothing before it. One that was cancelled gets none.
fn whole(answer: Option<Answer>, status: impl Fn(&Answer) -> StatusCode) -> Response {
    match answer {
        Some(answer) => json(status(&answer), answer.body),
        None => events(futures_util::stream::empty()),
    }
}

/// A request whose messages go out as they come, its answer last.
struct Work {
    messages: Receiver<Vec<u8>>,
    work: Option<Later>,
    last: Option<Answer>,
}

impl Work {
    /// The next message that comes before the answer.
    async fn message(&mut self) -> Option<Vec<u8>> {
        if let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                Some(message) = self.messages.recv() => return Some(message),
                answer = work => self.last = answer,
            }
            self.work = None;
        }
        self.messages.try_recv().ok()
    }
}

pub fn empty(status: StatusCode) -> Response {
    (status, Body::empty()).into_response()
}
