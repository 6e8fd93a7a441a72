//! How tools are confined here, over REST.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::sync::Mutex;

use super::{ErrorResponse, json, opened};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{ConfinementView, DoctorView, ErrorView, FeatureView, ProblemList};

/// Every tool's walls are worked out for an answer, so one is made at a time.
static TURN: Mutex<()> = Mutex::const_new(());

const REMEDY: &str =
    "free some space on the disk of Toolcrib's data folder and of /tmp, then ask again";

/// Says what this machine offers to confine tools, what enforces what for each of them, and what is wrong.
#[utoipa::path(
    get, path = "/doctor", tag = "crib", operation_id = "doctor",
    responses(
        (status = 200, description = "What was found", body = DoctorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: this server has nothing to examine", body = ErrorView),
    )
)]
pub async fn look_over(
    State(served): State<Arc<Served>>,
    who: Who,
) -> Result<Response, ErrorResponse> {
    let opened = opened(&served)?;
    served.looked().await?;
    let _turn = TURN.lock().await;
    // A machine in such trouble that it can't be looked over is what a doctor is asked about.
    let survey = opened.place.launcher.survey().await;
    let (rung, reason, remedy, features) = match survey {
        Ok(survey) => (survey.rung, survey.reason, survey.remedy, survey.features),
        Err(error) => (
            None,
            format!("this machine could not be looked over: {error}"),
            Some(REMEDY.to_owned()),
            Vec::new(),
        ),
    };
    let view = served.kept(&who);
    let mut tools = Vec::new();
    for tool in view.tools().filter(|tool| !tool.is_off()) {
        let walled = tool.run.walled(tool).await;
        tools.push(ConfinementView::new(tool, walled));
    }
    let all = ProblemList::from(&*view);
    let failed = all
        .errors
        .into_iter()
        .filter(|one| one.severity == "error")
        .collect();
    let project = served.project.as_deref();
    let view = DoctorView {
        project: project.map(|project| project.display().to_string()),
        sandbox_enabled: opened.settings.walls.none.is_none(),
        rung: rung.map(|rung| rung.letter().to_string()),
        reason,
        remedy,
        features: features.into_iter().map(FeatureView::from).collect(),
        tools,
        failed,
        degraded: opened.trouble().await,
    };
    Ok(json(StatusCode::OK, &view))
}
