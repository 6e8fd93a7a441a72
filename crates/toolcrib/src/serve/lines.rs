//! MCP in lines, on stdio and behind the socket: one message a line, and an answer also to a line that is too long.
//!
//! The library drops such a line without a word, and its sender would wait for ever. So whoever reads lines looks at
//! the bytes as they pass by and remembers only the message's id, however long the line is.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use rmcp::RoleServer;
use rmcp::model::{ErrorData, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use toolcrib_core::BoxFuture;

/// The longest line that is read, its end included.
pub const MAX_LINE: usize = 16 * 1_024 * 1_024;
/// JSON-RPC's "invalid request".
const CODE: i32 = -32600;
/// No honest id is longer than this.
const MAX_ID: usize = 256;
/// A key that fills this is not `"id"`.
const MAX_KEY: usize = 8;
/// Lines that were too long and whose senders have not been told yet; each took at least [`MAX_LINE`] to send.
const MAX_UNTOLD: usize = 16;

/// Finds the `id` of a message while its line passes by.
#[derive(Debug, Default)]
pub struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// What stands where a key of the message may stand.
    key: Vec<u8>,
    in_id: bool,
    id: Vec<u8>,
}

impl Scan {
    pub fn feed(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    /// The id that was found, if it is one.
    pub fn id(&self) -> Option<Value> {
        let id: Value = serde_json::from_slice(&self.id).ok()?;
        let whole = self.id.len() < MAX_ID;
        (whole && (id.is_string() || id.is_u64() || id.is_i64())).then_some(id)
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_string => self.escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    return;
                }
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.depth == 1 => {
                self.in_id = self.key == b"\"id\"";
                return self.key.clear();
            }
            b',' if self.depth == 1 => {
                self.in_id = false;
                return self.key.clear();
            }
            _ if byte.is_ascii_whitespace() => return,
            _ => {}
        }
        if self.depth == 0 {
            return;
        }
        if self.in_id && self.id.len() < MAX_ID {
            self.id.push(byte);
        } else if self.depth == 1 && self.key.len() < MAX_KEY {
            self.key.push(byte);
        }
    }
}

/// What is said about a line that is too long.
fn reason(what: &str) -> String {
    let limit = MAX_LINE / (1_024 * 1_024);
    format!("the {what} is a line of more than {limit} MiB, which is not read")
}

/// The answer to a message whose line is too long. Without an id where none was found, as the protocol says.
pub fn refusal(id: Option<Value>, what: &str) -> Value {
    let error = json!({"code": CODE, "message": reason(what)});
    match id {
        Some(id) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        None => json!({"jsonrpc": "2.0", "error": error}),
    }
}

/// Reads a stream for the library, and tells of every line that the library will drop.
struct Watched<R> {
    stream: R,
    length: usize,
    scan: Scan,
    too_long: mpsc::Sender<Option<Value>>,
}

impl<R> Watched<R> {
    fn saw(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.length += part.len();
            self.scan.feed(part);
            if part.ends_with(b"\n") {
                let scan = std::mem::take(&mut self.scan);
                if std::mem::take(&mut self.length) > MAX_LINE {
                    let _ = self.too_long.try_send(scan.id());
                }
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.saw(&buffer.filled()[before..]);
        read
    }
}

/// The library's transport over two streams, which also answers lines that are too long.
pub struct Lines<R: AsyncRead + Unpin, W: AsyncWrite> {
    library: AsyncRwTransport<RoleServer, Watched<R>, W>,
    too_long: mpsc::Receiver<Option<Value>>,
    /// A refusal on its way out: it goes on when the library stops waiting for a message and asks again.
    telling: Option<BoxFuture<'static, io::Result<()>>>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub fn new(stream: R, output: W) -> Lines<R, W> {
        let (sender, too_long) = mpsc::channel(MAX_UNTOLD);
        let watched = Watched {
            stream,
            length: 0,
            scan: Scan::default(),
            too_long: sender,
        };
        Lines {
            library: AsyncRwTransport::new(watched, output).with_max_line_length(MAX_LINE),
            too_long,
            telling: None,
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.library.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(telling) = &mut self.telling {
                // Who can't be told is found to be gone when the stream is read.
                let _ = telling.await;
                self.telling = None;
            }
            tokio::select! {
                biased;
                Some(id) = self.too_long.recv() => {
                    let id = id.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
                    let error = ErrorData::invalid_request(reason("request"), None);
                    let told = TxJsonRpcMessage::<RoleServer>::error(error, id);
                    self.telling = Some(Box::pin(self.library.send(told)));
                }
                message = self.library.receive() => return message,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.library.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<Value> {
        let mut scan = Scan::default();
        // However the bytes are cut.
        line.as_bytes().chunks(3).for_each(|part| scan.feed(part));
        scan.id()
    }

    #[test]
    fn the_id_is_found_wherever_it_stands() {
        let long = "x".repeat(9_000);
        for (line, id) in [
            (r#"{"id":7,"method":"m"}"#.to_owned(), json!(7)),
            (
                r#" { "jsonrpc" : "2.0" , "id" : "a,\"}b" }"#.to_owned(),
                json!("a,\"}b"),
            ),
            (
                format!(
                    r#"{{"method":"m","params":{{"id":1,"a":["{long}",{{"id":2}}]}},"id":-3}}"#
                ),
                json!(-3),
            ),
            (
                format!(r#"{{"params":{{"a":"\"id\":9,{long}\\"}},"id":4,"jsonrpc":"2.0"}}"#),
                json!(4),
            ),
        ] {
            assert_eq!(found(&line), Some(id), "{}", &line[..20]);
        }
    }

    #[test]
    fn what_is_no_id_is_not_taken_for_one() {
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(MAX_ID));
        for line in [
            "",
            "xxxx",
            "{",
            r#"{"params":{"id":1}}"#,
            r#"{"a":"id","b":1}"#,
            r#"{"id":{"id":1}}"#,
            r#"{"id":null}"#,
            r#"{"id":1.5}"#,
            r#"[{"id":1}]"#,
            r#"["id",1]"#,
            &long,
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
