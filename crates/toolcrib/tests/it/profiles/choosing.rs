//! Who may be which agent: the owner and tokens for none choose, a token for one stays with it.

use serde_json::{Value, json};

use super::{SEEN, listed_at, world};
use crate::support::mcp::{Piped, call, initialize, names, request};
use crate::support::{answer, eventually};

fn listed(agent: &mut Piped) -> Vec<String> {
    let list = agent.ask(&request(7, "tools/list", json!({})));
    names(&list).into_iter().map(str::to_owned).collect()
}

#[test]
fn over_stdio_the_user_chooses() {
    let world = world();
    let mut alone = Piped::greeted(world.command(&["mcp", "--standalone", "--agent", "bound"]));
    assert_eq!(listed(&mut alone), SEEN);
    let unknown = alone.ask(&call(1, "hushhush", json!({})));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let seen = alone.ask(&call(2, "visible", json!({})));
    assert_eq!(seen["result"]["content"][0]["text"], "seen\n");
    let _crib = world.serve();
    let mut relayed = Piped::greeted(world.command(&["mcp", "--agent", "bound"]));
    assert_eq!(listed(&mut relayed), SEEN);
    let mut default = Piped::greeted(world.command(&["mcp"]));
    assert!(listed(&mut default).contains(&"hushhush".to_owned()));
    let config = world.run(&["mcp", "--print-config", "--agent", "bound"]);
    let config = config.exits(0).json();
    assert_eq!(
        config["allowedTools"],
        json!(["mcp__toolcrib__read-output", "mcp__toolcrib__visible"])
    );
    let args = &config["mcpServers"]["toolcrib"]["args"];
    assert_eq!((&args[1], &args[2]), (&json!("--agent"), &json!("bound")));
}

#[test]
fn an_agent_that_nobody_can_be_is_refused_with_the_nearest() {
    let world = world();
    for command in [
        &["mcp", "--agent", "boud"][..],
        &["token", "create", "x", "--agent", "boud"],
        &["connect", "claude", "--print", "--agent", "boud"],
        &["call", "visible", "--agent", "boud"],
        &["show", "visible", "--agent", "boud"],
        &["agents", "boud"],
    ] {
        let ran = world.run(command).exits(3);
        assert!(ran.stderr.contains("there is no agent `boud`"), "{ran:?}");
        assert!(ran.stderr.contains("did you mean `bound`?"), "{ran:?}");
    }
    for command in [
        &["mcp", "--agent", "inner"][..],
        &["token", "create", "x", "--agent", "inner"],
        &["call", "visible", "--agent", "inner"],
    ] {
        let ran = world.run(command).exits(3);
        assert!(ran.stderr.contains("`inner` is a subagent"), "{ran:?}");
    }
}

#[tokio::test]
async fn a_token_for_one_agent_is_for_no_other() {
    let world = world();
    let crib = world.serve_closed();
    let bound = world.bound("own", "bound", "read,call");
    assert_eq!(listed_at(&crib, "/mcp", &bound).await, SEEN);
    assert_eq!(listed_at(&crib, "/mcp/bound", &bound).await, SEEN);
    // Whether there is such an agent is not to be found out.
    for other in ["other", "default", "inner", "nobody"] {
        let request = crib.client.post(format!("{}/mcp/{other}", crib.url));
        let request = request
            .bearer_auth(&bound)
            .json(&initialize(1, "2025-11-25"));
        let (status, said) = answer(request.send().await.unwrap()).await;
        assert_eq!(status, 403, "{other}: {said}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("this token is for the agent `bound`, and for no other"),
            "{message}"
        );
        let body = json!({"arguments": {}, "agent": other});
        let call = crib
            .client
            .post(format!("{}/api/tools/visible/call", crib.url));
        let (status, said) =
            answer(call.bearer_auth(&bound).json(&body).send().await.unwrap()).await;
        assert_eq!((status, &said["error"]["code"]), (403, &json!("forbidden")));
        let shown = format!("{}/api/tools/visible?agent={other}", crib.url);
        let shown = crib.client.get(shown).bearer_auth(&bound).send().await;
        assert_eq!(shown.unwrap().status(), 403);
    }
}

