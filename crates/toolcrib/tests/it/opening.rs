//! Nobody waits for another tool: hellos, lists and calls are answered from what is known, and the rest comes later.

use std::io::Read;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, initialize, names, notification, request};
use crate::support::{World, shell_tool};

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// A file that is loaded once there is a file `gate` in the project.
const GATED: &str = "import os, time
while not os.path.exists('gate'):
    time.sleep(0.01)
from toolcrib import tool
@tool
def gated(word: str = 'none') -> str:
    'Says a word, once it is loaded.'
    return word
";

/// A trusted project with a tool that is loaded at once and one that waits for its gate, and lists that wait for nothing.
fn world() -> World {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_LIST_WAIT", "0".to_owned()));
    world.write_tool("gated.py", GATED);
    world.write_tool("plain.json", shell_tool("plain", "echo here", json!({})));
    world
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or("")
}

fn alone(world: &World) -> Piped {
    Piped::greeted(world.command(&["mcp", "--standalone"]))
}

#[test]
fn nobody_waits_for_a_tool_that_is_being_loaded_but_who_calls_it() {
    let world = world();
    let mut client = alone(&world);
    let list = client.ask(&request(1, "tools/list", json!({})));
    let listed = names(&list);
    assert!(
        listed.contains(&"plain") && listed.contains(&"file-reader"),
        "{listed:?}"
    );
    // What its text tells is listed, and not for long.
    assert!(listed.contains(&"gated"), "{listed:?}");
    assert_eq!(list["result"]["ttlMs"], 0, "{list}");
    client.send(&call(2, "gated", json!({"word": "hello"})));
    assert_eq!(text(&client.ask(&call(3, "plain", json!({})))), "here\n");
    world.write("gate", "");
    assert_eq!(text(&client.answer(2)), "hello");
    client.notified(LIST_CHANGED);
    let list = client.ask(&request(4, "tools/list", json!({})));
    let tools = list["result"]["tools"].as_array().unwrap();
    let gated = tools.iter().find(|tool| tool["name"] == "gated").unwrap();
    assert!(
        gated["inputSchema"]["properties"]["word"].is_object(),
        "{gated}"
    );
    assert_ne!(list["result"]["ttlMs"], 0);
    client.hang_up();
}

#[test]
fn a_list_waits_for_tools_that_are_being_loaded_as_long_as_settings_say() {
    let mut world = world();
    world.vars.retain(|(name, _)| *name != "TOOLCRIB_LIST_WAIT");
    let mut client = alone(&world);
    client.send(&request(1, "tools/list", json!({})));
    // A request that came later is answered before.
    assert_eq!(text(&client.ask(&call(2, "plain", json!({})))), "here\n");
    world.write("gate", "");
    let list = client.answer(1);
    let tools = list["result"]["tools"].as_array().unwrap();
    let gated = tools.iter().find(|tool| tool["name"] == "gated").unwrap();
    assert!(
        gated["inputSchema"]["properties"]["word"].is_object(),
        "{gated}"
    );
    client.hang_up();
}

