//! Tools over REST: the catalog, its problems, reloads, and calls.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use axum::body::{Body, Bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::FutureExt;
use futures_util::future::Either;
use serde::Deserialize;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{Answer, CallError, ErrorCode, Hint, SourceKind, Status, View};
use utoipa::IntoParams;

use super::agents::view_of;
use super::{ErrorResponse, bad_request, body, json, json_bytes, named, queried, streamed};
use crate::serve::auth::Who;
use crate::serve::{CLIENT, COMMANDS, Served};
use crate::surface::{ClientIds, SurfaceCall};
use crate::wire::{
    Asked, CallBody, CallStartView, CheckView, ErrorView, OutcomeView, PassView, ProblemList,
    ReloadView, ToolList, ToolView,
};

/// The largest page; who wants more at once asks for the whole, which is kept ready.
const MAX_LIMIT: usize = 1_000;

/// Which tools to list.
#[derive(Debug, Default, PartialEq, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// At most this many tools (1 to 1000); the whole list if not given.
    limit: Option<usize>,
    /// Skip this many at the beginning.
    offset: Option<usize>,
    /// Only tools of this source.
    #[param(example = "plugin")]
    source: Option<String>,
    /// Only tools of this status: `active`, `loading`, `untrusted`, `denied`, `off` or `error`.
    #[param(example = "active")]
    status: Option<String>,
    /// Also name the files without a tool, and list the built-in tools that are off.
    idle: Option<bool>,
}

/// Lists the tools, sorted by name.
#[utoipa::path(
    get, path = "/tools", tag = "tools", operation_id = "listTools", params(Filter),
    responses(
        (status = 200, description = "The tools", body = ToolList),
        (status = 400, description = "`bad_request`: a filter is unknown or has no such value", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn list(
    State(served): State<Arc<Served>>,
    who: Who,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let filter = queried(
        filter,
        "it takes `limit`, `offset`, `source`, `status` and `idle`",
    )?;
    served.looked().await?;
    if filter == Filter::default() {
        let standings = served.crib.events().standings();
        let view = served.kept(&who);
        let list = view.derived(|_| WholeList::default()).of(&view, standings);
        return Ok(json_bytes(StatusCode::OK, list));
    }
    if filter
        .limit
        .is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit))
    {
        let error = bad_request(format!("`limit` must be from 1 to {MAX_LIMIT}"));
        return Err(error.hint("leave it out to get the whole list").into());
    }
    let sources = SourceKind::ALL.map(SourceKind::as_str);
    known("source", filter.source.as_deref(), &sources)?;
    known(
        "status",
        filter.status.as_deref(),
        &Status::ALL.map(Status::as_str),
    )?;
    let off_too = filter.idle == Some(true) || filter.status.is_some();
    let fits = |tool: &toolcrib_core::Tool| {
        (off_too || !tool.is_off())
            && filter
                .source
                .as_deref()
                .is_none_or(|source| source == tool.source.as_str())
            && filter
                .status
                .as_deref()
                .is_none_or(|status| status == tool.status().as_str())
    };
    let offset = filter.offset.unwrap_or(0);
    let view = served.kept(&who);
    let mut list = ToolList::new(&view, fits, offset, filter.limit);
    if filter.idle == Some(true) {
        let files = view.idle_files().iter();
        list.idle_files = Some(files.map(|file| file.display().to_string()).collect());
    }
    Ok(json(StatusCode::OK, &list))
}

fn known(filter: &str, value: Option<&str>, all: &[&str]) -> Result<(), CallError> {
    match value {
        Some(value) if !all.contains(&value) => {
            let value: String = value.chars().take(64).collect();
            Err(bad_request(format!("there is no {filter} `{value}`"))
                .hint(format!("use one of: {}", all.join(", "))))
        }
        _ => Ok(()),
    }
}

/// The whole list as bytes: made once per view and change of a tool's standing.
#[derive(Default)]
struct WholeList(ArcSwapOption<(u64, Bytes)>);

