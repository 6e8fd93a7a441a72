//! `web-search`: three engines behind one table, and answers that are none.

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_sources::remotes::{Provider, Remotes, WebSearch};

use crate::support::World;
use crate::support::web::{Web, moved, reply};

fn world(provider: Provider, url: &str, key: Option<&str>) -> World {
    let world = World::new();
    if let Some(key) = key {
        world.secret("search", key);
    }
    world.configure(Remotes {
        web_search: Some(WebSearch {
            provider,
            url: Some(url.parse().unwrap()),
            key: key.map(|_| "search".to_owned()),
        }),
        ..Remotes::default()
    });
    world
}

fn json_reply(value: serde_json::Value) -> Vec<u8> {
    reply(
        "200 OK",
        "Content-Type: application/json\r\n",
        value.to_string().as_bytes(),
    )
}

#[tokio::test]
async fn without_settings_it_is_off_and_says_what_to_set() {
    let world = World::new();
    let error = world
        .call("web-search", json!({"query": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(error.hint.unwrap().to_string().contains("[web_search]"));
}

#[tokio::test]
async fn each_engine_is_asked_in_its_own_way() {
    let hits = |text: &str| {
        json!([
            {"title": "One &amp; <strong>all</strong>", "url": "https://one.test/", text: "first\n<b>hit</b>"},
            {"title": "Two", "url": "https://two.test/", text: ""},
            {"title": "No address"},
            {"title": "Three", "url": "https://three.test/"},
        ])
    };
    let searxng =
        Web::start(move |_| json_reply(json!({"query": "x", "results": hits("content")}))).await;
    let brave =
        Web::start(move |_| json_reply(json!({"web": {"results": hits("description")}}))).await;
    let tavily = Web::start(move |_| json_reply(json!({"results": hits("content")}))).await;
    for (provider, web, path, key) in [
        (Provider::Searxng, &searxng, "/sub", None),
        (Provider::Brave, &brave, "", Some("KEY-OF-THE-TEST")),
        (Provider::Tavily, &tavily, "", Some("KEY-OF-THE-TEST")),
    ] {
        let world = world(provider, &web.url(path), key);
        let call = json!({"query": "a b", "limit": 2, "site": "docs.rs"});
        let outcome = world.call("web-search", call).await.unwrap();
        let expected =
            "1. One & all\n   https://one.test/\n   first hit\n\n2. Two\n   https://two.test/";
        assert_eq!(outcome.output, expected, "{provider:?}");
        assert_eq!(outcome.metadata["count"], json!(2));
    }
    let first = |web: &Web| web.asked()[0].clone();
    assert!(
        first(&searxng).starts_with("GET /sub/search?q=site%3Adocs.rs+a+b&format=json "),
        "{}",
        first(&searxng)
    );
    assert!(
        first(&brave).starts_with("GET /res/v1/web/search?q=site%3Adocs.rs+a+b&count=2 "),
        "{}",
        first(&brave)
    );
    assert!(first(&brave).contains("x-subscription-token: KEY-OF-THE-TEST\r\n"));
    assert!(
        first(&tavily).starts_with("POST /search ")
            && first(&tavily).contains("authorization: Bearer KEY-OF-THE-TEST\r\n")
    );
    assert!(
        first(&tavily)
            .ends_with(r#"{"query":"a b","max_results":2,"include_domains":["docs.rs"]}"#),
        "{}",
        first(&tavily)
    );
}

#[tokio::test]
async fn what_is_no_list_of_results_is_told_and_keys_go_nowhere_else() {
    let other = Web::start(|_| json_reply(json!({"results": []}))).await;
    let elsewhere = other.url("/");
    let web = Web::start(move |request| match request.split(['/', '?', ' ']).nth(2).unwrap_or_default() {
        "empty" => json_reply(json!({"results": []})),
        "nothing" => json_reply(json!({"query": "x"})),
        "list" => json_reply(json!([1])),
        "text" => reply("200 OK", "", b"KEY-OF-THE-TEST"),
        "denied" => reply("403 Forbidden", "", b"KEY-OF-THE-TEST"),
        "moved" => moved(&elsewhere),
        "huge" => reply("200 OK", "", &vec![b'['; 5_000_000]),
        _ => json_reply(json!({"results": [{"title": "KEY-OF-THE-TEST", "url": "https://x.test/KEY-OF-THE-TEST"}]})),
    })
    .await;
    for path in ["/empty", "/nothing"] {
        let world = world(Provider::Searxng, &web.url(path), Some("KEY-OF-THE-TEST"));
        let outcome = world
            .call("web-search", json!({"query": "x"}))
            .await
            .unwrap();
        assert_eq!(outcome.output, "No result for \"x\"");
    }
    for path in ["/list", "/text", "/denied", "/moved", "/huge"] {
        let world = world(Provider::Tavily, &web.url(path), Some("KEY-OF-THE-TEST"));
        let error = world
            .call("web-search", json!({"query": "x"}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Unavailable, "{path}");
        assert!(
            !format!("{error:?}").contains("KEY-OF"),
            "{path}: {error:?}"
        );
    }
    assert!(other.asked().is_empty());
    let told = world(Provider::Brave, &web.url("/told"), Some("KEY-OF-THE-TEST"));
    let outcome = told
        .call("web-search", json!({"query": "x"}))
        .await
        .unwrap();
    assert!(!format!("{outcome:?}").contains("KEY-OF"), "{outcome:?}");
    let bad = world(Provider::Searxng, &web.url("/empty"), None);
    for call in [
        json!({"query": ""}),
        json!({"query": "x", "limit": 21}),
        json!({"query": "x", "site": "a b"}),
        json!({"query": "x", "site": "127.0.0.1"}),
        json!({"query": "x", "site": "x.test/path"}),
    ] {
        let error = bad.call("web-search", call.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{call}");
    }
    // Nobody's metadata, whatever settings say.
    let metadata = world(Provider::Searxng, "http://169.254.169.254/", None);
    let error = metadata
        .call("web-search", json!({"query": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
}
