//! Every route's good answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use toolcrib_core::{ErrorType, Problem, Rank, SourceKind};

use super::fixture::{TestServer, answer, echo, reload_of, tool, update};
use crate::serve::{Readiness, rest};
use crate::wire::{HealthView, OutcomeView, ProblemList, ReloadView, ToolList, ToolView};

#[tokio::test]
async fn the_list_is_whole_and_counted() {
    let server = TestServer::start().await;
    for path in ["/api/tools", "/api/v1/tools"] {
        let (status, body) = answer(server.get(path).await).await;
        assert_eq!(status, 200);
        assert_eq!(
            body["counts"],
            json!({"total": 8, "builtin": 7, "plugin": 1, "executable": 0, "python": 0, "registered": 0, "typescript": 0})
        );
        assert_eq!(body["count"], 8);
        assert_eq!(body["tools"][2]["name"], "echo");
        assert_eq!(body["tools"][2]["mcpName"], "mcp__toolcrib__echo");
        let list: ToolList = serde_json::from_value(body).unwrap();
        assert!(list.tools.is_sorted_by(|a, b| a.name < b.name));
    }
}

#[tokio::test]
async fn the_list_follows_the_catalog() {
    let server = TestServer::start().await;
    let (_, before) = answer(server.get("/api/tools").await).await;
    server.served.crib.apply(vec![update(
        "new.json",
        Rank::Folder(0),
        vec![tool("fresh", echo())],
        Vec::new(),
    )]);
    let (_, after) = answer(server.get("/api/tools").await).await;
    assert_eq!((&before["count"], &after["count"]), (&json!(8), &json!(9)));
}

#[tokio::test]
async fn the_list_is_filtered_and_paged() {
    let server = TestServer::start().await;
    for (query, count, names) in [
        ("limit=2", 8, &["big", "crashing"][..]),
        ("limit=2&offset=6", 8, &["plugged", "slow"]),
        ("offset=7", 8, &["slow"]),
        ("offset=99", 8, &[]),
        ("source=plugin", 1, &["plugged"]),
        ("status=untrusted", 1, &["plugged"]),
        ("status=active&source=plugin", 0, &[]),
    ] {
        let (status, body) = answer(server.get(&format!("/api/tools?{query}")).await).await;
        let list: ToolList = serde_json::from_value(body).unwrap();
        let got: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(
            (status, list.count, got.as_slice()),
            (200, count, names),
            "{query}"
        );
        assert_eq!(list.counts["total"], 8);
    }
}

#[tokio::test]
async fn one_tool_is_shown() {
    let server = TestServer::start().await;
    let (status, body) = answer(server.get("/api/tools/plugged").await).await;
    assert_eq!((status, &body["status"]), (200, &json!("untrusted")));
    assert_eq!(body["healthStatus"], "unknown");
    for absent in [
        "scope",
        "file",
        "version",
        "aliases",
        "permissions",
        "needs",
        "timeoutMs",
        "outputSchema",
    ] {
        assert!(body.get(absent).is_none(), "{absent}");
    }
    for present in [
        "tags",
        "annotations",
        "stale",
        "shadows",
        "inputSchema",
        "module",
    ] {
        assert!(body.get(present).is_some(), "{present}");
    }
    serde_json::from_value::<ToolView>(body).unwrap();
    let (_, late) = answer(server.get("/api/tools/late").await).await;
    assert_eq!(late["timeoutMs"], 1);
}

#[tokio::test]
async fn a_call_gives_its_outcome() {
    let server = TestServer::with(|served| served.with_project(Some("the-project".into()))).await;
    let body = json!({"arguments": {"text": "hi"}, "runId": "r", "messageId": "m"});
    let (status, outcome) = answer(server.call("echo", body).await).await;
    let ids = json!({"session": "r", "message": "m", "client": "rest", "directory": "the-project"});
    assert_eq!(status, 200);
    assert_eq!(
        outcome,
        json!({"title": "echo", "output": "hi", "metadata": {"ids": ids}, "attachments": [], "isError": false})
    );
    serde_json::from_value::<OutcomeView>(outcome).unwrap();
    let (_, outcome) = answer(
        server
            .call("echo", json!({"runId": "r", "sessionId": "s"}))
            .await,
    )
    .await;
    assert_eq!(outcome["metadata"]["ids"]["session"], "s");
    let (status, outcome) = answer(server.post("/api/v1/tools/echo/call", "").await).await;
    assert_eq!((status, &outcome["output"]), (200, &json!("nothing")));
}

#[tokio::test]
async fn a_tool_that_reports_failure_answers_200() {
    let server = TestServer::start().await;
    let (status, outcome) = answer(server.call("failing", json!({})).await).await;
    assert_eq!((status, &outcome["isError"]), (200, &json!(true)));
}

