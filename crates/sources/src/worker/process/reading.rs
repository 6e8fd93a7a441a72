//! What a worker says: answers, notices and lines for its log.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use toolcrib_core::{Json, Progress};

use super::Desk;
use crate::worker::lines::{Line, Lines, Overflow};
use crate::worker::message::{Message, RpcError, number};

impl Desk {
    pub(super) async fn read(&self, stdout: impl AsyncRead + Unpin) -> Option<Overflow> {
        let mut lines = Lines::new(stdout);
        loop {
            match lines.next().await {
                Ok(Some(Line::Message(message))) => self.take(*message),
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
        let only = (inbox.waiting.len() == 1 && result.is_err())
            .then(|| inbox.waiting.keys().next().copied())
            .flatten();
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
            "log" => {
                let level = text("level").unwrap_or_else(|| "info".to_owned());
                self.say(&format!(
                    "[{level}] {}",
                    text("message").unwrap_or_default()
                ));
            }
            other => {
                let method = &*self.mask.text(other);
                tracing::debug!(tool = self.name, method, "unknown notification");
            }
        }
    }
}
