//! Nothing that a tool was handed is anywhere but in the tool.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::{LITERAL, SECRET, Scene, forms, nowhere_in, scene, write_blab};
use crate::support::files::holding;
use crate::support::mcp::{call, stateless_call};
use crate::support::{Ran, TestCrib, World, eventually, plugin};

/// Answers every request with the request itself.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let asked: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            // More than is held in memory, so that it is spooled.
            let body = asked.join("\n").repeat(2_000);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    port
}

/// Tells a variable that it was granted, in every way that a Python tool has.
const GOSSIP: &str = r#"
import os, sys
from toolcrib import tool, Context

@tool(permissions={"allowed_environment_vars": ["GRANTED"]})
def gossip(ctx: Context, how: str = "") -> str:
    """Tells a variable."""
    value = os.environ["GRANTED"]
    print("to stderr", value, file=sys.stderr, flush=True)
    ctx.metadata(title="title " + value, data={value: value})
    ctx.progress(1, 2, "progress " + value)
    ctx.log("info", "log " + value)
    if how == "raise":
        raise ValueError("raised " + value)
    return "returned " + value
"#;

/// Tools of every kind that were handed something, in a project that is trusted.
fn talkative(world: &World) {
    let env = json!({"API_KEY": "secret://api", "MODE": LITERAL});
    write_blab(world, "blab", &env);
    world.write_tool("gossip.py", GOSSIP);
    let mut shell = plugin::shell(
        "spool",
        "sh -c 'i=0; while [ $i -lt 6000 ]; do echo $i $GRANTED; i=$((i+1)); done; echo $GRANTED >&2'",
        json!({}),
    );
    shell["permissions"] =
        json!({"allowedEnvironmentVars": ["GRANTED"], "canExecuteCommands": true});
    let http = plugin::tool(
        "fetch",
        json!({}),
        json!({"type": "http", "method": "GET", "url": format!("http://127.0.0.1:{}/", echo_server()),
            "headers": {"Authorization": "Bearer ${secret://other}", "X-Too": "${GRANTED}"}}),
    );
    world.write_tool("p.json", plugin::file(&[shell, http]));
    let trusted = world.run(&["trust"]).exits(0);
    for told in [
        "the secret `api`",
        "the secret `other`",
        "variable `GRANTED`",
    ] {
        assert!(trusted.stdout.contains(told), "{trusted:?}");
    }
}

/// The ways in which `blab` tells what it has.
const HOWS: [&str; 15] = [
    "stdout",
    "stderr",
    "log",
    "error",
    "refusal",
    "foreign",
    "crash",
    "progress",
    "structured",
    "contract",
    "escaped",
    "escaped-error",
    "own",
    "forms",
    "big",
];

#[tokio::test]
async fn a_secret_is_nowhere_but_in_the_tool() {
    let Scene { world, kept: _kept } = scene();
    talkative(&world);
    let mut command = world.command(&["serve", "--json", "--no-auth", "--port", "0"]);
    command.env("TOOLCRIB_LOG", "trace");
    let crib = world.serve_by(command);
    let events = listen(&crib).await;
    let mut said = over_rest(&crib).await;
    said += &crib.get("/tools/blab").await.1.to_string();
    said += &world.run(&["health", "blab"]).stdout;
    said += &over_mcp(&crib).await;
    assert!(said.contains("notifications/progress"), "{said}");
    said += &by_commands(&world);
    for path in ["/calls", "/tools", "/tools/errors", "/grants", "/health"] {
        said += &crib.get(path).await.1.to_string();
    }
    eventually("events tell of progress", || async {
        let events = events.lock().unwrap();
        events.contains("tool.progress") && events.matches("tool.failed").count() > 3
    })
    .await;
    said += &events.lock().unwrap();
    let log = crib.log();
    assert!(log.contains("tool.failed"), "{log}");
    // While it runs, what was written last lies beside the database.
    let data = world.home().join(".local/share/toolcrib");
    let all = forms();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(holding(&data, &all), Vec::<String>::new());
    crib.stop();

    nowhere_in("answers and events", &said);
    nowhere_in("the log", &log);
    logs_are_masked(&world);
    // The tool's own file has the literal, and so has the copy that stands in should it break.
    let literal = [LITERAL, "l1teral"];
    let others = all.into_iter().filter(|form| !literal.contains(form));
    let others: Vec<&str> = others.collect();
    assert_eq!(holding(&world.root(), &others), Vec::<String>::new());
    assert_eq!(holding(&data, &literal), Vec::<String>::new());
}

