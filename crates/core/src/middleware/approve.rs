//! `human_in_the_loop`: a call runs when a person said yes to it, once; or is answered in the tool's place.
//!
//! The question is in the store, so whoever decides may be another process, at another time. While a call waits it holds
//! nothing but its own future. After the wait the tool is looked for again, and what the agent may not see, run or has
//! never asked about does not run.
//!
//! Why: `docs/design/0018-approvals.md`.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use super::authorize::refusal;
use super::{Listed, Middleware, Next, Shared};
use crate::approval::{Permission, canonical, subject};
use crate::call::{ApprovedBy, Decision, Edit};
use crate::store::{
    Approval, ApprovalBook, ApprovalState, Asked, DecisionKind, NewApproval, StoreError,
};
use crate::words::{CommandLine, inline, line};
use crate::{
    BoxFuture, Call, CallError, CallResult, ErrorCode, Hint, Object, Outcome, Progress, Question,
};

mod rules;

use rules::Rules;

/// More than anybody reads.
const MAX_SHOWN: usize = 256 * 1_024;
/// No call runs longer than a day.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Approve(Rules);

impl Listed for Approve {
    const NAME: &'static str = "human_in_the_loop";
}

impl Middleware for Approve {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        // Another link of this kind has asked already.
        if call.context.approved.is_some() && call.context.edit.is_none() {
            return next.run(call);
        }
        let Some(question) = self.0.question(call.tool.name()) else {
            return next.run(call);
        };
        Box::pin(async move {
            let shared = next.shared();
            let book = shared.approvals.as_ref().ok_or_else(nobody_to_ask)?;
            if let Some(edit) = call.context.edit.take() {
                return run_edited(book, edit, call, next).await;
            }
            let arguments = canonical(&call.arguments);
            let asked = NewApproval {
                subject: subject(call),
                client: call.caller.client.clone(),
                arguments: arguments.clone(),
                shown: shown(call, &call.arguments)?,
                note: question.note.map(str::to_owned),
                allowed: question.allowed.to_vec(),
                life: self.0.expires,
            };
            let approval = match book.ask(asked).await.map_err(unasked)? {
                Asked::New(approval) | Asked::Known(approval) => approval,
                Asked::Full => return Err(crowded(call.tool.name())),
            };
            let approval = self.decided(book, call, approval).await?;
            same_as_asked(shared, call, &approval)?;
            settle(book, call, next, approval, arguments).await
        })
    }
}

impl Approve {
    /// Waits until somebody decided, as long as settings say.
    async fn decided(
        &self,
        book: &Arc<dyn ApprovalBook>,
        call: &Call,
        mut approval: Approval,
    ) -> Result<Approval, CallError> {
        let id = approval.id.clone();
        let url = book.url(&id);
        let wait = match call.context.asks_again && url.is_some() {
            true => Duration::ZERO,
            false => self.0.wait,
        };
        let deadline = Instant::now() + wait;
        let mut news = book.news(&id);
        let mut told = std::pin::pin!(tell(call, &id, url.as_deref()));
        let mut has_answered = false;
        let stop = call.context.stop.clone().unwrap_or_default();
        loop {
            news.borrow_and_update();
            if let Some(now) = book.get(&id).await.map_err(unasked)? {
                approval = now;
            }
            if approval.state != ApprovalState::Pending {
                return Ok(approval);
            }
            tokio::select! {
                Ok(()) = news.changed() => {}
                () = sleep_until(deadline) => return Err(pending(call, &approval, url.as_deref())),
                () = stop.cancelled() => return Err(pending(call, &approval, url.as_deref())),
                // Whatever it says proves nothing: it is a reason to look again.
                () = told.as_mut(), if !has_answered => has_answered = true,
            }
        }
    }
}

/// Says that a person is asked, and hands the page's address to a client that can open it.
async fn tell(call: &Call, id: &str, url: Option<&str>) {
    let name = call.tool.name();
    let place = url.map_or_else(String::new, |url| format!(": {url}"));
    call.context.progress(Progress {
        message: Some(format!("`{name}` waits for a person's approval{place}")),
        ..Progress::default()
    });
    let (Some(peer), Some(url)) = (&call.context.peer, url) else {
        return std::future::pending().await;
    };
    if !peer.can(Question::Visit) {
        return std::future::pending().await;
    }
    let params = json!({
        "mode": "url",
        "elicitationId": id,
        "url": url,
        "message": format!("Toolcrib: the call of `{name}` waits for your approval."),
    });
    let _ = peer.ask(Question::Visit, params, LONGEST).await;
}

