//! The first seed's example plugin file, unchanged, and the seed's own verification criteria.

use crate::support::plugin::{self, seed_example};
use crate::support::server::{Server, response};
use crate::support::{TestCrib, World, shell_tool};
use serde_json::{Value, json};

/// A world in which the user has the seed's example among their own tools; the project is trusted by nobody.
fn world_with_the_example() -> World {
    let world = World::new();
    std::fs::create_dir_all(world.global_folder()).unwrap();
    let file = world.global_folder().join("my-tools.json");
    std::fs::write(file, seed_example()).unwrap();
    world
}

async fn reload(crib: &TestCrib) -> Value {
    let (status, body) = crib.post("/tools/reload", json!({})).await;
    assert_eq!(status, 200, "{body}");
    body
}

#[tokio::test]
async fn the_example_loads_as_it_stands_and_loses_nothing() {
    let world = world_with_the_example();
    let listed = world.run(&["list", "--json"]).exits(0).json();
    assert_eq!(listed["errors"], json!([]));
    let example: Value = serde_json::from_str(&seed_example()).unwrap();
    let crib = world.serve();
    for (index, timeout) in [(0, 10_000), (1, 5_000)] {
        let written = &example["tools"][index];
        let name = written["name"].as_str().unwrap();
        let (status, shown) = crib.get(&format!("/tools/{name}")).await;
        assert_eq!(status, 200, "{shown}");
        assert_eq!(shown["description"], written["description"]);
        assert_eq!(shown["inputSchema"], written["inputSchema"]);
        assert_eq!(shown["pluginName"], "my-tools");
        assert_eq!(shown["version"], "1.0.0");
        assert_eq!(shown["timeoutMs"], timeout);
        assert_eq!(shown["status"], "active");
    }
}

#[tokio::test]
async fn list_todos_finds_todos_and_finding_none_is_no_failure() {
    let world = world_with_the_example();
    world.write("src/a.rs", "fn a() {}\n// TODO: one\n");
    world.write("src/b.rs", "// nothing\n");
    let crib = world.serve();
    let found = crib
        .output("list-todos", json!({"pattern": "TODO", "directory": "src"}))
        .await;
    assert_eq!(found, "src/a.rs:2:// TODO: one\n");
    let (status, none) = crib
        .call(
            "list-todos",
            json!({"pattern": "FIXME", "directory": "src"}),
        )
        .await;
    assert_eq!((status, &none["isError"]), (200, &json!(false)), "{none}");
    assert_eq!(none["output"], "");
    assert_eq!(none["metadata"]["exitCode"], 1);
}

#[tokio::test]
async fn list_todos_names_the_parameter_it_cant_do_without() {
    let world = world_with_the_example();
    let crib = world.serve();
    for arguments in [json!({"directory": "."}), json!({})] {
        let said = crib
            .refused("list-todos", arguments, 422, "invalid_arguments")
            .await;
        assert!(said.contains("`pattern`"), "{said}");
    }
}

#[tokio::test]
async fn list_todos_without_a_directory_searches_the_project() {
    let world = world_with_the_example();
    world.write("src/a.rs", "// TODO: one\n");
    let crib = world.serve();
    let found = crib
        .output("list-todos", json!({"pattern": "TODO: o"}))
        .await;
    assert_eq!(found, "src/a.rs:1:// TODO: one\n");
}

