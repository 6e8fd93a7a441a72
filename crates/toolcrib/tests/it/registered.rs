//! Registered tools over REST: the seed's example, and every answer of the table.

use serde_json::{Value, json};

use crate::support::registered::{least, seed_registration};
use crate::support::{TestCrib, World, shell_tool};

fn message(body: &Value) -> String {
    format!("{} {}", body["error"]["message"], body["error"]["hint"])
}

fn code(body: &Value) -> &str {
    body["error"]["code"].as_str().unwrap_or_default()
}

async fn status_of(crib: &TestCrib, name: &str) -> String {
    let (status, view) = crib.get(&format!("/custom-tools/{name}")).await;
    assert_eq!(status, 200, "{view}");
    view["status"].as_str().unwrap().to_owned()
}

/// The seed says `python`; the test's own program stands where the seed's would, and a link gives Python that name.
#[tokio::test]
async fn the_seeds_example_works_as_it_stands() {
    let body = seed_registration();
    let world = World::new();
    let script = body["args"][0].as_str().unwrap().trim_start_matches("./");
    world.write(script, crate::support::registered::WEATHER);
    let crib = world.serve_where_python_is_python();
    let view = crib.register(body.clone()).await;
    for key in [
        "name",
        "description",
        "command",
        "inputSchema",
        "timeoutMs",
        "tags",
    ] {
        assert_eq!(view[key], body[key], "{key}");
    }
    assert_eq!(view["status"], "active");
    assert_eq!(view["version"], "2.0.0", "left out, so the program said it");
    assert_eq!(
        view["args"],
        json!([world.project().join(script)]),
        "made absolute"
    );
    let said = crib
        .output("weather_lookup", json!({"location": "Rome"}))
        .await;
    assert_eq!(said, "sunny in Rome");
    let (_, shown) = crib.get("/tools/weather_lookup").await;
    assert_eq!(shown["source"], "registered");
    assert_eq!(shown["module"], "registered");
    assert_eq!(shown.get("scope"), None);
    let tested = crib
        .post(
            "/custom-tools/weather_lookup/test",
            json!({"input": {"location": "Rome"}}),
        )
        .await;
    assert_eq!(
        (tested.0, &tested.1["output"]),
        (200, &json!("sunny in Rome"))
    );
}

