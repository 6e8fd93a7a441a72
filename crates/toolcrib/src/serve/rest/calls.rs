//! The record of calls over REST: filtered, by page, newest first.

use std::sync::Arc;

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use toolcrib_core::store::CallRecord;
use toolcrib_core::{CallError, ErrorCode, View};
use toolcrib_store::{CallCursor, CallFilter, CallPage, Calls, Ending};
use utoipa::IntoParams;

use super::{ErrorResponse, bad_request, json, named, queried};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::store_handle::refused;
use crate::wire::{CallStopped, ErrorView, RecordList, RecordView};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;
/// What stands for every project.
pub const ALL_PROJECTS: &str = "*";

/// Which calls to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Only calls of this tool.
    tool: Option<String>,
    /// Only calls of this client, such as `claude`, `rest` or `cli`.
    client: Option<String>,
    /// Only calls of this agent.
    agent: Option<String>,
    /// Only calls in this project: its root, or `*` for all; the project that is served when it is not given.
    #[param(example = "*")]
    project: Option<String>,
    /// Only calls that ended so: `ok`, `failed`, or an error code.
    #[param(example = "failed")]
    outcome: Option<String>,
    /// Only calls that began at this moment or later: RFC 3339, or milliseconds since the epoch.
    #[param(example = "2026-01-31T12:00:00Z")]
    since: Option<String>,
    /// Only calls that began before this moment.
    until: Option<String>,
    /// At most this many (1 to 1000; 100 if not given).
    limit: Option<usize>,
    /// Where the previous page ended: its `next`.
    cursor: Option<String>,
}

/// Lists the calls on record, newest first. A call is on record within a second of its end. A page may hold fewer than
/// `limit` where the token's agent does not see all tools.
#[utoipa::path(
    get, path = "/calls", tag = "calls", operation_id = "listCalls", params(Filter),
    responses(
        (status = 200, description = "A page of calls, newest first", body = RecordList),
        (status = 400, description = "`bad_request`: a filter is unknown or has no such value", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn list(
    State(served): State<Arc<Served>>,
    who: Who,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let asked = queried(
        filter,
        "it takes `tool`, `client`, `agent`, `project`, `outcome`, `since`, `until`, `limit` and `cursor`",
    )?;
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let error = bad_request(format!("`limit` must be from 1 to {MAX_LIMIT}"));
        return Err(error.hint("use `next` as `cursor` to read on").into());
    }
    let cursor: Option<CallCursor> = match asked.cursor.as_deref().map(str::parse) {
        None => None,
        Some(Ok(cursor)) => Some(cursor),
        Some(Err(error)) => {
            let error = bad_request(format!("`cursor`: {error}"));
            return Err(error.hint("use the `next` of the previous page").into());
        }
    };
    let filter = CallFilter {
        tool: asked.tool,
        client: asked.client,
        agent: asked.agent,
        project: project(&served, asked.project),
        ending: asked.outcome.as_deref().map(ending).transpose()?,
        since_ms: asked.since.as_deref().map(moment).transpose()?,
        until_ms: asked.until.as_deref().map(moment).transpose()?,
    };
    let calls = calls(&served)?;
    let known = KnownCalls::to(&served, &who);
    let page = match known.filter(filter) {
        Some(filter) => {
            let page = calls.list(&filter, cursor.as_ref(), limit).await;
            known.of(page.map_err(refused)?)
        }
        None => CallPage {
            calls: Vec::new(),
            next: None,
        },
    };
    Ok(json(StatusCode::OK, &RecordList::from(&page)))
}

/// Shows one call on record.
#[utoipa::path(
    get, path = "/calls/{id}", tag = "calls", operation_id = "showCall",
    params(("id" = String, Path, description = "`id` in the list, or `callId` in events")),
    responses(
        (status = 200, description = "The call", body = RecordView),
        (status = 400, description = "`bad_request`: the id is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: no such call, or it is no longer on record", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn show(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    let id = named(id)?;
    // No other character is in any id, and not every store takes every character.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let found = match id.chars().all(plain) {
        true => calls(&served)?.get(&id).await.map_err(refused)?,
        false => None,
    };
    let known = KnownCalls::to(&served, &who);
    match found.filter(|record| known.has(record)) {
        Some(record) => Ok(json(StatusCode::OK, &RecordView::from(&record))),
        None => Err(
            CallError::new(ErrorCode::NotFound, "there is no such call on record")
                .hint("GET /api/calls lists them; a call is on record within a second of its end")
                .into(),
        ),
    }
}

/// Cancels a call that is running: one that was begun with the same token, or any with the scope `manage`. The tool's
/// processes end, and whoever waits for the call hears that it was cancelled.
#[utoipa::path(
    delete, path = "/calls/{id}", tag = "calls", operation_id = "cancelCall",
    params(("id" = String, Path, description = "The id of its record; a streamed call says it at the start")),
    responses(
        (status = 200, description = "The call is being cancelled", body = CallStopped),
        (status = 400, description = "`bad_request`: the id is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: no such call is running, or it is another's", body = ErrorView),
    )
)]
pub async fn cancel(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    let id = named(id)?;
    served.running.stop(&id, &who)?;
    Ok(json(StatusCode::OK, &CallStopped { cancelled: id }))
}

