//! Where calls wait for people: the store's approvals, and one task that hears of every change for all who wait.
//!
//! A call that waits is a future and an entry in a map. Decisions of other processes come with the store's changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use toolcrib_core::store::{
    Approval, ApprovalBook, ApprovalNews, ApprovalState, Asked, Claim, NewApproval, RunEnd,
    StoreError, Subject,
};
use toolcrib_core::{BoxFuture, Event, Events};
use toolcrib_store::Approvals;

use super::process;
use super::webhook::Webhook;
use crate::now_ms;
use crate::store_handle::StoreHandle;

/// How often is looked for what ended by itself.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// How often everybody who waits looks again, in case that nobody told.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);
const FORGET_EVERY: Duration = Duration::from_secs(3_600);
/// How long what ended stays on record.
const KEPT_MS: u64 = 90 * 24 * 3_600 * 1_000;
/// The path of the page, before the id.
pub const PAGE: &str = "/approvals/";
/// Where signed decisions come in.
pub const CALLBACK: &str = "/webhooks/approvals";

/// Where calls wait.
pub struct Desk {
    store: Arc<StoreHandle>,
    /// This process, by which others find out whether it lives.
    runner: String,
    waiting: Mutex<HashMap<String, watch::Sender<u64>>>,
    /// Questions whose asking was told, and whose end was not.
    asked: Mutex<HashMap<Arc<str>, ()>>,
    /// Where this crib's pages are.
    base: OnceLock<String>,
    events: OnceLock<Events>,
    webhook: OnceLock<Webhook>,
    follows: AtomicBool,
}

impl Desk {
    pub fn new(store: Arc<StoreHandle>) -> Desk {
        Desk {
            store,
            runner: process::runner(),
            waiting: Mutex::default(),
            asked: Mutex::default(),
            base: OnceLock::new(),
            events: OnceLock::new(),
            webhook: OnceLock::new(),
            follows: AtomicBool::new(false),
        }
    }

    /// Pages are at this address from now on.
    pub fn serve_at(&self, base: String) {
        let _ = self.base.set(base);
    }

    pub fn tell(&self, events: Events) {
        let _ = self.events.set(events);
    }

    pub fn send_to(&self, webhook: Webhook) {
        let _ = self.webhook.set(webhook);
    }

    pub fn webhook(&self) -> Option<&Webhook> {
        self.webhook.get()
    }

    pub fn approvals(&self) -> Result<Approvals, StoreError> {
        Ok(self.store.ready()?.approvals())
    }

    /// Follows what other processes ask and decide, until nobody has the desk any more.
    pub fn follow(self: &Arc<Desk>) {
        if self.follows.swap(true, Ordering::AcqRel) {
            return;
        }
        let changes = self.store.changes();
        let state = *changes.borrow();
        let last = state.revisions.map_or(0, |all| all.approvals);
        let follower = Follower {
            desk: Arc::downgrade(self),
            last,
            opening: state.opening,
        };
        tokio::spawn(follower.run(changes));
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<u64>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, id: &str) {
        if let Some(waits) = self.waiting().get(id) {
            waits.send_modify(|count| *count += 1);
        }
    }

    fn wake_all(&self) {
        let mut waiting = self.waiting();
        waiting.retain(|_, waits| waits.receiver_count() > 0);
        for waits in waiting.values() {
            waits.send_modify(|count| *count += 1);
        }
    }

