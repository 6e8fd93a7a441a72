//! The relay: hands an agent's MCP lines to the crib that serves the project, and outlives that crib's restarts.
//!
//! It knows just enough of the protocol for that: which requests are unanswered, which of them may be asked again,
//! and what a client of the old era said first, because a new server has to hear it too.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::UnixStream;
use tokio::time::Instant;

use crate::serve::lines::{MAX_LINE, Scan, refusal};
use crate::serve::socket::{PATH, protocol};

/// How long new requests are held while no crib answers.
const HOLD: Duration = Duration::from_secs(10);
const RETRY_EVERY: Duration = Duration::from_millis(50);
/// Marks the relay's own requests.
const OWN_ID: &str = "toolcrib-relay";

/// Both directions of one connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to the crib that serves the project, if there is one of this very version.
pub async fn connect(socket: &Path) -> Option<Box<dyn Stream>> {
    let mut stream = UnixStream::connect(socket).await.ok()?;
    let head = format!(
        "GET {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: {}\r\n\r\n",
        protocol()
    );
    let greeted = tokio::time::timeout(Duration::from_secs(2), async {
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the head is already the server's.
        while !answer.ends_with(b"\r\n\r\n") && answer.len() < 4_096 {
            answer.push(stream.read_u8().await.ok()?);
        }
        answer.starts_with(b"HTTP/1.1 101").then_some(())
    });
    greeted.await.ok()??;
    Some(Box::new(stream))
}

/// What is still owed to the client, and what a new server has to hear first.
#[derive(Default)]
struct RelayState {
    /// The client's `initialize` and `notifications/initialized`, for servers that come later.
    hello: Vec<Value>,
    /// Requests without an answer, by the text of their id, in the order they came.
    pending: Vec<(String, Value)>,
    /// Tools that may be called twice, as the lists that passed by said.
    repeatable: HashMap<String, bool>,
    /// Ids of requests that the relay itself asked.
    own: HashSet<String>,
    asked: u64,
}

impl RelayState {
    /// Remembers what the client sends.
    fn sent(&mut self, message: &Value) {
        let method = message.get("method").and_then(Value::as_str);
        match (method, message.get("id")) {
            (Some("initialize"), Some(id)) => {
                self.hello = vec![message.clone()];
                self.pending.push((id.to_string(), message.clone()));
            }
            (Some("notifications/initialized"), None) => self.hello.push(message.clone()),
            (Some("notifications/cancelled"), None) => {
                let id = message.pointer("/params/requestId").map(Value::to_string);
                self.pending
                    .retain(|(pending, _)| Some(pending) != id.as_ref());
            }
            (Some(_), Some(id)) => self.pending.push((id.to_string(), message.clone())),
            _ => {}
        }
    }

    /// Remembers what the server answers. Gives whether the client should see it.
    fn received(&mut self, message: &Value) -> bool {
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        let Some(id) = message
            .get("id")
            .filter(|_| is_answer)
            .map(Value::to_string)
        else {
            return true;
        };
        if self.own.remove(&id) {
            return false;
        }
        self.pending.retain(|(pending, _)| *pending != id);
        for tool in message
            .pointer("/result/tools")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let hint = |key: &str| {
                tool.pointer(&format!("/annotations/{key}")) == Some(&Value::Bool(true))
            };
            if let Some(name) = tool.get("name").and_then(Value::as_str) {
                self.repeatable.insert(
                    name.to_owned(),
                    hint("readOnlyHint") || hint("idempotentHint"),
                );
            }
        }
        true
    }

    fn may_repeat(&self, message: &Value) -> bool {
        if message.get("method").and_then(Value::as_str) != Some("tools/call") {
            return true;
        }
        let tool = message.pointer("/params/name").and_then(Value::as_str);
        tool.is_some_and(|tool| self.repeatable.get(tool) == Some(&true))
    }

    /// What a new server is told, and what the client is told about calls that may not be repeated.
    fn start_over(&mut self) -> (Vec<Value>, Vec<Value>) {
        let mut to_server = Vec::new();
        let unanswered: HashSet<String> = self.pending.iter().map(|(id, _)| id.clone()).collect();
        for message in self.hello.clone() {
            let mut message = message;
            match message.get("id").map(Value::to_string) {
                // The client still waits for this answer: it is asked again below.
                Some(id) if unanswered.contains(&id) => continue,
                Some(_) => {
                    self.asked += 1;
                    let id = json!(format!("{OWN_ID}-{}", self.asked));
                    self.own.insert(id.to_string());
                    message["id"] = id;
                }
                None => {}
            }
            to_server.push(message);
        }
        let mut to_client = Vec::new();
        for (id, message) in std::mem::take(&mut self.pending) {
            if self.may_repeat(&message) {
                to_server.push(message.clone());
                self.pending.push((id, message));
            } else {
                to_client.push(lost(&message));
            }
        }
        (to_server, to_client)
    }
}