#[tokio::test]
async fn problems_are_listed() {
    let server = TestServer::start().await;
    let (status, body) = answer(server.get("/api/tools/errors").await).await;
    assert_eq!((status, &body["count"]), (200, &json!(1)));
    assert_eq!(body["errors"][0]["timestamp"], "2023-11-14T22:13:20.000Z");
    let list: ProblemList = serde_json::from_value(body).unwrap();
    assert_eq!(
        (list.errors[0].line, list.errors[0].error_type.as_str()),
        (Some(3), "SyntaxError")
    );
}

#[tokio::test]
async fn a_reload_says_what_it_found() {
    let (send, updates) = mpsc::channel(4);
    let server = TestServer::with(|served| {
        let reload = Arc::new(reload_of(served.crib.clone(), updates));
        served.with_reload(Arc::new(move || Box::pin(std::future::ready(reload()))))
    })
    .await;
    send.send(vec![update(
        "new.json",
        Rank::Folder(0),
        vec![tool("fresh", echo())],
        Vec::new(),
    )])
    .await
    .unwrap();
    let (status, body) = answer(server.post("/api/tools/reload", "").await).await;
    let view: ReloadView = serde_json::from_value(body).unwrap();
    assert_eq!((status, view.success, view.tool_count), (200, false, 9));
    assert_eq!(
        (view.added, view.errors.len()),
        (vec!["fresh".to_owned()], 1)
    );
    // A warning is no failure.
    let warning = Problem::error(SourceKind::Plugin, ErrorType::Validation, "odd").warning();
    let mended = vec![
        update("bad.json", Rank::Folder(0), Vec::new(), vec![warning]),
        update("new.json", Rank::Folder(0), Vec::new(), Vec::new()),
    ];
    send.send(mended).await.unwrap();
    let (_, body) = answer(server.post("/api/tools/reload", "").await).await;
    let view: ReloadView = serde_json::from_value(body).unwrap();
    assert_eq!(
        (view.success, view.removed, view.errors.len()),
        (true, vec!["fresh".to_owned()], 1)
    );
}

#[tokio::test]
async fn health_is_told_by_stage() {
    let (stage, ready) = watch::channel(Readiness::default());
    let server = TestServer::with(|served| {
        served
            .with_readiness(ready)
            .with_project(Some("the-project".into()))
    })
    .await;
    assert_eq!(
        answer(server.get("/healthz").await).await,
        (200, json!({"status": "ok"}))
    );
    let (status, body) = answer(server.get("/readyz").await).await;
    assert_eq!(
        (status, body),
        (503, json!({"status": "starting", "reasons": []}))
    );
    stage
        .send(Readiness {
            loaded: true,
            reasons: vec!["the store is locked".into()],
        })
        .unwrap();
    let (status, body) = answer(server.get("/readyz").await).await;
    assert_eq!(
        (status, body),
        (
            200,
            json!({"status": "degraded", "reasons": ["the store is locked"]})
        )
    );
    stage
        .send(Readiness {
            loaded: true,
            reasons: Vec::new(),
        })
        .unwrap();
    let (status, body) = answer(server.get("/readyz").await).await;
    assert_eq!(
        (status, body),
        (200, json!({"status": "ready", "reasons": []}))
    );
    let (status, body) = answer(server.get("/api/health").await).await;
    assert_eq!(status, 200);
    assert_eq!(
        body["counts"],
        json!({"active": 7, "denied": 0, "error": 0, "loading": 0, "off": 0, "unavailable": 0, "untrusted": 1})
    );
    let view: HealthView = serde_json::from_value(body).unwrap();
    assert_eq!(
        (view.catalog_version, view.project.as_deref()),
        (1, Some("the-project"))
    );
}

#[tokio::test]
async fn a_cut_output_is_read_on_in_ranges() {
    let server = TestServer::start().await;
    let (_, outcome) = answer(server.call("big", json!({})).await).await;
    assert_eq!(outcome["metadata"]["truncated"], true);
    let path = format!(
        "/api/outputs/{}",
        outcome["metadata"]["outputId"].as_str().unwrap()
    );
    let whole = server.get(&path).await;
    assert_eq!(whole.status(), 200);
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", "1100000"),
        ("accept-ranges", "bytes"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(whole.headers()[name], value);
    }
    assert_eq!(whole.text().await.unwrap(), "0123456789\n".repeat(100_000));
    assert!(*server.kept.largest_page.lock().unwrap() <= 1_024 * 1_024);
    for (range, place, text) in [
        ("bytes=0-4", "bytes 0-4/1100000", "01234"),
        ("bytes=1099998-", "bytes 1099998-1099999/1100000", "9\n"),
        ("bytes=-3", "bytes 1099997-1099999/1100000", "89\n"),
    ] {
        let part = server
            .request(Method::GET, &path)
            .header("range", range)
            .send()
            .await
            .unwrap();
        assert_eq!(
            (part.status().as_u16(), &part.headers()["content-range"]),
            (206, &place.parse().unwrap())
        );
        assert_eq!(part.text().await.unwrap(), text);
    }
    let head = server.request(Method::HEAD, &path).send().await.unwrap();
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-length"]),
        (200, &"1100000".parse().unwrap())
    );
}

