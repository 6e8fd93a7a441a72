//! Where a message over HTTP goes: into a session, or by itself. Its headers must agree with it, else it goes nowhere.

use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use super::asker::{Asker, Hello, Stated};
use super::message::{Message, Request};
use super::reply::Answer;
use super::revision::{self, Revision};
use super::{Mcp, codes, headers, lists, stream};
use crate::serve::auth::Who;

static VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// Why a message goes nowhere.
pub struct Refused(Box<Response>);

impl Refused {
    pub fn new(status: StatusCode, answer: Answer) -> Refused {
        Refused(Box::new(stream::json(status, answer.body)))
    }

    /// For what was not read, so that nobody knows whose it is.
    pub fn plain(status: StatusCode, message: &'static str) -> Refused {
        Refused(Box::new((status, message).into_response()))
    }

    pub fn into_response(self) -> Response {
        *self.0
    }

    fn bad(answer: Answer) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, answer)
    }
}

/// Where a request goes.
pub enum Route<'a> {
    Initialize(Hello<'a>),
    Alone(Asker),
    Session,
}

/// The revision that the headers name, known or not.
fn version(headers: &HeaderMap, known_only: bool) -> Result<Option<&str>, Refused> {
    let Some(value) = headers.get(&VERSION_HEADER) else {
        return Ok(None);
    };
    let wrong =
        |message: String| Refused::bad(Answer::error(None, codes::INVALID_REQUEST, &message));
    let Ok(version) = value.to_str() else {
        return Err(wrong(
            "Bad Request: Invalid MCP-Protocol-Version header encoding".to_owned(),
        ));
    };
    if known_only && Revision::named(version).is_none() {
        let shown: String = version.chars().take(64).collect();
        return Err(wrong(format!(
            "Bad Request: Unsupported MCP-Protocol-Version: {shown}"
        )));
    }
    Ok(Some(version))
}

/// Do the headers name a revision whose messages stand alone?
pub fn stands_alone(headers: &HeaderMap) -> Result<bool, Refused> {
    Ok(version(headers, true)?.is_some_and(revision::stands_alone))
}

/// Looks at the headers of a message that gets no answer.
pub fn without_answer(headers: &HeaderMap, message: &Message) -> Result<(), Refused> {
    if !stands_alone(headers)? {
        return Ok(());
    }
    match message {
        Message::Notification(one) => headers::check(headers, &one.method, &one.params)
            .map_err(|reason| Refused::bad(Answer::error(None, codes::HEADER_MISMATCH, &reason))),
        Message::Response(_) => {
            let message = "stateless server does not accept JSON-RPC responses";
            let answer = Answer::error(None, codes::INVALID_REQUEST, message);
            Err(Refused::bad(answer))
        }
        Message::Request(_) => Ok(()),
    }
}

/// Where a request goes, and who asks there.
pub fn route<'a>(
    mcp: &Mcp,
    who: Who,
    headers: &HeaderMap,
    request: &Request<'a>,
) -> Result<Route<'a>, Refused> {
    let refused = |code: i32, message: &str| {
        Err(Refused::bad(Answer::error(
            Some(&request.id),
            code,
            message,
        )))
    };
    let stated = Stated::of(&request.params);
    let header = version(headers, stated.version.is_none())?;
    let header_alone = header.is_some_and(revision::stands_alone);
    // The newest revision has no such method: what comes in its form is a request like any other.
    if request.method == "initialize" {
        let hello = Hello::of(&request.params);
        if hello.is_some() || !stated.is_complete() {
            return initialize(headers, header, request, hello).map(Route::Initialize);
        }
    }
    let discovers = request.method == "server/discover";
    let Some(named) = &stated.version else {
        if discovers || header_alone {
            return Err(Refused::bad(stated.incomplete(&request.id)));
        }
        return Ok(Route::Session);
    };
    match header {
        None => {
            let message = "request _meta protocolVersion requires MCP-Protocol-Version header";
            return refused(codes::HEADER_MISMATCH, message);
        }
        Some(header) if header != *named => {
            let message = format!(
                "MCP-Protocol-Version header ({header}) does not match request _meta protocolVersion ({named})"
            );
            return refused(codes::HEADER_MISMATCH, &message);
        }
        Some(_) => {}
    }
    let alone = discovers || header_alone || stated.is_complete();
    if !alone {
        return Ok(Route::Session);
    }
    if header_alone && let Err(reason) = agree(mcp, &who, headers, request) {
        return refused(codes::HEADER_MISMATCH, &reason);
    }
    stated
        .alone(who, request)
        .map(Route::Alone)
        .map_err(Refused::bad)
}

fn initialize<'a>(
    headers: &HeaderMap,
    header: Option<&str>,
    request: &Request<'a>,
    hello: Option<Hello<'a>>,
) -> Result<Hello<'a>, Refused> {
    let refused = |code: i32, message: &str| {
        Err(Refused::bad(Answer::error(
            Some(&request.id),
            code,
            message,
        )))
    };
    let Some(hello) = hello else {
        return refused(codes::INVALID_PARAMS, "`protocolVersion` must be text");
    };
    if let Some(header) = header
        && header != hello.wanted
    {
        let wanted = &hello.wanted;
        let message = format!(
            "Invalid Request: MCP-Protocol-Version header ({header}) does not match initialize params.protocolVersion ({wanted})"
        );
        return refused(codes::INVALID_REQUEST, &message);
    }
    // It may come without these headers, but what is there must agree.
    if header.is_some_and(revision::stands_alone)
        && headers.contains_key("mcp-method")
        && let Err(reason) = headers::check(headers, "initialize", &request.params)
    {
        return refused(codes::HEADER_MISMATCH, &reason);
    }
    Ok(hello)
}

/// Says where the headers of a request that stands alone differ from it.
fn agree(mcp: &Mcp, who: &Who, headers: &HeaderMap, request: &Request) -> Result<(), String> {
    headers::check(headers, &request.method, &request.params)?;
    if request.method != "tools/call" {
        return Ok(());
    }
    let Some(tool) = request.params.text("name") else {
        return Ok(());
    };
    let view = mcp.served.view(who);
    match lists::headers_of(&view, &tool) {
        [] => Ok(()),
        wanted => headers::check_arguments(headers, wanted, request.params.get("arguments")),
    }
}
