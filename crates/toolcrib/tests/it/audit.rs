//! The record of calls, from every surface, read over REST and on the command line.

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, initialize, notification, request, stateless_call};
use crate::support::{TestCrib, World, eventually, shell_tool};

fn world() -> World {
    let world = World::loose();
    world.write_tool(
        "say.json",
        shell_tool(
            "say",
            "echo {{what}}",
            json!({"what": {"type": "string", "default": "hi"}}),
        ),
    );
    world.write_tool("fail.json", shell_tool("fail", "false", json!({})));
    world
}

/// The calls that fit, newest first, once there are so many.
async fn calls(crib: &TestCrib, query: &str, count: usize) -> Vec<Value> {
    let path = format!("/calls{query}");
    eventually(&format!("{count} calls at {path}"), async || {
        let (status, list) = crib.get(&path).await;
        assert_eq!(status, 200, "{list}");
        list["calls"].as_array().unwrap().len() >= count
    })
    .await;
    let (_, list) = crib.get(&path).await;
    let list = list["calls"].as_array().unwrap().clone();
    assert_eq!(list.len(), count, "{list:?}");
    list
}

fn levels(call: &Value) -> [&str; 3] {
    ["transport", "protocol", "outcome"].map(|level| call[level].as_str().unwrap())
}

