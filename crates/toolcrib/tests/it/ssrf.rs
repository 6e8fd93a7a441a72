//! Whom an http tool may reach: some addresses never, whatever their spelling and whoever redirects there.
//!
//! Every address here that is not loopback is refused by decision, before anything is connected.

use std::time::Duration;

use crate::support::plugin::{file, tool};
use crate::support::server::{Server, redirect, response};
use crate::support::{TestCrib, World};
use serde_json::{Value, json};

fn fetcher(name: &str, mut handler: Value) -> Value {
    handler["type"] = json!("http");
    if handler.get("method").is_none() {
        handler["method"] = json!("GET");
    }
    let text = json!({"type": "string"});
    tool(
        name,
        json!({"url": text, "port": text, "host": text}),
        handler,
    )
}

fn world() -> World {
    let world = World::trusted();
    let tools = [
        fetcher("fetch", json!({"url": "{{url}}/x"})),
        fetcher("post", json!({"url": "{{url}}/x", "method": "POST"})),
    ];
    world.write_tool("fetch.json", file(&tools));
    world
}

/// A call that must be refused so, at once: connecting to a silent address would take its time.
async fn refused(crib: &TestCrib, tool: &str, url: &str, status: u16, code: &str) -> String {
    let call = crib.refused(tool, json!({"url": url}), status, code);
    tokio::time::timeout(Duration::from_secs(4), call)
        .await
        .unwrap_or_else(|_| panic!("{url} was not refused at once"))
}

#[tokio::test]
async fn metadata_and_link_local_addresses_are_denied_in_every_spelling() {
    let world = world();
    let crib = world.serve();
    for host in [
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xa9fea9fe",
        "0xA9.0xFE.0xA9.0xFE",
        "0251.0376.0251.0376",
        "025177524776",
        "169.254.43518",
        "169.16689662",
        "%31%36%39.254.169.254",
        "169\u{3002}254\u{3002}169\u{3002}254",
        "\u{ff11}\u{ff16}\u{ff19}.254.169.254",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:0:a9fe:a9fe]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[0:0:0:0:0:ffff:A9FE:A9FE]",
        "169.254.0.1",
        "169.254.170.2",
        "169.254.255.255",
        "[fe80::1]",
        "[febf::1]",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "metadata.google.internal",
        "METADATA.Google.internal.",
        "metadata",
        "224.0.0.1",
        "[ff02::1]",
        "255.255.255.255",
        "0.1.2.3",
    ] {
        for url in [
            format!("http://{host}"),
            format!("http://{host}:8080/latest/meta-data"),
            format!("https://{host}"),
        ] {
            let said = refused(&crib, "fetch", &url, 403, "denied").await;
            assert!(said.contains("may not be called"), "{url}: {said}");
        }
    }
}

#[tokio::test]
async fn a_literal_url_is_denied_no_less_than_a_given_one() {
    let world = world();
    let tools = [
        fetcher("literal", json!({"url": "http://169.254.169.254/latest"})),
        fetcher(
            "listed",
            json!({"url": "http://{{host}}/x", "allowedHosts": ["169.254.169.254", "metadata"]}),
        ),
    ];
    world.write_tool("literal.json", file(&tools));
    let crib = world.serve();
    refused(&crib, "literal", "unused", 403, "denied").await;
    for host in ["169.254.169.254", "2852039166", "metadata"] {
        crib.refused("listed", json!({"host": host}), 403, "denied")
            .await;
    }
}

