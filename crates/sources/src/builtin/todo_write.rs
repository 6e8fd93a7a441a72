//! `todo-write`: an agent's list of what it has to do, one per thread, kept in the store.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use toolcrib_core::{BoxFuture, Call, CallError, CallResult, Outcome, Run};

use super::{Builtin, Effects, Switch};
use crate::{Place, hex};

const MAX_TODOS: usize = 100;
const MAX_CONTENT: usize = 500;

struct TodoWrite {
    place: Arc<Place>,
}

pub(super) fn tool(place: &Arc<Place>) -> Builtin {
    Builtin {
        name: "todo-write",
        title: "Todo list",
        description: "Replace your todo list for this conversation; give every item each time.",
        parameters: json!({
            "todos": {
                "type": "array", "maxItems": MAX_TODOS, "description": "The whole list, in order.",
                "items": {
                    "type": "object",
                    "properties": {
                        "content": {"type": "string", "minLength": 1, "maxLength": MAX_CONTENT, "description": "What is to be done."},
                        "status": {"type": "string", "enum": ["pending", "in_progress", "completed"], "description": "How far it is."},
                        "priority": {"type": "string", "enum": ["high", "medium", "low"], "description": "How much it matters."},
                    },
                    "required": ["content", "status"],
                    "additionalProperties": false,
                },
            },
        }),
        required: &["todos"],
        effects: Effects::Notes,
        switch: Switch::On,
        run: Arc::new(TodoWrite {
            place: place.clone(),
        }),
    }
}

impl Run for TodoWrite {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(self.write(call))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Todo {
    content: String,
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Status {
    fn mark(self) -> &'static str {
        match self {
            Status::Pending => "[ ]",
            Status::InProgress => "[>]",
            Status::Completed => "[x]",
        }
    }
}

impl TodoWrite {
    async fn write(&self, call: &Call) -> CallResult {
        let given = call.arguments.get("todos").cloned().unwrap_or_default();
        let todos: Vec<Todo> = serde_json::from_value(given)
            .map_err(|error| CallError::invalid(format!("`todos` can't be read: {error}")))?;
        let list = json!(todos).to_string();
        let kept = self
            .place
            .todos
            .replace(&thread(call, &self.place), &list)
            .await;
        let before = kept.map_err(|error| {
            CallError::unavailable(format!("the list could not be kept: {error}"))
                .hint("`toolcrib doctor` says what is wrong with the store; go on without the list")
        })?;
        let before: Vec<Todo> = before
            .and_then(|text| serde_json::from_str(&text).ok())
            .unwrap_or_default();
        let count = |status| todos.iter().filter(|todo| todo.status == status).count();
        let (done, left) = (
            count(Status::Completed),
            todos.len() - count(Status::Completed),
        );
        let lines = todos.iter().map(|todo| {
            let priority = todo.priority.as_deref();
            let priority = priority.map(|priority| format!(" ({priority})"));
            format!(
                "{} {}{}",
                todo.status.mark(),
                todo.content,
                priority.unwrap_or_default()
            )
        });
        let output = match todos.is_empty() {
            true => "The list is empty".to_owned(),
            false => lines.collect::<Vec<_>>().join("\n"),
        };
        Ok(Outcome::text(output)
            .title(format!("{left} to do, {done} done"))
            .meta("todos", json!(todos))
            .meta("before", json!(before)))
    }
}

/// Whose list it is: one of a thread of an agent in a project. Everything in it may be a client's words, so its hash is
/// kept.
fn thread(call: &Call, place: &Place) -> String {
    let caller = &call.caller;
    let project = place.directory().to_string_lossy();
    let context = &call.context;
    let thread = context.thread.as_deref().or(context.session_id.as_deref());
    let thread = thread.unwrap_or_default();
    let token = caller.token.as_deref().unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [&project, &*caller.agent, &*caller.client, token, thread] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hex(&hash.finalize()[..16])
}
