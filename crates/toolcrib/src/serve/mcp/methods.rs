//! THE LIST of methods, and whether one may use them. What takes time is given back as a future, which nobody has to
//! wait for and dropping cancels.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolcrib_core::{BoxFuture, CallError, Loading, Seen};

use super::asker::Asker;
use super::conversation::{Conversation, Outlet};
use super::message::{Id, Request};
use super::reply::{Answer, array};
use super::revision::Revision;
use super::{COMPLETE, GREETING, Mcp, call, codes, lists, resources, subscribe};
use crate::serve::auth::Who;

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
    /// The list that the client has seen last, where somebody tells it of another.
    pub seen: Seen,
}

impl Mcp {
    /// Answers a request that is not `initialize`.
    pub fn answer(self: &Arc<Mcp>, asker: &Asker, channel: Channel, request: Request) -> Reply {
        if let Err(error) = asker.who.may_use(&request.method) {
            return Reply::error(&request, codes::INVALID_REQUEST, &with_hint(&error));
        }
        // It may have gone from the settings since the connection began.
        if let Err(error) = self.served.crib.admits(asker.who.agent()) {
            return Reply::error(&request, codes::INVALID_REQUEST, &with_hint(&error));
        }
        let stateless = asker.revision.is_stateless();
        let now = |result: Value| {
            let result = finished(result, asker.revision);
            Reply::Now(Answer::result(&request.id, &result))
        };
        match &*request.method {
            "tools/call" => call::begin(self, asker, channel, &request),
            "tools/list" => lists::begin(self, asker, &channel.seen, &request),
            "ping" if !stateless => now(json!({})),
            "server/discover" => {
                let who = asker.who.clone();
                self.after_the_first_look(request.id, move |mcp| {
                    // Always in the words of the revision that brought it.
                    finished(mcp.discovered(&who), Revision::STATELESS)
                })
            }
            "subscriptions/listen" if stateless => subscribe::begin(self, asker, channel, request),
            "resources/list" | "resources/templates/list"
                if request.params.get("cursor").is_some() =>
            {
                Reply::Now(lists::no_cursor(&request.id))
            }
            "resources/list" => resources::list(self, asker, &request),
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

    /// Answers `initialize`.
    pub fn greet(self: &Arc<Mcp>, asker: Asker, id: Id) -> Reply {
        self.after_the_first_look(id, move |mcp| mcp.greeting(&asker))
    }

    /// Answers at once, but for the moment that the first look at the tools takes.
    fn after_the_first_look(
        self: &Arc<Mcp>,
        id: Id,
        result: impl FnOnce(&Mcp) -> Value + Send + 'static,
    ) -> Reply {
        if self.served.crib.loading() > Loading::Opening {
            return Reply::Now(Answer::result(&id, &result(self)));
        }
        let mcp = self.clone();
        Reply::Later(Box::pin(async move {
            let looked = mcp.served.crib.loaded(Loading::Describing);
            let _ = tokio::time::timeout(GREETING, looked).await;
            Some(Answer::result(&id, &result(&mcp)))
        }))
    }

    /// The result of `initialize`.
    pub fn greeting(&self, asker: &Asker) -> Value {
        json!({
            "protocolVersion": asker.revision.as_str(),
            "capabilities": capabilities(),
            "serverInfo": server_info(),
            "instructions": self.instructions(&asker.who),
        })
    }

    fn discovered(&self, who: &Who) -> Value {
        json!({
            "supportedVersions": Revision::ALL.map(Revision::as_str),
            "capabilities": capabilities(),
            "instructions": self.instructions(who),
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
