//! Files of every kind, saved in every manner that editors have, while they are called: nothing of it is seen but the new
//! version.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::save::Manner;
use crate::support::tool::python;
use crate::support::{TestCrib, World, eventually, shell_tool, soak};

/// A tool file of which there are versions.
struct Versioned {
    tool: &'static str,
    file: &'static str,
    text: fn(u64) -> String,
}

/// One of each kind. Half of each is a file without its tool, or no file of its language at all.
const KINDS: [Versioned; 4] = [
    Versioned {
        tool: "plugin",
        file: "plugin.json",
        text: |n| shell_tool("plugin", &format!("echo {n}"), json!({})),
    },
    Versioned {
        tool: "snake",
        file: "snake.py",
        text: |n| {
            let long =
                "# A comment that makes the first half of this file hold nothing.\n".repeat(6);
            format!(
                "{long}from toolcrib import tool\n@tool\ndef snake() -> str:\n    'Says its version.'\n    return '{n}'\n"
            )
        },
    },
    Versioned {
        tool: "script",
        file: "script.mjs",
        text: |n| {
            format!(
                "const version = '{n}';\nexport default {{ description: 'Says its version', args: {{}}, execute: () => version }};\n"
            )
        },
    },
    Versioned {
        tool: "program",
        file: "program",
        text: |n| {
            PROGRAM
                .replace("PYTHON", python())
                .replace("VERSION", &n.to_string())
        },
    },
];

const PROGRAM: &str = r#"#!PYTHON
import json, sys
def answer(method):
    if method == "initialize":
        return {"name": "program", "description": "Says its version", "inputSchema": {"type": "object"}}
    return {"output": "VERSION"} if method == "execute" else {"status": "healthy"}
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked["method"])}), flush=True)
"#;

impl Versioned {
    fn path(&self, world: &World) -> PathBuf {
        world.tools_folder().join(self.file)
    }

    fn write(&self, world: &World, n: u64) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path(world);
        std::fs::write(&path, (self.text)(n)).unwrap();
        if self.tool == "program" {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }
    }

    /// Calls it, which must work, and gives its version.
    async fn version(&self, crib: &TestCrib, when: &str) -> u64 {
        let (status, outcome) = crib.call(self.tool, json!({})).await;
        let tool = self.tool;
        assert_eq!(status, 200, "{when}: {tool}: {outcome}");
        assert_eq!(outcome["isError"], false, "{when}: {tool}: {outcome}");
        let output = outcome["output"].as_str().unwrap().trim();
        output
            .parse()
            .unwrap_or_else(|_| panic!("{when}: {tool}: {outcome}"))
    }
}

async fn served(world: &World) -> TestCrib {
    for kind in &KINDS {
        kind.write(world, 0);
    }
    let crib = world.serve();
    for kind in &KINDS {
        assert_eq!(kind.version(&crib, "at first").await, 0);
    }
    crib
}

#[tokio::test]
async fn a_save_in_two_steps_takes_no_tool_away_and_tells_of_no_problem() {
    let world = World::trusted();
    let crib = served(&world).await;
    let mut events = crib.events().await;
    for (n, manner) in Manner::ALL.into_iter().enumerate() {
        for kind in &KINDS {
            let (n, path) = (n as u64 + 1, kind.path(&world));
            let when = format!("{manner:?}");
            let (text, saved) = ((kind.text)(n), AtomicBool::new(false));
            let save = async {
                manner.save(&path, &text, Duration::from_millis(20)).await;
                saved.store(true, Ordering::SeqCst);
            };
            let call = async {
                let mut version = 0;
                while version != n || !saved.load(Ordering::SeqCst) {
                    version = kind.version(&crib, &when).await;
                    assert!(version == n || version == n - 1, "{when}: {version}");
                }
            };
            tokio::join!(save, call);
        }
    }
    world.write_tool("last.json", "{ nonsense");
    // The first problem that was reported is the one that is meant.
    let problem = events.next("tool_error").await;
    let file = problem["file"].as_str().unwrap();
    assert!(file.ends_with("last.json"), "{problem}");
}

