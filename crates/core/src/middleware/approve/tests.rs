//! The link alone: what is asked, what runs, and what does not, with a book in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::middleware::Books;
use crate::profile::{ListedLink, MiddlewareTable};
use crate::store::{
    Approval, ApprovalBook, ApprovalNews, ApprovalState, Asked, Claim, Decided, Decision,
    NewApproval, RunEnd, StoreError, Subject,
};
use crate::testing::{NoOutputs, builtins, request, tool};
use crate::{
    Access, BoxFuture, Call, CallError, CallResult, ChainSettings, Crib, ErrorCode, Object,
    Outcome, Profiles, Request, Run, Schema,
};

/// Keeps approvals in memory, by the rules of the store.
#[derive(Default)]
struct Memory {
    all: Mutex<HashMap<Arc<str>, (Approval, String, String)>>,
    news: watch::Sender<u64>,
    count: AtomicU64,
}

fn run_key(subject: &Subject, arguments: &str) -> String {
    format!("{subject:?} {arguments}")
}

impl Memory {
    fn step<T>(&self, id: &str, step: impl FnOnce(&mut Approval, &mut String) -> T) -> T {
        let mut all = self.all.lock().unwrap();
        let (approval, _, run) = all.get_mut(id).unwrap();
        let done = step(approval, run);
        drop(all);
        self.news.send_modify(|count| *count += 1);
        done
    }

    fn decide(&self, id: &str, decision: Decision) {
        self.step(id, |approval, run| {
            assert_eq!(approval.state, ApprovalState::Pending);
            approval.state = decision.kind().state();
            approval.decided = Some(Decided {
                at_ms: 1,
                by: "ada".into(),
                how: "test".into(),
            });
            match decision {
                Decision::Approve => {}
                Decision::Edit(arguments) => {
                    *run = format!("edit {}", super::canonical(&arguments));
                    approval.edited = Some(arguments);
                }
                Decision::Reject(words) => approval.words = words,
                Decision::Respond(words) => approval.words = Some(words),
            }
        });
    }

    fn only(&self) -> Approval {
        let all = self.all.lock().unwrap();
        let mut all = all.values().map(|(approval, ..)| approval.clone());
        let only = all.next().unwrap();
        assert!(all.next().is_none());
        only
    }

    fn count(&self) -> usize {
        self.all.lock().unwrap().len()
    }
}

impl ApprovalBook for Memory {
    fn ask(&self, new: NewApproval) -> BoxFuture<'_, Result<Asked, StoreError>> {
        let NewApproval {
            subject,
            client,
            arguments,
            shown,
            note,
            allowed,
            ..
        } = new;
        let asked = format!(
            "{:?} {:?} {} {arguments}",
            subject.agent, subject.token, subject.tool
        );
        let mut all = self.all.lock().unwrap();
        let known = all
            .values()
            .find(|(approval, key, _)| *key == asked && approval.state.is_open());
        if let Some((known, ..)) = known {
            let known = known.clone();
            return Box::pin(async move { Ok(Asked::Known(known)) });
        }
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let approval = Approval {
            id: format!("a{number}").into(),
            state: ApprovalState::Pending,
            project: None,
            agent: subject.agent.clone(),
            token: None,
            client,
            tool: subject.tool.clone(),
            content: subject.content.clone(),
            shown,
            note,
            edited: None,
            allowed,
            words: None,
            created_ms: 0,
            expires_ms: 9,
            decided: None,
            call: None,
            ended_ms: None,
            revision: 0,
        };
        let run = run_key(&subject, &arguments);
        all.insert(approval.id.clone(), (approval.clone(), asked, run));
        Box::pin(async move { Ok(Asked::New(approval)) })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Approval>, StoreError>> {
        let found = self.all.lock().unwrap().get(id).map(|one| one.0.clone());
        Box::pin(async move { Ok(found) })
    }

