//! Built-in tools as people and agents meet them: off until wanted, granted, configured; and examples of tools.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp_clients::client;
use crate::support::mcp::{Piped, names, request};
use crate::support::{TestCrib, World, eventually, shell_tool};

const OFF: [&str; 5] = [
    "fetch-page",
    "send-email",
    "send-webhook",
    "web-search",
    "write-file",
];

fn listed(world: &World, args: &[&str]) -> Vec<String> {
    let list = world
        .run(&[&["list", "--json"], args].concat())
        .exits(0)
        .json();
    let tools = list["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn what_acts_is_off_until_a_person_wants_it() {
    let world = World::trusted();
    let here = listed(&world, &[]);
    let all = listed(&world, &["--all"]);
    for name in OFF {
        assert!(
            !here.iter().any(|one| one == name) && all.iter().any(|one| one == name),
            "{name}"
        );
        world
            .run(&["call", name, "{}"])
            .exits(if matches!(name, "write-file" | "fetch-page") {
                3
            } else {
                4
            });
    }
    let told = world.run(&["list", "--all"]).exits(0).stdout;
    for how in [
        "toolcrib grant write-file --write PATH",
        "toolcrib grant fetch-page --net HOST",
        "[web_search]",
        "[webhooks.NAME]",
        "[email]",
    ] {
        assert!(told.contains(how), "{how}: {told}");
    }
    world.write("docs/a.md", "a");
    world
        .run(&["grant", "write-file", "--write", "docs"])
        .exits(0);
    assert!(listed(&world, &[]).iter().any(|one| one == "write-file"));
    world
        .run(&["call", "write-file", "path=docs/b.md", "content=x"])
        .exits(0);
    world
        .run(&["call", "write-file", "path=other.md", "content=x"])
        .exits(3);
    world
        .run(&["call", "write-file", "path=docs/.git/config", "content=x"])
        .exits(3);
    // `--all` is all of this project, and not of the next one.
    world.run(&["grant", "write-file", "--all"]).exits(0);
    let grants = world
        .run(&["grant", "--list", "--json"])
        .exits(0)
        .json()
        .to_string();
    assert!(
        grants.contains(world.project().to_str().unwrap()) && !grants.contains("\".\""),
        "{grants}"
    );
    world
        .run(&["call", "write-file", "path=other.md", "content=x"])
        .exits(0);
    world
        .run(&["call", "write-file", "path=.mcp.json", "content=x"])
        .exits(3);
    world.run(&["grant", "write-file", "--revoke"]).exits(0);
    world
        .run(&["call", "write-file", "path=docs/c.md", "content=x"])
        .exits(3);
    world
        .run(&["grant", "file-reader", "--write", "docs"])
        .exits(2);
}

#[test]
fn clients_with_a_list_of_their_own_are_not_told_of_ours() {
    for (name, told) in [
        ("claude-code", false),
        ("codex-mcp-client", false),
        ("by-hand", true),
    ] {
        let world = World::trusted();
        let mut agent = Piped::start(world.command(&["mcp"]));
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}});
        agent.ask(&request(1, "initialize", hello));
        let list = agent.ask(&request(2, "tools/list", json!({})));
        let names = names(&list);
        assert_eq!(names.contains(&"todo-write"), told, "{name}: {names:?}");
        assert!(
            names.contains(&"read-file") && !OFF.iter().any(|off| names.contains(off)),
            "{names:?}"
        );
    }
}

/// What a server from PyPI took, as it says it.
const SERVER: &str = "\
import socket, sys
from aiosmtpd.controller import Controller
class Taker:
    async def handle_DATA(self, server, session, envelope):
        print(envelope.mail_from, envelope.rcpt_tos, flush=True)
        print(envelope.content.decode('utf8', 'replace').replace('\\r\\n', '|'), flush=True)
        return '250 taken'
free = socket.socket()
free.bind(('127.0.0.1', 0))
port = free.getsockname()[1]
free.close()
controller = Controller(Taker(), hostname='127.0.0.1', port=port)
controller.start()
print(port, flush=True)
sys.stdin.read()
controller.stop()
";

