//! How tools are doing: told at once from what is known, asked when somebody wants that, and for every kind of tool.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::tool::{marker, write_program};
use crate::support::{World, eventually, shell_tool};

#[tokio::test]
async fn a_busy_tool_is_told_of_at_once_and_a_good_call_makes_it_healthy() {
    let world = World::trusted();
    write_program(&world, "echo", &marker(), &[], json!({}));
    let crib = world.serve();
    let health = async || crib.get("/tools/echo/health").await.1;
    let before = health().await;
    assert_eq!(before["healthStatus"], "unknown", "{before}");
    assert_eq!(before.get("lastHealthCheck"), None);
    crib.call("echo", json!({})).await;
    assert_eq!(health().await["healthStatus"], "healthy");
    let (_, asked) = crib.get("/tools/echo/health?check=true").await;
    let checked = asked["lastHealthCheck"].as_u64().unwrap();

    // Its only worker is busy, and whoever asks it would wait.
    let runs = world.project().join("runs");
    let url = format!("{}/api/tools/echo/call", crib.url);
    let arguments = json!({"arguments": {"sleep": 600, "touch": runs}});
    let call = tokio::spawn(crib.client.post(url).json(&arguments).send());
    eventually("the call runs", async || runs.exists()).await;
    let begun = Instant::now();
    let known = health().await;
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(known["healthStatus"], "healthy", "{known}");
    assert!(
        known["lastHealthCheck"].as_u64().unwrap() >= checked,
        "{known}"
    );
    call.abort();
    let (status, refused) = crib.get("/tools/echo/health?chek=true").await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("bad_request"))
    );
}

#[test]
fn the_command_covers_every_kind_of_tool() {
    let world = World::trusted();
    let python =
        "from toolcrib import tool\n\n@tool\ndef shout() -> str:\n    \"Shout.\"\n    return 'A'\n";
    world.write_tool("shout.py", python);
    let script = "export default {description: 'Whisper', args: {}, execute: () => 'a'};\n";
    world.write_tool("whisper.js", script);
    world.write_tool("greet.json", shell_tool("greet", "true", json!({})));
    write_program(&world, "echo", &marker(), &[], json!({}));
    let all = world.run(&["health", "--json"]).exits(0).json();
    let health = |name: &str| -> Value {
        let found = all
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {all}"))["healthStatus"].clone()
    };
    for name in ["shout", "whisper", "echo"] {
        assert_eq!(health(name), "healthy", "{name}: {all}");
    }
    for name in ["greet", "git-status"] {
        assert_eq!(health(name), "unknown", "{name}: {all}");
    }
}
