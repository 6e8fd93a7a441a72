//! Deciding: in a terminal, on the page, over REST, by webhook; what the agent then reads, and who is told.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use serde_json::{Value, json};
use toolcrib_store::hmac_sha256;

use super::scene::{SECRET, asked, call, ran, world};
use crate::support::{TestCrib, World, answer};

/// A login that a person at a terminal asked for, or one that any process of the user gets.
pub async fn login(world: &World, crib: &TestCrib, approves: bool) -> String {
    let url = match approves {
        true => world.person(&["token", "login", "--approve", "--json"]),
        false => world.run(&["token", "login", "--json"]),
    };
    let url: Value = serde_json::from_str(url.exits(0).stdout.trim()).unwrap();
    let url = url["login"].as_str().unwrap();
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let came = client.get(url).send().await.unwrap();
    assert_eq!(came.status(), 303, "{}", crib.url);
    let cookie = came.headers()[SET_COOKIE].to_str().unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// The page, and the mark in its form.
pub async fn page(crib: &TestCrib, cookie: &str, id: &str) -> (String, Option<String>) {
    let url = format!("{}/approvals/{id}", crib.url);
    let came = crib
        .client
        .get(url)
        .header(COOKIE, cookie)
        .send()
        .await
        .unwrap();
    assert_eq!(came.status(), 200);
    let page = came.text().await.unwrap();
    let mark = page.split("name=\"mark\" value=\"").nth(1);
    let mark = mark.map(|rest| rest.split('"').next().unwrap().to_owned());
    (page, mark)
}

/// The headers of a webhook that is signed with this secret at this time.
pub fn signed(secret: &str, id: &str, at: u64, body: &str) -> [(&'static str, String); 3] {
    let key = STANDARD
        .decode(secret.strip_prefix("whsec_").unwrap())
        .unwrap();
    let mac = hmac_sha256(&key, format!("{id}.{at}.{body}").as_bytes());
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", format!("v1,{}", STANDARD.encode(mac))),
    ]
}

pub fn now() -> u64 {
    std::time::UNIX_EPOCH.elapsed().unwrap().as_secs()
}

#[tokio::test]
async fn the_page_needs_no_script_and_a_login_that_may() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let odd = "<b>\u{202e}x</b>";
    let id = asked(&crib, &token, odd).await;
    let (looks, decides) = (
        login(&world, &crib, false).await,
        login(&world, &crib, true).await,
    );
    let (shown, mark) = page(&crib, &looks, &id).await;
    assert_eq!(mark, None);
    assert!(shown.contains("toolcrib token login --approve"), "{shown}");
    assert!(shown.contains(r"&lt;b&gt;\u{202E}x&lt;/b&gt;"), "{shown}");
    assert!(
        !shown.contains("<script") && !shown.contains("<b>"),
        "{shown}"
    );
    let (_, mark) = page(&crib, &decides, &id).await;
    let form = format!("mark={}&decision=reject&reason=no+way", mark.unwrap());
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let sent = client
        .post(format!("{}/approvals/{id}", crib.url))
        .header(COOKIE, &decides)
        .header(ORIGIN, &crib.url)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    assert_eq!(
        (sent.status().as_u16(), &sent.headers()[LOCATION]),
        (303, &format!("/approvals/{id}").parse().unwrap())
    );
    let (shown, _) = page(&crib, &decides, &id).await;
    assert!(
        shown.contains("rejected") && shown.contains("no way"),
        "{shown}"
    );
    let (status, refused) = call(&crib, &token, &json!({"what": odd})).await;
    assert_eq!(status, 403, "{refused}");
    let said = refused["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("rejected this call") && said.contains("no way"),
        "{said}"
    );
    assert!(ran(&world).is_empty());
}

#[tokio::test]
async fn an_edit_runs_what_a_person_wrote_and_says_so() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let id = asked(&crib, &token, "all").await;
    let wrong = [
        "approvals",
        "edit",
        &id,
        "--arguments",
        "{\"what\": 1}",
        "--yes",
    ];
    let refused = world.person(&wrong).exits(2);
    assert!(
        refused.stdout.contains("do not fit its schema"),
        "{refused:?}"
    );
    let edit = [
        "approvals",
        "edit",
        &id,
        "--arguments",
        "{\"what\": \"a little\"}",
        "--yes",
    ];
    world.person(&edit).exits(0);
    let shown = world.run(&["approvals", "show", &id]).exits(0).stdout;
    assert!(
        shown.contains("-   \"what\": \"all\",") && shown.contains("+   \"what\": \"a little\""),
        "{shown}"
    );
    let (status, answer) = call(&crib, &token, &json!({"what": "all"})).await;
    assert_eq!(status, 200, "{answer}");
    let output = answer["output"].as_str().unwrap();
    assert!(output.contains("What ran is `wipe` with"), "{output}");
    assert!(
        output.contains("\"what\": \"a little\"") && output.contains("wiped a little"),
        "{output}"
    );
    assert_eq!(ran(&world), ["a little"]);
}

#[tokio::test]
async fn an_answer_stands_in_for_the_tool() {
    let world = world("wait = 0");
    let crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    let approver = world.token("phone", "read,approve");
    let id = asked(&crib, &token, "all").await;
    let url = format!("{}/api/approvals/{id}", crib.url);
    let body = json!({"decision": "respond", "text": "it is clean already"});
    let decided = crib.client.post(&url).bearer_auth(&approver).json(&body);
    let (status, decided) = answer(decided.send().await.unwrap()).await;
    assert_eq!(
        (status, &decided["decidedHow"]),
        (200, &json!("rest")),
        "{decided}"
    );
    let (status, outcome) = call(&crib, &token, &json!({"what": "all"})).await;
    assert_eq!(
        (status, &outcome["output"]),
        (200, &json!("it is clean already")),
        "{outcome}"
    );
    assert_ne!(asked(&crib, &token, "all").await, id);
    assert!(ran(&world).is_empty());
}

#[tokio::test]
async fn a_signed_webhook_decides_and_events_tell_of_it() {
    let world = world("wait = 0");
    let mut crib = world.serve_closed();
    let token = world.token("agent", "read,call");
    crib.show(Some(&token));
    let mut events = crib.events().await;
    let id = asked(&crib, &token, "all").await;
    let told = events.next("approval_requested").await;
    assert_eq!(
        (&told["id"], &told["tool"]),
        (&json!(id), &json!("wipe")),
        "{told}"
    );
    assert!(
        told["url"]
            .as_str()
            .unwrap()
            .ends_with(&format!("/approvals/{id}")),
        "{told}"
    );
    assert!(told.get("arguments").is_none());
    let body = json!({"id": id, "decision": "approve", "by": "ada"}).to_string();
    let mut post = crib
        .client
        .post(format!("{}/webhooks/approvals", crib.url))
        .body(body.clone());
    for (name, value) in signed(SECRET, "msg_1", now(), &body) {
        post = post.header(name, value);
    }
    let (status, decided) = answer(post.send().await.unwrap()).await;
    assert_eq!(
        (status, &decided["decidedHow"]),
        (200, &json!("webhook")),
        "{decided}"
    );
    let told = events.next("approval_decided").await;
    assert_eq!(
        (&told["id"], &told["decision"]),
        (&json!(id), &json!("approved")),
        "{told}"
    );
    let (status, outcome) = call(&crib, &token, &json!({"what": "all"})).await;
    assert_eq!(
        (status, ran(&world)),
        (200, vec!["all".to_owned()]),
        "{outcome}"
    );
}
