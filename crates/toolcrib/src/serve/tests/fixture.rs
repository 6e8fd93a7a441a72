//! A served crib with a few tools, for the tests of the HTTP surface.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use toolcrib_core::{
    Access, BoxFuture, Call, CallError, CallResult, ChainSettings, Change, Crib, ErrorCode,
    ErrorType, Outcome, OutputId, Outputs, Page, Problem, Profiles, Rank, Run, Schema, SourceKey,
    SourceKind, Spec, Spool, Tool, ToolName, Update, Whole,
};

use crate::serve::auth::Auth;
use crate::serve::{Served, http};

/// Nothing in these tests takes this long; what does, hangs.
pub const LONG: Duration = Duration::from_secs(20);

/// What `slow` tells and waits for.
#[derive(Default)]
pub struct Gate {
    pub entered: Notify,
    pub open: Notify,
}

/// Runs a closure as a tool.
struct Does<F>(F);

impl<F> Run for Does<F>
where
    F: for<'a> Fn(&'a Call) -> BoxFuture<'a, CallResult> + Send + Sync,
{
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        (self.0)(call)
    }
}

pub fn does<F>(f: F) -> Arc<dyn Run>
where
    F: for<'a> Fn(&'a Call) -> BoxFuture<'a, CallResult> + Send + Sync + 'static,
{
    Arc::new(Does(f))
}

pub fn tool(name: &str, run: Arc<dyn Run>) -> Tool {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let spec = Spec::new(
        ToolName::new(name).unwrap(),
        format!("the tool {name}"),
        Schema::parse(schema).unwrap(),
    );
    Tool::new(spec, SourceKind::Builtin, Access::Open, name, run)
}

pub fn update(key: &str, rank: Rank, tools: Vec<Tool>, problems: Vec<Problem>) -> Update {
    let tools = tools.into_iter().map(Arc::new).collect();
    Update {
        key: SourceKey(key.into()),
        rank,
        file: None,
        tools,
        problems,
    }
}

/// A tool that says what it was given.
pub fn echo() -> Arc<dyn Run> {
    does(|call: &Call| {
        Box::pin(async move {
            let ids = json!({
                "session": call.context.session_id.as_deref(),
                "message": call.context.message_id.as_deref(),
                "client": &*call.caller.client,
                "directory": call.context.directory.as_ref().map(|path| path.display().to_string()),
            });
            let said = call
                .arguments
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or("nothing");
            Ok(Outcome::text(said).meta("ids", ids))
        })
    })
}

fn tools(gate: &Arc<Gate>) -> Vec<Tool> {
    let failing = does(|_: &Call| {
        Box::pin(async {
            Ok(Outcome {
                is_error: true,
                ..Outcome::text("it did not work")
            })
        })
    });
    let crashing = does(|_: &Call| {
        Box::pin(async {
            Err(CallError::new(ErrorCode::Crashed, "the worker died").hint("look at its log"))
        })
    });
    let big =
        does(|_: &Call| Box::pin(async { Ok(Outcome::text("0123456789\n".repeat(100_000))) }));
    let panicking = does(|_: &Call| Box::pin(async { panic!("a secret detail") }));
    let gate = gate.clone();
    let slow = does(move |_: &Call| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.entered.notify_one();
            gate.open.notified().await;
            Ok(Outcome::text("at last"))
        })
    });
    let mut late = tool("late", does(|_: &Call| Box::pin(std::future::pending())));
    late.spec.timeout = Some(Duration::from_millis(1));
    let mut plugin = tool("plugged", echo());
    plugin.source = SourceKind::Plugin;
    plugin.access = Access::untrusted("the-project");
    vec![
        tool("echo", echo()),
        tool("failing", failing),
        tool("crashing", crashing),
        tool("big", big),
        tool("panicking", panicking),
        tool("slow", slow),
        late,
        plugin,
    ]
}

/// Kept outputs in memory, which also notes the largest page that was asked for.
#[derive(Default)]
pub struct OutputsInMemory {
    texts: Mutex<HashMap<String, (String, Vec<u8>)>>,
    pub largest_page: Mutex<usize>,
}

