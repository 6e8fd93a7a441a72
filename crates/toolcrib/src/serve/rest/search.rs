//! Tools by what somebody wants to do.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use toolcrib_core::search;
use utoipa::IntoParams;

use super::{ErrorResponse, bad_request, json, queried};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{Detail, ErrorView, SearchView};

const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 100;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Asked {
    /// What somebody wants to do, in words; or a tool's name.
    q: String,
    /// At most so many matches, up to 100 (10).
    limit: Option<usize>,
    /// Only tools of this module, such as `local` or `mcp.github`.
    namespace: Option<String>,
}

/// Finds the tools that fit, best first. Where none does, it says so.
#[utoipa::path(
    get, path = "/search", tag = "tools", operation_id = "searchTools", params(Asked),
    responses(
        (status = 200, description = "The tools that fit, or `message` where none does", body = SearchView),
        (status = 400, description = "`bad_request`: `q` is missing, or `limit` is too large", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn search(
    State(served): State<Arc<Served>>,
    who: Who,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let takes = "it takes `q`, `limit` (1 to 100) and `namespace`";
    let asked = queried(asked, takes)?;
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let message = format!("`limit` is 1 to {MAX_LIMIT}, not {limit}");
        return Err(bad_request(message).hint(takes).into());
    }
    served.looked().await?;
    served.settled().await;
    let view = served.view(&who);
    let query = search::Query {
        text: &asked.q,
        limit,
        namespace: asked.namespace.as_deref(),
    };
    Ok(json(
        StatusCode::OK,
        &SearchView::of(&view, &query, Detail::Full),
    ))
}
