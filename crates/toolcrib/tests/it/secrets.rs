//! Secrets by reference: a tool gets the value, and nobody else ever sees it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::files::holding;
use crate::support::mcp::{call, stateless_call};
use crate::support::tool::python;
use crate::support::{Ran, TestCrib, World, eventually, plugin};

/// Holds what every form of escaping changes.
const SECRET: &str = "s3cr\"t/ke y+7ö-fromfile";
const VARIABLE: &str = "gr4nted-variable-value";
const LITERAL: &str = "l1teral-manifest-value";

/// The values, and the forms in which they might come out.
fn forms() -> Vec<String> {
    let mut forms = vec![SECRET.to_owned(), VARIABLE.to_owned(), LITERAL.to_owned()];
    forms.push(r#"s3cr\"t/ke y+7ö"#.to_owned());
    forms.push(r#"s3cr\"t/ke y+7\u00f6"#.to_owned());
    forms.push(r#"s3cr\\\"t"#.to_owned());
    forms.push("s3cr%22t".to_owned());
    // The middle of its base64.
    forms.push("czNjciJ0L2tlIHkrN8O2LWZyb21maWxl".to_owned());
    // What is left where only a part was hidden.
    forms.extend(["s3cr", "-fromfile", "gr4nted", "l1teral"].map(str::to_owned));
    forms
}

#[track_caller]
fn nowhere_in(what: &str, text: &str) {
    for form in forms() {
        if let Some(at) = text.find(&form) {
            let from = text.floor_char_boundary(at.saturating_sub(200));
            let to = text.ceil_char_boundary((at + 200).min(text.len()));
            panic!("{form} is in {what}: {}", &text[from..to]);
        }
    }
}

/// Tells its secret in every way that there is.
const BLAB: &str = r#"
import base64, json, os, sys, urllib.parse
key = os.environ.get("API_KEY", "no key")
literal = os.environ["MODE"]
both = key + " " + literal
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    id, method = request["id"], request["method"]
    if method == "initialize":
        about = {"protocolVersion": "1.1", "name": "blab", "version": "1 " + both}
        say(id=id, result=about)
        continue
    if method == "health":
        say(id=id, result={"status": "degraded", "message": "with " + both})
        continue
    how = request["params"]["input"].get("how")
    said = request["params"]["input"].get("said")
    if how == "matches":
        say(id=id, result="yes" if said in (key, literal) else "no")
    elif how == "stdout":
        print("noise " + both, flush=True)
        say(id=id, result="printed " + both)
    elif how == "stderr":
        sys.stderr.write("part " + key[:5]); sys.stderr.flush()
        sys.stderr.write(key[5:] + " whole " + both + "\n"); sys.stderr.flush()
        say(id=id, result="printed")
    elif how == "log":
        say(method="log", params={"level": "warn " + both, "message": "log " + both})
        say(method="strange " + both, params={})
        say(id=id, result="logged")
    elif how == "error":
        say(id=id, error={"code": -32001, "message": "no: " + both, "data": {key: [both]}})
    elif how == "refusal":
        say(id=id, error={"code": -32602, "message": "no: " + both, "data": {key: [both]}})
    elif how == "foreign":
        say(id=id, error={"code": -32601, "message": "no: " + both})
    elif how == "crash":
        print("last words " + both, file=sys.stderr, flush=True)
        os._exit(3)
    elif how == "progress":
        say(method="progress", params={"id": id, "title": "t " + both, "message": "m " + both,
            "progress": 1, "total": 2, "data": {key: [both]}})
        say(id=id, result="done")
    elif how == "structured":
        say(id=id, result={"a": both, key: [key, {"deep": literal}], "n": 1})
    elif how == "contract":
        say(id=id, result={"output": "o " + both, "title": "t " + both, "metadata": {key: both},
            "extra " + key: both, "structured": {"s": both}, "attachments": [
            {"type": "text", "mimeType": "text/plain", "text": both, "name": both},
            {"type": "file", "mimeType": "a/b", "data": base64.b64encode(both.encode()).decode()}]})
    elif how == "forms":
        say(id=id, result="\n".join([json.dumps(key), json.dumps(json.dumps(key)), urllib.parse.quote(key),
            urllib.parse.quote_plus(key), urllib.parse.quote(key, safe=""),
            base64.b64encode(key.encode()).decode(), base64.urlsafe_b64encode(("user:" + key).encode()).decode()]))
    elif how == "big":
        say(id=id, result="\n".join(f"{n} {both}" for n in range(5000)))
"#;

struct Scene {
    world: World,
    /// Holds the secret itself, apart from all that is searched.
    kept: tempfile::TempDir,
}

fn scene() -> Scene {
    let mut world = World::new();
    let kept = tempfile::tempdir().unwrap();
    let file = kept.path().join("api");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let config = world.home().join(".config/toolcrib/config.toml");
    let from_file = format!("[secrets.api]\nfile = {:?}\n", file.to_str().unwrap());
    let from_variable = "[secrets.other]\nenv = \"GRANTED\"\n";
    world.write(config, from_file + from_variable);
    world.vars.push(("GRANTED", VARIABLE.to_owned()));
    Scene { world, kept }
}

/// Writes the program with a complete `tool.json`, so that nothing has to be asked.
fn write_blab(world: &World, name: &str, env: &Value) {
    let folder = world.tools_folder().join(name);
    world.write(folder.join("tool.py"), BLAB);
    let manifest = json!({
        "name": name, "description": "Tells what it knows", "command": python(), "args": ["./tool.py"],
        "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}, "said": {"type": "string"}}},
        "env": env, "retryDelayMs": 0,
    });
    world.write(folder.join("tool.json"), manifest.to_string());
}

fn mine(secret: &str) -> Value {
    json!({"API_KEY": format!("secret://{secret}"), "MODE": "plain-mode"})
}

/// Answers every request with the request itself.
fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let asked: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            // More than is held in memory, so that it is spooled.
            let body = asked.join("\n").repeat(2_000);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    port
}

#[tokio::test]
async fn a_secret_is_nowhere_but_in_the_tool() {
    let Scene { world, kept: _kept } = scene();
    let env = json!({"API_KEY": "secret://api", "MODE": LITERAL});
    write_blab(&world, "blab", &env);
    let python = r#"
import os, sys
from toolcrib import tool, Context

@tool(permissions={"allowed_environment_vars": ["GRANTED"]})
def gossip(ctx: Context, how: str = "") -> str:
    """Tells a variable."""
    value = os.environ["GRANTED"]
    print("to stderr", value, file=sys.stderr, flush=True)
    ctx.metadata(title="title " + value, data={value: value})
    ctx.progress(1, 2, "progress " + value)
    ctx.log("info", "log " + value)
    if how == "raise":
        raise ValueError("raised " + value)
    return "returned " + value
"#;
    world.write_tool("gossip.py", python);
    let mut shell = plugin::shell(
        "spool",
        "sh -c 'i=0; while [ $i -lt 6000 ]; do echo $i $GRANTED; i=$((i+1)); done; echo $GRANTED >&2'",
        json!({}),
    );
    shell["permissions"] =
        json!({"allowedEnvironmentVars": ["GRANTED"], "canExecuteCommands": true});
    let http = plugin::tool(
        "fetch",
        json!({}),
        json!({"type": "http", "method": "GET", "url": format!("http://127.0.0.1:{}/", echo_server()),
            "headers": {"Authorization": "Bearer ${secret://other}", "X-Too": "${GRANTED}"}}),
    );
    world.write_tool("p.json", plugin::file(&[shell, http]));
    let trusted = world.run(&["trust"]).exits(0);
    for told in [
        "the secret `api`",
        "the secret `other`",
        "variable `GRANTED`",
    ] {
        assert!(trusted.stdout.contains(told), "{trusted:?}");
    }

    let mut command = world.command(&["serve", "--json", "--no-auth", "--port", "0"]);
    command.env("TOOLCRIB_LOG", "trace");
    let crib = world.serve_by(command);
    let events = listen(&crib).await;
    let mut said = String::new();
    let yes = |outcome: &Value| assert_eq!(outcome["output"], "yes", "{outcome}");
    yes(&crib
        .call("blab", json!({"how": "matches", "said": SECRET}))
        .await
        .1);
    yes(&crib
        .call("blab", json!({"how": "matches", "said": LITERAL}))
        .await
        .1);
    let hows = [
        "stdout",
        "stderr",
        "log",
        "error",
        "refusal",
        "foreign",
        "crash",
        "progress",
        "structured",
        "contract",
        "forms",
        "big",
    ];
    for how in hows {
        // The value comes as an argument, too.
        let (status, outcome) = crib.call("blab", json!({"how": how, "said": SECRET})).await;
        let text = outcome.to_string();
        assert_ne!(status, 500, "{how}: {text}");
        let tells = !["stderr", "log", "progress"].contains(&how);
        assert!(!tells || text.contains("***"), "{how}: {text}");
        nowhere_in(how, &text);
        if let Some(id) = outcome["metadata"]["outputId"].as_str() {
            said += &kept_output(&crib, id).await;
        }
    }
    for how in ["", "raise"] {
        said += &crib.call("gossip", json!({"how": how})).await.1.to_string();
    }
    for tool in ["spool", "fetch"] {
        let (status, outcome) = crib.call(tool, json!({})).await;
        assert_eq!(status, 200, "{outcome}");
        let id = outcome["metadata"]["outputId"].as_str().unwrap();
        let kept = kept_output(&crib, id).await;
        assert!(kept.contains("***"), "{outcome}");
        said += &format!("{outcome}{kept}");
    }
    let (_, health) = crib.get("/tools/blab").await;
    said += &health.to_string();
    said += &world.run(&["health", "blab"]).stdout;

    // The same over MCP: both revisions, with progress.
    let session = crib.session("2025-11-25").await;
    for how in hows {
        let mut message = call(7, "blab", json!({"how": how, "said": SECRET}));
        message["params"]["_meta"]["progressToken"] = "p".into();
        said += &session.post(&message).await.response.text().await.unwrap();
        let message = stateless_call(8, "blab", json!({"how": how, "said": SECRET}));
        let answer = crib.post_stateless(&message).await;
        said += &answer.response.text().await.unwrap();
    }
    assert!(said.contains("notifications/progress"), "{said}");
    let arguments = format!("said={SECRET}");
    for how in ["stdout", "error", "crash", "progress"] {
        let how = format!("how={how}");
        for place in [&["--standalone"][..], &[]] {
            let args = [&["call", "blab", &how, &arguments], place].concat();
            let Ran { stdout, stderr, .. } = world.run(&args);
            said += &format!("{stdout}{stderr}");
        }
    }
    for path in ["/calls", "/tools", "/tools/errors", "/grants", "/health"] {
        said += &crib.get(path).await.1.to_string();
    }
    eventually("events tell of progress", || async {
        let events = events.lock().unwrap();
        events.contains("tool.progress") && events.matches("tool.failed").count() > 3
    })
    .await;
    said += &events.lock().unwrap();
    let log = crib.log();
    assert!(log.contains("tool.failed"), "{log}");
    // While it runs, what was written last lies beside the database.
    let data = world.home().join(".local/share/toolcrib");
    let all = forms();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    assert_eq!(holding(&data, &all), Vec::<String>::new());
    crib.stop();

    let logs = world.run(&["logs", "blab"]).exits(0).stdout;
    for line in ["part ***", "last words ***", "noise ***", "log ***"] {
        assert!(logs.contains(line), "{line} is not in {logs}");
    }
    let gossip = world.run(&["logs", "gossip"]).exits(0).stdout;
    assert!(gossip.contains("to stderr ***"), "{gossip}");
    let calls = world.run(&["logs", "--calls", "--json"]).exits(0).stdout;
    assert!(calls.contains("\"blab\""), "{calls}");
    nowhere_in("answers and events", &said);
    nowhere_in("the log", &log);
    for (what, text) in [("logs", logs), ("logs", gossip), ("calls", calls)] {
        nowhere_in(what, &text);
    }
    // The tool's own file has the literal, and so has the copy that stands in should it break.
    let literal = [LITERAL, "l1teral"];
    let others = all.into_iter().filter(|form| !literal.contains(form));
    let others: Vec<&str> = others.collect();
    assert_eq!(holding(&world.root(), &others), Vec::<String>::new());
    assert_eq!(holding(&data, &literal), Vec::<String>::new());
}

async fn kept_output(crib: &TestCrib, id: &str) -> String {
    let url = format!("{}/api/outputs/{id}", crib.url);
    crib.client
        .get(url)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap()
}

/// All events from now on, as they come over the wire.
async fn listen(crib: &TestCrib) -> std::sync::Arc<std::sync::Mutex<String>> {
    let url = format!("{}/api/events", crib.url);
    let mut response = crib.client.get(url).send().await.unwrap();
    let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let hearing = heard.clone();
    tokio::spawn(async move {
        while let Ok(Some(chunk)) = response.chunk().await {
            hearing
                .lock()
                .unwrap()
                .push_str(&String::from_utf8_lossy(&chunk));
        }
    });
    heard
}

fn unavailable(body: &Value) -> String {
    assert_eq!(body["error"]["code"], "unavailable", "{body}");
    format!("{} {}", body["error"]["message"], body["error"]["hint"])
}

#[tokio::test]
async fn what_cant_be_read_makes_the_call_unavailable_and_is_taken_up_once_it_can() {
    let Scene { world, kept } = scene();
    write_blab(&world, "blab", &mine("api"));
    write_blab(&world, "lost", &mine("nothing"));
    world.run(&["trust"]).exits(0);
    let file = kept.path().join("api");
    let mode =
        |mode: u32| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o644);
    let crib = world.serve();
    let matches = |said: &str| crib.call("blab", json!({"how": "matches", "said": said}));
    // However often: nothing was started, so nothing has to rest.
    for _ in 0..4 {
        let (status, body) = matches("x").await;
        assert_eq!(status, 503, "{body}");
        let told = unavailable(&body);
        assert!(
            told.contains("0644") && told.contains("chmod 600"),
            "{told}"
        );
    }
    assert!(!crib.log().contains("worker.spawn"), "{}", crib.log());
    mode(0o600);
    assert_eq!(matches(SECRET).await.1["output"], "yes");
    let (status, body) = crib.call("lost", json!({"how": "matches"})).await;
    assert_eq!(status, 503, "{body}");
    let told = unavailable(&body);
    assert!(
        told.contains("[secrets.nothing]") && told.contains("config.toml"),
        "{told}"
    );

    // A changed secret counts at the next start, and the old one stays hidden meanwhile.
    std::fs::write(&file, "another-value").unwrap();
    assert_eq!(matches(SECRET).await.1["output"], "yes");
    let (status, _) = crib.call("blab", json!({"how": "crash"})).await;
    assert_eq!(status, 502);
    assert_eq!(matches("another-value").await.1["output"], "yes");
    let (_, outcome) = crib.call("blab", json!({"how": "stdout"})).await;
    assert_eq!(outcome["output"], "printed *** ***", "{outcome}");

    // So does where it lies.
    let config = world.home().join(".config/toolcrib/config.toml");
    world.write(config, "[secrets.nothing]\nenv = \"GRANTED\"\n");
    eventually("the setting is taken up", || async {
        let said = json!({"how": "matches", "said": VARIABLE});
        crib.call("lost", said).await.1["output"] == "yes"
    })
    .await;
}

#[test]
fn a_secret_is_given_only_where_a_person_said_so() {
    let Scene { world, kept: _kept } = scene();
    world.run(&["trust"]).exits(0);
    write_blab(&world, "blab", &mine("api"));
    let said = format!("said={SECRET}");
    let matches = ["call", "blab", "how=matches", &said];
    let denied = world.run(&matches).exits(3);
    assert!(denied.stderr.contains("--env secret://api"), "{denied:?}");
    let other = ["grant", "blab", "--env", "secret://other"];
    world.run(&other).exits(0);
    world.run(&matches).exits(3);
    world
        .run(&["grant", "blab", "--env", "secret://api"])
        .exits(0);
    assert_eq!(world.run(&matches).exits(0).stdout.trim(), "yes");
    // Asked how it is, a tool that lost its grant does not get it either.
    world.run(&["grant", "blab", "--revoke"]).exits(0);
    world.run(&matches).exits(3);

    let world = scene().world;
    write_blab(&world, "blab", &mine("api"));
    let untrusted = world.run(&["call", "blab"]).exits(3);
    assert!(untrusted.stderr.contains("toolcrib trust"), "{untrusted:?}");
    let shown = world.run(&["show", "blab"]).exits(0).stdout;
    assert!(shown.contains("the secret `api`"), "{shown}");
    let bare = world.run(&["trust", "--no-grants"]).exits(0);
    assert!(
        bare.stdout.contains("asks to be given the secret `api`"),
        "{bare:?}"
    );
    world.run(&["call", "blab"]).exits(3);
}

#[test]
fn a_project_says_nothing_about_where_secrets_lie() {
    let Scene { world, kept: _kept } = scene();
    world.run(&["trust"]).exits(0);
    world.write(
        ".toolcrib/config.toml",
        "[secrets.api]\nenv = \"GRANTED\"\n",
    );
    let refused = world.run(&["list"]).exits(2);
    assert!(
        refused
            .stderr
            .contains("`secrets` does not count in a project's file"),
        "{refused:?}"
    );
    assert!(
        refused.stderr.contains("which of your secrets"),
        "{refused:?}"
    );
}

#[test]
fn references_that_are_none_are_told_of_at_load() {
    let Scene { world, kept: _kept } = scene();
    let env = json!({"API_KEY": "Bearer secret://api", "MODE": "x"});
    write_blab(&world, "blab", &env);
    world.run(&["trust"]).exits(0);
    let errors = world.run(&["errors"]).stdout;
    assert!(
        errors.contains("env.API_KEY") && errors.contains("secret://NAME"),
        "{errors}"
    );
}

#[tokio::test]
async fn a_registered_tool_gets_what_it_names() {
    let Scene { world, kept: _kept } = scene();
    world.weather();
    let crib = world.serve();
    let command = json!({"command": python(), "args": ["./weather/tool.py"]});
    let with = |name: &str, secret: &str| {
        let mut body = command.clone();
        body["name"] = name.into();
        body["env"] = json!({"API_KEY": format!("secret://{secret}")});
        body
    };
    let (status, refused) = crib.post("/custom-tools", with("lost", "nothing")).await;
    assert_eq!(status, 400, "{refused}");
    assert!(
        refused
            .to_string()
            .contains("the secret `nothing` can't be read"),
        "{refused}"
    );
    let view = crib.register(with("weather", "api")).await;
    assert_eq!(view["env"]["API_KEY"], "***", "{view}");
    let (status, outcome) = crib.call("weather", json!({"location": "x"})).await;
    assert_eq!(
        (status, &outcome["output"]),
        (200, &json!("sunny in x with a key"))
    );
    let (_, health) = crib.get("/custom-tools/weather/health").await;
    assert_eq!(health["message"], "fine with ***", "{health}");
    nowhere_in("the log", &crib.log());
    crib.stop();
    let logs = world.run(&["logs", "weather"]).exits(0).stdout;
    assert!(logs.contains("starting with ***"), "{logs}");
    let forms = forms();
    let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
    assert_eq!(holding(&world.root(), &forms), Vec::<String>::new());
}

#[test]
fn a_keyring_is_asked_through_its_own_program() {
    let Scene { mut world, kept } = scene();
    write_blab(&world, "blab", &mine("ring"));
    let config = world.home().join(".config/toolcrib/config.toml");
    world.write(config, "[secrets.ring]\nkeyring = true\n");
    world.run(&["trust"]).exits(0);
    let matches = ["call", "blab", "how=matches", "said=from-the-ring"];
    let missing = world.run(&matches).exits(4);
    assert!(missing.stderr.contains("secret-tool"), "{missing:?}");
    let program = kept.path().join("secret-tool");
    std::fs::write(
        &program,
        "#!/bin/sh\n[ \"$*\" = 'lookup toolcrib ring' ] && printf from-the-ring\n",
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let path: PathBuf = kept.path().into();
    world.vars.push((
        "PATH",
        format!("{}:/usr/local/bin:/usr/bin:/bin", path.display()),
    ));
    assert_eq!(world.run(&matches).exits(0).stdout.trim(), "yes");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    let refused = world.run(&matches).exits(4);
    assert!(refused.stderr.contains("secret-tool store"), "{refused:?}");
}
