//! What somebody reads who is not let in, in the words of whoever asks: an agent, a browser, a program.

use axum::extract::Request;
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use toolcrib_core::{CallError, ErrorCode};

use super::refuse;
use crate::serve::rest::ErrorResponse;

/// What JSON-RPC calls a request that is not taken.
const INVALID_REQUEST: i32 = -32_600;

/// Says how to log in. It holds nothing of whoever asks.
const PAGE: &str = include_str!("../login.html");

/// The answer to who has not shown who they are.
pub fn answer(request: &Request, error: CallError) -> Response {
    let path = request.uri().path();
    // Clients of MCP look here for OAuth when they are refused. A refusal here too would be all that people read.
    if path.starts_with("/.well-known/") {
        let none = CallError::new(ErrorCode::NotFound, "there is no OAuth here");
        let hint = "send `Authorization: Bearer TOKEN`, where `toolcrib token create NAME` prints the token";
        return ErrorResponse::from(none.hint(hint)).into_response();
    }
    let message = match &error.hint {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    let is_unknown = error.code == ErrorCode::Unauthorized;
    let mut response = refuse(error, None);
    if path == "/mcp" || path.starts_with("/mcp/") {
        // Clients log what a server says in the protocol's own form.
        let said = json!({"jsonrpc": "2.0", "id": null, "error": {"code": INVALID_REQUEST, "message": message}});
        replace(&mut response, "application/json", said.to_string());
    } else if is_unknown && is_browser(request) {
        replace(&mut response, "text/html; charset=utf-8", PAGE.to_owned());
        let policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        for (name, value) in [
            (CONTENT_SECURITY_POLICY, policy),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (CACHE_CONTROL, "no-store"),
        ] {
            let value = HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A person who opens an address, not a page's script and not a program.
fn is_browser(request: &Request) -> bool {
    let accept = request.headers().get(ACCEPT);
    let takes_pages = accept.and_then(|value| value.to_str().ok());
    request.method() == Method::GET && takes_pages.is_some_and(|kinds| kinds.contains("text/html"))
}

/// The same answer with another body: its status and its challenge stay.
fn replace(response: &mut Response, kind: &'static str, body: String) {
    let status: StatusCode = response.status();
    let mut headers = std::mem::take(response.headers_mut());
    headers.remove("content-length");
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    *response = (status, headers, body).into_response();
}
