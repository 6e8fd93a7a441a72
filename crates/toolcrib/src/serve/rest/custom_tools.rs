//! Registered tools over REST: made, changed, looked at, tried out.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolcrib_core::store::{CustomTool, RegisteredStatus};
use toolcrib_core::{CallError, ErrorCode, SourceKind, Tool, View};
use toolcrib_store::ToolPage;
use utoipa::IntoParams;

use super::tools::CheckQuery;
use super::{ErrorResponse, bad_request, body, json, named, queried, tools};
use crate::registrar::{By, Registrar, SavedTool, missing};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{
    CallBody, CheckView, CustomToolCreate, CustomToolList, CustomToolUpdate, CustomToolView,
    ErrorView, OutcomeView, TestBody, ValidationView,
};

/// The largest page, and the one that is given when nobody asks for another.
const MAX_LIMIT: u64 = 1_000;
const LIMIT: u64 = 100;

/// Which registered tools to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Only tools of this status: `active`, `inactive` or `error`.
    #[param(example = "active")]
    status: Option<String>,
    /// At most this many tools (1 to 1000; 100 if not given).
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// Skip this many at the beginning.
    #[param(minimum = 0)]
    offset: Option<u64>,
}

fn registrar(served: &Served) -> Result<&Registrar, ErrorResponse> {
    served.registrar.as_deref().ok_or_else(|| {
        CallError::unavailable("this server keeps no registrations")
            .hint("start one with `toolcrib serve`")
            .into()
    })
}

/// May whoever has this view know of a registered tool of this name?
fn shows(view: &View, name: &str) -> bool {
    let registered = |tool: &Arc<Tool>| tool.source == SourceKind::Registered;
    view.shows_all() || view.get(name).is_some_and(registered)
}

/// The name in the path, if whoever asks may know of it.
fn seen(
    served: &Served,
    who: &Who,
    path: Result<Path<String>, PathRejection>,
) -> Result<String, ErrorResponse> {
    let name = named(path)?;
    match shows(&served.kept(who), &name) {
        true => Ok(name),
        false => Err(missing(&name).into()),
    }
}

/// What a registered tool looks like now: what is stored, and how its process is doing.
fn view(registrar: &Registrar, tool: CustomTool) -> CustomToolView {
    let live = registrar.live_health(&tool.name);
    let mut view = CustomToolView::from(tool);
    if let Some((health, checked)) = live {
        view.health_status = health.as_str().to_owned();
        view.last_health_check = checked.or(view.last_health_check);
    }
    view
}

/// Who registers: the owner comes by a way that nobody else has, everybody else by the port.
fn by(who: &Who) -> By {
    match who.is_owner() {
        true => By::Owner,
        false => By::Port,
    }
}

fn kept(registrar: &Registrar, status: StatusCode, kept: SavedTool) -> Response {
    let mut view = view(registrar, kept.tool);
    view.warnings = kept.warnings;
    json(status, &view)
}

async fn object(body: Body) -> Result<Map<String, Value>, CallError> {
    let bytes = body::read(body).await?;
    let shape = "send a JSON object such as {\"name\": \"weather\", \"command\": \"./weather\"}";
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(bad_request("the body does not fit: it must be a JSON object").hint(shape)),
        Err(_) if bytes.trim_ascii().is_empty() => {
            Err(bad_request("the body is empty").hint(shape))
        }
        Err(error) => Err(bad_request(format!("the body is not valid JSON: {error}")).hint(shape)),
    }
}