    /// Wakes who waits for it, and tells who listens.
    fn heard(&self, approval: &Approval) {
        self.wake(&approval.id);
        let Some(events) = self.events.get() else {
            return;
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = asked.insert(approval.id.clone(), ()).is_none();
        if is_new && approval.state != ApprovalState::Pending && approval.decided.is_none() {
            asked.remove(&approval.id);
            return;
        }
        if is_new {
            let late = matches!(
                approval.state,
                ApprovalState::Executing | ApprovalState::Used | ApprovalState::Interrupted
            );
            if late {
                asked.remove(&approval.id);
                return;
            }
            events.tell(Event::ApprovalRequested {
                id: approval.id.clone(),
                tool: approval.tool.clone(),
                client: approval.client.clone(),
                agent: approval.agent.clone(),
                url: self.url_of(&approval.id),
            });
        }
        if approval.state != ApprovalState::Pending {
            asked.remove(&approval.id);
            events.tell(Event::ApprovalDecided {
                id: approval.id.clone(),
                tool: approval.tool.clone(),
                agent: approval.agent.clone(),
                state: decision_of(approval),
            });
        }
    }

    pub fn url_of(&self, id: &str) -> Option<String> {
        Some(format!("{}{PAGE}{id}", self.base.get()?))
    }

    async fn sweep(&self) {
        let swept = async { self.approvals()?.sweep(process::may_live).await };
        if let Err(error) = swept.await {
            tracing::debug!(%error, "approvals could not be looked through");
        }
    }
}

/// What was decided, where the call has used it already.
fn decision_of(approval: &Approval) -> ApprovalState {
    match approval.state {
        ApprovalState::Executing | ApprovalState::Used | ApprovalState::Interrupted => {
            match approval.edited {
                Some(_) => ApprovalState::Edited,
                None => ApprovalState::Approved,
            }
        }
        state => state,
    }
}

/// Hears of changes for a desk, as long as somebody has that.
struct Follower {
    desk: Weak<Desk>,
    /// The last change that was heard of.
    last: u64,
    /// The opening of the store that it is of.
    opening: u64,
}

impl Follower {
    async fn run(mut self, mut changes: watch::Receiver<crate::store_handle::StoreState>) {
        let mut swept: Option<Instant> = None;
        let mut forgot = Instant::now();
        loop {
            let Some(desk) = self.desk.upgrade() else {
                return;
            };
            if swept.is_none_or(|at| at.elapsed() >= SWEEP_EVERY) {
                swept = Some(Instant::now());
                desk.sweep().await;
            }
            if forgot.elapsed() >= FORGET_EVERY {
                forgot = Instant::now();
                if let Ok(approvals) = desk.approvals() {
                    let _ = approvals.forget(now_ms().saturating_sub(KEPT_MS)).await;
                }
            }
            let state = *changes.borrow_and_update();
            if state.opening != self.opening {
                (self.opening, self.last) = (state.opening, 0);
                self.last = state.revisions.map_or(0, |all| all.approvals);
                desk.wake_all();
            } else if state.revisions.is_some_and(|all| all.approvals > self.last) {
                self.hear(&desk).await;
            }
            drop(desk);
            tokio::select! {
                told = changes.changed() => if told.is_err() { return },
                () = tokio::time::sleep(LOOK_ANYWAY) => {
                    if let Some(desk) = self.desk.upgrade() {
                        self.hear(&desk).await;
                    }
                }
            }
        }
    }

    async fn hear(&mut self, desk: &Desk) {
        loop {
            let read = async { desk.approvals()?.changed_since(self.last).await };
            let changed = match read.await {
                Ok(changed) => changed,
                Err(error) => {
                    tracing::debug!(%error, "changes of approvals could not be read");
                    return;
                }
            };
            let Some(last) = changed.last() else { return };
            self.last = last.revision;
            changed.iter().for_each(|one| desk.heard(one));
        }
    }
}

/// The desk as the chain has it.
pub struct Book(pub Arc<Desk>);

impl ApprovalBook for Book {
    fn ask(&self, new: NewApproval) -> BoxFuture<'_, Result<Asked, StoreError>> {
        Box::pin(async move {
            let Book(desk) = self;
            desk.follow();
            let asked = desk.approvals()?.ask(new).await?;
            if let (Asked::New(approval), Some(webhook)) = (&asked, desk.webhook.get()) {
                let callback = desk.base.get().map(|base| format!("{base}{CALLBACK}"));
                webhook.send(approval, desk.url_of(&approval.id), callback);
            }
            Ok(asked)
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Approval>, StoreError>> {
        Box::pin(async move { self.0.approvals()?.get(id).await })
    }

    fn news(&self, id: &str) -> ApprovalNews {
        let mut waiting = self.0.waiting();
        if waiting.len() >= 1_024 {
            waiting.retain(|_, waits| waits.receiver_count() > 0);
        }
        let waits = waiting.entry(id.to_owned());
        waits.or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<bool, StoreError>> {
        Box::pin(async move {
            let approvals = self.0.approvals()?;
            approvals.claim(&claim, &self.0.runner).await
        })
    }

    fn take_answer<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move { self.0.approvals()?.take_answer(id).await })
    }

    fn end<'a>(&'a self, id: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let approvals = self.0.approvals()?;
            approvals.end(id, &self.0.runner, end).await.map(|_| ())
        })
    }

    fn end_soon(&self, id: &str, end: RunEnd) {
        let (desk, id) = (self.0.clone(), id.to_owned());
        // A call that is dropped with its runtime is found by whoever looks next: its runner is gone then.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let ended = async { desk.approvals()?.end(&id, &desk.runner, end).await };
                if let Err(error) = ended.await {
                    tracing::warn!(%error, approval = id, "how an approved call ended could not be noted");
                }
            });
        }
    }

    fn content(&self, subject: &Subject) -> Option<String> {
        Some(self.0.approvals().ok()?.content(subject))
    }

    fn url(&self, id: &str) -> Option<String> {
        self.0.url_of(id)
    }
}
