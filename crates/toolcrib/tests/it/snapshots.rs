//! What people read, word for word: tables, problems, errors with their hints, `doctor`. (`docs/reference/cli.md` holds the help.)

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::plugin::{file, shell, tool};
use crate::support::registered::WEATHER;
use crate::support::snapshot::Snapshot;
use crate::support::tool::python;
use crate::support::{World, shell_tool};

/// A shell tool with further fields.
fn with(name: &str, command: &str, fields: Value) -> String {
    let mut one = shell(name, command, json!({"word": {"type": "string"}}));
    let fields = fields.as_object().unwrap().clone();
    one.as_object_mut().unwrap().extend(fields);
    file(&[one])
}

/// A tool that declares a host.
fn fetch() -> String {
    let asks = json!({"permissions": {"canNetwork": true}, "sandbox": {"allowedHosts": ["example.com:443"]}});
    with("fetch", "true", asks)
}

/// A tool with a process of its own, in a folder with its `tool.json`.
fn weather(world: &World) {
    let about = json!({
        "name": "weather", "description": "Says how the weather is", "command": python(), "args": ["tool.py"],
        "inputSchema": {"type": "object"}, "maxRetries": 0,
    });
    let folder = world.tools_folder().join("weather");
    world.write(folder.join("tool.py"), WEATHER);
    world.write(folder.join("tool.json"), about.to_string());
}

#[test]
fn tables() {
    let world = World::new();
    let word = json!({"word": {"type": "string", "description": "What it says"}});
    world.write_tool("greet.json", shell_tool("greet", "echo {{word}}", word));
    world.write_tool("fetch.json", fetch());
    weather(&world);
    let mut held = Snapshot::default();
    for args in [
        &["list"][..],
        &["trust", "--list"],
        &["trust", "--no-grants"],
        &["trust", "--list"],
        &["list"],
        &["show", "greet"],
        &["show", "fetch"],
        &["show", "weather"],
        &["errors"],
        &["grant", "--list"],
        &["grant", "fetch", "--all"],
        &[
            "grant",
            "fetch",
            "--read",
            "/usr/share/doc",
            "--memory",
            "1024",
        ],
        &["grant", "--list"],
        &["grant", "fetch", "--revoke"],
        &["token", "list"],
        &[
            "token", "create", "reader", "--scope", "read", "--agent", "default",
        ],
        &["token", "create", "other", "--expires", "30d"],
        &["token", "revoke", "other"],
        &["token", "list"],
        &["logs", "--calls"],
        &["call", "greet", "word=hello"],
        &["call", "weather", "location=Bern"],
        &["call", "gret"],
        &["logs", "--calls"],
        &["logs", "weather"],
        &["health"],
        &["health", "weather"],
        &["reload"],
        &["trust", "--revoke"],
    ] {
        held.run(&world, args);
    }
    held.holds("tables");
}

#[test]
fn problems() {
    let world = World::new();
    let http = json!({"type": "http", "url": "ftp://example.com"});
    let mut schema = shell("schema", "true", json!({}));
    schema["inputSchema"] = json!({"type": "strin"});
    let unknown = json!({"type": "shel", "command": "true"});
    for (name, text) in [
        ("comma.json", "{\"name\": \"comma\",,}".to_owned()),
        ("empty.json", String::new()),
        ("list.json", "[1, 2]".to_owned()),
        (
            "nameless.json",
            json!({"name": "x", "tools": [{"description": "x"}]}).to_string(),
        ),
        ("kind.json", file(&[tool("kind", json!({}), unknown)])),
        ("scheme.json", file(&[tool("scheme", json!({}), http)])),
        ("schema.json", file(&[schema])),
        ("piped.json", shell_tool("piped", "ls | wc", json!({}))),
        ("first.json", shell_tool("twice", "true", json!({}))),
        ("second.json", shell_tool("twice", "true", json!({}))),
        ("builtin.json", shell_tool("file-reader", "true", json!({}))),
        (
            "gone.json",
            shell_tool("gone", "no-such-program", json!({})),
        ),
        ("syntax.py", "def broken(:\n    pass\n".to_owned()),
        ("nothing.py", "x = 1\n".to_owned()),
        ("syntax.ts", "export const = 1;\n".to_owned()),
        ("plain.txt", "no tool\n".to_owned()),
    ] {
        world.write_tool(name, text);
    }
    let folder = world.tools_folder();
    world.write(
        folder.join("bare/tool.json"),
        json!({"name": "bare"}).to_string(),
    );
    world.write(folder.join("broken/tool.json"), "{");
    let missing = json!({
        "name": "missing", "description": "Runs nothing", "command": "no-such-program", "inputSchema": {"type": "object"},
    });
    world.write(folder.join("missing/tool.json"), missing.to_string());
    let mut held = Snapshot::default();
    for args in [
        &["list"][..],
        &["trust"],
        &["errors"],
        &["list", "--all"],
        &["call", "gone"],
        &["call", "missing"],
        &["health", "missing"],
        &["reload"],
    ] {
        held.run(&world, args);
    }
    held.holds("problems");
}

