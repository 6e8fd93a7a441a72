//! Who asks, as the crib sees it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::json;
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{ErrorView, MeView};

/// Says who asks: how they are known, what they may do, for which agent and in which project.
#[utoipa::path(
    get, path = "/me", tag = "crib", operation_id = "me",
    responses(
        (status = 200, description = "Who asks", body = MeView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
    )
)]
pub async fn me(State(served): State<Arc<Served>>, who: Who) -> Response {
    let project = served.project.as_deref();
    let view = MeView {
        who: who.word().to_owned(),
        token_id: who.token_id().map(|id| id.to_string()),
        scopes: who.scopes().names(),
        agent: who.agent().to_owned(),
        project: project.map(|project| project.display().to_string()),
    };
    json(StatusCode::OK, &view)
}
