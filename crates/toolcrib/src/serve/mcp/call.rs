//! `tools/call`: what came becomes a request to the crib, and what it gave a result.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolcrib_core::client::known_name;
use toolcrib_core::{Answer as CallAnswer, CallError, ErrorCode, Object, Progress};

use super::asker::{Asker, opens_pages};
use super::conversation::Outlet;
use super::message::{Fields, Id, Request};
use super::methods::{Channel, Reply};
use super::notices::Steps;
use super::peer::Client;
use super::reply::{Answer, notification};
use super::revision::Revision;
use super::{COMPLETE, Mcp, codes, find, older, small};
use crate::serve::convert::{self, ErrorReply, ResultView};
use crate::surface::{ClientIds, SurfaceCall};

/// Clients that declare pages and take `input_required` for a broken answer.
const TAKES_RESULTS_ALONE: [&str; 1] = ["copilot"];

/// Does the client want to hear of the call before its answer, or could it be asked something meanwhile?
pub fn wants_outlet(asker: &Asker, request: &Request) -> bool {
    request.method == "tools/call"
        && (!asker.questions.is_empty() || request.params.meta.get("progressToken").is_some())
}

pub fn begin(mcp: &Arc<Mcp>, asker: &Asker, channel: Channel, request: &Request) -> Reply {
    let Some(name) = request.params.text("name") else {
        return Reply::error(
            request,
            codes::INVALID_PARAMS,
            "`name` must be the name of a tool",
        );
    };
    let arguments = match request.params.get("arguments") {
        None => Ok(Object::default()),
        Some(raw) => Object::new(raw.to_owned()),
    };
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(error) => {
            let message = format!("`arguments` must be an object: {error}");
            return Reply::error(request, codes::INVALID_PARAMS, &message);
        }
    };
    let (id, revision) = (request.id.clone(), asker.revision);
    let through = match &*name {
        small::SEARCH => return search(mcp, asker, id, arguments),
        small::CALL => Through::Call,
        small::CALL_READ => Through::CallRead,
        _ => Through::Itself,
    };
    let (name, arguments) = match through {
        Through::Itself => (name.into_owned(), arguments),
        _ => match target(&arguments) {
            Ok(target) => target,
            Err(error) => return Reply::Now(failed(&id, &error, revision)),
        },
    };
    let meta = &request.params.meta;
    let mut call = SurfaceCall::new(asker.who.caller(&asker.client), name, arguments)
        .with_ids(ids(asker, meta));
    let opens_pages = revision.is_stateless()
        && opens_pages(&request.params)
        && !TAKES_RESULTS_ALONE.contains(&known_name(&asker.client));
    if opens_pages {
        call = call.asking_again();
    }
    if matches!(through, Through::CallRead) {
        call = call.reading_only();
    }
    if let Some(outlet) = channel.outlet {
        let token = meta
            .get("progressToken")
            .filter(|raw| Id::of(raw).is_some());
        if let Some(token) = token {
            call = call.with_progress(sink(token.to_owned(), outlet.clone()));
        }
        if let Some(conversation) = channel.conversation.filter(|_| !asker.questions.is_empty()) {
            call = call.with_peer(Arc::new(Client {
                conversation,
                outlet,
                questions: asker.questions,
            }));
        }
    }
    let call_id = call.id().clone();
    let running = AssertUnwindSafe(mcp.served.call(call)).catch_unwind();
    Reply::Later(Box::pin(async move {
        let ended = running.await.unwrap_or_else(|_| {
            tracing::error!(call = %call_id, "a call ended in a panic");
            let hint = format!(
                "this is a bug in Toolcrib; the server's log says more under call {call_id}"
            );
            Err(CallError::internal("the call failed inside Toolcrib").hint(hint))
        });
        Some(match ended {
            Ok(CallAnswer { tool, outcome }) => {
                let mut view = convert::outcome(outcome, &tool);
                if !revision.is_stateless() {
                    view.wrap_data(older::wraps(&tool));
                }
                result(&id, view, revision)
            }
            Err(error) if opens_pages && page(&error).is_some() => {
                Answer::result(&id, &input_required(&error))
            }
            Err(error) => failed(&id, &error, revision),
        })
    }))
}