#[tokio::test]
async fn the_page_is_strict_and_whole() {
    let server =
        TestServer::with(|served| served.with_config_schema("{\"type\":\"object\"}".into())).await;
    let home = server.get("/").await;
    assert_eq!(
        (home.status().as_u16(), &home.headers()["location"]),
        (307, &"/docs".parse().unwrap())
    );
    let page = server.get("/docs").await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    let text = page.text().await.unwrap();
    assert_eq!(text.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(!text.contains("{nonce}") && !text.contains("://") && !text.contains("innerHTML"));
    assert_eq!(
        answer(server.get("/toolcrib.schema.json").await).await,
        (200, json!({"type": "object"}))
    );
}

#[tokio::test]
async fn the_document_lists_the_table() {
    let server = TestServer::start().await;
    let (status, document) = answer(server.get("/openapi.json").await).await;
    assert_eq!(status, 200);
    assert_eq!(document, serde_json::to_value(rest::openapi()).unwrap());
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    assert_eq!(document["info"]["title"], "Toolcrib");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    let mut documented = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            documented.insert(format!("{method} {path}"));
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap()),
                "{path}"
            );
            assert!(operation["summary"].is_string(), "{path}");
            check_answers(path, operation);
            check_scope(path, operation);
        }
    }
    let table = [
        "delete /api/calls/{id}",
        "delete /api/custom-tools/{name}",
        "delete /api/grants/{id}",
        "delete /api/tokens/{name}",
        "delete /api/trust",
        "get /",
        "get /api/agents",
        "get /api/agents/{name}",
        "get /api/approvals",
        "get /api/approvals/{id}",
        "get /api/calls",
        "get /api/calls/{id}",
        "get /api/custom-tools",
        "get /api/custom-tools/{name}",
        "get /api/custom-tools/{name}/health",
        "get /api/doctor",
        "get /api/events",
        "get /api/grants",
        "get /api/health",
        "get /api/logs",
        "get /api/me",
        "get /api/outputs/{id}",
        "get /api/search",
        "get /api/tokens",
        "get /api/tools",
        "get /api/tools/definitions",
        "get /api/tools/errors",
        "get /api/tools/{name}",
        "get /api/tools/{name}/health",
        "get /api/trust",
        "get /approvals/{id}",
        "get /docs",
        "get /healthz",
        "get /login",
        "get /openapi.json",
        "get /readyz",
        "get /toolcrib.schema.json",
        "patch /api/custom-tools/{name}",
        "post /api/approvals/{id}",
        "post /api/custom-tools",
        "post /api/custom-tools/{name}/test",
        "post /api/custom-tools/{name}/validate",
        "post /api/grants",
        "post /api/tokens",
        "post /api/tools/reload",
        "post /api/tools/{name}/call",
        "post /api/trust",
        "post /approvals/{id}",
        "post /logout",
        "post /webhooks/approvals",
    ];
    assert_eq!(documented, table.map(str::to_owned).into());
    check_references(&document, &document);
}

/// Every answer is described, and every failing one is the one shape (readiness has its own).
fn check_answers(path: &str, operation: &Value) {
    let answers = operation["responses"].as_object().unwrap();
    assert!(
        answers.contains_key("403"),
        "{path}: the guard may refuse any request"
    );
    for (status, said) in answers {
        let schema = &said["content"]["application/json"]["schema"]["$ref"];
        if (status.starts_with(['4', '5']) || status == "202")
            && !(path == "/readyz" && status == "503")
        {
            assert_eq!(schema, "#/components/schemas/ErrorView", "{path} {status}");
        }
    }
}

/// Every route needs one scope and says how it refuses, but for those that are open to all.
fn check_scope(path: &str, operation: &Value) {
    let answers = operation["responses"].as_object().unwrap();
    if rest::OPEN.contains(&path) {
        assert_eq!(operation.get("security"), None, "{path}");
        return;
    }
    let needed = operation["security"][0]["token"].as_array();
    let needed = needed.unwrap_or_else(|| panic!("{path}: the route table gives it no scope"));
    assert_eq!(needed.len(), 1, "{path}");
    assert!(answers.contains_key("401"), "{path}");
    assert!(
        answers["403"]["description"]
            .as_str()
            .unwrap()
            .contains(needed[0].as_str().unwrap())
    );
}

/// Every reference leads somewhere.
fn check_references(document: &Value, part: &Value) {
    match part {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get("$ref") {
                let pointer = to.strip_prefix('#').unwrap();
                assert!(document.pointer(pointer).is_some(), "{to} leads nowhere");
            }
            fields
                .values()
                .for_each(|value| check_references(document, value));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|value| check_references(document, value)),
        _ => {}
    }
}
