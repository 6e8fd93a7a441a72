//! The record of calls: written off the path, read by page, let go when old.

use toolcrib_core::ErrorCode;
use toolcrib_core::call::{Decision, Deed, Mark};
use toolcrib_core::store::{CallBook, CallRecord, Level, Recorded, UNFINISHED};
use toolcrib_store::{CallCursor, CallFilter, Ending, Retention};

use crate::support::{SOON, Site, until};

fn mark(middleware: &'static str, deed: Deed) -> Mark {
    Mark {
        middleware: middleware.into(),
        deed,
    }
}

pub fn call(n: u64, tool: &str) -> CallRecord {
    CallRecord {
        id: uuid::Uuid::now_v7().to_string().into(),
        at_ms: 1_700_000_000_000 + n / 3,
        client: "claude".into(),
        agent: "default".into(),
        session: None,
        project: Some("/srv/garden".into()),
        token: None,
        tool: tool.into(),
        tool_version: Some("1".into()),
        tool_hash: None,
        argument_hash: Some("00".to_owned()),
        transport: Level::Ok,
        protocol: Level::Ok,
        outcome: Level::Ok,
        error: None,
        duration_us: n,
        output_bytes: 2 * n,
        marks: vec![
            mark("pii", Deed::Changed),
            mark("tool_retry", Deed::Delayed),
        ],
        decision: Some(Decision {
            approver: "owner".into(),
            at_ms: 1_700_000_000_000 + n,
            how: "approve".into(),
        }),
    }
}

pub async fn calls_are_written_and_read_by_page(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let records: Vec<CallRecord> = (0..2_345).map(|n| call(n, "echo")).collect();
    for record in &records {
        assert_eq!(log.record(record.clone()), Recorded::Queued);
    }
    log.flush(SOON).await.unwrap();
    assert_eq!(log.state().written, 2_345);
    let mut expected = records.clone();
    expected.sort_by(|a, b| (b.at_ms, &b.id).cmp(&(a.at_ms, &a.id)));
    let mut read = Vec::new();
    let mut after: Option<CallCursor> = None;
    loop {
        let page = store
            .calls()
            .list(&CallFilter::default(), after.as_ref(), 1_000)
            .await
            .unwrap();
        // What comes meanwhile shifts nothing.
        log.record_durably(call(900_000, "late")).await.unwrap();
        read.extend(page.calls);
        after = page.next.map(|next| next.to_string().parse().unwrap());
        if after.is_none() {
            break;
        }
    }
    assert!(read == expected, "{} of {}", read.len(), expected.len());
    let one = store.calls().get(&records[7].id).await.unwrap();
    assert_eq!(one.as_ref(), Some(&records[7]));
    assert_eq!(store.calls().get("none").await.unwrap(), None);
    for text in ["", "1", "x.y", "1.", "1.a'b"] {
        assert!(text.parse::<CallCursor>().is_err(), "{text}");
    }
}

pub async fn the_end_of_a_call_completes_its_beginning(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let ended = call(1, "echo");
    let begun = CallRecord {
        argument_hash: None,
        transport: Level::Failed(UNFINISHED.into()),
        protocol: Level::Unreached,
        outcome: Level::Unreached,
        duration_us: 0,
        output_bytes: 0,
        marks: Vec::new(),
        decision: None,
        ..ended.clone()
    };
    let written = async || store.calls().get(&ended.id).await.unwrap().unwrap();
    log.record_durably(begun.clone()).await.unwrap();
    assert_eq!(written().await, begun);
    // Handed in twice, as happens when somebody stops to wait.
    log.record(ended.clone());
    log.record_durably(ended.clone()).await.unwrap();
    assert_eq!(written().await, ended);
    let forged = CallRecord {
        outcome: Level::Failed("is_error".into()),
        ..ended.clone()
    };
    for other in [begun, forged] {
        log.record_durably(other).await.unwrap();
        assert_eq!(written().await, ended, "what ended stays as it is");
    }
}

/// Four calls that differ in all that can be asked for.
fn various() -> [CallRecord; 4] {
    let mut other = call(3_000, "other");
    (other.client, other.agent) = ("codex".into(), "reviewer".into());
    (other.session, other.token, other.tool_hash) =
        (Some("s".into()), Some("t".into()), Some("h".into()));
    let mut failed = call(6_000, "echo");
    (failed.outcome, failed.error) = (Level::Failed("is_error".into()), None);
    let mut refused = call(9_000, "echo");
    (refused.protocol, refused.outcome) = (Level::Failed("denied".into()), Level::Unreached);
    refused.error = Some(ErrorCode::Denied);
    [call(0, "echo"), other, failed, refused]
}

