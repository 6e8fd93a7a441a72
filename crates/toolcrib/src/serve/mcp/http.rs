//! `/mcp`, and `/mcp/NAME` for an agent: streamable HTTP. Sessions for clients of older revisions, answers that stand alone for the newest.
//!
//! The two differ in what a hang-up means. A request that stands alone ends with its connection. One of a session goes on
//! in a task of its own, and only the client's word cancels it.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use toolcrib_core::{BoxFuture, CallError, ErrorCode, Surface};

use super::asker::Asker;
use super::conversation::{Conversation, MAX_RUNNING, QUEUE};
use super::message::{self, Id, Incoming, Malformed, Message, Notification, Request};
use super::methods::{Channel, Later, Reply, ready, together, with_hint};
use super::notices::LIST_CHANGED;
use super::reply::{Answer, notification};
use super::routing::{self, Refused, Route};
use super::session::Session;
use super::{Mcp, call, codes, stream};
use crate::error::http_status;
use crate::serve::Served;
use crate::serve::auth::{Who, missing, refuse, turned_away};
use crate::serve::rest::read;

static SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// What stands at `/mcp`.
pub fn door(
    served: Arc<Served>,
) -> impl Fn(axum::extract::Request) -> BoxFuture<'static, Response> + Clone + Send + 'static {
    let mcp = Mcp::new(served);
    move |request| {
        let mcp = mcp.clone();
        Box::pin(async move {
            let Some(who) = request.extensions().get::<Who>().cloned() else {
                return refuse(missing(), None);
            };
            let chosen = request.uri().path().strip_prefix("/mcp/");
            let who = match chosen.map(|agent| who.choose(agent, &mcp.served.crib)) {
                None => who,
                Some(Ok(who)) => who,
                Some(Err(error)) => return turned_away(&request, error),
            };
            if let Some(refusal) = who.refuse_connection(request.method()) {
                return refusal;
            }
            let who = match asked_surface(request.uri().query()) {
                Ok(surface) => who.with_surface(surface),
                Err(error) => return unread(error),
            };
            let (parts, body) = request.into_parts();
            let answered = match parts.method {
                Method::POST => {
                    if let Err(refused) = takes_messages(&parts.headers) {
                        return refused.into_response();
                    }
                    let body = match read(body).await {
                        Ok(body) => body,
                        Err(error) => return unread(error),
                    };
                    if let Some(refusal) = who.refuse_messages(&body) {
                        return refusal;
                    }
                    if let Err(error) = mcp.served.looked().await {
                        return unread(error);
                    }
                    post(&mcp, who, &parts.headers, &body).await
                }
                Method::GET => listen(&mcp, &who, &parts.headers),
                Method::DELETE => end(&mcp, &who, &parts.headers),
                _ => Ok(not_allowed("GET, POST, DELETE")),
            };
            answered.unwrap_or_else(Refused::into_response)
        })
    }
}

/// What `?surface=` says.
fn asked_surface(query: Option<&str>) -> Result<Option<Surface>, CallError> {
    let mut pairs = query.unwrap_or_default().split('&');
    let Some(name) = pairs.find_map(|pair| pair.strip_prefix("surface=")) else {
        return Ok(None);
    };
    name.parse().map(Some).map_err(|()| {
        let shown: String = name.chars().take(40).collect();
        CallError::new(
            ErrorCode::BadRequest,
            format!("there is no surface `{shown}`"),
        )
        .hint("it is `auto`, `list` or `search`")
    })
}

/// The answer where no message is read: to a body that can't be, or as long as nothing is known of the tools.
fn unread(error: CallError) -> Response {
    let status = StatusCode::from_u16(http_status(error.code)).unwrap_or(StatusCode::BAD_REQUEST);
    match error.code {
        ErrorCode::BadRequest | ErrorCode::TooLarge => {
            let answer = Answer::error(None, codes::INVALID_REQUEST, &with_hint(&error));
            stream::json(status, answer.body)
        }
        // The door has its own words for who may not ask.
        _ => refuse(error, None),
    }
}

fn has(headers: &HeaderMap, name: HeaderName, kind: &str) -> bool {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.contains(kind))
}

fn takes_messages(headers: &HeaderMap) -> Result<(), Refused> {
    let takes = |kind| has(headers, ACCEPT, kind);
    if !takes("application/json") || !takes("text/event-stream") {
        let message =
            "Not Acceptable: Client must accept both application/json and text/event-stream";
        return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, message));
    }
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        let message = "Unsupported Media Type: Content-Type must be application/json";
        return Err(Refused::plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    Ok(())
}

