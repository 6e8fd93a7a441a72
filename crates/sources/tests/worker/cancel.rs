//! A call dropped at every point at which it can be: nothing is leaked, whatever it was waiting for.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use serde_json::json;
use toolcrib_core::CallResult;

use crate::program::{python, python_1_1};
use crate::world::{World, eventually, limits};

/// Polls a call at most `polls` times, with everything that goes on beside it in between, then drops it.
async fn polled(polls: usize, call: impl Future<Output = CallResult>) -> Option<CallResult> {
    let mut call = pin!(call);
    let mut left = polls;
    poll_fn(|context| match call.as_mut().poll(context) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if left <= 1 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Drops calls after their first, second, … poll until one gets to its end, and looks after each at what is left.
async fn dropped_everywhere(world: &World, warm: bool) {
    for polls in 1..1_000 {
        if warm {
            world.output("tool", json!({})).await;
        } else {
            // A new text has new workers. One that takes over from another would have one at once.
            std::fs::remove_file(world.tools().join("tool/tool.json")).unwrap();
            world.reload().await;
            world.manifest("tool", json!({"poolSize": 2, "metadata": {"round": polls}}));
            world.reload().await;
            world.nothing_runs().await;
        }
        world.events();
        let ended = polled(polls, world.call("tool", json!({"text": "first"}))).await;
        match &ended {
            None => {
                let told = world.event("tool.failed tool cancelled").await;
                assert!(told.contains(&"tool.start tool".to_owned()), "{told:?}");
            }
            Some(result) => {
                assert_eq!(result.as_ref().unwrap().output, "first");
                world.event("tool.complete tool").await;
            }
        }
        // The pool serves as many calls at once as it has seats: none was lost, no answer is another call's.
        let both = [("a", "b"), ("b", "a")].map(|(mine, other)| {
            world.begin("tool", json!({"text": mine, "meet": format!("{polls}{other}"), "at": format!("{polls}{mine}")}))
        });
        for (call, text) in both.into_iter().zip(["a", "b"]) {
            assert_eq!(call.await.unwrap().unwrap().output, text);
        }
        // Two workers, each with a launcher, its first process and the tool.
        eventually("only the pool's own workers are left", || {
            world.processes().len() <= 6
        })
        .await;
        if ended.is_some() {
            assert!(polls > 1, "a call waits somewhere");
            return;
        }
    }
    panic!("the call never ends");
}

/// A call that is told to meets another: each waits until the other is there.
const MEETING: &str = r#"
def work(id, params):
    given = params["input"]
    if "meet" in given:
        mark(given["at"])
        wait_for(given["meet"])
    answer(id, given.get("text", "done"))"#;

async fn world_of(program: String) -> World {
    let world = World::alone(limits());
    world.write("tool/program.py", program);
    world.manifest("tool", json!({"poolSize": 2}));
    world.open().await;
    world
}

fn v1_0() -> String {
    python("tool", &format!("{MEETING}\nexecute = work"))
}

fn v1_1() -> String {
    let cancel = "CANCELLED = set()\ndef notice(method, params): answer(params['id'], 'cancelled')";
    python_1_1("tool", 1, &format!("{MEETING}\nrun = work\n{cancel}"))
}

#[tokio::test]
async fn warm_1_0() {
    let world = world_of(v1_0()).await;
    dropped_everywhere(&world, true).await;
    world.end().await;
}

#[tokio::test]
async fn cold_1_0() {
    let world = world_of(v1_0()).await;
    dropped_everywhere(&world, false).await;
    world.end().await;
}

#[tokio::test]
async fn warm_1_1() {
    let world = world_of(v1_1()).await;
    dropped_everywhere(&world, true).await;
    world.end().await;
}

#[tokio::test]
async fn cold_1_1() {
    let world = world_of(v1_1()).await;
    dropped_everywhere(&world, false).await;
    world.end().await;
}

/// The same while the only seat is taken: the call is dropped in the queue.
#[tokio::test]
async fn in_the_queue() {
    let world = World::alone(limits());
    world.folder("tool", json!({}), &format!("{MEETING}\nexecute = work"));
    world.open().await;
    let holder = world.begin("tool", json!({"meet": "go", "at": "held"}));
    world.seen("held").await;
    for polls in 1..20 {
        let ended = polled(polls.min(1), world.call("tool", json!({}))).await;
        assert!(ended.is_none());
    }
    world.give("go");
    assert_eq!(holder.await.unwrap().unwrap().output, "done");
    assert_eq!(world.output("tool", json!({"text": "next"})).await, "next");
    let spawned = world
        .events()
        .into_iter()
        .filter(|event| event.starts_with("worker."));
    assert_eq!(spawned.count(), 1, "nobody ended or started another");
    world.end().await;
}
