//! What the book holds of a call, however it ended, and what happens when it can't be written.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::store::Recorded;
use crate::testing::{NoOutputs, builtins, profiles, request, tool};
use crate::{Access, Crib, Outcome, Profiles, Run, Schema, Spec, ToolName, Ungranted};

const TIMEOUT: Duration = Duration::from_secs(5);

/// A book in memory that says no for as long as it is shut.
#[derive(Default)]
struct Pages {
    records: Mutex<Vec<CallRecord>>,
    durable: Mutex<Vec<CallRecord>>,
    shut: AtomicBool,
}

impl CallBook for Pages {
    fn record(&self, record: CallRecord) -> Recorded {
        self.records.lock().unwrap().push(record);
        Recorded::Queued
    }

    fn record_durably(&self, record: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            if self.shut.load(Ordering::Relaxed) {
                return Err(StoreError::Full {
                    place: "book".into(),
                    why: "no page is left".into(),
                });
            }
            self.durable.lock().unwrap().push(record);
            Ok(())
        })
    }

    fn argument_hash(&self, arguments: &crate::Object) -> Option<String> {
        Some(format!("hash of {}", arguments.json().value()))
    }
}

/// Does what its argument `do` says.
struct Obedient(Arc<Pages>);

impl Run for Obedient {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            match call.arguments.get("do").and_then(Value::as_str) {
                Some("fail") => Ok(Outcome {
                    is_error: true,
                    ..Outcome::text("no")
                }),
                Some("crash") => Err(CallError::new(ErrorCode::Crashed, "gone")),
                Some("hang") => std::future::pending().await,
                Some("shut the book") => {
                    self.0.shut.store(true, Ordering::Relaxed);
                    Ok(Outcome::text("done"))
                }
                _ => Ok(Outcome::text("well")),
            }
        })
    }
}

fn crib(access: Access) -> (Crib, Arc<Pages>) {
    let book = Arc::new(Pages::default());
    let held = book.clone() as Arc<dyn CallBook>;
    let crib = Crib::with_book(Arc::new(NoOutputs), || 7, profiles(TIMEOUT), Some(held));
    let schema = json!({"type": "object", "properties": {
        "do": {"type": "string"}, "n": {"type": "integer", "default": 3}}});
    let schema = Schema::parse(schema).unwrap();
    let mut spec = Spec::new(ToolName::new("t").unwrap(), "A tool of a test", schema);
    spec.version = Some("1.2".into());
    let mut tool = tool("t", Arc::new(Obedient(book.clone())));
    (tool.spec, tool.access) = (spec, access);
    crib.apply(builtins([tool]));
    (crib, book)
}

fn set_audit(crib: &Crib, audit: Audit) {
    let settings = ChainSettings {
        audit,
        ..ChainSettings::new(TIMEOUT)
    };
    crib.set_profiles(Profiles::everybody(settings));
}

fn words(record: &CallRecord) -> [&str; 3] {
    [&record.transport, &record.protocol, &record.outcome]
        .map(|level| level.as_word().unwrap_or("-"))
}

#[tokio::test]
async fn every_end_is_written_down_at_three_levels() {
    let (crib, book) = crib(Access::Open);
    for (what, levels, error) in [
        ("go", ["ok", "ok", "ok"], None),
        ("fail", ["ok", "ok", "is_error"], None),
        ("crash", ["ok", "crashed", "-"], Some(ErrorCode::Crashed)),
    ] {
        let _ = crib.call(request("t", json!({"do": what}))).await;
        let record = book.records.lock().unwrap().pop().unwrap();
        assert_eq!(words(&record), levels, "{what}");
        assert_eq!(record.error, error, "{what}");
        let hash = format!("hash of {{\"do\":\"{what}\",\"n\":3}}");
        assert_eq!(record.argument_hash, Some(hash), "defaults are filled in");
        assert_eq!(record.tool_version.as_deref(), Some("1.2"));
        assert_eq!(record.tool_hash.as_deref(), Some("h"));
        assert_eq!(
            (&*record.id, record.at_ms, &*record.client),
            ("0001", 7, "test")
        );
    }
    assert!(
        book.records.lock().unwrap().is_empty(),
        "each was written once"
    );
}

