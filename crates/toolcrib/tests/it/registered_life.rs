//! The life of registered tools: who has the name, what fails and is mended, what is never shown, what survives.

use serde_json::{Value, json};

use crate::support::registered::least;
use crate::support::{PATIENCE, TestCrib, World, eventually, shell_tool};

const SECRET: &str = "hunter2-never-shown";

fn message(body: &Value) -> String {
    format!("{} {}", body["error"]["message"], body["error"]["hint"])
}

async fn status_of(crib: &TestCrib, name: &str) -> String {
    let (status, view) = crib.get(&format!("/custom-tools/{name}")).await;
    assert_eq!(status, 200, "{view}");
    view["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_file_takes_the_name_and_the_registration_is_told() {
    let world = World::trusted();
    world.weather();
    let crib = world.serve();
    crib.register(least("weather")).await;
    let file = world.write_tool("w.json", shell_tool("weather", "echo mine", json!({})));
    eventually("the file has the name", || async {
        crib.get("/tools/weather").await.1["source"] == "plugin"
    })
    .await;
    let (_, problems) = crib.get("/tools/errors").await;
    let clash = &problems["errors"][0];
    assert_eq!(
        (&clash["errorType"], &clash["source"]),
        (&json!("NameClash"), &json!("registered"))
    );
    let (status, refused) = crib.post("/custom-tools/weather/test", json!({})).await;
    assert_eq!(status, 409, "{refused}");
    std::fs::remove_file(file).unwrap();
    eventually("the registration has it back", || async {
        crib.get("/tools/weather").await.1["source"] == "registered"
    })
    .await;
}

#[tokio::test]
async fn a_program_that_starts_no_more_leaves_the_catalog_until_it_is_mended() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let mut body = least("weather");
    body["retryDelayMs"] = json!(0);
    crib.register(body).await;
    // Crashes of calls alone take nothing away.
    for _ in 0..3 {
        crib.refused("weather", json!({"location": "crash"}), 502, "crashed")
            .await;
    }
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x"
    );
    let broken = world.write("weather/broken", "");
    crib.refused("weather", json!({"location": "crash"}), 502, "crashed")
        .await;
    eventually("it leaves the catalog", || async {
        crib.call("weather", json!({"location": "x"})).await.0 == 404
    })
    .await;
    let (_, view) = crib.get("/custom-tools/weather").await;
    assert_eq!(
        (&view["status"], &view["healthStatus"]),
        (&json!("error"), &json!("unhealthy")),
        "{view}"
    );
    assert!(
        view["errorMessage"]
            .as_str()
            .unwrap()
            .contains("exit code 3"),
        "{view}"
    );
    let (_, listed) = crib.get("/custom-tools?status=error").await;
    assert_eq!(listed["total"], 1);
    let (_, checked) = crib.post("/custom-tools/weather/validate", json!({})).await;
    assert_eq!(checked["valid"], false, "{checked}");
    assert_eq!(status_of(&crib, "weather").await, "error");
    std::fs::remove_file(broken).unwrap();
    let (_, checked) = crib.post("/custom-tools/weather/validate", json!({})).await;
    assert_eq!(checked["valid"], true, "{checked}");
    let (_, view) = crib.get("/custom-tools/weather").await;
    assert_eq!(
        (&view["status"], view.get("errorMessage")),
        (&json!("active"), None),
        "{view}"
    );
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x"
    );
}

#[tokio::test]
async fn values_of_variables_are_shown_nowhere() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let mut events = crib.events().await;
    let mut body = least("weather");
    body["env"] = json!({"API_KEY": SECRET, "OTHER": "long enough"});
    let mut seen = vec![crib.register(body.clone()).await];
    let mut broken = body.clone();
    broken["name"] = json!("broken");
    broken["args"] = json!(["./weather/tool.py", "crash"]);
    let (status, refused) = crib.post("/custom-tools", broken).await;
    assert_eq!(status, 400);
    assert!(message(&refused).contains("not with ***"), "{refused}");
    seen.push(refused);
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x with a key"
    );
    seen.push(crib.call("weather", json!({"location": "crash"})).await.1);
    let health = crib.get("/custom-tools/weather/health?check=true").await.1;
    assert_eq!(health["message"], "fine with ***");
    seen.push(health);
    for path in [
        "/custom-tools",
        "/custom-tools/weather",
        "/tools",
        "/tools/weather",
        "/tools/errors",
        "/health",
    ] {
        seen.push(crib.get(path).await.1);
    }
    seen.push(
        crib.post("/custom-tools/weather/validate", json!({}))
            .await
            .1,
    );
    // What was hidden goes back as it came; what is not named goes.
    let (status, kept) = crib
        .patch("weather", json!({"env": {"API_KEY": "***"}}))
        .await;
    assert_eq!(
        (status, &kept["env"]),
        (200, &json!({"API_KEY": "***"})),
        "{kept}"
    );
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x with a key"
    );
    let (status, refused) = crib.patch("weather", json!({"env": {"NEW": "***"}})).await;
    assert_eq!(status, 400, "{refused}");
    let (_, gone) = crib.patch("weather", json!({"env": null})).await;
    assert_eq!(gone["env"], json!({}));
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x"
    );
    seen.push(kept);
    seen.push(events.next("worker.exit").await);
    let seen = serde_json::to_string(&seen).unwrap();
    assert!(seen.contains("***") && !seen.contains(SECRET), "{seen}");
    for args in [
        vec!["list"],
        vec!["show", "weather"],
        vec!["logs", "weather"],
        vec!["errors"],
    ] {
        let ran = world.run(&args);
        assert!(!format!("{ran:?}").contains(SECRET), "{ran:?}");
    }
    assert!(
        world
            .run(&["logs", "weather"])
            .stdout
            .contains("starting with ***")
    );
    assert!(!crib.log().contains(SECRET), "the server's log");
}

