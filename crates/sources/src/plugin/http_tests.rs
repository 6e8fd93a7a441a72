//! Tests of http tools against a small server on loopback: requests, redirects, refusals, bodies.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolcrib_core::{
    Access, AttachmentKind, Caller, Context, ErrorCode, Outcome, Run, Schema, SourceKind, Tool,
    ToolName,
};

use std::io;
use std::net::SocketAddr;

use reqwest::StatusCode;

use super::*;
use crate::testing;

type Answer = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

/// A server that answers by the request's first line and remembers what it was asked.
struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer): (_, Answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                let reply = answer(request.lines().next().unwrap_or_default());
                log.lock().unwrap().push(request);
                let _ = stream.write_all(&reply).await;
            }
        });
        Server { address, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

async fn read_request(stream: &mut tokio::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                line.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return text,
            Ok(read) => bytes.extend_from_slice(&buffer[..read]),
        }
    }
}

fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn moved(status: &str, location: &str) -> Vec<u8> {
    reply(status, &format!("Location: {location}\r\n"), b"")
}

fn http_in(place: &Arc<Place>, handler: Value) -> Http {
    let mut report = Report::new(Path::new("f.json"), toolcrib_core::SourceKind::Plugin);
    let spec = Spec::new(ToolName::new("t").unwrap(), "", Schema::any_object());
    let read = Http::read(
        &Fields::new("handler", handler.as_object().unwrap()),
        &spec,
        place,
        &mut report,
    );
    assert!(!report.failed, "{:?}", report.finish());
    read.unwrap()
}

fn http(handler: Value) -> Http {
    http_in(&testing::place(None), handler)
}

struct Nothing;

impl Run for Nothing {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async { Ok(Outcome::default()) })
    }
}

async fn call(http: &Http, arguments: Value) -> CallResult {
    let spec = Spec::new(ToolName::new("t").unwrap(), "", Schema::any_object());
    let tool = Tool::new(
        spec,
        SourceKind::Plugin,
        Access::Open,
        "",
        Arc::new(Nothing),
    );
    let arguments = arguments.as_object().unwrap().clone().into();
    http.run(&Call {
        tool: Arc::new(tool),
        arguments,
        caller: Caller::new("test"),
        context: Context::noop(),
    })
    .await
}

#[tokio::test]
async fn arguments_go_into_query_or_body() {
    let server = Server::start(|_| {
        reply(
            "200 OK",
            "Content-Type: application/json\r\n",
            b"{\"ok\":true}",
        )
    })
    .await;
    let base = format!("http://{}", server.address);
    let get = http(
        json!({"url": "{{url}}/health", "method": "GET", "headers": {"X-Lang": "${LANG}"}, "allowedHosts": ["127.0.0.1"]}),
    );
    let outcome = call(&get, json!({"url": base, "q": "a b", "secret": "s"}))
        .await
        .unwrap();
    assert_eq!(
        (outcome.output.as_str(), outcome.is_error),
        ("{\"ok\":true}", false)
    );
    assert_eq!(outcome.metadata["status"], 200);
    assert_eq!(outcome.metadata["contentType"], "application/json");
    assert_eq!(outcome.metadata["url"], format!("{base}/health"));

    let post = http(json!({"url": format!("{base}/{{{{id}}}}")}));
    call(&post, json!({"id": "x/y", "n": 1, "none": null}))
        .await
        .unwrap();
    let asked = server.asked();
    assert!(
        asked[0].starts_with("GET /health?q=a+b&secret=s HTTP/1.1\r\n"),
        "{}",
        asked[0]
    );
    assert!(asked[0].contains("x-lang: C.UTF-8\r\n"), "{}", asked[0]);
    assert!(
        asked[1].starts_with("POST /x%2Fy HTTP/1.1\r\n") && asked[1].ends_with("\r\n\r\n{\"n\":1}"),
        "{}",
        asked[1]
    );
    assert!(asked[1].contains("content-type: application/json\r\n"));
}

