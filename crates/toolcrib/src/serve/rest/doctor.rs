//! How tools are confined here, over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::sync::Mutex;
use toolcrib_core::CallError;

use super::{ErrorResponse, json, opened};
use crate::failure::Failure;
use crate::serve::Served;
use crate::wire::{ConfinementView, DoctorView, ErrorView, FeatureView};

/// Every tool's walls are worked out for an answer, so one is made at a time.
static TURN: Mutex<()> = Mutex::const_new(());

/// Says what this machine offers to confine tools, what enforces what for each of them, and what is wrong.
#[utoipa::path(
    get, path = "/doctor", tag = "crib", operation_id = "doctor",
    responses(
        (status = 200, body = DoctorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 500, description = "`internal`: the machine could not be looked over", body = ErrorView),
        (status = 503, description = "`unavailable`: this server has nothing to look over", body = ErrorView),
    )
)]
pub async fn look_over(State(served): State<Arc<Served>>) -> Result<Response, ErrorResponse> {
    let opened = opened(&served)?;
    let _turn = TURN.lock().await;
    let survey = opened.place.launcher.survey().await.map_err(|error| {
        let failure = Failure::new(
            toolcrib_core::ErrorCode::Internal,
            "this machine could not be looked over",
        );
        CallError::from(failure.cause(error))
    })?;
    let catalog = served.crib.tools();
    let mut tools = Vec::new();
    for tool in catalog.tools() {
        let walled = tool.run.walled(tool).await;
        tools.push(ConfinementView::new(tool, walled));
    }
    let project = served.project.as_deref();
    let view = DoctorView {
        project: project.map(|project| project.display().to_string()),
        sandbox_enabled: opened.settings.walls.none.is_none(),
        rung: survey.rung.map(|rung| rung.letter().to_string()),
        reason: survey.reason,
        remedy: survey.remedy,
        features: survey.features.into_iter().map(FeatureView::from).collect(),
        tools,
        degraded: opened.trouble().await,
    };
    Ok(json(StatusCode::OK, &view))
}