#[test]
fn errors() {
    let mut world = World::new();
    let greet = with("greet", "echo {{word}}", json!({}));
    world.write_tool("greet.json", greet);
    world.write_tool("fetch.json", fetch());
    world.write_tool(
        "slow.json",
        with("slow", "sleep 60", json!({"timeoutMs": 200})),
    );
    weather(&world);
    let program = "./.toolcrib/tools/weather/tool.py";
    let mut held = Snapshot::default();
    held.run(&world, &["call", "greet"]);
    world.run(&["trust", "--no-grants"]).exits(0);
    for args in [
        &["call", "gret"][..],
        &["call", "nothing-like-it"],
        &["call", "greet", r#"{"word": 3}"#],
        &["call", "greet", "{"],
        &["call", "fetch"],
        &["call", "slow"],
        &["call", "weather", "location=crash"],
        &["call", "gret", "--json"],
        &["show", "gret"],
        &["logs", "greet"],
        &["logs", "gret"],
        &["health", "greet"],
        &["grant", "gret", "--all"],
        &["grant", "greet"],
        &["grant", "greet", "--all"],
        &["grant", "greet", "--read", "no/such/path"],
        &["trust", "no/such/project"],
        &["token", "revoke", "nobody"],
        &["token", "create", "reader", "--expires", "soon"],
        &["token", "login"],
        &["unregister", "gret"],
        &["validate", "gret"],
        &["register", "no-such-file.py"],
        &["register", "--name", "greet", "--", python(), program],
        &["register", "--name", "own", "--", python(), program],
        &["register", "--name", "own", "--", python(), program],
        &["register", "--name", "own2", "--", "no-such-program"],
        &["call", "greet", "--port", "1"],
        &["frobnicate"],
    ] {
        held.run(&world, args);
    }
    world.vars.push(("TOOLCRIB_MAX_RUNG", "Z".to_owned()));
    held.run(&world, &["call", "greet"]);
    world.vars.clear();
    for settings in ["prot = 1\n", "port = \"high\"\n", "port ="] {
        world.write(world.home().join(".config/toolcrib/config.toml"), settings);
        held.say(&world, "settings", settings);
        held.run(&world, &["list"]);
    }
    held.holds("errors");
}

/// What a crib elsewhere refuses.
#[test]
fn refusals() {
    let world = World::trusted();
    world.write_tool("greet.json", with("greet", "echo {{word}}", json!({})));
    let made = world.run(&["token", "create", "reader", "--scope", "read"]);
    let token = made.exits(0).stdout;
    let crib = world.serve_closed();
    let port = crib.port().to_string();
    let mut held = Snapshot::default();
    for (who, token) in [("nobody", "tcrib_0"), ("a reader", token.trim())] {
        for args in [&["list"][..], &["call", "greet"], &["grant", "--list"]] {
            let elsewhere = ["--port", &port, "--token", token];
            let said = world.run(&[args, &elsewhere].concat());
            let title = format!("$ toolcrib {} # as {who}", args.join(" "));
            let said = format!("exit code {}\n{}", said.code, said.stderr);
            held.say(&world, &title, &said.replace(&port, "<port>"));
        }
    }
    held.holds("refusals");
}

/// What `doctor` said, without what is this machine's own: which features it has, and who enforces limits.
fn of_any_machine(said: &str) -> String {
    let (machine, tools) = said.split_once("\n\n").unwrap();
    let mut text = String::new();
    for line in machine.lines() {
        match line.split_once("; ") {
            Some((feature, gives)) if feature.starts_with("  ") => {
                let _ = writeln!(text, "{:<21}<value>; {gives}", &feature[..20]);
            }
            _ if line.starts_with("   ") => {}
            _ => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    for line in tools.lines() {
        let end = line.find(" mem=").unwrap_or(line.len());
        let _ = writeln!(text, "{}", &line[..end]);
    }
    text
}

#[test]
fn doctor() {
    let mut held = Snapshot::default();
    for letter in ["A", "C", "B"] {
        let mut world = World::trusted();
        world.write_tool("greet.json", shell_tool("greet", "echo hi", json!({})));
        world.vars.push(("TOOLCRIB_MAX_RUNG", letter.to_owned()));
        let said = of_any_machine(&world.run(&["doctor"]).exits(0).stdout);
        let title = format!("$ TOOLCRIB_MAX_RUNG={letter} toolcrib doctor");
        held.say(&world, &title, &said);
    }
    held.holds("doctor");
}