impl Outputs for OutputsInMemory {
    fn keep<'a>(&'a self, owner: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(async move {
            let mut texts = self.texts.lock().unwrap();
            let id = format!("{:08x}", texts.len() + 1);
            texts.insert(id.clone(), (owner.to_owned(), text.to_vec()));
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
            Ok(Whole {
                id: OutputId::parse(&id).unwrap(),
                bytes: text.len() as u64,
                lines,
                cut: false,
            })
        })
    }

    fn spool<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    fn read<'a>(
        &'a self,
        owner: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        Box::pin(async move {
            let texts = self.texts.lock().unwrap();
            let kept = texts.get(id.as_str()).filter(|(of, _)| of == owner);
            let (_, text) = kept.ok_or(io::ErrorKind::NotFound)?;
            let mut largest = self.largest_page.lock().unwrap();
            *largest = (*largest).max(max);
            let start = usize::try_from(offset).unwrap().min(text.len());
            let end = start.saturating_add(max).min(text.len());
            Ok(Page {
                offset,
                bytes: text[start..end].to_vec(),
                total: text.len() as u64,
            })
        })
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        let mut texts = self.texts.lock().unwrap();
        let kept = texts.remove(id.as_str()).filter(|(of, _)| of == owner);
        let removed = kept.map(drop).ok_or(io::ErrorKind::NotFound.into());
        Box::pin(std::future::ready(removed))
    }
}

/// A server on a port of its own.
pub struct TestServer {
    pub served: Arc<Served>,
    pub address: SocketAddr,
    pub client: Client,
    pub gate: Arc<Gate>,
    pub kept: Arc<OutputsInMemory>,
    pub running: JoinHandle<io::Result<()>>,
}

impl TestServer {
    pub async fn start() -> TestServer {
        TestServer::with(|served| served).await
    }

    pub async fn with(change: impl FnOnce(Served) -> Served) -> TestServer {
        let (gate, kept) = (
            Arc::new(Gate::default()),
            Arc::new(OutputsInMemory::default()),
        );
        let crib = Arc::new(Crib::new(
            kept.clone(),
            || 1_700_000_000_000,
            Profiles::everybody(ChainSettings::new(LONG)),
        ));
        let problem = Problem::error(SourceKind::Plugin, ErrorType::Syntax, "not JSON")
            .file("bad.json")
            .at(3, 4);
        crib.apply(vec![
            update("builtin", Rank::Builtin, tools(&gate), Vec::new()),
            update("bad.json", Rank::Folder(0), Vec::new(), vec![problem]),
        ]);
        let served = Arc::new(change(Served::new(crib)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = http::router(served.clone(), address, Auth::off());
        let running = tokio::spawn(http::serve(listener, router, served.clone()));
        TestServer {
            served,
            address,
            client: client(),
            gate,
            kept,
            running,
        }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client
            .request(method, format!("http://{}{path}", self.address))
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub async fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> Response {
        self.request(Method::POST, path)
            .body(body)
            .send()
            .await
            .unwrap()
    }

    pub async fn call(&self, tool: &str, body: Value) -> Response {
        self.post(&format!("/api/tools/{tool}/call"), body.to_string())
            .await
    }
}

fn client() -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Already installed by another test in this process is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let redirect = reqwest::redirect::Policy::none();
    Client::builder()
        .timeout(LONG)
        .redirect(redirect)
        .no_proxy()
        .build()
        .unwrap()
}

/// The status and the JSON of an answer.
pub async fn answer(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    assert_eq!(
        response.headers()["content-type"],
        "application/json",
        "{status}"
    );
    (status, response.json().await.unwrap())
}

/// Checks that an answer is the one shape of an error, and gives its message and hint.
pub async fn refused(response: Response, status: u16, code: &str) -> (String, String) {
    let (got, body) = answer(response).await;
    assert_eq!(
        (got, body["error"]["code"].as_str()),
        (status, Some(code)),
        "{body}"
    );
    let text = |field: &str| body["error"][field].as_str().unwrap().to_owned();
    assert!(!text("message").is_empty());
    assert!(body.as_object().unwrap().len() == 1, "{body}");
    (text("message"), text("hint"))
}

/// The events of a stream, one after the other.
pub struct Listener {
    response: Response,
    text: String,
}

impl Listener {
    pub async fn new(server: &TestServer) -> Listener {
        let response = server.get("/api/events").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Listener {
            response,
            text: String::new(),
        }
    }

    /// The next event's name and data; none when the stream has ended.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    event
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                if let (Some(name), Some(data)) = (field("event: "), field("data: ")) {
                    return Some((name, serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

/// A reload that applies what it is sent.
pub fn reload_of(crib: Arc<Crib>, mut updates: mpsc::Receiver<Vec<Update>>) -> impl Fn() -> Change {
    let next = Mutex::new(move || updates.try_recv().unwrap_or_default());
    move || crib.apply((next.lock().unwrap())())
}
