//! Under load, workers, launchers and the crib itself are killed at random: every call gets an answer while the crib
//! lives, nothing outlives its owner, nothing is leaked.

use std::collections::HashSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::processes::{Process, all_gone, marked, resident};
use crate::support::tool::{marker, workers, write_program};
use crate::support::{
    TestCrib, World, count_descriptors, descendants, eventually, shell_tool, soak,
};

const CALLERS: usize = 8;
const POOL: usize = 3;
/// No call may take longer; the tools need milliseconds.
const HANGS: Duration = Duration::from_secs(25);
/// How long nothing may outlive its owner.
const LIMIT: Duration = Duration::from_secs(5);

/// Numbers that are the same in every run of the same seed. Told when the test fails.
struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice { seed, state: seed }
    }

    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % sides
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        (!of.is_empty()).then(|| of[self.roll(of.len())].clone())
    }

    async fn pause(&mut self, most_ms: usize) {
        let pause = Duration::from_millis(self.roll(most_ms) as u64);
        // sleeps: chaos strikes at moments that nobody chose
        tokio::time::sleep(pause).await;
    }
}

impl Drop for Dice {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = writeln!(std::io::stderr(), "the seed was {:#x}", self.seed);
        }
    }
}

/// What callers and the killer know of the crib.
#[derive(Default)]
struct Scene {
    /// The crib's number and address; none while it is dead.
    crib: Mutex<(u64, Option<String>)>,
    /// The number of the last crib that was killed.
    killed: AtomicU64,
    over: AtomicBool,
    good: AtomicU64,
    /// Calls that ended with a kill.
    failed: AtomicU64,
    /// Calls that ended with their crib.
    cut: AtomicU64,
}

/// Calls until it is over. Every call gets an answer that fits, or its crib was killed.
async fn caller(scene: Arc<Scene>, n: usize) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for count in 0.. {
        if scene.over.load(Ordering::SeqCst) {
            return;
        }
        let (number, url) = scene.crib.lock().unwrap().clone();
        let Some(url) = url else {
            // sleeps: how often it is looked at; nothing depends on it
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let said = format!("{n}-{count}");
        let (tool, output) = match n % 4 {
            3 => ("shell", format!("said {said}\n")),
            _ => ("echo", format!("said {said}")),
        };
        let request = client
            .post(format!("{url}/api/tools/{tool}/call"))
            .json(&json!({"arguments": {"say": said, "sleep": 0.002}}));
        let answer = tokio::time::timeout(HANGS, async {
            let answer = request.send().await?;
            let status = answer.status().as_u16();
            reqwest::Result::Ok((status, answer.json::<Value>().await?))
        });
        let kind = match answer.await {
            Err(_) => panic!("{tool} gave no answer within {HANGS:?}"),
            Ok(Err(error)) => {
                let killed = scene.killed.load(Ordering::SeqCst);
                assert!(killed >= number, "{tool} got no answer: {error:?}");
                &scene.cut
            }
            Ok(Ok((200, outcome))) if outcome["isError"] == false => {
                assert_eq!(outcome["output"], output, "another call's answer");
                &scene.good
            }
            Ok(Ok((status, view))) => {
                assert!(is_of_the_table(status, &view), "{tool}: {status} {view}");
                &scene.failed
            }
        };
        kind.fetch_add(1, Ordering::Relaxed);
    }
}

/// Is this what a call whose process was killed may be told?
fn is_of_the_table(status: u16, view: &Value) -> bool {
    matches!(
        (status, view["error"]["code"].as_str()),
        (200, None)
            | (429, Some("limit_reached"))
            | (502, Some("crashed"))
            | (503, Some("unavailable"))
            | (504, Some("timed_out"))
    )
}

/// Trees whose end was brought about, and when.
#[derive(Default)]
struct Doomed(Vec<(Instant, Vec<Process>)>);

