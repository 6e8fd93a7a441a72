//! Grants over REST: given, listed, taken back.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use toolcrib_core::CallError;
use utoipa::IntoParams;

use super::calls::project;
use super::{ErrorResponse, bad_request, body, json, named, queried};
use crate::grantor::Grantor;
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{ErrorView, GrantCreate, GrantList, GrantView};

/// Which grants to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Only grants to tools of this name.
    #[param(example = "weather_lookup")]
    tool: Option<String>,
    /// Only grants to tools of this project: its root, or `*` for all. When it is not given: those of the project that is
    /// served, and those of your own tools.
    #[param(example = "*")]
    project: Option<String>,
}

fn grantor(served: &Served) -> Result<&Grantor, ErrorResponse> {
    served.grantor.as_deref().ok_or_else(|| {
        CallError::unavailable("this server keeps no grants")
            .hint("start one with `toolcrib serve`")
            .into()
    })
}

/// Lists what was granted, sorted by tool.
#[utoipa::path(
    get, path = "/grants", tag = "grants", operation_id = "listGrants", params(Filter),
    responses(
        (status = 200, description = "The grants", body = GrantList),
        (status = 400, description = "`bad_request`: a filter is unknown", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn list(
    State(served): State<Arc<Served>>,
    who: Who,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    let filter = queried(filter, "it takes `tool` and `project`")?;
    let list = grantor(&served)?.list(filter.tool.as_deref()).await?;
    let own = served.project.as_ref().map(|root| root.to_string_lossy());
    let wanted = project(&served, filter.project.clone());
    let named = filter.project.is_some();
    let fits = |grant: &GrantView| match (&wanted, &grant.project) {
        (None, _) => true,
        (Some(wanted), Some(project)) => wanted == project,
        (Some(_), None) => !named,
    };
    let views = list.into_iter().map(|grant| match &own {
        Some(own) => GrantView::from(grant).within(own),
        None => GrantView::from(grant),
    });
    let view = served.kept(&who);
    let seen = |grant: &GrantView| view.shows_all() || view.get(&grant.tool).is_some();
    let list: Vec<GrantView> = views.filter(fits).filter(seen).collect();
    Ok(json(StatusCode::OK, &GrantList::from(list)))
}

/// Grants a tool what it declares (`all`), or what is named. The grant is for the tool as it is now, unless `follow`.
#[utoipa::path(
    post, path = "/grants", tag = "grants", operation_id = "createGrant",
    request_body(content = GrantCreate, description = "At most 10 MB"),
    responses(
        (status = 201, description = "Granted; agents can call it now, if nothing else is missing", body = GrantView),
        (status = 400, description = "`bad_request`: a field is wrong, or there is nothing to grant", body = ErrorView),
        (status = 403, description = "`denied`: its project is not trusted; `forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`unknown_tool`: there is no such tool", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn create(
    State(served): State<Arc<Served>>,
    who: Who,
    body: Body,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let shape = "send a JSON object such as {\"tool\": \"weather\", \"all\": true}";
    let bytes = body::read(body).await?;
    let wanted: GrantCreate = body::parse(&bytes).map_err(|error| error.hint(shape))?;
    if wanted.tool.is_empty() {
        return Err(bad_request("`tool` is missing").hint(shape).into());
    }
    // What it declares is known once it is loaded.
    served.looked().await?;
    served.described_to_keeper(&wanted.tool).await;
    served.kept(&who).find(&wanted.tool)?;
    let grant = grantor(&served)?.give(&wanted).await?;
    Ok(json(StatusCode::CREATED, &GrantView::from(grant)))
}

/// Takes a grant back. A tool that relied on it is `denied` from now on.
#[utoipa::path(
    delete, path = "/grants/{id}", tag = "grants", operation_id = "deleteGrant",
    params(("id" = String, Path, description = "`id` in the list")),
    responses(
        (status = 204, description = "It is gone"),
        (status = 400, description = "`bad_request`: the id is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such grant", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn remove(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let (grantor, id) = (grantor(&served)?, named(id)?);
    grantor.take(&id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
