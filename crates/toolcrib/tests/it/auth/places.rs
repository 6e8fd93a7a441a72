//! Where one asks from: foreign hosts and pages, the socket, other machines.

use reqwest::Method;
use serde_json::json;

use super::{ask, get, refused, world};
use crate::support::World;
use crate::support::mcp::{Piped, call};

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_before_anything_else() {
    let world = world();
    let crib = world.serve_closed();
    let token = world.token("good", "read,call,manage");
    for (name, value) in [
        ("host", "evil.example"),
        ("origin", "http://evil.example"),
        ("origin", "http://localhost:1"),
        ("sec-fetch-site", "cross-site"),
    ] {
        for token in [None, Some(token.as_str())] {
            let request = ask(&crib, Method::GET, "/api/tools", token).header(name, value);
            refused(request.send().await.unwrap(), 403, "forbidden").await;
        }
    }
}

#[tokio::test]
async fn the_socket_needs_no_token_and_a_port_elsewhere_takes_one() {
    let world = world();
    let crib = world.serve_closed();
    let listed = world.run(&["list"]).exits(0);
    assert!(
        listed.stderr.contains("served by") || listed.stdout.contains("served by"),
        "{listed:?}"
    );
    assert_eq!(
        world.run(&["call", "greet", "n=1"]).exits(0).stdout,
        "hi 1\n"
    );
    world.run(&["reload"]).exits(0);
    let mut agent = Piped::greeted(world.command(&["mcp"]));
    let answer = agent.ask(&call(1, "greet", json!({"n": 2})));
    assert_eq!(answer["result"]["content"][0]["text"], "hi 2\n");

    let elsewhere = World::new();
    let port = crib.port().to_string();
    let there = |args: &[&str], token: Option<&str>| {
        let mut command = elsewhere.command(&[args, &["--port", &port]].concat());
        token.map(|token| command.env("TOOLCRIB_TOKEN", token));
        elsewhere.finish(command)
    };
    let none = there(&["list"], None).exits(3);
    assert!(none.stderr.contains("TOOLCRIB_TOKEN"), "{}", none.stderr);
    let token = world.token("remote", "read,call");
    assert!(
        there(&["list"], Some(&token))
            .exits(0)
            .stdout
            .contains("greet")
    );
    assert_eq!(
        there(&["call", "greet", "n=3"], Some(&token))
            .exits(0)
            .stdout,
        "hi 3\n"
    );
    there(&["reload"], Some(&token)).exits(3);
    let flag = there(&["call", "greet", "n=4", "--token", &token], None);
    assert_eq!(flag.exits(0).stdout, "hi 4\n");
    elsewhere.run(&["list", "--token", &token]).exits(2);
}

#[tokio::test]
async fn a_crib_for_others_asks_for_tokens_and_one_without_says_so() {
    let world = world();
    let crib = world.serve_as(&["--host", "0.0.0.0"]);
    let url = crib.url.clone();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    refused(get(&crib, "/api/tools", None).await, 401, "unauthorized").await;
    let token = world.token("remote", "read");
    assert_eq!(get(&crib, "/api/tools", Some(&token)).await.status(), 200);
    let name = ask(&crib, Method::GET, "/api/tools", Some(&token)).header("host", "evil.example");
    refused(name.send().await.unwrap(), 403, "forbidden").await;
    crib.stop();

    let ran = world
        .run(&["serve", "--no-auth", "--host", "0.0.0.0", "--port", "0"])
        .exits(2);
    assert!(
        ran.stderr.contains("owner") && ran.stderr.contains("tokens"),
        "{}",
        ran.stderr
    );
    let open = world.serve();
    assert_eq!(open.login, None);
    assert_eq!(get(&open, "/api/tools/greet", None).await.status(), 200);
    refused(get(&open, "/login?code=x", None).await, 404, "not_found").await;
}

#[tokio::test]
async fn a_store_that_cannot_be_read_lets_no_token_in_and_the_owner_still() {
    let world = world();
    let token = world.token("good", "read");
    let data = world.home().join(".local/share/toolcrib");
    for part in ["toolcrib.db-wal", "toolcrib.db-shm"] {
        let _ = std::fs::remove_file(data.join(part));
    }
    std::fs::write(data.join("toolcrib.db"), "nonsense".repeat(1_000)).unwrap();
    let crib = world.serve_closed();
    let (message, hint, _) = refused(
        get(&crib, "/api/tools", Some(&token)).await,
        503,
        "unavailable",
    )
    .await;
    assert!(message.contains("store") && hint.contains("/readyz"));
    refused(get(&crib, "/api/tools", None).await, 401, "unauthorized").await;
    assert_eq!(get(&crib, "/readyz", None).await.status(), 200);
    world.run(&["list"]).exits(0);
    let browser = reqwest::Client::builder().no_proxy();
    let browser = browser.redirect(reqwest::redirect::Policy::none());
    let login = crib.login.as_deref().unwrap();
    let came = browser.build().unwrap().get(login).send().await.unwrap();
    let cookie = came.headers()["set-cookie"].to_str().unwrap();
    let page = ask(&crib, Method::GET, "/api/tools", None).header("cookie", cookie);
    assert_eq!(page.send().await.unwrap().status(), 200);
}