#[tokio::test]
async fn what_is_refused_has_no_arguments_and_an_unknown_tool_has_its_name() {
    let (crib, book) = crib(Access::Open);
    let refused = crib.call(request("t", json!({"do": 3}))).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::InvalidArguments);
    let unknown = crib
        .call(request(&"x".repeat(9_000), json!({"a": 1})))
        .await;
    assert_eq!(unknown.unwrap_err().code, ErrorCode::UnknownTool);
    let untrusted = Access::NeedsGrant(Ungranted {
        needs: vec!["all".into()],
        unknown: None,
        earlier: None,
    });
    let (closed, other) = self::crib(untrusted);
    let denied = closed.call(request("t", json!({}))).await;
    assert_eq!(denied.unwrap_err().code, ErrorCode::Denied);
    let mut records = book.records.lock().unwrap().clone();
    records.extend(other.records.lock().unwrap().clone());
    let levels: Vec<_> = records.iter().map(words).collect();
    assert_eq!(
        levels,
        [
            ["ok", "invalid_arguments", "-"],
            ["ok", "unknown_tool", "-"],
            ["ok", "denied", "-"]
        ]
    );
    assert!(records.iter().all(|record| record.argument_hash.is_none()));
    assert_eq!(&*records[1].tool, "x".repeat(LONGEST));
}

#[tokio::test]
async fn a_call_given_up_is_written_down_as_cancelled() {
    let (crib, book) = crib(Access::Open);
    let mut asked = request("t", json!({"do": "hang"}));
    asked.context.call_id = "chosen by the client".into();
    asked.context.record_id = Some("0002".into());
    let call = crib.call(asked);
    assert!(
        tokio::time::timeout(Duration::from_millis(5), call)
            .await
            .is_err()
    );
    let records = book.records.lock().unwrap();
    let [record] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_eq!(words(record), ["cancelled", "-", "-"]);
    assert!(record.argument_hash.is_some() && record.duration_us >= 5_000);
    assert_eq!(&*record.id, "0002");
}

#[tokio::test]
async fn where_records_are_required_a_call_waits_for_them() {
    let (crib, book) = crib(Access::Open);
    set_audit(&crib, Audit::Required);
    crib.call(request("t", json!({}))).await.unwrap();
    {
        let durable = book.durable.lock().unwrap();
        let levels: Vec<_> = durable.iter().map(words).collect();
        assert_eq!(levels, [[UNFINISHED, "-", "-"], ["ok", "ok", "ok"]]);
        assert_eq!(durable[0].id, durable[1].id);
    }
    assert!(book.records.lock().unwrap().is_empty());

    let lost = crib
        .call(request("t", json!({"do": "shut the book"})))
        .await;
    let lost = lost.unwrap_err();
    assert_eq!(lost.code, ErrorCode::Unavailable);
    assert!(
        lost.message.contains("no page is left") && !lost.unreached,
        "{lost}"
    );
    let queued = book.records.lock().unwrap().pop().unwrap();
    assert_eq!(words(&queued), ["ok", "ok", "ok"], "its end is tried again");

    let refused = crib.call(request("t", json!({}))).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unavailable);
    assert!(
        refused.unreached && refused.message.contains("no page is left"),
        "{refused}"
    );
    let queued = book.records.lock().unwrap().pop().unwrap();
    assert_eq!(words(&queued), ["ok", "unavailable", "-"]);
    let unknown = crib.call(request("nobody", json!({}))).await.unwrap_err();
    assert_eq!(unknown.code, ErrorCode::Unavailable);
    assert_eq!(book.durable.lock().unwrap().len(), 3);

    set_audit(&crib, Audit::BestEffort);
    crib.call(request("t", json!({}))).await.unwrap();
}

#[tokio::test]
async fn a_call_that_was_given_up_before_it_began_is_written_down() {
    let (crib, book) = crib(Access::Open);
    crib.given_up(&request("t", json!({"do": "go"})));
    let record = book.records.lock().unwrap().pop().unwrap();
    assert_eq!(words(&record), ["cancelled", "-", "-"]);
    assert_eq!((&*record.tool, &*record.id), ("t", "0001"));
    assert_eq!(record.argument_hash, None, "nobody looked at them");
}
