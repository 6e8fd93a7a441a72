//! What middleware costs: a call that gives 1 kB, in a chain without any and in one with all, counted in a store.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib_core::counter::{CountVerdict, CounterSteps};
use toolcrib_core::middleware::Books;
use toolcrib_core::store::{Counters, StoreError};
use toolcrib_core::{
    Access, BoxFuture, Call, CallResult, Caller, CallerLimits, ChainSettings, Context, Crib,
    ListedLink, MiddlewareTable, Object, Outcome, OutputId, Outputs, Page, Profiles, Rank, Request,
    Run, Schema, SourceKey, SourceKind, Spec, Spool, Tool, ToolName, Update, Whole,
};
use toolcrib_store::{Store, StoreUrl};

use crate::stats::{Samples, verdict};

const CALLS: usize = 5_000;
/// Blocks of calls alternate, so that noise meets all.
const BLOCKS: usize = 10;
const AIM: Duration = Duration::from_micros(30);

/// Gives a kilobyte of clean text.
struct Kilobyte(String);

impl Run for Kilobyte {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(std::future::ready(Ok(Outcome::text(self.0.clone()))))
    }
}

struct NoOutputs;

fn none<'a, T: Send + 'a>() -> BoxFuture<'a, io::Result<T>> {
    Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
}

impl Outputs for NoOutputs {
    fn keep<'a>(&'a self, _: &'a str, _: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        none()
    }

    fn spool<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        none()
    }

    fn read<'a>(
        &'a self,
        _: &'a str,
        _: &'a OutputId,
        _: u64,
        _: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        none()
    }

    fn remove<'a>(&'a self, _: &'a str, _: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        none()
    }
}

struct InStore(Store);

impl Counters for InStore {
    fn ask(&self, steps: CounterSteps) -> BoxFuture<'_, Result<CountVerdict, StoreError>> {
        Box::pin(self.0.count(steps))
    }

    fn tell(&self, steps: CounterSteps) {
        self.0.count_later(steps);
    }
}

/// A crib whose calls pass these tables, and these limits.
fn crib(store: &Store, tables: &[Value], limits: CallerLimits) -> Option<Crib> {
    let mut settings = ChainSettings::new(Duration::from_secs(5));
    if limits != CallerLimits::default() {
        settings.limits.agents.insert("default".to_owned(), limits);
    }
    for table in tables {
        let table: MiddlewareTable = serde_json::from_value(table.clone()).ok()?;
        settings.middleware.push(ListedLink::read(&table).ok()?);
    }
    let books = Books {
        counters: Some(Arc::new(InStore(store.clone()))),
        ..Books::default()
    };
    let profiles = Profiles::everybody(settings);
    let crib = Crib::with_books(Arc::new(NoOutputs), toolcrib::now_ms, profiles, books);
    let spec = Spec::new(ToolName::new("look").ok()?, "Looks", Schema::any_object());
    let run = Arc::new(Kilobyte("It was the best of times. ".repeat(39)));
    crib.apply(vec![Update {
        key: SourceKey("builtin".into()),
        rank: Rank::Builtin,
        file: None,
        tools: vec![Arc::new(Tool::new(
            spec,
            SourceKind::Builtin,
            Access::Open,
            "h",
            run,
        ))],
        problems: Vec::new(),
    }]);
    Some(crib)
}

async fn block(crib: &Crib, samples: &mut Samples) -> bool {
    let view = crib.view("default");
    for _ in 0..CALLS / BLOCKS {
        let start = Instant::now();
        let called = view.call(Request {
            tool: "look".to_owned(),
            arguments: Object::default(),
            caller: Caller::new("bench"),
            context: Context::new("0001"),
        });
        if called.await.is_err() {
            return false;
        }
        samples.push(start.elapsed());
    }
    true
}

async fn measure() -> Option<()> {
    let folder = tempfile::tempdir().ok()?;
    let url = StoreUrl::sqlite(folder.path().join("toolcrib.db"));
    let store = Store::open(&url).await.ok()?;
    let pii = json!({"name": "pii", "pii_types": ["email", "phone", "credit_card", "iban", "ip", "mac_address", "url", "ssn", "api_key"]});
    let retry = json!({"name": "tool_retry"});
    let calls = json!({"name": "tool_call_limit", "run_limit": 1_000_000});
    let limits = CallerLimits {
        calls_per_minute: Some(10_000_000),
        concurrency: Some(100),
        output_bytes_per_day: Some(1 << 50),
    };
    let no = CallerLimits::default();
    let chains = [
        ("no middleware", crib(&store, &[], no)?),
        (
            "tool_retry",
            crib(&store, std::slice::from_ref(&retry), no)?,
        ),
        (
            "pii, every type",
            crib(&store, std::slice::from_ref(&pii), no)?,
        ),
        (
            "tool_call_limit",
            crib(&store, std::slice::from_ref(&calls), no)?,
        ),
        (
            "all of them",
            crib(&store, &[pii.clone(), retry.clone(), calls.clone()], no)?,
        ),
        ("and [limits]", crib(&store, &[pii, retry, calls], limits)?),
    ];
    let mut samples: Vec<Samples> = chains.iter().map(|_| Samples::default()).collect();
    for (_, crib) in &chains {
        block(crib, &mut Samples::default()).await.then_some(())?;
    }
    for _ in 0..BLOCKS {
        for ((_, crib), samples) in chains.iter().zip(&mut samples) {
            block(crib, samples).await.then_some(())?;
        }
    }
    println!("\nmiddleware: a call that gives 1 kB, {CALLS} times, counters in a file");
    let floor = samples[0].at(50);
    for ((name, _), samples) in chains.iter().zip(&samples) {
        let more = samples.at(50).saturating_sub(floor);
        println!("  {name:<20} {}  +{more:.1?}", samples.line());
    }
    let more = samples[4].at(50).saturating_sub(floor);
    println!(
        "  all of them at p50: {more:.1?} more (aim ≤ {AIM:?}): {}",
        verdict(more <= AIM)
    );
    store.close().await;
    Some(())
}

pub fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let measured = runtime.ok().and_then(|runtime| runtime.block_on(measure()));
    if measured.is_none() {
        println!("middleware: could not be measured");
    }
}