#[tokio::test]
async fn name_and_command_are_enough() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let view = crib.register(least("weather")).await;
    assert_eq!(view["description"], "Says how the weather is");
    assert_eq!(view["version"], "2.0.0");
    assert_eq!(view["inputSchema"]["required"], json!(["location"]));
    assert_eq!(view["timeoutMs"], 30_000);
    assert_eq!(
        (&view["maxRetries"], &view["poolSize"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(view.get("warnings"), None);
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x"
    );
    crib.refused("weather", json!({}), 422, "invalid_arguments")
        .await;
}

#[tokio::test]
async fn create_answers_201_400_409_and_413() {
    let world = World::trusted();
    world.weather();
    world.write_tool("mine.json", shell_tool("mine", "echo", json!({})));
    let crib = world.serve();
    crib.register(least("weather")).await;
    let with = |key: &str, value: Value| {
        let mut body = least("other");
        body[key] = value;
        body
    };
    for (body, words) in [
        (json!({}), "`command` is missing"),
        (json!({"name": "x"}), "`command` is missing"),
        (json!({"name": "x", "command": ""}), "`command` is empty"),
        (json!({"name": "a b", "command": "x"}), "can't be a name"),
        (json!({"name": "reload", "command": "x"}), "reserved"),
        (with("nmae", json!(1)), "did you mean `name`?"),
        (with("status", json!("active")), "not a known field"),
        (with("timeoutMs", json!("1")), "whole number"),
        (with("poolSize", json!(0)), "whole number"),
        (
            with("inputSchema", json!({"type": "nonsense"})),
            "not a usable schema",
        ),
        (
            with("permissions", json!({"canFly": true})),
            "not a known field",
        ),
        (with("env", json!({"A B": "x"})), "variable's name"),
        (with("env", json!({"A": "***"})), "give the value itself"),
        (
            with("env", json!({"LD_PRELOAD": "/tmp/x.so"})),
            "can't be set by a tool",
        ),
        (
            with("env", json!({"BASH_ENV": "/tmp/x"})),
            "can't be set by a tool",
        ),
        (with("validate", json!("no")), "true or false"),
        (
            with("command", json!("no-such-program-anywhere")),
            "can't be used",
        ),
        (
            with("args", json!(["./weather/tool.py", "crash"])),
            "exit code 3",
        ),
        (
            with("args", json!(["./weather/tool.py", "bad-schema"])),
            "not a usable schema",
        ),
    ] {
        let (status, answer) = crib.post("/custom-tools", body.clone()).await;
        assert_eq!(
            (status, code(&answer)),
            (400, "bad_request"),
            "{body}: {answer}"
        );
        assert!(message(&answer).contains(words), "{body}: {answer}");
        assert!(
            answer["error"]["hint"]
                .as_str()
                .is_some_and(|hint| !hint.is_empty()),
            "{answer}"
        );
    }
    for name in ["weather", "mine", "git-status"] {
        let (status, answer) = crib.post("/custom-tools", least(name)).await;
        assert_eq!(
            (status, code(&answer)),
            (409, "conflict"),
            "{name}: {answer}"
        );
    }
    let (_, list) = crib.get("/custom-tools").await;
    assert_eq!(list["total"], 1, "nothing else was stored");
    let huge = with("description", json!("x".repeat(11 * 1_024 * 1_024)));
    assert_eq!(crib.post("/custom-tools", huge).await.0, 413);
    for text in ["", "[]", "{", "nonsense"] {
        let url = format!("{}/api/custom-tools", crib.url);
        let sent = crib.client.post(url).body(text).send().await.unwrap();
        assert_eq!(sent.status(), 400, "{text}");
    }
}

#[tokio::test]
async fn what_is_not_validated_is_inactive() {
    let world = World::new();
    let crib = world.serve();
    let mut body = least("weather");
    body["validate"] = json!(false);
    let view = crib.register(body).await;
    assert_eq!(view["status"], "inactive");
    assert_eq!(view.get("inputSchema"), None);
    assert_eq!(crib.get("/tools/weather").await.0, 404);
    let (status, refused) = crib
        .post(
            "/custom-tools/weather/test",
            json!({"input": {"location": "x"}}),
        )
        .await;
    assert_eq!((status, code(&refused)), (409, "conflict"), "{refused}");
    let (status, health) = crib.get("/custom-tools/weather/health?check=true").await;
    assert_eq!(
        (status, &health["status"]),
        (200, &json!("inactive")),
        "{health}"
    );
    // Its program is not there yet.
    let (status, refused) = crib.patch("weather", json!({"status": "active"})).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(status_of(&crib, "weather").await, "inactive");
    world.weather();
    let (status, view) = crib.patch("weather", json!({"status": "active"})).await;
    assert_eq!((status, &view["status"]), (200, &json!("active")), "{view}");
    assert_eq!(view["description"], "Says how the weather is");
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x"
    );
    let (status, view) = crib.patch("weather", json!({"status": "inactive"})).await;
    assert_eq!(
        (status, &view["status"]),
        (200, &json!("inactive")),
        "{view}"
    );
    assert_eq!(crib.get("/tools/weather").await.0, 404);
}

#[tokio::test]
async fn a_change_is_validated_and_never_renames() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let before = crib.register(least("weather")).await;
    for (body, words) in [
        (json!({"name": "other"}), "can't be changed"),
        (json!({"status": "error"}), "the crib sets it"),
        (json!({"status": "on"}), "active"),
        (
            json!({"args": ["./weather/tool.py", "crash"]}),
            "exit code 3",
        ),
        (
            json!({"command": "no-such-program-anywhere"}),
            "can't be used",
        ),
        (json!({"inputSchema": {"type": 5}}), "not a usable schema"),
        (json!({"descripton": "x"}), "did you mean `description`?"),
        (
            json!({"status": "active", "validate": false}),
            "without being validated",
        ),
    ] {
        let (status, answer) = crib.patch("weather", body.clone()).await;
        assert_eq!(
            (status, code(&answer)),
            (400, "bad_request"),
            "{body}: {answer}"
        );
        assert!(message(&answer).contains(words), "{body}: {answer}");
    }
    let (_, same) = crib.get("/custom-tools/weather").await;
    assert_eq!(
        same["updatedAt"], before["updatedAt"],
        "nothing was changed"
    );
    let change = json!({"name": "weather", "description": "Mine", "tags": ["a"], "timeoutMs": 5000, "maxRetries": 2});
    let (status, view) = crib.patch("weather", change).await;
    assert_eq!(
        (status, &view["description"]),
        (200, &json!("Mine")),
        "{view}"
    );
    let (_, shown) = crib.get("/tools/weather").await;
    assert_eq!(
        (&shown["description"], &shown["tags"]),
        (&json!("Mine"), &json!(["a"]))
    );
    let (_, checked) = crib.post("/custom-tools/weather/validate", json!({})).await;
    assert_eq!(checked["valid"], true);
    assert!(
        checked["warnings"][0]
            .as_str()
            .unwrap()
            .contains("description"),
        "{checked}"
    );
    let (_, back) = crib
        .patch("weather", json!({"description": null, "tags": null}))
        .await;
    assert_eq!(
        back["description"], "Says how the weather is",
        "asked again"
    );
    assert_eq!(back["tags"], json!([]));
    assert_eq!(crib.patch("nobody", json!({})).await.0, 404);
}

