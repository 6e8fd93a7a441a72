//! Tokens: made, shown, expired, taken back, and the scope that each route needs.

use reqwest::Method;
use serde_json::json;

use super::{ask, get, refused, world};
use crate::support::{World, answer, eventually, shell_tool};

#[tokio::test]
async fn only_tokens_that_count_are_taken() {
    let world = world();
    let crib = world.serve_closed();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(&crib, path, None).await.status(), 200);
    }
    let (message, hint, challenge) =
        refused(get(&crib, "/api/tools", None).await, 401, "unauthorized").await;
    assert_eq!(message, "this needs a token");
    assert!(
        hint.contains("Bearer") && hint.contains("toolcrib token create"),
        "{hint}"
    );
    assert_eq!(challenge, "Bearer realm=\"toolcrib\"");
    // What is not there is not told to who is not known.
    refused(get(&crib, "/api/nothing", None).await, 401, "unauthorized").await;

    let good = world.token("good", "read,call");
    assert_eq!(get(&crib, "/api/tools", Some(&good)).await.status(), 200);
    let last = if good.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &good[..good.len() - 1]);
    for bad in [wrong.as_str(), "tcrib_", "x", &good[..20]] {
        let (message, _, challenge) = refused(
            get(&crib, "/api/tools", Some(bad)).await,
            401,
            "unauthorized",
        )
        .await;
        assert_eq!(message, "the token is not known here");
        assert!(challenge.contains("invalid_token"), "{challenge}");
    }
    let basic = ask(&crib, Method::GET, "/api/tools", None).basic_auth("user", Some(&good));
    refused(basic.send().await.unwrap(), 401, "unauthorized").await;
    let twice = ask(&crib, Method::GET, "/api/tools", Some(&good)).bearer_auth(&wrong);
    refused(twice.send().await.unwrap(), 401, "unauthorized").await;

    let short = world
        .run(&["token", "create", "short", "--expires", "1s"])
        .exits(0);
    let short = short.stdout.trim();
    assert_eq!(get(&crib, "/api/tools", Some(short)).await.status(), 200);
    eventually("it has expired", async || {
        get(&crib, "/api/tools", Some(short)).await.status() != 200
    })
    .await;
    let (message, ..) = refused(
        get(&crib, "/api/tools", Some(short)).await,
        401,
        "unauthorized",
    )
    .await;
    assert_eq!(message, "the token has expired");

    // Revoked by another process while it is in use.
    assert_eq!(get(&crib, "/api/tools", Some(&good)).await.status(), 200);
    world.run(&["token", "revoke", "good"]).exits(0);
    eventually("it is refused", async || {
        get(&crib, "/api/tools", Some(&good)).await.status() != 200
    })
    .await;
    let (message, ..) = refused(
        get(&crib, "/api/tools", Some(&good)).await,
        401,
        "unauthorized",
    )
    .await;
    assert_eq!(message, "the token was revoked");
}

/// Every operation of the document: refused without a token, and with one that has every scope but the right one.
#[tokio::test]
async fn every_route_asks_for_its_scope() {
    let world = world();
    let crib = world.serve_closed();
    let all = ["read", "call", "manage", "approve"];
    let lacking = |scope: &str| {
        let others: Vec<&str> = all.into_iter().filter(|other| *other != scope).collect();
        world.token(&format!("not-{scope}"), &others.join(","))
    };
    let lacking = all.map(lacking);
    let reader = world.token("reader", "read");
    let (_, document) = answer(get(&crib, "/openapi.json", Some(&reader)).await).await;
    let mut open = Vec::new();
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let path = path.replace("{name}", "greet").replace("{id}", "00000000");
            let Some(scope) = operation["security"][0]["token"][0].as_str() else {
                open.push(path);
                continue;
            };
            let index = all.iter().position(|one| *one == scope).unwrap();
            for path in [path.clone(), path.replacen("/api/", "/api/v1/", 1)] {
                let nobody = ask(&crib, method.clone(), &path, None)
                    .send()
                    .await
                    .unwrap();
                refused(nobody, 401, "unauthorized").await;
                let other = ask(&crib, method.clone(), &path, Some(&lacking[index]));
                let (message, hint, challenge) =
                    refused(other.send().await.unwrap(), 403, "forbidden").await;
                assert!(
                    message.contains(scope) && hint.contains(scope),
                    "{message} {hint}"
                );
                assert!(challenge.contains("insufficient_scope"), "{challenge}");
                asked += 1;
            }
        }
    }
    assert_eq!(
        open,
        ["/healthz", "/login", "/readyz", "/webhooks/approvals"]
    );
    assert!(asked > 20, "{asked}");
    // And with the one scope, each does what it is for.
    let caller = world.token("caller", "call");
    let post = ask(&crib, Method::POST, "/api/tools/greet/call", Some(&caller));
    let (status, outcome) = answer(
        post.json(&json!({"arguments": {"n": 1}}))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!((status, &outcome["output"]), (200, &json!("hi 1\n")));
    let manager = world.token("manager", "manage");
    let reload = ask(&crib, Method::POST, "/api/tools/reload", Some(&manager));
    assert_eq!(reload.send().await.unwrap().status(), 200);
}

