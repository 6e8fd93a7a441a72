//! `fetch-page`: pages of granted hosts, and every way to make it call others or hold too much.

use std::io::Write;

use serde_json::json;
use toolcrib_core::{ErrorCode, Network, Permit};

use crate::support::World;
use crate::support::web::{Web, html, moved, reply};

const ARTICLE: &str = "<!doctype html><html><head><title>On cribs</title><script>alert(1)</script></head><body>\
    <nav><a href='/home'>Home</a><a href='/more'>More</a></nav><article><h1>On cribs</h1>\
    <p>A crib keeps tools, and hands them out. It says who has which, and takes them back in the end, so that none gets lost.</p>\
    <p>Who wants a tool asks for it, and <a href='/rules'>the rules</a> say whether he gets it. There are many rules, and all are short.</p>\
    <ul><li>One tool for one hand.</li><li>No tool leaves the house, unless someone says so, and writes it down.</li></ul>\
    <pre><code>crib list</code></pre></article><footer>Imprint</footer></body></html>";

fn hosts(list: &[&str]) -> Permit {
    Permit {
        network: Network::Hosts(list.iter().map(|host| (*host).to_owned()).collect()),
        ..Permit::default()
    }
}

fn granted(list: &[String]) -> World {
    let world = World::new();
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    world.grant("fetch-page", hosts(&list));
    world
}

fn to(web: &Web) -> World {
    granted(&[format!("127.0.0.1:{}", web.port)])
}

#[tokio::test]
async fn the_readable_part_is_given_as_markdown_text_or_as_it_is() {
    let web = Web::start(|_| html(ARTICLE)).await;
    let world = to(&web);
    let call = |format: &'static str| {
        world.call(
            "fetch-page",
            json!({"url": web.url("/a?key=1#part"), "format": format}),
        )
    };
    let markdown = call("markdown").await.unwrap();
    assert_eq!(markdown.title.as_deref(), Some("On cribs"));
    for part in [
        "# On cribs",
        "A crib keeps tools",
        "/rules)",
        "One tool for one hand",
        "crib list",
    ] {
        assert!(
            markdown.output.contains(part),
            "{part}: {}",
            markdown.output
        );
    }
    for part in ["alert", "Imprint", "<p>", "Home"] {
        assert!(
            !markdown.output.contains(part),
            "{part}: {}",
            markdown.output
        );
    }
    assert_eq!(
        (&markdown.metadata["status"], &markdown.metadata["charset"]),
        (&json!(200), &json!("UTF-8"))
    );
    assert_eq!(markdown.metadata["url"], json!(web.url("/a")));
    let text = call("text").await.unwrap();
    assert!(
        text.output.contains("A crib keeps tools") && !text.output.contains("/rules"),
        "{}",
        text.output
    );
    assert_eq!(call("html").await.unwrap().output, ARTICLE);
    let few = world
        .call("fetch-page", json!({"url": web.url("/"), "maxChars": 100}))
        .await
        .unwrap();
    assert!(
        few.output.len() < 200 && few.output.contains("left out; raise maxChars"),
        "{}",
        few.output
    );
    let asked = web.asked();
    assert!(
        asked[0].starts_with("GET /a?key=1 HTTP/1.1") && !asked[0].contains("part"),
        "{}",
        asked[0]
    );
}

