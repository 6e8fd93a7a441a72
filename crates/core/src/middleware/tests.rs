//! How chains are built: a link with parameters and state is one file and one line, and new settings reset nothing.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::profile::{ListedLink, MiddlewareError, MiddlewareTable, Profile};
use crate::testing::{NoOutputs, Nothing, builtins, request, tool};
use crate::{
    BoxFuture, Call, CallError, CallResult, ChainSettings, Crib, ErrorCode, Profiles, Run,
    Selection,
};

fn read(table: &Value) -> Result<ListedLink, MiddlewareError> {
    let table: MiddlewareTable = serde_json::from_value(table.clone()).unwrap();
    ListedLink::read(&table)
}

fn settings(middleware: &[Value]) -> ChainSettings {
    let links = middleware.iter().map(|table| read(table).unwrap());
    ChainSettings {
        middleware: links.collect(),
        ..ChainSettings::new(Duration::from_secs(5))
    }
}

fn profiles(middleware: &[Value]) -> Profiles {
    Profiles::everybody(settings(middleware))
}

fn crib(middleware: &[Value]) -> Crib {
    let crib = Crib::new(Arc::new(NoOutputs), || 7, profiles(middleware));
    crib.apply(builtins(
        ["a", "b"].map(|name| tool(name, Arc::new(Nothing))),
    ));
    crib
}

fn code(result: CallResult) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

#[tokio::test]
async fn a_made_up_link_takes_its_parameters_from_settings() {
    let crib = crib(&[json!({"name": "ration", "calls": 1, "tools": ["a"]})]);
    let call = async |name: &str| code(crib.call(request(name, json!({}))).await);
    assert_eq!(call("a").await, None);
    assert_eq!(call("a").await, Some(ErrorCode::LimitReached));
    assert_eq!(call("b").await, None);
    assert_eq!(call("b").await, None);
    let without = self::crib(&[]);
    for _ in 0..3 {
        assert_eq!(code(without.call(request("a", json!({}))).await), None);
    }
}

#[tokio::test]
async fn a_link_may_be_listed_more_than_once() {
    let crib = crib(&[
        json!({"name": "ration", "calls": 9}),
        json!({"name": "ration", "calls": 1, "tools": ["b"]}),
    ]);
    let call = async |name: &str| code(crib.call(request(name, json!({}))).await);
    assert_eq!((call("a").await, call("a").await), (None, None));
    // Both count, so the first call of `b` counts twice.
    assert_eq!(call("b").await, Some(ErrorCode::LimitReached));
}

#[tokio::test]
async fn new_settings_begin_no_count_anew() {
    let crib = crib(&[json!({"name": "ration", "calls": 2})]);
    let call = async || code(crib.call(request("a", json!({}))).await);
    assert_eq!((call().await, call().await), (None, None));
    crib.set_profiles(profiles(&[json!({"name": "ration", "calls": 3})]));
    assert_eq!(call().await, None);
    assert_eq!(call().await, Some(ErrorCode::LimitReached));
    crib.set_profiles(profiles(&[]));
    assert_eq!(call().await, None);
    crib.set_profiles(profiles(&[json!({"name": "ration", "calls": 3})]));
    assert_eq!(call().await, Some(ErrorCode::LimitReached));
}

#[tokio::test]
async fn each_profile_has_a_chain_of_its_own() {
    let crib = crib(&[]);
    let own = settings(&[json!({"name": "ration", "calls": 0})]);
    let own = Profile::new("strict", Selection::default(), own);
    let default = Profile::new("default", Selection::default(), settings(&[]));
    crib.set_profiles(Profiles::new(default, [own]));
    for (agent, expected) in [
        ("strict", Some(ErrorCode::LimitReached)),
        ("default", None),
        ("unheard-of", Some(ErrorCode::UnknownTool)),
    ] {
        let mut request = request("a", json!({}));
        request.caller.agent = agent.into();
        assert_eq!(code(crib.call(request).await), expected, "{agent}");
    }
}

#[tokio::test]
async fn it_stands_in_its_place_of_the_order() {
    // Behind `validate`: what is refused there costs no call.
    let crib = crib(&[json!({"name": "ration", "calls": 1})]);
    let mut strict = tool("a", Arc::new(Nothing));
    let schema = json!({"properties": {"n": {"type": "integer"}}});
    strict.spec.input_schema = crate::Schema::parse(schema).unwrap();
    crib.apply(builtins([strict]));
    let call = async |arguments| code(crib.call(request("a", arguments)).await);
    let wrong = call(json!({"n": "x"})).await;
    assert_eq!(wrong, Some(ErrorCode::InvalidArguments));
    assert_eq!(call(json!({"n": 1})).await, None);
    assert_eq!(call(json!({"n": 1})).await, Some(ErrorCode::LimitReached));
}

#[test]
fn what_cannot_be_built_says_so() {
    let why = |table: Value| read(&table).err().unwrap().to_string();
    assert_eq!(
        why(json!({"name": "rations", "calls": 1})),
        "there is no middleware `rations`"
    );
    assert_eq!(
        why(json!({"name": "ration"})),
        "middleware `ration`: missing field `calls`"
    );
    let unknown = why(json!({"name": "ration", "calls": 1, "cals": 1}));
    assert!(unknown.contains("unknown field `cals`"), "{unknown}");
    let wrong = why(json!({"name": "ration", "calls": "many"}));
    assert!(wrong.contains("invalid type: string"), "{wrong}");
}

/// Dies whenever it is asked.
struct Dies;

impl Run for Dies {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        let died = CallError::new(ErrorCode::Crashed, "gone").unreached();
        Box::pin(std::future::ready(Err(died)))
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_repetition_is_told_of_a_stop() {
    let mut dying = tool("dying", Arc::new(Dies));
    dying.spec.retries.max = 3;
    dying.spec.retries.delay = Duration::from_secs(3_600);
    dying.spec.timeout = Some(Duration::from_secs(24 * 3_600));
    let crib = crib(&[]);
    crib.apply(builtins([dying]));
    let mut waiting = request("dying", json!({}));
    let stop = CancellationToken::new();
    waiting.context.stop = Some(stop.clone());
    let begun = tokio::time::Instant::now();
    let stopped = async {
        // sleeps: on a paused clock, which goes on only when everybody waits
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(crib.call(waiting), stopped);
    assert_eq!(code(ended), Some(ErrorCode::Unavailable));
    assert!(begun.elapsed() < Duration::from_secs(2));
}