#[tokio::test]
async fn every_end_of_a_call_is_on_record() {
    let world = world();
    let crib = world.serve();
    let mut events = crib.events().await;
    crib.call("say", json!({})).await;
    let id = events.next("tool.complete").await["callId"].clone();
    crib.call("say", json!({"what": "hi"})).await;
    crib.call("fail", json!({})).await;
    crib.call("say", json!({"what": 3})).await;
    crib.call("nobody", json!({"secret": "s3cr3t"})).await;
    let (status, _) = crib
        .post(
            "/tools/say/call",
            json!({"arguments": {"what": "other"}, "sessionId": "s-1"}),
        )
        .await;
    assert_eq!(status, 200);
    let list = calls(&crib, "", 6).await;
    let told: Vec<_> = list
        .iter()
        .map(|call| (call["tool"].as_str().unwrap(), levels(call)))
        .collect();
    assert_eq!(
        told,
        [
            ("say", ["ok", "ok", "ok"]),
            ("nobody", ["ok", "unknown_tool", "unreached"]),
            ("say", ["ok", "invalid_arguments", "unreached"]),
            ("fail", ["ok", "ok", "is_error"]),
            ("say", ["ok", "ok", "ok"]),
            ("say", ["ok", "ok", "ok"]),
        ]
    );
    assert_eq!(list[1]["error"], "unknown_tool");
    for refused in &list[1..3] {
        assert!(refused.get("argumentHash").is_none(), "{refused}");
    }
    let hash = |at: usize| list[at]["argumentHash"].as_str().unwrap();
    assert_eq!(hash(4), hash(5), "a default is an argument like any other");
    assert_ne!(hash(0), hash(4));
    assert_eq!(list[0]["sessionId"], "s-1");
    assert_eq!(
        (&list[0]["client"], &list[0]["agent"]),
        (&json!("rest"), &json!("default"))
    );
    assert_eq!(list[0]["outputBytes"], 6, "other and a newline");
    assert!(list[0]["durationMs"].as_f64().unwrap() > 0.0);
    let began: jiff::Timestamp = list[0]["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(jiff::Timestamp::now().duration_since(began).as_secs() < 60);

    let (status, one) = crib.get(&format!("/calls/{}", id.as_str().unwrap())).await;
    assert_eq!(
        (status, &one),
        (200, &list[5]),
        "the id of events is the id of the record"
    );
    for missing in ["none", "%00", "a'b"] {
        assert_eq!(
            crib.get(&format!("/calls/{missing}")).await.0,
            404,
            "{missing}"
        );
    }
    // Neither arguments nor outputs are anywhere in the store.
    crib.stop();
    let data = world.home().join(".local/share/toolcrib");
    for file in ["toolcrib.db", "toolcrib.db-wal"] {
        let bytes = std::fs::read(data.join(file)).unwrap_or_default();
        assert!(!bytes.windows(6).any(|part| part == b"s3cr3t"), "{file}");
    }
}

#[tokio::test]
async fn calls_over_mcp_and_from_commands_are_on_record_too() {
    let world = world();
    let mut session = Piped::greeted(world.command(&["mcp", "--standalone"]));
    // The client's own id is no identity: the same one twice is two calls.
    let meta = json!({"claudecode/toolUseId": "toolu_1"});
    for id in [7, 8] {
        let params = json!({"name": "say", "arguments": {}, "_meta": meta});
        session.ask(&request(id, "tools/call", params));
    }
    session.hang_up();
    world.run(&["call", "--standalone", "say"]).exits(0);
    world.run(&["call", "--standalone", "fail"]).exits(1);
    let table = world.run(&["logs", "--calls"]).exits(0);
    assert!(table.stdout.starts_with("TIME"), "{table:?}");
    assert_eq!(table.stdout.lines().count(), 5, "{table:?}");
    let list = world.run(&["logs", "--calls", "--json"]).exits(0).json();
    let clients: Vec<_> = list["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["client"].as_str().unwrap())
        .collect();
    assert_eq!(clients[..2], ["cli", "cli"]);
    assert_eq!(clients.len(), 4, "{list}");
    let failed = world
        .run(&["logs", "--calls", "--failed", "--json"])
        .exits(0)
        .json();
    assert_eq!(failed["calls"].as_array().unwrap().len(), 1);
    let of_tool = [
        "logs", "--calls", "--tool", "say", "--since", "1h", "--limit", "2", "--json",
    ];
    let page = world.run(&of_tool).exits(0).json();
    assert_eq!(page["calls"].as_array().unwrap().len(), 2);
    assert!(page["next"].is_string(), "there is one more: {page}");
    for wrong in [
        &["logs"][..],
        &["logs", "say", "--failed"],
        &["logs", "say", "--calls"],
        &["logs", "--calls", "--since", "soon"],
        &["logs", "--calls", "--limit", "0"],
    ] {
        world.run(wrong).exits(2);
    }
}

#[tokio::test]
async fn an_unknown_tool_over_mcp_is_on_record_on_every_way_in() {
    let world = world();
    let crib = world.serve();
    let mut piped = Piped::greeted(world.command(&["mcp", "--standalone"]));
    let answers = [
        crib.post_stateless(&stateless_call(1, "sayy", json!({"secret": "s3cr3t"})))
            .await
            .answer()
            .await,
        crib.session("2025-11-25")
            .await
            .ask(&call(2, "sayy", json!({})))
            .await,
        piped.ask(&call(3, "sayy", json!({}))),
    ];
    piped.hang_up();
    for answer in &answers {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.contains("did you mean `say`"), "{said}");
    }
    let list = calls(&crib, "?tool=sayy", 3).await;
    for call in &list {
        assert_eq!(levels(call), ["ok", "unknown_tool", "unreached"]);
        assert_eq!(
            (&call["client"], &call["error"]),
            (&json!("by-hand"), &json!("unknown_tool"))
        );
        assert!(call.get("argumentHash").is_none(), "{call}");
    }
}

/// The call and its cancelling come in one message: it has begun all the same.
#[tokio::test]
async fn a_call_cancelled_at_once_is_on_record() {
    const TIMES: u64 = 20;
    let world = world();
    world.write_tool("wait.json", shell_tool("wait", "sleep 30", json!({})));
    let crib = world.serve();
    let mut session = Piped::start(world.command(&["mcp", "--standalone"]));
    session.ask(&initialize(1, "2025-03-26"));
    session.send(&notification("notifications/initialized", json!({})));
    for id in 100..100 + TIMES {
        let cancelled = json!({"requestId": id});
        session.send(&json!([
            call(id, "wait", json!({})),
            notification("notifications/cancelled", cancelled)
        ]));
    }
    // Whoever is answered here has seen all that came before.
    session.ask(&request(2, "ping", json!({})));
    session.hang_up();
    let list = calls(&crib, "?tool=wait&limit=100", TIMES as usize).await;
    for call in &list {
        assert_eq!(levels(call), ["cancelled", "unreached", "unreached"]);
    }
}

#[tokio::test]
async fn a_call_given_up_is_on_record_as_cancelled() {
    let world = world();
    let marker = world.project().join("begun");
    let script = format!("sh -c 'touch {}; sleep 30'", marker.display());
    world.write_tool("wait.json", shell_tool("wait", &script, json!({})));
    let mut session = Piped::greeted(world.command(&["mcp", "--standalone"]));
    session.send(&request(
        77,
        "tools/call",
        json!({"name": "wait", "arguments": {}}),
    ));
    eventually("the call runs", async || marker.exists()).await;
    session.send(&notification(
        "notifications/cancelled",
        json!({"requestId": 77}),
    ));
    let crib = world.serve();
    let list = calls(&crib, "?tool=wait", 1).await;
    assert_eq!(levels(&list[0]), ["cancelled", "unreached", "unreached"]);
    assert!(list[0].get("error").is_none());
}

#[tokio::test]
async fn calls_are_filtered_and_read_by_page() {
    let world = world();
    let crib = world.serve();
    for n in 0..25 {
        crib.call(if n % 5 == 0 { "fail" } else { "say" }, json!({}))
            .await;
    }
    crib.call("nobody", json!({})).await;
    let all = calls(&crib, "", 26).await;
    let ids = |list: &[Value]| -> Vec<String> {
        list.iter()
            .map(|call| call["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut read = Vec::new();
    let mut path = "/calls?limit=7".to_owned();
    loop {
        let (_, page) = crib.get(&path).await;
        read.extend(ids(page["calls"].as_array().unwrap()));
        // What comes in between shifts nothing.
        crib.call("say", json!({})).await;
        match page["next"].as_str() {
            Some(next) => path = format!("/calls?limit=7&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(read, ids(&all));
    calls(&crib, "?tool=fail", 5).await;
    calls(&crib, "?outcome=failed", 6).await;
    calls(&crib, "?outcome=unknown_tool", 1).await;
    calls(
        &crib,
        "?outcome=ok&client=rest&agent=default&limit=1000",
        24,
    )
    .await;
    calls(&crib, "?client=claude", 0).await;
    let middle = all[12]["timestamp"].as_str().unwrap();
    let (_, before) = crib.get(&format!("/calls?until={middle}&limit=1000")).await;
    let (_, after) = crib.get(&format!("/calls?since={middle}&limit=1000")).await;
    let count = |list: &Value| list["calls"].as_array().unwrap().len();
    assert_eq!(count(&before) + count(&after), 30);
    assert!(count(&before) > 5 && count(&after) > 5);
    calls(&crib, "?since=99999999999999", 0).await;
    for wrong in [
        "limit=0",
        "limit=1001",
        "cursor=x",
        "outcome=odd",
        "since=soon",
        "until=-1",
        "sort=up",
        "limit=x",
    ] {
        let (status, said) = crib.get(&format!("/calls?{wrong}")).await;
        assert_eq!(
            (status, &said["error"]["code"]),
            (400, &json!("bad_request")),
            "{wrong}"
        );
        assert!(
            !said["error"]["hint"].as_str().unwrap().is_empty(),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn the_record_is_followed_and_asked_of_a_server() {
    let world = world();
    let crib = world.serve();
    crib.call("say", json!({})).await;
    calls(&crib, "", 1).await;
    let port = crib.port().to_string();
    let there = world
        .run(&["logs", "--calls", "--port", &port, "--json"])
        .exits(0)
        .json();
    assert_eq!(there["calls"][0]["tool"], "say");
    let mut follow = world.command(&["logs", "--calls", "--follow", "--json"]);
    let mut follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(follow.stdout.take().unwrap()));
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert_eq!(lines.next().unwrap()["tool"], "say");
    crib.call("fail", json!({})).await;
    assert_eq!(lines.next().unwrap()["outcome"], "is_error");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

#[tokio::test]
async fn where_records_are_required_no_call_goes_unrecorded() {
    let world = world();
    let config = world.home().join(".config/toolcrib/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "audit = \"required\"\n").unwrap();
    let crib = world.serve();
    crib.call("say", json!({})).await;
    // On record before it was answered, so without any wait.
    let (_, list) = crib.get("/calls").await;
    assert_eq!(levels(&list["calls"][0]), ["ok", "ok", "ok"], "{list}");

    let data = world.home().join(".local/share/toolcrib");
    std::fs::rename(data.join("toolcrib.db"), data.join("away.db")).unwrap();
    let mark = world.project().join("mark");
    world.write_tool(
        "touch.json",
        shell_tool("touch", &format!("touch {}", mark.display()), json!({})),
    );
    eventually("touch is there", async || {
        crib.names().await.contains(&"touch".to_owned())
    })
    .await;
    let (status, said) = crib.call("touch", json!({})).await;
    // The crib may have made a new store by now, as it does when there is none.
    if status != 200 {
        assert_eq!(
            (status, &said["error"]["code"]),
            (503, &json!("unavailable"))
        );
        assert!(
            said["error"]["message"].as_str().unwrap().contains("audit"),
            "{said}"
        );
        assert!(!mark.exists(), "it did not run");
    }
    std::fs::write(&config, "").unwrap();
    eventually("calls run unrecorded again", async || {
        crib.call("say", json!({})).await.0 == 200
    })
    .await;
}

#[tokio::test]
async fn old_calls_are_let_go_when_a_crib_begins_to_serve() {
    let world = world();
    let crib = world.serve();
    for _ in 0..12 {
        crib.call("say", json!({})).await;
    }
    calls(&crib, "", 12).await;
    crib.stop();
    let config = world.home().join(".config/toolcrib/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[audit]\nmax_rows = 5\n").unwrap();
    let crib = world.serve();
    eventually("five are left", async || {
        let (_, list) = crib.get("/calls").await;
        list["calls"].as_array().unwrap().len() == 5
    })
    .await;
}

#[tokio::test]
async fn a_call_that_outlasts_the_crib_is_on_record_as_unavailable() {
    let world = world();
    let marker = world.project().join("begun");
    let script = format!("sh -c 'touch {}; sleep 60'", marker.display());
    world.write_tool("wait.json", shell_tool("wait", &script, json!({})));
    let crib = world.serve();
    let url = format!("{}/api/tools/wait/call", crib.url);
    let asked = tokio::spawn(crib.client.post(url).send());
    eventually("the call runs", async || marker.exists()).await;
    // Asked twice, it does not wait for its calls.
    crate::support::signal(crib.pid(), libc::SIGTERM);
    let address = crib.url.trim_start_matches("http://").to_owned();
    eventually("it takes no more connections", async || {
        std::net::TcpStream::connect(&address).is_err()
    })
    .await;
    crib.stop();
    let _ = asked.await;
    let list = world.run(&["logs", "--calls", "--json"]).exits(0).json();
    assert_eq!(
        levels(&list["calls"][0]),
        ["ok", "unavailable", "unreached"],
        "{list}"
    );
}

#[tokio::test]
async fn what_was_called_is_on_record_when_a_crib_was_stopped() {
    let world = world();
    let crib = world.serve();
    for _ in 0..40 {
        crib.call("nobody", json!({})).await;
    }
    assert_eq!(crib.stop(), Some(0));
    let list = world
        .run(&["logs", "--calls", "--json", "--limit", "100"])
        .exits(0)
        .json();
    assert_eq!(list["calls"].as_array().unwrap().len(), 40);
}
