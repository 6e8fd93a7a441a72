//! Browsers come in with the code that `serve` printed, and go out again.

use axum::Extension;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::header::{CACHE_CONTROL, HeaderValue, REFERRER_POLICY, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use serde::Deserialize;
use toolcrib_core::{CallError, ErrorCode};
use utoipa::IntoParams;

use super::{ErrorResponse, bad_request};
use crate::serve::auth::{Auth, SESSION_LIFE, Who, refuse};
use crate::wire::ErrorView;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Code {
    /// The code that `toolcrib serve` printed; it works once and expires in ten minutes.
    code: String,
}

/// Logs a browser in: exchanges the code for a cookie, which is valid for twelve hours.
#[utoipa::path(
    get, path = "/login", tag = "login", operation_id = "logIn", params(Code),
    responses(
        (status = 303, description = "Logged in; to `/`"),
        (status = 400, description = "`bad_request`: there is no code in the query", body = ErrorView),
        (status = 401, description = "`unauthorized`: the code was used, has expired, or is unknown", body = ErrorView),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: this crib asks for no token", body = ErrorView),
        (status = 500, description = "`internal`: a bug in Toolcrib", body = ErrorView),
    )
)]
pub async fn log_in(
    auth: Option<Extension<Auth>>,
    code: Result<Query<Code>, QueryRejection>,
) -> Result<Response, Response> {
    let Query(Code { code }) = code.map_err(|_| {
        let error = bad_request("there is no `code` in the query")
            .hint("open the login URL as `toolcrib serve` printed it");
        ErrorResponse::from(error).into_response()
    })?;
    let session = door(auth)
        .and_then(|auth| auth.log_in(&code))
        .map_err(|error| refuse(error, None))?;
    let life = SESSION_LIFE.as_secs();
    let cookie = format!("{session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={life}");
    Ok((private(&cookie), Redirect::to("/")).into_response())
}

/// Ends a browser's login. The caller's token is not touched.
#[utoipa::path(
    post, path = "/logout", tag = "login", operation_id = "logOut",
    responses(
        (status = 204, description = "Logged out"),
        (status = 403, description = "`forbidden`: foreign Host or Origin", body = ErrorView),
        (status = 404, description = "`not_found`: this crib asks for no token", body = ErrorView),
    )
)]
pub async fn log_out(auth: Option<Extension<Auth>>, who: Who) -> Result<Response, ErrorResponse> {
    let name = door(auth)?.log_out(&who)?;
    let cookie = format!("{name}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, private(&cookie)).into_response())
}

/// The port's door; the socket has none.
fn door(auth: Option<Extension<Auth>>) -> Result<Auth, CallError> {
    let missing = || {
        CallError::new(ErrorCode::NotFound, "there is no login here")
            .hint("the socket asks for no token")
    };
    auth.map(|Extension(auth)| auth).ok_or_else(missing)
}

/// A cookie, in an answer that nothing between here and the browser keeps.
fn private(cookie: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(mut cookie) = HeaderValue::from_str(cookie) {
        cookie.set_sensitive(true);
        headers.insert(SET_COOKIE, cookie);
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers
}
