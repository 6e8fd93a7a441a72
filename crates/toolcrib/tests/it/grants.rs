//! Grants: what a tool declares beyond the default is denied until a person says yes, to this tool as it is now.

mod changes;

use serde_json::{Value, json};

use crate::support::tool::{marker, workers, write_program};
use crate::support::{TestCrib, World, eventually, shell_tool};

/// A program that asks to write, to use the network, to run others, and for a variable.
fn asking() -> Value {
    json!({
        "permissions": {"canWriteFiles": true, "canNetwork": true, "canExecuteCommands": true,
                        "allowedEnvironmentVars": ["API_TOKEN"]},
        "sandbox": {"allowedPaths": ["out"], "allowedHosts": ["api.test:443"]},
    })
}

fn world_with_program() -> World {
    let world = World::trusted();
    write_program(&world, "ask", "0", &[], asking());
    world
}

fn granted(world: &World, args: &[&str]) -> Value {
    let all = [&["grant"], args, &["--json"]].concat();
    world.run(&all).exits(0).json()
}

fn count(world: &World) -> u64 {
    granted(world, &["--list"])["count"].as_u64().unwrap()
}

async fn until(crib: &TestCrib, tool: &str, status: &str) {
    let what = format!("`{tool}` is {status}");
    eventually(&what, async || {
        crib.status_of(tool).await.as_deref() == Some(status)
    })
    .await;
}

