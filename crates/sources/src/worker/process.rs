//! One worker: a process that was greeted and can be asked.
//!
//! Three tasks live with it: one reads its stdout and hands answers to whoever waits for them, one reads its stderr, and
//! one keeps the process and sees to its end. Dropping a [`Worker`] kills the process and all below it.

mod ending;
mod reading;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use toolcrib_core::{Context, Event, Hidden, Json, Mask};
use toolcrib_sandbox::{Denial, Stdin};

use super::Recipe;
use super::fault::{Ending, Fault};
use super::log::Ring;
use super::message::{Outgoing, RpcError, SUPPORTED};
use super::patience::patiently;
use super::pool::Turn;
use super::workers::WorkerContext;

/// How long a process that has closed its stdout may take to end by itself, so that its exit code is known.
const LAST_BREATH: Duration = Duration::from_millis(200);
/// The most calls that a worker may declare to take at once.
const MAX_CONCURRENCY: u64 = 64;

type Answer = Result<Result<Json, RpcError>, Arc<Ending>>;

/// What should become of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Live,
    /// Asked to end, killed after a grace.
    End,
    Die,
}

pub struct Worker {
    /// What it answered to `initialize`.
    hello: OnceLock<Hello>,
    stdin: tokio::sync::Mutex<Stdin>,
    desk: Arc<Desk>,
    wish: watch::Sender<Wish>,
    /// Its launcher's id.
    process: u32,
    next_id: AtomicU64,
    /// Tools whose call its end has counted against.
    counted: Mutex<HashSet<String>>,
}

/// What a worker said of itself.
#[derive(Debug)]
pub struct Hello {
    pub value: Value,
    /// How many calls it takes at once.
    pub concurrency: usize,
    /// Does it understand `cancel`?
    pub cancels: bool,
    /// Does it run one call at a time until that waits, and say so?
    pub turns: bool,
}

/// Where answers and their receivers meet.
struct Desk {
    name: String,
    /// What its log is called.
    log: String,
    inbox: Mutex<Inbox>,
    ring: Ring,
    ended: watch::Sender<Option<Arc<Ending>>>,
    /// Why we ended it, where it is to blame.
    blame: OnceLock<&'static str>,
    ground: Arc<WorkerContext>,
    mask: Mask,
    /// How much memory in megabytes, and how many processes, it may have.
    most: (u64, u32),
    /// Hosts that it asked for and may not reach.
    denials: Mutex<mpsc::Receiver<Denial>>,
    /// Is it a shell script that starts other programs, and may not?
    hindered: bool,
}

/// How many hosts that were refused are remembered.
const DENIALS: usize = 8;

#[derive(Default)]
struct Inbox {
    waiting: HashMap<u64, Waiting>,
    /// Calls whose callers went away before the answer came.
    given_up: Vec<GivenUp>,
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    context: Option<Context>,
    /// Until it is answered or waits, where its worker takes turns.
    turn: Option<Turn>,
}

/// A call that nobody waits for any more, and the answer that may still come.
pub struct GivenUp {
    pub id: u64,
    pub answer: oneshot::Receiver<Answer>,
}

