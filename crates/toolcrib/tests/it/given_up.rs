//! Calls that end before their tools do: because the crib is stopped, or because a person presses Ctrl-C. Whoever waits is
//! told, the tool ends, and the end is on record.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, request, stateless_call};
use crate::support::processes::{all_gone, marked};
use crate::support::tool::{marker, write_program};
use crate::support::{TestCrib, World, eventually, shell_tool, signal};

/// A project with a program that takes as long as it is told.
fn project() -> (World, String) {
    let world = World::trusted();
    let marker = marker();
    write_program(&world, "echo", &marker, &[], json!({"poolSize": 4}));
    (world, marker)
}

/// Arguments of a call that does not end by itself, and the file that says that it runs.
fn endless(world: &World, name: &str) -> (Value, std::path::PathBuf) {
    let runs = world.project().join(name);
    (json!({"sleep": 600, "touch": runs}), runs)
}

/// How the calls of the tool ended, once so many are on record.
async fn endings(world: &World, many: usize) -> Vec<String> {
    let crib = world.serve();
    let calls = async || {
        let (_, list) = crib.get("/calls?tool=echo").await;
        list["calls"].as_array().unwrap().clone()
    };
    eventually("all calls are on record", async || {
        calls().await.len() >= many
    })
    .await;
    let word = |call: &Value| match call["transport"].as_str() {
        Some("ok") => call["protocol"].as_str().unwrap().to_owned(),
        other => other.unwrap().to_owned(),
    };
    calls().await.iter().map(word).collect()
}

#[track_caller]
fn is_unavailable(answer: &Value) {
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    assert_eq!(result["_meta"]["toolcrib/code"], "unavailable", "{answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("the crib was stopped while `echo` ran"),
        "{text}"
    );
}

#[tokio::test]
async fn who_waits_for_a_crib_that_is_stopped_is_told() {
    let (world, marker) = project();
    let crib = world.serve();
    let session = crib.session("2025-06-18").await;
    let calls = ["rest", "session", "alone"].map(|name| endless(&world, name));
    let [rest, of_session, alone] = calls.each_ref().map(|(arguments, _)| arguments.clone());
    let running = async {
        let asked = (
            call(1, "echo", of_session),
            stateless_call(2, "echo", alone),
        );
        tokio::join!(
            crib.call("echo", rest),
            session.ask(&asked.0),
            async { crib.post_stateless(&asked.1).await.answer().await },
            async {
                for (_, runs) in &calls {
                    eventually("the call runs", async || runs.exists()).await;
                }
                signal(crib.pid(), libc::SIGTERM);
            },
        )
    };
    let ((status, answer), of_session, alone, ()) = running.await;
    assert_eq!(status, 503, "{answer}");
    assert_eq!(answer["error"]["code"], "unavailable");
    is_unavailable(&of_session);
    is_unavailable(&alone);
    assert_eq!(crib.wait(), Some(0));
    all_gone(&marker).await;
    assert_eq!(endings(&world, 3).await, ["unavailable"; 3]);
}

#[tokio::test]
async fn an_agents_own_server_answers_before_it_goes() {
    let (world, marker) = project();
    let mut agent = Piped::greeted(world.command(&["mcp", "--standalone"]));
    let (arguments, runs) = endless(&world, "runs");
    agent.send(&call(1, "echo", arguments));
    eventually("the call runs", async || runs.exists()).await;
    signal(agent.pid(), libc::SIGTERM);
    is_unavailable(&agent.answer(1));
    all_gone(&marker).await;
    assert_eq!(endings(&world, 1).await, ["unavailable"]);
}

/// A tool that ends once `go` is there, with these annotations.
fn waiting(world: &World, name: &str, annotations: Value) -> String {
    let (go, runs) = (world.project().join("go"), world.project().join(name));
    let (go, runs) = (go.display(), runs.display());
    let command =
        format!("sh -c 'touch {runs}; while [ ! -e {go} ]; do sleep 0.01; done; echo done'");
    let mut file: Value = serde_json::from_str(&shell_tool(name, &command, json!({}))).unwrap();
    file["tools"][0]["annotations"] = annotations;
    file.to_string()
}