#[tokio::test]
async fn other_schemes_and_credentials_are_no_base_urls() {
    let world = world();
    let server = Server::start(|_| response("200 OK", &[], "reached"));
    let crib = world.serve();
    let port = server.port;
    for url in [
        "file:///etc/passwd".to_owned(),
        "file://localhost/etc/passwd".to_owned(),
        format!("ftp://127.0.0.1:{port}"),
        format!("gopher://127.0.0.1:{port}/_x"),
        format!("ws://127.0.0.1:{port}"),
        "data:text/plain,x".to_owned(),
        "javascript:alert(1)".to_owned(),
        "unix:/var/run/docker.sock".to_owned(),
        format!("//127.0.0.1:{port}"),
        format!("127.0.0.1:{port}"),
        format!(" http://127.0.0.1:{port}"),
        format!("http:/127.0.0.1:{port}"),
        format!("http:127.0.0.1:{port}"),
        format!("http://user:word@127.0.0.1:{port}"),
        format!("http:///user:word@127.0.0.1:{port}"),
        format!("http:///127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}@169.254.169.254"),
        format!("http://127.0.0.1:{port}\\@169.254.169.254"),
        format!("http://127.0.0.1:{port}#@169.254.169.254"),
        format!("http://127.0.0.1:{port}?x=1"),
        format!("http://127.0.0.1:{port}/a/../b"),
        format!("http://127.0.0.1:{port}/%2e%2e/b"),
        format!("http://127.0.0.1:{port}\r\nX-Injected: 1"),
        "http://".to_owned(),
        String::new(),
    ] {
        for tool in ["fetch", "post"] {
            refused(&crib, tool, &url, 422, "invalid_arguments").await;
        }
    }
    assert_eq!(server.asked(), Vec::<String>::new());
    assert_eq!(
        crib.output("fetch", json!({"url": server.url()})).await,
        "reached"
    );
}

#[tokio::test]
async fn urls_of_other_schemes_never_load() {
    let world = world();
    let urls = [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://127.0.0.1/x",
        "http://{{host}}/x",
        "http:///{{host}}/x",
        "x{{url}}",
    ];
    let tools: Vec<Value> = urls
        .iter()
        .enumerate()
        .map(|(index, url)| fetcher(&format!("t{index}"), json!({"url": url})))
        .collect();
    world.write_tool("schemes.json", file(&tools));
    let crib = world.serve();
    let (_, problems) = crib.get("/tools/errors").await;
    assert_eq!(problems["count"], urls.len(), "{problems}");
    for (index, url) in urls.iter().enumerate() {
        let message = problems["errors"][index]["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("`tools[{index}].handler.url`")),
            "{url}: {message}"
        );
        assert_eq!(crib.status_of(&format!("t{index}")).await, None);
    }
}

#[tokio::test]
async fn redirects_are_judged_like_the_first_url() {
    let world = world();
    let crib = world.serve();
    let own = crib.port();
    let server =
        Server::start(
            move |request| match request.split('/').nth(1).unwrap_or_default() {
                "metadata" => redirect("302 Found", "http://169.254.169.254/latest/meta-data/"),
                "kept" => redirect("307 Temporary Redirect", "http://2852039166/"),
                "mapped" => redirect("308 Permanent Redirect", "http://[::ffff:169.254.169.254]/"),
                "schemeless" => redirect("303 See Other", "//metadata.google.internal/x"),
                "own" => redirect(
                    "301 Moved Permanently",
                    &format!("http://127.0.0.1:{own}/api/tools"),
                ),
                "file" => redirect("302 Found", "file:///etc/passwd"),
                "login" => redirect("302 Found", "http://user:word@127.0.0.1/"),
                "chain" => redirect("302 Found", "/metadata/x"),
                "endless" => redirect("302 Found", "/endless/x"),
                "good" => redirect("302 Found", "/end/x"),
                _ => response("200 OK", &[], "reached"),
            },
        );
    for path in [
        "metadata",
        "kept",
        "mapped",
        "schemeless",
        "own",
        "file",
        "login",
        "chain",
    ] {
        for tool in ["fetch", "post"] {
            refused(
                &crib,
                tool,
                &format!("{}/{path}", server.url()),
                403,
                "denied",
            )
            .await;
        }
    }
    assert_eq!(server.asked().len(), 18, "{:?}", server.asked());
    let said = refused(
        &crib,
        "fetch",
        &format!("{}/endless", server.url()),
        503,
        "unavailable",
    )
    .await;
    assert!(said.contains("redirected more than 5 times"), "{said}");
    let good = json!({"url": format!("{}/good", server.url())});
    assert_eq!(crib.output("fetch", good).await, "reached");
}

