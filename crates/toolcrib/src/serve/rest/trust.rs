//! Trust over REST: given to the project that is served, listed, taken back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use toolcrib_core::CallError;
use utoipa::IntoParams;

use super::{ErrorResponse, bad_request, body, json, queried};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::truster::{Reaches, Truster};
use crate::wire::{ErrorView, TrustCreate, TrustGiven, TrustList, TrustTaken};

/// Whose trust is taken back.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Whose {
    /// The path of a tool that is trusted by itself; the whole project when it is not given.
    path: Option<String>,
}

fn truster(served: &Served) -> Result<Arc<Truster>, ErrorResponse> {
    served.truster.clone().ok_or_else(|| {
        CallError::unavailable("this server remembers no trust")
            .hint("start one with `toolcrib serve`")
            .into()
    })
}

/// The owner comes by a way that nobody else has, and has it of all projects.
fn reaches(who: &Who) -> Reaches {
    match who.is_owner() {
        true => Reaches::Everything,
        false => Reaches::ThisProject,
    }
}

/// Lists what is trusted in the project that is served; for the owner on this machine, all that is trusted.
#[utoipa::path(
    get, path = "/trust", tag = "trust", operation_id = "listTrust",
    responses(
        (status = 200, description = "The projects that are trusted", body = TrustList),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn list(State(served): State<Arc<Served>>, who: Who) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let list = truster(&served)?.list(reaches(&who)).await?;
    Ok(json(StatusCode::OK, &list))
}

/// Trusts the project that is served, and grants what its tools declare, as they are now. A browser's login is not enough.
#[utoipa::path(
    post, path = "/trust", tag = "trust", operation_id = "trust",
    request_body(content = TrustCreate, description = "At most 10 MB; an empty body grants what the tools declare"),
    responses(
        (status = 200, description = "What was trusted", body = TrustGiven),
        (status = 400, description = "`bad_request`: a field is wrong, or no project is served", body = ErrorView),
        (status = 403, description = "`denied`: others can change the project; `forbidden`: a browser's login, or foreign Host or Origin", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn create(
    State(served): State<Arc<Served>>,
    who: Who,
    body: Body,
) -> Result<Response, ErrorResponse> {
    who.decides()?;
    who.for_all_agents()?;
    let shape = "send a JSON object such as {\"noGrants\": true}, or nothing";
    let bytes = body::read(body).await?;
    let wanted: TrustCreate = body::parse(&bytes).map_err(|error| error.hint(shape))?;
    let (truster, reaches) = (truster(&served)?, reaches(&who));
    // A task of its own: what was begun is brought to its end, whoever stopped waiting for it.
    let given = tokio::spawn(async move { truster.give(&wanted, reaches).await });
    Ok(json(StatusCode::OK, &ended(given.await)?))
}

/// Takes trust back from the project that is served, or from one tool in it, and revokes what was granted there. A
/// browser's login is not enough.
#[utoipa::path(
    delete, path = "/trust", tag = "trust", operation_id = "untrust", params(Whose),
    responses(
        (status = 200, description = "What is no longer trusted", body = TrustTaken),
        (status = 400, description = "`bad_request`: the query can't be read, or no project is served", body = ErrorView),
        (status = 403, description = "`denied`: the path is in another project; `forbidden`: a browser's login, or foreign Host or Origin", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn remove(
    State(served): State<Arc<Served>>,
    who: Who,
    whose: Result<Query<Whose>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    who.decides()?;
    who.for_all_agents()?;
    let Whose { path } = queried(whose, "it takes `path`")?;
    // `/a//b/` is written `/a/b` in the book.
    let path = path.map(|path| Path::new(&path).components().collect::<PathBuf>());
    if path.as_ref().is_some_and(|path| !path.is_absolute()) {
        return Err(bad_request("`path` does not begin at the root")
            .hint("GET /api/trust gives the paths")
            .into());
    }
    let (truster, reaches) = (truster(&served)?, reaches(&who));
    let taken = tokio::spawn(async move { truster.take(path.as_deref(), reaches).await });
    Ok(json(StatusCode::OK, &ended(taken.await)?))
}

fn ended<T>(
    ended: Result<Result<T, CallError>, tokio::task::JoinError>,
) -> Result<T, ErrorResponse> {
    ended
        .unwrap_or_else(|error| {
            tracing::error!(%error, "a change of trust ended in a panic");
            Err(CallError::internal("the change failed inside Toolcrib")
                .hint("this is a bug in Toolcrib; the server's log says more"))
        })
        .map_err(ErrorResponse::from)
}