/// What all tools say over REST, and what is kept of it.
async fn over_rest(crib: &TestCrib) -> String {
    let mut said = String::new();
    for value in [SECRET, LITERAL] {
        let arguments = json!({"how": "matches", "said": value});
        let (_, outcome) = crib.call("blab", arguments).await;
        assert_eq!(outcome["output"], "yes", "{outcome}");
    }
    for how in HOWS {
        // The value comes as an argument, too.
        let (status, outcome) = crib.call("blab", json!({"how": how, "said": SECRET})).await;
        let text = outcome.to_string();
        assert_ne!(status, 500, "{how}: {text}");
        let tells = !["stderr", "log", "progress"].contains(&how);
        assert!(!tells || text.contains("***"), "{how}: {text}");
        nowhere_in(how, &text);
        if let Some(id) = outcome["metadata"]["outputId"].as_str() {
            said += &kept_output(crib, id).await;
        }
    }
    for how in ["", "raise"] {
        said += &crib.call("gossip", json!({"how": how})).await.1.to_string();
    }
    for tool in ["spool", "fetch"] {
        let (status, outcome) = crib.call(tool, json!({})).await;
        assert_eq!(status, 200, "{outcome}");
        let id = outcome["metadata"]["outputId"].as_str().unwrap();
        let kept = kept_output(crib, id).await;
        assert!(kept.contains("***"), "{outcome}");
        said += &format!("{outcome}{kept}");
    }
    said
}

/// The same over MCP: both revisions, with progress.
async fn over_mcp(crib: &TestCrib) -> String {
    let mut said = String::new();
    let session = crib.session("2025-11-25").await;
    for how in HOWS {
        let mut message = call(7, "blab", json!({"how": how, "said": SECRET}));
        message["params"]["_meta"]["progressToken"] = "p".into();
        said += &session.post(&message).await.response.text().await.unwrap();
        let message = stateless_call(8, "blab", json!({"how": how, "said": SECRET}));
        let answer = crib.post_stateless(&message).await;
        said += &answer.response.text().await.unwrap();
    }
    said
}

/// The same by the command, through the crib that serves and without it.
fn by_commands(world: &World) -> String {
    let mut said = String::new();
    let arguments = format!("said={SECRET}");
    for how in ["stdout", "error", "crash", "progress"] {
        let how = format!("how={how}");
        for place in [&["--standalone"][..], &[]] {
            let args = [&["call", "blab", &how, &arguments], place].concat();
            let Ran { stdout, stderr, .. } = world.run(&args);
            said += &format!("{stdout}{stderr}");
        }
    }
    said
}

/// What is kept of a tool's words and of calls has stars where the values were.
fn logs_are_masked(world: &World) {
    let logs = world.run(&["logs", "blab"]).exits(0).stdout;
    for line in ["part ***", "last words ***", "noise ***", "log ***"] {
        assert!(logs.contains(line), "{line} is not in {logs}");
    }
    let gossip = world.run(&["logs", "gossip"]).exits(0).stdout;
    assert!(gossip.contains("to stderr ***"), "{gossip}");
    let calls = world.run(&["logs", "--calls", "--json"]).exits(0).stdout;
    assert!(calls.contains("\"blab\""), "{calls}");
    for (what, text) in [("logs", logs), ("logs", gossip), ("calls", calls)] {
        nowhere_in(what, &text);
    }
}

async fn kept_output(crib: &TestCrib, id: &str) -> String {
    let url = format!("{}/api/outputs/{id}", crib.url);
    crib.client
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap()
}

/// All events from now on, as they come over the wire.
async fn listen(crib: &TestCrib) -> Arc<Mutex<String>> {
    let url = format!("{}/api/events", crib.url);
    let mut response = crib.client.get(url).send().await.unwrap();
    let heard = Arc::new(Mutex::new(String::new()));
    let hearing = heard.clone();
    tokio::spawn(async move {
        while let Ok(Some(chunk)) = response.chunk().await {
            hearing
                .lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&chunk));
        }
    });
    heard
}