#[tokio::test]
async fn what_differs_is_a_warning_and_what_is_stored_stands() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let mut body = least("other");
    body["description"] = json!("Mine");
    body["version"] = json!("9");
    body["inputSchema"] = json!({"type": "object", "properties": {"location": {"type": "string"}}});
    let view = crib.register(body).await;
    assert_eq!(view["warnings"].as_array().unwrap().len(), 4, "{view}");
    assert_eq!(
        (&view["description"], &view["version"]),
        (&json!("Mine"), &json!("9"))
    );
    let (_, shown) = crib.get("/tools/other").await;
    assert_eq!(shown["inputSchema"].get("required"), None);
}

#[tokio::test]
async fn the_other_routes_answer_200_204_and_404() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    for name in ["a", "b", "c"] {
        crib.register(least(name)).await;
    }
    crib.patch("b", json!({"status": "inactive"})).await;
    let (_, all) = crib.get("/custom-tools").await;
    assert_eq!(
        (&all["total"], all["tools"].as_array().unwrap().len()),
        (&json!(3), 3)
    );
    let (_, page) = crib.get("/custom-tools?limit=1&offset=1").await;
    assert_eq!(
        (&page["total"], &page["tools"][0]["name"]),
        (&json!(3), &json!("b"))
    );
    for (status, total) in [("active", 2), ("inactive", 1), ("error", 0)] {
        let (_, some) = crib.get(&format!("/custom-tools?status={status}")).await;
        assert_eq!(some["total"], total, "{status}");
    }
    for bad in [
        "status=on",
        "limit=0",
        "limit=1001",
        "limit=x",
        "offset=-1",
        "page=2",
    ] {
        let (status, answer) = crib.get(&format!("/custom-tools?{bad}")).await;
        assert_eq!(
            (status, code(&answer)),
            (400, "bad_request"),
            "{bad}: {answer}"
        );
    }
    let (status, health) = crib.get("/custom-tools/a/health?check=true").await;
    assert_eq!(
        (status, &health["healthStatus"]),
        (200, &json!("healthy")),
        "{health}"
    );
    assert!(health["lastHealthCheck"].as_u64().is_some(), "{health}");
    let (_, shown) = crib.get("/custom-tools/a").await;
    assert_eq!(shown["healthStatus"], "healthy");
    let (status, valid) = crib.post("/custom-tools/a/validate", json!({})).await;
    assert_eq!(
        (status, &valid["valid"], &valid["errors"]),
        (200, &json!(true), &json!([]))
    );
    let (status, answer) = crib
        .post("/custom-tools/a/test", json!({"inputs": {}}))
        .await;
    assert_eq!((status, code(&answer)), (400, "bad_request"), "{answer}");
    let (status, answer) = crib
        .post("/custom-tools/a/test", json!({"input": {"location": 5}}))
        .await;
    assert_eq!(
        (status, code(&answer)),
        (422, "invalid_arguments"),
        "{answer}"
    );
    assert_eq!(crib.delete("a").await, 204);
    assert_eq!(crib.delete("a").await, 404);
    assert_eq!(crib.get("/tools/a").await.0, 404);
    for (method, path) in [
        ("GET", "/custom-tools/a"),
        ("PATCH", "/custom-tools/a"),
        ("POST", "/custom-tools/a/validate"),
        ("GET", "/custom-tools/a/health?check=true"),
        ("POST", "/custom-tools/a/test"),
        ("GET", "/v1/custom-tools/a"),
    ] {
        let body = (method != "GET").then(|| json!({}));
        let (status, answer) = crib.send(method, path, body).await;
        assert_eq!(
            (status, code(&answer)),
            (404, "not_found"),
            "{method} {path}: {answer}"
        );
    }
}