#[test]
fn tokens_are_made_listed_and_taken_back() {
    let world = World::new();
    world.settings("[agents.bot]\n");
    let made = world.run(&[
        "token",
        "create",
        "ci",
        "--agent",
        "bot",
        "--expires",
        "30d",
        "--json",
    ]);
    let made = made.exits(0).json();
    assert_eq!(
        (&made["scopes"], &made["agent"]),
        (&json!(["read", "call"]), &json!("bot"))
    );
    let secret = made["token"].as_str().unwrap();
    assert!(
        secret.starts_with("tcrib_") && secret.len() == 70,
        "{secret}"
    );
    assert!(made["expiresAt"].is_string());
    let plain = world.run(&["token", "create", "plain"]).exits(0);
    assert!(
        plain.stdout.starts_with("tcrib_") && plain.stdout.lines().count() == 1,
        "{plain:?}"
    );
    assert!(!plain.stderr.contains("tcrib_"), "{plain:?}");
    let taken = world.run(&["token", "create", "ci"]).exits(3);
    assert!(taken.stderr.contains("already"), "{taken:?}");
    for wrong in [
        &["token", "create", ""][..],
        &["token", "create", "x", "--scope", "root"],
        &["token", "create", "x", "--expires", "soon"],
    ] {
        world.run(wrong).exits(2);
    }
    let list = world.run(&["token", "list", "--json"]).exits(0).json();
    assert_eq!(list["count"], 2);
    assert!(!list.to_string().contains(secret) && list["tokens"][0].get("token").is_none());
    assert!(
        world
            .run(&["token", "list"])
            .exits(0)
            .stdout
            .contains("plain")
    );
    world.run(&["token", "revoke", "ci"]).exits(0);
    world.run(&["token", "revoke", "ci"]).exits(3);
    world
        .run(&["token", "revoke", made["id"].as_str().unwrap()])
        .exits(0);
    let list = world.run(&["token", "list", "--json"]).exits(0).json();
    assert_eq!(list["tokens"][0]["state"], "revoked");
    // The name is free again.
    world.run(&["token", "create", "ci"]).exits(0);
    world.run(&["token", "login"]).exits(4);
}

#[tokio::test]
async fn outputs_belong_to_the_token_s_agent() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("count", "seq 1 100000", json!({})));
    world.settings("[agents.reviewer]\n");
    let crib = world.serve_closed();
    let own = world
        .run(&["token", "create", "own", "--agent", "reviewer"])
        .exits(0);
    let other = world.token("other", "read,call");
    let call = ask(
        &crib,
        Method::POST,
        "/api/tools/count/call",
        Some(own.stdout.trim()),
    );
    let (_, outcome) = answer(call.send().await.unwrap()).await;
    let id = outcome["metadata"]["outputId"].as_str().unwrap();
    let path = format!("/api/outputs/{id}");
    assert_eq!(
        get(&crib, &path, Some(own.stdout.trim())).await.status(),
        200
    );
    refused(get(&crib, &path, Some(&other)).await, 404, "not_found").await;
}
