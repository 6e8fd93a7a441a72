//! What one call promises, link by link, and at whatever point its caller gives it up.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::broadcast;
use tokio::time::Instant;

use super::*;
use crate::event::Failure;
use crate::testing::{self, NoOutputs, builtins, profiles, tool};
use crate::{
    Access, BoxFuture, Call, CallError, CallResult, ErrorCode, Outcome, OutputId, Page, Progress,
    Run, Schema, Spec, Spool, ToolName, Ungranted, Whole,
};

const DEFAULT: Duration = Duration::from_secs(5);

/// Keeps nothing, but gives way twice and takes its time, as a disk does.
struct SlowOutputs;

impl Outputs for SlowOutputs {
    fn keep<'a>(&'a self, _: &'a str, text: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(async move {
            give_way().await;
            // sleeps: longer than any deadline, on a clock that is paused
            tokio::time::sleep(Duration::from_secs(3_600)).await;
            let id = OutputId::parse("00000000").unwrap();
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
            Ok(Whole {
                id,
                bytes: text.len() as u64,
                lines,
                cut: false,
            })
        })
    }

    fn spool<'a>(&'a self, owner: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        NoOutputs.spool(owner)
    }

    fn read<'a>(
        &'a self,
        owner: &'a str,
        id: &'a OutputId,
        offset: u64,
        max: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        NoOutputs.read(owner, id, offset, max)
    }

    fn remove<'a>(&'a self, owner: &'a str, id: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        NoOutputs.remove(owner, id)
    }
}

/// Returns to the runtime once.
async fn give_way() {
    let mut gave = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// A tool that reports progress at each of its steps and then does what the test says.
struct Steps<F> {
    steps: usize,
    begun: AtomicUsize,
    running: AtomicUsize,
    end: F,
}

fn steps<F>(steps: usize, end: F) -> Arc<Steps<F>> {
    Arc::new(Steps {
        steps,
        begun: AtomicUsize::new(0),
        running: AtomicUsize::new(0),
        end,
    })
}

struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<F: Fn(&Call) -> CallResult + Send + Sync> Run for Steps<F> {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.running.fetch_add(1, Ordering::SeqCst);
            let _running = Running(&self.running);
            for step in 0..self.steps {
                call.context.progress(Progress {
                    progress: Some(step as f64),
                    ..Progress::default()
                });
                give_way().await;
            }
            (self.end)(call)
        })
    }
}

/// Never ends by itself.
struct Forever;

impl Run for Forever {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(std::future::pending())
    }
}

fn spec(schema: Value) -> Spec {
    let schema = Schema::parse(schema).unwrap();
    Spec::new(ToolName::new("t").unwrap(), "A tool of a test", schema)
}

fn crib_with(spec: Spec, access: Access, run: Arc<dyn Run>) -> Crib {
    let crib = Crib::new(Arc::new(SlowOutputs), || 7, profiles(DEFAULT));
    let mut tool = tool("t", run);
    (tool.spec, tool.access) = (spec, access);
    crib.apply(builtins([tool]));
    crib
}

fn open_crib(run: Arc<dyn Run>) -> Crib {
    crib_with(spec(json!({})), Access::Open, run)
}

fn request(arguments: Value) -> Request {
    testing::request("t", arguments)
}

/// The names of the events so far; `tool.failed` with its reason.
fn told(events: &mut broadcast::Receiver<Event>) -> Vec<String> {
    let mut names = Vec::new();
    while let Ok(event) = events.try_recv() {
        names.push(match &event {
            Event::ToolFailed { failure, .. } => format!("tool.failed {}", failure.as_str()),
            event => event.name().to_owned(),
        });
    }
    names
}

fn large(call: &Call) -> CallResult {
    let _ = call;
    Ok(Outcome {
        structured: Some(json!(["x"]).into()),
        ..Outcome::text("x\n".repeat(3_000))
    })
}