pub async fn calls_are_filtered(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let all = various();
    for record in &all {
        log.record_durably(record.clone()).await.unwrap();
    }
    let filter = CallFilter::default;
    let word = |text: &str| Some(text.to_owned());
    let denied = Some(Ending::Code(ErrorCode::Denied));
    let table: [(CallFilter, &[usize]); 9] = [
        (filter(), &[3, 2, 1, 0]),
        (
            CallFilter {
                tool: word("echo"),
                ..filter()
            },
            &[3, 2, 0],
        ),
        (
            CallFilter {
                client: word("codex"),
                ..filter()
            },
            &[1],
        ),
        (
            CallFilter {
                agent: word("default"),
                ..filter()
            },
            &[3, 2, 0],
        ),
        (
            CallFilter {
                ending: Some(Ending::Ok),
                ..filter()
            },
            &[1, 0],
        ),
        (
            CallFilter {
                ending: Some(Ending::Failed),
                ..filter()
            },
            &[3, 2],
        ),
        (
            CallFilter {
                ending: denied,
                ..filter()
            },
            &[3],
        ),
        (
            CallFilter {
                ending: denied,
                tool: word("other"),
                ..filter()
            },
            &[],
        ),
        (
            CallFilter {
                since_ms: Some(all[1].at_ms),
                until_ms: Some(all[3].at_ms),
                ..filter()
            },
            &[2, 1],
        ),
    ];
    for (filter, wanted) in table {
        let page = store.calls().list(&filter, None, 10).await.unwrap();
        let place = |call: &CallRecord| all.iter().position(|other| other == call).unwrap();
        let found: Vec<usize> = page.calls.iter().map(place).collect();
        assert_eq!(found, wanted, "{filter:?}");
    }
}

pub async fn calls_are_durable_when_asked(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let record = call(1, "echo");
    log.record_durably(record.clone()).await.unwrap();
    let other = site.open().await;
    assert_eq!(other.calls().get(&record.id).await.unwrap(), Some(record));
    // Nobody flushes, nobody waits: still written.
    let record = call(2, "echo");
    log.record(record.clone());
    until("the call is written", async || {
        other.calls().get(&record.id).await.unwrap().is_some()
    })
    .await;
    // A log that is dropped writes what it has.
    let record = call(3, "echo");
    log.record(record.clone());
    drop(log);
    until("the last call is written", async || {
        other.calls().get(&record.id).await.unwrap().is_some()
    })
    .await;
}

pub async fn who_waits_does_not_starve_who_does_not(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let insistent: Vec<_> = (0..4)
        .map(|_| {
            let log = log.clone();
            tokio::spawn(async move {
                loop {
                    log.record_durably(call(1, "echo")).await.unwrap();
                }
            })
        })
        .collect();
    for n in 0..5 {
        let record = call(n, "patient");
        log.record(record.clone());
        until("the patient one's call is written", async || {
            store.calls().get(&record.id).await.unwrap().is_some()
        })
        .await;
    }
    insistent.iter().for_each(tokio::task::JoinHandle::abort);
}

pub async fn odd_names_do_not_hold_up_the_log(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let mut odd = call(0, "a\0b");
    odd.client = "é".repeat(10_000).into();
    (odd.at_ms, odd.duration_us) = (5, u64::MAX);
    let twice = call(1, "echo");
    for record in [&odd, &twice, &twice] {
        log.record(record.clone());
    }
    log.flush(SOON).await.unwrap();
    let read = store.calls().get(&odd.id).await.unwrap().unwrap();
    assert_eq!(&*read.tool, "a\u{fffd}b");
    assert_eq!(read.client.len(), 512);
    let all = store
        .calls()
        .list(&CallFilter::default(), None, 10)
        .await
        .unwrap();
    assert_eq!(all.calls.len(), 2);
    assert_eq!(log.state().trouble, None);
}

/// A clock that jumped ahead makes all calls look old. They do not go in one go.
pub async fn a_clock_that_jumped_ahead_costs_a_day_at_a_time(site: Site) {
    const DAY: u64 = 24 * 3_600 * 1_000;
    let store = site.open().await;
    let log = store.call_log();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    // As a clock sees them that is half a year ahead.
    for n in 0..100 {
        let mut record = call(0, "echo");
        record.at_ms = now - (180 + n) * DAY;
        log.record(record);
    }
    log.flush(SOON).await.unwrap();
    let keep = Retention {
        days: Some(90),
        rows: None,
    };
    let calls = store.calls();
    assert_eq!(calls.forget(keep).await.unwrap(), 1);
    assert_eq!(calls.forget(keep).await.unwrap(), 1);
    let left = calls.list(&CallFilter::default(), None, 1_000).await;
    assert_eq!(left.unwrap().calls.len(), 98);
}

pub async fn old_calls_go(site: Site) {
    let store = site.open().await;
    let log = store.call_log();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    for n in 0..2_000 {
        let mut record = call(0, "echo");
        record.at_ms = if n < 1_200 { n } else { now - n };
        log.record(record);
    }
    log.flush(SOON).await.unwrap();
    let calls = store.calls();
    let nothing = Retention {
        days: None,
        rows: None,
    };
    assert_eq!(calls.forget(nothing).await.unwrap(), 0);
    let keep = Retention {
        days: Some(30),
        rows: Some(100_000),
    };
    assert_eq!(calls.forget(keep).await.unwrap(), 1_200);
    assert_eq!(calls.forget(keep).await.unwrap(), 0);
    let keep = Retention {
        days: None,
        rows: Some(50),
    };
    assert_eq!(calls.forget(keep).await.unwrap(), 750);
    let left = calls
        .list(&CallFilter::default(), None, 1_000)
        .await
        .unwrap();
    assert_eq!(left.calls.len(), 50);
    assert!(left.calls.iter().all(|call| call.at_ms >= now - 1_250));
}
