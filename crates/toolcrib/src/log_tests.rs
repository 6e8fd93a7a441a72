//! What a line of the log looks like, whatever is put into it.

use serde_json::Value;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// The lines that `work` logs.
fn logged(form: Form, work: impl FnOnce()) -> Vec<String> {
    let (lines, given) = sync_channel(16);
    let state = Arc::new(State::default());
    let log = Log::new(form, Sink { lines, state });
    let subscriber = tracing_subscriber::registry().with(log);
    tracing::subscriber::with_default(subscriber, work);
    given.try_iter().collect()
}

fn json(work: impl FnOnce()) -> Value {
    let lines = logged(Form::Json, work);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].matches('\n').count(), 1);
    serde_json::from_str(&lines[0]).unwrap()
}

#[test]
fn an_event_has_the_documented_fields() {
    let line = json(|| {
        tracing::info!(tool = "t", call = %"c1", duration_ms = 1.5, error = "denied", "tool.failed");
    });
    let at = line["timestamp"].as_str().unwrap();
    assert!(at.parse::<jiff::Timestamp>().is_ok(), "{at}");
    assert_eq!(at.len(), "2026-01-31T12:00:00.000Z".len(), "{at}");
    let mut line = line;
    line.as_object_mut().unwrap().remove("timestamp");
    let expected = serde_json::json!({"level": "info", "tool": "t", "event": "tool.failed", "requestId": "c1",
        "error": "denied", "durationMs": 1.5});
    assert_eq!(line, expected);
}

#[test]
fn what_is_no_event_is_a_message_and_trouble_is_an_error() {
    let line = json(|| tracing::debug!(added_tools = 3, on = true, "looked"));
    assert_eq!(line["message"], "looked");
    assert_eq!(
        (&line["addedTools"], &line["on"]),
        (&Value::from(3), &Value::from(true))
    );
    assert_eq!(line["level"], "debug");
    assert!(line.get("event").is_none() && line.get("error").is_none());
    let line = json(|| tracing::warn!(error = %"no room", "calls can't be recorded"));
    assert_eq!(
        (&line["event"], &line["error"]),
        (&"error".into(), &"no room".into())
    );
    assert_eq!(line["message"], "calls can't be recorded");
    let line = json(|| tracing::trace!("deep"));
    assert_eq!(line["level"], "debug", "the format knows four levels");
}

#[test]
fn fields_are_bounded_and_steer_nothing() {
    let long = "ä".repeat(100_000);
    let line = json(|| tracing::info!(tool = long, value = ?long, "x"));
    assert_eq!(line["tool"].as_str().unwrap().len(), MAX_FIELD);
    assert!(line["value"].as_str().unwrap().len() <= MAX_FIELD);
    let odd = "a\n\u{1b}[2J\u{7f}\u{9b}\u{202e}\"\\\0";
    let lines = logged(Form::Json, || tracing::info!(tool = odd, "x"));
    assert!(lines[0].trim_end().chars().all(|c| !risky(c)), "{lines:?}");
    let line: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(line["tool"], odd, "and nothing is lost");
    let lines = logged(Form::Text, || {
        tracing::info!(tool = odd, other = odd, "{odd}")
    });
    assert_eq!(lines.len(), 1);
    assert!(lines[0].trim_end().chars().all(|c| !risky(c)), "{lines:?}");
}

#[test]
fn a_queue_that_is_full_loses_lines_and_says_so() {
    let (lines, given) = sync_channel(1);
    let state = Arc::new(State::default());
    let told = state.clone();
    let log = Log::new(Form::Json, Sink { lines, state });
    let subscriber = tracing_subscriber::registry().with(log);
    let mut said = None;
    tracing::subscriber::with_default(subscriber, || {
        // Subscribers of other tests come and go, and now and then take an event along.
        for _ in 0..10_000 {
            if told.lost.load(Ordering::Relaxed) < 4 {
                tracing::info!("one");
            }
        }
        assert!(given.recv().unwrap().contains("\"one\""));
        for _ in 0..10_000 {
            if said.is_none() {
                tracing::info!("two");
                said = given.try_recv().ok();
            }
        }
    });
    let said = said.unwrap();
    assert!(said.contains("4 lines lost"), "{said}");
}
