//! Repetitions as LangChain makes them, and where SPEC wants fewer.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::*;
use crate::profile::{ListedLink, MiddlewareTable};
use crate::testing::{NoOutputs, builtins, request, spec};
use crate::{Access, Crib, Outcome, Profiles, Run, SourceKind, Tool};

/// Fails so often, and remembers when it was asked.
struct Failing {
    fails: usize,
    code: ErrorCode,
    unreached: bool,
    asked: Mutex<Vec<Instant>>,
    done: AtomicUsize,
}

impl Run for Failing {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async move {
            let mut asked = self.asked.lock().unwrap();
            asked.push(Instant::now());
            if asked.len() > self.fails {
                self.done.fetch_add(1, Ordering::Relaxed);
                return Ok(Outcome::text("done"));
            }
            let mut error = CallError::new(self.code, "no answer");
            error.unreached = self.unreached;
            Err(error)
        })
    }
}

struct Trial {
    fails: usize,
    code: ErrorCode,
    unreached: bool,
    repeatable: bool,
    limit: Duration,
}

impl Trial {
    fn new(fails: usize, code: ErrorCode) -> Trial {
        Trial {
            fails,
            code,
            unreached: false,
            repeatable: true,
            limit: Duration::from_secs(100_000),
        }
    }

    /// Calls the tool `look`; gives the seconds between the attempts, and what came.
    async fn call(self, table: &Value) -> (Vec<f64>, CallResult) {
        let table: MiddlewareTable = serde_json::from_value(table.clone()).unwrap();
        let settings = ChainSettings {
            middleware: vec![ListedLink::read(&table).unwrap()],
            ..ChainSettings::new(self.limit)
        };
        let crib = Crib::new(Arc::new(NoOutputs), || 7, Profiles::everybody(settings));
        let failing = Arc::new(Failing {
            fails: self.fails,
            code: self.code,
            unreached: self.unreached,
            asked: Mutex::default(),
            done: AtomicUsize::new(0),
        });
        let mut spec = spec("look");
        spec.annotations.read_only_hint = Some(self.repeatable);
        let tool = Tool::new(
            spec,
            SourceKind::Builtin,
            Access::Open,
            "h",
            failing.clone(),
        );
        crib.apply(builtins([tool]));
        let result = crib.call(request("look", json!({}))).await;
        let asked = failing.asked.lock().unwrap();
        let waits = asked.windows(2).map(|two| (two[1] - two[0]).as_secs_f64());
        (waits.collect(), result)
    }
}

fn table(parameters: &Value) -> Value {
    let mut table = parameters.clone();
    table["name"] = "tool_retry".into();
    table
}

#[tokio::test(start_paused = true)]
async fn repetitions_are_langchains() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("recorded/langchain.json")).unwrap();
    let cases: Vec<_> = cases
        .iter()
        .filter(|case| case["kind"] == "retry")
        .collect();
    assert!(cases.len() >= 20);
    for case in cases {
        let mut table = table(&case["parameters"]);
        if let Some(why) = case["gives"].as_str() {
            let table: MiddlewareTable = serde_json::from_value(table).unwrap();
            let error = ListedLink::read(&table).err().unwrap().to_string();
            let why = why.strip_prefix("refused: ").unwrap();
            assert!(error.contains(why), "{error}");
            continue;
        }
        let code = ErrorCode::parse(case["fails_with"].as_str().unwrap()).unwrap();
        if case["matches"] == false {
            table["retry_on"] = json!(["limit_reached"]);
        }
        let fails = case["fails"].as_u64().unwrap() as usize;
        let (waits, gave) = Trial::new(fails, code).call(&table).await;
        let wanted = &case["gives"];
        let close = |(a, b): (&f64, &Value)| (a - b.as_f64().unwrap()).abs() < 0.005;
        let theirs = wanted["waits"].as_array().unwrap();
        assert_eq!(wanted["attempts"], waits.len() + 1, "{case}");
        let waits: Vec<f64> = waits.into_iter().filter(|wait| *wait > 0.0).collect();
        assert_eq!(waits.len(), theirs.len(), "{case}");
        assert!(waits.iter().zip(theirs).all(close), "{case}: {waits:?}");
        let said = match gave {
            Ok(outcome) => outcome.output,
            Err(error) if error.message == "no answer" => "error: no answer".to_owned(),
            Err(error) => error.message,
        };
        assert_eq!(wanted["gives"], said, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_is_not_done_twice() {
    let once = Trial {
        repeatable: false,
        ..Trial::new(1, ErrorCode::TimedOut)
    };
    let (waits, gave) = once.call(&table(&json!({}))).await;
    assert_eq!(
        (waits.len(), gave.unwrap_err().message.as_str()),
        (0, "no answer")
    );
    // Whoever names the tool says that it may.
    let named = Trial {
        repeatable: false,
        ..Trial::new(1, ErrorCode::TimedOut)
    };
    let (waits, gave) = named.call(&table(&json!({"tools": ["look"]}))).await;
    assert_eq!((waits.len(), gave.is_ok()), (1, true));
    // And what never reached the tool did not happen.
    let unreached = Trial {
        repeatable: false,
        unreached: true,
        ..Trial::new(1, ErrorCode::Unavailable)
    };
    let (waits, gave) = unreached.call(&table(&json!({}))).await;
    assert_eq!((waits.len(), gave.is_ok()), (1, true));
}

#[tokio::test(start_paused = true)]
async fn attempts_and_waits_share_one_deadline() {
    let trial = Trial {
        limit: Duration::from_secs(8),
        ..Trial::new(9, ErrorCode::Unavailable)
    };
    let parameters = json!({"max_retries": 9, "jitter": false});
    let (waits, gave) = trial.call(&table(&parameters)).await;
    assert_eq!(waits.len(), 3, "1, 2 and 4 s fit into 8, and 8 more do not");
    assert!(
        gave.unwrap_err()
            .message
            .contains("failed after 4 attempts")
    );
}

#[test]
fn chance_never_passes_the_longest_delay() {
    let delays = Delays {
        initial: 1.0,
        factor: 2.0,
        longest: 10.0,
        jitter: true,
    };
    let seconds = |repetition, chance| delays.before(repetition, chance).as_secs_f64();
    for chance in [0.0, 0.25, 0.5, 0.75, 1.0] {
        for repetition in 0..70 {
            assert!(seconds(repetition, chance) <= 10.0);
        }
    }
    assert_eq!(
        (seconds(0, 0.0), seconds(0, 0.5), seconds(0, 1.0)),
        (0.75, 1.0, 1.25)
    );
    assert_eq!((seconds(9, 0.0), seconds(9, 1.0)), (7.5, 10.0));
    assert!((0..99).all(|_| (0.0..=1.0).contains(&chance())));
}