#[test]
fn what_a_tool_declares_is_denied_until_it_is_granted() {
    let world = world_with_program();
    let list = world.run(&["list", "--json"]).exits(0).json();
    let tools = list["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "ask").unwrap();
    assert_eq!(tool["status"], "denied");
    let needs = tool["needs"].to_string();
    let out = world.project().join("out");
    for part in [
        out.to_str().unwrap(),
        "--write",
        "--net api.test:443",
        "--exec",
        "--env API_TOKEN",
    ] {
        assert!(needs.contains(part), "{part} is not in {needs}");
    }
    let call = world.run(&["call", "ask"]).exits(3);
    assert!(call.stderr.contains("toolcrib grant ask --all"), "{call:?}");

    // A part of it is not enough.
    granted(&world, &["ask", "--write", "out", "--exec", "--net"]);
    let call = world.run(&["call", "ask"]).exits(3);
    assert!(call.stderr.contains("API_TOKEN") && !call.stderr.contains("--write"));
    world.run(&["grant", "ask", "--revoke"]).exits(0);

    let said = world.run(&["grant", "ask", "--all"]).exits(0).stdout;
    assert!(
        said.contains("to write `out`") && said.contains("as it is now"),
        "{said}"
    );
    let call = world.run(&["call", "ask"]).exits(0);
    assert!(call.stdout.contains("said nothing"), "{call:?}");
    let show = world.run(&["show", "ask"]).exits(0).stdout;
    assert!(
        show.contains("granted") && show.contains(out.to_str().unwrap()),
        "{show}"
    );
    // Said twice, it is granted once.
    granted(&world, &["ask", "--all"]);
    assert_eq!(count(&world), 1);

    world.run(&["grant", "ask", "--revoke"]).exits(0);
    world.run(&["call", "ask"]).exits(3);
    assert_eq!(count(&world), 0);
}

#[test]
fn a_tool_of_the_same_name_elsewhere_has_nothing_of_it() {
    let world = world_with_program();
    granted(&world, &["ask", "--all", "--follow"]);
    let other = world.root().join("other");
    let tools = other.join(".toolcrib/tools");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::rename(world.tools_folder().join("ask"), tools.join("ask")).unwrap();
    let other = other.to_str().unwrap();
    world.run(&["trust", "--no-grants", other]).exits(0);
    world.run(&["--project", other, "call", "ask"]).exits(3);
    // Here it is gone, and its grant can be found all the same.
    let gone = world.run(&["grant", "ask", "--revoke"]).exits(3);
    let id = granted(&world, &["--list", "ask"])["grants"][0]["id"].clone();
    let id = id.as_str().unwrap();
    assert!(gone.stderr.contains(id), "{gone:?}");
    world.run(&["grant", id, "--revoke"]).exits(0);
    assert_eq!(count(&world), 0);
}

#[test]
fn trust_grants_what_is_declared_and_says_so() {
    let world = World::new();
    write_program(&world, "ask", "0", &[], asking());
    let early = world.run(&["grant", "ask", "--all"]).exits(3);
    assert!(early.stderr.contains("toolcrib trust"), "{early:?}");
    let said = world.run(&["trust", "--no-grants"]).exits(0).stdout;
    assert!(said.contains("toolcrib grant ask --all"), "{said}");
    world.run(&["call", "ask"]).exits(3);
    let said = world.run(&["trust"]).exits(0).stdout;
    for part in ["ask", "asks to write `out`", "granted, as it is now"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    world.run(&["call", "ask"]).exits(0);
    let json = world.run(&["trust", "--json"]).exits(0).json();
    assert_eq!(json["tools"][0]["status"], "active", "{json}");
    assert_eq!(json["grants"][0]["tool"], "ask", "{json}");
    assert_eq!(count(&world), 1);
    world.run(&["trust", "--revoke"]).exits(0);
    assert_eq!(count(&world), 0);
    world.run(&["trust", "--no-grants"]).exits(0);
    world.run(&["call", "ask"]).exits(3);
}

#[test]
fn a_grant_is_checked_before_it_is_kept() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("plain", "echo hi", json!({})));
    for args in [
        &["grant", "plain"][..],
        &["grant", "plain", "--all"],
        &["grant", "plain", "--net", "http://a.test/"],
        &["grant", "plain", "--env", "A=B"],
        &["grant", "plain", "--memory", "512"],
        &["grant", "plain", "--memory", "2000000"],
        &["grant", "plain", "--memory", "2G"],
        &["grant", "plain", "--cpu", "100"],
        &["grant", "plain", "--cpu", "100001"],
        &["grant", "plain", "--cpu", "two"],
        &["grant", "plain", "--install", "--revoke"],
        &["grant", "git-status", "--exec"],
        &["grant"],
        &["grant", "plain", "--all", "--revoke"],
    ] {
        let ran = world.run(args).exits(2);
        assert!(!ran.stderr.is_empty(), "{args:?}");
    }
    world.run(&["grant", "nobody", "--exec"]).exits(3);
    assert_eq!(count(&world), 0);
    // More than it declared may be granted; links are followed, and `..` too.
    std::os::unix::fs::symlink(world.home(), world.project().join("link")).unwrap();
    let grant = granted(
        &world,
        &[
            "plain",
            "--read",
            "link/x",
            "--write",
            "src/../out",
            "--net",
        ],
    );
    assert_eq!(grant["read"], json!([world.home().join("x")]));
    assert_eq!(grant["write"], json!([world.project().join("out")]));
    assert_eq!(grant["net"], true);
    let list = world.run(&["grant", "--list"]).exits(0).stdout;
    assert!(list.contains("loopback included"), "{list}");
    let show = world.run(&["show", "plain", "--json"]).exits(0).json();
    assert_eq!(show["granted"]["net"], true, "{show}");
}

#[test]
fn memory_processors_and_packages_are_granted() {
    let world = World::new();
    let shell = |name: &str, sandbox: Value| {
        json!({"name": name, "description": "Says hi", "inputSchema": {"type": "object"},
               "handler": {"type": "shell", "command": "echo hi"}, "sandbox": sandbox})
    };
    let tools = [
        shell("small", json!({"maxMemoryMB": 64, "maxCpuPercent": 50})),
        shell("large", json!({"maxMemoryMB": 2048, "maxCpuPercent": 200})),
    ];
    let file = json!({"name": "test", "tools": tools}).to_string();
    world.write_tool("sizes.json", file);
    let said = world.run(&["trust", "--no-grants"]).exits(0).stdout;
    for words in ["to use 2048 MB of memory", "to use 2 processors (200 %)"] {
        assert!(said.contains(words), "{said}");
    }
    world.run(&["call", "small"]).exits(0);
    granted(&world, &["large", "--memory", "1024", "--cpu", "200"]);
    let call = world.run(&["call", "large"]).exits(3);
    assert!(call.stderr.contains("`--memory 2048`"), "{call:?}");
    assert!(!call.stderr.contains("--cpu"), "{call:?}");
    let grant = granted(&world, &["large", "--all", "--install"]);
    assert_eq!(grant["memoryMb"], 2048, "{grant}");
    assert_eq!(
        (&grant["cpuPercent"], &grant["install"]),
        (&json!(200), &json!(true))
    );
    world.run(&["call", "large"]).exits(0);
    let list = world.run(&["grant", "--list"]).exits(0).stdout;
    let show = world.run(&["show", "large"]).exits(0).stdout;
    for words in ["2048 MB", "2 processors", "to install packages"] {
        assert!(show.contains(words), "{show}");
        let first = words.split(' ').next().unwrap();
        assert!(list.contains(first), "{list}");
    }
}

