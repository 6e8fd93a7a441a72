//! What becomes of a Python file's tools while files change, and over restarts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;
use toolcrib_core::{Context, ErrorType};

use crate::world::{World, eventually, through};

fn world() -> World {
    World::scripts(|_| {})
}

/// A file whose tool gives this text.
fn gives(text: &str) -> String {
    format!(
        r#"
from toolcrib import tool
@tool
def give() -> str:
    "Gives a text."
    return {text:?}
"#
    )
}

#[tokio::test]
async fn a_saved_file_serves_at_once() {
    let world = world();
    world.write("give.py", gives("one"));
    world.open().await;
    assert_eq!(world.output("give", json!({})).await, "one");
    world.write("give.py", gives("two"));
    world.until("give", json!({}), "two").await;
    // Under another name it is the same tool.
    let (old, new) = (
        world.tools().join("give.py"),
        world.tools().join("taken.py"),
    );
    std::fs::rename(old, &new).unwrap();
    eventually("the tool comes from its new file", || {
        let view = world.crib.owners_view();
        view.get("give")
            .is_some_and(|tool| tool.file.as_ref() == Some(&new))
    })
    .await;
    assert_eq!(world.output("give", json!({})).await, "two");
    assert_eq!(world.problems(), [""; 0]);
    std::fs::remove_file(new).unwrap();
    eventually("the tool is gone", || world.names().is_empty()).await;
    world.end().await;
}

#[tokio::test]
async fn many_saves_end_with_the_last() {
    let world = world();
    world.write("give.py", gives("0"));
    world.open().await;
    for save in 1..=50 {
        world.write("give.py", gives(&save.to_string()));
        // sleeps: the pace of the saves, so that some of them are looked at
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    world.until("give", json!({}), "50").await;
    assert_eq!(world.problems(), [""; 0]);
    world.end().await;
}

#[tokio::test]
async fn a_broken_save_leaves_the_last_good_version() {
    let world = world();
    world.write("give.py", gives("good"));
    world.open().await;
    for (broken, kind) in [
        ("def give(:", ErrorType::Syntax),
        ("# tool\nimport no_such_thing", ErrorType::Import),
        ("# tool\nraise ValueError", ErrorType::Import),
    ] {
        world.write("give.py", broken);
        world.reload().await;
        let problem = world.problem();
        assert_eq!(problem.error_type, kind);
        let tool = world.crib.owners_view().get("give").unwrap().clone();
        assert!(tool.stale, "{broken}");
        assert_eq!(world.output("give", json!({})).await, "good");
        let after = world.restarted().await;
        assert!(after.crib.owners_view().get("give").unwrap().stale);
        assert_eq!(after.output("give", json!({})).await, "good");
        after.end_workers().await;
    }
    // What lies beside it is kept with it.
    world.write("_beside.py", "TEXT = 'from beside'\n");
    world.write(
        "give.py",
        gives("x")
            .replace("\"x\"", "TEXT")
            .replace("from toolcrib", "from ._beside import TEXT\nfrom toolcrib"),
    );
    world.until("give", json!({}), "from beside").await;
    std::fs::remove_file(world.tools().join("_beside.py")).unwrap();
    world.write("give.py", "def give(:");
    world.reload().await;
    assert_eq!(world.output("give", json!({})).await, "from beside");
    world.end().await;
}

#[tokio::test]
async fn a_file_may_go_while_its_call_runs() {
    let world = world();
    let (waiting, go) = (world.sign("waiting"), world.sign("go"));
    let text = format!(
        r#"
import os, time
from toolcrib import tool
@tool
def wait() -> str:
    "Waits for a sign."
    open({waiting:?}, "w").close()
    while not os.path.exists({go:?}): time.sleep(0.01)
    return "still here"
"#
    );
    let path = world.write("wait.py", text);
    world.open().await;
    let call = world.begin("wait", json!({}));
    world.seen("waiting").await;
    std::fs::remove_file(path).unwrap();
    eventually("the tool is gone", || world.names().is_empty()).await;
    world.give("go");
    assert_eq!(call.await.unwrap().unwrap().output, "still here");
    world.end().await;
}

#[tokio::test]
async fn what_was_described_once_needs_no_process() {
    let world = world();
    for n in 0..20 {
        let text = gives(&n.to_string()).replace("def give", &format!("def give{n}"));
        world.write(&format!("give{n}.py"), text);
    }
    world.open().await;
    assert_eq!(world.names().len(), 20);
    world.nothing_runs().await;
    let after = world.restarted().await;
    assert_eq!(after.names().len(), 20);
    assert_eq!(
        after
            .events()
            .iter()
            .filter(|one| one.starts_with("worker."))
            .count(),
        0
    );
    assert_eq!(after.output("give7", json!({})).await, "7");
    after.end_workers().await;
    world.end().await;
}

/// A tool that looks around when it is loaded is described afresh by every start and reload.
#[tokio::test]
async fn an_init_is_asked_afresh() {
    let world = world();
    let state = world.sign("state");
    std::fs::write(&state, "one").unwrap();
    let text = format!(
        r#"
from toolcrib import tool
async def look(init):
    return {{"description": "Knows " + open({state:?}).read(), "seen": open({state:?}).read()}}
@tool(init=look)
def know(ctx) -> str:
    return ctx.init["seen"]
"#
    );
    world.write("know.py", text);
    world.open().await;
    let described = |world: &World| {
        let view = world.crib.owners_view();
        view.get("know").unwrap().spec.description.clone()
    };
    assert_eq!(world.problems(), [""; 0]);
    assert_eq!(described(&world), "Knows one");
    std::fs::write(&state, "two").unwrap();
    world.reload().await;
    assert_eq!(described(&world), "Knows two");
    assert_eq!(world.output("know", json!({})).await, "two");
    std::fs::write(&state, "three").unwrap();
    let after = world.restarted().await;
    assert_eq!(described(&after), "Knows three");
    after.end_workers().await;
    world.end().await;
}

#[expect(clippy::disallowed_methods, reason = "make soak says so")]
pub fn soak() -> bool {
    std::env::var_os("TOOLCRIB_SOAK").is_some()
}

/// Reloads under load: no call in flight fails. A tenth of them by default.
#[tokio::test(flavor = "multi_thread")]
async fn reloads_under_load_fail_no_call() {
    let rounds = if soak() { 1_000 } else { 100 };
    let world = world();
    world.write("give.py", gives("0"));
    world.open().await;
    let stop = Arc::new(AtomicBool::new(false));
    let calls = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (crib, stop, calls) = (world.crib.clone(), stop.clone(), calls.clone());
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let call = through(crib.clone(), Context::noop(), "give", json!({}));
                    let outcome = call.await.unwrap();
                    assert!(!outcome.is_error, "{outcome:?}");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for round in 1..=rounds {
        world.write("give.py", gives(&round.to_string()));
        world.reload().await;
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(world.output("give", json!({})).await, rounds.to_string());
    assert!(calls.load(Ordering::Relaxed) >= rounds);
    world.end().await;
}
