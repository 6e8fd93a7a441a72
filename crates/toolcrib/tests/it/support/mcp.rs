//! MCP by hand: messages as bytes over stdin and stdout, or over HTTP, without a library between.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};

use super::{PATIENCE, TestCrib};

/// The revisions that begin with `initialize`.
pub const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision whose requests stand alone.
pub const STATELESS: &str = "2026-07-28";

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

pub fn initialize(id: u64, version: &str) -> Value {
    let client = json!({"name": "by-hand", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    request(id, "initialize", params)
}

/// A request that carries all that 2026-07-28 wants in its `_meta`.
pub fn stateless(id: u64, method: &str, mut params: Value) -> Value {
    let meta = &mut params["_meta"];
    meta["io.modelcontextprotocol/protocolVersion"] = STATELESS.into();
    meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "by-hand", "version": "1"});
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request(id, method, params)
}

pub fn call(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    request(id, "tools/call", params)
}

pub fn stateless_call(id: u64, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    stateless(id, "tools/call", params)
}

/// The names in the result of `tools/list`.
pub fn names(answer: &Value) -> Vec<&str> {
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("no list: {answer}"));
    let names = tools.iter().map(|tool| tool["name"].as_str().unwrap());
    names.collect()
}

/// A client that started `toolcrib mcp`. Both end with the test.
pub struct Piped {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Every line that came and was not asked for yet.
    unread: Vec<Value>,
}

impl Piped {
    pub fn start(command: Command) -> Piped {
        Piped::start_with(command, Stdio::null())
    }

    fn start_with(mut command: Command, stderr: Stdio) -> Piped {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let mut lines = stdout.lines().map_while(Result::ok);
            lines.all(|line| sender.send(line).is_ok())
        });
        Piped {
            child,
            stdin,
            lines,
            unread: Vec::new(),
        }
    }

    /// A client that said hello in an old revision.
    pub fn greeted(command: Command) -> Piped {
        Piped::greeted_with(command, Stdio::null())
    }

    pub fn greeted_with(command: Command, stderr: Stdio) -> Piped {
        let mut piped = Piped::start_with(command, stderr);
        let hello = piped.ask(&initialize(0, "2025-11-25"));
        assert_eq!(hello["result"]["serverInfo"]["name"], "toolcrib", "{hello}");
        piped.send(&notification("notifications/initialized", json!({})));
        piped
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(message.to_string().as_bytes());
    }

    /// Sends one line as it is.
    pub fn send_bytes(&mut self, line: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line).unwrap();
        stdin.write_all(b"\n").unwrap();
        stdin.flush().unwrap();
    }

    /// Waits for a message of which this is true; others stay for later. Every line must be JSON-RPC.
    #[track_caller]
    pub fn wait(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(place) = self.unread.iter().position(&is) {
                return self.unread.remove(place);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no {what} came, but {:?}", self.unread);
            };
            let message: Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("stdout has {line:?}: {error}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
            self.unread.push(message);
        }
    }

    /// The next line as it is, where none came unasked.
    #[track_caller]
    pub fn wait_line(&mut self) -> String {
        assert!(self.unread.is_empty(), "{:?}", self.unread);
        let line = self.lines.recv_timeout(PATIENCE);
        line.expect("a line in time")
    }

    /// The next line, which may be an array.
    #[track_caller]
    pub fn wait_any(&mut self) -> Value {
        serde_json::from_str(&self.wait_line()).expect("JSON on stdout")
    }

    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait(&format!("answer {id}"), |message| message["id"] == id)
    }

    #[track_caller]
    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.answer(message["id"].as_u64().unwrap())
    }

    #[track_caller]
    pub fn notified(&mut self, method: &str) -> Value {
        self.wait(method, |message| message["method"] == method)
    }

    /// Hangs up, and gives the exit code and what had come unasked.
    pub fn hang_up(mut self) -> (Option<i32>, Vec<Value>) {
        drop(self.stdin.take());
        let code = self.child.wait().unwrap().code();
        let rest = self.lines.iter();
        let rest = rest.map(|line| serde_json::from_str(&line).expect("JSON on stdout"));
        self.unread.extend(rest);
        (code, std::mem::take(&mut self.unread))
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer over HTTP: one body, or messages one after the other.
pub struct Stream {
    pub response: reqwest::Response,
    buffer: String,
}

impl Stream {
    pub fn of(response: reqwest::Response) -> Stream {
        Stream {
            response,
            buffer: String::new(),
        }
    }

    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The body as JSON, or the message in it that is an answer.
    pub async fn answer(mut self) -> Value {
        let kind = self.response.headers()["content-type"].to_str().unwrap();
        if kind.starts_with("text/event-stream") {
            return self
                .message("answer", |message| message.get("id").is_some())
                .await;
        }
        let body = self.response.bytes().await.unwrap();
        serde_json::from_slice(&body)
            .unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into())
    }

    /// Waits for a message of which this is true.
    pub async fn message(&mut self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let come = async {
            loop {
                while let Some(end) = self.buffer.find("\n\n") {
                    let block: String = self.buffer.drain(..end + 2).collect();
                    let data: String = block
                        .lines()
                        .filter_map(|line| line.strip_prefix("data:"))
                        .collect();
                    match serde_json::from_str(data.trim()) {
                        Ok(message) if is(&message) => return message,
                        _ => {}
                    }
                }
                let chunk = self
                    .response
                    .chunk()
                    .await
                    .unwrap()
                    .expect("the stream goes on");
                self.buffer
                    .push_str(&String::from_utf8_lossy(&chunk).replace('\r', ""));
            }
        };
        let come = tokio::time::timeout(PATIENCE, come).await;
        come.unwrap_or_else(|_| panic!("no {what} came"))
    }

    pub async fn notified(&mut self, method: &str) -> Value {
        self.message(method, |message| message["method"] == method)
            .await
    }
}

