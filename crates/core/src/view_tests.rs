//! What a view promises: one per agent and moment, what it hides is not there, and what is made of it is made once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::selection::{SaidBy, SelectionLayer};
use crate::testing::{NoOutputs, Nothing, builtins, profiles, request, tool};
use crate::{
    Access, ChainSettings, Crib, ErrorCode, ErrorType, ListChanges, Mode, Problem, Profile,
    Profiles, Selection, SourceKind, Tool,
};

const TIMEOUT: Duration = Duration::from_secs(5);

fn profile(name: &str, sees: Selection) -> Profile {
    Profile::new(name, sees, ChainSettings::new(TIMEOUT))
}

fn only(prefix: &'static str) -> Selection {
    let named = SelectionLayer {
        tools: Some(vec![format!("{prefix}*").parse().unwrap()]),
        ..SelectionLayer::all(SaidBy::User)
    };
    Selection::default().within(named)
}

fn named(name: &str) -> Tool {
    tool(name, Arc::new(Nothing))
}

/// A crib with these tools, where `narrow` sees those whose name begins with `a`.
fn crib(names: &[&str]) -> Arc<Crib> {
    let profiles = Profiles::new(
        profile("default", Selection::default()),
        [profile("narrow", only("a"))],
    );
    let crib = Crib::new(Arc::new(NoOutputs), || 7, profiles);
    crib.apply(builtins(names.iter().map(|name| named(name))));
    Arc::new(crib)
}

fn names(crib: &Crib, agent: &str) -> Vec<String> {
    let view = crib.view(agent);
    view.tools().map(|tool| tool.name().to_owned()).collect()
}

#[tokio::test]
async fn a_tool_outside_is_neither_listed_nor_called() {
    let crib = crib(&["add", "aim", "big"]);
    assert_eq!(names(&crib, "narrow"), ["add", "aim"]);
    assert_eq!(names(&crib, "default"), ["add", "aim", "big"]);
    let mut hidden = request("big", json!({}));
    hidden.caller.agent = "narrow".into();
    let error = crib.call(hidden).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::UnknownTool);
    assert!(crib.call(request("big", json!({}))).await.is_ok());
    // What an agent does not see is no hint for it either.
    let hint = crib.view("narrow").find("bigg").unwrap_err().hint.unwrap();
    let hint = hint.to_string();
    assert!(!hint.contains("big`"), "{hint}");
    assert_eq!(crib.view("narrow").counts_by_source()[0].1, 2);
}

#[test]
fn callers_of_one_agent_share_a_view_until_something_changes() {
    let crib = crib(&["add"]);
    let view = crib.view("default");
    assert!(Arc::ptr_eq(&view, &crib.view("default")));
    assert!(crib.view("nobody-knows").is_empty());
    assert!(!Arc::ptr_eq(&view, &crib.view("narrow")));
    crib.apply(Vec::new());
    crib.apply(builtins([named("add")]));
    assert!(
        Arc::ptr_eq(&view, &crib.view("default")),
        "nothing that a reader could tell has changed"
    );
    crib.apply(builtins([named("add"), named("big")]));
    let after = crib.view("default");
    assert!(!Arc::ptr_eq(&view, &after));
    assert_eq!((view.len(), after.len()), (1, 2));
    crib.set_profiles(profiles(TIMEOUT));
    assert!(!Arc::ptr_eq(&after, &crib.view("default")));
}

#[test]
fn owners_see_what_the_default_agent_does_not() {
    let crib = crib(&["add", "big"]);
    assert!(Arc::ptr_eq(&crib.owners_view(), &crib.view("default")));
    crib.set_profiles(Profiles::new(profile("default", only("a")), []));
    assert_eq!(names(&crib, "default"), ["add"]);
    assert_eq!(crib.owners_view().len(), 2);
}

#[test]
fn what_is_made_of_a_view_is_made_once_and_goes_with_it() {
    struct Names(String);
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let crib = crib(&["add", "big"]);
    let make = |view: &crate::View| {
        MADE.fetch_add(1, Ordering::SeqCst);
        let names: Vec<&str> = view.listed().map(|tool| tool.name()).collect();
        Names(names.join(" "))
    };
    for _ in 0..3 {
        assert_eq!(crib.view("default").derived(make).0, "add big");
        assert_eq!(crib.view("narrow").derived(make).0, "add");
    }
    assert_eq!(MADE.load(Ordering::SeqCst), 2);
    crib.apply(builtins([named("add")]));
    assert_eq!(crib.view("default").derived(make).0, "add");
    assert_eq!(MADE.load(Ordering::SeqCst), 3);
}

#[test]
fn the_hash_is_of_what_an_agent_reads() {
    let crib = crib(&["add"]);
    let hash = |tools: Vec<Tool>| {
        crib.apply(builtins(tools));
        crib.view("default").list_hash()
    };
    let add = |edit: fn(&mut Tool)| {
        let mut tool = named("add");
        edit(&mut tool);
        // Other text, or the registry takes it for the same tool.
        static TEXT: AtomicUsize = AtomicUsize::new(0);
        tool.hash = TEXT.fetch_add(1, Ordering::SeqCst).to_string().into();
        tool
    };
    let before = hash(vec![named("add")]);
    let untrusted: fn(&mut Tool) = |tool| {
        tool.access = Access::untrusted("/p");
    };
    for (what, same, now) in [
        ("other text", true, hash(vec![add(|_| {})])),
        (
            "time",
            true,
            hash(vec![add(|tool| tool.spec.timeout = Some(TIMEOUT))]),
        ),
        (
            "words",
            false,
            hash(vec![add(|tool| tool.spec.description.push('!'))]),
        ),
        (
            "hints",
            false,
            hash(vec![add(|tool| {
                tool.spec.annotations.read_only_hint = Some(true)
            })]),
        ),
        (
            "schema",
            false,
            hash(vec![add(|tool| {
                let schema = json!({"properties": {"n": {"type": "integer"}}});
                tool.spec.input_schema = crate::Schema::parse(schema).unwrap();
            })]),
        ),
        ("one that waits", false, hash(vec![add(untrusted)])),
        ("one more", false, hash(vec![named("add"), named("big")])),
        ("as before", true, hash(vec![named("add")])),
    ] {
        assert_eq!(now == before, same, "{what}");
    }
}

