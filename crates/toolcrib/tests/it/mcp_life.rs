//! MCP over time: what is cancelled dies, what changes is told, and stdout stays clean.

use serde_json::json;

use crate::support::mcp::{
    Piped, call, initialize, names, notification, request, stateless, stateless_call,
};
use crate::support::plugin::{file, shell};
use crate::support::processes::resident;
use crate::support::{World, count_processes, eventually, shell_tool};

const CHANGED: &str = "notifications/tools/list_changed";

/// A project with a tool that sleeps under a name of its own, and one that ends at once.
fn world() -> (World, String) {
    let world = World::trusted();
    let marker = format!("600.{:09}{:03}", std::process::id(), unique());
    let tools = [
        shell("sleep", &format!("sleep {marker}"), json!({})),
        shell("plain", "echo plain", json!({})),
    ];
    world.write_tool("test.json", file(&tools));
    (world, marker)
}

/// A number that no other test of this run has.
fn unique() -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

async fn runs(marker: &str, yes: bool) {
    let what = if yes { "it runs" } else { "it is dead" };
    eventually(what, async || (count_processes(marker) > 0) == yes).await;
}

#[tokio::test]
async fn a_cancelled_call_dies_and_late_cancels_are_ignored() {
    let (world, marker) = world();
    let mut command = world.command(&["mcp"]);
    command.env("TOOLCRIB_LOG", "debug");
    let mut piped = Piped::greeted(command);
    piped.send(&call(1, "sleep", json!({})));
    runs(&marker, true).await;
    let cancel = |id: u64| notification("notifications/cancelled", json!({"requestId": id}));
    piped.send(&cancel(1));
    runs(&marker, false).await;
    piped.ask(&call(2, "plain", json!({})));
    piped.send(&cancel(2));
    piped.send(&cancel(77));
    let said = piped.ask(&call(3, "plain", json!({})));
    assert_eq!(said["result"]["content"][0]["text"], "plain\n", "{said}");
    // Every line was JSON-RPC, though the log is at its loudest, and what was cancelled got no answer.
    let (code, unasked) = piped.hang_up();
    assert_eq!(code, Some(0));
    assert!(
        unasked.iter().all(|message| message["id"] != 1),
        "{unasked:?}"
    );
}

#[tokio::test]
async fn hanging_up_cancels_in_the_new_revision_only() {
    let (world, marker) = world();
    let crib = world.serve();
    for token in [false, true] {
        let mut sleep = stateless_call(1, "sleep", json!({}));
        if token {
            sleep["params"]["_meta"]["progressToken"] = json!(1);
        }
        tokio::select! {
            _ = async { crib.post_stateless(&sleep).await.answer().await } => panic!("it sleeps"),
            () = runs(&marker, true) => {}
        }
        runs(&marker, false).await;
    }
    let session = crib.session("2025-11-25").await;
    let sleep = call(1, "sleep", json!({}));
    tokio::select! {
        _ = session.ask(&sleep) => panic!("it sleeps"),
        () = runs(&marker, true) => {}
    }
    // The server has seen the end of that connection when others were answered after it.
    for id in 2..20 {
        session.ask(&call(id, "plain", json!({}))).await;
    }
    assert!(
        count_processes(&marker) > 0,
        "an old session's call goes on"
    );
    let cancel = notification("notifications/cancelled", json!({"requestId": 1}));
    session.post(&cancel).await;
    runs(&marker, false).await;
}

#[tokio::test]
async fn changes_are_told_to_whoever_listens() {
    let (world, _) = world();
    let crib = world.serve();
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    // Answered after it, so the greeting was heard.
    piped.ask(&call(1, "plain", json!({})));
    let params = json!({"notifications": {"toolsListChanged": true}});
    let listen = stateless(1, "subscriptions/listen", params);
    let mut new = crib.post_stateless(&listen).await;
    new.notified("notifications/subscriptions/acknowledged")
        .await;
    let session = crib.session("2025-06-18").await;
    let mut old = session.listen().await;
    world.write_tool("more.json", shell_tool("more", "true", json!({})));
    new.notified(CHANGED).await;
    old.notified(CHANGED).await;
    piped.notified(CHANGED);
}

