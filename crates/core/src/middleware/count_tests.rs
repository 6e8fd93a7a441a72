//! Limits as callers meet them, and as LangChain decides them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::profile::{ListedLink, MiddlewareTable};
use crate::store::{Counters, StoreError};
use crate::testing::{NoOutputs, builtins, request, tool};
use crate::{
    BoxFuture, Call, CallError, CallResult, CallerLimits, ChainSettings, Crib, ErrorCode, Limits,
    Outcome, Profiles, Request, Run,
};

/// Runs as it is told.
#[derive(Default)]
struct Puppet {
    runs: AtomicUsize,
    /// What is left to fail as if the tool had never been reached.
    unreached: AtomicUsize,
    waits: bool,
    go_on: Notify,
    output: String,
}

impl Run for Puppet {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let left = self.unreached.load(Ordering::Relaxed);
            if left > 0 {
                self.unreached.store(left - 1, Ordering::Relaxed);
                return Err(CallError::denied("not now").unreached());
            }
            self.runs.fetch_add(1, Ordering::Relaxed);
            if self.waits {
                self.go_on.notified().await;
            }
            Ok(Outcome::text(self.output.clone()))
        })
    }
}

fn listed(tables: &[Value]) -> Vec<ListedLink> {
    let read = |table: &Value| {
        let table: MiddlewareTable = serde_json::from_value(table.clone()).unwrap();
        ListedLink::read(&table).unwrap()
    };
    tables.iter().map(read).collect()
}

fn profiles(limits: CallerLimits, tables: &[Value]) -> Profiles {
    let mut all = Limits::default();
    if limits != CallerLimits::default() {
        all.agents = BTreeMap::from([("default".to_owned(), limits)]);
    }
    Profiles::everybody(ChainSettings {
        limits: all,
        middleware: listed(tables),
        ..ChainSettings::new(Duration::from_secs(5))
    })
}

/// Time as a test wants it; each test has a thread of its own.
static CLOCK: AtomicU64 = AtomicU64::new(1_700_000_000_000);

fn crib(limits: CallerLimits, tables: &[Value], puppet: Puppet) -> (Arc<Crib>, Arc<Puppet>) {
    let clock = || CLOCK.load(Ordering::Relaxed);
    let crib = Crib::new(Arc::new(NoOutputs), clock, profiles(limits, tables));
    let puppet = Arc::new(puppet);
    crib.apply(builtins(
        ["search", "fetch"].map(|name| tool(name, puppet.clone())),
    ));
    (Arc::new(crib), puppet)
}

fn per_minute(calls: u64) -> CallerLimits {
    CallerLimits {
        calls_per_minute: Some(calls),
        ..CallerLimits::default()
    }
}

fn at_a_time(concurrency: u64) -> CallerLimits {
    CallerLimits {
        concurrency: Some(concurrency),
        ..CallerLimits::default()
    }
}

fn ask(tool: &str, thread: &str, run: Option<&str>) -> Request {
    let mut request = request(tool, json!({}));
    request.context.thread = Some(thread.into());
    request.context.run = run.map(Arc::from);
    request
}

async fn code(crib: &Crib, request: Request) -> Option<ErrorCode> {
    crib.call(request).await.err().map(|error| error.code)
}

const LIMIT: Option<ErrorCode> = Some(ErrorCode::LimitReached);

#[tokio::test]
async fn limits_are_langchains() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("recorded/langchain.json")).unwrap();
    let cases = cases.iter().filter(|case| case["kind"] == "limit");
    let mut seen = 0;
    for (number, case) in cases.enumerate() {
        seen += 1;
        let mut table = case["parameters"].clone();
        table["name"] = "tool_call_limit".into();
        if let Some(why) = case["gives"].as_str() {
            let table: MiddlewareTable = serde_json::from_value(table).unwrap();
            let error = ListedLink::read(&table).err().unwrap().to_string();
            assert_eq!(
                format!("middleware `tool_call_limit`: {}", &why[9..]),
                error
            );
            continue;
        }
        let (crib, _) = crib(CallerLimits::default(), &[table], Puppet::default());
        let runs = case["runs"].as_array().unwrap().iter();
        for (run, (calls, said)) in runs.zip(case["gives"].as_array().unwrap()).enumerate() {
            let mut said = said.as_array().unwrap().iter();
            for name in calls.as_array().unwrap() {
                let Some(wanted) = said.next().and_then(Value::as_str) else {
                    break;
                };
                let (thread, run) = (format!("t{number}"), format!("r{run}"));
                let gave = crib
                    .call(ask(name.as_str().unwrap(), &thread, Some(&run)))
                    .await;
                match gave {
                    Ok(_) => assert_eq!(wanted, "ran", "{case}"),
                    Err(error) => {
                        assert_eq!(error.code, ErrorCode::LimitReached);
                        assert_eq!(
                            wanted.trim_start_matches("error: "),
                            error.message,
                            "{case}"
                        );
                        if table_exit(case) == "end" {
                            let last = said.next().unwrap().as_str().unwrap();
                            let hint = error.hint.unwrap().to_string();
                            assert!(hint.starts_with(last), "{hint}");
                        }
                    }
                }
            }
        }
    }
    assert!(seen >= 20);
}

