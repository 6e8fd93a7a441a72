//! Approvals: each step once, whoever takes it, and nothing lost or used twice when processes die.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use toolcrib_core::Object;
use toolcrib_core::store::{
    Approval, ApprovalState, Asked, Claim, Decision, DecisionKind, NewApproval, RunEnd, Subject,
};
use toolcrib_store::{Approvals, NewDecision};

use crate::support::{self, Site};

const LONG: Duration = Duration::from_secs(600);
const YES: &str = "{\"to\":\"ada\",}";

fn subject() -> Subject {
    Subject {
        project: Some("/p".into()),
        agent: "default".into(),
        token: None,
        tool: "mail".into(),
        content: "one".into(),
    }
}

fn question() -> NewApproval {
    NewApproval {
        subject: subject(),
        client: "claude".into(),
        arguments: YES.to_owned(),
        shown: "{\"to\":\"ada\"}".to_owned(),
        note: Some("mail leaves the house".to_owned()),
        allowed: DecisionKind::ALL.to_vec(),
        life: LONG,
    }
}

async fn ask(approvals: &Approvals, new: NewApproval) -> Approval {
    match approvals.ask(new).await.unwrap() {
        Asked::New(approval) | Asked::Known(approval) => approval,
        Asked::Full => panic!("full"),
    }
}

fn decision(decision: Decision) -> NewDecision {
    let arguments = match &decision {
        Decision::Edit(arguments) => Some(arguments.text().to_owned()),
        _ => None,
    };
    NewDecision {
        decision,
        arguments,
        by: "ada".to_owned(),
        how: "terminal".to_owned(),
    }
}

async fn decide(approvals: &Approvals, id: &str, what: Decision) -> Option<Approval> {
    approvals.decide(id, decision(what)).await.unwrap()
}

fn claim(id: &Arc<str>) -> Claim {
    Claim {
        id: id.clone(),
        subject: subject(),
        arguments: YES.to_owned(),
        call: "call-1".into(),
        limit: LONG,
    }
}

async fn state(approvals: &Approvals, id: &str) -> ApprovalState {
    approvals.get(id).await.unwrap().unwrap().state
}

pub async fn an_approval_goes_its_way_once(site: Site) {
    // Whoever waits and whoever decides share the store alone.
    let (one, other) = (site.open().await, site.open().await);
    let (waits, decides) = (one.approvals(), other.approvals());
    let asked = ask(&waits, question()).await;
    assert_eq!(asked.state, ApprovalState::Pending);
    assert_eq!((&*asked.tool, &*asked.client), ("mail", "claude"));
    assert_eq!(asked.note.as_deref(), Some("mail leaves the house"));
    assert!(
        !waits.claim(&claim(&asked.id), "me").await.unwrap(),
        "nobody said yes"
    );
    let decided = decide(&decides, &asked.id, Decision::Approve)
        .await
        .unwrap();
    let who = decided.decided.unwrap();
    assert_eq!((who.by.as_str(), who.how.as_str()), ("ada", "terminal"));
    assert!(
        decide(&decides, &asked.id, Decision::Approve)
            .await
            .is_none()
    );
    assert!(
        decide(&decides, &asked.id, Decision::Reject(None))
            .await
            .is_none()
    );
    assert!(waits.claim(&claim(&asked.id), "me").await.unwrap());
    assert!(
        !decides.claim(&claim(&asked.id), "other").await.unwrap(),
        "it runs"
    );
    assert!(
        !decides.end(&asked.id, "other", RunEnd::Used).await.unwrap(),
        "not its run"
    );
    assert!(waits.end(&asked.id, "me", RunEnd::Used).await.unwrap());
    assert!(
        !waits
            .end(&asked.id, "me", RunEnd::Interrupted)
            .await
            .unwrap()
    );
    assert!(
        !waits.claim(&claim(&asked.id), "me").await.unwrap(),
        "it was used"
    );
    let used = waits.get(&asked.id).await.unwrap().unwrap();
    assert_eq!(
        (used.state, used.call.as_deref()),
        (ApprovalState::Used, Some("call-1"))
    );
    let again = ask(&waits, question()).await;
    assert_ne!(again.id, asked.id);
}