/// What was true before the wait counts no longer: the tool is the one that the agent has now, or nothing runs.
fn same_as_asked(shared: &Shared, call: &mut Call, approval: &Approval) -> Result<(), CallError> {
    let name = call.tool.spec.name.clone();
    let (id, name) = (&approval.id, name.as_str());
    let Some(now) = shared.tool_now(&call.caller.agent, name) else {
        let message = format!("tool `{name}` went away while the call waited; nothing ran");
        return Err(of(id, CallError::denied(message)));
    };
    let before = std::mem::replace(&mut call.tool, now);
    if let Some(error) = refusal(call) {
        return Err(of(id, error));
    }
    if crate::approval::content(&before) == crate::approval::content(&call.tool) {
        return Ok(());
    }
    let message = format!("tool `{name}` was changed while the call waited; nothing ran");
    let error = CallError::denied(message).hint("make the same call again: a person is asked anew");
    Err(of(id, error))
}

/// Does what was decided.
async fn settle(
    book: &Arc<dyn ApprovalBook>,
    call: &mut Call,
    next: Next<'_>,
    approval: Approval,
    arguments: String,
) -> CallResult {
    let id = &approval.id;
    match approval.state {
        ApprovalState::Approved => run(book, id, call, next, arguments, &approval).await,
        ApprovalState::Edited => {
            let Some(edited) = approval.edited.clone() else {
                return Err(of(id, CallError::internal("an edit holds no arguments")));
            };
            call.context.edit = Some(Edit {
                canonical: canonical(&edited),
                arguments: edited,
                approval: Box::new(approval),
                is_checked: false,
            });
            // `validate` takes it from here, and never lets this out.
            Err(CallError::new(ErrorCode::ApprovalPending, "edited").unreached())
        }
        ApprovalState::Rejected => {
            note(call, &approval);
            Err(rejected(call.tool.name(), &approval))
        }
        ApprovalState::Responded => {
            if !book.take_answer(id).await.map_err(unasked)? {
                return Err(used(call.tool.name(), id));
            }
            note(call, &approval);
            let text = approval.words.clone().unwrap_or_default();
            let outcome = Outcome::text(text).meta("approvalId", &*approval.id);
            Ok(outcome.meta("decision", "respond"))
        }
        ApprovalState::Expired => {
            let name = call.tool.name();
            let message = format!("nobody decided on this call of `{name}` in time; nothing ran");
            let hint = "make the same call again: a person is asked anew";
            Err(of(id, CallError::denied(message).hint(hint)))
        }
        ApprovalState::Pending
        | ApprovalState::Executing
        | ApprovalState::Used
        | ApprovalState::Interrupted => Err(used(call.tool.name(), id)),
    }
}

/// Runs what a person said yes to, if nobody else did.
async fn run(
    book: &Arc<dyn ApprovalBook>,
    id: &Arc<str>,
    call: &mut Call,
    next: Next<'_>,
    arguments: String,
    approval: &Approval,
) -> CallResult {
    let limit = call.tool.spec.time_limit(LONGEST).min(LONGEST);
    let claimed = Permission::claim(book, id, call, arguments, limit);
    let Some(permission) = claimed.await.map_err(unasked)? else {
        return Err(used(call.tool.name(), id));
    };
    note(call, approval);
    permission.spend(call, next).await
}

/// The second time through, with a person's own arguments: the outcome says what really ran.
async fn run_edited(
    book: &Arc<dyn ApprovalBook>,
    edit: Edit,
    call: &mut Call,
    next: Next<'_>,
) -> CallResult {
    let Edit {
        canonical,
        approval,
        ..
    } = edit;
    let ran = shown(call, &call.arguments)?;
    let name = call.tool.spec.name.clone();
    let notice = format!(
        "A person changed the arguments before this call ran. What ran is `{name}` with {ran}. \
         Do not make the original call again."
    );
    let mut result = run(book, &approval.id, call, next, canonical, &approval).await;
    match &mut result {
        Ok(outcome) => {
            outcome.remark = Some(match outcome.remark.take() {
                Some(remark) => format!("{notice}\n{remark}"),
                None => notice,
            });
            outcome.metadata.insert("approvalId", &*approval.id);
            outcome.metadata.insert("decision", "edit");
            if call.tool.spec.output_schema.is_none() {
                // Clients that show their models data alone would not show them the notice.
                outcome.structured = None;
            }
        }
        Err(error) if call.context.approved.is_some() => {
            error.message = format!("{notice} It failed: {}", error.message);
        }
        Err(_) => {}
    }
    result
}