#[tokio::test(start_paused = true)]
async fn a_call_given_up_at_any_point_ends_once_and_leaves_nothing() {
    let run = steps(4, large);
    let crib = open_crib(run.clone());
    let tool = crib.owners_view().get("t").unwrap().clone();
    let held = Arc::strong_count(&tool);
    let mut points = 0;
    for polls in 0.. {
        let mut events = crib.changes();
        let request = request(json!({}));
        let cancel = request.context.cancel.clone();
        let mut call: Pin<Box<_>> = Box::pin(crib.call(request));
        let mut done = false;
        for poll in 0..polls {
            if poll > 5 {
                // The tool has ended; this passes over the hour that keeping its output takes.
                tokio::time::advance(Duration::from_secs(3_600)).await;
            }
            let mut cx = std::task::Context::from_waker(Waker::noop());
            done = call.as_mut().poll(&mut cx).is_ready();
            if done {
                break;
            }
        }
        drop(call);
        let told = told(&mut events);
        assert_eq!(run.running.load(Ordering::SeqCst), 0, "{polls} polls");
        assert_eq!(Arc::strong_count(&tool), held, "{polls} polls");
        if polls == 0 {
            assert!(told.is_empty(), "{told:?}");
            continue;
        }
        assert_eq!(cancel.is_cancelled(), !done, "{polls} polls");
        assert_eq!(told[0], "tool.start", "{polls} polls");
        let (last, between) = told[1..].split_last().unwrap();
        let end = if done {
            "tool.complete"
        } else {
            "tool.failed cancelled"
        };
        assert_eq!(last, end, "{polls} polls: {told:?}");
        assert!(
            between.iter().all(|name| name == "tool.progress"),
            "{told:?}"
        );
        if done {
            break;
        }
        points += 1;
        assert!(points < 50, "the call never ends");
    }
    // Four steps of the tool and two waits for its output to be kept.
    assert!(points >= 6, "only {points} points");
}

#[tokio::test]
async fn progress_reaches_the_callers_sink_and_the_events_in_order() {
    let crib = open_crib(steps(3, |call: &Call| {
        call.context.metadata("Nearly", Map::new());
        Ok(Outcome::text("done"))
    }));
    let mut events = crib.changes();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let mut request = request(json!({}));
    request.context = request.context.with_progress(Arc::new(move |progress| {
        sink.lock().unwrap().push(progress)
    }));
    assert_eq!(crib.call(request).await.unwrap().output, "done");
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    let numbers: Vec<_> = heard.iter().map(|progress| progress.progress).collect();
    assert_eq!(numbers, [Some(0.0), Some(1.0), Some(2.0), None]);
    assert_eq!(heard[3].title.as_deref(), Some("Nearly"));
    let mut streamed = Vec::new();
    while let Ok(event) = events.try_recv() {
        if let Event::ToolProgress { progress, .. } = event {
            streamed.push(progress);
        }
    }
    assert_eq!(streamed, heard);
}

#[tokio::test]
async fn a_call_that_nobody_listens_to_runs_all_the_same() {
    let crib = open_crib(steps(2, |_: &Call| Ok(Outcome::text("done"))));
    assert_eq!(crib.call(request(json!({}))).await.unwrap().output, "done");
}

#[tokio::test]
async fn trust_and_grants_are_asked_for_before_arguments_are_looked_at() {
    let wrong = json!({"n": "no number"});
    let schema = json!({"properties": {"n": {"type": "integer"}}});
    let untrusted = Access::untrusted("/work/p");
    let needs = Access::NeedsGrant(Ungranted {
        needs: vec!["to reach the network".into()],
        unknown: None,
        earlier: None,
    });
    let unknown = Access::NeedsGrant(Ungranted {
        needs: vec!["to reach the network".into()],
        unknown: Some("the store is away".into()),
        earlier: None,
    });
    for (access, said, code) in [
        (untrusted, "toolcrib trust /work/p", ErrorCode::Denied),
        (needs, "toolcrib grant t --all", ErrorCode::Denied),
        (unknown, "repair the store", ErrorCode::Denied),
        (Access::Open, "toolcrib show t", ErrorCode::InvalidArguments),
    ] {
        let run = steps(1, |_: &Call| Ok(Outcome::text("ran")));
        let crib = crib_with(spec(schema.clone()), access, run.clone());
        let mut events = crib.changes();
        let error = crib.call(request(wrong.clone())).await.unwrap_err();
        assert_eq!(error.code, code);
        let hint = error.hint.unwrap().to_string();
        assert!(hint.contains(said), "{hint}");
        assert_eq!(run.begun.load(Ordering::SeqCst), 0);
        // The trace lies around them all.
        let ended = format!("tool.failed {code}");
        assert_eq!(told(&mut events), ["tool.start", &ended]);
    }
}