pub async fn the_same_call_finds_its_question(site: Site) {
    let stores = (site.open().await, site.open().await);
    let (one, other) = (stores.0.approvals(), stores.1.approvals());
    let asked = ask(&one, question()).await;
    assert_eq!(ask(&other, question()).await.id, asked.id);
    let changes: [fn(&mut NewApproval); 6] = [
        |new| new.subject.project = None,
        |new| new.subject.agent = "other".into(),
        |new| new.subject.token = Some("t".into()),
        |new| new.subject.tool = "mails".into(),
        |new| new.arguments = "{\"to\":\"bob\",}".to_owned(),
        |new| new.arguments = String::new(),
    ];
    let mut ids = HashSet::from([asked.id.clone()]);
    for change in changes {
        let mut new = question();
        change(&mut new);
        assert!(ids.insert(ask(&one, new).await.id));
    }
    // Who asks in another words' name is no other asker.
    let mut renamed = question();
    renamed.client = "codex".into();
    assert_eq!(ask(&one, renamed).await.id, asked.id);
    // Another tool of that name is another question, and the one before is over.
    let mut changed = question();
    changed.subject.content = "two".to_owned();
    let changed = ask(&one, changed).await;
    assert!(ids.insert(changed.id));
    assert_eq!(state(&one, &asked.id).await, ApprovalState::Expired);
    // A no is found again, and nobody is asked anew.
    let mut new = question();
    new.subject.tool = "no".into();
    let no = ask(&one, new.clone()).await;
    decide(&one, &no.id, Decision::Reject(Some("never".to_owned())))
        .await
        .unwrap();
    let found = ask(&other, new).await;
    assert_eq!((found.id, found.words.as_deref()), (no.id, Some("never")));
}

pub async fn a_yes_is_for_exactly_what_was_asked(site: Site) {
    let store = site.open().await;
    let approvals = store.approvals();
    let asked = ask(&approvals, question()).await;
    decide(&approvals, &asked.id, Decision::Approve)
        .await
        .unwrap();
    let changes: [fn(&mut Claim); 7] = [
        |claim| claim.id = "0198c0de-0000-7000-8000-000000000000".into(),
        |claim| claim.subject.project = Some("/q".into()),
        |claim| claim.subject.agent = "other".into(),
        |claim| claim.subject.token = Some("t".into()),
        |claim| claim.subject.tool = "wipe".into(),
        |claim| claim.subject.content = "two".to_owned(),
        |claim| claim.arguments = "{\"to\":\"eve\",}".to_owned(),
    ];
    for change in changes {
        let mut altered = claim(&asked.id);
        change(&mut altered);
        assert!(
            !approvals.claim(&altered, "me").await.unwrap(),
            "{altered:?}"
        );
    }
    assert!(approvals.claim(&claim(&asked.id), "me").await.unwrap());
    // An edit is for what it says, and not for what was asked.
    let mut new = question();
    new.subject.tool = "edited".into();
    let asked = ask(&approvals, new).await;
    let edit = Object::parse("{\"to\":\"bob\"}").unwrap();
    let edited = decide(&approvals, &asked.id, Decision::Edit(edit))
        .await
        .unwrap();
    assert_eq!(edited.edited.unwrap().text(), "{\"to\":\"bob\"}");
    let mut original = claim(&asked.id);
    original.subject.tool = "edited".into();
    assert!(!approvals.claim(&original, "me").await.unwrap());
    original.arguments = "{\"to\":\"bob\"}".to_owned();
    assert!(approvals.claim(&original, "me").await.unwrap());
    approvals.end(&asked.id, "me", RunEnd::Used).await.unwrap();
    let used = approvals.get(&asked.id).await.unwrap().unwrap();
    assert_eq!(used.edited, None, "clear arguments go with their use");
}

pub async fn only_what_is_allowed_is_decided_and_only_once(site: Site) {
    let store = site.open().await;
    let approvals = store.approvals();
    let mut new = question();
    new.allowed = vec![DecisionKind::Reject, DecisionKind::Respond];
    let asked = ask(&approvals, new).await;
    assert!(
        decide(&approvals, &asked.id, Decision::Approve)
            .await
            .is_none()
    );
    let edit = Decision::Edit(Object::default());
    assert!(decide(&approvals, &asked.id, edit).await.is_none());
    assert!(
        decide(&approvals, "nobody", Decision::Reject(None))
            .await
            .is_none()
    );
    let answer = Decision::Respond("in the drawer".to_owned());
    assert!(decide(&approvals, &asked.id, answer).await.is_some());
    assert!(!approvals.claim(&claim(&asked.id), "me").await.unwrap());
    assert!(approvals.take_answer(&asked.id).await.unwrap());
    assert!(!approvals.take_answer(&asked.id).await.unwrap());
    assert_eq!(state(&approvals, &asked.id).await, ApprovalState::Used);
}

pub async fn what_is_over_is_over(site: Site) {
    let store = site.open().await;
    let approvals = store.approvals();
    let short = |tool: &str| {
        let mut new = question();
        new.subject.tool = tool.into();
        new.life = Duration::from_millis(1);
        new
    };
    let asked = ask(&approvals, short("mail")).await;
    // sleeps: for its life to be over
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(
        decide(&approvals, &asked.id, Decision::Approve)
            .await
            .is_none()
    );
    let again = ask(&approvals, question()).await;
    assert_ne!(again.id, asked.id);
    assert_eq!(state(&approvals, &asked.id).await, ApprovalState::Expired);
    decide(&approvals, &again.id, Decision::Approve)
        .await
        .unwrap();
    let late = ask(&approvals, short("late")).await;
    // sleeps: for its life to be over
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(approvals.sweep(|_| true).await.unwrap(), 1);
    assert_eq!(state(&approvals, &late.id).await, ApprovalState::Expired);
    assert_eq!(approvals.sweep(|_| true).await.unwrap(), 0);
    // What is open stays, what ended goes.
    assert_eq!(approvals.forget(u64::MAX / 4).await.unwrap(), 2);
    assert_eq!(approvals.list(None, None, 9).await.unwrap().len(), 1);
}