#[tokio::test]
async fn the_cribs_own_port_is_denied_in_every_spelling() {
    let world = world();
    world.write_tool(
        "port.json",
        file(&[fetcher(
            "by-port",
            json!({"url": "http://localhost:{{port}}/api/tools"}),
        )]),
    );
    let crib = world.serve();
    let port = crib.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "[::1]",
        "0.0.0.0",
        "0",
        "[::]",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.0.0.2",
        "127.255.255.254",
        "[::ffff:127.0.0.1]",
        "[::ffff:0.0.0.0]",
        "[0:0:0:0:0:0:0:1]",
    ] {
        for tool in ["fetch", "post"] {
            let said = refused(
                &crib,
                tool,
                &format!("http://{host}:{port}/api/tools"),
                403,
                "denied",
            )
            .await;
            assert!(said.contains("own port"), "{host}: {said}");
        }
    }
    crib.refused("by-port", json!({"port": port.to_string()}), 403, "denied")
        .await;
}

#[tokio::test]
async fn allowed_hosts_narrow_what_may_be_called() {
    let world = world();
    let elsewhere = Server::start(|_| response("200 OK", &[], "elsewhere"));
    let away = elsewhere.url();
    let server = Server::start(move |request| match request.split('/').nth(1) {
        Some("away") => redirect("302 Found", &away),
        _ => response("200 OK", &[], "here"),
    });
    let allowed = json!([format!("127.0.0.1:{}", server.port)]);
    let mut walled = fetcher("walled", json!({"url": "{{url}}/x"}));
    walled["sandbox"] = json!({"allowedHosts": allowed});
    let tools = [
        fetcher(
            "narrow",
            json!({"url": "{{url}}/x", "allowedHosts": allowed}),
        ),
        fetcher(
            "literal",
            json!({"url": format!("{}/away/x", server.url()), "allowedHosts": ["localhost"]}),
        ),
        walled,
    ];
    world.write_tool("narrow.json", file(&tools));
    let crib = world.serve();
    for tool in ["narrow", "walled"] {
        assert_eq!(
            crib.output(tool, json!({"url": server.url()})).await,
            "here"
        );
        for url in [
            elsewhere.url(),
            format!("http://localhost:{}", server.port),
            format!("http://[::1]:{}", server.port),
            format!("https://127.0.0.1:{}", elsewhere.port),
            format!("{}/away", server.url()),
        ] {
            let said = refused(&crib, tool, &url, 403, "denied").await;
            assert!(said.contains("not among the hosts"), "{tool} {url}: {said}");
        }
    }
    // Without a port in the list, every port of the host is meant; here the literal host is the same.
    assert_eq!(crib.output("literal", json!({})).await, "elsewhere");
    assert_eq!(elsewhere.asked().len(), 1, "{:?}", elsewhere.asked());
}

#[tokio::test]
async fn no_tool_calls_any_crib_of_the_same_user() {
    let world = world();
    let first = world.serve();
    // Another session's folder for sockets: they find each other all the same.
    let mut other = world.command(&["serve", "--json", "--port", "0", "--no-auth"]);
    other.env("XDG_RUNTIME_DIR", world.root().join("session"));
    let second = world.serve_by(other);
    for (crib, target) in [(&first, &second), (&second, &first), (&first, &first)] {
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
            let url = format!("http://{host}:{}", target.port());
            let said = refused(crib, "fetch", &url, 403, "denied").await;
            assert!(said.contains("Toolcrib's own port"), "{said}");
        }
    }
    // One that was killed leaves word behind, which no longer counts.
    let port = second.port();
    second.kill();
    let url = format!("http://127.0.0.1:{port}");
    refused(&first, "fetch", &url, 503, "unavailable").await;
    let run = world.home().join(".local/share/toolcrib/run");
    let left = |port: u16| run.join(format!("listening-127.0.0.1:{port}")).exists();
    assert!(left(port) && left(first.port()));
    let own = first.port();
    assert_eq!(first.stop(), Some(0));
    assert!(!left(own));
}
