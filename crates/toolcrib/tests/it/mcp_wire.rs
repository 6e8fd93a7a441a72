//! MCP on the wire, byte by byte: every revision, good and bad requests, over HTTP and stdio.

use serde_json::{Value, json};

use crate::support::mcp::{
    LEGACY, Piped, STATELESS, call, initialize, names, notification, request, stateless,
    stateless_call,
};
use crate::support::plugin::{file, shell};
use crate::support::{TestCrib, World};

/// A project with one tool that takes a word and one that prints too much.
fn world() -> World {
    let world = World::trusted();
    world.write("long.txt", "0123456789\n".repeat(9_000));
    let mut say = shell("say", "echo {{word}}", json!({"word": {"type": "string"}}));
    say["inputSchema"]["required"] = json!(["word"]);
    let plain = shell("plain", "echo plain", json!({}));
    let long = shell("long", "cat long.txt", json!({}));
    let region = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
    let placed = shell("placed", "echo {{region}}", region);
    world.write_tool("test.json", file(&[say, plain, long, placed]));
    world
}

fn piped(world: &World) -> Piped {
    Piped::greeted(world.command(&["mcp"]))
}

fn text(answer: &Value) -> &str {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {answer}"))
}

/// Still there, and still right?
async fn lives(crib: &TestCrib) {
    let answer = crib
        .post_stateless(&stateless_call(1, "plain", json!({})))
        .await;
    assert_eq!(text(&answer.answer().await).trim_end(), "plain");
}

fn is_hello(hello: &Value, version: &str) {
    let result = &hello["result"];
    assert_eq!(result["protocolVersion"], version, "{hello}");
    assert_eq!(result["serverInfo"]["name"], "toolcrib");
    assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
    assert!(result["capabilities"]["resources"].is_object());
    assert!(
        result["instructions"]
            .as_str()
            .unwrap()
            .contains("read-output")
    );
}

#[tokio::test]
async fn every_old_revision_begins_a_session_and_works_in_it() {
    let world = world();
    let crib = world.serve();
    for version in LEGACY {
        let session = crib.session(version).await;
        is_hello(&session.hello, version);
        let list = session.ask(&request(1, "tools/list", json!({}))).await;
        assert!(names(&list).contains(&"say"), "{version}");
        let said = session.ask(&call(2, "say", json!({"word": "hi"}))).await;
        assert_eq!(text(&said).trim_end(), "hi", "{version}");
        assert_eq!(said["result"].get("resultType"), None, "{version}");

        let mut piped = Piped::start(world.command(&["mcp"]));
        is_hello(&piped.ask(&initialize(7, version)), version);
        piped.send(&notification("notifications/initialized", json!({})));
        let said = piped.ask(&call(8, "say", json!({"word": "hi"})));
        assert_eq!(text(&said).trim_end(), "hi", "{version}");
        assert_eq!(
            piped.ask(&request(9, "ping", json!({})))["result"],
            json!({})
        );
        assert_eq!(piped.hang_up().0, Some(0));
    }
}

