//! THE ROUTE TABLE: every route of REST, each in the file of its noun, and the one shape of every error.
//!
//! A new route is a function with `#[utoipa::path]` in its noun's file and one line in [`api`] or [`outside`], which
//! says what scope it needs; the OpenAPI document is made from the same table and can't say anything else.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use toolcrib_core::{CallError, ErrorCode};
use utoipa::OpenApi;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use security::Schemes;

use super::Served;
use super::auth::{Needs, Scope};
use crate::error::http_status;
use crate::open::Opened;
use crate::wire::{
    ApprovalEventView, AttachmentView, CallEndView, CallProgressView, CallStartView, ChangeView,
    ErrorView, LaggedView, StandingView, WorkerView,
};

mod agents;
mod approval_page;
mod approvals;
mod body;
mod calls;
mod custom_tools;
mod definitions;
mod docs;
mod doctor;
mod events;
mod grants;
mod health;
mod login;
mod logs;
mod me;
mod outputs;
mod search;
mod security;
mod streamed;
mod tokens;
mod tools;
mod trust;

pub use body::{MAX_BODY, read};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Toolcrib",
        description = "The tool crib for AI agents: list tools, call them, see how they are doing. Every route \
                       under `/api` is also there under `/api/v1`. Every error has one shape: \
                       `{\"error\": {\"code\", \"message\", \"hint\"}}`."
    ),
    tags(
        (name = "tools", description = "The catalog, and calls"),
        (name = "calls", description = "The record of calls"),
        (name = "custom-tools", description = "Tools that are registered by name and command"),
        (name = "agents", description = "Which agent sees which tools"),
        (name = "grants", description = "What tools may do beyond the default"),
        (name = "trust", description = "Whose code may run"),
        (name = "approvals", description = "Calls that wait for a person"),
        (name = "tokens", description = "Who is let in over HTTP"),
        (name = "outputs", description = "Whole outputs of calls whose answer was cut"),
        (name = "crib", description = "How the crib itself is doing"),
        (name = "docs", description = "This description"),
        (name = "login", description = "Browsers log in and out"),
    ),
    modifiers(&Schemes),
    // Those that no route answers with by itself: events, and parts of other shapes.
    components(schemas(
        ApprovalEventView, AttachmentView, CallEndView, CallProgressView, CallStartView, ChangeView, ErrorView, LaggedView,
        StandingView, WorkerView
    ))
)]
struct ApiDoc;

/// Under `/api` and `/api/v1`.
fn api() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(needs(Scope::Read, routes!(tools::list)))
        .routes(needs(Scope::Read, routes!(tools::errors)))
        .routes(needs(Scope::Manage, routes!(tools::reload)))
        .routes(needs(Scope::Read, routes!(definitions::definitions)))
        .routes(needs(Scope::Read, routes!(search::search)))
        .routes(needs(Scope::Read, routes!(tools::show)))
        .routes(needs(Scope::Read, routes!(tools::check)))
        .routes(needs(Scope::Call, routes!(tools::call)))
        .routes(needs(Scope::Read, routes!(custom_tools::list)))
        .routes(needs(Scope::Manage, routes!(custom_tools::create)))
        .routes(needs(Scope::Read, routes!(custom_tools::show)))
        .routes(needs(
            Scope::Manage,
            routes!(custom_tools::update, custom_tools::remove),
        ))
        .routes(needs(Scope::Manage, routes!(custom_tools::validate)))
        .routes(needs(Scope::Read, routes!(custom_tools::health)))
        .routes(needs(Scope::Call, routes!(custom_tools::test)))
        .routes(needs(Scope::Read, routes!(agents::list)))
        .routes(needs(Scope::Read, routes!(agents::show)))
        .routes(needs(Scope::Read, routes!(grants::list)))
        .routes(needs(Scope::Manage, routes!(grants::create)))
        .routes(needs(Scope::Manage, routes!(grants::remove)))
        .routes(needs(
            Scope::Manage,
            routes!(trust::list, trust::create, trust::remove),
        ))
        .routes(needs(Scope::Read, routes!(approvals::list)))
        .routes(needs(Scope::Read, routes!(approvals::show)))
        .routes(needs(Scope::Approve, routes!(approvals::decide)))
        .routes(needs(Scope::Manage, routes!(tokens::list, tokens::create)))
        .routes(needs(Scope::Manage, routes!(tokens::remove)))
        .routes(needs(Scope::Read, routes!(outputs::read)))
        .routes(needs(Scope::Manage, routes!(logs::read)))
        .routes(needs(Scope::Read, routes!(calls::list)))
        .routes(needs(Scope::Read, routes!(calls::show)))
        .routes(needs(Scope::Call, routes!(calls::cancel)))
        .routes(needs(Scope::Read, routes!(health::health)))
        .routes(needs(Scope::Read, routes!(doctor::look_over)))
        .routes(needs(Scope::Read, routes!(me::me)))
        .routes(needs(Scope::Read, routes!(events::listen)))
}