/// The page on which a person decides on a call that waits.
fn page(error: &CallError) -> Option<&str> {
    let pending = error.code == ErrorCode::ApprovalPending;
    let data = error.data.as_deref().filter(|_| pending)?;
    data["url"].as_str()
}

/// Hands the page to a client that opens it and then asks again. Its answer says nothing: the same call finds its approval by
/// what it is, so what comes back as state is not even read.
fn input_required(error: &CallError) -> Value {
    let id = error.data.as_deref().map(|data| data["approvalId"].clone());
    json!({
        "resultType": "input_required",
        "inputRequests": {"approval": {
            "method": "elicitation/create",
            "params": {"mode": "url", "url": page(error), "message": error.message},
        }},
        "requestState": id,
    })
}

/// Which tool of the list the call came through.
enum Through {
    Itself,
    Call,
    CallRead,
}

/// What `call_tool` is to call. From here on it is a call of that tool and of no other.
fn target(arguments: &Object) -> Result<(String, Object), CallError> {
    let refused =
        |message: &str| CallError::invalid(message).hint("`search_tools` tells names and schemas");
    let name = match arguments.get("name") {
        Some(Value::String(name)) => name.clone(),
        _ => return Err(refused("`name` must be the name of a tool")),
    };
    let inner = match arguments.member("arguments") {
        None => return Ok((name, Object::default())),
        Some(inner) => inner,
    };
    let inner = match inner.as_str() {
        // Some models write an object as text.
        Some(text) if !text.trim().is_empty() => Object::parse(text.trim()),
        Some(_) => Ok(Object::default()),
        None if inner.text() == "null" => Ok(Object::default()),
        None => Object::parse(inner.text()),
    };
    let inner = inner.map_err(|error| refused(&format!("`arguments` must be an object: {error}")));
    Ok((name, inner?))
}

/// `search_tools`. It changes nothing and reaches no tool, so it is no call of one.
fn search(mcp: &Arc<Mcp>, asker: &Asker, id: Id, arguments: Object) -> Reply {
    let (mcp, asker) = (mcp.clone(), asker.clone());
    Reply::Later(Box::pin(async move {
        mcp.served.settled().await;
        let view = mcp.served.view(&asker.who);
        Some(match find::find(&view, &arguments) {
            Ok(found) => result(&id, convert::data(found), asker.revision),
            Err(error) => failed(&id, &error, asker.revision),
        })
    }))
}

fn failed(id: &Id, error: &CallError, revision: Revision) -> Answer {
    match convert::error(error) {
        ErrorReply::Result(view) => result(id, *view, revision),
        ErrorReply::Protocol(code, said) => Answer::error(Some(id), code, &said),
    }
}

/// What the client calls the call, and the session and the message it belongs to: as it says, else as is known of the
/// connection. Who has neither is known by the token.
fn ids(asker: &Asker, meta: &Fields) -> ClientIds {
    let said = convert::ids(|key| meta.value(key));
    let known = || Some(asker.session.as_ref().or(asker.who.token_id())?.to_string());
    ClientIds {
        thread: said
            .thread
            .or_else(|| Some(asker.session.as_ref()?.to_string())),
        session: said.session.or_else(known),
        ..said
    }
}

fn result(id: &Id, mut view: ResultView, revision: Revision) -> Answer {
    if revision.is_stateless() {
        view.result_type = Some(COMPLETE);
    }
    Answer::result(id, &view)
}

/// Passes progress on. A client that reads slowly loses steps, never the call.
fn sink(token: Box<RawValue>, outlet: Outlet) -> Arc<dyn Fn(Progress) + Send + Sync> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a> {
        progress_token: &'a RawValue,
        progress: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }
    let steps = Mutex::new(Steps::default());
    Arc::new(move |told| {
        // Held while it is sent, so that numbers go out in their order.
        let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
        let params = Params {
            progress_token: &token,
            progress: steps.next(told.progress),
            total: told.total.filter(|total| total.is_finite()),
            message: told.message.or(told.title),
        };
        let _ = outlet.try_send(notification("notifications/progress", Some(&params)));
    })
}