#[tokio::test]
async fn the_new_revision_needs_no_hello() {
    let world = world();
    let crib = world.serve();
    let discover = stateless(1, "server/discover", json!({}));
    let over_http = crib.post_stateless(&discover).await;
    assert_eq!(over_http.status(), 200);
    let over_http = over_http.answer().await;
    let mut piped = Piped::start(world.command(&["mcp"]));
    let over_stdio = piped.ask(&discover);
    for found in [&over_http, &over_stdio] {
        let result = &found["result"];
        let versions = result["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!(STATELESS)), "{found}");
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert!(result["instructions"].is_string());
        assert_eq!(result["resultType"], "complete");
    }
    assert_eq!(over_http["result"], over_stdio["result"]);

    let list = piped.ask(&stateless(2, "tools/list", json!({})));
    let by_http = crib
        .post_stateless(&stateless(2, "tools/list", json!({})))
        .await;
    assert_eq!(list["result"], by_http.answer().await["result"]);
    let said = piped.ask(&stateless_call(3, "say", json!({"word": "hi"})));
    assert_eq!(text(&said).trim_end(), "hi");
    assert_eq!(said["result"]["resultType"], "complete");
}

/// The same request twice: as it is, and with a progress token, with which anything may come before the answer.
async fn both_ways(crib: &TestCrib, method: &str, params: Value) -> (Value, Value) {
    let plain = crib
        .post_stateless(&stateless(5, method, params.clone()))
        .await;
    let mut with_token = params;
    with_token["_meta"]["progressToken"] = json!("t");
    let streamed = crib.post_stateless(&stateless(5, method, with_token)).await;
    assert_eq!(plain.status(), streamed.status());
    (plain.answer().await, streamed.answer().await)
}

#[tokio::test]
async fn whether_progress_is_wanted_changes_no_answer() {
    let world = world();
    let crib = world.serve();
    let requests = [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "plain"})),
        ("tools/call", json!({"name": "plain", "arguments": {}})),
        (
            "tools/call",
            json!({"name": "say", "arguments": {"word": "hi"}}),
        ),
        (
            "tools/call",
            json!({"name": "say", "arguments": {"word": 7}}),
        ),
        ("tools/call", json!({"name": "say"})),
        ("tools/call", json!({"name": "workspace-info"})),
        ("tools/call", json!({"name": "no-such-tool"})),
        (
            "tools/call",
            json!({"name": "placed", "arguments": {"region": "here"}}),
        ),
        (
            "tools/call",
            json!({"name": "plain", "_meta": {"claudecode/toolUseId": "id", "other": [1, {"a": null}]}}),
        ),
    ];
    for (method, params) in requests {
        let (plain, streamed) = both_ways(&crib, method, params.clone()).await;
        let ended = plain.get("result").or(plain.get("error"));
        assert!(ended.is_some_and(Value::is_object), "{params}: {plain}");
        assert_eq!(timeless(plain), timeless(streamed), "{method} {params}");
    }
}

/// Without what differs between any two calls.
fn timeless(mut answer: Value) -> Value {
    if let Some(metadata) = answer["result"]["_meta"]["toolcrib/metadata"].as_object_mut() {
        metadata.retain(|key, _| !key.ends_with("Ms"));
    }
    answer
}

#[tokio::test]
async fn missing_arguments_are_none_and_wrong_ones_are_told_to_the_model() {
    let world = world();
    let crib = world.serve();
    let session = crib.session("2025-06-18").await;
    let mut piped = piped(&world);
    let bare = request(1, "tools/call", json!({"name": "plain"}));
    let wrong = call(2, "say", json!({"word": ["not", "text"]}));
    let unknown = call(3, "no-such-tool", json!({}));
    for (bare, wrong, unknown) in [
        (piped.ask(&bare), piped.ask(&wrong), piped.ask(&unknown)),
        (
            session.ask(&bare).await,
            session.ask(&wrong).await,
            session.ask(&unknown).await,
        ),
    ] {
        assert_eq!(text(&bare).trim_end(), "plain");
        assert_eq!(wrong["result"]["isError"], true, "{wrong}");
        assert!(text(&wrong).contains("word"));
        assert_eq!(
            wrong["result"]["_meta"]["toolcrib/code"],
            "invalid_arguments"
        );
        assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
        let said = unknown["error"]["message"].as_str().unwrap();
        assert!(said.contains("no-such-tool"), "{said}");
    }
}

#[tokio::test]
async fn headers_must_agree_with_the_body() {
    let world = world();
    let crib = world.serve();
    let good = stateless_call(1, "plain", json!({})).to_string();
    let version = ("mcp-protocol-version", STATELESS);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "plain");
    let wrong: [&[(&str, &str)]; 6] = [
        &[version, ("mcp-method", "tools/list"), name],
        &[version, method, ("mcp-name", "say")],
        &[version, method],
        &[version, name],
        &[("mcp-protocol-version", "2025-11-25"), method, name],
        &[method, name],
    ];
    for headers in wrong {
        let answer = crib.post_mcp(headers, good.clone()).await;
        assert_eq!(answer.status(), 400, "{headers:?}");
        let answer = answer.answer().await;
        assert_eq!(answer["error"]["code"], -32020, "{headers:?}: {answer}");
    }
    let answer = crib.post_mcp(&[version, method, name], good).await;
    assert_eq!(text(&answer.answer().await).trim_end(), "plain");
}