#[tokio::test]
async fn an_edited_program_is_the_next_that_runs() {
    let world = World::new();
    let script = world.weather();
    let crib = world.serve();
    crib.register(least("weather")).await;
    assert_eq!(
        crib.output("weather", json!({"location": "x"})).await,
        "sunny in x"
    );
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, text.replace("sunny in", "rainy in")).unwrap();
    eventually("the new text runs", || async {
        crib.output("weather", json!({"location": "x"})).await == "rainy in x"
    })
    .await;
}

#[tokio::test]
async fn turned_off_there_are_no_programs() {
    let world = World::trusted();
    let script = world.weather();
    world.run(&["register", script.to_str().unwrap()]).exits(0);
    let folder = world.tools_folder().join("prog");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(&script, folder.join("main.py")).unwrap();
    let spec = json!({"name": "prog", "command": "python3", "args": ["main.py"]});
    std::fs::write(folder.join("tool.json"), spec.to_string()).unwrap();
    let crib = world.serve();
    assert_eq!(crib.status_of("prog").await.as_deref(), Some("active"));
    assert_eq!(crib.status_of("weather").await.as_deref(), Some("active"));
    let config = world.write(".toolcrib/config.toml", "custom_tools_enabled = false\n");
    eventually("both are gone", || async {
        crib.status_of("prog").await.is_none() && crib.status_of("weather").await.is_none()
    })
    .await;
    let (status, refused) = crib.post("/custom-tools", least("other")).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &json!("denied")),
        "{refused}"
    );
    std::fs::remove_file(config).unwrap();
    eventually("both are back", || async {
        crib.status_of("prog").await.is_some() && crib.status_of("weather").await.is_some()
    })
    .await;
    let mut off = world.command(&["list", "--json", "--standalone"]);
    off.env("TOOLCRIB_CUSTOM_TOOLS_ENABLED", "false");
    let counts = world.finish(off).json()["counts"].take();
    assert_eq!(
        (counts.get("executable"), counts.get("registered")),
        (Some(&json!(0)), Some(&json!(0))),
        "{counts}"
    );
}

#[tokio::test]
async fn a_registration_that_was_answered_survives_a_kill() {
    let world = World::new();
    world.weather();
    let mut crib = world.serve();
    for round in 0..5 {
        let name = format!("tool{round}");
        crib.register(least(&name)).await;
        crib.kill();
        crib = world.serve();
        assert_eq!(crib.status_of(&name).await.as_deref(), Some("active"));
        crib.patch(&name, json!({"description": format!("Round {round}")}))
            .await;
        crib.kill();
        crib = world.serve();
        let (_, view) = crib.get(&format!("/custom-tools/{name}")).await;
        assert_eq!(view["description"], format!("Round {round}"));
        if round % 2 == 0 {
            assert_eq!(crib.delete(&name).await, 204);
            crib.kill();
            crib = world.serve();
            assert_eq!(crib.get(&format!("/custom-tools/{name}")).await.0, 404);
        }
    }
    let (_, left) = crib.get("/custom-tools").await;
    assert_eq!(left["total"], 2);
}

#[tokio::test]
async fn the_slow_and_the_silent_are_refused_in_time() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let mut body = least("weather");
    body["args"] = json!(["./weather/tool.py", "silent"]);
    // A busy machine gives it more time, and an end all the same.
    let refused = tokio::time::timeout(4 * PATIENCE, crib.post("/custom-tools", body)).await;
    let (status, refused) = refused.unwrap();
    assert_eq!(status, 400, "{refused}");
    assert!(
        message(&refused).contains("did not answer `initialize`"),
        "{refused}"
    );
}
