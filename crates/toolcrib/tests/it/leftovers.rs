//! What a crib leaves that is killed, where tools have a folder on the disk (rung B): the next one removes it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::{TestCrib, World, eventually, shell_tool, signal};

/// A project on rung B, whose tools have their folders here.
fn world(tmp: &Path) -> World {
    let mut world = World::trusted();
    world.vars.push(("TMPDIR", tmp.display().to_string()));
    world.vars.push(("TOOLCRIB_MAX_RUNG", "B".to_owned()));
    world
}

fn inside(tmp: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(tmp).unwrap().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// As if all in it had been made some time ago: what is new may be somebody's who has not locked it yet.
fn age(folders: &[PathBuf]) {
    let ago = SystemTime::now() - Duration::from_secs(600);
    for folder in folders {
        let folder = std::fs::File::open(folder).unwrap();
        folder.set_modified(ago).unwrap();
    }
}

const WORKER: &str = r#"
from toolcrib import tool
@tool
def say() -> str:
    'Says it, and keeps a file.'
    import os
    os.makedirs(os.path.join(os.environ['HOME'], 'deep', 'er'), exist_ok=True)
    open(os.path.join(os.environ['TMPDIR'], 'kept'), 'w').write('x')
    return 'hi'
"#;

/// Serves a tool that has a folder with something in it.
async fn with_folder(world: &World) -> TestCrib {
    world.write_tool("say.py", WORKER);
    let crib = world.serve();
    assert_eq!(crib.output_of("say").await, "hi");
    crib
}

async fn killed(crib: TestCrib) {
    signal(crib.pid(), libc::SIGKILL);
    crib.wait();
}

#[tokio::test]
async fn the_next_crib_that_serves_removes_it_and_nothing_that_is_in_use() {
    let tmp = tempfile::tempdir().unwrap();
    let (gone, living) = (world(tmp.path()), world(tmp.path()));
    let killed_one = with_folder(&gone).await;
    let left = inside(tmp.path());
    assert!(!left.is_empty(), "the tool has a folder there");
    let crib = with_folder(&living).await;
    let used: Vec<_> = inside(tmp.path());
    let used: Vec<_> = used.into_iter().filter(|one| !left.contains(one)).collect();
    assert!(!used.is_empty());
    killed(killed_one).await;
    let foreign = ["toolcrib-file", "somebody-else"].map(|name| tmp.path().join(name));
    std::fs::write(&foreign[0], "x").unwrap();
    std::fs::create_dir(&foreign[1]).unwrap();
    age(&inside(tmp.path()));
    // It has no tool that would make a folder.
    let next = world(tmp.path());
    let _next = next.serve();
    eventually("it is gone", async || {
        left.iter().all(|folder| !folder.exists())
    })
    .await;
    let stays = |one: &PathBuf| one.exists();
    assert!(
        used.iter().all(stays) && foreign.iter().all(stays),
        "{:?}",
        inside(tmp.path())
    );
    assert_eq!(crib.output_of("say").await, "hi");
}

#[tokio::test]
async fn a_command_that_starts_a_tool_removes_it_too() {
    let tmp = tempfile::tempdir().unwrap();
    let world = world(tmp.path());
    let crib = with_folder(&world).await;
    let left = inside(tmp.path());
    killed(crib).await;
    age(&left);
    world.write_tool("echo.json", shell_tool("echo", "echo hi", json!({})));
    eventually("it is gone", async || {
        world.run(&["call", "echo"]).exits(0);
        left.iter().all(|folder| !folder.exists())
    })
    .await;
    assert_eq!(inside(tmp.path()), [] as [PathBuf; 0]);
}
