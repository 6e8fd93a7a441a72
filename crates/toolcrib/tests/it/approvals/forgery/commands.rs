//! What is tried with commands: by any process, by an agent in its own shell, by a tool.

use serde_json::json;

use super::{Table, YES, bearer, post, typed};
use crate::approvals::scene::{Agent, asked, ran, socket, world};
use crate::support::person::TERMINAL;
use crate::support::plugin::{file, shell};
use crate::support::tool::{python, unconfined};
use crate::support::{answer, eventually};

/// Who can't decide makes itself something that can.
pub async fn minting(table: &mut Table<'_>, manager: &str) {
    let world = table.world;
    let mine = r#"{"name":"x","scopes":["read","approve"]}"#;
    for (what, path, body) in [
        ("a token of its own", "/api/tokens", mine),
        ("a login over the port", "/login-url?approve", ""),
    ] {
        let headers = vec![bearer(manager), typed()];
        table
            .tries(post(what, path, headers, body, &[403, 404]))
            .await;
    }
    let id = table.id.clone();
    for args in [
        &["token", "create", "mine", "--scope", "read,approve"][..],
        &["token", "login", "--approve"],
        &["approvals", "approve", &id, "--yes"],
        &["approvals", "--standalone", "approve", &id, "--yes"],
        &["approvals", "respond", &id, "yes"],
    ] {
        let ran = world.run(args).exits(3);
        assert!(ran.stderr.contains("only a person decides"), "{ran:?}");
        table.nothing_was_decided(&args.join(" "));
    }
}

/// What an agent tries in its own shell, in terminals that it opens, in processes that hide where they come from.
#[tokio::test]
async fn nothing_that_an_agent_starts_decides() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let id = asked(&crib, &token, "all").await;
    let mut table = Table::new(&world, &crib, &id);
    let mut agent = Agent::start(&world);
    let approve = ["toolcrib", "approvals", "approve", &id, "--yes"];
    let alone = [
        "toolcrib",
        "approvals",
        "--standalone",
        "approve",
        &id,
        "--yes",
    ];
    let target = format!("/api/approvals/{id}");
    let raw = ["raw", &target, YES];
    let token = [
        "toolcrib",
        "token",
        "create",
        "mine",
        "--scope",
        "read,approve",
    ];
    let login = ["toolcrib", "token", "login", "--approve"];
    let raw_login = ["raw", "/login-url?approve", ""];
    for how in [
        "plain",
        "shell",
        "pty",
        "pty shell",
        "clean pty",
        "background",
        "orphan",
        "orphan pty",
        "orphan clean pty",
    ] {
        for argv in [&approve[..], &alone, &raw, &token, &login, &raw_login] {
            let (code, text) = agent.tries(how, argv);
            let what = format!("{how}: {}", argv[..2].join(" "));
            assert_eq!(code, 3, "{what}: {text}");
            assert!(text.contains("only a person decides"), "{what}: {text}");
            table.nothing_was_decided(&what);
        }
    }
    // It is known as an agent also when it has killed what spoke for it.
    for how in ["mute pty", "orphan clean pty", "plain"] {
        for argv in [&approve[..], &raw] {
            let (code, text) = agent.tries(how, argv);
            assert_eq!(code, 3, "{how}: {text}");
            table.nothing_was_decided(how);
        }
    }
    assert!(table.tried >= 60, "{}", table.tried);
    // A person, meanwhile, decides.
    world
        .person(&["approvals", "approve", &id, "--yes"])
        .exits(0);
}

/// A tool that is not confined has what the user has, and is no person.
#[tokio::test]
async fn no_tool_decides() {
    let world = world("wait = 0");
    unconfined(&world);
    world.write("terminal.py", TERMINAL);
    let binary = world.binary.display();
    let python = python();
    let tools = [
        shell(
            "plain",
            &format!("{binary} approvals approve {{{{id}}}} --yes"),
            json!({"id": {}}),
        ),
        shell(
            "terminal",
            &format!("{python} terminal.py {binary} approvals approve {{{{id}}}} --yes"),
            json!({"id": {}}),
        ),
        shell("calls", &format!("{binary} call wipe what=all"), json!({})),
    ];
    world.write_tool("forgers.json", file(&tools));
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let id = asked(&crib, &token, "all").await;
    let mut table = Table::new(&world, &crib, &id);
    for tool in ["plain", "terminal", "calls"] {
        let url = format!("{}/api/tools/{tool}/call", crib.url);
        let asked = crib.client.post(url).bearer_auth(&token);
        let asked = asked.json(
            &json!({"arguments": match tool { "calls" => json!({}), _ => json!({"id": id}) }}),
        );
        let (_, said) = answer(asked.send().await.unwrap()).await;
        let said = said.to_string();
        let why = said.contains("only a person decides") || said.contains("waits for a person");
        assert!(why, "{tool}: {said}");
        table.nothing_was_decided(tool);
    }
    // Nor is there a tool that calls for another.
    let url = format!("{}/api/tools/call_tool/call", crib.url);
    let body = json!({"arguments": {"name": "wipe", "arguments": {"what": "all"}}});
    let asked = crib.client.post(url).bearer_auth(&token).json(&body);
    assert_eq!(asked.send().await.unwrap().status(), 404);
    table.nothing_was_decided("call_tool");
}

#[tokio::test]
async fn what_is_over_or_switched_off_decides_nothing() {
    let world = world("wait = 0, expires = 1");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let id = asked(&crib, &token, "all").await;
    eventually("it is over", async || {
        let shown = world
            .run(&["approvals", "show", &id, "--json"])
            .exits(0)
            .json();
        shown["state"] == "expired"
    })
    .await;
    let late = world
        .person(&["approvals", "approve", &id, "--yes"])
        .exits(3);
    assert!(late.stdout.contains("expired"), "{late:?}");
    let open = crate::approvals::scene::world("wait = 0");
    let crib = open.serve();
    let (status, asked) = crib.call("wipe", json!({"what": "all"})).await;
    assert_eq!(status, 202, "{asked}");
    let id = asked["error"]["data"]["approvalId"].as_str().unwrap();
    // At an open port everybody is the owner, and nobody a person.
    let (status, refused) = crib
        .post(&format!("/approvals/{id}"), json!({"decision": "approve"}))
        .await;
    assert_eq!(status, 403, "{refused}");
    let config = open.home().join(".config/toolcrib/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace(
        "[approvals.webhook]",
        "[approvals]\ncli = false\n[approvals.webhook]",
    );
    std::fs::write(&config, text).unwrap();
    let off = open.person(&["approvals", "approve", id, "--yes"]).exits(3);
    assert!(
        off.stdout.contains("switched off in your settings"),
        "{off:?}"
    );
    assert!(socket(&open).exists() && ran(&open).is_empty());
}