#[tokio::test]
async fn a_running_crib_follows_and_starts_nothing_again() {
    let world = World::trusted();
    let (own, other) = (marker(), marker());
    write_program(&world, "ask", &own, &[], asking());
    write_program(&world, "other", &other, &[], json!({}));
    let crib = world.serve();
    assert_eq!(crib.status_of("ask").await.as_deref(), Some("denied"));
    assert_eq!(crib.output_of("other").await, "said nothing");
    let running = workers(&other);
    assert_eq!(running.len(), 1);
    let mut events = crib.events().await;
    // Past the server, as another process does it.
    world
        .run(&["grant", "ask", "--all", "--standalone"])
        .exits(0);
    assert_eq!(
        events.next("tools_changed").await["changed"],
        json!(["ask"])
    );
    assert_eq!(crib.output_of("ask").await, "said nothing");
    let asked = workers(&own);
    // Through it: the answer comes when it holds.
    world.run(&["grant", "other", "--exec"]).exits(0);
    let (_, view) = crib.get("/tools/other").await;
    assert_eq!(view["granted"]["exec"], true, "{view}");
    crib.output_of("ask").await;
    crib.output_of("other").await;
    let pids = |all: Vec<_>| -> Vec<_> {
        all.iter()
            .map(|one: &crate::support::processes::Process| one.pid)
            .collect()
    };
    assert_eq!(pids(workers(&other)), pids(running));
    assert_eq!(pids(workers(&own)), pids(asked));
    world.run(&["grant", "ask", "--revoke"]).exits(0);
    assert_eq!(crib.status_of("ask").await.as_deref(), Some("denied"));
    let (status, error) = crib.call("ask", json!({})).await;
    assert_eq!((status, &error["error"]["code"]), (403, &json!("denied")));
}

#[tokio::test]
async fn grants_are_given_and_taken_over_rest() {
    let world = world_with_program();
    let crib = world.serve();
    let (status, grant) = crib
        .post("/grants", json!({"tool": "ask", "all": true}))
        .await;
    assert_eq!(status, 201, "{grant}");
    assert_eq!(grant["net"], json!(["api.test:443"]));
    assert_eq!(
        (&grant["write"], &grant["follow"]),
        (&json!(["out"]), &json!(false))
    );
    assert_eq!(crib.output_of("ask").await, "said nothing");
    let (_, list) = crib.get("/grants?tool=ask").await;
    assert_eq!(list["grants"], json!([grant]));
    assert_eq!(crib.get("/grants?tool=other").await.1["count"], 0);
    let path = format!("/grants/{}", grant["id"].as_str().unwrap());
    assert_eq!(crib.send("DELETE", &path, None).await.0, 204);
    assert_eq!(crib.send("DELETE", &path, None).await.0, 404);
    assert_eq!(crib.call("ask", json!({})).await.0, 403);
    for (body, code) in [
        (json!({}), 400),
        (json!([]), 400),
        (json!({"tool": "ask"}), 400),
        (json!({"tool": "ask", "net": false}), 400),
        (json!({"tool": "ask", "net": ["a b"]}), 400),
        (json!({"tool": "ask", "write": ["a\0b"]}), 400),
        (json!({"tool": "ask", "unknown": true}), 400),
        (json!({"tool": "nobody", "all": true}), 404),
    ] {
        let (status, answer) = crib.post("/grants", body.clone()).await;
        assert_eq!(status, code, "{body}: {answer}");
    }
}

