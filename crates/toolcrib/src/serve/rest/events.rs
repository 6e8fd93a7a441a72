//! What happens, as it happens: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt, stream};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use toolcrib_core::{CallError, ErrorCode};

use super::ErrorResponse;
use crate::serve::auth::Who;
use crate::serve::earshot::Earshot;
use crate::serve::feed::{Joined, SentEvent};
use crate::serve::{MAX_LISTENERS, Served};
use crate::wire::{ErrorView, LaggedView};

/// A quiet stream says so this often; otherwise proxies and clients would take it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams events from now on: `tools_changed` (ChangeView), `tool_error` (ProblemView), `tool.start` (CallStartView),
/// `tool.progress` (CallProgressView), `tool.complete` and `tool.failed` (CallEndView), `worker.spawn` and
/// `worker.exit` (WorkerView), `status_changed` and `health_changed` (StandingView), `approval_requested` and
/// `approval_decided` (ApprovalEventView). A listener that is too slow
/// gets `lagged` (LaggedView) and goes on. Every event has an id: who sends it as `Last-Event-ID` gets what came after it,
/// as far as that is kept, and `lagged` for the rest. Events carry no arguments and no output. A token for one agent hears
/// of the tools that agent sees, and of its own calls.
#[utoipa::path(
    get, path = "/events", tag = "crib", operation_id = "listen",
    params(("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received")),
    responses(
        (status = 200, description = "Server-sent events; `data` is JSON", body = String, content_type = "text/event-stream"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 429, description = "`limit_reached`: too many listen already", body = ErrorView),
    )
)]
pub async fn listen(
    State(served): State<Arc<Served>>,
    who: Who,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ErrorResponse> {
    // Listeners stay, so they get only a part of the connections there are.
    let place = served.listeners.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{MAX_LISTENERS} listen already");
        CallError::new(ErrorCode::LimitReached, message).hint("close a stream that is not needed")
    })?;
    let after = headers.get("last-event-id");
    let after = after.and_then(|value| value.to_str().ok());
    let Joined {
        missed,
        lost,
        coming,
    } = served.feed.join(&served.crib, after);
    // How many are lost nobody knows where another process numbered them.
    let lost = match lost {
        Some(0) => None,
        lost => Some(lagged(lost.unwrap_or(0))),
    };
    let mut earshot = Earshot::of(&served, who);
    let late = |event: &Arc<SentEvent>| Some(server_sent(event, &earshot.hear_late(event)?));
    let missed = lost.into_iter().chain(missed.iter().filter_map(late));
    let missed: Vec<Event> = missed.collect();
    let coming = BroadcastStream::new(coming).filter_map(move |event| {
        std::future::ready(match event {
            Ok(event) => earshot.hear(&event).map(|data| server_sent(&event, &data)),
            Err(BroadcastStreamRecvError::Lagged(missed)) => Some(lagged(missed)),
        })
    });
    let events = stream::iter(missed)
        .chain(coming)
        .map(Ok)
        .take_until(served.shutdown.clone().cancelled_owned())
        .map(move |event| {
            // The place is given back with the stream.
            let _held = &place;
            event
        });
    Ok(Sse::new(Box::pin(events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn server_sent(event: &SentEvent, data: &str) -> Event {
    let SentEvent { id, name, .. } = event;
    // JSON text holds no line break, which is all that the stream's form forbids.
    Event::default().id(id).event(name).data(data)
}

/// Some are missing. It has no id of its own: whoever goes on, goes on behind the last real one.
fn lagged(missed: u64) -> Event {
    let data = serde_json::to_string(&LaggedView { missed });
    Event::default()
        .event("lagged")
        .data(data.unwrap_or_default())
}
