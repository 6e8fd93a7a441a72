//! What a tool learns about who asks: the agent by the name people know, its session, its message; and how much each is
//! handed at once.

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, notification, request, stateless_call};
use crate::support::{World, eventually};

const ABOUT: &str = r#"
from toolcrib import tool, Context

@tool(read_only=True)
def about(ctx: Context) -> dict:
    """Say who asks."""
    return {"session": ctx.session_id, "message": ctx.message_id, "call": ctx.call_id,
            "agent": ctx.agent, "client": ctx.client}

@tool(read_only=True)
def long() -> str:
    """Say much."""
    return "a line of text\n" * 20_000
"#;

fn world() -> World {
    let world = World::trusted();
    world.write_tool("about.py", ABOUT);
    world
}

fn hello(client: &str) -> Value {
    let info = json!({"name": client, "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    request(0, "initialize", params)
}

/// A client of this name that said hello on stdin.
fn piped(world: &World, client: &str) -> Piped {
    let mut piped = Piped::start(world.command(&["mcp"]));
    piped.ask(&hello(client));
    piped.send(&notification("notifications/initialized", json!({})));
    piped
}

#[track_caller]
fn told(answer: &Value) -> Value {
    let data = &answer["result"]["structuredContent"];
    for name in ["session", "message", "call"] {
        assert_ne!(data[name], "", "{answer}");
    }
    assert_ne!(data["session"], data["call"], "{answer}");
    data.clone()
}

#[test]
fn a_connection_is_one_session_and_another_is_another() {
    let world = world();
    let ask = |piped: &mut Piped, id: u64| told(&piped.ask(&call(id, "about", json!({}))));
    let mut alone = piped(&world, "codex-mcp-client");
    let (first, second) = (ask(&mut alone, 1), ask(&mut alone, 2));
    assert_eq!(first["session"], second["session"]);
    assert_ne!(first["call"], second["call"]);
    let stateless = told(&alone.ask(&stateless_call(3, "about", json!({}))));
    assert_eq!(first["session"], stateless["session"]);
    let other = ask(&mut piped(&world, "codex-mcp-client"), 1);
    assert_ne!(first["session"], other["session"]);

    // Relayed: the session is the agent's, whichever crib answers.
    let crib = world.serve();
    let mut relayed = piped(&world, "claude-code");
    let before = ask(&mut relayed, 1);
    assert_eq!(before["session"], ask(&mut relayed, 2)["session"]);
    assert_eq!(crib.stop(), Some(0));
    let _next = world.serve();
    assert_eq!(before["session"], ask(&mut relayed, 3)["session"]);
}

#[test]
fn what_the_client_says_of_its_session_counts() {
    let mut world = world();
    let mut codex = piped(&world, "codex-mcp-client");
    let mut message = call(1, "about", json!({}));
    message["params"]["_meta"] =
        json!({"x-codex-turn-metadata": {"session_id": "s-1", "turn_id": "t-1"}});
    let said = told(&codex.ask(&message));
    assert_eq!(
        (&said["session"], &said["message"]),
        (&json!("s-1"), &json!("t-1"))
    );
    world.vars = vec![("CLAUDE_CODE_SESSION_ID", "of-claude".to_owned())];
    let mut claude = piped(&world, "claude-code");
    let said = told(&claude.ask(&call(1, "about", json!({}))));
    assert_eq!(said["session"], "of-claude");
}

#[tokio::test]
async fn over_http_a_session_is_one_too_and_agents_have_the_names_people_know() {
    let world = world();
    let crib = world.serve();
    for (client, agent) in [
        ("claude-code", "claude"),
        ("github-copilot-developer", "copilot"),
        ("opencode", "opencode"),
        ("codex-mcp-client", "codex"),
        ("gemini-cli-mcp-client", "gemini"),
        ("my-own", "my-own"),
    ] {
        let hello = crib.post_mcp(&[], hello(client).to_string()).await;
        let id = hello.response.headers()["mcp-session-id"]
            .to_str()
            .unwrap()
            .to_owned();
        let ask = async |number: u64| {
            let headers = [
                ("mcp-session-id", &*id),
                ("mcp-protocol-version", "2025-06-18"),
            ];
            let body = call(number, "about", json!({})).to_string();
            told(&crib.post_mcp(&headers, body).await.answer().await)
        };
        let (first, second) = (ask(1).await, ask(2).await);
        assert_eq!(
            (&first["agent"], &first["client"]),
            (&json!(agent), &json!(client))
        );
        assert_eq!(first["session"], second["session"]);
    }
    eventually("the record has the client's own name", async || {
        let (_, calls) = crib.get("/calls").await;
        calls["calls"][0]["client"] == "my-own"
    })
    .await;
}

#[test]
fn a_client_is_handed_what_it_shows_and_settings_say_otherwise() {
    let world = world();
    let length = |client: &str| {
        let mut piped = piped(&world, client);
        let answer = piped.ask(&call(1, "long", json!({})));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let id = answer["result"]["_meta"]["toolcrib/metadata"]["outputId"].clone();
        assert!(text.starts_with("[truncated: ") && text[..600].contains(id.as_str().unwrap()));
        // Reading on gives pages that are handed over whole.
        let page = piped.ask(&call(2, "read-output", json!({"id": id, "offset": 0})));
        let metadata = &page["result"]["_meta"]["toolcrib/metadata"];
        assert_eq!(metadata.get("truncated"), None, "{metadata}");
        assert!(metadata["nextOffset"].as_u64().unwrap() > 1_000);
        text.len()
    };
    for (client, most) in [
        ("codex-mcp-client", 9_000),
        ("copilot-cli", 19_000),
        ("gemini-cli-mcp-client", 38_000),
        ("claude-code", 50_000),
    ] {
        let length = length(client);
        assert!(
            length <= most && length + 1_500 > most.min(30_000),
            "{client}: {length}"
        );
    }
    let settings = "[output_limit.clients.codex]\nbytes = 20000\n[output_limit]\nlines = 100\n";
    let folder = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), settings).unwrap();
    let codex = length("codex-mcp-client");
    assert!((1_000..=20_000).contains(&codex), "{codex}");
    let lines = |bytes: usize| bytes / "a line of text\n".len();
    assert!(lines(codex) <= 180, "{codex}");
}
