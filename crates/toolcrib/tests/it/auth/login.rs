//! Browsers: a code once, a cookie for its own pages.

use std::time::Duration;

use reqwest::header::{HeaderMap, SET_COOKIE};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::json;

use super::{ask, refused, world};
use crate::support::TestCrib;

#[tokio::test]
async fn a_browser_logs_in_once_and_out_again() {
    let world = world();
    let crib = world.serve_closed();
    let browser = Browser::new(&crib);
    let pair = logs_in_once(&browser, crib.login.as_deref().unwrap()).await;
    only_its_own_pages_use_the_cookie(&browser, &pair).await;
    logs_out(&browser, &pair).await;

    // The owner gets another code through the socket, and only there.
    let again = world.run(&["token", "login"]).exits(0);
    let came = browser.open(again.stdout.trim()).await;
    assert_eq!(came.status(), 303);
    let token = world.token("all", "read,call,manage,approve");
    let remote = ask(&crib, Method::POST, "/login-url", Some(&token));
    refused(remote.send().await.unwrap(), 404, "not_found").await;
}

/// It goes where it is sent, and nowhere else.
struct Browser {
    client: Client,
    /// The crib's.
    url: String,
}

impl Browser {
    fn new(crib: &TestCrib) -> Browser {
        let client = Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none());
        Browser {
            client: client.build().unwrap(),
            url: crib.url.clone(),
        }
    }

    async fn open(&self, url: &str) -> Response {
        self.client.get(url).send().await.unwrap()
    }

    /// A request with this cookie.
    fn with(&self, method: Method, path: &str, cookie: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.header("cookie", cookie)
    }
}

/// The code works once; gives the cookie, name and value.
async fn logs_in_once(browser: &Browser, login: &str) -> String {
    assert!(login.rsplit('=').next().unwrap().len() >= 32, "{login}");
    let wrong = format!("{}/login?code={}", browser.url, "0".repeat(64));
    refused(browser.open(&wrong).await, 401, "unauthorized").await;
    let empty = browser.open(&format!("{}/login", browser.url)).await;
    refused(empty, 400, "bad_request").await;

    let came = browser.open(login).await;
    assert_eq!(
        (came.status().as_u16(), &came.headers()["location"]),
        (303, &"/".parse().unwrap())
    );
    let cookie = cookie(came.headers());
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let (_, hint, _) = refused(browser.open(login).await, 401, "unauthorized").await;
    assert!(hint.contains("toolcrib token login"), "{hint}");
    cookie.split(';').next().unwrap().to_owned()
}

async fn only_its_own_pages_use_the_cookie(browser: &Browser, pair: &str) {
    let page = browser.with(Method::GET, "/docs", pair);
    assert_eq!(page.send().await.unwrap().status(), 200);
    let body = json!({"arguments": {"n": 5}});
    let post = || {
        let post = browser.with(Method::POST, "/api/tools/greet/call", pair);
        post.json(&body)
    };
    refused(post().send().await.unwrap(), 403, "forbidden").await;
    let foreign = post().header("origin", "http://localhost:1");
    refused(foreign.send().await.unwrap(), 403, "forbidden").await;
    let own = post().header("origin", &browser.url).send().await.unwrap();
    assert_eq!(own.status(), 200);
    let own = post().header("sec-fetch-site", "same-origin");
    assert_eq!(own.send().await.unwrap().status(), 200);

    // A cookie that nobody was given.
    let (name, _) = pair.split_once('=').unwrap();
    let made_up = format!("{name}={}", "0".repeat(64));
    let asked = browser.with(Method::GET, "/api/tools", &made_up);
    refused(asked.send().await.unwrap(), 401, "unauthorized").await;
}

async fn logs_out(browser: &Browser, pair: &str) {
    let out = || browser.with(Method::POST, "/logout", pair);
    refused(out().send().await.unwrap(), 403, "forbidden").await;
    let events = browser.with(Method::GET, "/api/events", pair);
    let mut events = events.send().await.unwrap();
    assert_eq!(events.status(), 200);
    let out = out().header("origin", &browser.url).send().await.unwrap();
    assert_eq!(out.status(), 204);
    assert!(cookie(out.headers()).contains("Max-Age=0"));
    let ended = tokio::time::timeout(Duration::from_secs(5), async {
        while let Ok(Some(_)) = events.chunk().await {}
    });
    ended.await.expect("the stream ends with the login");
    let asked = browser.with(Method::GET, "/api/tools", pair);
    refused(asked.send().await.unwrap(), 401, "unauthorized").await;
}

fn cookie(headers: &HeaderMap) -> String {
    headers[SET_COOKIE].to_str().unwrap().to_owned()
}