impl Worker {
    /// Starts a process and greets it. What it is handed is hidden from then on.
    pub async fn start(
        name: &str,
        recipe: &Recipe,
        hidden: &Hidden,
        ground: &Arc<WorkerContext>,
    ) -> Result<Worker, Fault> {
        let place = ground.room().await?;
        let secrets = recipe.read_secrets().await.map_err(Fault::Secret)?;
        hidden.add(secrets.iter().map(|(_, value)| value.as_str()));
        let (denied, denials) = mpsc::channel(DENIALS);
        tracing::debug!(tool = name, "spawn");
        let mut command = recipe.command();
        for (variable, value) in secrets {
            command = command.var(variable, value);
        }
        let mut child = command
            .tell_denied(denied)
            .spawn(&ground.launcher, &ground.environment)
            .await
            .map_err(Fault::Start)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            let error = std::io::Error::other("the process has no pipes");
            return Err(Fault::Start(error.into()));
        };
        let process = child.launcher_id().unwrap_or_default();
        let desk = Arc::new(Desk {
            name: name.to_owned(),
            log: recipe.name.clone(),
            inbox: Mutex::default(),
            ring: Ring::default(),
            ended: watch::channel(None).0,
            blame: OnceLock::new(),
            ground: ground.clone(),
            mask: hidden.mask(),
            most: recipe
                .confinement
                .policy()
                .map_or((0, 0), |policy| (policy.memory_mb, policy.processes)),
            denials: Mutex::new(denials),
            hindered: recipe.is_hindered(),
        });
        tracing::info!(tool = name, process, "worker.spawn");
        ground.events.tell(Event::WorkerSpawn {
            tool: name.to_owned(),
            process,
        });
        let (wish, wishes) = watch::channel(Wish::Live);
        let (read, over) = oneshot::channel();
        let reading = desk.clone();
        tokio::spawn(async move {
            let _ = read.send(reading.read(stdout).await);
        });
        let (said, silent) = oneshot::channel();
        let listening = desk.clone();
        tokio::spawn(async move {
            listening.listen(stderr).await;
            let _ = said.send(());
        });
        let (keeping, running) = (desk.clone(), ground.run(place));
        tokio::spawn(async move {
            keeping.keep(process, child, over, silent, wishes).await;
            drop(running);
        });
        let worker = Worker {
            hello: OnceLock::new(),
            stdin: tokio::sync::Mutex::new(stdin),
            desk,
            wish,
            process,
            next_id: AtomicU64::new(1),
            counted: Mutex::default(),
        };
        worker.greet(recipe, ground.limits.handshake).await?;
        Ok(worker)
    }

    async fn greet(&self, recipe: &Recipe, limit: Duration) -> Result<(), Fault> {
        let mut params = json!({
            "protocolVersion": SUPPORTED[0],
            "supported": SUPPORTED,
            "capabilities": {},
            "clientInfo": {"name": "toolcrib", "version": env!("CARGO_PKG_VERSION")},
        });
        if let (Some(greeting), Value::Object(params)) = (&recipe.greeting, &mut params) {
            params.extend(greeting.0());
        }
        let start = Instant::now();
        let asked = self.request("initialize", &params, None);
        let answer = tokio::select! {
            answer = patiently(limit, asked) => answer.ok(),
            () = self.desk.kept_from_answering() => None,
        };
        let answer = match answer {
            Some(Err(Fault::Ended { how, .. })) => return Err(Fault::Unready(how)),
            Some(answer) => answer?,
            None => {
                let (ms, said) = (start.elapsed().as_millis(), self.desk.ring.tail());
                return Err(Fault::Handshake { ms, said });
            }
        };
        let mut value = answer.map_err(Fault::Refused)?.into_value();
        self.desk.mask.cover_value(&mut value);
        let hello = Hello::read(value).map_err(Fault::Greeting)?;
        let _ = self.hello.set(hello);
        Ok(())
    }

    /// The id of its launcher's process.
    pub fn process(&self) -> u32 {
        self.process
    }

    pub fn hello(&self) -> Option<&Hello> {
        self.hello.get()
    }

    /// The hosts that it asked for and may not reach, since this was last asked.
    pub fn denials(&self) -> Vec<Denial> {
        let mut denials = self
            .desk
            .denials
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| denials.try_recv().ok()).collect()
    }

    pub fn concurrency(&self) -> usize {
        self.hello().map_or(1, |hello| hello.concurrency)
    }

    pub fn takes_turns(&self) -> bool {
        self.hello().is_some_and(|hello| hello.turns)
    }

    /// Sends a request and waits for its answer. Dropping the future gives the request up: see [`Worker::given_up`].
    pub async fn request(
        &self,
        method: &str,
        params: impl Serialize,
        context: Option<Context>,
    ) -> Result<Result<Json, RpcError>, Fault> {
        self.request_in_turn(method, params, context, None).await
    }

    /// The same, with the turn that it has in a worker where one call runs at a time.
    pub async fn request_in_turn(
        &self,
        method: &str,
        params: impl Serialize,
        context: Option<Context>,
        turn: Option<Turn>,
    ) -> Result<Result<Json, RpcError>, Fault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let line = Outgoing::line(Some(&id.to_string()), method, params)
            .map_err(|error| Fault::Greeting(format!("could not be asked for: {error}")))?;
        let (answer, answered) = oneshot::channel();
        let lost = |how: &Arc<Ending>, reached| Fault::Ended {
            how: how.as_ref().clone(),
            reached,
        };
        {
            let mut inbox = self.desk.inbox();
            if let Some(how) = self.desk.ended.borrow().as_ref() {
                return Err(lost(how, false));
            }
            let waiting = Waiting {
                answer,
                context,
                turn,
            };
            inbox.waiting.insert(id, waiting);
        }
        let moment = self.desk.ring.now();
        let _request = Request {
            desk: &self.desk,
            id,
        };
        if self.write(&line).await.is_err() {
            // It has ended, or closed its stdin: what will be known soon says more than a broken pipe.
            let ended = tokio::time::timeout(LAST_BREATH, self.desk.ending()).await;
            let how = match ended {
                Ok(how) => how,
                Err(_) => {
                    let _ = self.desk.blame.set("closed its stdin and was stopped");
                    self.kill();
                    self.desk.ending().await
                }
            };
            return Err(lost(&how, false));
        }
        match answered.await {
            Ok(Ok(Err(mut error))) => {
                error.said = self.desk.said_since(moment).await.into();
                Ok(Err(error))
            }
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(how)) => Err(lost(&how, true)),
            Err(_) => Err(lost(&self.desk.ending().await, true)),
        }
    }

    /// A line that was begun and not finished makes all that follows unreadable, so the worker ends with it.
    async fn write(&self, line: &[u8]) -> std::io::Result<()> {
        struct Torn<'a>(Option<&'a Worker>);
        impl Drop for Torn<'_> {
            fn drop(&mut self) {
                if let Some(worker) = self.0 {
                    worker.kill();
                }
            }
        }
        let mut stdin = self.stdin.lock().await;
        let mut torn = Torn(Some(self));
        let written = stdin.write_all(line).await;
        torn.0 = None;
        written
    }

    /// Tells the worker that nobody waits for a call any more.
    pub async fn cancel(&self, id: u64) {
        let id = id.to_string();
        if let Ok(line) = Outgoing::line(None, "cancel", json!({"id": id})) {
            let _ = self.write(&line).await;
        }
    }

    /// A call of this worker that was given up and has not been seen to yet.
    pub fn given_up(&self) -> Option<GivenUp> {
        self.desk.inbox().given_up.pop()
    }

    /// True once: its end counts as one failure of a tool, however many of its calls it has ended.
    pub fn counts(&self, tool: &str) -> bool {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        counted.insert(tool.to_owned())
    }

    pub fn is_alive(&self) -> bool {
        self.desk.ended.borrow().is_none() && *self.wish.borrow() == Wish::Live
    }

    /// Asks the process to end and kills it after a grace.
    pub fn end(&self) {
        self.wish.send_if_modified(|wish| {
            let live = *wish == Wish::Live;
            if live {
                *wish = Wish::End;
            }
            live
        });
    }

    pub fn kill(&self) {
        self.wish.send_replace(Wish::Die);
    }

    /// Waits until the process and all below it are gone. Holds nothing of the worker, so that its stdin can close.
    pub fn ended(&self) -> impl Future<Output = Arc<Ending>> + use<> {
        let desk = self.desk.clone();
        async move { desk.ending().await }
    }
}

