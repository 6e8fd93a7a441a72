//! What happens, as it happens: server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, StreamExt};
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use toolcrib_core::{CallError, ErrorCode};

use super::ErrorResponse;
use crate::serve::{MAX_LISTENERS, Served};
use crate::wire::{ErrorView, LaggedView, event_json};

/// A quiet stream says so this often; otherwise proxies and clients would take it for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams events from now on: `tools_changed` (ChangeView), `tool_error` (ProblemView), `tool.start` (CallStartView),
/// `tool.progress` (CallProgressView), `tool.complete` and `tool.failed` (CallEndView), `worker.spawn` and
/// `worker.exit` (WorkerView), `status_changed` and `health_changed` (StandingView). A listener that is too slow
/// gets `lagged` (LaggedView) and goes on. Events carry no arguments and no output.
#[utoipa::path(
    get, path = "/events", tag = "crib", operation_id = "listen",
    responses(
        (status = 200, description = "Server-sent events; `data` is JSON", body = String, content_type = "text/event-stream"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 429, description = "`limit_reached`: too many listen already", body = ErrorView),
    )
)]
pub async fn listen(
    State(served): State<Arc<Served>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ErrorResponse> {
    // Listeners stay, so they get only a part of the connections there are.
    let place = served.listeners.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{MAX_LISTENERS} listen already");
        CallError::new(ErrorCode::LimitReached, message).hint("close a stream that is not needed")
    })?;
    let events = BroadcastStream::new(served.crib.changes())
        .filter_map(async |event| server_sent(event).map(Ok))
        .take_until(served.shutdown.clone().cancelled_owned())
        .map(move |event| {
            // The place is given back with the stream.
            let _held = &place;
            event
        });
    Ok(Sse::new(Box::pin(events)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

fn server_sent(event: Result<toolcrib_core::Event, BroadcastStreamRecvError>) -> Option<Event> {
    let (name, data) = match event {
        Ok(event) => (event.name(), event_json(&event)),
        Err(BroadcastStreamRecvError::Lagged(missed)) => {
            ("lagged", serde_json::to_string(&LaggedView { missed }))
        }
    };
    match data {
        // JSON text holds no line break, which is all that the stream's form forbids.
        Ok(data) => Some(Event::default().event(name).data(data)),
        Err(error) => {
            tracing::error!(%error, event = name, "an event could not be written as JSON");
            None
        }
    }
}
