//! Postgres under a crib that serves: stopped, frozen, restarted, replaced, cut off, and what callers see of it.

#![expect(clippy::print_stderr, reason = "the table of what callers saw")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::postgres::{Order, Postgres};
use crate::support::{PATIENCE, TestCrib, World, answer, shell_tool, soak};

/// No caller waits longer, but for what needs the store.
const LONGEST: Duration = Duration::from_secs(2);
/// What callers see is counted with two busy loops beside it, too: what hangs takes ten seconds and more.
const CLEARLY_LONGER: Duration = Duration::from_secs(6);
const CALLERS: usize = 4;

/// What one kind of caller saw while something was wrong.
#[derive(Debug, Default, Clone)]
struct Seen {
    answers: usize,
    failed: usize,
    /// What the first failure said.
    first: Option<String>,
    longest: Duration,
}

/// Callers that go on calling, each as fast as it is answered.
struct Load {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Load {
    fn start(crib: &TestCrib) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let one = |n: usize| {
            let (stop, seen) = (stop.clone(), Arc::clone(&seen));
            let client = crib.client.clone();
            // A tool that needs the project's trust, and one that needs a grant besides.
            let tool = ["own", "granted"][n % 2];
            let url = format!("{}/api/tools/{tool}/call", crib.url);
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    let sent = client.post(&url).json(&json!({"arguments": {}})).send();
                    let said = answer(sent.await.unwrap()).await;
                    let mut seen = seen.lock().unwrap();
                    seen.answers += 1;
                    seen.longest = seen.longest.max(began.elapsed());
                    if said.0 != 200 || said.1["isError"] != json!(false) {
                        seen.failed += 1;
                        seen.first.get_or_insert(said.1.to_string());
                    }
                }
            })
        };
        let tasks = (0..CALLERS).map(one).collect();
        Load { stop, seen, tasks }
    }

    /// What was seen since the last time.
    fn take(&self) -> Seen {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    async fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.unwrap();
        }
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

struct Scene {
    world: World,
    server: Postgres,
    token: String,
}

impl Scene {
    fn new() -> Scene {
        let server = Postgres::start();
        let mut world = World::new();
        world
            .vars
            .push(("TOOLCRIB_STORE", server.url("postgres").clone()));
        world.write_tool("own.json", shell_tool("own", "echo hi", json!({})));
        let mut granted: serde_json::Value =
            serde_json::from_str(&shell_tool("granted", "echo hi", json!({}))).unwrap();
        granted["permissions"] = json!({"env": ["HOME"]});
        world.write_tool("granted.json", granted.to_string());
        world.run(&["trust"]).exits(0);
        let token = world.token("ci", "call,read,manage");
        Scene {
            world,
            server,
            token,
        }
    }

    fn serve(&self) -> TestCrib {
        let mut crib = self.world.serve_closed();
        crib.show(Some(&self.token));
        crib
    }
}