#[tokio::test]
async fn check_api_asks_for_health_and_tells_failure() {
    let world = world_with_the_example();
    let server = Server::start(|request| match request {
        "GET /health HTTP/1.1" => response("200 OK", &[], "fine"),
        "GET /sick/health HTTP/1.1" => response("503 Service Unavailable", &[], "on fire"),
        _ => response("404 Not Found", &[], "what?"),
    });
    let crib = world.serve();
    assert_eq!(
        crib.output("check-api", json!({"url": server.url()})).await,
        "fine"
    );
    // A slash at the end of the base makes no second one.
    assert_eq!(
        crib.output("check-api", json!({"url": format!("{}/", server.url())}))
            .await,
        "fine"
    );
    for (path, status, output) in [("/sick", 503, "on fire"), ("/other", 404, "what?")] {
        let url = format!("{}{path}", server.url());
        let (answered, outcome) = crib.call("check-api", json!({"url": url})).await;
        assert_eq!(answered, 200, "{outcome}");
        assert_eq!(outcome["isError"], true);
        assert_eq!(outcome["metadata"]["status"], status);
        assert_eq!(outcome["output"], output);
    }
    assert_eq!(server.asked().len(), 4);
    let said = crib
        .refused("check-api", json!({}), 422, "invalid_arguments")
        .await;
    assert!(said.contains("url"), "{said}");
}

#[tokio::test]
async fn check_api_says_when_nobody_answers() {
    let world = world_with_the_example();
    let crib = world.serve();
    // Bound and dropped: nobody listens there now.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    let url = format!("http://127.0.0.1:{port}");
    let said = crib
        .refused("check-api", json!({"url": url}), 503, "unavailable")
        .await;
    assert!(said.contains("could not be reached"), "{said}");
}

#[tokio::test]
async fn criterion_2_plugin_files_load_from_the_global_folder() {
    let world = world_with_the_example();
    let crib = world.serve();
    let file = world.home().join(".config/toolcrib/tools/my-tools.json");
    for name in ["list-todos", "check-api"] {
        let (status, shown) = crib.get(&format!("/tools/{name}")).await;
        assert_eq!(status, 200, "{shown}");
        assert_eq!(shown["scope"], "global");
        assert_eq!(shown["file"], json!(file));
    }
}