pub async fn a_runner_that_died_leaves_an_interrupted_call(site: Site) {
    let store = site.open().await;
    let approvals = store.approvals();
    let asked = ask(&approvals, question()).await;
    decide(&approvals, &asked.id, Decision::Approve)
        .await
        .unwrap();
    assert!(approvals.claim(&claim(&asked.id), "dead").await.unwrap());
    assert_eq!(approvals.sweep(|_| true).await.unwrap(), 0);
    // It runs: the same call meanwhile is a question of its own.
    assert_ne!(ask(&approvals, question()).await.id, asked.id);
    assert_eq!(approvals.sweep(|runner| runner != "dead").await.unwrap(), 1);
    assert_eq!(
        state(&approvals, &asked.id).await,
        ApprovalState::Interrupted
    );
    assert!(!approvals.claim(&claim(&asked.id), "me").await.unwrap());
    assert!(
        !approvals
            .end(&asked.id, "dead", RunEnd::Used)
            .await
            .unwrap()
    );
    // A runner that nobody can tell of has its call's time.
    let mut new = question();
    new.subject.tool = "far".into();
    let far = ask(&approvals, new).await;
    decide(&approvals, &far.id, Decision::Approve)
        .await
        .unwrap();
    let mut brief = claim(&far.id);
    brief.subject.tool = "far".into();
    brief.limit = Duration::ZERO;
    assert!(approvals.claim(&brief, "far").await.unwrap());
    assert_eq!(approvals.sweep(|_| true).await.unwrap(), 1);
    assert_eq!(state(&approvals, &far.id).await, ApprovalState::Interrupted);
}

pub async fn of_many_who_try_one_succeeds(site: Site) {
    let store = site.open().await;
    let asking = (0..8).map(|_| {
        let approvals = store.approvals();
        tokio::spawn(async move { ask(&approvals, question()).await.id })
    });
    let mut ids = HashSet::new();
    for one in asking.collect::<Vec<_>>() {
        ids.insert(one.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
    let id = ids.into_iter().next().unwrap();
    let deciding = (0..8).map(|n| {
        let (approvals, id) = (store.approvals(), id.clone());
        let what = [Decision::Approve, Decision::Reject(None)][n % 2].clone();
        tokio::spawn(async move { decide(&approvals, &id, what).await.is_some() })
    });
    let mut won = 0;
    for one in deciding.collect::<Vec<_>>() {
        won += u32::from(one.await.unwrap());
    }
    assert_eq!(won, 1);
    let mut new = question();
    new.subject.tool = "mail2".into();
    let yes = ask(&store.approvals(), new).await.id;
    decide(&store.approvals(), &yes, Decision::Approve)
        .await
        .unwrap();
    let claiming = (0..8).map(|n| {
        let (approvals, mut claim) = (store.approvals(), claim(&yes));
        claim.subject.tool = "mail2".into();
        tokio::spawn(async move { approvals.claim(&claim, &n.to_string()).await.unwrap() })
    });
    let mut won = 0;
    for one in claiming.collect::<Vec<_>>() {
        won += u32::from(one.await.unwrap());
    }
    assert_eq!(won, 1);
}

pub async fn changes_are_read_in_their_order(site: Site) {
    let store = site.open().await;
    let (other, approvals) = (site.open().await, store.approvals());
    let mut told = other.watch();
    let before = told.borrow_and_update().revisions.approvals;
    let asked = ask(&approvals, question()).await;
    let heard = told.wait_for(|pulse| pulse.revisions.approvals > before);
    tokio::time::timeout(support::SOON, heard)
        .await
        .unwrap()
        .unwrap();
    decide(&approvals, &asked.id, Decision::Approve)
        .await
        .unwrap();
    let mut new = question();
    new.subject.tool = "b".into();
    let other = ask(&approvals, new).await;
    let changed = approvals.changed_since(before).await.unwrap();
    let seen: Vec<_> = changed
        .iter()
        .map(|one| (one.id.clone(), one.state))
        .collect();
    let expected = [
        (asked.id, ApprovalState::Approved),
        (other.id, ApprovalState::Pending),
    ];
    assert_eq!(seen, expected);
    assert_eq!(approvals.changed_since(other.revision).await.unwrap(), []);
}