#[tokio::test]
async fn other_answers_are_given_as_what_they_are() {
    let web = Web::start(
        |request| match request.split(' ').nth(1).unwrap_or_default() {
            "/json" => reply(
                "200 OK",
                "Content-Type: application/json\r\n",
                br#"{"a": "<b>"}"#,
            ),
            "/latin1" => reply(
                "200 OK",
                "Content-Type: text/plain; charset=iso-8859-1\r\n",
                b"caf\xe9",
            ),
            "/broken" => reply(
                "200 OK",
                "Content-Type: text/html\r\n",
                b"<p>caf\xc3 \xff</p>",
            ),
            "/image" => reply("200 OK", "Content-Type: image/png\r\n", b"\x89PNG\x00\xff"),
            "/missing" => reply(
                "404 Not Found",
                "Content-Type: text/html\r\n",
                b"<h1>Gone</h1>",
            ),
            _ => reply("500 Oops", "", b""),
        },
    )
    .await;
    let world = to(&web);
    let call = |path: &str| world.call("fetch-page", json!({"url": web.url(path)}));
    assert_eq!(call("/json").await.unwrap().output, r#"{"a": "<b>"}"#);
    assert_eq!(call("/latin1").await.unwrap().output, "café");
    assert!(call("/broken").await.unwrap().output.contains("caf"));
    let image = call("/image").await.unwrap();
    assert_eq!(image.attachments[0].mime_type, "image/png");
    let missing = call("/missing").await.unwrap();
    assert!(
        missing.is_error && missing.output.contains("Gone"),
        "{}",
        missing.output
    );
    let failed = call("/oops").await.unwrap();
    assert!(failed.is_error && failed.output.contains("500"));
}

#[tokio::test]
async fn hosts_that_were_not_granted_are_not_called() {
    let web = Web::start(|_| html("SECRET")).await;
    let world = World::new();
    let url = web.url("/");
    let error = world
        .call("fetch-page", json!({"url": url}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    assert_eq!(
        error.hint.unwrap().command().unwrap().to_string(),
        "toolcrib grant fetch-page --net HOST"
    );
    let own_port = format!("127.0.0.1:{}", web.port);
    for (list, url) in [
        (vec!["example.com".to_owned()], url.clone()),
        // A name may not lead where its owner likes.
        (
            vec![format!("localhost.localdomain:{}", web.port)],
            format!("http://localhost.localdomain:{}/", web.port),
        ),
        // A grant without a port is one for the usual ports.
        (vec!["127.0.0.1".to_owned()], url.clone()),
        (
            vec![own_port.clone()],
            format!("http://[::ffff:127.0.0.1]:{}/", web.port),
        ),
        (
            vec![own_port.clone()],
            format!("http://2130706434:{}/", web.port),
        ),
        (
            vec!["169.254.169.254".to_owned()],
            "http://169.254.169.254/latest/meta-data/".to_owned(),
        ),
        (
            vec!["metadata.google.internal".to_owned()],
            "http://metadata.google.internal/".to_owned(),
        ),
        (
            vec!["*.example.com".to_owned()],
            "http://example.com.evil.test/".to_owned(),
        ),
    ] {
        let world = granted(&list);
        let error = world
            .call("fetch-page", json!({"url": url}))
            .await
            .unwrap_err();
        assert!(
            [ErrorCode::Denied, ErrorCode::Unavailable].contains(&error.code),
            "{list:?} {url}: {error}"
        );
    }
    for url in [
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "http://user:pw@127.0.0.1/",
        "nonsense",
        "javascript:1",
        "data:text/html,x",
    ] {
        let world = granted(std::slice::from_ref(&own_port));
        let error = world
            .call("fetch-page", json!({"url": url}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{url}: {error}");
    }
    assert!(web.asked().is_empty());
    let localhost = granted(&[format!("localhost:{}", web.port)]);
    let named = localhost
        .call(
            "fetch-page",
            json!({"url": format!("http://localhost:{}/", web.port)}),
        )
        .await;
    assert_eq!(
        named.unwrap().output,
        "SECRET",
        "localhost says what it means"
    );
}

#[tokio::test]
async fn a_redirect_is_checked_like_a_first_call() {
    let other = Web::start(|_| html("OTHER")).await;
    let elsewhere = other.url("/");
    let web = Web::start(
        move |request| match request.split(' ').nth(1).unwrap_or_default() {
            "/other" => moved(&elsewhere),
            "/metadata" => moved("http://169.254.169.254/latest/meta-data/"),
            "/file" => moved("file:///etc/passwd"),
            "/password" => moved("http://u:p@127.0.0.1/"),
            "/loop" => moved("/loop"),
            "/fine" => moved("/page"),
            _ => html("fine"),
        },
    )
    .await;
    let world = to(&web);
    for (path, code) in [
        ("/other", ErrorCode::Denied),
        ("/metadata", ErrorCode::Denied),
        ("/file", ErrorCode::Denied),
        ("/password", ErrorCode::Denied),
        ("/loop", ErrorCode::Unavailable),
    ] {
        let error = world
            .call("fetch-page", json!({"url": web.url(path)}))
            .await
            .unwrap_err();
        assert_eq!(error.code, code, "{path}: {error}");
    }
    assert!(other.asked().is_empty());
    assert_eq!(
        world
            .call("fetch-page", json!({"url": web.url("/fine")}))
            .await
            .unwrap()
            .output,
        "fine"
    );
    // All of the network is not the metadata.
    let open = World::new();
    open.grant(
        "fetch-page",
        Permit {
            network: Network::Open,
            ..Permit::default()
        },
    );
    let error = open
        .call("fetch-page", json!({"url": web.url("/metadata")}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied, "{error}");
    assert_eq!(
        open.call("fetch-page", json!({"url": web.url("/other")}))
            .await
            .unwrap()
            .output,
        "OTHER"
    );
}

#[tokio::test]
async fn what_its_compression_hides_is_not_taken_in() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let block = vec![b'a'; 1 << 20];
    for _ in 0..200 {
        bomb.write_all(&block).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1_000_000);
    let web = Web::start(move |request| {
        let kind = match request.contains("/page") {
            true => "text/html",
            false => "application/octet-stream",
        };
        reply(
            "200 OK",
            &format!("Content-Type: {kind}\r\nContent-Encoding: gzip\r\n"),
            &bomb,
        )
    })
    .await;
    let world = to(&web);
    let page = world
        .call(
            "fetch-page",
            json!({"url": web.url("/page"), "format": "html"}),
        )
        .await
        .unwrap();
    assert_eq!(page.metadata["bytes"], json!(5_000_000));
    let binary = world
        .call("fetch-page", json!({"url": web.url("/binary")}))
        .await
        .unwrap();
    assert_eq!(
        binary.metadata["bytes"],
        json!(5_000_000),
        "{}",
        binary.output.len()
    );
}

#[tokio::test]
async fn pages_that_are_made_to_hurt_end() {
    let unclosed: String = (0..40_000).map(|n| format!("<b id={n}><p>x")).collect();
    let pages = [
        unclosed,
        "<div>".repeat(400_000),
        "<ul><li>".repeat(200_000),
        "<table><tr><td>".repeat(100_000),
        "<".repeat(1_000_000),
        format!("<a href=\"{}\">x</a>", "y".repeat(1_000_000)),
        "<!--".repeat(200_000),
        "<p>word</p>".repeat(150_000),
    ];
    let served = pages.clone();
    let web = Web::start(move |request| {
        let number: usize = request
            .split(['/', ' '])
            .nth(2)
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        html(&served[number])
    })
    .await;
    let world = to(&web);
    for number in 0..pages.len() {
        let outcome = world
            .call("fetch-page", json!({"url": web.url(&format!("/{number}"))}))
            .await;
        assert!(outcome.is_ok(), "{number}: {outcome:?}");
    }
}
