//! Every refusal: its status, its code, its shape, and words that help.

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use tower::Service;

use super::fixture::{TestServer, answer, refused};
use crate::serve::rest;

#[tokio::test]
async fn what_is_not_there() {
    let server = TestServer::start().await;
    for path in [
        "/nothing",
        "/api",
        "/api/nothing",
        "/api/v1/nothing",
        "/api/v2/tools",
        "/api/tools/",
    ] {
        let (message, hint) = refused(server.get(path).await, 404, "not_found").await;
        assert!(
            message.contains(path) && hint.contains("/docs"),
            "{message} {hint}"
        );
    }
    let (message, hint) = refused(server.get("/api/tools/ecko").await, 404, "unknown_tool").await;
    assert!(
        message.contains("`ecko`") && hint.contains("`echo`"),
        "{message} {hint}"
    );
    refused(server.call("ecko", json!({})).await, 404, "unknown_tool").await;
    for id in ["00000000", "ffffffff-ffff", "UPPER", "..%2F..%2Fetc", "x"] {
        refused(
            server.get(&format!("/api/outputs/{id}")).await,
            404,
            "not_found",
        )
        .await;
    }
    refused(server.get("/toolcrib.schema.json").await, 404, "not_found").await;
}

#[tokio::test]
async fn without_a_door_only_open_routes_answer() {
    let server = TestServer::start().await;
    let mut router = rest::router(server.served.clone());
    for (path, status) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/docs", 401),
        ("/openapi.json", 401),
        ("/api/tools", 401),
        ("/api/v1/tools/echo", 401),
        ("/api/events", 401),
    ] {
        let request = axum::extract::Request::get(path);
        let request = request.body(axum::body::Body::empty()).unwrap();
        let response = router.call(request).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
}

#[tokio::test]
async fn a_wrong_method_names_the_right_ones() {
    let server = TestServer::start().await;
    for (method, path, allow) in [
        (Method::GET, "/api/tools/reload", "POST"),
        (Method::POST, "/api/tools/errors", "GET,HEAD"),
        (Method::DELETE, "/api/tools/echo", "GET,HEAD"),
        (Method::PUT, "/api/v1/tools/echo/call", "POST"),
        (Method::POST, "/healthz", "GET,HEAD"),
    ] {
        let response = server.request(method, path).send().await.unwrap();
        assert_eq!(response.headers()["allow"], allow, "{path}");
        refused(response, 405, "bad_request").await;
    }
}

#[tokio::test]
async fn a_body_that_does_not_fit() {
    let server = TestServer::start().await;
    for (body, said) in [
        ("{\"arguments\": {\"text\": }}", "line 1 column 24"),
        ("{", "not valid JSON"),
        ("[]", "the body does not fit"),
        ("\"text\"", "the body does not fit"),
        ("{\"arguments\": \"text\"}", "`arguments` does not fit"),
        ("{\"arguments\": null}", "`arguments` does not fit"),
        ("{\"argument\": {}}", "unknown field `argument`"),
        ("{\"sessionId\": 7}", "`sessionId` does not fit"),
    ] {
        let response = server.post("/api/tools/echo/call", body).await;
        let (message, hint) = refused(response, 400, "bad_request").await;
        assert!(
            message.contains(said) && !hint.is_empty(),
            "{body}: {message}"
        );
    }
    let response = server.post("/api/tools/echo/call", vec![0xff, 0xfe]).await;
    refused(response, 400, "bad_request").await;
    refused(server.get("/api/tools/%ff").await, 400, "bad_request").await;
}

#[tokio::test]
async fn a_body_that_is_too_large() {
    let server = TestServer::start().await;
    let fits = json!({"arguments": {"text": "x".repeat(9 * 1_024 * 1_024)}});
    let (status, outcome) = answer(server.call("echo", fits).await).await;
    assert_eq!(
        (status, &outcome["metadata"]["truncated"]),
        (200, &json!(true))
    );
    let too_large = json!({"arguments": {"text": "x".repeat(11 * 1_024 * 1_024)}});
    let (message, _) = refused(server.call("echo", too_large).await, 413, "too_large").await;
    assert!(message.contains("10 MB"), "{message}");
}

#[tokio::test]
async fn any_content_type_is_read_as_json() {
    let server = TestServer::start().await;
    let request = server
        .request(Method::POST, "/api/tools/echo/call")
        .header("content-type", "text/plain");
    let response = request
        .body("{\"arguments\": {\"text\": \"hi\"}}")
        .send()
        .await
        .unwrap();
    assert_eq!(answer(response).await.1["output"], "hi");
}

