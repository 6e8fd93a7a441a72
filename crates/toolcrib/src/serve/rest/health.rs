//! How the crib is doing: for people (`/health`) and for whoever starts and watches it (`/healthz`, `/readyz`).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use super::{json, json_bytes};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{ErrorView, HealthView, ReadyView};

/// Gives version, catalog version, project, and how many tools have each status.
#[utoipa::path(
    get, path = "/health", tag = "crib", operation_id = "health",
    responses(
        (status = 200, description = "How the crib is", body = HealthView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
    )
)]
pub async fn health(State(served): State<Arc<Served>>, who: Who) -> Response {
    let view = served.kept(&who);
    let ReadyView { status, reasons } = standing(&served).await;
    let project_line = match &served.opened {
        Some(opened) => Some(opened.project_line_now().await),
        None => None,
    };
    let counts = view.counts_by_status().into_iter();
    let counts: BTreeMap<String, usize> = counts
        .map(|(status, count)| (status.as_str().to_owned(), count))
        .collect();
    let view = HealthView {
        status,
        reasons,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        catalog_version: view.version(),
        project: served
            .project
            .as_ref()
            .map(|project| project.display().to_string()),
        project_line,
        counts,
    };
    json(StatusCode::OK, &view)
}

/// Answers as soon as the port does.
#[utoipa::path(
    get, path = "/healthz", tag = "crib", operation_id = "alive",
    responses(
        (status = 200, description = "The server answers", content_type = "application/json"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
    )
)]
pub async fn healthz() -> Response {
    json_bytes(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Says whether the first full catalog is loaded, and what does not work.
#[utoipa::path(
    get, path = "/readyz", tag = "crib", operation_id = "ready",
    responses(
        (status = 200, description = "Takes calls: `ready`, or `degraded` with reasons", body = ReadyView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "Not yet (`starting`) or no longer (`stopping`)", body = ReadyView),
    )
)]
pub async fn readyz(State(served): State<Arc<Served>>) -> Response {
    let view = standing(&served).await;
    let status = match view.status.as_str() {
        "ready" | "degraded" => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    json(status, &view)
}

async fn standing(served: &Served) -> ReadyView {
    let ready = served.readiness().await;
    let status = if served.shutdown.is_cancelled() {
        "stopping"
    } else if !ready.loaded {
        "starting"
    } else if ready.reasons.is_empty() {
        "ready"
    } else {
        "degraded"
    };
    ReadyView {
        status: status.to_owned(),
        reasons: ready.reasons,
    }
}