#[tokio::test]
async fn a_file_that_stays_broken_keeps_its_last_good_version_whatever_it_is() {
    let world = World::trusted();
    let crib = served(&world).await;
    for kind in &KINDS {
        let path = kind.path(&world);
        let broken = format!("{})(", (kind.text)(1));
        Manner::RenameOver
            .save(&path, &broken, Duration::ZERO)
            .await;
    }
    for kind in &KINDS {
        eventually("it is stale", async || {
            let (_, tool) = crib.get(&format!("/tools/{}", kind.tool)).await;
            tool["stale"] == true
        })
        .await;
        assert_eq!(kind.version(&crib, "broken").await, 0);
    }
    let (_, problems) = crib.get("/tools/errors").await;
    assert_eq!(
        problems["errors"].as_array().unwrap().len(),
        KINDS.len(),
        "{problems}"
    );
    for kind in &KINDS {
        let path = kind.path(&world);
        Manner::RenameOver
            .save(&path, &(kind.text)(2), Duration::ZERO)
            .await;
        eventually("the new version serves", async || {
            kind.version(&crib, "mended").await == 2
        })
        .await;
    }
    // Removed, they are gone.
    for kind in &KINDS {
        std::fs::remove_file(kind.path(&world)).unwrap();
        eventually("it is gone", async || {
            crib.status_of(kind.tool).await.is_none()
        })
        .await;
    }
}

#[tokio::test]
async fn a_burst_of_saves_is_one_change() {
    const SAVES: u64 = 30;
    let world = World::trusted();
    let crib = served(&world).await;
    let mut events = crib.events().await;
    let (kind, path) = (&KINDS[0], KINDS[0].path(&world));
    for n in 1..=SAVES {
        Manner::RenameOver
            .save(&path, &(kind.text)(n), Duration::ZERO)
            .await;
        // sleeps: the pace of the burst
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    eventually("the last version serves", async || {
        kind.version(&crib, "after the burst").await == SAVES
    })
    .await;
    world.write_tool("last.json", shell_tool("last", "echo", json!({})));
    let mut changes = 0;
    while events.next("tools_changed").await["added"] != json!(["last"]) {
        changes += 1;
    }
    // One, but for pauses that a busy machine makes.
    assert!(changes <= SAVES / 3, "{changes} changes");
}

/// How old a version may be that answers. A machine that does other things besides is given more.
fn oldest() -> Duration {
    Duration::from_secs(soak(2, 6) as u64)
}

/// When the save of each version was done.
type Saved = Mutex<Vec<(Instant, u64)>>;

fn newest_before(saved: &Saved, moment: Instant) -> u64 {
    let saved = saved.lock().unwrap();
    let versions = saved.iter().filter(|(at, _)| *at + oldest() <= moment);
    versions.map(|(_, n)| *n).max().unwrap_or(0)
}

#[tokio::test]
async fn reloads_under_load_fail_no_call() {
    let seconds = soak(60, 10) as u64;
    let world = World::trusted();
    let crib = served(&world).await;
    let done = AtomicBool::new(false);
    let saved: Vec<Saved> = KINDS.iter().map(|_| Saved::default()).collect();
    let end = Instant::now() + Duration::from_secs(seconds);
    let saver = async |(kind, saved): (&Versioned, &Saved)| {
        let path = kind.path(&world);
        let mut n = 0;
        while Instant::now() < end {
            n += 1;
            let manner = Manner::ALL[n as usize % Manner::ALL.len()];
            let pause = [20, 100, 300, 500][n as usize % 4];
            manner
                .save(&path, &(kind.text)(n), Duration::from_millis(pause))
                .await;
            saved.lock().unwrap().push((Instant::now(), n));
            // sleeps: five saves a second of all files together
            tokio::time::sleep(Duration::from_millis(800_u64.saturating_sub(pause))).await;
        }
        n
    };
    let calls = AtomicUsize::new(0);
    let caller = async |number: usize| {
        while !done.load(Ordering::SeqCst) {
            let place = (number + calls.fetch_add(1, Ordering::SeqCst)) % KINDS.len();
            let least = newest_before(&saved[place], Instant::now());
            let version = KINDS[place].version(&crib, "under load").await;
            assert!(
                version >= least,
                "{}: {version}, not {least}",
                KINDS[place].tool
            );
        }
    };
    let savers = async {
        let last = join_all(KINDS.iter().zip(&saved).map(saver)).await;
        done.store(true, Ordering::SeqCst);
        last
    };
    let (last, _) = tokio::join!(savers, join_all((0..16).map(caller)));
    for (kind, last) in KINDS.iter().zip(last) {
        eventually("the last version serves", async || {
            kind.version(&crib, "at the end").await == last
        })
        .await;
    }
    let (_, problems): (u16, Value) = crib.get("/tools/errors").await;
    assert_eq!(problems["errors"], json!([]));
    assert!(calls.load(Ordering::SeqCst) > 16);
}
