//! A source made up for a test, to show that another one is this file and its line in the list. It is far away: what it
//! has comes later, lies in no file, and it has problems of its own.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use toolcrib_core::{
    BoxFuture, ErrorType, Problem, Rank, SourceKey, SourceKind, Tool, ToolName, Update,
};

use crate::source::{Configuration, Follow, Source, Updates};
use crate::testing::{Book, NothingKept, crib, place};
use crate::{Needs, all, builtin, open};

/// Rings when the server answers.
static ANSWERS: Notify = Notify::const_new();

/// A server that has one tool, once it answers.
pub struct MadeUp;

impl MadeUp {
    fn update(tools: Vec<Arc<Tool>>, problems: Vec<Problem>) -> Vec<Update> {
        vec![Update {
            key: SourceKey("made-up:far".into()),
            rank: Rank::Registered,
            file: None,
            tools,
            problems,
        }]
    }

    fn tool() -> Arc<Tool> {
        let mut tool = builtin::load(&place(None), &Configuration::default())
            .tools
            .remove(0);
        let far = Arc::make_mut(&mut tool);
        far.spec.name = ToolName::new("far_away").unwrap();
        far.source = SourceKind::Executable;
        far.module = "made-up:far".to_owned();
        tool
    }
}

impl Source for MadeUp {
    fn open<'a>(&'a mut self, _: &'a Configuration, _: Follow) -> Updates<'a> {
        let problem = Problem::error(SourceKind::Executable, ErrorType::Io, "it does not answer");
        let problem = problem.hint("wait until it does");
        Box::pin(std::future::ready(MadeUp::update(
            Vec::new(),
            vec![problem],
        )))
    }

    fn wait(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(ANSWERS.notified())
    }

    fn take(&mut self) -> Updates<'_> {
        Box::pin(std::future::ready(MadeUp::update(
            vec![MadeUp::tool()],
            Vec::new(),
        )))
    }

    fn trouble(&self) -> Option<String> {
        Some("it is far away".to_owned())
    }
}

#[tokio::test]
async fn a_source_that_is_far_away_holds_up_nobody_and_its_tools_come_later() {
    let (crib, place) = (crib(), place(None));
    let (_ring, registered) = watch::channel(0);
    let list = all(Needs {
        crib: crib.clone(),
        place: place.clone(),
        last_good: Arc::new(NothingKept),
        registrations: Book::with(Vec::new()),
        registered,
    });
    let configuration = Configuration::default();
    let sources = open(crib.clone(), place, list, configuration, Follow::Changes).await;
    let view = crib.owners_view();
    assert_eq!(view.version(), 1, "one batch of all sources");
    assert!(view.get("git-status").is_some() && view.get("far_away").is_none());
    assert_eq!(view.problems()[0].message, "it does not answer");
    let mut trouble = sources.trouble();
    let is_told = |told: &Vec<Option<String>>| told.contains(&Some("it is far away".to_owned()));
    trouble.wait_for(is_told).await.unwrap();

    let mut changes = crib.changes();
    ANSWERS.notify_one();
    while crib.owners_view().get("far_away").is_none() {
        changes.recv().await.unwrap();
    }
    let view = crib.owners_view();
    assert!(view.problems().is_empty(), "{:?}", view.problems());
    let tool = view.get("far_away").unwrap();
    assert_eq!((tool.origin(), &tool.file), (Some("made-up:far"), &None));
    // Where another tool has its name, it is told where it comes from.
    let mut other = tool.clone();
    Arc::make_mut(&mut other).source = SourceKind::Registered;
    let clash = crib.apply(vec![Update {
        key: SourceKey("registered:far_away".into()),
        ..MadeUp::update(vec![other], Vec::new()).remove(0)
    }]);
    let told = &clash.new_problems[0].message;
    assert!(told.contains("is taken by `made-up:far`"), "{told}");
    // It has nothing to reload, and what it has stays.
    sources.reload().await;
    assert!(crib.owners_view().get("far_away").is_some());
}