impl Doomed {
    /// Kills a tool, its launcher, or what else keeps its tree together, and remembers that tree.
    fn kill_one(&mut self, dice: &mut Dice, crib: u32, marker: &str) {
        let all = marked(marker);
        let below = |process: &Process| process.is_launcher() && process.parent == crib;
        let launchers: HashSet<u32> = all.iter().filter(|p| below(p)).map(|p| p.pid).collect();
        let kind = dice.roll(10);
        let victims: Vec<Process> = all
            .into_iter()
            .filter(|process| match kind {
                0..4 => {
                    ["python3", "sh"].iter().any(|name| process.runs(name)) && process.is_tool()
                }
                4..7 => launchers.contains(&process.pid),
                _ => process.is_launcher() && launchers.contains(&process.parent),
            })
            .collect();
        let Some(victim) = dice.pick(&victims) else {
            return;
        };
        let mut top = victim.clone();
        while let Some(parent) = Process::read(top.parent).filter(Process::is_launcher) {
            top = parent;
        }
        let below = descendants(top.pid).into_iter().filter_map(Process::read);
        let mut tree: Vec<Process> = below.collect();
        // The sentry of a group is needed only when the launcher is gone.
        let sentry = kind >= 7 && descendants(victim.pid).is_empty();
        victim.kill();
        if !sentry {
            tree.extend([top, victim]);
            self.0.push((Instant::now(), tree));
        }
    }

    /// No tree lives longer than it may.
    fn check(&mut self) {
        self.0.retain(|(since, tree)| {
            let left: Vec<&Process> = tree.iter().filter(|process| process.is_alive()).collect();
            let late = since.elapsed() > LIMIT;
            assert!(
                left.is_empty() || !late,
                "after {LIMIT:?} there live {left:#?}"
            );
            !left.is_empty()
        });
    }
}

/// A project with an executable of three workers, each with a daemon, and a shell tool.
fn project(marker: &str, rung: &'static str) -> World {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
    write_program(
        &world,
        "echo",
        marker,
        &["daemon"],
        json!({"poolSize": POOL}),
    );
    let script = format!("sh -c 'sleep 0.01; echo said $0' {{{{say}}}} {marker}");
    let text = json!({"type": "string"});
    world.write_tool(
        "shell.json",
        shell_tool("shell", &script, json!({"say": text, "sleep": {}})),
    );
    world
}