fn is_told(changes: &mut ListChanges) -> bool {
    let mut next = std::pin::pin!(changes.next());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    next.as_mut().poll(&mut cx).is_ready()
}

#[test]
fn who_follows_is_told_when_their_own_list_changed_and_only_then() {
    let crib = crib(&["add"]);
    let (mut wide, mut narrow) = (crib.follow("default"), crib.follow("narrow"));
    assert!(!is_told(&mut wide) && !is_told(&mut narrow));
    crib.apply(builtins([named("add"), named("big")]));
    assert!(is_told(&mut wide));
    assert!(!is_told(&mut wide), "once is enough");
    assert!(!is_told(&mut narrow), "it does not see what came");
    // Other code behind the same words.
    let mut other = named("add");
    other.hash = "other".into();
    assert!(
        crib.apply(builtins([other.clone(), named("big")]))
            .tools_changed()
    );
    assert!(!is_told(&mut wide) && !is_told(&mut narrow));
    // Settings may change what an agent sees.
    crib.set_profiles(Profiles::new(profile("default", only("b")), []));
    assert!(is_told(&mut wide), "`add` is gone");
    assert!(is_told(&mut narrow), "it has the default profile now");
    // There and back again between two looks.
    crib.apply(builtins([other.clone()]));
    crib.apply(builtins([other, named("big")]));
    assert!(!is_told(&mut wide));
    drop(crib);
    assert!(!is_told(&mut wide), "nobody is left to change anything");
}

#[test]
fn problems_of_what_is_hidden_are_hidden_too() {
    let crib = crib(&[]);
    let in_file = |name: &str, file: &str| Tool {
        file: Some(file.into()),
        ..named(name)
    };
    let problem = |tool: Option<&str>, file: &str| {
        let mut problem = Problem::error(SourceKind::Plugin, ErrorType::Validation, "odd");
        problem.tool_name = tool.map(str::to_owned);
        problem.file = Some(file.into());
        problem
    };
    let mut updates = builtins([
        in_file("add", "/both.json"),
        in_file("big", "/both.json"),
        in_file("aim", "/aim.json"),
    ]);
    updates[0].problems = vec![
        problem(Some("add"), "/both.json"),
        problem(Some("big"), "/both.json"),
        problem(None, "/both.json"),
        problem(None, "/aim.json"),
        problem(None, "/broken.json"),
    ];
    crib.apply(updates);
    let shown = |agent: &str| {
        let view = crib.view(agent);
        let shown = view.problems().iter();
        let shown = shown.map(|one| (one.tool_name.clone(), one.file.clone().unwrap()));
        shown.collect::<Vec<_>>()
    };
    assert_eq!(shown("default").len(), 5);
    let add = (Some("add".to_owned()), "/both.json".into());
    assert_eq!(shown("narrow"), [add, (None, "/aim.json".into())]);
    // A name that a broken file would give is no hint for who does not see it.
    let hint = crib.view("narrow").find("broken").unwrap_err().hint;
    assert!(!hint.unwrap().to_string().contains("broken"));
    assert!(shown("nobody-knows").is_empty());
}

#[test]
fn only_profiles_for_callers_are_open_to_them() {
    let crib = crib(&["add"]);
    let hidden = profile("inner", Selection::default()).with_mode(Mode::Subagent);
    let reviewer = profile("reviewer", only("a"));
    crib.set_profiles(Profiles::new(
        profile("default", Selection::default()),
        [reviewer, hidden],
    ));
    assert!(crib.admits("default").is_ok() && crib.admits("reviewer").is_ok());
    let error = crib.admits("reviwer").unwrap_err();
    assert_eq!(error.code, ErrorCode::NotFound);
    assert_eq!(error.hint.unwrap().to_string(), "did you mean `reviewer`?");
    assert_eq!(crib.admits("inner").unwrap_err().code, ErrorCode::Forbidden);
    assert!(names(&crib, "inner").is_empty());
    let seen: Vec<(String, usize)> = crib
        .views()
        .iter()
        .map(|view| (view.profile().name().to_owned(), view.len()))
        .collect();
    let expected = [("default", 1), ("reviewer", 1), ("inner", 1)];
    assert_eq!(seen, expected.map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn what_is_longer_than_any_name_is_compared_with_none() {
    let longest = "a".repeat(64);
    let view = crib(&[&longest]).view("default");
    let hint = |name: &str| view.find(name).unwrap_err().hint.unwrap().to_string();
    assert!(hint(&"a".repeat(63)).contains(&longest));
    // It shares a lot, and to find out would take as long as both are, for each tool.
    assert!(!hint(&"a".repeat(200)).contains(&longest));
}
