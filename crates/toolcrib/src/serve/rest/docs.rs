//! The API described: the OpenAPI document, a page that shows it, and the schema of the config file.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Redirect, Response};
use toolcrib_core::{CallError, ErrorCode};

use super::{ErrorResponse, json_bytes};
use crate::serve::Served;
use crate::wire::ErrorView;

/// One page with all that it needs; `{nonce}` marks the script and the style that are ours.
const PAGE: &str = include_str!("../docs.html");

/// Gives this description as OpenAPI.
#[utoipa::path(
    get, path = "/openapi.json", tag = "docs", operation_id = "openapi",
    responses(
        (status = 200, description = "The OpenAPI document", content_type = "application/json"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
    )
)]
pub async fn openapi_json() -> Result<Response, ErrorResponse> {
    // The document depends on nothing but the program, so one is made for its life.
    static DOCUMENT: OnceLock<Option<Bytes>> = OnceLock::new();
    let document =
        DOCUMENT.get_or_init(|| serde_json::to_vec(&super::openapi()).ok().map(Bytes::from));
    match document {
        Some(document) => Ok(json_bytes(StatusCode::OK, document.clone())),
        None => Err(CallError::internal("the OpenAPI document could not be written").into()),
    }
}

/// Shows this description to people.
#[utoipa::path(
    get, path = "/docs", tag = "docs", operation_id = "docs",
    responses(
        (status = 200, description = "A page that needs nothing from elsewhere", body = String, content_type = "text/html; charset=utf-8"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
    )
)]
pub async fn page() -> Response {
    let nonce = uuid::Uuid::now_v7().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, PAGE.replace("{nonce}", &nonce)).into_response()
}

/// Gives the JSON Schema of `config.toml`, for editors.
#[utoipa::path(
    get, path = "/toolcrib.schema.json", tag = "docs", operation_id = "configSchema",
    responses(
        (status = 200, description = "The JSON Schema", content_type = "application/json"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: this server was started without one", body = ErrorView),
    )
)]
pub async fn config_schema(State(served): State<Arc<Served>>) -> Result<Response, ErrorResponse> {
    match served.config_schema.as_str() {
        "" => Err(CallError::new(
            ErrorCode::NotFound,
            "this server has no schema of its config file",
        )
        .into()),
        schema => Ok(json_bytes(StatusCode::OK, schema.to_owned())),
    }
}

/// Redirects to the page that shows the routes.
#[utoipa::path(
    get, path = "/", tag = "docs", operation_id = "home",
    responses(
        (status = 307, description = "To `/docs`"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
    )
)]
pub async fn home() -> Redirect {
    Redirect::temporary("/docs")
}