/// Lists the registered tools, sorted by name.
#[utoipa::path(
    get, path = "/custom-tools", tag = "custom-tools", operation_id = "listCustomTools", params(Filter),
    responses(
        (status = 200, description = "A page of registered tools", body = CustomToolList),
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
    let filter = queried(filter, "it takes `status`, `limit` and `offset`")?;
    let limit = filter.limit.unwrap_or(LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let error = bad_request(format!("`limit` must be from 1 to {MAX_LIMIT}"));
        return Err(error.hint("use `offset` to see the next page").into());
    }
    let status = match filter.status.as_deref() {
        None => None,
        Some(word) => Some(RegisteredStatus::parse(word).ok_or_else(|| {
            let word: String = word.chars().take(64).collect();
            bad_request(format!("there is no status `{word}`"))
                .hint("use one of: active, inactive, error")
        })?),
    };
    let registrar = registrar(&served)?;
    // No database counts further, and nobody has as many tools.
    let offset = filter.offset.unwrap_or(0).min(i64::MAX as u64);
    let page = page(registrar, &served.kept(&who), status, offset, limit).await?;
    let list = CustomToolList {
        tools: page
            .tools
            .into_iter()
            .map(|tool| view(registrar, tool))
            .collect(),
        total: page.total,
    };
    Ok(json(StatusCode::OK, &list))
}

/// A page of those that this view shows.
async fn page(
    registrar: &Registrar,
    view: &View,
    status: Option<RegisteredStatus>,
    offset: u64,
    limit: u64,
) -> Result<ToolPage, CallError> {
    if view.shows_all() {
        return registrar.list(status, offset, limit).await;
    }
    let mut tools = Vec::new();
    loop {
        let next = registrar
            .list(status, tools.len() as u64, MAX_LIMIT)
            .await?;
        tools.extend(next.tools);
        if tools.len() as u64 >= next.total {
            break;
        }
    }
    tools.retain(|tool| shows(view, &tool.name));
    let total = tools.len() as u64;
    let tools = tools.into_iter().skip(offset as usize).take(limit as usize);
    Ok(ToolPage {
        tools: tools.collect(),
        total,
    })
}

