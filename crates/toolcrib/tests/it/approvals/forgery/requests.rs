//! Requests of others: tokens that may not, ids that are guessed, bodies that say something else, methods that only look.

use reqwest::Method;
use serde_json::json;

use super::browsers::{browsers, webhooks};
use super::commands::minting;
use super::{Attempt, Table, YES, bearer, post, typed};
use crate::approvals::scene::{asked, call, ran, world};
use crate::support::TestCrib;

const REFUSED: &[u16] = &[401, 403];

#[tokio::test]
async fn no_request_of_anybody_else_decides() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let agent = world.token("agent", "read,call");
    let manager = world.token("manager", "read,call,manage");
    let approver = world.token("approver", "read,approve");
    let revoked = world.token("revoked", "read,approve");
    world.run(&["token", "revoke", "revoked"]).exits(0);
    let id = asked(&crib, &agent, "all").await;
    let other = asked(&crib, &agent, "other").await;
    let mut table = Table::new(&world, &crib, &id);
    let tokens = [agent.as_str(), &manager, &approver, &revoked];
    for attempt in by_others(&crib, &id, tokens) {
        table.tries(attempt).await;
    }
    for attempt in of_something_else(&id, &approver) {
        table.tries(attempt).await;
    }
    browsers(&mut table, &other).await;
    webhooks(&mut table, &other).await;
    minting(&mut table, &manager).await;
    assert!(table.tried >= 60, "{}", table.tried);
    // A person decides, and the call runs, once.
    world
        .person(&["approvals", "approve", &id, "--yes"])
        .exits(0);
    assert_eq!(call(&crib, &agent, &json!({"what": "all"})).await.0, 200);
    assert_eq!(ran(&world), ["all"]);
}

/// A yes, from somebody who may not say it.
#[rustfmt::skip]
fn by_others(crib: &TestCrib, id: &str, [agent, manager, approver, revoked]: [&str; 4]) -> Vec<Attempt> {
    let api = format!("/api/approvals/{id}");
    let with = |name: &'static str, value: &str| vec![bearer(approver), typed(), (name, value.to_owned())];
    let cookie = |value: &str| ("cookie", format!("toolcrib_{}={value}", crib.port()));
    let forwarded = ("x-forwarded-for", "127.0.0.1".to_owned());
    let all = [
        ("the agent's own token", vec![bearer(agent), typed()]),
        ("a token that keeps the crib", vec![bearer(manager), typed()]),
        ("no token", vec![typed()]),
        ("a made-up token", vec![bearer(&format!("tcrib_{}", "0".repeat(64))), typed()]),
        ("a revoked token", vec![bearer(revoked), typed()]),
        ("two tokens", vec![bearer(agent), bearer(approver), typed()]),
        ("a token in another scheme", vec![("authorization", format!("Basic {approver}")), typed()]),
        ("a made-up cookie", vec![cookie(&"0".repeat(64)), typed()]),
        ("a token as a cookie", vec![cookie(approver), typed()]),
        ("another host's name", with("host", "evil.example")),
        ("a page of another site", with("origin", "http://evil.example")),
        ("a page of another port", with("origin", "http://localhost:1")),
        ("a page without an origin", with("origin", "null")),
        ("a cross-site request", with("sec-fetch-site", "cross-site")),
        ("who says that it is the owner", vec![bearer(agent), typed(), forwarded, ("x-remote-user", "root".to_owned())]),
    ];
    let each = all.into_iter().map(|(what, headers)| post(what, &api, headers, YES, REFUSED));
    let v1 = post("the other version", &format!("/api/v1/approvals/{id}"), vec![bearer(agent), typed()], YES, REFUSED);
    each.chain([v1]).collect()
}

/// What somebody sends who may decide, and does not.
#[rustfmt::skip]
fn of_something_else(id: &str, approver: &str) -> Vec<Attempt> {
    let api = format!("/api/approvals/{id}");
    let good = || vec![bearer(approver), typed()];
    let paths = [
        ("a guessed id", "/api/approvals/0198c0de-0000-7000-8000-000000000000".to_owned()),
        ("a part of the id", format!("/api/approvals/{}", &id[..id.len() - 1])),
        ("a pattern", "/api/approvals/%25".to_owned()),
        ("another case", format!("/api/approvals/{}", id.to_uppercase())),
        ("a NUL behind it", format!("/api/approvals/{id}%00")),
        ("SQL behind it", format!("/api/approvals/{id}'%20OR%20'1'='1")),
        ("a step up", format!("/api/approvals/x/../{id}x")),
    ];
    let bodies = [
        ("another word", r#"{"decision":"yes"}"#),
        ("another case of the word", r#"{"decision":"APPROVE"}"#),
        ("two words", r#"{"decision":"reject","decision":"approve"}"#),
        ("a yes with arguments", r#"{"decision":"approve","arguments":{"what":"me"}}"#),
        ("an edit without arguments", r#"{"decision":"edit"}"#),
        ("a field too many", r#"{"decision":"approve","id":"x"}"#),
        ("a list", r#"[{"decision":"approve"}]"#),
        ("nothing", ""),
    ];
    let wrong = r#"{"decision":"edit","arguments":{"what":7}}"#;
    let methods = [
        (Method::GET, format!("{api}?decision=approve")),
        (Method::GET, format!("/approvals/{id}?decision=approve")),
        (Method::HEAD, api.clone()),
        (Method::PUT, api.clone()),
        (Method::PATCH, api.clone()),
        (Method::DELETE, api.clone()),
    ];
    let mut all: Vec<Attempt> = Vec::new();
    all.extend(paths.map(|(what, path)| post(what, &path, good(), YES, &[400, 404])));
    all.extend(bodies.map(|(what, body)| post(what, &api, good(), body, &[400])));
    all.push(post("arguments that the tool refuses", &api, good(), wrong, &[422]));
    all.extend(methods.map(|(method, path)| {
        let mut headers = good();
        headers.push(("x-http-method-override", "POST".to_owned()));
        let attempt = post("another method", &path, headers, YES, &[200, 400, 405]);
        Attempt { method, ..attempt }
    }));
    all
}