#[tokio::test]
async fn criterion_3_the_list_holds_both_kinds_with_labels_and_counts() {
    let world = world_with_the_example();
    let crib = world.serve();
    let (status, list) = crib.get("/tools").await;
    assert_eq!(status, 200);
    let of = |source: &str| -> Vec<&str> {
        let tools = list["tools"].as_array().unwrap().iter();
        let labelled = tools.filter(|tool| tool["source"] == source);
        labelled
            .map(|tool| tool["name"].as_str().unwrap())
            .collect()
    };
    assert_eq!(
        of("builtin"),
        [
            "file-reader",
            "git-diff-summary",
            "git-status",
            "read-file",
            "read-output",
            "search-code",
            "todo-write",
            "workspace-info"
        ]
    );
    assert_eq!(of("plugin"), ["check-api", "list-todos"]);
    assert_eq!(
        list["counts"],
        json!({"total": 10, "builtin": 8, "plugin": 2, "executable": 0, "python": 0, "registered": 0, "typescript": 0})
    );
    for tool in list["tools"].as_array().unwrap() {
        let collection = tool.get("pluginName").and_then(Value::as_str);
        let expected = (tool["source"] == "plugin").then_some("my-tools");
        assert_eq!(collection, expected, "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
}

#[tokio::test]
async fn criterion_5_injected_shell_characters_do_not_run() {
    let world = world_with_the_example();
    world.write("src/a.txt", "nothing to see\n");
    let canary = world.project().join("canary");
    let crib = world.serve();
    let touch = format!("touch {}", canary.display());
    for injected in [
        format!("; {touch}"),
        format!("| {touch}"),
        format!("&& {touch}"),
        format!("`{touch}`"),
        format!("$({touch})"),
        format!("'; {touch}; '"),
        format!("x\n{touch}"),
        format!("|| {touch} #"),
    ] {
        let arguments = json!({"pattern": injected, "directory": "src"});
        assert_eq!(crib.output("list-todos", arguments).await, "", "{injected}");
        let arguments = json!({"pattern": "nothing", "directory": injected});
        let (status, outcome) = crib.call("list-todos", arguments).await;
        assert_eq!(status, 200, "{outcome}");
        assert_eq!(outcome["output"], "", "{injected}");
        assert!(!canary.exists(), "{injected}");
    }
}

#[tokio::test]
async fn criterion_6_a_reload_takes_new_changed_and_removed_files_without_a_restart() {
    let world = world_with_the_example();
    world.run(&["trust"]).exits(0);
    let crib = world.serve();
    let pid = crib.pid();
    let before = crib.names().await;
    let file = world.write_tool("fresh.json", shell_tool("fresh", "echo one", json!({})));
    let reloaded = reload(&crib).await;
    assert_eq!(reloaded["success"], true);
    assert_eq!(reloaded["errors"], json!([]));
    assert_eq!(reloaded["toolCount"], before.len() + 1);
    assert_eq!(crib.output("fresh", json!({})).await, "one\n");

    // The same length, and written at once: only the text tells the difference.
    world.write_tool("fresh.json", shell_tool("fresh", "echo two", json!({})));
    assert_eq!(reload(&crib).await["toolCount"], before.len() + 1);
    assert_eq!(crib.output("fresh", json!({})).await, "two\n");

    std::fs::remove_file(file).unwrap();
    assert_eq!(reload(&crib).await["toolCount"], before.len());
    assert_eq!(crib.names().await, before);
    crib.refused("fresh", json!({}), 404, "unknown_tool").await;
    assert_eq!(crib.pid(), pid);
}

#[tokio::test]
async fn criterion_7_invalid_files_are_skipped_and_told_in_the_reloads_answer() {
    let world = world_with_the_example();
    let crib = world.serve();
    let broken = world.global_folder().join("broken.json");
    let half = world.global_folder().join("half.json");
    std::fs::write(&broken, "{\"name\": \"x\",\n  \"tools\": [}").unwrap();
    let good = plugin::shell("half-good", "echo good", json!({}));
    let bad =
        json!({"name": "half-bad", "description": "No handler", "inputSchema": {"type": "object"}});
    std::fs::write(&half, plugin::file(&[bad, good])).unwrap();
    let reloaded = reload(&crib).await;
    assert_eq!(reloaded["success"], false);
    let errors = reloaded["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{reloaded}");
    let told = |file: &std::path::Path| errors.iter().find(|e| e["file"] == json!(file)).unwrap();
    assert_eq!(told(&broken)["errorType"], "SyntaxError");
    assert_eq!(
        (&told(&broken)["line"], &told(&broken)["column"]),
        (&json!(2), &json!(13))
    );
    assert_eq!(told(&half)["toolName"], "half-bad");
    assert!(
        told(&half)["message"]
            .as_str()
            .unwrap()
            .contains("`tools[0].handler` is missing")
    );
    assert_eq!(reloaded["toolCount"], 11);
    assert_eq!(crib.output("half-good", json!({})).await, "good\n");
    crib.output("list-todos", json!({"pattern": "x"})).await;

    std::fs::remove_file(&broken).unwrap();
    std::fs::remove_file(&half).unwrap();
    let mended = reload(&crib).await;
    assert_eq!(
        (&mended["success"], &mended["errors"]),
        (&json!(true), &json!([]))
    );
}

#[tokio::test]
async fn criterion_8_file_read_blocks_traversal() {
    let world = World::trusted();
    world.write("docs/a.md", "fine");
    world.write("secret", "secret");
    let handler = json!({"type": "file-read", "basePath": "docs"});
    let reader = plugin::tool("read-doc", json!({"path": {"type": "string"}}), handler);
    world.write_tool("docs.json", plugin::file(&[reader]));
    let crib = world.serve();
    assert_eq!(
        crib.output("read-doc", json!({"path": "a.md"})).await,
        "fine"
    );
    for path in [
        "../secret",
        "../../etc/passwd",
        "/etc/passwd",
        "./../secret",
    ] {
        crib.refused("read-doc", json!({"path": path}), 403, "denied")
            .await;
    }
}