#[tokio::test]
async fn failures_are_told() {
    let server = Server::start(|line| match line.contains("/empty") {
        true => reply("404 Not Found", "", b""),
        false => reply("500 Oops", "Content-Type: text/plain\r\n", b"broken"),
    })
    .await;
    let tool = http(json!({"url": format!("http://{}/{{{{x}}}}", server.address)}));
    let outcome = call(&tool, json!({"x": "y"})).await.unwrap();
    assert!(outcome.is_error);
    assert_eq!(
        (outcome.output.as_str(), &outcome.metadata["status"]),
        ("broken", &500.into())
    );
    assert_eq!(
        call(&tool, json!({"x": "empty"})).await.unwrap().output,
        "status 404 Not Found"
    );

    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let gone = http(json!({"url": format!("http://{closed}/x?key=hidden")}));
    let error = call(&gone, json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(
        error.message.contains(&closed.to_string()) && !error.message.contains("hidden"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn redirects_are_followed_and_methods_change_as_they_should() {
    let server = Server::start(|line| match line.split(' ').nth(1) {
        Some("/a") => moved("302 Found", "/b"),
        Some("/b") => moved("307 Temporary Redirect", "c?x=1"),
        Some("/keep") => moved("308 Permanent Redirect", "/c"),
        Some("/see") => moved("303 See Other", "/c"),
        Some("/loop") => moved("302 Found", "/loop"),
        _ => reply("200 OK", "", b"end"),
    })
    .await;
    let tool = |path: &str, method: &str| {
        http(json!({"url": format!("http://{}{path}", server.address), "method": method}))
    };
    assert_eq!(
        call(&tool("/a", "POST"), json!({"n": 1}))
            .await
            .unwrap()
            .output,
        "end"
    );
    call(&tool("/keep", "PUT"), json!({"n": 1})).await.unwrap();
    call(&tool("/see", "PUT"), json!({"n": 1})).await.unwrap();
    let asked = server.asked();
    let lines: Vec<&str> = asked
        .iter()
        .map(|request| request.split(" HTTP").next().unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            "POST /a",
            "GET /b",
            "GET /c?x=1",
            "PUT /keep",
            "PUT /c",
            "PUT /see",
            "GET /c"
        ]
    );
    assert!(asked[4].ends_with("{\"n\":1}") && asked[6].ends_with("\r\n\r\n"));
    let error = call(&tool("/loop", "GET"), json!({})).await.unwrap_err();
    assert!(
        error.message.contains("more than 5 times"),
        "{}",
        error.message
    );
    assert_eq!(server.asked().len(), 7 + 6);
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_first_call() {
    for location in [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://2852039166/",
        "http://metadata.google.internal/",
        "http://user:pass@127.0.0.1/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
    ] {
        let server = Server::start(move |_| moved("302 Found", location)).await;
        let tool = http(json!({"url": "{{url}}/x", "method": "GET"}));
        let error = call(&tool, json!({"url": format!("http://{}", server.address)}))
            .await
            .unwrap_err();
        assert_eq!(
            error.code,
            ErrorCode::Denied,
            "{location}: {}",
            error.message
        );
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_needs_to_be_allowed_and_gets_no_secrets() {
    let second = Server::start(|_| reply("200 OK", "", b"second")).await;
    let to = format!("http://localhost:{}/", second.port());
    let first = Server::start(move |_| moved("302 Found", &to)).await;
    let url = format!("http://{}/", first.address);
    let narrow = http(json!({"url": url, "method": "GET"}));
    assert_eq!(
        call(&narrow, json!({})).await.unwrap_err().code,
        ErrorCode::Denied
    );
    assert!(second.asked().is_empty());

    let headers = json!({"X-Key": "${LANG}", "Authorization": "literal", "Accept": "text/x"});
    let mut wide = http(
        json!({"url": url, "method": "GET", "headers": headers, "allowedHosts": ["localhost"]}),
    );
    wide.lookup = Arc::new(|_, port| {
        Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) })
    });
    assert_eq!(call(&wide, json!({})).await.unwrap().output, "second");
    assert!(
        first.asked()[1].contains("x-key: C.UTF-8")
            && first.asked()[1].contains("authorization: literal")
    );
    let got = second.asked()[0].to_lowercase();
    assert!(
        !got.contains("x-key") && !got.contains("authorization") && got.contains("accept: text/x"),
        "{got}"
    );
}

#[tokio::test]
async fn the_checked_address_is_the_one_that_is_used() {
    let server = Server::start(|_| reply("200 OK", "", b"good")).await;
    let tool = http(
        json!({"url": format!("http://rebinding.invalid:{}/", server.port()), "method": "GET"}),
    );
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = lookups.clone();
    let rebinding = Http {
        // A hostile name server: harmless the first time, the metadata service ever after.
        lookup: Arc::new(move |_, port| {
            let ip = if count.fetch_add(1, Ordering::SeqCst) == 0 {
                [127, 0, 0, 1]
            } else {
                [169, 254, 169, 254]
            };
            Box::pin(async move { Ok(vec![SocketAddr::from((ip, port))]) })
        }),
        ..tool
    };
    assert_eq!(call(&rebinding, json!({})).await.unwrap().output, "good");
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    assert_eq!(
        call(&rebinding, json!({})).await.unwrap_err().code,
        ErrorCode::Denied
    );
}

#[tokio::test]
async fn one_bad_address_among_good_ones_is_enough() {
    let mut tool = http(json!({"url": "http://mixed.invalid/", "method": "GET"}));
    tool.lookup = Arc::new(|_, port| {
        Box::pin(async move {
            Ok(vec![
                ([127, 0, 0, 1], port).into(),
                ([169, 254, 1, 1], port).into(),
            ])
        })
    });
    assert_eq!(
        call(&tool, json!({})).await.unwrap_err().code,
        ErrorCode::Denied
    );
    tool.lookup = Arc::new(|_, _| Box::pin(async { Ok(Vec::new()) }));
    assert_eq!(
        call(&tool, json!({})).await.unwrap_err().code,
        ErrorCode::Unavailable
    );
    tool.lookup = Arc::new(|_, _| Box::pin(async { Err(io::Error::other("no such name")) }));
    assert_eq!(
        call(&tool, json!({})).await.unwrap_err().code,
        ErrorCode::Unavailable
    );
}

#[tokio::test]
async fn the_cribs_own_port_is_refused() {
    let server = Server::start(|_| reply("200 OK", "", b"")).await;
    let place = testing::place(None);
    let tool = http_in(&place, json!({"url": "{{url}}", "method": "GET"}));
    let url = json!({"url": format!("http://{}", server.address)});
    assert!(call(&tool, url.clone()).await.is_ok());
    for own in [
        server.address,
        SocketAddr::from(([0, 0, 0, 0], server.port())),
    ] {
        let place = testing::place(None);
        place.own_address.set(own).unwrap();
        let tool = http_in(&place, json!({"url": "{{url}}", "method": "GET"}));
        assert_eq!(
            call(&tool, url.clone()).await.unwrap_err().code,
            ErrorCode::Denied
        );
    }
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn bodies_are_bounded_and_bytes_become_attachments() {
    let server = Server::start(|line| match line.split(' ').nth(1) {
        Some("/large") => reply(
            "200 OK",
            "Content-Type: text/plain\r\n",
            "ä".repeat(100_000).as_bytes(),
        ),
        Some("/png") => reply("200 OK", "Content-Type: image/png\r\n", &[0x89, b'P', 0xFF]),
        Some("/blob") => reply("200 OK", "", &[0xFF, 0xFE]),
        Some("/huge") => reply(
            "200 OK",
            "Content-Type: application/zip\r\n",
            &vec![0xFF; 5_000_001],
        ),
        Some("/hugetext") => reply(
            "200 OK",
            "Content-Type: application/x-log\r\n",
            &vec![b'a'; 6_000_000],
        ),
        _ => reply(
            "200 OK",
            "Content-Type: application/octet-stream\r\n",
            b"plain",
        ),
    })
    .await;
    let tool =
        http(json!({"url": format!("http://{}/{{{{x}}}}", server.address), "method": "GET"}));
    let large = call(&tool, json!({"x": "large"})).await.unwrap();
    assert_eq!(large.whole.as_ref().unwrap().bytes, 200_000);
    assert!(large.output.len() <= 64 * 1_024 && !large.output.contains('\u{fffd}'));

    let png = call(&tool, json!({"x": "png"})).await.unwrap();
    assert_eq!(
        (
            png.attachments[0].kind,
            png.attachments[0].mime_type.as_str()
        ),
        (AttachmentKind::Image, "image/png")
    );
    assert_eq!(png.attachments[0].data.as_deref(), Some("iVD/"));
    assert_eq!(
        call(&tool, json!({"x": "blob"})).await.unwrap().attachments[0].kind,
        AttachmentKind::File
    );
    assert_eq!(
        call(&tool, json!({"x": "text"})).await.unwrap().output,
        "plain"
    );

    let huge = call(&tool, json!({"x": "huge"})).await.unwrap();
    assert!(huge.is_error && huge.attachments.is_empty() && huge.metadata["status"] == 200);
    let text = call(&tool, json!({"x": "hugetext"})).await.unwrap();
    assert_eq!(text.whole.unwrap().bytes, 6_000_000);
}

#[test]
fn only_some_redirects_become_get() {
    let table = [
        (301, Method::POST, true),
        (302, Method::POST, true),
        (302, Method::PUT, false),
        (303, Method::PUT, true),
        (307, Method::POST, false),
        (308, Method::POST, false),
    ];
    for (status, method, expected) in table {
        assert_eq!(
            becomes_get(StatusCode::from_u16(status).unwrap(), &method),
            expected,
            "{status} {method}"
        );
    }
}