#[tokio::test]
async fn a_relayed_call_is_asked_again_if_it_may_be_and_ends_as_unavailable_if_not() {
    let world = World::loose();
    world.write_tool(
        "a.json",
        waiting(&world, "look", json!({"readOnlyHint": true})),
    );
    world.write_tool("b.json", waiting(&world, "change", json!({})));
    let crib = world.serve();
    let mut agent = Piped::greeted(world.command(&["mcp"]));
    agent.ask(&request(1, "tools/list", json!({})));
    agent.send(&call(2, "look", json!({})));
    agent.send(&call(3, "change", json!({})));
    let runs = |name: &str| world.project().join(name).exists();
    eventually("both run", async || runs("look") && runs("change")).await;
    assert_eq!(crib.stop(), Some(0));
    let answer = agent.answer(3);
    assert_eq!(
        answer["result"]["_meta"]["toolcrib/code"], "unavailable",
        "{answer}"
    );
    world.write("go", "");
    let _next = world.serve();
    assert_eq!(agent.answer(2)["result"]["content"][0]["text"], "done\n");
}

/// The project's socket, after the crib that had it was stopped.
fn left_socket(world: &World, crib: TestCrib) -> UnixListener {
    let folder = world.home().join(".local/share/toolcrib/run");
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut paths = entries.map(|entry| entry.path());
    let socket = paths.find(|path| path.extension().is_some_and(|end| end == "sock"));
    assert_eq!(crib.stop(), Some(0));
    UnixListener::bind(socket.unwrap()).unwrap()
}

/// Answers as a crib of another version does.
fn of_another_version(socket: UnixListener) {
    std::thread::spawn(move || {
        for mut stream in socket.incoming().map_while(Result::ok) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                match stream.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => break,
                }
            }
            let answer = "HTTP/1.1 426 Upgrade Required\r\ncontent-length: 5\r\n\r\n0.0.1";
            let _ = stream.write_all(answer.as_bytes());
        }
    });
}

#[tokio::test]
async fn a_crib_of_another_version_is_not_waited_for_and_that_is_said() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("greet", "echo hi", json!({})));
    let crib = world.serve();
    let log = world.project().join("relay-says");
    let stderr = || Stdio::from(std::fs::File::create(&log).unwrap());
    let said = || std::fs::read_to_string(&log).unwrap();
    let mut relayed = Piped::greeted_with(world.command(&["mcp"]), stderr());
    assert!(said().contains("the crib that serves"), "{}", said());
    of_another_version(left_socket(&world, crib));
    let answer = relayed.ask(&call(1, "greet", json!({})));
    assert_eq!(answer["result"]["content"][0]["text"], "hi\n", "{answer}");
    let why = "the crib that serves this project is toolcrib 0.0.1, and this is";
    assert!(said().contains(why), "{}", said());
    drop(relayed);
    let mut alone = Piped::greeted_with(world.command(&["mcp"]), stderr());
    alone.ask(&call(1, "greet", json!({})));
    assert!(said().contains(why), "{}", said());
}

/// `toolcrib call`, which runs on by itself.
fn calling(world: &World, arguments: &Value) -> Child {
    let arguments = arguments.to_string();
    let mut command = world.command(&["call", "echo", &arguments]);
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[tokio::test]
async fn ctrl_c_cancels_the_tool_and_that_is_on_record() {
    for served in [false, true] {
        let (world, marker) = project();
        let crib = served.then(|| world.serve());
        let (arguments, runs) = endless(&world, "runs");
        let mut command = calling(&world, &arguments);
        eventually("the call runs", async || runs.exists()).await;
        assert!(!marked(&marker).is_empty());
        signal(command.id(), libc::SIGINT);
        assert_eq!(
            command.wait().unwrap().code(),
            Some(130),
            "served: {served}"
        );
        all_gone(&marker).await;
        assert_eq!(endings(&world, 1).await, ["cancelled"], "served: {served}");
        drop(crib);
    }
}

/// A terminal that is closed says nothing at all.
#[tokio::test]
async fn a_command_that_is_killed_leaves_no_tool_running() {
    let (world, marker) = project();
    let _crib = world.serve();
    let (arguments, runs) = endless(&world, "runs");
    let mut command = calling(&world, &arguments);
    eventually("the call runs", async || runs.exists()).await;
    command.kill().unwrap();
    command.wait().unwrap();
    all_gone(&marker).await;
    assert_eq!(endings(&world, 1).await, ["cancelled"]);
}