/// At the root.
fn outside() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::with_openapi(ApiDoc::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(login::log_in))
        .routes(routes!(approvals::callback))
        .routes(needs(Scope::Read, routes!(approval_page::show)))
        .routes(needs(Scope::Approve, routes!(approval_page::send)))
        .routes(needs(Scope::Read, routes!(login::log_out)))
        .routes(needs(Scope::Read, routes!(docs::openapi_json)))
        .routes(needs(Scope::Read, routes!(docs::page)))
        .routes(needs(Scope::Read, routes!(docs::config_schema)))
        .routes(needs(Scope::Read, routes!(docs::home)))
}

/// The only routes that need no token: one of them asks for a signature. All others ask for a scope; a test sees to it.
pub const OPEN: [&str; 4] = ["/healthz", "/readyz", "/login", "/webhooks/approvals"];

/// A route that needs a scope, and says so in the document.
fn needs(
    scope: Scope,
    (schemas, mut paths, router): UtoipaMethodRouter<Arc<Served>>,
) -> UtoipaMethodRouter<Arc<Served>> {
    security::describe(&mut paths, scope);
    (schemas, paths, router.route_layer(Needs(scope)))
}

/// Every route. Guard and door are laid around it by [`super::http::router`], and the owner's name by the socket;
/// without either no route but the open ones answers.
pub fn router(served: Arc<Served>) -> Router {
    let (router, _) = outside().nest("/api", api()).split_for_parts();
    let (versioned, _) = api().split_for_parts();
    router
        .nest("/api/v1", versioned)
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .with_state(served)
}

/// What is under `/api`, for the owner's commands, which need no page and no login.
pub fn api_router(served: Arc<Served>) -> Router {
    let (api, _) = api().split_for_parts();
    let router = Router::new().nest("/api", api).fallback(no_route);
    router
        .method_not_allowed_fallback(no_method)
        .with_state(served)
}

/// The OpenAPI document; no server is needed to make it.
pub fn openapi() -> utoipa::openapi::OpenApi {
    outside().nest("/api", api()).into_openapi()
}

async fn no_route(uri: Uri) -> ErrorResponse {
    let path: String = uri.path().chars().take(200).collect();
    CallError::new(ErrorCode::NotFound, format!("there is no route `{path}`"))
        .hint("GET /docs lists the routes there are")
        .into()
}

async fn no_method(method: Method, uri: Uri) -> ErrorResponse {
    let path: String = uri.path().chars().take(200).collect();
    let error = CallError::new(
        ErrorCode::BadRequest,
        format!("`{path}` does not take {method}"),
    )
    .hint("GET /docs lists the routes there are; the Allow header names the methods of this one");
    ErrorResponse {
        status: StatusCode::METHOD_NOT_ALLOWED,
        error,
    }
}

/// An answer that says no: an error, and the status it is sent with.
#[derive(Debug)]
pub struct ErrorResponse {
    status: StatusCode,
    error: CallError,
}

impl From<CallError> for ErrorResponse {
    fn from(error: CallError) -> ErrorResponse {
        let status = StatusCode::from_u16(http_status(error.code));
        ErrorResponse {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error,
        }
    }
}

impl IntoResponse for ErrorResponse {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &ErrorView::from(&self.error));
        if let Some(seconds) = retry_after(&self.error) {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// In how many seconds it helps to ask again, where a limit says so.
fn retry_after(error: &CallError) -> Option<u64> {
    let wait_ms = error.data.as_deref()?.get("retryAfterMs")?.as_u64()?;
    Some(wait_ms.div_ceil(1_000).max(1))
}

/// A JSON answer, written straight into the bytes that are sent.
fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => json_bytes(status, bytes),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written as JSON");
            let text = r#"{"error":{"code":"internal","message":"the answer could not be written","hint":""}}"#;
            json_bytes(StatusCode::INTERNAL_SERVER_ERROR, text)
        }
    }
}

fn json_bytes(status: StatusCode, bytes: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// What the crib was wired from, for those who look it over.
fn opened(served: &Served) -> Result<&Arc<Opened>, ErrorResponse> {
    served.opened.as_ref().ok_or_else(|| {
        CallError::unavailable("this server has nothing to examine")
            .hint("start one with `toolcrib serve`")
            .into()
    })
}

fn bad_request(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::BadRequest, message)
}

/// What a request's query asks for; `takes` says what it may hold.
fn queried<T>(
    query: Result<Query<T>, QueryRejection>,
    takes: &'static str,
) -> Result<T, ErrorResponse> {
    query.map(|Query(asked)| asked).map_err(|error| {
        let said: String = error.body_text().chars().take(300).collect();
        bad_request(format!("the query can't be read: {said}"))
            .hint(takes)
            .into()
    })
}

/// The name in a route's path.
fn named(path: Result<Path<String>, PathRejection>) -> Result<String, ErrorResponse> {
    match path {
        Ok(Path(name)) => Ok(name),
        Err(_) => Err(bad_request("the path holds bytes that are not UTF-8")
            .hint("percent-encode the name as UTF-8")
            .into()),
    }
}