/// The answer to a call that reached a server which is gone.
fn lost(message: &Value) -> Value {
    let stateless = message
        .pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion")
        .is_some();
    let text = "the crib was restarted during this call, and the tool does not say that it may be repeated\n\
                hint: check what it did, then call again";
    let mut result = json!({
        "content": [{"type": "text", "text": text}],
        "isError": true,
        "_meta": {"toolcrib/code": "unavailable"},
    });
    if stateless {
        result["resultType"] = "complete".into();
    }
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

/// Why a relay ended.
enum Ended {
    ClientGone,
    ServerGone,
}

/// Relays between the client's two streams and a crib, until the client hangs up. `alone` makes a crib of one's own
/// when no other answers for [`HOLD`].
pub async fn run(
    client_in: impl AsyncRead + Send + Unpin,
    mut client_out: impl AsyncWrite + Send + Unpin,
    socket: PathBuf,
    first: Box<dyn Stream>,
    alone: impl AsyncFnOnce() -> Box<dyn Stream>,
) -> std::io::Result<()> {
    let mut client_in = BufReader::new(client_in);
    let mut memory = RelayState::default();
    let mut alone = Some(alone);
    let mut server = first;
    loop {
        match pump(&mut client_in, &mut client_out, server, &mut memory).await? {
            Ended::ClientGone => return Ok(()),
            Ended::ServerGone => {}
        }
        server = match (reconnect(&socket).await, alone.take()) {
            (Some(next), own) => {
                alone = own;
                next
            }
            (None, Some(own)) => own().await,
            (None, None) => return Ok(()),
        };
        let (to_server, to_client) = memory.start_over();
        for message in to_client {
            write_line(&mut client_out, &message.to_string()).await?;
        }
        for message in to_server {
            // A server that is gone again is noticed when it is read from.
            let _ = write_line(&mut server, &message.to_string()).await;
        }
    }
}

async fn reconnect(socket: &Path) -> Option<Box<dyn Stream>> {
    let deadline = Instant::now() + HOLD;
    while Instant::now() < deadline {
        if let Some(stream) = connect(socket).await {
            return Some(stream);
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
    None
}

async fn pump(
    client_in: &mut (impl AsyncBufRead + Send + Unpin),
    client_out: &mut (impl AsyncWrite + Send + Unpin),
    server: Box<dyn Stream>,
    memory: &mut RelayState,
) -> std::io::Result<Ended> {
    let (server_in, mut server_out) = tokio::io::split(server);
    let mut server_in = BufReader::new(server_in);
    let (mut from_client, mut from_server) = (Line::default(), Line::default());
    loop {
        tokio::select! {
            read = from_client.read(client_in) => {
                let line = match read? {
                    Read::Line(line) => line,
                    Read::TooLong(id) => {
                        write_line(client_out, &refusal(id, "request").to_string()).await?;
                        continue;
                    }
                    Read::End => return Ok(Ended::ClientGone),
                };
                if let Ok(message) = serde_json::from_slice(&line) {
                    memory.sent(&message);
                }
                if server_out.write_all(&line).await.is_err() || server_out.flush().await.is_err() {
                    return Ok(Ended::ServerGone);
                }
            }
            read = from_server.read(&mut server_in) => {
                let line = match read {
                    Ok(Read::Line(line)) => line,
                    // Its request is answered all the same, if this is an answer.
                    Ok(Read::TooLong(Some(id))) => format!("{}\n", refusal(Some(id), "answer")).into_bytes(),
                    Ok(Read::TooLong(None)) => continue,
                    Ok(Read::End) | Err(_) => return Ok(Ended::ServerGone),
                };
                let shown = match serde_json::from_slice(&line) {
                    Ok(message) => memory.received(&message),
                    Err(_) => true,
                };
                if shown {
                    client_out.write_all(&line).await?;
                    client_out.flush().await?;
                }
            }
        }
    }
}

/// What came of reading a line.
enum Read {
    Line(Vec<u8>),
    /// It was passed over; this is the id of its message, if one was found.
    TooLong(Option<Value>),
    End,
}

/// A line that is being read.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// Looks at what is no longer kept.
    passing: Option<Scan>,
}

impl Line {
    /// Reads on to the line's end. What was read stays when this future is dropped.
    async fn read(&mut self, stream: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Read> {
        loop {
            let chunk = stream.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(Read::End);
            }
            let (taken, whole) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (chunk.len(), false),
            };
            self.take(&chunk[..taken]);
            stream.consume(taken);
            if whole {
                let Line { bytes, passing } = std::mem::take(self);
                return Ok(match passing {
                    Some(scan) => Read::TooLong(scan.id()),
                    None => Read::Line(bytes),
                });
            }
        }
    }

    fn take(&mut self, part: &[u8]) {
        if self.passing.is_none() && self.bytes.len() + part.len() > MAX_LINE {
            let mut scan = Scan::default();
            scan.feed(&std::mem::take(&mut self.bytes));
            self.passing = Some(scan);
        }
        match &mut self.passing {
            Some(scan) => scan.feed(part),
            None => self.bytes.extend_from_slice(part),
        }
    }
}

async fn write_line(
    stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    text: &str,
) -> std::io::Result<()> {
    stream.write_all(text.as_bytes()).await?;
    stream.write_all(b"\n").await?;
    stream.flush().await
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