    fn news(&self, _: &str) -> ApprovalNews {
        self.news.subscribe()
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<bool, StoreError>> {
        let won = self.step(&claim.id, |approval, run| {
            let wanted = match approval.state {
                ApprovalState::Approved => run_key(&claim.subject, &claim.arguments),
                ApprovalState::Edited => format!("edit {}", claim.arguments),
                _ => return false,
            };
            let won = *run == wanted;
            if won {
                approval.state = ApprovalState::Executing;
            }
            won
        });
        Box::pin(async move { Ok(won) })
    }

    fn take_answer<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        let won = self.step(id, |approval, _| {
            let won = approval.state == ApprovalState::Responded;
            approval.state = ApprovalState::Used;
            won
        });
        Box::pin(async move { Ok(won) })
    }

    fn end<'a>(&'a self, id: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), StoreError>> {
        self.end_soon(id, end);
        Box::pin(async { Ok(()) })
    }

    fn end_soon(&self, id: &str, end: RunEnd) {
        self.step(id, |approval, _| {
            approval.state = match end {
                RunEnd::Used => ApprovalState::Used,
                RunEnd::Interrupted => ApprovalState::Interrupted,
            };
        });
    }

    fn content(&self, subject: &Subject) -> Option<String> {
        Some(subject.content.clone())
    }

    fn url(&self, id: &str) -> Option<String> {
        Some(format!("http://localhost:7717/approvals/{id}"))
    }
}

/// Notes with what it was called.
#[derive(Default)]
struct Noting {
    ran: Mutex<Vec<String>>,
    hangs: AtomicUsize,
}

impl Run for Noting {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult> {
        self.ran
            .lock()
            .unwrap()
            .push(call.arguments.text().to_owned());
        Box::pin(async {
            if self.hangs.load(Ordering::Relaxed) > 0 {
                std::future::pending::<()>().await;
            }
            Ok(Outcome::text("done"))
        })
    }
}

struct Scene {
    crib: Crib,
    book: Arc<Memory>,
    run: Arc<Noting>,
}

fn scene(rules: Value) -> Scene {
    let mut rules = rules;
    rules["name"] = "human_in_the_loop".into();
    let table: MiddlewareTable = serde_json::from_value(rules).unwrap();
    let settings = ChainSettings {
        middleware: vec![ListedLink::read(&table).unwrap()],
        ..ChainSettings::new(Duration::from_secs(5))
    };
    let book = Arc::new(Memory::default());
    let books = Books {
        approvals: Some(book.clone()),
        ..Books::default()
    };
    let profiles = Profiles::everybody(settings);
    let crib = Crib::with_books(Arc::new(NoOutputs), || 7, profiles, books);
    let run = Arc::new(Noting::default());
    let scene = Scene { crib, book, run };
    scene.apply("1", Access::Open);
    scene
}

impl Scene {
    fn apply(&self, hash: &str, access: Access) {
        let mut mail = tool("mail", self.run.clone());
        (mail.hash, mail.access) = (hash.into(), access);
        let schema = json!({"properties": {"to": {"type": "string"}, "cc": {"default": "me"}}});
        mail.spec.input_schema = Schema::parse(schema).unwrap();
        let free = tool("free", self.run.clone());
        self.crib.apply(builtins([mail, free]));
    }

    async fn call(&self, arguments: Value) -> CallResult {
        self.crib.call(request("mail", arguments)).await
    }

    /// Calls, and decides while the call waits.
    async fn decided(&self, arguments: Value, decision: Decision) -> CallResult {
        let decide = async {
            while self.book.count() == 0 {
                tokio::task::yield_now().await;
            }
            self.book.decide(&self.book.only().id, decision);
        };
        tokio::join!(self.call(arguments), decide).0
    }

    fn ran(&self) -> Vec<String> {
        self.run.ran.lock().unwrap().clone()
    }

    fn state(&self) -> ApprovalState {
        self.book.only().state
    }
}