#[test]
fn a_mail_reaches_a_real_server() {
    let world = World::trusted();
    let script = world.write("smtp.py", SERVER);
    let mut server = client(&world, "python/bin/python", &[script.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    let port = next();
    world.settings(&format!(
        "[email]\nsmtp = \"smtp://127.0.0.1:{port}\"\nfrom = \"me@example.com\"\nallowed_recipients = [\"*@example.com\"]\n"
    ));
    let mail = json!({"to": ["Ada <ada@example.com>"], "bcc": ["b@example.com"], "subject": "Grüße", "text": "one\n.\ntwo"});
    world
        .run(&["call", "send-email", &mail.to_string()])
        .exits(0);
    assert_eq!(
        next(),
        "me@example.com ['ada@example.com', 'b@example.com']"
    );
    let text = next();
    assert!(
        text.contains("To: Ada <ada@example.com>|")
            && text.contains("|.|")
            && !text.contains("b@example.com"),
        "{text}"
    );
    drop(server.stdin.take());
    server.wait().unwrap();
}

#[test]
fn examples_are_kept_and_tried_again() {
    let world = World::trusted();
    let tool = |command: &str| shell_tool("say", command, json!({"word": {"type": "string"}}));
    world.write_tool("say.json", tool("echo {{word}}"));
    let none = world.run(&["test", "--all"]).exits(0);
    assert!(
        none.stderr.contains("there are no examples"),
        "{}",
        none.stderr
    );
    world.run(&["test", "say", "word=hi", "--save"]).exits(0);
    world
        .run(&[
            "test",
            "read-file",
            "path=.toolcrib/tools/say.json",
            "--save",
        ])
        .exits(0);
    let kept = world.tools_folder().join("_examples/say.json");
    let examples: Value = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    assert_eq!(examples[0]["arguments"], json!({"word": "hi"}));
    let tried = world.run(&["test", "--all", "--json"]).exits(0).json();
    assert_eq!(
        (&tried["count"], &tried["failed"]),
        (&json!(2), &json!(0)),
        "{tried}"
    );
    world.write_tool("say.json", tool("false {{word}}"));
    let tried = world.run(&["test", "--all"]).exits(1);
    assert!(
        tried.stdout.contains("failed say {\"word\":\"hi\"}: ")
            && tried.stdout.contains("ok read-file"),
        "{}",
        tried.stdout
    );
    world.run(&["test", "say", "--all"]).exits(1);
    // A project's file calls nothing of the user's that may do something.
    let mail = json!([{"arguments": {"to": ["a@example.com"], "subject": "x", "text": "x"}, "expect": {}}]);
    world.write(
        ".toolcrib/tools/_examples/send-email.json",
        mail.to_string(),
    );
    world.settings("[email]\nsmtp = \"smtp://127.0.0.1:1\"\nfrom = \"me@example.com\"\nallowed_recipients = [\"*@example.com\"]\n");
    let tried = world.run(&["test", "--all", "--json"]).exits(1).json();
    assert_eq!(
        (&tried["count"], &tried["passedOver"]),
        (&json!(2), &json!(1)),
        "{tried}"
    );
    world.write(".toolcrib/tools/_examples/say.json", "[{");
    let broken = world.run(&["test", "--all"]).exits(2);
    assert!(
        broken.stderr.contains("_examples/say.json"),
        "{}",
        broken.stderr
    );
}

#[tokio::test]
async fn a_changed_file_whose_example_fails_does_not_go_live() {
    let world = World::trusted();
    world.settings("gate = \"examples\"\n");
    let file = |command: &str, reads: bool| {
        let mut file: Value = serde_json::from_str(&shell_tool("say", command, json!({}))).unwrap();
        file["tools"][0]["annotations"] = json!({"readOnlyHint": reads});
        file.to_string()
    };
    let problems = async |crib: &TestCrib| {
        let (_, problems) = crib.get("/tools/errors").await;
        problems["errors"].to_string()
    };
    world.write_tool("say.json", file("echo one", true));
    world.run(&["test", "say", "--save"]).exits(0);
    let crib = world.serve();
    assert_eq!(crib.output_of("say").await, "one");
    // It still says something: it goes live.
    world.write_tool("say.json", file("echo two", true));
    eventually("the new version serves", async || {
        crib.output_of("say").await == "two"
    })
    .await;
    // It says nothing: the last good version goes on, and the problem says which example.
    world.write_tool("say.json", file("true", true));
    eventually("it is held back", async || {
        problems(&crib).await.contains("example 1 of `say`")
    })
    .await;
    assert_eq!(crib.output_of("say").await, "two");
    let (_, shown) = crib.get("/tools/say").await;
    assert_eq!(shown["stale"], json!(true), "{shown}");
    crib.post("/tools/reload", json!({})).await;
    assert_eq!(
        crib.output_of("say").await,
        "two",
        "a reload does not let it through"
    );
    drop(crib);
    let crib = world.serve();
    eventually("it is held back after a restart", async || {
        problems(&crib).await.contains("example 1 of `say`")
    })
    .await;
    assert_eq!(crib.output_of("say").await, "two");
    world.write_tool("say.json", file("echo three", true));
    eventually("what is right goes live", async || {
        crib.output_of("say").await == "three"
    })
    .await;
    assert!(!problems(&crib).await.contains("example"));
    // What may change something is not run for a save, so nothing can be said against it.
    world.write_tool("say.json", file("touch ran", false));
    eventually("it goes live untried", async || {
        let (_, shown) = crib.get("/tools/say").await;
        shown["annotations"]["readOnlyHint"] == json!(false)
    })
    .await;
    assert!(!world.project().join("ran").exists() && !problems(&crib).await.contains("example"));
}