#[tokio::test]
async fn a_token_for_none_chooses_by_the_address() {
    let world = world();
    let crib = world.serve_closed();
    let free = world.token("free", "read,call");
    assert_eq!(listed_at(&crib, "/mcp/bound", &free).await, SEEN);
    assert!(listed_at(&crib, "/mcp", &free).await.len() > SEEN.len());
    for (agent, expected) in [("boun", 404), ("inner", 403)] {
        let request = crib.client.post(format!("{}/mcp/{agent}", crib.url));
        let request = request
            .bearer_auth(&free)
            .json(&initialize(1, "2025-11-25"));
        let (status, said) = answer(request.send().await.unwrap()).await;
        assert_eq!(status, expected, "{said}");
    }
    // A session belongs to the agent that it was begun for.
    let post = async |path: &str, session: Option<&str>, message: &Value| {
        let mut request = crib.client.post(format!("{}{path}", crib.url));
        request = request
            .bearer_auth(&free)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.body(message.to_string()).send().await.unwrap()
    };
    let hello = post("/mcp/bound", None, &initialize(0, "2025-11-25")).await;
    let session = hello.headers()["mcp-session-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let list = request(1, "tools/list", json!({}));
    let elsewhere = post("/mcp", Some(&session), &list).await;
    assert_eq!(elsewhere.status(), 404);
    let (_, own) = answer(post("/mcp/bound", Some(&session), &list).await).await;
    assert_eq!(names(&own), SEEN);
}

#[tokio::test]
async fn an_agent_that_goes_takes_its_tokens_and_connections_with_it() {
    let world = world();
    let crib = world.serve_closed();
    let bound = world.bound("own", "bound", "read,call");
    let mut relayed = Piped::greeted(world.command(&["mcp", "--agent", "bound"]));
    assert_eq!(listed(&mut relayed), SEEN);
    world.settings("[agents.other]\n");
    relayed.notified("notifications/tools/list_changed");
    let gone = relayed.ask(&request(8, "tools/list", json!({})));
    let message = gone["error"]["message"].as_str().unwrap();
    assert!(message.contains("there is no agent `bound`"), "{gone}");
    eventually("its token is refused", async || {
        let asked = crib.client.get(format!("{}/api/tools", crib.url));
        let (status, said) = answer(asked.bearer_auth(&bound).send().await.unwrap()).await;
        let message = said["error"]["message"].as_str().unwrap_or_default();
        status == 403 && message.contains("`bound`")
    })
    .await;
    world.settings(super::SETTINGS);
    eventually("it is let in again", async || {
        let asked = crib.client.get(format!("{}/api/tools", crib.url));
        asked.bearer_auth(&bound).send().await.unwrap().status() == 200
    })
    .await;
}

#[test]
fn the_user_reads_who_sees_what_and_why_not() {
    let world = world();
    let all = world.run(&["agents", "--json"]).exits(0).json();
    let names: Vec<&str> = all["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "bound", "inner", "other"]);
    let one = world.run(&["agents", "bound", "--json"]).exits(0).json();
    assert_eq!(one["tools"], json!(SEEN));
    let hushed = json!({"name": "hushhush", "reason": "`tools` does not name it"});
    assert!(one["hidden"].as_array().unwrap().contains(&hushed), "{one}");
    let unseen = world
        .run(&["call", "hushhush", "--agent", "bound"])
        .exits(3);
    assert!(
        unseen.stderr.contains(
            "the agent `bound` does not see the tool `hushhush`: `tools` does not name it"
        ),
        "{unseen:?}"
    );
    let shown = world.run(&["show", "visible", "--agent", "bound"]).exits(0);
    assert!(
        shown.stdout.contains("a call of `bound` passes"),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("it ends after 30000 ms"), "{shown:?}");
    let seen = world.run(&["call", "visible", "--agent", "bound"]).exits(0);
    assert_eq!(seen.stdout.trim(), "seen");
    world.settings(
        "[agents.a]\ntools = [\"visibel\"]\ntrusted_tool_namespaces = [\"plugin\", \"mcp.none\"]\n",
    );
    let odd = world.run(&["agents", "a"]).exits(0);
    for slip in ["visibel", "mcp.none"] {
        assert!(
            odd.stderr.contains(&format!("no tool fits `{slip}`")),
            "{odd:?}"
        );
    }
    // What the default agent does not see, the user still keeps.
    world.settings("[agents.default]\ntools = [\"visible\"]\n");
    let listed = world.run(&["list", "--names"]).exits(0);
    assert!(listed.stdout.contains("hushhush"), "{listed:?}");
    let unseen = world.run(&["call", "hushhush"]).exits(3);
    assert!(
        unseen.stderr.contains("the agent `default` does not see"),
        "{unseen:?}"
    );
}

/// What holds for all agents is not decided by a token that is for one, whatever its scopes.
#[tokio::test]
async fn a_token_for_one_agent_changes_nothing_for_the_others() {
    let world = world();
    let crib = world.serve_closed();
    let own = world.bound("manager", "bound", "read,call,manage");
    let decisions = [
        (
            "POST",
            "/api/custom-tools",
            json!({"name": "x", "command": "true"}),
        ),
        (
            "PATCH",
            "/api/custom-tools/visible",
            json!({"description": "x"}),
        ),
        ("DELETE", "/api/custom-tools/visible", Value::Null),
        ("POST", "/api/custom-tools/visible/validate", Value::Null),
        (
            "POST",
            "/api/grants",
            json!({"tool": "visible", "all": true}),
        ),
        ("DELETE", "/api/grants/1", Value::Null),
        ("POST", "/api/trust", json!({})),
    ];
    for (method, path, body) in decisions {
        let request = crib
            .client
            .request(method.parse().unwrap(), format!("{}{path}", crib.url))
            .bearer_auth(&own)
            .json(&body);
        let (status, refusal) = answer(request.send().await.unwrap()).await;
        assert_eq!(
            (status, &refusal["error"]["code"]),
            (403, &json!("forbidden")),
            "{method} {path}: {refusal}"
        );
    }
}