async fn post(
    mcp: &Arc<Mcp>,
    who: Who,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response, Refused> {
    match message::read(body).map_err(malformed)? {
        Incoming::Batch(items) => batch(mcp, &who, headers, &items).await,
        Incoming::One(Message::Request(request)) => one(mcp, who, headers, request).await,
        Incoming::One(message) => {
            routing::without_answer(headers, &message)?;
            if routing::stands_alone(headers)? {
                return Ok(stream::empty(StatusCode::ACCEPTED));
            }
            let session = session(mcp, &who, headers, None)?;
            heard(mcp, &session, &message);
            Ok(stream::empty(StatusCode::ACCEPTED))
        }
    }
}

fn malformed(malformed: Malformed) -> Refused {
    let Malformed { code, id, reason } = malformed;
    Refused::new(
        StatusCode::BAD_REQUEST,
        Answer::error(id.as_ref(), code, &reason),
    )
}

async fn one(
    mcp: &Arc<Mcp>,
    who: Who,
    headers: &HeaderMap,
    request: Request<'_>,
) -> Result<Response, Refused> {
    match routing::route(mcp, who.clone(), headers, &request)? {
        Route::Initialize(hello) => {
            if let Err(error) = who.may_use(&request.method) {
                return Ok(refuse(error, None));
            }
            let asker = hello.asker(who.clone());
            let (name, version) = (&*hello.client, &*hello.version);
            let sessions = &mcp.sessions;
            let id = sessions.begin(
                &mcp.served,
                &who,
                asker.revision,
                (name, version),
                asker.questions,
            );
            let id = id.and_then(|id| HeaderValue::from_str(&id).ok());
            let Some(id) = id else {
                let answer = Answer::error(
                    Some(&request.id),
                    codes::INTERNAL,
                    "no session could be made",
                );
                return Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, answer));
            };
            let answer = Answer::result(&request.id, &mcp.greeting(&asker));
            let mut response = stream::json(StatusCode::OK, answer.body);
            response.headers_mut().insert(&SESSION_HEADER, id);
            Ok(response)
        }
        Route::Alone(asker) => {
            let listens = request.method == "subscriptions/listen";
            let (channel, messages) =
                channel(listens || call::wants_outlet(&asker, &request), None);
            Ok(match mcp.answer(&asker, channel, request) {
                Reply::Now(answer) => stream::json(status(&answer), answer.body),
                Reply::Later(work) => stream::answer(messages, work, status).await,
            })
        }
        Route::Session => {
            let session = session(mcp, &who, headers, Some(&request.id))?;
            let asker = asker(who, &session);
            let wants = call::wants_outlet(&asker, &request);
            let conversation = mcp.sessions.conversation(&session);
            let (channel, messages) = channel(wants, Some(conversation.clone()));
            let id = request.id.clone();
            let work = match mcp.answer(&asker, channel, request) {
                Reply::Now(answer) => return Ok(stream::json(StatusCode::OK, answer.body)),
                Reply::Later(work) => detached(&conversation, &id, work),
            };
            Ok(stream::answer(messages, work, |_| StatusCode::OK).await)
        }
    }
}

/// Where messages before an answer go, if the client takes any.
fn channel(
    wants: bool,
    conversation: Option<Arc<Conversation>>,
) -> (Channel, Option<mpsc::Receiver<Vec<u8>>>) {
    let (outlet, messages) = match wants {
        true => {
            let (outlet, messages) = mpsc::channel(QUEUE);
            (Some(outlet), Some(messages))
        }
        false => (None, None),
    };
    let channel = Channel {
        conversation,
        outlet,
        ..Channel::default()
    };
    (channel, messages)
}

fn asker(who: Who, session: &Session) -> Asker {
    Asker {
        who,
        revision: session.revision,
        client: session.client.clone(),
        session: Some(session.name().clone()),
        questions: session.questions,
    }
}

/// Lets work go on without its connection, until it has ended or is cancelled.
fn detached(conversation: &Arc<Conversation>, id: &Id, work: Later) -> Later {
    let Some(running) = conversation.begin(id) else {
        let answer = too_many(id);
        return ready(answer);
    };
    let (sender, answer) = oneshot::channel();
    tokio::spawn(async move {
        let answer = tokio::select! {
            // The work first: a call that is cancelled at once has begun all the same, and is recorded.
            biased;
            answer = work => answer,
            () = running.cancelled() => None,
        };
        let _ = sender.send(answer);
    });
    Box::pin(async { answer.await.ok().flatten() })
}

/// The answer to one request too many.
pub fn too_many(id: &Id) -> Answer {
    let message = format!("{MAX_RUNNING} requests of this client run already");
    let error = CallError::new(ErrorCode::LimitReached, message).hint("wait until one has ended");
    Answer::error(Some(id), codes::INTERNAL, &with_hint(&error))
}