fn refused(result: CallResult) -> CallError {
    result.expect_err("it was refused")
}

fn rules() -> Value {
    json!({"approve_tools": ["ma*"], "wait": 60})
}

#[tokio::test(start_paused = true)]
async fn a_yes_runs_the_call_once() {
    let scene = scene(rules());
    let outcome = scene.decided(json!({"to": "ada"}), Decision::Approve).await;
    assert_eq!(outcome.unwrap().output, "done");
    assert_eq!(scene.ran(), [r#"{"to":"ada","cc":"me"}"#]);
    assert_eq!(scene.state(), ApprovalState::Used);
    // The same again is a question again.
    let error = refused(scene.call(json!({"to": "ada"})).await);
    assert_eq!(error.code, ErrorCode::ApprovalPending);
    assert_eq!((scene.ran().len(), scene.book.count()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_and_the_same_call_finds_its_question() {
    let scene = scene(rules());
    let began = tokio::time::Instant::now();
    let error = refused(scene.call(json!({"to": "ada"})).await);
    assert_eq!(began.elapsed().as_secs(), 60);
    assert_eq!(error.code, ErrorCode::ApprovalPending);
    let data = error.data.unwrap();
    assert_eq!(data["approvalId"], "a0");
    assert_eq!(data["url"], "http://localhost:7717/approvals/a0");
    let hint = error.hint.unwrap().to_string();
    assert!(
        hint.contains("toolcrib approvals show a0") && hint.contains("/approvals/a0"),
        "{hint}"
    );
    let again = refused(scene.call(json!({"to": "ada"})).await);
    assert_eq!(again.data.unwrap()["approvalId"], "a0");
    // Another one is another question.
    let other = refused(scene.call(json!({"to": "bob"})).await);
    assert_eq!(other.data.unwrap()["approvalId"], "a1");
    assert!(scene.ran().is_empty());
    scene.book.decide("a0", Decision::Approve);
    assert!(scene.call(json!({"to": "ada"})).await.is_ok());
    assert_eq!(scene.ran().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_validated_and_the_outcome_says_what_ran() {
    let scene = scene(rules());
    let edit = |text| Decision::Edit(Object::parse(text).unwrap());
    let outcome = scene
        .decided(json!({"to": "ada"}), edit(r#"{"to": "bob"}"#))
        .await
        .unwrap();
    assert_eq!(scene.ran(), [r#"{"to": "bob","cc":"me"}"#]);
    let notice = r#"What ran is `mail` with {"to": "bob","cc":"me"}."#;
    assert!(outcome.output.contains(notice), "{}", outcome.output);
    assert!(outcome.output.ends_with("done"), "{}", outcome.output);
    assert_eq!(scene.state(), ApprovalState::Used);
    let scene = self::scene(rules());
    let error = refused(scene.decided(json!({}), edit(r#"{"to": 1}"#)).await);
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    assert!(
        error.message.contains("a person changed the arguments"),
        "{error}"
    );
    assert_eq!(
        (scene.ran().len(), scene.state()),
        (0, ApprovalState::Edited)
    );
}

#[tokio::test(start_paused = true)]
async fn a_no_tells_the_model_not_to_repeat_it() {
    let scene = scene(rules());
    let reason = Some("not today".to_owned());
    let error = refused(scene.decided(json!({}), Decision::Reject(reason)).await);
    assert_eq!(error.code, ErrorCode::Denied);
    assert!(
        error.message.contains("with this reason: `not today`"),
        "{error}"
    );
    let hint = error.hint.unwrap().to_string();
    assert!(hint.starts_with("do not make this call again"), "{hint}");
    // Nobody is asked again about what was just rejected.
    assert_eq!(refused(scene.call(json!({})).await).code, ErrorCode::Denied);
    assert_eq!((scene.book.count(), scene.ran().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_stands_in_for_the_tool_once() {
    let scene = scene(rules());
    let answer = Decision::Respond("it is in the drawer".to_owned());
    let outcome = scene.decided(json!({}), answer).await.unwrap();
    assert_eq!(outcome.output, "it is in the drawer");
    assert!(!outcome.is_error && scene.ran().is_empty());
    assert_eq!(scene.state(), ApprovalState::Used);
}

#[tokio::test(start_paused = true)]
async fn what_changed_while_it_waited_does_not_run() {
    type Change = (&'static str, fn(&Scene), &'static str);
    let changes: [Change; 3] = [
        (
            "another text",
            |scene| scene.apply("2", Access::Open),
            "was changed",
        ),
        (
            "no trust",
            |scene| scene.apply("1", Access::untrusted("/p")),
            "not trusted",
        ),
        (
            "gone",
            |scene| drop(scene.crib.apply(builtins([]))),
            "went away",
        ),
    ];
    for (what, change, why) in changes {
        let scene = scene(rules());
        let decide = async {
            while scene.book.count() == 0 {
                tokio::task::yield_now().await;
            }
            change(&scene);
            scene.book.decide("a0", Decision::Approve);
        };
        let (result, ()) = tokio::join!(scene.call(json!({})), decide);
        let error = refused(result);
        assert_eq!(error.code, ErrorCode::Denied, "{what}");
        assert!(error.message.contains(why), "{what}: {error}");
        assert_eq!(
            (scene.ran().len(), scene.state()),
            (0, ApprovalState::Approved),
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_that_wait_for_one_yes_one_runs() {
    let scene = scene(rules());
    let both = async { tokio::join!(scene.call(json!({})), scene.call(json!({}))) };
    let decide = async {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        scene.book.decide("a0", Decision::Approve);
    };
    let ((one, other), ()) = tokio::join!(both, decide);
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!((scene.ran().len(), scene.book.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_while_it_runs_is_interrupted() {
    let scene = scene(rules());
    scene.run.hangs.store(1, Ordering::Relaxed);
    let call = scene.decided(json!({}), Decision::Approve);
    let _ = tokio::time::timeout(Duration::from_secs(1), call).await;
    assert_eq!(
        (scene.ran().len(), scene.state()),
        (1, ApprovalState::Interrupted)
    );
    // Given up while it waits, its question stays.
    let scene = self::scene(rules());
    let _ = tokio::time::timeout(Duration::from_secs(1), scene.call(json!({}))).await;
    assert_eq!(
        (scene.ran().len(), scene.state()),
        (0, ApprovalState::Pending)
    );
}

#[tokio::test(start_paused = true)]
async fn whoever_can_open_the_page_is_not_kept_waiting() {
    let scene = scene(rules());
    let mut asking: Request = request("mail", json!({}));
    asking.context.asks_again = true;
    let began = tokio::time::Instant::now();
    assert_eq!(
        refused(scene.crib.call(asking).await).code,
        ErrorCode::ApprovalPending
    );
    assert!(began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn who_is_not_listed_is_not_asked_about_and_without_a_book_nothing_runs() {
    let scene = scene(rules());
    assert!(scene.crib.call(request("free", json!({}))).await.is_ok());
    assert_eq!((scene.ran().len(), scene.book.count()), (1, 0));
    let mut table = rules();
    table["name"] = "human_in_the_loop".into();
    let table: MiddlewareTable = serde_json::from_value(table).unwrap();
    let settings = ChainSettings {
        middleware: vec![ListedLink::read(&table).unwrap()],
        ..ChainSettings::new(Duration::from_secs(5))
    };
    let crib = Crib::new(Arc::new(NoOutputs), || 7, Profiles::everybody(settings));
    let run = Arc::new(Noting::default());
    crib.apply(builtins([tool("mail", run.clone())]));
    let error = refused(crib.call(request("mail", json!({}))).await);
    assert_eq!(error.code, ErrorCode::Unavailable);
    assert!(run.ran.lock().unwrap().is_empty());
}
