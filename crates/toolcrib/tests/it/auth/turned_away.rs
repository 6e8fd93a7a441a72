//! What those read who are not let in: an agent's log says why, and a browser gets a page that says how to log in.

use serde_json::{Value, json};

use crate::mcp_clients::{NODE, client};
use crate::support::mcp::initialize;
use crate::support::{World, answer};
use crate::tidy::root;

#[tokio::test]
async fn an_agent_without_a_token_is_told_in_the_words_of_the_protocol() {
    let world = World::trusted();
    let mut crib = world.serve_closed();
    for token in [None, Some("tc_nonsense")] {
        crib.show(token);
        let refused = crib
            .post_mcp(&[], initialize(0, "2025-11-25").to_string())
            .await;
        assert_eq!(refused.status(), 401);
        assert!(refused.response.headers().contains_key("www-authenticate"));
        let said = refused.answer().await;
        assert_eq!(
            (&said["jsonrpc"], &said["id"]),
            (&json!("2.0"), &Value::Null),
            "{said}"
        );
        let message = said["error"]["message"].as_str().unwrap();
        assert!(message.contains("toolcrib token create"), "{message}");
    }
    // Clients look for OAuth next; there is none, and that is no refusal.
    let path = format!("{}/.well-known/oauth-protected-resource", crib.url);
    let (status, said) = answer(crib.client.get(path).send().await.unwrap()).await;
    assert_eq!(
        (status, &said["error"]["code"]),
        (404, &json!("not_found")),
        "{said}"
    );
}

#[test]
fn the_typescript_sdk_shows_why_it_was_refused() {
    let world = World::trusted();
    let crib = world.serve_closed();
    let script = root().join("tests/clients/sdk_refused.mjs");
    let url = format!("{}/mcp", crib.url);
    for token in ["", "tc_nonsense"] {
        let command = client(&world, NODE, &[script.to_str().unwrap(), &url, token]);
        let said = world.finish(command).exits(0).json();
        let message = said["refused"].as_str().unwrap();
        assert!(message.contains("toolcrib token create"), "{said}");
    }
}

#[tokio::test]
async fn a_browser_is_told_how_to_log_in_and_a_program_is_not_sent_a_page() {
    let world = World::trusted();
    let crib = world.serve_closed();
    for path in ["/", "/docs", "/api/tools", "/nowhere"] {
        let asked = crib.client.get(format!("{}{path}", crib.url));
        let page = asked
            .header("accept", "text/html,*/*;q=0.8")
            .send()
            .await
            .unwrap();
        assert_eq!(page.status(), 401, "{path}");
        assert!(page.headers().contains_key("content-security-policy"));
        let kind = page.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with("text/html"), "{kind}");
        let text = page.text().await.unwrap();
        assert!(
            text.contains("toolcrib token login") && !text.contains(&crib.url),
            "{text}"
        );
        let asked = crib.client.get(format!("{}{path}", crib.url));
        let (status, said) = answer(asked.send().await.unwrap()).await;
        assert_eq!(
            (status, &said["error"]["code"]),
            (401, &json!("unauthorized")),
            "{path}"
        );
    }
}

#[test]
fn serve_prints_where_mcp_is() {
    let world = World::trusted();
    let crib = world.serve();
    let mut command = world.command(&["serve", "--port", "0", "--no-auth"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let found = lines.by_ref().take(6).flatten().any(|line| {
        let line = line.trim_start();
        line.starts_with("mcp ") && line.ends_with("/mcp")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(found);
    drop(crib);
}
