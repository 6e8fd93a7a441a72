//! Browsers: a code once, a cookie for its own pages.

use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderMap, SET_COOKIE};
use serde_json::json;

use super::{ask, refused, world};

#[tokio::test]
async fn a_browser_logs_in_once_and_out_again() {
    let world = world();
    let crib = world.serve_closed();
    let browser = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none());
    let browser = browser.build().unwrap();
    let login = crib.login.clone().unwrap();
    assert!(login.rsplit('=').next().unwrap().len() >= 32, "{login}");
    let wrong = format!("{}/login?code={}", crib.url, "0".repeat(64));
    refused(
        browser.get(wrong).send().await.unwrap(),
        401,
        "unauthorized",
    )
    .await;
    let empty = browser
        .get(format!("{}/login", crib.url))
        .send()
        .await
        .unwrap();
    refused(empty, 400, "bad_request").await;

    let came = browser.get(&login).send().await.unwrap();
    assert_eq!(
        (came.status().as_u16(), &came.headers()["location"]),
        (303, &"/".parse().unwrap())
    );
    let cookie = cookie(came.headers());
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let (_, hint, _) = refused(
        browser.get(&login).send().await.unwrap(),
        401,
        "unauthorized",
    )
    .await;
    assert!(hint.contains("toolcrib token login"), "{hint}");

    let pair = cookie.split(';').next().unwrap().to_owned();
    let with = |method: Method, path: &str, cookie: &str| {
        let request = browser.request(method, format!("{}{path}", crib.url));
        request.header("cookie", cookie)
    };
    let page = with(Method::GET, "/docs", &pair).send().await.unwrap();
    assert_eq!(page.status(), 200);
    let body = json!({"arguments": {"n": 5}});
    let post = || with(Method::POST, "/api/tools/greet/call", &pair).json(&body);
    refused(post().send().await.unwrap(), 403, "forbidden").await;
    let foreign = post().header("origin", "http://localhost:1");
    refused(foreign.send().await.unwrap(), 403, "forbidden").await;
    let own = post().header("origin", &crib.url).send().await.unwrap();
    assert_eq!(own.status(), 200);
    let own = post()
        .header("sec-fetch-site", "same-origin")
        .send()
        .await
        .unwrap();
    assert_eq!(own.status(), 200);

    // A cookie that nobody was given.
    let (name, _) = pair.split_once('=').unwrap();
    let made_up = format!("{name}={}", "0".repeat(64));
    refused(
        with(Method::GET, "/api/tools", &made_up)
            .send()
            .await
            .unwrap(),
        401,
        "unauthorized",
    )
    .await;

    let out = with(Method::POST, "/logout", &pair);
    refused(out.send().await.unwrap(), 403, "forbidden").await;
    let mut events = with(Method::GET, "/api/events", &pair)
        .send()
        .await
        .unwrap();
    assert_eq!(events.status(), 200);
    let out = with(Method::POST, "/logout", &pair).header("origin", &crib.url);
    let out = out.send().await.unwrap();
    assert_eq!(out.status(), 204);
    assert!(self::cookie(out.headers()).contains("Max-Age=0"));
    let ended = tokio::time::timeout(Duration::from_secs(5), async {
        while let Ok(Some(_)) = events.chunk().await {}
    });
    ended.await.expect("the stream ends with the login");
    refused(
        with(Method::GET, "/api/tools", &pair).send().await.unwrap(),
        401,
        "unauthorized",
    )
    .await;

    // The owner gets another code through the socket, and only there.
    let again = world.run(&["token", "login"]).exits(0);
    let came = browser.get(again.stdout.trim()).send().await.unwrap();
    assert_eq!(came.status(), 303);
    let token = world.token("all", "read,call,manage,approve");
    let remote = ask(&crib, Method::POST, "/login-url", Some(&token));
    refused(remote.send().await.unwrap(), 404, "not_found").await;
}

fn cookie(headers: &HeaderMap) -> String {
    headers[SET_COOKIE].to_str().unwrap().to_owned()
}
