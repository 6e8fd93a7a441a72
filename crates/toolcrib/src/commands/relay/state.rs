//! What a relay remembers: which requests are unanswered, which of them may be asked again, and what a new server has to
//! hear first.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolcrib_core::error::STOPPED;

use crate::serve::mcp::asker::Stated;
use crate::serve::mcp::message::{self, Id, Incoming, Message, Request, Response};
use crate::serve::mcp::reply::Answer;

/// Marks the relay's own requests.
const OWN_ID: &str = "toolcrib-relay";

/// What is still owed to the client, and what a new server has to hear first. Messages stay as they came.
#[derive(Default)]
pub struct RelayState {
    /// The client's `initialize` and `notifications/initialized`, for servers that come later.
    hello: Option<(Id, Vec<u8>)>,
    ready: Option<Vec<u8>>,
    /// Requests without an answer, in the order they came.
    pending: Vec<Pending>,
    /// Tools that may be called twice, as the lists that passed by said.
    repeatable: HashMap<String, bool>,
    /// Ids of requests that the relay itself asked.
    own: HashSet<String>,
    asked: u64,
}

/// A request without an answer.
struct Pending {
    id: Id,
    message: Vec<u8>,
    asks: Asks,
}

/// May the client be kept from seeing an answer?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Back,
    /// It stands among others, which the client has to see: it has been answered then.
    Never,
}

/// What a request asks for, as far as it matters here.
enum Asks {
    List,
    Call { tool: String, stateless: bool },
    Other,
}

impl RelayState {
    /// Remembers what the client sends.
    pub fn sent(&mut self, line: &[u8]) {
        match message::read(line) {
            Ok(Incoming::One(message)) => self.sent_one(message, line),
            Ok(Incoming::Batch(items)) => {
                for item in items {
                    let item = item.get().as_bytes();
                    if let Ok(message) = message::read_one(item) {
                        self.sent_one(message, item);
                    }
                }
            }
            Err(_) => {}
        }
    }

    fn sent_one(&mut self, message: Message, text: &[u8]) {
        let text = || text.trim_ascii().to_vec();
        match message {
            Message::Request(request) => {
                if request.method == "initialize" {
                    self.hello = Some((request.id.clone(), text()));
                    self.ready = None;
                }
                self.pending.push(Pending {
                    asks: Asks::of(&request),
                    id: request.id,
                    message: text(),
                });
            }
            Message::Notification(told) if told.method == "notifications/initialized" => {
                self.ready = Some(text());
            }
            Message::Notification(told) if told.method == "notifications/cancelled" => {
                let id = told.params.get("requestId").and_then(Id::of);
                self.pending
                    .retain(|pending| Some(&pending.id) != id.as_ref());
            }
            Message::Notification(_) | Message::Response(_) => {}
        }
    }

    /// Remembers what the server answers. Gives whether the client should see it.
    pub fn received(&mut self, line: &[u8]) -> bool {
        match message::read(line) {
            Ok(Incoming::One(Message::Response(response))) => {
                self.received_one(&response, Held::Back)
            }
            Ok(Incoming::Batch(items)) => {
                for item in items {
                    if let Ok(Message::Response(response)) =
                        message::read_one(item.get().as_bytes())
                    {
                        self.received_one(&response, Held::Never);
                    }
                }
                true
            }
            Ok(Incoming::One(_)) | Err(_) => true,
        }
    }

    fn received_one(&mut self, response: &Response, held: Held) -> bool {
        let Some(id) = &response.id else { return true };
        if self.own.remove(id.as_json()) {
            return false;
        }
        let answered = self.pending.iter().position(|pending| pending.id == *id);
        let Some(at) = answered else { return true };
        // A call that ended with its crib is asked of the next one, where it may be.
        if held == Held::Back
            && self.may_repeat(&self.pending[at].asks)
            && response.result.is_ok_and(was_stopped)
        {
            return false;
        }
        let answered = self.pending.remove(at);
        if let (Asks::List, Ok(result)) = (answered.asks, response.result) {
            self.learn(result);
        }
        true
    }

    /// Learns from a list which tools may be called twice.
    fn learn(&mut self, result: &RawValue) {
        #[derive(Deserialize)]
        struct List {
            tools: Vec<Listed>,
        }
        #[derive(Deserialize)]
        struct Listed {
            name: String,
            #[serde(default)]
            annotations: Value,
        }
        let Ok(List { tools }) = serde_json::from_str(result.get()) else {
            return;
        };
        for Listed { name, annotations } in tools {
            let says = |hint: &str| annotations.get(hint) == Some(&Value::Bool(true));
            let twice = says("readOnlyHint") || says("idempotentHint");
            self.repeatable.insert(name, twice);
        }
    }

    fn may_repeat(&self, asks: &Asks) -> bool {
        match asks {
            Asks::Call { tool, .. } => self.repeatable.get(tool) == Some(&true),
            Asks::List | Asks::Other => true,
        }
    }

    /// What a new server is told, and what the client is told about calls that may not be repeated.
    pub fn start_over(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let mut to_server = Vec::new();
        if let Some((id, hello)) = &self.hello {
            // Where the client still waits for this answer, it is asked again below.
            if !self.pending.iter().any(|pending| pending.id == *id) {
                self.asked += 1;
                let id = json!(format!("{OWN_ID}-{}", self.asked));
                if let Ok(mut hello) = serde_json::from_slice::<Value>(hello) {
                    self.own.insert(id.to_string());
                    hello["id"] = id;
                    to_server.push(hello.to_string().into_bytes());
                }
            }
            to_server.extend(self.ready.clone());
        }
        let mut to_client = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            if self.may_repeat(&pending.asks) {
                to_server.push(pending.message.clone());
                self.pending.push(pending);
            } else {
                to_client.push(lost(&pending));
            }
        }
        (to_server, to_client)
    }
}

impl Asks {
    fn of(request: &Request) -> Asks {
        match &*request.method {
            "tools/list" => Asks::List,
            "tools/call" => Asks::Call {
                tool: request.params.text("name").unwrap_or_default().into_owned(),
                stateless: Stated::of(&request.params).version.is_some(),
            },
            _ => Asks::Other,
        }
    }
}

/// Does this result say that its call ended because the crib was stopped?
fn was_stopped(result: &RawValue) -> bool {
    // Results are long and few of them say it.
    result.get().contains(STOPPED)
        && serde_json::from_str::<Value>(result.get()).is_ok_and(|result| {
            let meta = &result["_meta"];
            meta["toolcrib/code"] == "unavailable" && meta["toolcrib/data"][STOPPED] == true
        })
}

/// The answer to a call that reached a server which is gone.
fn lost(pending: &Pending) -> Vec<u8> {
    let text = "the crib was restarted during this call, and the tool does not say that it may be repeated\n\
                hint: check what it did, then call again";
    let mut result = json!({
        "content": [{"type": "text", "text": text}],
        "isError": true,
        "_meta": {"toolcrib/code": "unavailable"},
    });
    if matches!(
        pending.asks,
        Asks::Call {
            stateless: true,
            ..
        }
    ) {
        result["resultType"] = "complete".into();
    }
    Answer::result(&pending.id, &result).body
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
