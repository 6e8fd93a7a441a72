//! What tools' workers said on stderr, over REST: read on from where a reader stopped.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use toolcrib_core::{CallError, ErrorCode, SourceKind, View};
use utoipa::IntoParams;

use super::{ErrorResponse, bad_request, json, opened, queried};
use crate::failure::Failure;
use crate::open::Opened;
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{ErrorView, LogView};

/// The most that is told at once.
const MAX_BYTES: u64 = 64 * 1_024;

/// Which log to read, and from where on.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Part {
    /// The tool's name.
    #[param(example = "weather_lookup")]
    tool: String,
    /// The `end` of what was read before; from the beginning if not given.
    from: Option<u64>,
    /// At most this many bytes (0 to 65536); if there are more, the last ones.
    limit: Option<u64>,
}

/// Reads what a tool's worker said on stderr. Secrets that the tool was handed are not in it.
#[utoipa::path(
    get, path = "/logs", tag = "tools", operation_id = "readLog", params(Part),
    responses(
        (status = 200, description = "A part of the log", body = LogView),
        (status = 400, description = "`bad_request`: the query can't be read, or the tool has no process of its own", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`unknown_tool`: the hint gives the nearest names", body = ErrorView),
        (status = 503, description = "`unavailable`: the log can't be read", body = ErrorView),
    )
)]
pub async fn read(
    State(served): State<Arc<Served>>,
    who: Who,
    part: Result<Query<Part>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let Part { tool, from, limit } = queried(part, "it takes `tool`, `from` and `limit`")?;
    let limit = limit.unwrap_or(MAX_BYTES);
    if limit > MAX_BYTES {
        let error = bad_request(format!("`limit` must be from 0 to {MAX_BYTES}"));
        return Err(error.hint("use `end` as `from` to read on").into());
    }
    let opened = opened(&served)?.clone();
    let log = log_of(&served.kept(&who), &opened, &tool)?;
    // The disk is waited for elsewhere.
    let reading = tokio::task::spawn_blocking(move || {
        opened.logs.flush();
        opened.logs.read(&log, from.unwrap_or(0), limit)
    });
    let read = reading.await.unwrap_or_else(|error| Err(error.into()));
    let (text, end) = read.map_err(|error| {
        let message = format!("the log of `{tool}` can't be read");
        let failure = Failure::new(ErrorCode::Unavailable, message)
            .cause(error)
            .hint("check the permissions of Toolcrib's data folder");
        CallError::from(failure)
    })?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(json(StatusCode::OK, &LogView { tool, text, end }))
}

/// What the tool's log is called: its file's name without the suffix. A program that does not load has one too.
fn log_of(view: &View, opened: &Opened, name: &str) -> Result<String, CallError> {
    match view.find(name) {
        Ok(tool) if matches!(tool.source, SourceKind::Builtin | SourceKind::Plugin) => {
            let message = format!("`{name}` has no process of its own, so there is no log");
            Err(bad_request(message)
                .hint("what its program says on stderr comes with the outcome of a call"))
        }
        Ok(tool) => {
            let log = tool.module.split_once('.').map_or(name, |(_, stem)| stem);
            Ok(log.to_owned())
        }
        Err(_) if view.shows_all() && opened.logs.file(name).exists() => Ok(name.to_owned()),
        Err(unknown) => Err(unknown),
    }
}
