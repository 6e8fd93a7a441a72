//! What must hold for everybody: root and ordinary users, with namespaces and without.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::ordinary::{ORDINARY, copy_binary, give, open_to_all, own_user};
use crate::support::processes::{all_gone, marked};
use crate::support::tool::{marker, workers, write_program};
use crate::support::{TestCrib, World, shell_tool};

/// Markers of the tools below, in this order.
struct Markers {
    warm: String,
    late: String,
    once: String,
    shell: String,
}

/// A warm tool, one that is stopped at its time, one with a process per call, and a shell tool: all leave daemons.
fn write_tools(world: &World) -> Markers {
    let markers = Markers {
        warm: marker(),
        late: marker(),
        once: marker(),
        shell: marker(),
    };
    write_program(world, "warm", &markers.warm, &["daemon"], json!({}));
    let short = json!({"timeoutMs": 1_500});
    write_program(world, "late", &markers.late, &["daemon"], short);
    let once = json!({"keepAlive": false});
    write_program(world, "once", &markers.once, &[], once);
    let m = &markers.shell;
    let script = format!("sh -c '(setsid sleep {m} &); (sleep {m} &); echo done'");
    world.write_tool("shell.json", shell_tool("shell", &script, json!({})));
    markers
}

async fn says(crib: &TestCrib, tool: &str, arguments: Value, output: &str) {
    let (status, outcome) = crib.call(tool, arguments).await;
    assert_eq!(
        (status, outcome["output"].as_str()),
        (200, Some(output)),
        "{tool}: {outcome}"
    );
}

async fn core_set(mut world: World, rung: &'static str) {
    world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
    let markers = write_tools(&world);
    let user = world.user.unwrap_or_else(own_user);
    if world.user.is_some() {
        open_to_all(&world.root());
        give(&world.root(), user);
    }
    world.run(&["trust"]).exits(0);
    let crib = world.serve();

    says(&crib, "warm", json!({"say": "hi"}), "said hi").await;
    let [worker] = workers(&markers.warm).try_into().unwrap();
    let folder = format!("/proc/{}", worker.pid);
    assert_eq!(Path::new(&folder).metadata().unwrap().uid(), user);
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/pid")).unwrap();
    let apart = namespace(&worker.pid.to_string()) != namespace("self");
    // Where the machine gives no namespaces, A is B.
    assert!(rung == "A" || !apart);
    let _ = writeln!(
        std::io::stderr(),
        "user {user}, rung {rung}: a namespace of its own: {apart}"
    );

    let (status, error) = crib.call("late", json!({"sleep": 600})).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (504, &json!("timed_out")),
        "{error}"
    );
    all_gone(&markers.late).await;

    says(&crib, "once", json!({"daemon": true}), "said nothing").await;
    all_gone(&markers.once).await;
    says(&crib, "shell", json!({}), "done\n").await;
    all_gone(&markers.shell).await;

    let again = crib.call("late", json!({})).await;
    assert_eq!(again.0, 200, "{again:?}");
    assert!(worker.is_alive() && marked(&markers.warm).len() >= 2);
    crib.kill();
    all_gone(&markers.warm).await;
    all_gone(&markers.late).await;
}

#[tokio::test]
async fn who_runs_the_tests_with_namespaces() {
    core_set(World::new(), "A").await;
}

#[tokio::test]
async fn who_runs_the_tests_without_namespaces() {
    core_set(World::new(), "B").await;
}

/// Where the tests are an ordinary user's already, the two above are enough.
#[tokio::test]
async fn an_ordinary_user_with_namespaces_and_without() {
    if own_user() != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let binary = copy_binary(folder.path());
    for rung in ["A", "B"] {
        let mut world = World::new();
        world.binary = binary.clone();
        world.user = Some(ORDINARY);
        core_set(world, rung).await;
    }
}
