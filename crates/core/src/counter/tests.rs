//! Counters as values: what is together is counted together, and what can't be read or is too old goes.

use super::*;

fn key(name: &str) -> Arc<str> {
    name.into()
}

fn call(limit: u64) -> CounterStep {
    CounterStep::Call {
        per_minute: Some(limit),
        bytes_per_day: None,
    }
}

fn lease(id: &str, most: u64) -> CounterStep {
    CounterStep::Lease {
        id: id.into(),
        most,
    }
}

#[test]
fn steps_are_taken_together_or_not_at_all() {
    let mut counters = BTreeMap::new();
    let both = [(key("a"), call(5)), (key("b"), call(1))];
    assert!(decide(&both, 1_000, &mut counters).is_ok());
    let before = counters.clone();
    let refused = decide(&both, 1_000, &mut counters);
    assert!(matches!(
        refused,
        Err((1, Refusal::CallsPerMinute { limit: 1, .. }))
    ));
    assert_eq!(counters, before);
    // What is given back is there again.
    let at = decide(&[(key("a"), call(5))], 2_000, &mut counters).unwrap();
    let back = call(5).undone(at).unwrap();
    decide(&[(key("a"), back)], 2_000, &mut counters).unwrap();
    for _ in 0..4 {
        assert!(decide(&[(key("a"), call(5))], 2_500, &mut counters).is_ok());
    }
    assert!(decide(&[(key("a"), call(5))], 2_500, &mut counters).is_err());
}

#[test]
fn a_place_that_nobody_renews_comes_free() {
    let mut counters = BTreeMap::new();
    let mut take = |step: CounterStep, now| decide(&[(key("a"), step)], now, &mut counters).is_ok();
    assert!(take(lease("1", 1), 0));
    assert!(!take(lease("2", 1), LEASE_MS - 1));
    assert!(take(CounterStep::Renew { id: "1".into() }, LEASE_MS - 1));
    assert!(!take(lease("2", 1), LEASE_MS + 1));
    assert!(take(lease("2", 1), 2 * LEASE_MS));
    assert!(take(CounterStep::Release { id: "2".into() }, 2 * LEASE_MS));
    assert!(take(lease("3", 1), 2 * LEASE_MS));
}

#[test]
fn a_clock_that_was_far_ahead_locks_nobody_out() {
    let mut counters = BTreeMap::new();
    let year = 365 * 24 * 3_600_000;
    let mut take = |now| decide(&[(key("a"), call(1))], now, &mut counters).is_ok();
    assert!(take(year));
    assert!(!take(year - 20_000), "a little behind is the same moment");
    assert!(take(1_000));
    assert!(!take(1_001));
}

#[test]
fn a_counter_reads_as_it_was_written() {
    let mut counters = BTreeMap::new();
    let limits: Arc<[CallLimit]> = Arc::new([CallLimit {
        tool: None,
        thread: Some(9),
        run: Some(3),
        exit: Exit::End,
    }]);
    let tool = CounterStep::ToolCall {
        tool: "search".into(),
        run: None,
        limits,
    };
    let steps = [call(9), lease("1", 2), CounterStep::Bytes(77), tool];
    let steps = steps.map(|step| (key("a"), step));
    decide(&steps, 1_700_000_000_000, &mut counters).unwrap();
    let counter = &counters[&key("a")];
    assert_eq!(Counter::read(&counter.written()), *counter);
    assert!(counter.ends() > 1_700_000_000_000 + 24 * 3_600_000);
    assert_eq!(Counter::read("{nonsense"), Counter::default());
    assert_eq!(Counter::read(""), Counter::default());
}

#[test]
fn a_run_without_a_name_ends_when_it_was_idle_and_named_ones_do_not() {
    let mut counters = BTreeMap::new();
    let limits: Arc<[CallLimit]> = Arc::new([CallLimit {
        tool: None,
        thread: None,
        run: Some(1),
        exit: Exit::End,
    }]);
    let mut call = |run: Option<&str>, minutes: u64| {
        let step = CounterStep::ToolCall {
            tool: "search".into(),
            run: run.map(Arc::from),
            limits: limits.clone(),
        };
        decide(&[(key("t"), step)], minutes * 60_000, &mut counters).is_ok()
    };
    assert!(call(None, 1) && !call(None, 2) && !call(None, 12));
    assert!(call(None, 23));
    assert!(call(Some("one"), 23) && !call(Some("one"), 99));
    // A thread remembers so many runs, those called in last.
    assert!((0..40).all(|n| call(Some(&n.to_string()), 200 + n)));
    assert!(!call(Some("39"), 300) && call(Some("0"), 300));
}
