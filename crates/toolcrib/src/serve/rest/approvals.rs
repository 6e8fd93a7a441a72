//! Approvals over REST: listed, shown, decided; and decisions that come in as signed webhooks.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use toolcrib_core::store::{Approval, ApprovalState};
use toolcrib_core::{CallError, ErrorCode};
use utoipa::IntoParams;

use super::calls::project;
use super::{ErrorResponse, bad_request, body, json, named, queried};
use crate::approver::{Approver, webhook};
use crate::serve::Served;
use crate::serve::auth::{Decider, Scope, Who};
use crate::wire::{ApprovalCallback, ApprovalDecision, ApprovalList, ApprovalView, ErrorView};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 1_000;

/// Which approvals to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    /// Only those in this state, such as `pending`.
    #[param(example = "pending")]
    state: Option<String>,
    /// Only those of this project: its root, or `*` for all; the project that is served when it is not given.
    #[param(example = "*")]
    project: Option<String>,
    /// At most this many (1 to 1000; 100 if not given).
    limit: Option<usize>,
}

pub fn approver(served: &Served) -> Result<&Approver, CallError> {
    served.approver.as_deref().ok_or_else(|| {
        CallError::unavailable("this server keeps no approvals")
            .hint("start one with `toolcrib serve`")
    })
}

/// Refuses who may neither decide nor keep the crib, and tokens that are for one agent: an agent does not read what others
/// ask, and decides on no call.
pub fn may_look(who: &Who) -> Result<(), CallError> {
    who.for_all_agents()?;
    match who.may(Scope::Manage) || who.may(Scope::Approve) {
        true => Ok(()),
        false => Err(CallError::new(
            ErrorCode::Forbidden,
            "the token has neither the scope `approve` nor `manage`",
        )
        .hint("make one that has: `toolcrib token create NAME --scope read,approve`")),
    }
}

fn view(approver: &Approver, approval: &Approval) -> ApprovalView {
    ApprovalView::new(approval, approver.url(&approval.id))
}

