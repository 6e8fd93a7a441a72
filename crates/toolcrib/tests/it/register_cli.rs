//! `toolcrib register`, `validate` and `unregister`, alone and beside a crib that serves.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::World;
use crate::support::mcp::{Piped, names, request};

const SOON: Duration = Duration::from_secs(1);

#[test]
fn register_validate_and_unregister_without_a_server() {
    let world = World::new();
    let script = world.weather();
    let made = world
        .run(&[
            "register",
            "weather/tool.py",
            "--tag",
            "sky",
            "--timeout-ms",
            "5000",
            "--pool-size",
            "2",
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(made["name"], "weather", "as the program calls itself");
    assert_eq!(made["command"], "python3", "by its suffix");
    assert_eq!(made["args"], json!([script]));
    assert_eq!(
        (&made["tags"], &made["timeoutMs"], &made["poolSize"]),
        (&json!(["sky"]), &json!(5000), &json!(2))
    );
    assert_eq!(made["status"], "active");
    let called = world.run(&["call", "weather", "location=Rome"]).exits(0);
    assert_eq!(called.stdout, "sunny in Rome\n");
    let health = world.run(&["health", "--json"]).exits(0).json();
    let health = health.as_array().unwrap();
    let weather = health.iter().find(|one| one["name"] == "weather").unwrap();
    assert_eq!(weather["healthStatus"], "healthy");
    let valid = world
        .run(&["validate", "weather", "--json"])
        .exits(0)
        .json();
    assert_eq!(valid, json!({"valid": true, "errors": [], "warnings": []}));
    let again = world.run(&["register", "weather/tool.py"]).exits(3);
    assert!(
        again.stderr.contains("taken by a registered tool"),
        "{again:?}"
    );
    world.write("weather/broken", "");
    let ran = world.run(&["validate", "weather"]).exits(1);
    assert!(
        ran.stdout.contains("not valid") && ran.stdout.contains("exit code 3"),
        "{ran:?}"
    );
    world.run(&["unregister", "weather"]).exits(0);
    world.run(&["unregister", "weather"]).exits(3);
    world.run(&["validate", "weather"]).exits(3);
    world.run(&["call", "weather", "location=x"]).exits(3);
}

#[test]
fn every_way_to_name_a_program() {
    let world = World::new();
    let script = world.weather();
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = world.command(&[
        "register",
        "--name",
        "rel",
        "--",
        "python3",
        "-u",
        "../project/weather/tool.py",
    ]);
    command.current_dir(&elsewhere);
    world.finish(command).exits(0);
    // From any folder and in any project.
    let mut call = world.command(&["call", "rel", "location=x"]);
    call.current_dir("/");
    assert_eq!(world.finish(call).exits(0).stdout, "sunny in x\n");
    let shebang = format!(
        "#!/usr/bin/env python3\n{}",
        std::fs::read_to_string(&script).unwrap()
    );
    world.write("plain", shebang);
    let made = world
        .run(&[
            "register",
            "plain",
            "--name",
            "plain",
            "--env",
            "API_KEY=abcdef",
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(
        (&made["command"], &made["env"]),
        (&json!("python3"), &json!({"API_KEY": "***"}))
    );
    assert_eq!(made["warnings"].as_array().unwrap().len(), 1);
    let kept = world
        .run(&[
            "register",
            "plain",
            "--no-validate",
            "--name",
            "later",
            "--json",
        ])
        .exits(0)
        .json();
    assert_eq!(kept["status"], "inactive");
    world.run(&["call", "later", "location=x"]).exits(3);
    let active = world
        .run(&["validate", "later", "--activate", "--json"])
        .exits(0)
        .json();
    assert_eq!(active["status"], "active");
    world.run(&["call", "later", "location=x"]).exits(0);
    for (args, exit) in [
        (vec!["register"], 2),
        (vec!["register", "none.py"], 2),
        (vec!["register", "weather"], 2),
        (vec!["register", "plain", "--env", "NOVALUE"], 2),
        (vec!["register", "plain", "--name", "a b"], 2),
        (vec!["register", "--no-validate", "--", "python3"], 2),
        (vec!["register", "--", "no-such-program-anywhere"], 2),
    ] {
        let ran = world.run(&args).exits(exit);
        assert!(
            !ran.stderr.is_empty() && !ran.stderr.contains("NOVALUE"),
            "{ran:?}"
        );
    }
}

#[tokio::test]
async fn with_a_server_the_change_is_there_at_once() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let mut events = crib.events().await;
    world.run(&["register", "weather/tool.py"]).exits(0);
    assert_eq!(crib.status_of("weather").await.as_deref(), Some("active"));
    let changed = events.next("tools_changed").await;
    assert_eq!(changed["added"], json!(["weather"]));
    world.run(&["validate", "weather"]).exits(0);
    world.run(&["unregister", "weather"]).exits(0);
    assert_eq!(crib.status_of("weather").await, None);
}

/// Another process writes to the same store: the crib and its agents hear of it within a second.
#[tokio::test]
async fn what_another_process_registers_reaches_agents_within_a_second() {
    let world = World::new();
    world.weather();
    let crib = world.serve();
    let mut agent = Piped::greeted(world.command(&["mcp"]));
    let listed = agent.ask(&request(1, "tools/list", json!({})));
    assert!(!names(&listed).contains(&"weather"));
    let mut slowest = Duration::ZERO;
    for round in 0..5 {
        world
            .run(&["register", "weather/tool.py", "--standalone"])
            .exits(0);
        let begun = Instant::now();
        agent.notified("notifications/tools/list_changed");
        slowest = slowest.max(begun.elapsed());
        let listed = agent.ask(&request(10 + round, "tools/list", json!({})));
        assert!(names(&listed).contains(&"weather"), "{listed}");
        assert_eq!(crib.status_of("weather").await.as_deref(), Some("active"));
        world
            .run(&["unregister", "weather", "--standalone"])
            .exits(0);
        let begun = Instant::now();
        agent.notified("notifications/tools/list_changed");
        slowest = slowest.max(begun.elapsed());
        assert_eq!(crib.status_of("weather").await, None);
    }
    assert!(slowest < SOON, "{slowest:?}");
}

/// An agent that runs alone, without a server, hears of it too.
#[test]
fn an_agent_that_runs_alone_hears_of_it() {
    let world = World::new();
    world.weather();
    let mut agent = Piped::greeted(world.command(&["mcp"]));
    agent.ask(&request(1, "tools/list", json!({})));
    world.run(&["register", "weather/tool.py"]).exits(0);
    agent.notified("notifications/tools/list_changed");
    let listed = agent.ask(&request(2, "tools/list", json!({})));
    assert!(names(&listed).contains(&"weather"), "{listed}");
}