#[tokio::test]
async fn a_change_that_no_list_shows_is_told_to_nobody() {
    let (world, _) = world();
    let crib = world.serve();
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    let ask = |piped: &mut Piped, id| piped.ask(&call(id, "plain", json!({})));
    ask(&mut piped, 1);
    let mut events = crib.events().await;
    let written = |says: &str, description: &str| {
        let mut tool = shell("plain", &format!("echo {says}"), json!({}));
        tool["description"] = description.into();
        world.write_tool("test.json", file(&[tool]));
    };
    written("plain", "Says it");
    piped.notified(CHANGED);
    events.next("tools_changed").await;
    written("otherwise", "Says it");
    events.next("tools_changed").await;
    let said = ask(&mut piped, 2);
    assert_eq!(said["result"]["content"][0]["text"], "otherwise\n");
    written("otherwise", "Says it in other words");
    piped.notified(CHANGED);
    let rest = piped.hang_up().1;
    let told = rest.iter().filter(|message| message["method"] == CHANGED);
    assert_eq!(told.count(), 0, "each list was announced once: {rest:?}");
}

#[tokio::test]
async fn idle_sessions_cost_little() {
    let (world, _) = world();
    let crib = world.serve();
    crib.session("2025-11-25").await;
    let before = resident(crib.pid());
    for _ in 0..500 {
        crib.session("2025-11-25").await;
    }
    let grown = resident(crib.pid()).saturating_sub(before);
    assert!(grown < 60_000, "{grown} kB more than {before} kB");
    let plain = stateless_call(1, "plain", json!({}));
    let said = crib.post_stateless(&plain).await.answer().await;
    assert_eq!(said["result"]["content"][0]["text"], "plain\n");
}

/// Who sends half a request and waits, or asks and never reads, takes neither memory nor anybody's turn.
#[tokio::test]
async fn silent_and_deaf_clients_hold_up_nobody() {
    use std::io::Write;
    use std::net::TcpStream;
    use std::time::Duration;
    let (world, _) = world();
    let crib = world.serve();
    crib.get("/tools").await;
    let before = resident(crib.pid());
    let connect = || TcpStream::connect(("127.0.0.1", crib.port())).unwrap();
    let half_open: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = connect();
            stream
                .write_all(b"POST /mcp HTTP/1.1\r\nhost: localh")
                .unwrap();
            stream
        })
        .collect();
    let asked = "GET /api/tools HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(1_000);
    let deaf: Vec<TcpStream> = (0..10)
        .map(|_| {
            let mut stream = connect();
            stream
                .set_write_timeout(Some(Duration::from_millis(200)))
                .unwrap();
            // The server stops reading once its own answers are not taken; then writing fails, as it should.
            for _ in 0..200 {
                if stream.write_all(asked.as_bytes()).is_err() {
                    return stream;
                }
            }
            panic!("the server read on although nobody took its answers");
        })
        .collect();
    let plain = stateless_call(1, "plain", json!({}));
    let said = crib.post_stateless(&plain).await.answer().await;
    assert_eq!(said["result"]["content"][0]["text"], "plain\n");
    let grown = resident(crib.pid()).saturating_sub(before);
    assert!(grown < 40_000, "{grown} kB more than {before} kB");
    drop((half_open, deaf));
}

#[tokio::test]
async fn tools_that_wait_for_trust_are_left_out_and_counted() {
    let world = World::new();
    world.write_tool("one.json", shell_tool("first", "true", json!({})));
    world.write_tool("two.json", shell_tool("second", "true", json!({})));
    let mut piped = Piped::start(world.command(&["mcp"]));
    let hello = piped.ask(&initialize(1, "2025-11-25"));
    let said = hello["result"]["instructions"].as_str().unwrap();
    assert!(said.contains("2 tools wait for `toolcrib trust`"), "{said}");
    let list = piped.ask(&request(2, "tools/list", json!({})));
    assert!(names(&list).contains(&"git-status"));
    assert!(
        !names(&list)
            .iter()
            .any(|name| ["first", "second"].contains(name))
    );
    let refused = piped.ask(&call(3, "first", json!({})));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused.to_string().contains("toolcrib trust"), "{refused}");

    let crib = world.serve();
    let list = crib
        .post_stateless(&stateless(1, "tools/list", json!({})))
        .await
        .answer()
        .await;
    assert!(!names(&list).contains(&"first"));
}
