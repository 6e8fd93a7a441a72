//! What an agent hears of: changes of its own list, and events of what it sees and does.

use serde_json::json;

use super::{SEEN, world};
use crate::support::mcp::{Piped, call, names, request};
use crate::support::plugin::{file, shell};
use crate::support::{PATIENCE, TestCrib, eventually};

#[tokio::test]
async fn a_change_is_told_to_those_whose_list_changed() {
    let world = world();
    let _crib = world.serve();
    let mut bound = Piped::greeted(world.command(&["mcp", "--agent", "bound"]));
    let mut default = Piped::greeted(world.command(&["mcp"]));
    for agent in [&mut bound, &mut default] {
        agent.ask(&request(1, "tools/list", json!({})));
    }
    world.write_tool("new.json", file(&[shell("hushnew", "echo x", json!({}))]));
    default.notified("notifications/tools/list_changed");
    default.ask(&request(2, "tools/list", json!({})));
    // Settings are followed too: now another one is told, and nobody else.
    world.settings("[agents.bound]\ntools = [\"visible\"]\n");
    bound.notified("notifications/tools/list_changed");
    let list = bound.ask(&request(2, "tools/list", json!({})));
    assert_eq!(names(&list), ["visible"]);
    default.ask(&call(3, "visible", json!({})));
    for agent in [bound, default] {
        let (_, more) = agent.hang_up();
        assert!(more.is_empty(), "{more:?}");
    }
}

/// The text of an event stream, until this is in it.
async fn heard(stream: &mut reqwest::Response, until: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while !text.contains(until) {
            let chunk = stream.chunk().await.unwrap().expect("it goes on");
            text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    };
    let done = tokio::time::timeout(PATIENCE, reading).await;
    assert!(done.is_ok(), "`{until}` did not come: {text}");
    text
}

async fn listen(crib: &TestCrib, token: &str, after: Option<&str>) -> reqwest::Response {
    let mut request = crib.client.get(format!("{}/api/events", crib.url));
    if let Some(after) = after {
        request = request.header("last-event-id", after);
    }
    request.bearer_auth(token).send().await.unwrap()
}

#[tokio::test]
async fn events_are_about_what_one_sees_and_does() {
    let world = world();
    let crib = world.serve_closed();
    let keeper = world.token("keeper", "read,call,manage");
    for scopes in ["read,call", "read,call,manage,approve"] {
        let own = world.bound(scopes, "bound", scopes);
        let mut stream = listen(&crib, &own, None).await;
        let mut all = listen(&crib, &keeper, None).await;
        // Another agent's calls, of a tool that one sees and of one that one does not see.
        world.run(&["call", "hushhush"]).exits(0);
        world.run(&["call", "visible", "arg=theirs"]);
        let edited = shell("hushhush", "echo edited", json!({}));
        world.write_tool("hush.json", file(&[edited]));
        world.write_tool("hushworse.json", "{");
        heard(&mut all, "tool_error").await;
        world.write_tool(
            "hush.json",
            file(&[shell("hushhush", "seq 1 100000", json!({}))]),
        );
        std::fs::remove_file(world.tools_folder().join("hushworse.json")).unwrap();
        let edited = file(&[shell(
            "visible",
            &format!("echo seen {}", scopes.len()),
            json!({}),
        )]);
        world.write_tool("seen.json", edited);
        let change = heard(&mut stream, "tools_changed").await;
        assert!(change.contains("\"changed\":[\"visible\"]"), "{change}");
        let call = crib
            .client
            .post(format!("{}/api/tools/visible/call", crib.url));
        assert_eq!(call.bearer_auth(&own).send().await.unwrap().status(), 200);
        let heard_of = change + &heard(&mut stream, "tool.complete").await;
        assert!(!heard_of.contains("hush"), "{heard_of}");
        assert!(!heard_of.contains("\"agent\":\"default\""), "{heard_of}");
        // Nor is it in what one missed.
        let first = heard_of.lines().find_map(|line| line.strip_prefix("id: "));
        let (process, _) = first.unwrap().split_once('.').unwrap();
        let mut again = listen(&crib, &own, Some(&format!("{process}.0"))).await;
        let missed = heard(&mut again, "tool.complete").await;
        assert!(!missed.contains("hush"), "{missed}");
        eventually("the tools are as they were", async || {
            let asked = crib.client.get(format!("{}/api/tools/errors", crib.url));
            let said = asked.bearer_auth(&keeper).send().await.unwrap();
            !said.text().await.unwrap().contains("hushworse")
        })
        .await;
    }
    assert_eq!(SEEN.len(), 2);
}