impl TestCrib {
    /// Posts a body to `/mcp` with exactly these headers and those that every client sends.
    pub async fn post_mcp(
        &self,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Stream {
        let mut request = self
            .client
            .post(format!("{}/mcp", self.url))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let sent = tokio::time::timeout(PATIENCE, request.send()).await;
        let response = sent.expect("an answer in time").unwrap();
        Stream::of(response)
    }

    /// Posts a request of 2026-07-28 with the headers that belong to it.
    pub async fn post_stateless(&self, message: &Value) -> Stream {
        let mut headers = vec![("mcp-protocol-version", STATELESS)];
        headers.push(("mcp-method", message["method"].as_str().unwrap()));
        let params = &message["params"];
        if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
            headers.push(("mcp-name", name));
        }
        self.post_mcp(&headers, message.to_string()).await
    }

    /// Begins a session of an old revision.
    pub async fn session(&self, version: &str) -> Session<'_> {
        let hello = self.post_mcp(&[], initialize(0, version).to_string()).await;
        assert_eq!(hello.status(), 200);
        let id = hello.response.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let hello = hello.answer().await;
        let session = Session {
            crib: self,
            id,
            version: hello["result"]["protocolVersion"]
                .as_str()
                .unwrap()
                .to_owned(),
            hello,
        };
        let done = notification("notifications/initialized", json!({}));
        assert_eq!(session.post(&done).await.status(), 202);
        session
    }
}

/// A session of an old revision over HTTP.
pub struct Session<'a> {
    crib: &'a TestCrib,
    pub id: String,
    version: String,
    pub hello: Value,
}

impl Session<'_> {
    fn headers(&self) -> [(&str, &str); 2] {
        [
            ("mcp-session-id", &self.id),
            ("mcp-protocol-version", &self.version),
        ]
    }

    pub async fn post(&self, message: &Value) -> Stream {
        self.crib
            .post_mcp(&self.headers(), message.to_string())
            .await
    }

    pub async fn ask(&self, message: &Value) -> Value {
        self.post(message).await.answer().await
    }

    /// Opens the stream on which the server speaks by itself.
    pub async fn listen(&self) -> Stream {
        let mut request = self.crib.client.get(format!("{}/mcp", self.crib.url));
        request = request.header("accept", "text/event-stream");
        for (name, value) in self.headers() {
            request = request.header(name, value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        Stream::of(response)
    }
}
