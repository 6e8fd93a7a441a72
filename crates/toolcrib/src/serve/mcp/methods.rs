//! THE LIST of methods, and whether one may use them. What takes time is given back as a future, which nobody has to
//! wait for and dropping cancels.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolcrib_core::{BoxFuture, CallError};

use super::asker::Asker;
use super::conversation::{Conversation, Outlet};
use super::message::Request;
use super::reply::{Answer, array};
use super::revision::Revision;
use super::{COMPLETE, Mcp, call, codes, lists, resources, subscribe};
use crate::serve::auth::Who;
use crate::serve::convert;

/// An answer that takes its time; none to a request that was cancelled.
pub type Later = BoxFuture<'static, Option<Answer>>;

/// An answer that is there already, for those who wait anyway.
pub fn ready(answer: Answer) -> Later {
    Box::pin(std::future::ready(Some(answer)))
}

/// The answers to what came at once, as one array; none where all were cancelled.
pub fn together(answers: Vec<Later>) -> Later {
    Box::pin(async {
        let answers: Vec<Answer> = join_all(answers).await.into_iter().flatten().collect();
        (!answers.is_empty()).then(|| Answer {
            body: array(&answers),
            code: None,
        })
    })
}

pub enum Reply {
    Now(Answer),
    Later(Later),
}

impl Reply {
    pub fn error(request: &Request, code: i32, message: &str) -> Reply {
        Reply::Now(Answer::error(Some(&request.id), code, message))
    }
}

/// What leads back to the client while its request runs.
#[derive(Clone, Default)]
pub struct Channel {
    pub conversation: Option<Arc<Conversation>>,
    /// Where messages about the request go before its answer. None where the client wants none.
    pub outlet: Option<Outlet>,
}

impl Mcp {
    /// Answers a request that is not `initialize`.
    pub fn answer(self: &Arc<Mcp>, asker: &Asker, channel: Channel, request: Request) -> Reply {
        if let Err(error) = asker.who.may_use(&request.method) {
            return Reply::error(&request, codes::INVALID_REQUEST, &with_hint(&error));
        }
        let stateless = asker.revision.is_stateless();
        let now = |result: Value| {
            let result = finished(result, asker.revision);
            Reply::Now(Answer::result(&request.id, &result))
        };
        match &*request.method {
            "tools/call" => call::begin(self, asker, channel, &request),
            "tools/list" => {
                let view = self.served.view(&asker.who);
                let list = lists::tools(&view, asker.revision);
                Reply::Now(Answer::written(&request.id, list))
            }
            "ping" if !stateless => now(json!({})),
            "server/discover" => {
                // Always in the words of the revision that brought it.
                let result = finished(self.discovered(&asker.who), Revision::STATELESS);
                Reply::Now(Answer::result(&request.id, &result))
            }
            "subscriptions/listen" if stateless => subscribe::begin(self, asker, channel, request),
            "resources/list" => now(cached(json!({"resources": []}), asker.revision)),
            "resources/templates/list" => now(resources::templates()),
            "resources/read" => resources::read(self, asker, &request),
            "completion/complete" => now(json!({"completion": {"values": []}})),
            "prompts/list" => {
                Reply::error(&request, codes::METHOD_NOT_FOUND, "there are no prompts")
            }
            other => {
                let shown: String = other.chars().take(100).collect();
                Reply::error(&request, codes::METHOD_NOT_FOUND, &shown)
            }
        }
    }

    /// The result of `initialize`.
    pub fn greeting(&self, asker: &Asker) -> Value {
        json!({
            "protocolVersion": asker.revision.as_str(),
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": convert::instructions(&self.served.view(&asker.who)),
        })
    }

    fn discovered(&self, who: &Who) -> Value {
        json!({
            "supportedVersions": Revision::ALL.map(Revision::as_str),
            "capabilities": capabilities(),
            "instructions": convert::instructions(&self.served.view(who)),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
        })
    }
}

fn capabilities() -> Value {
    json!({"resources": {}, "tools": {"listChanged": true}})
}

fn server_info() -> Value {
    json!({"name": "toolcrib", "version": crate::VERSION})
}

/// A result as its revision has it.
pub fn finished(mut result: Value, revision: Revision) -> Value {
    if revision.is_stateless() {
        result["resultType"] = COMPLETE.into();
    }
    result
}

/// A result that is not to be kept: 2026-07-28 wants that said.
pub fn cached(mut result: Value, revision: Revision) -> Value {
    if revision.is_stateless() {
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    result
}

/// What went wrong, and what helps.
pub fn with_hint(error: &CallError) -> String {
    match error.hint.as_ref().filter(|hint| !hint.is_empty()) {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}