#[test]
fn a_hello_does_not_wait_for_hundreds_of_new_files() {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_LIST_WAIT", "0".to_owned()));
    for n in 0..300 {
        let text = format!(
            "from toolcrib import tool\n@tool\ndef t{n}(x: int = 0) -> int:\n    'Gives it back.'\n    return x\n"
        );
        world.write(format!(".toolcrib/tools/t{n}.py"), text);
    }
    let mut client = Piped::start(world.command(&["mcp", "--standalone"]));
    client.ask(&initialize(0, "2025-11-25"));
    client.send(&notification("notifications/initialized", json!({})));
    let list = client.ask(&request(1, "tools/list", json!({})));
    let tools = list["result"]["tools"].as_array().unwrap();
    let loaded = |tool: &&Value| tool["inputSchema"]["properties"]["x"].is_object();
    let mine = |tool: &&Value| {
        let number = tool["name"].as_str().unwrap().strip_prefix('t');
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    assert_eq!(tools.iter().filter(mine).count(), 300);
    assert!(
        tools.iter().filter(mine).filter(loaded).count() < 300,
        "all were waited for"
    );
    client.notified(LIST_CHANGED);
    client.hang_up();
}

#[tokio::test]
async fn a_crib_that_serves_answers_before_all_is_loaded() {
    let world = world();
    let crib = world.serve();
    assert_eq!(crib.status_of("gated").await.as_deref(), Some("loading"));
    assert_eq!(crib.ready().await.0, "starting");
    assert_eq!(crib.output_of("plain").await, "here");
    // A command uses the crib that serves, and waits for nothing either.
    let listed = world.run(&["list"]).exits(0).stdout;
    assert!(listed.contains("loading"), "{listed}");
    let called = crib.call("gated", json!({"word": "hello"}));
    let opened = async { world.write("gate", "") };
    let ((_, outcome), _) = tokio::join!(called, opened);
    assert_eq!(outcome["output"], "hello", "{outcome}");
    crib.becomes("ready").await;
    assert_eq!(crib.status_of("gated").await.as_deref(), Some("active"));
}

/// A file that notes each time that it is loaded, and never is.
fn endless(word: &str) -> String {
    format!(
        "import time\nfrom toolcrib import tool\nwith open('starts', 'a') as starts:\n    starts.write('{word} ')\n\
         time.sleep(3600)\n@tool\ndef endless() -> str:\n    'Never.'\n    return ''\n"
    )
}

#[test]
fn what_is_never_loaded_is_waited_for_once_by_all_commands_together() {
    let mut world = World::loose();
    world.vars.push(("TOOLCRIB_LIST_WAIT", "4000".to_owned()));
    world.write_tool("endless.py", endless("one"));
    world.write_tool("plain.json", shell_tool("plain", "echo here", json!({})));
    let starts = || std::fs::read_to_string(world.project().join("starts")).unwrap_or_default();
    let listed = world.run(&["list"]).exits(1).stdout;
    assert!(
        listed.contains("plain") && listed.contains("endless"),
        "{listed}"
    );
    assert_eq!(starts(), "one ");
    for _ in 0..3 {
        world.run(&["list"]).exits(1);
        let told = world.run(&["errors"]).stdout;
        assert!(told.contains("it was not loaded within"), "{told}");
        assert_eq!(world.run(&["call", "plain"]).exits(0).stdout, "here\n");
    }
    assert_eq!(starts(), "one ");
    // Another text is another thing.
    world.write_tool("endless.py", endless("two"));
    world.run(&["list"]).exits(1);
    assert_eq!(starts(), "one two ");
}

/// What stands where the index of packages should be.
enum Registry {
    /// It takes connections and never says a word.
    Silent(TcpListener),
    /// Nobody listens there.
    Refuses(u16),
    /// Its host does not exist.
    None,
}

impl Registry {
    fn url(&self) -> String {
        match self {
            Registry::Silent(listener) => {
                format!(
                    "http://127.0.0.1:{}/simple",
                    listener.local_addr().unwrap().port()
                )
            }
            Registry::Refuses(port) => format!("http://127.0.0.1:{port}/simple"),
            Registry::None => "http://registry.invalid/simple".to_owned(),
        }
    }
}

const NEEDY: &str = "# /// script
# dependencies = [\"crib-words\"]
# ///
import crib_words
from toolcrib import tool
@tool
def needy() -> str:
    'Needs a package.'
    return crib_words.HELLO
";

#[test]
fn a_registry_that_does_not_answer_takes_nothing_away() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for registry in [
        Registry::Silent(silent),
        Registry::Refuses(free),
        Registry::None,
    ] {
        let mut world = World::trusted();
        let url = registry.url();
        world
            .vars
            .extend([("PIP_INDEX_URL", url.clone()), ("UV_INDEX_URL", url)]);
        world.write_tool("needy.py", NEEDY);
        world.write_tool("plain.json", shell_tool("plain", "echo here", json!({})));
        world.run(&["grant", "needy", "--install"]).exits(0);
        let listed = world.run(&["list"]).stdout;
        assert!(
            listed.contains("needy") && listed.contains("plain"),
            "{listed}"
        );
        assert_eq!(world.run(&["call", "plain"]).exits(0).stdout, "here\n");
        let mut client = alone(&world);
        let list = client.ask(&request(1, "tools/list", json!({})));
        let listed = names(&list);
        assert!(
            listed.contains(&"plain") && listed.contains(&"needy"),
            "{listed:?}"
        );
        assert_eq!(text(&client.ask(&call(2, "plain", json!({})))), "here\n");
        let answer = client.ask(&call(3, "needy", json!({})));
        assert!(text(&answer).contains("can't be called yet"), "{answer}");
        client.hang_up();
    }
}

/// A registry that knows no package, and counts who asks.
fn empty_registry() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = stream.read(&mut [0; 4_096]);
            let answer =
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = std::io::Write::write_all(&mut stream, answer);
        }
    });
    (port, asked)
}

#[test]
fn an_install_that_failed_is_not_tried_again_by_every_process() {
    let (port, asked) = empty_registry();
    let asked = || asked.load(Ordering::SeqCst);
    let mut world = World::trusted();
    let url = format!("http://127.0.0.1:{port}/simple");
    world
        .vars
        .extend([("PIP_INDEX_URL", url.clone()), ("UV_INDEX_URL", url)]);
    world.write_tool("needy.py", NEEDY);
    world.run(&["grant", "needy", "--install"]).exits(0);
    let failed = world.run(&["call", "needy"]).exits(4);
    assert!(
        failed.stderr.contains("could not be installed"),
        "{failed:?}"
    );
    let tries = asked();
    assert!(tries > 0);
    let again = world.run(&["call", "needy"]).exits(4);
    assert!(again.stderr.contains("could not be installed"), "{again:?}");
    world.run(&["list"]).exits(1);
    assert_eq!(asked(), tries);
    // Who says so has it tried again, and so does another text.
    let mut client = alone(&world);
    client.ask(&request(1, "tools/list", json!({})));
    assert_eq!(asked(), tries);
    client.hang_up();
    world.run(&["reload"]);
    world.run(&["call", "needy"]).exits(4);
    assert!(asked() > tries);
    let tries = asked();
    world.write_tool("needy.py", format!("{NEEDY}# another\n"));
    world.run(&["grant", "needy", "--install"]).exits(0);
    world.run(&["call", "needy"]).exits(4);
    assert!(asked() > tries);
}

#[tokio::test]
async fn a_reload_tries_again_what_failed() {
    let (port, asked) = empty_registry();
    let mut world = World::trusted();
    let url = format!("http://127.0.0.1:{port}/simple");
    world
        .vars
        .extend([("PIP_INDEX_URL", url.clone()), ("UV_INDEX_URL", url)]);
    world.write_tool("needy.py", NEEDY);
    world.run(&["grant", "needy", "--install"]).exits(0);
    world.run(&["call", "needy"]).exits(4);
    let tries = asked.load(Ordering::SeqCst);
    let crib = world.serve();
    assert_eq!(asked.load(Ordering::SeqCst), tries);
    crib.post("/tools/reload", json!({})).await;
    crate::support::eventually("it is tried again", async || {
        asked.load(Ordering::SeqCst) > tries
    })
    .await;
}