fn table_exit(case: &Value) -> &str {
    case["parameters"]["exit_behavior"]
        .as_str()
        .unwrap_or("continue")
}

#[tokio::test]
async fn a_run_that_ended_stays_ended_and_its_thread_goes_on() {
    let table = json!({"name": "tool_call_limit", "tools": ["search"], "run_limit": 1, "exit_behavior": "end"});
    let (crib, puppet) = crib(CallerLimits::default(), &[table], Puppet::default());
    let call = async |tool: &str, run| code(&crib, ask(tool, "ended", run)).await;
    assert_eq!(call("search", Some("one")).await, None);
    assert_eq!(call("search", Some("one")).await, LIMIT);
    assert_eq!(call("fetch", Some("one")).await, LIMIT);
    assert_eq!(call("fetch", Some("two")).await, None);
    assert_eq!(code(&crib, ask("fetch", "other", Some("one"))).await, None);
    assert_eq!(puppet.runs.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn all_limits_that_are_listed_hold_and_count_a_call_once() {
    let tables = [
        json!({"name": "tool_call_limit", "run_limit": 4}),
        json!({"name": "tool_call_limit", "run_limit": 3}),
        json!({"name": "tool_call_limit", "tool_name": "search", "run_limit": 1}),
    ];
    let (crib, _) = crib(CallerLimits::default(), &tables, Puppet::default());
    let call = async |tool: &str| code(&crib, ask(tool, "all", Some("1"))).await;
    assert_eq!(call("search").await, None);
    assert_eq!(call("search").await, LIMIT);
    assert_eq!((call("fetch").await, call("fetch").await), (None, None));
    assert_eq!(call("fetch").await, LIMIT);
}

#[tokio::test]
async fn a_change_of_settings_resets_nothing() {
    let limited = |n: u64| json!({"name": "tool_call_limit", "run_limit": n});
    let (crib, _) = crib(per_minute(2), &[limited(2)], Puppet::default());
    let call = async || code(&crib, ask("fetch", "same", Some("1"))).await;
    assert_eq!(
        (call().await, call().await, call().await),
        (None, None, LIMIT)
    );
    crib.set_profiles(profiles(per_minute(3), &[limited(3)]));
    assert_eq!((call().await, call().await), (None, LIMIT));
    crib.set_profiles(profiles(CallerLimits::default(), &[]));
    assert_eq!(call().await, None);
    crib.set_profiles(profiles(per_minute(3), &[]));
    assert_eq!(call().await, LIMIT);
    crib.set_profiles(profiles(CallerLimits::default(), &[limited(3)]));
    assert_eq!(call().await, LIMIT);
}

#[tokio::test]
async fn a_call_that_did_not_start_gives_its_count_back() {
    let table = json!({"name": "tool_call_limit", "thread_limit": 2});
    let puppet = Puppet {
        unreached: AtomicUsize::new(5),
        ..Puppet::default()
    };
    let (crib, _) = crib(per_minute(2), &[table], puppet);
    let call = async || code(&crib, ask("fetch", "back", None)).await;
    for _ in 0..5 {
        assert_eq!(call().await, Some(ErrorCode::Denied));
    }
    assert_eq!(
        (call().await, call().await, call().await),
        (None, None, LIMIT)
    );
}

#[tokio::test]
async fn a_refusal_says_when_to_come_again() {
    let (crib, _) = crib(per_minute(1), &[], Puppet::default());
    let call = async || crib.call(ask("fetch", "when", None)).await;
    call().await.unwrap();
    let error = call().await.unwrap_err();
    assert_eq!(
        error.message,
        "the agent `default` may make 1 calls a minute, and has made them"
    );
    let data = error.data.unwrap();
    let wait = data["retryAfterMs"].as_u64().unwrap();
    assert!((60_000..=61_000).contains(&wait), "{wait}");
    let at = data["retryAt"].as_str().unwrap();
    assert!(error.hint.unwrap().to_string().ends_with(at), "{at}");
}

#[tokio::test]
async fn only_so_many_run_at_a_time_and_one_that_is_given_up_makes_room() {
    let puppet = Puppet {
        waits: true,
        ..Puppet::default()
    };
    let (crib, puppet) = crib(at_a_time(2), &[], puppet);
    let begin = |id: &str| {
        let (crib, mut request) = (crib.clone(), ask("fetch", "slots", None));
        request.context.call_id = id.into();
        tokio::spawn(async move { code(&crib, request).await })
    };
    let (one, two) = (begin("1"), begin("2"));
    while puppet.runs.load(Ordering::Relaxed) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(begin("3").await.unwrap(), LIMIT);
    one.abort();
    assert!(one.await.is_err());
    let three = begin("3");
    while puppet.runs.load(Ordering::Relaxed) < 3 {
        tokio::task::yield_now().await;
    }
    puppet.go_on.notify_waiters();
    assert_eq!((two.await.unwrap(), three.await.unwrap()), (None, None));
}

#[tokio::test]
async fn what_was_handed_out_ends_the_day() {
    let puppet = Puppet {
        output: "x".repeat(60),
        ..Puppet::default()
    };
    let limits = CallerLimits {
        output_bytes_per_day: Some(100),
        ..CallerLimits::default()
    };
    let (crib, _) = crib(limits, &[], puppet);
    let call = async || code(&crib, ask("fetch", "bytes", None)).await;
    assert_eq!(
        (call().await, call().await, call().await),
        (None, None, LIMIT)
    );
}

/// Answers nothing.
struct Silent;

impl Counters for Silent {
    fn ask(
        &self,
        _: crate::counter::CounterSteps,
    ) -> BoxFuture<'_, Result<crate::counter::CountVerdict, StoreError>> {
        let place = "here".to_owned();
        let why = "it is gone".to_owned();
        Box::pin(async { Err(StoreError::Unreachable { place, why }) })
    }

    fn tell(&self, _: crate::counter::CounterSteps) {}
}

#[tokio::test]
async fn what_nobody_can_decide_is_refused() {
    let books = crate::middleware::Books {
        counters: Some(Arc::new(Silent)),
        ..crate::middleware::Books::default()
    };
    for limits in [per_minute(1_000), at_a_time(1_000)] {
        let crib = Crib::with_books(
            Arc::new(NoOutputs),
            || 7,
            profiles(limits, &[]),
            books.clone(),
        );
        let puppet = Arc::new(Puppet::default());
        crib.apply(builtins([tool("fetch", puppet.clone())]));
        let refused = code(&crib, ask("fetch", "out", None)).await;
        assert_eq!(refused, Some(ErrorCode::Unavailable));
        assert_eq!(puppet.runs.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn unknown_parameters_are_refused_with_the_right_one() {
    let why = |table: Value| {
        let table: MiddlewareTable = serde_json::from_value(table).unwrap();
        ListedLink::read(&table).err().unwrap().to_string()
    };
    for (table, near) in [
        (
            json!({"name": "tool_call_limit", "run_limt": 1}),
            "did you mean `run_limit`?",
        ),
        (
            json!({"name": "tool_call_limit", "run_limit": 1, "exit_behavior": "ends"}),
            "did you mean `end`?",
        ),
        (
            json!({"name": "tool_retry", "max_retrys": 1}),
            "did you mean `max_retries`?",
        ),
        (
            json!({"name": "tool_retry", "retry_on": ["timedout"]}),
            "did you mean `timed_out`?",
        ),
        (
            json!({"name": "tool_retry", "on_failure": "errors"}),
            "did you mean `error`?",
        ),
    ] {
        let why = why(table);
        assert!(why.ends_with(near), "{why}");
    }
}