/// The arguments as a person sees them: what the crib hands to the tool is covered.
fn shown(call: &Call, arguments: &Object) -> Result<String, CallError> {
    let mut shown = arguments.clone();
    if let Some(hidden) = call.tool.run.hidden(&call.tool) {
        hidden.mask().cover_object(&mut shown);
    }
    let text = shown.text();
    if text.len() <= MAX_SHOWN {
        return Ok(text.to_owned());
    }
    let name = call.tool.name();
    let message = format!(
        "this call of `{name}` has {} bytes of arguments, and nobody can look through them: a person approves at most {MAX_SHOWN}",
        text.len()
    );
    Err(CallError::denied(message)
        .hint("make it in several calls")
        .unreached())
}

/// Notes whose decision the call runs by, for its record and for the tool.
fn note(call: &mut Call, approval: &Approval) {
    let Some(decided) = approval.decided.clone() else {
        return;
    };
    call.context.decision = Some(Decision {
        approver: format!("{} ({})", decided.by, decided.how).into(),
        at_ms: decided.at_ms,
        how: approval.state.as_str().into(),
    });
    if approval.state == ApprovalState::Rejected {
        return;
    }
    call.context.approved = Some(ApprovedBy {
        id: approval.id.clone(),
        decision: approval.state.as_str(),
        by: decided.by,
        how: decided.how,
        at_ms: decided.at_ms,
    });
}

/// An error about an approval names it.
fn of(id: &str, error: CallError) -> CallError {
    error.data(json!({"approvalId": id})).unreached()
}

fn pending(call: &Call, approval: &Approval, url: Option<&str>) -> CallError {
    let id = &approval.id;
    let name = call.tool.name();
    let message = format!("this call of `{name}` waits for a person's approval; nothing ran yet");
    let show = CommandLine::new("toolcrib approvals show").operand(id);
    let hint = match url {
        Some(url) => Hint::run(show).before(format!("tell the person to open {url} or to run ")),
        None => Hint::run(show).before("tell the person to run "),
    };
    let hint = hint.after(
        " in a terminal of their own. Then make the same call again: after a yes it runs once. Nobody but a person can approve it.",
    );
    let data = json!({
        "approvalId": &**id, "url": url, "expiresMs": approval.expires_ms,
    });
    CallError::new(ErrorCode::ApprovalPending, message)
        .hint(hint)
        .data(data)
        .unreached()
}

fn rejected(name: &str, approval: &Approval) -> CallError {
    let why = match &approval.words {
        Some(words) => format!(", with this reason: {}", inline(&line(words))),
        None => String::new(),
    };
    let message = format!("a person rejected this call of `{name}`{why}. It was not run.");
    let error = CallError::denied(message)
        .hint("do not make this call again unless the user explicitly asks for it");
    let data = json!({"approvalId": &*approval.id, "decision": DecisionKind::Reject.as_str()});
    error.data(data).unreached()
}

fn used(name: &str, id: &str) -> CallError {
    let message = format!(
        "the yes to this call of `{name}` is for one run, and another call has used it; nothing ran now"
    );
    let error = CallError::denied(message)
        .hint("if it has to run once more, make the call again: a person is asked anew");
    of(id, error)
}

fn nobody_to_ask() -> CallError {
    CallError::unavailable("this call needs a person's approval, and this crib keeps none")
        .hint("use a crib that has a store")
        .unreached()
}

fn unasked(error: StoreError) -> CallError {
    let message =
        format!("this call needs a person's approval, and none can be asked or noted: {error}");
    CallError::unavailable(message)
        .hint("repair the store, then call again")
        .unreached()
}

fn crowded(name: &str) -> CallError {
    let message = format!("`{name}` needs a person's approval, and too many calls wait already");
    CallError::new(ErrorCode::LimitReached, message)
        .hint("`toolcrib approvals` lists them")
        .unreached()
}

#[cfg(test)]
mod tests;