/// Several messages at once, which one revision has.
async fn batch(
    mcp: &Arc<Mcp>,
    who: &Who,
    headers: &HeaderMap,
    items: &[&RawValue],
) -> Result<Response, Refused> {
    let no_batches = || {
        let message = "this revision takes one message at a time";
        let answer = Answer::error(None, codes::INVALID_REQUEST, message);
        Refused::new(StatusCode::BAD_REQUEST, answer)
    };
    if routing::stands_alone(headers)? {
        return Err(no_batches());
    }
    let session = session(mcp, who, headers, None)?;
    if !session.revision.has_batches() {
        return Err(no_batches());
    }
    let asker = asker(who.clone(), &session);
    let conversation = mcp.sessions.conversation(&session);
    let (channel, messages) = channel(true, Some(conversation.clone()));
    let mut answers: Vec<Later> = Vec::new();
    for item in items {
        match message::read_one(item.get().as_bytes()) {
            Err(Malformed { code, id, reason }) => {
                answers.push(ready(Answer::error(id.as_ref(), code, &reason)));
            }
            Ok(Message::Request(request)) if request.method == "initialize" => {
                let message = "`initialize` comes alone";
                let answer = Answer::error(Some(&request.id), codes::INVALID_REQUEST, message);
                answers.push(ready(answer));
            }
            Ok(Message::Request(request)) => {
                let id = request.id.clone();
                answers.push(match mcp.answer(&asker, channel.clone(), request) {
                    Reply::Now(answer) => ready(answer),
                    Reply::Later(work) => detached(&conversation, &id, work),
                });
            }
            Ok(message) => heard(mcp, &session, &message),
        }
    }
    drop(channel);
    if answers.is_empty() {
        return Ok(stream::empty(StatusCode::ACCEPTED));
    }
    let work = together(answers);
    Ok(stream::answer(messages, work, |_| StatusCode::OK).await)
}

/// The session that a request is of.
fn session(mcp: &Mcp, who: &Who, headers: &HeaderMap, id: Option<&Id>) -> Result<Session, Refused> {
    let Some(shown) = headers.get(&SESSION_HEADER) else {
        let message = "Bad Request: Session ID is required";
        let answer = Answer::error(id, codes::INVALID_REQUEST, message);
        return Err(Refused::new(StatusCode::BAD_REQUEST, answer));
    };
    let shown = shown.to_str().ok();
    let found = shown.and_then(|shown| mcp.sessions.find(&mcp.served, who, shown));
    found.ok_or_else(|| {
        let answer = Answer::error(id, codes::NO_SESSION, "Not Found: Session not found");
        Refused::new(StatusCode::NOT_FOUND, answer)
    })
}

/// Takes note of what gets no answer.
fn heard(mcp: &Mcp, session: &Session, message: &Message) {
    let Some(conversation) = mcp.sessions.under_way(session) else {
        return;
    };
    match message {
        Message::Notification(notification) => cancelled(&conversation, notification),
        Message::Response(response) => conversation.answered(response),
        Message::Request(_) => {}
    }
}

/// Cancels what a notification says, if it is one that cancels.
pub fn cancelled(conversation: &Conversation, notification: &Notification) {
    if notification.method == "notifications/cancelled"
        && let Some(id) = notification.params.get("requestId").and_then(Id::of)
    {
        conversation.cancel(&id);
    }
}

/// The status of an answer that stands alone.
fn status(answer: &Answer) -> StatusCode {
    match answer.code {
        Some(codes::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(codes::HEADER_MISMATCH | codes::UNSUPPORTED_REVISION) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The stream on which a session's client is told things, and asked.
fn listen(mcp: &Arc<Mcp>, who: &Who, headers: &HeaderMap) -> Result<Response, Refused> {
    if !has(headers, ACCEPT, "text/event-stream") {
        let message = "Not Acceptable: Client must accept text/event-stream";
        return Err(Refused::plain(StatusCode::NOT_ACCEPTABLE, message));
    }
    if routing::stands_alone(headers)? {
        return Ok(not_allowed("POST"));
    }
    let session = session(mcp, who, headers, None)?;
    let (open, messages) = mcp.sessions.conversation(&session).open();
    // What changed while no process of ours was there, nobody told.
    let missed = mcp.sessions.is_older(&session);
    let first = futures_util::stream::iter(missed.then(changed));
    let changes = mcp.served.crib.follow(who.agent());
    let rest = futures_util::stream::unfold(
        (open, messages, changes),
        async |(open, mut messages, mut changes)| loop {
            let message = tokio::select! {
                message = messages.recv() => message?,
                () = changes.next() => match open.is_newest() {
                    true => changed(),
                    false => continue,
                },
            };
            return Some((message, (open, messages, changes)));
        },
    );
    let shutdown = mcp.served.shutdown.clone().cancelled_owned();
    let told = futures_util::StreamExt::chain(first, rest);
    Ok(stream::events(futures_util::StreamExt::take_until(
        told,
        Box::pin(shutdown),
    )))
}

fn changed() -> Vec<u8> {
    notification(LIST_CHANGED, None::<&()>)
}

fn end(mcp: &Mcp, who: &Who, headers: &HeaderMap) -> Result<Response, Refused> {
    if routing::stands_alone(headers)? {
        return Ok(not_allowed("POST"));
    }
    let session = session(mcp, who, headers, None)?;
    mcp.sessions.end(&session);
    Ok(stream::empty(StatusCode::NO_CONTENT))
}

fn not_allowed(allowed: &'static str) -> Response {
    let allow = [(ALLOW, HeaderValue::from_static(allowed))];
    (StatusCode::METHOD_NOT_ALLOWED, allow, "Method Not Allowed").into_response()
}