#[tokio::test]
async fn a_filter_that_is_unknown() {
    let server = TestServer::start().await;
    for (query, said) in [
        ("limit=x", "query"),
        ("limit=0", "`limit`"),
        ("limit=1001", "`limit`"),
        ("offset=-1", "query"),
        ("color=red", "color"),
        ("source=perl", "`perl`"),
        ("status=happy", "`happy`"),
    ] {
        let response = server.get(&format!("/api/tools?{query}")).await;
        let (message, hint) = refused(response, 400, "bad_request").await;
        assert!(
            message.contains(said) && !hint.is_empty(),
            "{query}: {message}"
        );
    }
}

#[tokio::test]
async fn a_call_that_gives_no_outcome() {
    let server = TestServer::start().await;
    let response = server.call("echo", json!({"arguments": {"text": 7}})).await;
    let (status, body) = answer(response).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (422, Some("invalid_arguments"))
    );
    assert_eq!(body["error"]["data"]["errors"][0]["path"], "/text");
    refused(server.call("plugged", json!({})).await, 403, "denied").await;
    refused(server.call("late", json!({})).await, 504, "timed_out").await;
    let (message, hint) = refused(server.call("crashing", json!({})).await, 502, "crashed").await;
    assert_eq!(
        (message.as_str(), hint.as_str()),
        ("the worker died", "look at its log")
    );
    let (message, hint) = refused(server.call("panicking", json!({})).await, 500, "internal").await;
    assert!(
        !message.contains("secret") && !hint.contains("secret"),
        "{message} {hint}"
    );
    // The crib goes on.
    assert_eq!(server.call("echo", json!({})).await.status(), 200);
}

#[tokio::test]
async fn a_range_outside_of_the_output() {
    let server = TestServer::start().await;
    let (_, outcome) = answer(server.call("big", json!({})).await).await;
    let path = format!(
        "/api/outputs/{}",
        outcome["metadata"]["outputId"].as_str().unwrap()
    );
    for range in [
        "bytes=1100000-",
        "bytes=5-2",
        "bytes=0-1,5-6",
        "bytes=x",
        "nonsense",
    ] {
        let response = server
            .request(Method::GET, &path)
            .header("range", range)
            .send()
            .await
            .unwrap();
        assert_eq!(
            response.headers()["content-range"],
            "bytes */1100000",
            "{range}"
        );
        refused(response, 416, "bad_request").await;
    }
}

#[tokio::test]
async fn foreign_hosts_and_pages_are_refused() {
    let server = TestServer::start().await;
    let port = server.address.port();
    for path in ["/api/tools", "/healthz", "/readyz", "/docs", "/nothing"] {
        for (name, value) in [
            ("host", "evil.example".to_owned()),
            ("host", format!("evil.example:{port}")),
            ("origin", "null".to_owned()),
            ("origin", "http://evil.example".to_owned()),
            ("origin", format!("http://evil.example:{port}")),
            ("origin", format!("https://localhost:{port}")),
            (
                "origin",
                format!("http://localhost:{}", port.wrapping_add(1)),
            ),
            ("sec-fetch-site", "cross-site".to_owned()),
        ] {
            let response = server
                .request(Method::GET, path)
                .header(name, &value)
                .send()
                .await
                .unwrap();
            let (_, hint) = refused(response, 403, "forbidden").await;
            assert!(hint.contains("localhost"), "{hint}");
        }
    }
    for (name, value) in [
        ("host", "localhost".to_owned()),
        ("host", "[::1]:1".to_owned()),
        ("origin", format!("http://localhost:{port}")),
        ("origin", format!("http://127.0.0.1:{port}")),
        ("sec-fetch-site", "same-origin".to_owned()),
    ] {
        let response = server
            .request(Method::GET, "/healthz")
            .header(name, &value)
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 200, "{name}: {value}");
    }
}

#[tokio::test]
async fn a_request_has_exactly_one_host() {
    let server = TestServer::start().await;
    for (head, status) in [
        ("GET /healthz HTTP/1.1\r\n", "400"),
        (
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
            "400",
        ),
        ("GET /healthz HTTP/1.0\r\n", "400"),
        (
            "GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n",
            "403",
        ),
        (
            "GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n",
            "200",
        ),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("{head}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text.split(' ').nth(1), Some(status), "{head:?}: {text}");
        assert!(
            status == "200" || text.contains("{\"error\":{\"code\":"),
            "{text}"
        );
    }
}