impl WholeList {
    /// Two requests may make it at the same time; they make the same.
    fn of(&self, view: &View, standings: u64) -> Bytes {
        if let Some(made) = self.0.load().as_deref()
            && made.0 == standings
        {
            return made.1.clone();
        }
        match serde_json::to_vec(&ToolList::from(view)) {
            Ok(bytes) => {
                let bytes = Bytes::from(bytes);
                self.0.store(Some(Arc::new((standings, bytes.clone()))));
                bytes
            }
            Err(error) => {
                tracing::error!(%error, "the tool list could not be written as JSON");
                Bytes::from_static(br#"{"tools":[],"counts":{"total":0},"count":0}"#)
            }
        }
    }
}

/// Shows one tool.
#[utoipa::path(
    get, path = "/tools/{name}", tag = "tools", operation_id = "showTool",
    params(("name" = String, Path, description = "The tool's name"), AgentQuery),
    responses(
        (status = 200, description = "The tool", body = ToolView),
        (status = 400, description = "`bad_request`: the name is not UTF-8, or the query is unknown", body = ErrorView),
        (status = 403, description = "`forbidden`: the token is for another agent, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`unknown_tool`: the hint gives the nearest names; `not_found`: there is no such agent", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn show(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<AgentQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let name = named(name)?;
    let AgentQuery { agent } = queried(query, "it takes `agent`")?;
    served.looked().await?;
    let view = match &agent {
        Some(agent) => view_of(&served, &who, agent)?,
        None => served.kept(&who),
    };
    let tool = view.find(&name).map_err(|unknown| match agent {
        Some(_) => why_not(&served, &who, &view, &name, unknown),
        None => unknown,
    })?;
    let mut shown = ToolView::from(tool.as_ref());
    // What a middleware of an agent looks for is for who keeps the crib alone.
    shown.call = (agent.is_some() && who.keeps()).then(|| PassView::of(&view, tool));
    Ok(json(StatusCode::OK, &shown))
}

/// For whom a tool is shown.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentQuery {
    /// Show it as this agent sees it.
    #[param(example = "reviewer")]
    agent: Option<String>,
}

/// The error about a tool that an agent does not see. Who keeps the crib reads why; everybody else, that there is none.
fn why_not(served: &Served, who: &Who, view: &View, name: &str, unknown: CallError) -> CallError {
    let all = served.kept(who);
    let Some(tool) = all.get(name).filter(|_| who.keeps()) else {
        return unknown;
    };
    let Some(hiding) = view.profile().sees().hiding(tool) else {
        return unknown;
    };
    let agent = view.profile().name();
    let message = format!("the agent `{agent}` does not see the tool `{name}`: {hiding}");
    let hint = CommandLine::new("toolcrib agents").operand(agent);
    CallError::new(ErrorCode::UnknownTool, message)
        .hint(Hint::run(hint).after(" shows all it sees"))
}

/// Whether the process is asked.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CheckQuery {
    /// Ask the process now, starting one if need be, instead of telling what is known.
    check: Option<bool>,
}

/// What the query of a health route asks for.
pub fn asked(query: Result<Query<CheckQuery>, QueryRejection>) -> Result<Asked, ErrorResponse> {
    let query = queried(query, "it takes `check`, which is true or false")?;
    Ok(match query.check {
        Some(true) => Asked::Now,
        Some(false) | None => Asked::Before,
    })
}

/// Tells at once how a tool's process was when it was last asked. With `check=true` it is asked now, and started if need
/// be.
#[utoipa::path(
    get, path = "/tools/{name}/health", tag = "tools", operation_id = "checkTool",
    params(("name" = String, Path, description = "The tool's name"), CheckQuery),
    responses(
        (status = 200, description = "How the tool is", body = CheckView),
        (status = 400, description = "`bad_request`: the name is not UTF-8, or the query is unknown", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`unknown_tool`: the hint gives the nearest names", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn check(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<CheckQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let (name, asked) = (named(name)?, asked(query)?);
    served.looked().await?;
    let view = served.kept(&who);
    let tool = view.find(&name)?;
    Ok(json(StatusCode::OK, &CheckView::of(tool, asked).await))
}

/// Calls a tool. A tool that reports failure answers 200 with `isError`. A call continues when its client goes away, unless
/// it is `attached`. With `Accept: text/event-stream` the answer is a stream: `tool.start` with the call's id,
/// `tool.progress` as it comes, then `result` (the outcome) or `error`.
#[utoipa::path(
    post, path = "/tools/{name}/call", tag = "tools", operation_id = "callTool",
    params(("name" = String, Path, description = "The tool's name")),
    request_body(content = CallBody, description = "At most 10 MB; an empty body means no arguments"),
    responses(
        (status = 200, description = "The outcome; `isError` when the tool reports failure", body = OutcomeView),
        (status = 202, description = "`approval_pending`: waits for a person", body = ErrorView),
        (status = 400, description = "`bad_request`: the body is not the expected JSON", body = ErrorView),
        (status = 403, description = "`denied`: not trusted or not granted; `forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`unknown_tool`: the hint gives the nearest names", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 422, description = "`invalid_arguments`: the arguments do not fit the tool's schema; `data` says where", body = ErrorView),
        (status = 429, description = "`limit_reached`: `Retry-After` says when it helps to ask again, where that is known", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
        (status = 502, description = "`crashed`: the worker died", body = ErrorView),
        (status = 503, description = "`unavailable`: the tool can't be started", body = ErrorView),
        (status = 504, description = "`timed_out`: the call was stopped at its deadline", body = ErrorView),
    )
)]
pub async fn call(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let tool = named(name)?;
    let body: CallBody = body::parse(&body::read(body).await?)?;
    served.looked().await?;
    let attached = body.attached;
    let call = surface_call(&served, &who, tool, body)?;
    if !streamed::is_wanted(&headers) {
        return answered(ended(served, &who, call, attached).await);
    }
    let steps = streamed::Steps::new();
    let call = call.with_progress(steps.sink());
    let start = CallStartView {
        call_id: call.id().to_string(),
        tool: call.names().1.to_owned(),
        client: call.caller().client.to_string(),
        agent: call.caller().agent.to_string(),
    };
    Ok(steps.answer(start, ended(served, &who, call, attached)))
}

/// One call, in a task of its own or attached to its connection.
pub async fn run(
    served: Arc<Served>,
    who: &Who,
    tool: String,
    body: CallBody,
) -> Result<Response, ErrorResponse> {
    served.looked().await?;
    let attached = body.attached;
    let call = surface_call(&served, who, tool, body)?;
    answered(ended(served, who, call, attached).await)
}

fn surface_call(
    served: &Served,
    who: &Who,
    tool: String,
    body: CallBody,
) -> Result<SurfaceCall, CallError> {
    let CallBody {
        arguments,
        agent,
        run_id,
        session_id,
        message_id,
        attached: _,
    } = body;
    let who = match &agent {
        Some(agent) => &who.choose(agent, &served.crib)?,
        None => who,
    };
    let client = if who.is_owner() { COMMANDS } else { CLIENT };
    let call = SurfaceCall::new(who.caller(client), tool, arguments);
    Ok(call.with_ids(ClientIds {
        call: None,
        thread: session_id.clone(),
        run: run_id.clone(),
        session: session_id.or(run_id),
        message: message_id,
    }))
}

fn answered(ended: Result<Answer, CallError>) -> Result<Response, ErrorResponse> {
    Ok(json(StatusCode::OK, &OutcomeView::from(ended?.outcome)))
}

/// How a call ended. When its client goes away, Hyper drops this future, and with it a call that is attached. Any other
/// goes on in a task of its own.
fn ended(
    served: Arc<Served>,
    who: &Who,
    call: SurfaceCall,
    attached: bool,
) -> impl Future<Output = Result<Answer, CallError>> + Send + use<> {
    let unseen = unseen(&served, who, &call);
    let call_id = call.id().clone();
    let running = served.call(call);
    let running = match attached {
        true => Either::Left(AssertUnwindSafe(running).catch_unwind()),
        false => Either::Right(tokio::spawn(running)),
    };
    async move {
        let ended = match running {
            Either::Left(running) => running.await.map_err(|_| "it panicked".to_owned()),
            Either::Right(task) => task.await.map_err(|error| error.to_string()),
        };
        let ended = ended.map(|ended| match (ended, unseen) {
            (Err(error), Some(unseen)) if error.code == ErrorCode::UnknownTool => Err(unseen),
            (ended, _) => ended,
        });
        ended.unwrap_or_else(|error| {
            tracing::error!(%error, call = %call_id, "a call ended in a panic");
            Err(
                CallError::internal("the call failed inside Toolcrib").hint(format!(
                    "this is a bug in Toolcrib; the server's log says more under call {call_id}"
                )),
            )
        })
    }
}

/// Why the agent of a call does not see its tool, for who keeps the crib.
fn unseen(served: &Served, who: &Who, call: &SurfaceCall) -> Option<CallError> {
    let (agent, tool) = call.names();
    let view = served.crib.view(agent);
    match view.find(tool) {
        Ok(_) => None,
        Err(unknown) => Some(why_not(served, who, &view, tool, unknown)),
    }
}

/// Lists what did not load, and why.
#[utoipa::path(
    get, path = "/tools/errors", tag = "tools", operation_id = "listErrors",
    responses(
        (status = 200, description = "What did not load", body = ProblemList),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn errors(
    State(served): State<Arc<Served>>,
    who: Who,
) -> Result<Response, ErrorResponse> {
    served.looked().await?;
    let problems = ProblemList::from(&*served.kept(&who));
    Ok(json(StatusCode::OK, &problems))
}

/// Reads every source again. Answers when the new catalog is loaded.
#[utoipa::path(
    post, path = "/tools/reload", tag = "tools", operation_id = "reloadTools",
    responses(
        (status = 200, description = "What changed", body = ReloadView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn reload(
    State(served): State<Arc<Served>>,
    who: Who,
) -> Result<Response, ErrorResponse> {
    served.looked().await?;
    // A task of its own: a reload that was begun is brought to its end, whoever stopped waiting for it.
    match tokio::spawn((served.reload)()).await {
        Ok(change) => Ok(json(
            StatusCode::OK,
            &ReloadView::new(change, &served.kept(&who)),
        )),
        Err(error) => {
            tracing::error!(%error, "a reload ended in a panic");
            Err(CallError::internal("the reload failed inside Toolcrib")
                .hint("this is a bug in Toolcrib; the server's log says more")
                .into())
        }
    }
}
