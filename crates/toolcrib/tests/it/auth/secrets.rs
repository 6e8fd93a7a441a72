//! Secrets stay where they belong: not in the store, logs, events, answers, or what children are started with.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::support::files::holding;
use crate::support::mcp::{initialize, stateless_call};
use crate::support::{World, descendants, shell_tool, signal};

#[tokio::test]
async fn no_secret_is_written_down_or_handed_on() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("nap", "sleep 2", json!({})));
    world.write_tool("b.json", shell_tool("surroundings", "env", json!({})));
    let token = world.run(&["token", "create", "one"]).exits(0).stdout;
    let token = token.trim();
    let wrong = format!("tcrib_{}", "ab".repeat(32));

    let log = world.root().join("log");
    let (mut child, url, login) = serve(&world, token, &log);
    let code = login.rsplit('=').next().unwrap();
    let client = client();
    let came = client.get(&login).send().await.unwrap();
    let cookie = came.headers()["set-cookie"].to_str().unwrap().to_owned();
    let pair = cookie.split(';').next().unwrap();
    let session = pair.split_once('=').unwrap().1;
    let events = client.get(format!("{url}/api/events"));
    let mut events = events.header("cookie", pair).send().await.unwrap();

    let napping = tokio::spawn({
        let nap = client.post(format!("{url}/api/tools/nap/call"));
        let nap = nap.bearer_auth(token);
        async move { nap.send().await.unwrap().text().await.unwrap() }
    });
    // While a tool runs: what it and the crib were started with.
    let mut said = started(child.id());
    while !said.contains("sleep") {
        assert!(!napping.is_finished(), "{said}");
        // sleeps: between two looks at the processes
        tokio::time::sleep(Duration::from_millis(5)).await;
        said = started(child.id());
    }
    said += &answers(&client, &url, &[token, &wrong, code]).await;
    let used = client.get(&login).send().await.unwrap();
    said += &used.text().await.unwrap();
    said += &calls(&client, &url, token).await;

    said += &napping.await.unwrap();
    while let Ok(Ok(Some(chunk))) =
        tokio::time::timeout(Duration::from_millis(300), events.chunk()).await
    {
        said += &String::from_utf8_lossy(&chunk);
    }
    assert!(said.contains("tool.start"), "{said}");
    said += &world.run(&["token", "list", "--json"]).exits(0).stdout;
    signal(child.id(), libc::SIGTERM);
    child.wait().unwrap();

    let secrets = [token, code, session, &wrong];
    for secret in secrets {
        assert!(!said.contains(secret), "{secret} was said");
    }
    assert!(std::fs::metadata(&log).unwrap().len() > 1_000);
    assert_eq!(holding(&world.root(), &secrets), Vec::<String>::new());
    assert!(world.home().join(".local/share/toolcrib").is_dir());
}

/// Serves with a token in the environment and all that can be logged in `log`; gives its URL and the login's.
fn serve(world: &World, token: &str, log: &Path) -> (Child, String, String) {
    let mut child = world
        .command(&["serve", "--json", "--port", "0"])
        .env("TOOLCRIB_LOG", "trace")
        .env("TOOLCRIB_TOKEN", token)
        .stdout(Stdio::piped())
        .stderr(File::create(log).unwrap())
        .spawn()
        .unwrap();
    let mut banner = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut banner).unwrap();
    let banner: Value = serde_json::from_str(&banner).unwrap();
    let told = |key: &str| banner[key].as_str().unwrap().to_owned();
    (child, told("url"), told("login"))
}

fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    client.build().unwrap()
}

/// What is answered to who comes with one of these secrets, headers too.
async fn answers(client: &Client, url: &str, secrets: &[&str]) -> String {
    let mut said = String::new();
    for secret in secrets {
        for path in ["/api/tools", "/api/nothing", "/api/outputs/x", "/mcp"] {
            let asked = client.get(format!("{url}{path}")).bearer_auth(secret);
            let answer = asked.send().await.unwrap();
            if !answer.headers().contains_key("mcp-session-id") {
                said += &format!("{:?}", answer.headers());
                said += &answer.text().await.unwrap();
            }
        }
    }
    said
}

/// What a tool tells of its environment, over MCP and over REST.
async fn calls(client: &Client, url: &str, token: &str) -> String {
    let mut said = String::new();
    for message in [
        initialize(1, "2025-11-25"),
        stateless_call(2, "surroundings", json!({})),
    ] {
        let post = client
            .post(format!("{url}/mcp"))
            .bearer_auth(token)
            .body(message.to_string());
        let post = post
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        said += &post.send().await.unwrap().text().await.unwrap();
    }
    let call = client
        .post(format!("{url}/api/tools/surroundings/call"))
        .bearer_auth(token);
    let surroundings = call.send().await.unwrap().text().await.unwrap();
    assert!(surroundings.contains("PATH="), "{surroundings}");
    said + &surroundings
}

/// What this process and all below it were started with, but for the environment that the test gave to the first.
fn started(first: u32) -> String {
    let mut started = Vec::new();
    for pid in descendants(first).into_iter().chain([first]) {
        let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        started.extend(read("cmdline"));
        if pid != first {
            started.extend(read("environ"));
        }
    }
    String::from_utf8_lossy(&started).into_owned()
}
