//! What a worker says: answers, notices and lines for its log.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use toolcrib_core::{Json, Progress};

use super::Desk;
use crate::worker::lines::{Line, Lines, Overflow};
use crate::worker::log::Moment;
use crate::worker::message::{Message, RpcError, number};

/// How long what was written to stderr may lag behind what was written to stdout.
const SECOND_PIPE: Duration = Duration::from_millis(10);
/// How long a script may take to answer after it was kept from starting a program.
const WITHOUT: Duration = Duration::from_secs(1);
/// What shells print then.
const NOT_PERMITTED: &str = "Operation not permitted";

impl Desk {
    pub(super) async fn read(&self, stdout: impl AsyncRead + Unpin) -> Option<Overflow> {
        let mut lines = Lines::new(stdout);
        loop {
            match lines.next().await {
                Ok(Some(Line::Message(message) | Line::Unreadable(message))) => self.take(*message),
                Ok(Some(Line::Text(text))) => self.say(&text),
                Ok(None) => return None,
                Err(overflow) => return Some(overflow),
            }
        }
    }

    /// A line for the log that came over stdout.
    fn say(&self, text: &str) {
        let text = self.mask.text(text);
        self.ring.push(text.as_bytes());
        self.ring.push(b"\n");
        self.ground.logs.append(&self.log, text.as_bytes());
    }

    pub(super) async fn listen(&self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 * 1_024];
        let mut masked = self.mask.stream();
        let hear = |bytes: &[u8]| {
            if !bytes.is_empty() {
                self.ring.push(bytes);
                self.ground.logs.append(&self.log, bytes);
            }
        };
        while let Ok(read) = stderr.read(&mut chunk).await {
            if read == 0 {
                break;
            }
            hear(&masked.push(&chunk[..read]));
        }
        hear(&masked.finish());
    }

    /// What it said since then. Its two pipes are read side by side, and what it said before its answer may come later.
    pub(super) async fn said_since(&self, moment: Moment) -> String {
        let lag = if self.hindered { WITHOUT } else { SECOND_PIPE };
        let latest = Instant::now() + lag;
        while self.ring.since(moment).is_empty() && Instant::now() < latest {
            tokio::time::sleep(SECOND_PIPE).await;
        }
        self.ring.since(moment)
    }

    /// Ends once it is clear that a shell script, which starts other programs to answer, was not allowed to.
    pub(super) async fn kept_from_answering(&self) {
        if !self.hindered {
            return std::future::pending().await;
        }
        while !self.ring.tail().contains(NOT_PERMITTED) {
            tokio::time::sleep(SECOND_PIPE).await;
        }
        // It may go on without.
        tokio::time::sleep(WITHOUT).await;
    }

    fn take(&self, message: Message) {
        match message {
            Message::Answer { id, result } => self.answer(id, result),
            Message::Notice { method, params } => self.notice(&method, &params),
        }
    }

    fn answer(&self, id: Option<u64>, result: Result<Json, RpcError>) {
        let result = result.map_err(|mut error| {
            self.mask.cover(&mut error.message);
            if let Some(data) = &mut error.data {
                self.mask.cover_value(data);
            }
            error
        });
        let mut inbox = self.inbox();
        let only = (inbox.waiting.len() == 1)
            .then(|| inbox.waiting.keys().next().copied())
            .flatten();
        // A result that does not say whose it is may be anybody's.
        let result = match id {
            None => result.and_then(|_| Err(RpcError::nobodys())),
            Some(_) => result,
        };
        let waiting = id.or(only).and_then(|id| inbox.waiting.remove(&id));
        drop(inbox);
        match waiting {
            Some(waiting) => {
                let _ = waiting.answer.send(Ok(result));
            }
            None => self.say("[toolcrib] an answer came that no request waits for; it was dropped"),
        }
    }

    fn notice(&self, method: &str, params: &Value) {
        let text = |key: &str| params.get(key).and_then(Value::as_str).map(str::to_owned);
        match method {
            "progress" => {
                let id = params.get("id").and_then(number);
                let context = id.and_then(|id| self.inbox().waiting.get(&id)?.context.clone());
                let Some(context) = context else { return };
                context.progress(Progress {
                    title: text("title"),
                    message: text("message"),
                    progress: params.get("progress").and_then(Value::as_f64),
                    total: params.get("total").and_then(Value::as_f64),
                    data: match params.get("data") {
                        Some(Value::Object(data)) => data.clone(),
                        _ => serde_json::Map::new(),
                    },
                });
            }
            "waiting" => {
                let id = params.get("id").and_then(number);
                let turn = id.and_then(|id| self.inbox().waiting.get_mut(&id)?.turn.take());
                drop(turn);
            }
            "log" => {
                let message = text("message").unwrap_or_default();
                match text("level") {
                    Some(level) => self.say(&format!("[{level}] {message}")),
                    // What a tool printed stands there as it was printed.
                    None => self.say(&message),
                }
            }
            other => {
                let method = &*self.mask.text(other);
                tracing::debug!(tool = self.name, method, "unknown notification");
            }
        }
    }
}
