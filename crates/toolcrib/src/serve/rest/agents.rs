//! Agents over REST: what each sees, and why not.

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use toolcrib_core::{CallError, View};

use super::{ErrorResponse, json, named};
use crate::serve::Served;
use crate::serve::auth::Who;
use crate::wire::{AgentList, AgentView, ErrorView};

/// Lists the agents: with a token for one agent that one alone, and what it sees; for who keeps the crib all of them, and
/// why each does not see the other tools.
#[utoipa::path(
    get, path = "/agents", tag = "agents", operation_id = "listAgents",
    responses(
        (status = 200, description = "The agents, `default` first", body = AgentList),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn list(State(served): State<Arc<Served>>, who: Who) -> Result<Response, ErrorResponse> {
    served.looked().await?;
    let agents: Vec<AgentView> = match who.keeps() {
        true => {
            let all = served.kept(&who);
            let views = served.crib.views();
            views
                .iter()
                .map(|view| AgentView::whole(view, &all))
                .collect()
        }
        false => vec![AgentView::own(&served.view(&who))],
    };
    let count = agents.len();
    Ok(json(StatusCode::OK, &AgentList { agents, count }))
}

/// Shows one agent.
#[utoipa::path(
    get, path = "/agents/{name}", tag = "agents", operation_id = "showAgent",
    params(("name" = String, Path, description = "The agent's name")),
    responses(
        (status = 200, description = "The agent", body = AgentView),
        (status = 400, description = "`bad_request`: the name is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: the token is for another agent, the agent is a subagent, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such agent", body = ErrorView),
        (status = 503, description = "`unavailable`: the crib is starting and has not seen the tools yet", body = ErrorView),
    )
)]
pub async fn show(
    State(served): State<Arc<Served>>,
    who: Who,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    let name = named(name)?;
    served.looked().await?;
    let view = view_of(&served, &who, &name)?;
    let agent = match who.keeps() {
        true => AgentView::whole(&view, &served.kept(&who)),
        false => AgentView::own(&view),
    };
    Ok(json(StatusCode::OK, &agent))
}

/// What an agent sees, for who may be that agent or keeps the crib.
pub fn view_of(served: &Served, who: &Who, agent: &str) -> Result<Arc<View>, CallError> {
    if !who.keeps() {
        return Ok(served.view(&who.choose(agent, &served.crib)?));
    }
    let mut views = served.crib.views().into_iter();
    match views.find(|view| view.profile().name() == agent) {
        Some(view) => Ok(view),
        None => Err(served.crib.admits(agent).err().unwrap_or_else(|| {
            CallError::unavailable("the settings have just changed").hint("ask again")
        })),
    }
}