#[tokio::test]
async fn defaults_are_filled_in_before_arguments_are_checked() {
    let schema = json!({
        "properties": {"name": {"type": "string", "default": "world"}, "n": {"type": "integer"}},
        "required": ["name"],
    });
    let echo = steps(0, |call: &Call| {
        Ok(Outcome::structured(call.arguments.json().clone()))
    });
    let crib = crib_with(spec(schema), Access::Open, echo);
    let outcome = crib.call(request(json!({"n": 1}))).await.unwrap();
    assert_eq!(
        outcome.structured.unwrap(),
        json!({"name": "world", "n": 1})
    );
    let error = crib.call(request(json!({"name": 3}))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    assert_eq!(error.data.unwrap()["errors"][0]["path"], "/name");
}

#[tokio::test(start_paused = true)]
async fn the_shortest_of_the_limits_holds() {
    let limits = [
        (None, None, DEFAULT),
        (Some(200), None, Duration::from_millis(200)),
        (Some(60_000), None, Duration::from_secs(60)),
        (Some(60_000), Some(300), Duration::from_millis(300)),
        (None, Some(300), Duration::from_millis(300)),
        (Some(100), Some(300), Duration::from_millis(100)),
    ];
    for (own, cap, expected) in limits {
        let mut spec = spec(json!({}));
        spec.timeout = own.map(Duration::from_millis);
        spec.sandbox.max_execution_ms = cap;
        let crib = crib_with(spec, Access::Open, Arc::new(Forever));
        let mut events = crib.changes();
        let request = request(json!({}));
        let cancel = request.context.cancel.clone();
        let start = Instant::now();
        let error = crib.call(request).await.unwrap_err();
        let took = start.elapsed();
        assert_eq!(error.code, ErrorCode::TimedOut);
        assert!(
            took >= expected && took < expected + Duration::from_millis(5),
            "{took:?} for {expected:?}"
        );
        assert!(
            error.message.contains(&expected.as_millis().to_string()),
            "{}",
            error.message
        );
        assert!(cancel.is_cancelled());
        assert_eq!(told(&mut events), ["tool.start", "tool.failed timed_out"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_default_holds_from_the_next_call_and_even_an_endless_one_is_no_trouble() {
    let crib = open_crib(Arc::new(Forever));
    crib.set_profiles(profiles(Duration::from_secs(1)));
    let start = Instant::now();
    let error = crib.call(request(json!({}))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 1);
    let crib = open_crib(steps(1, |call: &Call| {
        Ok(Outcome::text(format!(
            "{}",
            call.context.deadline.is_some()
        )))
    }));
    crib.set_profiles(profiles(Duration::MAX));
    assert!(crib.call(request(json!({}))).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_cut_outcome_carries_no_data_and_keeping_it_counts_against_no_limit() {
    let crib = open_crib(steps(0, large));
    let start = Instant::now();
    let outcome = crib.call(request(json!({}))).await.unwrap();
    // Keeping took an hour; the tool's five seconds were over long before.
    assert!(start.elapsed() > DEFAULT);
    assert_eq!(outcome.structured, None);
    assert_eq!(outcome.metadata["truncated"], true);
    assert_eq!(outcome.metadata["outputId"], "00000000");
    assert!(
        outcome.output.lines().count() <= 2_000
            && outcome.output.contains("[truncated: 1004 lines omitted]"),
        "{} lines",
        outcome.output.lines().count()
    );
}

#[tokio::test]
async fn whatever_goes_wrong_is_said_in_bounded_words() {
    const MUCH: usize = 1_000_000;
    let shout = steps(0, |_: &Call| {
        Err(CallError::unavailable("ä".repeat(MUCH)).hint("ö".repeat(MUCH)))
    });
    let schema = json!({"properties": {"n": {"type": "integer"}}});
    let crib = crib_with(spec(schema), Access::Open, shout);
    let mut unknown = request(json!({}));
    unknown.tool = "x".repeat(MUCH);
    let wrong = request(json!({"n": "y".repeat(MUCH)}));
    for request in [request(json!({})), unknown, wrong] {
        let error = crib.call(request).await.unwrap_err();
        let hint = error.hint.unwrap_or_default().to_string();
        let data = error.data.map_or(0, |data| data.to_string().len());
        let sizes = [error.message.len(), hint.len(), data];
        assert!(sizes.iter().all(|size| *size < 20_000), "{sizes:?}");
    }
}

#[tokio::test]
async fn the_ending_tells_how_a_call_failed() {
    let ended = |end: fn(&Call) -> CallResult| async move {
        let crib = open_crib(steps(0, end));
        let mut events = crib.changes();
        let _ = crib.call(request(json!({}))).await;
        told(&mut events).pop().unwrap()
    };
    assert_eq!(ended(|_| Ok(Outcome::text(""))).await, "tool.complete");
    let reports = ended(|_| {
        Ok(Outcome {
            is_error: true,
            ..Outcome::text("no")
        })
    });
    let tool_failed = format!("tool.failed {}", Failure::Tool.as_str());
    assert_eq!(reports.await, tool_failed);
    let crashed = ended(|_| Err(CallError::new(ErrorCode::Crashed, "gone")));
    assert_eq!(crashed.await, "tool.failed crashed");
}

#[test]
fn a_noop_context_takes_progress_and_is_not_cancelled() {
    let context = Context::noop();
    context.metadata("Reading", Map::new());
    context.progress(Progress::default());
    assert!(!context.cancel.is_cancelled());
    assert_eq!((context.deadline, context.directory), (None, None));
}