/// How long it takes until `/readyz` says this.
async fn until_ready_says(crib: &TestCrib, status: &str) -> Duration {
    let began = Instant::now();
    while crib.ready().await.0 != status {
        assert!(began.elapsed() < PATIENCE, "never {status}");
        // sleeps: how often it is looked at; nothing depends on it
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

/// Callers who are known, and the socket's, see nothing of it; who needs the store hears that it is the store.
async fn holds_through(scene: &Scene, crib: &TestCrib, load: &Load, what: &str, wrong: Order) {
    load.take();
    scene.server.tell(wrong);
    let degraded = until_ready_says(crib, "degraded").await;
    let began = Instant::now();
    let (status, said) = crib.get("/calls").await;
    let needs_store = began.elapsed();
    assert_eq!(
        (status, &said["error"]["code"]),
        (503, &json!("unavailable"))
    );
    assert!(said.to_string().contains("store"), "{said}");
    let stranger = format!("tcrib_{}", "0".repeat(64));
    let began = Instant::now();
    let asked = crib.client.get(format!("{}/api/tools", crib.url));
    let (status, said) = answer(asked.bearer_auth(stranger).send().await.unwrap()).await;
    let unknown = began.elapsed();
    assert_eq!(status, 503, "{said}");
    assert!(said.to_string().contains("store"), "{said}");
    let began = Instant::now();
    let ran = scene.world.run(&["call", "own"]).exits(0);
    assert_eq!(ran.stdout, "hi\n");
    let socket = began.elapsed();
    let seen = load.take();
    assert_eq!((seen.failed, seen.first), (0, None), "{what}");
    assert!(seen.answers > 0, "{what}");
    eprintln!(
        "| {what} | {} calls, none failed, longest {:?} | degraded after {degraded:?} | needs the store: 503 after \
         {needs_store:?} | unknown token: 503 after {unknown:?} | socket {socket:?} |",
        seen.answers, seen.longest
    );
    let longest = if soak(1, 0) == 1 {
        LONGEST
    } else {
        CLEARLY_LONGER
    };
    for took in [degraded, needs_store, unknown, socket, seen.longest] {
        assert!(took < longest, "{what}: {took:?}");
    }
}

async fn comes_back(crib: &TestCrib, what: &str) {
    let ready = until_ready_says(crib, "ready").await;
    let (status, _) = crib.get("/calls").await;
    assert_eq!(status, 200);
    eprintln!("| {what} | ready after {ready:?} |");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_postgres_is_seen_by_those_who_need_it_only() {
    let scene = Scene::new();
    let crib = scene.serve();
    let load = Load::start(&crib);
    // Who calls is known from the first answer on.
    crate::support::eventually("they call", async || {
        load.seen.lock().unwrap().answers > 10 * CALLERS
    })
    .await;
    let rounds = soak(5, 1);
    for _ in 0..rounds {
        for (what, wrong, mended) in [
            ("stopped", Order::Stop, Order::Start),
            ("frozen", Order::Freeze, Order::Thaw),
        ] {
            holds_through(&scene, &crib, &load, what, wrong).await;
            scene.server.tell(mended);
            comes_back(&crib, what).await;
        }
        // Restarted, and its connections cut one by one: whoever is known sees nothing of it.
        load.take();
        scene.server.tell(Order::Stop);
        scene.server.tell(Order::Start);
        comes_back(&crib, "restarted").await;
        for _ in 0..20 {
            scene.server.tell(Order::Cut);
        }
        comes_back(&crib, "cut one by one").await;
        let seen = load.take();
        assert_eq!((seen.failed, seen.first), (0, None));
        eprintln!(
            "| restarted, cut | {} calls, longest {:?} |",
            seen.answers, seen.longest
        );
    }
    // A revocation that is known counts at once, and for good.
    let (_, made) = crib
        .post("/tokens", json!({"name": "gone", "scopes": ["read"]}))
        .await;
    let gone = made["token"].as_str().unwrap();
    let url = format!("{}/api/tools", crib.url);
    let show = || crib.client.get(&url).bearer_auth(gone).send();
    assert_eq!(show().await.unwrap().status(), 200);
    scene.world.run(&["token", "revoke", "gone"]).exits(0);
    crate::support::eventually("it is refused", async || {
        show().await.unwrap().status() == 401
    })
    .await;
    assert_eq!(crib.get("/tools").await.0, 200);
    // Another server in its place holds nothing, and is not taken for ours: nothing is made there.
    holds_through(
        &scene,
        &crib,
        &load,
        "replaced by an empty one",
        Order::Empty,
    )
    .await;
    assert_ne!(show().await.unwrap().status(), 200);
    // It was noticed while there was none; what the one in its place is, is seen at the next try.
    crate::support::eventually("the reason is that it holds nothing of ours", async || {
        crib.ready().await.1.contains("no tables of Toolcrib")
    })
    .await;
    let seen = load.end().await;
    assert_eq!((seen.failed, seen.first), (0, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_counts_for_its_time_and_the_store_is_the_reason() {
    let mut scene = Scene::new();
    scene
        .world
        .vars
        .push(("TOOLCRIB_STORE_GRACE", "3000".to_owned()));
    let crib = scene.serve();
    assert_eq!(crib.output_of("own").await, "hi");
    scene.server.tell(Order::Stop);
    crate::support::eventually("the token counts no more", async || {
        let (status, said) = crib.get("/tools").await;
        assert!(
            status == 200 || said.to_string().contains("store"),
            "{said}"
        );
        status == 503
    })
    .await;
    // The socket needs no token, and no longer knows whether the project is trusted: it does not say that it isn't.
    let said = Mutex::new(String::new());
    crate::support::eventually("trust counts no more", async || {
        let ran = scene.world.run(&["call", "own"]);
        *said.lock().unwrap() = ran.stderr;
        ran.code != 0
    })
    .await;
    let said = said.into_inner().unwrap();
    assert!(
        said.contains("not known") && said.contains("store"),
        "{said}"
    );
    scene.server.tell(Order::Start);
    crib.becomes("ready").await;
    crate::support::eventually("all counts again", async || {
        crib.call("own", json!({})).await.0 == 200
    })
    .await;
    assert_eq!(crib.call("granted", json!({})).await.0, 200);
}
