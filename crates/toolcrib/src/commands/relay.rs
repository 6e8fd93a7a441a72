//! The relay: hands an agent's MCP lines to the crib that serves the project, and outlives that crib's restarts.
//!
//! It knows just enough of the protocol for that: which requests are unanswered, which of them may be asked again,
//! and what a client of the old era said first, because a new server has to hear it too.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::Instant;
use toolcrib_core::error::STOPPED;

use crate::serve::mcp::asker::Stated;
use crate::serve::mcp::framing::{Line, Read, refusal, write_line};
use crate::serve::mcp::message::{self, Id, Incoming, Message, Request, Response};
use crate::serve::mcp::reply::Answer;
use crate::serve::socket::{PATH, SESSION_HEADER, protocol};

/// How long new requests are held while no crib answers.
const HOLD: Duration = Duration::from_secs(10);
const RETRY_EVERY: Duration = Duration::from_millis(50);
/// Marks the relay's own requests.
const OWN_ID: &str = "toolcrib-relay";

/// Both directions of one connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why no crib is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCrib {
    /// None answers.
    Silent,
    /// One answers that is of this version, and not of ours.
    OtherVersion(String),
}

/// Connects to the crib that serves the project, if there is one of this very version.
pub async fn connect(socket: &Path, session: &str) -> Result<Box<dyn Stream>, NoCrib> {
    let stream = UnixStream::connect(socket).await;
    let mut stream = stream.map_err(|_| NoCrib::Silent)?;
    let head = format!(
        "GET {PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: {}\r\n{SESSION_HEADER}: {session}\r\n\r\n",
        protocol()
    );
    let greeted = tokio::time::timeout(Duration::from_secs(2), async {
        stream.write_all(head.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        // Byte by byte: what follows the head is already the server's.
        while !answer.ends_with(b"\r\n\r\n") && answer.len() < 4_096 {
            answer.push(stream.read_u8().await.ok()?);
        }
        if answer.starts_with(b"HTTP/1.1 101") {
            return Some(Ok(()));
        }
        if !answer.starts_with(b"HTTP/1.1 426") {
            return None;
        }
        // It says which version it is, and nothing else.
        let mut version = [0; 32];
        let length = stream.read(&mut version).await.ok()?;
        let version = String::from_utf8_lossy(&version[..length]);
        let plain = |c: &char| c.is_ascii_alphanumeric() || ".-+".contains(*c);
        let version = version.chars().take_while(plain).collect();
        Some(Err(NoCrib::OtherVersion(version)))
    });
    match greeted.await {
        Ok(Some(greeted)) => greeted.map(|()| Box::new(stream) as Box<dyn Stream>),
        Ok(None) | Err(_) => Err(NoCrib::Silent),
    }
}

/// What is still owed to the client, and what a new server has to hear first. Messages stay as they came.
#[derive(Default)]
struct RelayState {
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

/// What a request asks for, as far as it matters here.
enum Asks {
    List,
    Call { tool: String, stateless: bool },
    Other,
}

impl RelayState {
    /// Remembers what the client sends.
    fn sent(&mut self, line: &[u8]) {
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
    fn received(&mut self, line: &[u8]) -> bool {
        match message::read(line) {
            Ok(Incoming::One(Message::Response(response))) => self.received_one(&response),
            Ok(Incoming::Batch(items)) => {
                for item in items {
                    if let Ok(Message::Response(response)) =
                        message::read_one(item.get().as_bytes())
                    {
                        self.received_one(&response);
                    }
                }
                true
            }
            Ok(Incoming::One(_)) | Err(_) => true,
        }
    }

    fn received_one(&mut self, response: &Response) -> bool {
        let Some(id) = &response.id else { return true };
        if self.own.remove(id.as_json()) {
            return false;
        }
        let answered = self.pending.iter().position(|pending| pending.id == *id);
        let Some(at) = answered else { return true };
        // A call that ended with its crib is asked of the next one, where it may be.
        if self.may_repeat(&self.pending[at].asks) && response.result.is_ok_and(was_stopped) {
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
    fn start_over(&mut self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
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
    (socket, session): (PathBuf, Arc<str>),
    first: Box<dyn Stream>,
    alone: impl AsyncFnOnce(NoCrib) -> Box<dyn Stream>,
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
        server = match (reconnect(&socket, &session).await, alone.take()) {
            (Ok(next), own) => {
                alone = own;
                next
            }
            (Err(reason), Some(own)) => own(reason).await,
            (Err(_), None) => return Ok(()),
        };
        let (to_server, to_client) = memory.start_over();
        for message in to_client {
            write_line(&mut client_out, &message).await?;
        }
        for message in to_server {
            // A server that is gone again is noticed when it is read from.
            let _ = write_line(&mut server, &message).await;
        }
    }
}

async fn reconnect(socket: &Path, session: &str) -> Result<Box<dyn Stream>, NoCrib> {
    let deadline = Instant::now() + HOLD;
    while Instant::now() < deadline {
        match connect(socket, session).await {
            Err(NoCrib::Silent) => tokio::time::sleep(RETRY_EVERY).await,
            // Waiting makes it no other one.
            answered => return answered,
        }
    }
    Err(NoCrib::Silent)
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
                        write_line(client_out, &refusal(id.as_ref(), "request")).await?;
                        continue;
                    }
                    Read::End => return Ok(Ended::ClientGone),
                };
                memory.sent(&line);
                if server_out.write_all(&line).await.is_err() || server_out.flush().await.is_err() {
                    return Ok(Ended::ServerGone);
                }
            }
            read = from_server.read(&mut server_in) => {
                let line = match read {
                    Ok(Read::Line(line)) => line,
                    // Its request is answered all the same, if this is an answer.
                    Ok(Read::TooLong(Some(id))) => {
                        let mut refusal = refusal(Some(&id), "answer");
                        refusal.push(b'\n');
                        refusal
                    }
                    Ok(Read::TooLong(None)) => continue,
                    Ok(Read::End) | Err(_) => return Ok(Ended::ServerGone),
                };
                if memory.received(&line) {
                    client_out.write_all(&line).await?;
                    client_out.flush().await?;
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
