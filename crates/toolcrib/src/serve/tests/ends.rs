//! How calls end that never came to their tool, or died in it: each is answered, and each is recorded.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};
use toolcrib_core::store::{CallBook, CallRecord, Recorded, StoreError};
use toolcrib_core::{
    BoxFuture, Call, Caller, ChainSettings, Crib, Loading, Object, Outcome, Pending, Profiles,
    Rank, Schema, Tool,
};

use super::fixture::{Gate, LONG, OutputsInMemory, TestServer, does, echo, tool, update};
use crate::serve::auth::Who;
use crate::serve::socket::Socket;
use crate::serve::{Served, mcp};
use crate::surface::SurfaceCall;

fn panics() -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "panicking", "arguments": {}, "_meta": meta});
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
}

fn assert_told(answer: &Value) {
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(7), &json!(-32603)),
        "{answer}"
    );
    assert!(!answer.to_string().contains("a secret detail"), "{answer}");
}

#[tokio::test]
async fn an_agent_is_told_that_a_call_ended_in_a_panic() {
    let server = TestServer::start().await;
    let (ours, theirs) = tokio::io::duplex(64 * 1_024);
    let (input, output) = tokio::io::split(theirs);
    let mcp = mcp::Mcp::new(server.served.clone());
    let owner = (Who::owner(), mcp::new_session());
    tokio::spawn(mcp::lines(mcp, owner, input, output));
    let (read, mut write) = tokio::io::split(ours);
    let line = format!("{}\n", panics());
    write.write_all(line.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(read).lines();
    let answer = timeout(LONG, lines.next_line()).await.expect("no answer");
    assert_told(&serde_json::from_str(&answer.unwrap().unwrap()).unwrap());

    let posted = server.request(reqwest::Method::POST, "/mcp");
    let posted = posted
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "panicking");
    let answer = posted.body(panics().to_string()).send().await.unwrap();
    assert_told(&answer.json().await.unwrap());
}

/// A book in memory.
#[derive(Default)]
struct Pages(Mutex<Vec<CallRecord>>);

impl CallBook for Pages {
    fn record(&self, record: CallRecord) -> Recorded {
        self.0.lock().unwrap().push(record);
        Recorded::Queued
    }

    fn record_durably(&self, record: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        self.record(record);
        Box::pin(std::future::ready(Ok(())))
    }

    fn argument_hash(&self, _: &Object) -> Option<String> {
        None
    }
}

/// A crib with a tool of which nobody knows yet what it is.
fn describing() -> (Arc<Served>, Arc<Pages>) {
    let book = Arc::new(Pages::default());
    let crib = Crib::with_book(
        Arc::new(OutputsInMemory::default()),
        || 7,
        Profiles::everybody(ChainSettings::new(LONG)),
        Some(book.clone()),
    );
    let mut unknown = tool("unknown", echo());
    unknown.pending = Some(Pending::Description);
    let found = update("builtin", Rank::Builtin, vec![unknown], Vec::new());
    crib.apply(vec![found]);
    crib.set_loading(Loading::Describing);
    (Arc::new(Served::new(Arc::new(crib))), book)
}

fn call() -> SurfaceCall {
    SurfaceCall::new(Caller::new("test"), "unknown", Object::default())
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_tool_to_be_known_is_told_of_a_stop() {
    let (served, book) = describing();
    let begun = Instant::now();
    let running = served.call(call());
    served.given_up.cancel();
    // What the tool would have said does not matter here; that it was waited for does.
    let _ = running.await;
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(book.0.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_before_a_tool_is_known_is_recorded() {
    let (served, book) = describing();
    let second = Duration::from_secs(1);
    assert!(timeout(second, served.call(call())).await.is_err());
    let records = std::mem::take(&mut *book.0.lock().unwrap());
    let [record] = &records[..] else {
        panic!("{records:?}")
    };
    assert_eq!(
        (&*record.tool, record.transport.as_word()),
        ("unknown", Some("cancelled"))
    );
    drop(served.call(call()));
    let all = book.0.lock().unwrap();
    assert!(all.is_empty(), "it was never begun: {all:?}");
}

/// A tool that gives more at once than a socket holds, once it may.
fn large(gate: &Arc<Gate>) -> Tool {
    let gate = gate.clone();
    let run = does(move |_: &Call| {
        let gate = gate.clone();
        Box::pin(async move {
            gate.entered.notify_one();
            gate.open.notified().await;
            Ok(Outcome::structured(json!({"text": "x".repeat(LARGE)})))
        })
    });
    let mut large = tool("large", run);
    large.spec.output_schema = Some(Schema::parse_result(json!({"type": "object"})).unwrap());
    large
}

const LARGE: usize = 900_000;

#[tokio::test]
async fn the_socket_does_not_end_before_its_answers_are_read() {
    let gate = Arc::new(Gate::default());
    let server = TestServer::start().await;
    let served = server.served.clone();
    let found = update("large", Rank::Builtin, vec![large(&gate)], Vec::new());
    served.crib.apply(vec![found]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("at/socket");
    let socket = Socket::claim(&path).unwrap().unwrap();
    let mut serving = std::pin::pin!(socket.serve(served.clone(), Arc::new(|_| None)));
    let asked = async {
        let mut client = UnixStream::connect(&path).await.unwrap();
        let head =
            "POST /api/tools/large/call HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        gate.entered.notified().await;
        client
    };
    let mut client = tokio::select! {
        client = asked => client,
        () = serving.as_mut() => panic!("nobody stopped it"),
    };
    served.shutdown.cancel();
    gate.open.notify_one();
    tokio::select! {
        biased;
        () = serving.as_mut() => panic!("nobody has read the answer"),
        () = served.calls_ended() => {}
    }
    let read = async {
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        answer.len()
    };
    let both = async { tokio::join!(read, serving) };
    let (read, ()) = timeout(LONG, both).await.expect("it goes on");
    assert!(read > LARGE, "{read} bytes");
    assert!(!path.exists(), "the next crib may have the place");
}