/// Registers a tool. Its program is started and asked what it is, unless `validate` is false.
#[utoipa::path(
    post, path = "/custom-tools", tag = "custom-tools", operation_id = "createCustomTool",
    request_body(content = CustomToolCreate, description = "At most 10 MB"),
    responses(
        (status = 201, description = "Registered: `active`, or `inactive` where `validate` was false", body = CustomToolView),
        (status = 400, description = "`bad_request`: a field is wrong, or the program is not valid; `data.errors` has the reasons", body = ErrorView),
        (status = 403, description = "`denied`: registered tools are turned off, or your settings run this name without the sandbox; `forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 409, description = "`conflict`: a registered tool, a file's tool or a built-in tool has this name", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 429, description = "`limit_reached`: too many programs are being validated", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn create(
    State(served): State<Arc<Served>>,
    who: Who,
    body: Body,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let registrar = registrar(&served)?;
    let made = registrar.create(object(body).await?, by(&who)).await?;
    Ok(kept(registrar, StatusCode::CREATED, made))
}

/// Shows one registered tool. Values of its variables are never shown.
#[utoipa::path(
    get, path = "/custom-tools/{name}", tag = "custom-tools", operation_id = "showCustomTool",
    params(("name" = String, Path, description = "The tool's name")),
    responses(
        (status = 200, description = "The registered tool", body = CustomToolView),
        (status = 400, description = "`bad_request`: the name is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such registered tool", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn show(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    let name = seen(&served, &who, name)?;
    let registrar = registrar(&served)?;
    let tool = registrar.get(&name).await?;
    Ok(json(StatusCode::OK, &view(registrar, tool)))
}

/// Changes a registered tool. Its program is validated again if the change may matter to it.
#[utoipa::path(
    patch, path = "/custom-tools/{name}", tag = "custom-tools", operation_id = "updateCustomTool",
    params(("name" = String, Path, description = "The tool's name")),
    request_body(content = CustomToolUpdate, description = "At most 10 MB; only what is named is changed"),
    responses(
        (status = 200, description = "The registered tool as it is now", body = CustomToolView),
        (status = 400, description = "`bad_request`: a field is wrong, a new name, or the program is not valid; nothing was changed", body = ErrorView),
        (status = 403, description = "`denied`: registered tools are turned off, or your settings run this name without the sandbox; `forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such registered tool", body = ErrorView),
        (status = 409, description = "`conflict`: somebody else changed it in the meantime", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 429, description = "`limit_reached`: too many programs are being validated", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn update(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let name = seen(&served, &who, name)?;
    let registrar = registrar(&served)?;
    let body = object(body).await?;
    let changed = registrar.change(&name, body, by(&who)).await?;
    Ok(kept(registrar, StatusCode::OK, changed))
}

/// Unregisters a tool.
#[utoipa::path(
    delete, path = "/custom-tools/{name}", tag = "custom-tools", operation_id = "deleteCustomTool",
    params(("name" = String, Path, description = "The tool's name")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 400, description = "`bad_request`: the name is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such registered tool", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn remove(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let name = seen(&served, &who, name)?;
    registrar(&served)?.remove(&name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Starts the tool's program and says whether it is what is stored. A tool that had failed serves again if it is valid.
#[utoipa::path(
    post, path = "/custom-tools/{name}/validate", tag = "custom-tools", operation_id = "validateCustomTool",
    params(("name" = String, Path, description = "The tool's name")),
    responses(
        (status = 200, description = "What was found", body = ValidationView),
        (status = 400, description = "`bad_request`: the name is not UTF-8", body = ErrorView),
        (status = 403, description = "`denied`: registered tools are turned off; `forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such registered tool", body = ErrorView),
        (status = 429, description = "`limit_reached`: too many programs are being validated", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn validate(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let name = seen(&served, &who, name)?;
    let examined = registrar(&served)?.validate(&name).await?;
    Ok(json(StatusCode::OK, &ValidationView::from(examined)))
}

/// Tells at once how the tool's process was when it was last asked. With `check=true` it is asked now, and started if need
/// be, where the tool is `active`.
#[utoipa::path(
    get, path = "/custom-tools/{name}/health", tag = "custom-tools", operation_id = "checkCustomTool",
    params(("name" = String, Path, description = "The tool's name"), CheckQuery),
    responses(
        (status = 200, description = "How the tool is", body = CheckView),
        (status = 400, description = "`bad_request`: the name is not UTF-8, or the query is unknown", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such registered tool", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn health(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
    query: Result<Query<CheckQuery>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let asked = tools::asked(query)?;
    let name = seen(&served, &who, name)?;
    let checked = registrar(&served)?.health(&name, asked).await?;
    Ok(json(StatusCode::OK, &checked))
}

/// Calls a registered tool, as `/tools/{name}/call` does.
#[utoipa::path(
    post, path = "/custom-tools/{name}/test", tag = "custom-tools", operation_id = "testCustomTool",
    params(("name" = String, Path, description = "The tool's name")),
    request_body(content = TestBody, description = "At most 10 MB; an empty body means no arguments"),
    responses(
        (status = 200, description = "The outcome; `isError` when the tool reports failure", body = OutcomeView),
        (status = 202, description = "`approval_pending`: waits for a person", body = ErrorView),
        (status = 400, description = "`bad_request`: the body is not the expected JSON", body = ErrorView),
        (status = 403, description = "`denied`: not granted; `forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such registered tool", body = ErrorView),
        (status = 409, description = "`conflict`: it is not `active`, so it is not in the catalog", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 422, description = "`invalid_arguments`: the arguments do not fit the tool's schema; `data` says where", body = ErrorView),
        (status = 429, description = "`limit_reached`", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
        (status = 502, description = "`crashed`: the worker died", body = ErrorView),
        (status = 503, description = "`unavailable`: the tool can't be started, or the store can't be used", body = ErrorView),
        (status = 504, description = "`timed_out`: the call was stopped at its deadline", body = ErrorView),
    )
)]
pub async fn test(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let name = seen(&served, &who, name)?;
    let bytes = body::read(body).await?;
    let TestBody { input } = body::parse(&bytes).map_err(|error| match error.code {
        ErrorCode::BadRequest => {
            error.hint("send a JSON object such as {\"input\": {\"name\": \"value\"}}")
        }
        _ => error,
    })?;
    registrar(&served)?.callable(&name).await?;
    let body = CallBody {
        arguments: input,
        ..CallBody::default()
    };
    tools::run(served, &who, name, body).await
}