/// How many descriptors the crib has when nothing goes on, with all workers warm.
async fn at_rest(crib: &mut TestCrib, marker: &str) -> usize {
    let calls = (0..POOL).map(|_| crib.call("echo", json!({"sleep": 0.5})));
    futures_util::future::join_all(calls).await;
    // Its connections go with it.
    crib.client = reqwest::Client::builder().no_proxy().build().unwrap();
    eventually("nothing but the pool runs", async || {
        workers(marker).len() == POOL && !marked(marker).iter().any(|process| process.runs("sh"))
    })
    .await;
    let mut least = usize::MAX;
    for _ in 0..50 {
        least = least.min(count_descriptors(crib.pid()));
        // sleeps: the least of many looks counts, because descriptors come and go
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    least
}

async fn works_again(crib: &TestCrib) {
    for tool in ["echo", "shell"] {
        eventually("a call works again", async || {
            let (status, outcome) = crib.call(tool, json!({"say": "x", "sleep": 0})).await;
            status == 200 && outcome["isError"] == false
        })
        .await;
    }
}

/// Callers that call until they are told to stop.
struct Load {
    scene: Arc<Scene>,
    callers: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn on(crib: &TestCrib) -> Load {
        let scene = Arc::new(Scene::default());
        *scene.crib.lock().unwrap() = (1, Some(crib.url.clone()));
        let callers = (0..CALLERS).map(|n| tokio::spawn(caller(scene.clone(), n)));
        Load {
            callers: callers.collect(),
            scene,
        }
    }

    /// Stops, and gives how many calls went well, failed, and ended with their crib.
    async fn end(self) -> [u64; 3] {
        self.scene.over.store(true, Ordering::SeqCst);
        for caller in self.callers {
            caller.await.unwrap();
        }
        let Scene {
            good, failed, cut, ..
        } = &*self.scene;
        [good, failed, cut].map(|count| count.load(Ordering::Relaxed))
    }
}

/// Kills workers and launchers of one crib.
async fn kill_below(seed: u64, rung: &'static str, rounds: usize, limit: Duration) {
    let (mut dice, begin, marker) = (Dice::new(seed), Instant::now(), marker());
    let world = project(&marker, rung);
    let mut crib = world.serve();
    let before = at_rest(&mut crib, &marker).await;
    let load = Load::on(&crib);
    let mut doomed = Doomed::default();
    let mut kills = 0;
    while kills < rounds && begin.elapsed() < limit {
        dice.pause(80).await;
        doomed.kill_one(&mut dice, crib.pid(), &marker);
        doomed.check();
        kills += 1;
    }
    while !doomed.0.is_empty() {
        // sleeps: how often it is looked at; `check` has the deadline
        tokio::time::sleep(Duration::from_millis(20)).await;
        doomed.check();
    }
    let counts = load.end().await;
    works_again(&crib).await;
    let after = at_rest(&mut crib, &marker).await;
    assert_eq!(crib.stop(), Some(0));
    all_gone(&marker).await;
    let _ = writeln!(
        std::io::stderr(),
        "rung {rung}: {kills} kills in {:.1?}; calls well, failed, cut: {counts:?}; descriptors {before}, then {after}",
        begin.elapsed()
    );
    assert_eq!(kills, rounds, "time was up");
    assert!(after <= before, "{before} descriptors became {after}");
    let [well, failed, cut] = counts;
    assert!(well > 0 && failed > 0 && cut == 0, "{counts:?}");
}

/// Kills one crib after the other, half of them together with something below.
async fn kill_cribs(seed: u64, rung: &'static str, rounds: usize, limit: Duration) {
    let (mut dice, begin, marker) = (Dice::new(seed), Instant::now(), marker());
    let world = project(&marker, rung);
    let mut crib = world.serve();
    let load = Load::on(&crib);
    let mut longest = Duration::ZERO;
    let mut number = 1;
    while number <= rounds as u64 && begin.elapsed() < limit {
        dice.pause(400).await;
        if dice.roll(2) == 0 {
            Doomed::default().kill_one(&mut dice, crib.pid(), &marker);
        }
        *load.scene.crib.lock().unwrap() = (number, None);
        load.scene.killed.store(number, Ordering::SeqCst);
        crib.kill();
        longest = longest.max(all_gone(&marker).await);
        number += 1;
        crib = world.serve();
        *load.scene.crib.lock().unwrap() = (number, Some(crib.url.clone()));
    }
    works_again(&crib).await;
    let counts = load.end().await;
    assert_eq!(crib.stop(), Some(0));
    all_gone(&marker).await;
    let _ = writeln!(
        std::io::stderr(),
        "rung {rung}: {} cribs in {:.1?}; calls well, failed, cut: {counts:?}; all gone after at most {longest:.0?}",
        number - 1,
        begin.elapsed()
    );
    assert!(number > rounds as u64, "time was up");
}

/// How long one of the tests below may take.
fn limit() -> Duration {
    Duration::from_secs(soak(270, 60) as u64)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_launchers_in_namespaces_are_killed() {
    kill_below(0x70_6f_6f_6c, "A", soak(240, 24), limit()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_and_launchers_in_groups_are_killed() {
    kill_below(0x6c_6f_6f_70, "B", soak(120, 12), limit()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cribs_with_namespaces_are_killed() {
    kill_cribs(0x63_72_69_62, "A", soak(60, 6), limit()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cribs_with_groups_are_killed() {
    kill_cribs(0x62_69_72_63, "B", soak(60, 4), limit()).await;
}

#[tokio::test]
async fn many_calls_take_no_memory_and_one_worker() {
    let (calls, marker) = (soak(20_000, 2_000), marker());
    let world = World::trusted();
    write_program(&world, "echo", &marker, &[], json!({}));
    let crib = world.serve();
    let begin = Instant::now();
    let mut seen: HashSet<Process> = HashSet::new();
    let mut warm = 0;
    for call in 1..=calls {
        let (status, outcome) = crib.call("echo", json!({"say": "x"})).await;
        assert_eq!((status, &outcome["output"]), (200, &json!("said x")));
        if call == calls / 10 {
            warm = resident(crib.pid());
        }
        if call % 100 == 0 {
            seen.extend(workers(&marker));
        }
    }
    let grown = resident(crib.pid()) as i64 - warm as i64;
    let _ = writeln!(
        std::io::stderr(),
        "{calls} calls in {:.1?}: {warm} kB and {grown} kB more at the end, {} workers",
        begin.elapsed(),
        seen.len()
    );
    assert!(grown < 4 * 1_024, "{warm} kB grew by {grown} kB");
    // A worker is replaced after ten thousand calls.
    assert!(seen.len() <= 1 + calls / 10_000, "{seen:#?}");
    assert_eq!(crib.stop(), Some(0));
    all_gone(&marker).await;
}