/// A request in flight; what is left of it when its caller goes away.
struct Request<'a> {
    desk: &'a Desk,
    id: u64,
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        let mut inbox = self.desk.inbox();
        if let Some(waiting) = inbox.waiting.get_mut(&self.id) {
            let (answer, answered) = oneshot::channel();
            waiting.answer = answer;
            waiting.context = None;
            inbox.given_up.push(GivenUp {
                id: self.id,
                answer: answered,
            });
        }
    }
}

impl Hello {
    fn read(value: Value) -> Result<Hello, String> {
        if !value.is_object() {
            return Err("is not an object".to_owned());
        }
        if value.get("serverInfo").is_some_and(Value::is_object) {
            return Err(
                "is an MCP server's; such servers can't be tools of a folder yet".to_owned(),
            );
        }
        let newer = value.get("protocolVersion").and_then(Value::as_str) == Some(SUPPORTED[1]);
        let concurrency = value.get("concurrency").and_then(Value::as_u64);
        let concurrency = concurrency.filter(|_| newer).unwrap_or(1);
        Ok(Hello {
            concurrency: concurrency.clamp(1, MAX_CONCURRENCY) as usize,
            cancels: newer,
            turns: newer && value.get("turns").and_then(Value::as_bool) == Some(true),
            value,
        })
    }
}

impl Desk {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ending(&self) -> Arc<Ending> {
        let mut ended = self.ended.subscribe();
        match ended.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(ending)) => ending.clone(),
            _ => Arc::new(Ending::of("ended")),
        }
    }
}