#[tokio::test]
async fn what_is_registered_is_granted_with_it_and_ends_with_it() {
    let world = World::trusted();
    let script = world.weather();
    let crib = world.serve();
    let body = json!({"name": "w", "command": "python3", "args": [script],
                      "permissions": {"canWriteFiles": true, "canNetwork": true}});
    let mut events = crib.events().await;
    crib.register(body.clone()).await;
    assert_eq!(events.next("tools_changed").await["added"], json!(["w"]));
    let call = async || crib.call("w", json!({"location": "x"})).await.0;
    assert_eq!(call().await, 200);
    let (_, list) = crib.get("/grants?tool=w").await;
    assert_eq!(list["grants"][0]["origin"], "registered");
    assert_eq!(list["grants"][0]["write"], json!(["."]));
    // Who fails to register it again takes nothing from it.
    assert_eq!(crib.post("/custom-tools", body).await.0, 409);
    assert_eq!(call().await, 200);
    // It is for what the files held then.
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, format!("{text}\n# changed\n")).unwrap();
    until(&crib, "w", "denied").await;
    world.run(&["grant", "w", "--all", "--follow"]).exits(0);
    assert_eq!(call().await, 200);
    // A change that is looked at is a yes, too.
    let (status, view) = crib
        .patch("w", json!({"permissions": {"canExecuteCommands": true}}))
        .await;
    assert_eq!(status, 200, "{view}");
    assert_eq!(call().await, 200);
    assert_eq!(crib.delete("w").await, 204);
    assert_eq!(count(&world), 0);
}

#[tokio::test]
async fn without_the_store_nothing_beyond_the_default_runs() {
    let mut world = World::new();
    // What was known a moment ago would count for a while.
    world.vars.push(("TOOLCRIB_STORE_GRACE", "0".to_owned()));
    let global = world.global_folder();
    std::fs::create_dir_all(&global).unwrap();
    let mut tool: Value = serde_json::from_str(&shell_tool("say", "echo hi", json!({}))).unwrap();
    tool["tools"][0]["permissions"] = json!({"canNetwork": true});
    std::fs::write(global.join("a.json"), tool.to_string()).unwrap();
    std::fs::write(
        global.join("b.json"),
        shell_tool("plain", "echo hi", json!({})),
    )
    .unwrap();
    granted(&world, &["say", "--all"]);
    let crib = world.serve();
    assert_eq!(crib.output_of("say").await, "hi");
    let store = world.home().join(".local/share/toolcrib/toolcrib.db");
    let away = store.with_extension("away");
    std::fs::rename(&store, &away).unwrap();
    std::fs::create_dir(&store).unwrap();
    until(&crib, "say", "denied").await;
    let (_, error) = crib.call("say", json!({})).await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("not known") && message.contains("the store"),
        "{message}"
    );
    assert_eq!(crib.output_of("plain").await, "hi");
    assert_eq!(
        crib.post("/grants", json!({"tool": "say", "all": true}))
            .await
            .0,
        503
    );
    std::fs::remove_dir(&store).unwrap();
    std::fs::rename(&away, &store).unwrap();
    until(&crib, "say", "active").await;
}

#[test]
fn a_folder_outside_the_project_is_read_once_it_is_granted() {
    let world = World::trusted();
    std::fs::create_dir(world.root().join("notes")).unwrap();
    std::fs::write(world.root().join("notes/a.txt"), "a note").unwrap();
    std::os::unix::fs::symlink(world.root().join("notes"), world.project().join("link")).unwrap();
    let tool = |name: &str, base: &str| {
        json!({"name": name, "description": "Reads notes",
               "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
               "handler": {"type": "file-read", "basePath": base}})
    };
    let tools = [tool("up", "../notes"), tool("link", "link")];
    world.write_tool(
        "a.json",
        json!({"name": "notes", "tools": tools}).to_string(),
    );
    for name in ["up", "link"] {
        let call = || world.run(&["call", name, "path=a.txt"]);
        call().exits(3);
        granted(&world, &[name, "--read", "../notes"]);
        assert_eq!(call().exits(0).stdout.trim(), "a note");
    }
    // What a link leads to is what was granted, and not where it leads later.
    std::fs::remove_file(world.project().join("link")).unwrap();
    std::os::unix::fs::symlink(world.home(), world.project().join("link")).unwrap();
    world.run(&["call", "link", "path=a.txt"]).exits(3);
    world.run(&["call", "up", "path=a.txt"]).exits(0);
}