/// Which calls whoever asks may know of: those of tools that they see, and with a token for one agent only that agent's.
struct KnownCalls {
    view: Arc<View>,
    agent: Option<String>,
}

impl KnownCalls {
    fn to(served: &Served, who: &Who) -> KnownCalls {
        KnownCalls {
            view: served.kept(who),
            agent: who.is_bound().then(|| who.agent().to_owned()),
        }
    }

    /// What is asked for within that; nothing where it is all outside.
    fn filter(&self, mut asked: CallFilter) -> Option<CallFilter> {
        let sees = |tool: &String| self.view.shows_all() || self.view.get(tool).is_some();
        if !asked.tool.as_ref().is_none_or(sees) {
            return None;
        }
        if let Some(own) = &self.agent
            && asked.agent.get_or_insert_with(|| own.clone()) != own
        {
            return None;
        }
        Some(asked)
    }

    fn has(&self, record: &CallRecord) -> bool {
        let theirs = self.agent.as_ref().is_none_or(|own| **own == *record.agent);
        theirs && (self.view.shows_all() || self.view.get(&record.tool).is_some())
    }

    fn of(&self, mut page: CallPage) -> CallPage {
        page.calls.retain(|record| self.has(record));
        page
    }
}

fn calls(served: &Served) -> Result<Calls, CallError> {
    match &served.store {
        Some(store) => Ok(store.ready().map_err(refused)?.calls()),
        None => Err(CallError::unavailable("this crib keeps no record of calls")),
    }
}

/// Which project is meant: the one that is named, that of this crib where none is, and none for all of them.
pub fn project(served: &Served, named: Option<String>) -> Option<String> {
    let own = || Some(served.project.as_ref()?.to_string_lossy().into_owned());
    match named {
        Some(named) if named == ALL_PROJECTS => None,
        named => named.or_else(own),
    }
}

fn ending(word: &str) -> Result<Ending, CallError> {
    match word {
        "ok" => Ok(Ending::Ok),
        "failed" => Ok(Ending::Failed),
        word => ErrorCode::parse(word).map(Ending::Code).ok_or_else(|| {
            let word: String = word.chars().take(64).collect();
            let codes = ErrorCode::ALL.map(ErrorCode::as_str).join(", ");
            bad_request(format!("no call ends as `{word}`"))
                .hint(format!("use ok, failed, or one of: {codes}"))
        }),
    }
}

fn moment(text: &str) -> Result<u64, CallError> {
    let parsed = match text.parse() {
        Ok(ms) => Some(ms),
        Err(_) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .and_then(|at| at.as_millisecond().try_into().ok()),
    };
    // No store counts further, and no clock goes there.
    parsed.filter(|ms| *ms <= i64::MAX as u64).ok_or_else(|| {
        let text: String = text.chars().take(64).collect();
        bad_request(format!("`{text}` is not a point in time"))
            .hint("write it as 2026-01-31T12:00:00Z, or as milliseconds since the epoch")
    })
}