/// Lists approvals, newest first. Takes the scope `approve` or `manage` besides.
#[utoipa::path(
    get, path = "/approvals", tag = "approvals", operation_id = "listApprovals", params(Filter),
    responses(
        (status = 200, description = "The approvals, newest first", body = ApprovalList),
        (status = 400, description = "`bad_request`: a filter is unknown or has no such value", body = ErrorView),
        (status = 403, description = "`forbidden`: neither `approve` nor `manage`, or foreign Host or Origin", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn list(
    State(served): State<Arc<Served>>,
    who: Who,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Response, ErrorResponse> {
    may_look(&who)?;
    let asked = queried(filter, "it takes `state`, `project` and `limit`")?;
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(bad_request(format!("`limit` must be from 1 to {MAX_LIMIT}")).into());
    }
    let state = asked.state.as_deref().map(state).transpose()?;
    let approver = approver(&served)?;
    let project = project(&served, asked.project);
    let found = approver.list(project.as_deref(), state, limit).await?;
    let approvals: Vec<ApprovalView> = found.iter().map(|one| view(approver, one)).collect();
    let count = approvals.len();
    Ok(json(StatusCode::OK, &ApprovalList { approvals, count }))
}

fn state(word: &str) -> Result<ApprovalState, CallError> {
    ApprovalState::parse(word).ok_or_else(|| {
        let word: String = word.chars().take(40).collect();
        let known = ApprovalState::ALL.map(ApprovalState::as_str).join(", ");
        bad_request(format!("there is no state `{word}`")).hint(format!("use one of: {known}"))
    })
}

/// Shows one approval. Takes the scope `approve` or `manage` besides.
#[utoipa::path(
    get, path = "/approvals/{id}", tag = "approvals", operation_id = "showApproval",
    params(("id" = String, Path, description = "`id` in the list")),
    responses(
        (status = 200, description = "The approval", body = ApprovalView),
        (status = 400, description = "`bad_request`: the id is not UTF-8", body = ErrorView),
        (status = 403, description = "`forbidden`: neither `approve` nor `manage`, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such approval", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn show(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ErrorResponse> {
    may_look(&who)?;
    let approver = approver(&served)?;
    let approval = approver.get(&named(id)?).await?;
    Ok(json(StatusCode::OK, &view(approver, &approval)))
}

/// Decides on a call that waits. At the socket, the process that asks must be a person's at a terminal.
#[utoipa::path(
    post, path = "/approvals/{id}", tag = "approvals", operation_id = "decideApproval",
    params(("id" = String, Path, description = "`id` in the list")),
    request_body(content = ApprovalDecision, description = "At most 10 MB"),
    responses(
        (status = 200, description = "It is decided; the same call now runs, once, or gets the answer", body = ApprovalView),
        (status = 400, description = "`bad_request`: the body is not a decision", body = ErrorView),
        (status = 403, description = "`forbidden`: nobody who may decide, not among what may be decided, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such approval", body = ErrorView),
        (status = 409, description = "`conflict`: it was decided already, or is over", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 422, description = "`invalid_arguments`: the tool does not take the edited arguments", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn decide(
    State(served): State<Arc<Served>>,
    who: Who,
    id: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Response, ErrorResponse> {
    who.for_all_agents()?;
    let decider = who.decider()?;
    let bytes = body::read(body).await?;
    let wanted: ApprovalDecision = body::parse(&bytes)
        .map_err(|error| error.hint("send a JSON object such as {\"decision\": \"approve\"}"))?;
    served.looked().await?;
    let approver = approver(&served)?;
    let decided = approver
        .decide(&decider, &named(id)?, wanted.read()?)
        .await?;
    Ok(json(StatusCode::OK, &view(approver, &decided)))
}

/// Takes a decision that is signed with the secret of `approvals.webhook`, as Standard Webhooks say.
#[utoipa::path(
    post, path = "/webhooks/approvals", tag = "approvals", operation_id = "approvalCallback",
    params(
        ("webhook-id" = String, Header, description = "The message's own id"),
        ("webhook-timestamp" = String, Header, description = "Seconds since the epoch, within five minutes of now"),
        ("webhook-signature" = String, Header, description = "`v1,` and the HMAC-SHA256 of `id.timestamp.body` in base64"),
    ),
    request_body(content = ApprovalCallback, description = "At most 10 MB"),
    responses(
        (status = 200, description = "It is decided", body = ApprovalView),
        (status = 400, description = "`bad_request`: the body is not a decision", body = ErrorView),
        (status = 401, description = "`unauthorized`: the signature or the time does not fit", body = ErrorView),
        (status = 403, description = "`forbidden`: not among what may be decided, or foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: there is no such approval, or no webhook is set up", body = ErrorView),
        (status = 409, description = "`conflict`: it was decided already, or is over", body = ErrorView),
        (status = 413, description = "`too_large`: the body is over 10 MB", body = ErrorView),
        (status = 422, description = "`invalid_arguments`: the tool does not take the edited arguments", body = ErrorView),
        (status = 503, description = "`unavailable`: the store can't be used", body = ErrorView),
    )
)]
pub async fn callback(
    State(served): State<Arc<Served>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ErrorResponse> {
    let approver = approver(&served)?;
    let Some(webhook) = approver.webhook() else {
        let error = CallError::new(ErrorCode::NotFound, "no webhook is set up here");
        return Err(error
            .hint("`[approvals.webhook]` in your config.toml sets one up")
            .into());
    };
    let header = |name: &str| {
        let mut all = headers.get_all(name).iter();
        let one = all.next()?.to_str().ok()?.to_owned();
        // Two of a name: nobody knows which one was signed.
        all.next().is_none().then_some(one)
    };
    let bytes = body::read(body).await?;
    let verified = webhook::verify(&webhook.secret, header, bytes.to_vec())?;
    let wanted: ApprovalCallback = serde_json::from_slice(&verified.body)
        .map_err(|error| bad_request(format!("the body is not a decision: {error}")))?;
    let decider = Decider::of_webhook(&verified, wanted.by.as_deref());
    let decision = ApprovalDecision::try_from(wanted.decision)?.read()?;
    served.looked().await?;
    let decided = approver.decide(&decider, &wanted.id, decision).await?;
    Ok(json(StatusCode::OK, &view(approver, &decided)))
}
