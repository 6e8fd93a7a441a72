//! Who decides whose code runs and who gets in: the owner, and a token with `manage` as far as it reaches itself.

use std::io::Write as _;

use reqwest::header::SET_COOKIE;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::crowd::{connect, receive};
use super::{ask, get, refused, world};
use crate::support::{TestCrib, World, answer, eventually, shell_tool};

async fn send(crib: &TestCrib, method: Method, path: &str, token: &str, body: &Value) -> Response {
    let request = ask(crib, method, path, Some(token)).json(body);
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_token_makes_tokens_that_have_no_more_than_it_has() {
    let world = world();
    world.settings("[agents.bot]\n");
    let crib = world.serve_closed();
    let made = [
        "token",
        "create",
        "lead",
        "--scope",
        "read,manage",
        "--agent",
        "bot",
        "--expires",
        "1h",
        "--json",
    ];
    let lead = world.run(&made).exits(0).json();
    let own = lead["token"].as_str().unwrap();
    let make = |body: Value| {
        let crib = &crib;
        async move { send(crib, Method::POST, "/api/tokens", own, &body).await }
    };
    for beyond in [
        json!({"name": "x", "scopes": ["call"]}),
        json!({"name": "x", "scopes": ["read", "approve"]}),
        json!({"name": "x"}),
        json!({"name": "x", "scopes": ["read"], "agent": "default"}),
        json!({"name": "x", "scopes": ["read"], "agent": "other"}),
        json!({"name": "x", "scopes": ["read"], "expiresInSeconds": 7_200}),
    ] {
        let (message, hint, _) = refused(make(beyond).await, 403, "forbidden").await;
        assert!(message.contains("more scopes"), "{message}");
        assert!(hint.contains("toolcrib token"), "{hint}");
    }
    for wrong in [
        json!({}),
        json!({"name": "x", "scopes": ["root"]}),
        json!({"name": "x", "scopes": []}),
        json!({"name": "x", "scopes": ["read"], "expiresInSeconds": 0}),
        json!({"name": "x", "scope": ["read"]}),
    ] {
        refused(make(wrong).await, 400, "bad_request").await;
    }
    let answered = make(json!({"name": "child", "scopes": ["read"]})).await;
    assert_eq!(answered.headers()["cache-control"], "no-store");
    let (status, child) = answer(answered).await;
    assert_eq!(status, 201, "{child}");
    assert_eq!(child["agent"], "bot");
    assert_eq!(child["expiresAt"], lead["expiresAt"]);
    let secret = child["token"].as_str().unwrap();
    refused(
        make(json!({"name": "child", "scopes": ["read"]})).await,
        409,
        "conflict",
    )
    .await;
    let (_, me) = answer(get(&crib, "/api/me", Some(secret)).await).await;
    let expected = json!({"who": "token", "tokenId": child["id"], "scopes": ["read"], "agent": "bot",
                          "project": world.project()});
    assert_eq!(me, expected);
    refused(
        get(&crib, "/api/tokens", Some(secret)).await,
        403,
        "forbidden",
    )
    .await;
    // Nobody is told a secret again.
    let (_, list) = answer(get(&crib, "/api/tokens", Some(own)).await).await;
    assert_eq!(list["count"], 2);
    for known in [own, secret] {
        assert!(!list.to_string().contains(known));
    }
    // Nor does it take back what has more than itself.
    world.token("owners", "read,approve");
    let owners = send(&crib, Method::DELETE, "/api/tokens/owners", own, &json!({})).await;
    refused(owners, 403, "forbidden").await;
    let gone = send(&crib, Method::DELETE, "/api/tokens/child", own, &json!({})).await;
    let (status, gone) = answer(gone).await;
    assert_eq!((status, &gone["new"]), (200, &json!(true)), "{gone}");
    eventually("it is refused", async || {
        get(&crib, "/api/me", Some(secret)).await.status() == 401
    })
    .await;
    let never = send(&crib, Method::DELETE, "/api/tokens/child", own, &json!({})).await;
    refused(never, 404, "not_found").await;
}

#[tokio::test]
async fn a_token_decides_about_the_project_that_is_served_alone() {
    let world = World::new();
    world.write_tool("a.json", shell_tool("greet", "echo hi", json!({})));
    let other = World::new();
    let elsewhere = other.project().display().to_string();
    world.run(&["trust", &elsewhere]).exits(0);
    let crib = world.serve_closed();
    let reader = world.token("reader", "read,call");
    let lead = world.token("lead", "read,call,manage");
    let nothing = json!({});
    let no = send(&crib, Method::POST, "/api/trust", &reader, &nothing).await;
    refused(no, 403, "forbidden").await;
    let (status, given) =
        answer(send(&crib, Method::POST, "/api/trust", &lead, &nothing).await).await;
    assert_eq!(status, 200, "{given}");
    assert_eq!(given["project"], json!(world.project()));
    assert_eq!(given["tools"][0]["name"], "greet");
    eventually("its tool runs", async || {
        let call = send(
            &crib,
            Method::POST,
            "/api/tools/greet/call",
            &lead,
            &nothing,
        );
        call.await.status() == 200
    })
    .await;
    // Whom else the user trusts is nobody's business.
    let (_, list) = answer(get(&crib, "/api/trust", Some(&lead)).await).await;
    assert_eq!(list["projects"][0]["path"], json!(world.project()));
    assert!(!list.to_string().contains(&elsewhere), "{list}");
    for path in [
        elsewhere.clone(),
        format!("{}/../../{elsewhere}", world.project().display()),
        "/".to_owned(),
    ] {
        let path = format!("/api/trust?path={}", path.replace('/', "%2F"));
        let no = send(&crib, Method::DELETE, &path, &lead, &nothing).await;
        refused(no, 403, "denied").await;
    }
    // However the path is written, the answer is about the project that it names.
    let written = world.project().display().to_string().replace('/', "//");
    let path = format!("/api/trust?path={written}/./");
    let (status, taken) = answer(send(&crib, Method::DELETE, &path, &lead, &nothing).await).await;
    assert_eq!((status, &taken["new"]), (200, &json!(true)), "{taken}");
    assert_eq!(taken["project"], json!(world.project()));
    let again = send(&crib, Method::POST, "/api/trust", &lead, &nothing).await;
    assert_eq!(again.status(), 200);
    let relative = send(&crib, Method::DELETE, "/api/trust?path=a", &lead, &nothing).await;
    refused(relative, 400, "bad_request").await;
    let taken = send(&crib, Method::DELETE, "/api/trust", &lead, &nothing).await;
    let (status, taken) = answer(taken).await;
    assert_eq!((status, &taken["new"]), (200, &json!(true)), "{taken}");
    eventually("its tool is denied", async || {
        let call = send(
            &crib,
            Method::POST,
            "/api/tools/greet/call",
            &lead,
            &nothing,
        );
        call.await.status() == 403
    })
    .await;
    // A project that others can change is the owner's alone to trust.
    let shared = json!({"shared": true});
    let no = send(&crib, Method::POST, "/api/trust", &lead, &shared).await;
    refused(no, 403, "denied").await;
    let kept = world.run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(kept["projects"].as_array().unwrap().len(), 1, "{kept}");
    assert_eq!(kept["projects"][0]["path"], json!(other.project()));
}

/// The door looks at a token when a request begins, and a body may take a minute.
#[tokio::test]
async fn a_body_that_ends_after_its_token_does_nothing() {
    let world = world();
    let crib = world.serve_closed();
    let port = crib.port();
    let token = world.token("lead", "read,call,manage");
    let bodies = [
        ("/api/tokens", r#"{"name": "late", "scopes": ["manage"]}"#),
        ("/api/trust", r#"{"noGrants": true}"#),
        ("/api/tools/greet/call", r#"{"arguments": {"n": 1}}"#),
        ("/api/custom-tools", r#"{"name": "a", "command": "true"}"#),
        ("/mcp", r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#),
    ];
    let begun = bodies.map(|(path, body)| {
        let mut stream = connect(port);
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{{",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        (stream, path, body)
    });
    // All of them are past the door once a later request is.
    assert_eq!(get(&crib, "/api/me", Some(&token)).await.status(), 200);
    world.run(&["token", "revoke", "lead"]).exits(0);
    eventually("it is refused", async || {
        get(&crib, "/api/me", Some(&token)).await.status() == 401
    })
    .await;
    for (mut stream, path, body) in begun {
        stream.write_all(&body.as_bytes()[1..]).unwrap();
        assert_eq!(receive(&mut stream).unwrap(), 401, "{path}");
    }
    let tokens = world.run(&["token", "list", "--json"]).exits(0).json();
    assert!(!tokens.to_string().contains("late"), "{tokens}");
}

/// They have `manage`, and could not do this before it was a route.
#[tokio::test]
async fn a_browsers_login_and_an_open_port_do_not_decide() {
    let world = world();
    let open = world.serve();
    let closed = world.serve_closed();
    let browser = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    let browser = browser.build().unwrap();
    let came = browser.get(closed.login.as_ref().unwrap()).send();
    let came = came.await.unwrap();
    let cookie = came.headers()[SET_COOKIE].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    for (who, crib) in [("anybody", &open), ("login", &closed)] {
        let asked = |method: Method, path: &str| {
            let request = browser.request(method, format!("{}{path}", crib.url));
            request
                .header("cookie", &cookie)
                .header("origin", &crib.url)
        };
        let (_, me) = answer(asked(Method::GET, "/api/me").send().await.unwrap()).await;
        assert_eq!(me["who"], who);
        assert!(me["scopes"].to_string().contains("manage"), "{me}");
        for (method, path) in [
            (Method::POST, "/api/tokens"),
            (Method::DELETE, "/api/tokens/one"),
            (Method::POST, "/api/trust"),
            (Method::DELETE, "/api/trust"),
        ] {
            let body = json!({"name": "one", "scopes": ["read"]});
            let sent = asked(method, path).json(&body).send().await.unwrap();
            let (message, ..) = refused(sent, 403, "forbidden").await;
            assert!(message.contains("command line"), "{message}");
        }
        for path in ["/api/tokens", "/api/trust", "/api/doctor"] {
            let seen = asked(Method::GET, path).send().await.unwrap();
            assert_eq!(seen.status(), 200, "{who} {path}");
        }
    }
    let trusted = world.run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(trusted["projects"].as_array().unwrap().len(), 1);
}