#[tokio::test]
async fn a_stateless_request_must_say_who_asks_and_in_which_revision() {
    let world = world();
    let crib = world.serve();
    // The client may keep its name to itself.
    for key in ["protocolVersion", "clientCapabilities"] {
        let mut bare = stateless(1, "tools/list", json!({}));
        let meta = bare["params"]["_meta"].as_object_mut().unwrap();
        meta.remove(&format!("io.modelcontextprotocol/{key}"));
        let answer = crib.post_stateless(&bare).await;
        assert_eq!(answer.status(), 400, "{key}");
        assert_eq!(answer.answer().await["error"]["code"], -32602, "{key}");
    }
    let mut other = stateless(1, "tools/list", json!({}));
    other["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2031-01-01".into();
    let headers = [
        ("mcp-protocol-version", "2031-01-01"),
        ("mcp-method", "tools/list"),
    ];
    let answer = crib.post_mcp(&headers, other.to_string()).await;
    assert_eq!(answer.status(), 400);
    let answer = answer.answer().await;
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    let supported = answer["error"]["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!(STATELESS)), "{answer}");
    // An old client that asks for what nobody knows is offered what we know.
    let session = crib.session("2031-01-01").await;
    let offered = session.hello["result"]["protocolVersion"].as_str().unwrap();
    assert!(LEGACY.contains(&offered), "{offered}");
}

#[tokio::test]
async fn unknown_methods_are_said_to_be_unknown() {
    let world = world();
    let crib = world.serve();
    let answer = crib
        .post_stateless(&stateless(1, "tools/dance", json!({})))
        .await;
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.answer().await["error"]["code"], -32601);
    let session = crib.session("2025-11-25").await;
    let unknown = request(4, "tools/dance", json!({}));
    assert_eq!(session.ask(&unknown).await["error"]["code"], -32601);
    assert_eq!(piped(&world).ask(&unknown)["error"]["code"], -32601);
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_harms_nobody() {
    let world = world();
    let crib = world.serve();
    let batch = json!([request(1, "ping", json!({})), request(2, "ping", json!({}))]).to_string();
    let bodies = [
        "",
        "{",
        "null",
        "7",
        "\"ping\"",
        "[]",
        "{}",
        "\u{0}",
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        &batch,
    ];
    let headers = [
        ("mcp-protocol-version", STATELESS),
        ("mcp-method", "tools/list"),
    ];
    let mut piped = piped(&world);
    for body in bodies {
        for headers in [&headers[..], &[]] {
            let answer = crib.post_mcp(headers, body.to_owned()).await;
            assert!(
                (400..500).contains(&answer.status()),
                "{body}: {}",
                answer.status()
            );
        }
        piped.send_bytes(body.as_bytes());
    }
    piped.send_bytes(b"\xff\xfe{\"jsonrpc\"");
    lives(&crib).await;
    let said = piped.ask(&call(99, "say", json!({"word": "hi"})));
    assert_eq!(text(&said).trim_end(), "hi");
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_harms_nobody() {
    let world = world();
    let crib = world.serve();
    let huge = stateless_call(1, "say", json!({"word": "x".repeat(11 * 1_024 * 1_024)}));
    let answer = crib.post_stateless(&huge).await;
    assert_eq!(answer.status(), 413, "with the headers of the new revision");
    let answer = crib.post_mcp(&[], huge.to_string()).await;
    assert_eq!(answer.status(), 413, "without");
    lives(&crib).await;
}

/// The most memory that a process ever held, in kB.
fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().split_ascii_whitespace().next();
    number.unwrap().parse().unwrap()
}

/// Lines that nobody would read: refused with their id, wherever it stands, and what comes next is served.
fn refuses_long_lines(mut piped: Piped) {
    let say = |id: u64| call(id, "say", json!({"word": "hi"}));
    piped.ask(&say(1));
    let before = peak(piped.pid());
    let word = "x".repeat(20_000_000);
    let lines = [
        (call(7, "say", json!({"word": word})).to_string(), json!(7)),
        (
            format!(r#"{{"params":{{"id":1,"word":"{word}"}},"method":"tools/call","id":"last"}}"#),
            json!("last"),
        ),
        (word, Value::Null),
    ];
    for (line, id) in lines {
        piped.send_bytes(line.as_bytes());
        let refused = piped.wait("refusal", |message| message.get("error").is_some());
        assert_eq!(
            (&refused["id"], &refused["error"]["code"]),
            (&id, &json!(-32600)),
            "{refused}"
        );
        assert!(
            refused["error"]["message"]
                .as_str()
                .unwrap()
                .contains("16 MiB")
        );
        assert_eq!(text(&piped.ask(&say(2))).trim_end(), "hi");
    }
    let grown = peak(piped.pid()) - before;
    assert!(grown < 45_000, "{grown} kB more than {before} kB");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_refused_and_harms_nobody() {
    let world = world();
    refuses_long_lines(piped(&world));
    // Through the relay, which must not pass them on either.
    let crib = world.serve();
    crib.get("/tools").await;
    let before = peak(crib.pid());
    refuses_long_lines(piped(&world));
    let grown = peak(crib.pid()) - before;
    assert!(grown < 20_000, "{grown} kB more than {before} kB");
    // Before any hello, as the first thing that is said.
    let mut fresh = Piped::start(world.command(&["mcp", "--standalone"]));
    fresh.send(&call(5, "say", json!({"word": "x".repeat(20_000_000)})));
    assert_eq!(fresh.answer(5)["error"]["code"], -32600);
    is_hello(&fresh.ask(&initialize(6, "2025-11-25")), "2025-11-25");
}

#[tokio::test]
async fn pages_of_others_and_foreign_names_are_turned_away() {
    let world = world();
    let crib = world.serve();
    let body = initialize(1, "2025-11-25").to_string();
    for header in [
        ("host", "evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        let answer = crib.post_mcp(&[header], body.clone()).await;
        assert_eq!(answer.status(), 403, "{header:?}");
        let call = stateless_call(1, "plain", json!({})).to_string();
        let short = [
            header,
            ("mcp-protocol-version", STATELESS),
            ("mcp-method", "tools/call"),
            ("mcp-name", "plain"),
        ];
        assert_eq!(
            crib.post_mcp(&short, call).await.status(),
            403,
            "{header:?}"
        );
    }
}

#[tokio::test]
async fn a_kept_output_is_a_resource() {
    let world = world();
    let crib = world.serve();
    let session = crib.session("2025-11-25").await;
    let templates = session
        .ask(&request(1, "resources/templates/list", json!({})))
        .await;
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "toolcrib://outputs/{id}", "{templates}");
    let cut = session.ask(&call(2, "long", json!({}))).await;
    let id = cut["result"]["_meta"]["toolcrib/metadata"]["outputId"]
        .as_str()
        .unwrap()
        .to_owned();
    let uri = format!("toolcrib://outputs/{id}");
    let whole = "0123456789\n".repeat(9_000);
    let read = session
        .ask(&request(3, "resources/read", json!({"uri": uri})))
        .await;
    assert!(
        read["result"]["contents"][0]["text"] == whole,
        "read in a session"
    );
    let read = crib
        .post_stateless(&stateless(4, "resources/read", json!({"uri": uri})))
        .await;
    assert!(
        read.answer().await["result"]["contents"][0]["text"] == whole,
        "read without one"
    );

    for uri in [
        "toolcrib://outputs/00000000-none",
        "toolcrib://outputs/../../etc/passwd",
        "file:///etc/passwd",
    ] {
        let none = session
            .ask(&request(6, "resources/read", json!({"uri": uri})))
            .await;
        assert!(none["error"]["code"].is_i64(), "{uri}: {none}");
    }
}
