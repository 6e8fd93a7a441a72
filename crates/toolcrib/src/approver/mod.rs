//! Approvals as people decide them: looked at, decided, and heard of by the calls that wait.
//!
//! REST, the page, the webhook and the command line all come here, each with a [`Decider`].
//!
//! Why: `docs/design/0018-approvals.md`.

pub mod desk;
pub mod process;
pub mod terminal;
pub mod webhook;

use std::path::Path;
use std::sync::Arc;

use toolcrib_core::store::{Approval, ApprovalState, Decision};
use toolcrib_core::{CallError, Crib, ErrorCode, Object, canonical, validated};
use toolcrib_store::{Approvals, NewDecision};

use crate::serve::auth::Decider;
use crate::store_handle::{StoreHandle, refused};
use desk::Desk;

pub struct Approver {
    store: Arc<StoreHandle>,
    crib: Arc<Crib>,
    /// Where this crib's calls wait, where it runs any.
    desk: Option<Arc<Desk>>,
    project: Option<Arc<Path>>,
}

impl Approver {
    pub fn new(
        store: Arc<StoreHandle>,
        crib: Arc<Crib>,
        desk: Option<Arc<Desk>>,
        project: Option<Arc<Path>>,
    ) -> Approver {
        Approver {
            store,
            crib,
            desk,
            project,
        }
    }

    fn book(&self) -> Result<Approvals, CallError> {
        Ok(self.store.ready().map_err(refused)?.approvals())
    }

    /// The page of an approval, where this crib has one.
    pub fn url(&self, id: &str) -> Option<String> {
        self.desk.as_ref()?.url_of(id)
    }

    pub fn webhook(&self) -> Option<&webhook::Webhook> {
        self.desk.as_ref()?.webhook()
    }

    /// Newest first.
    pub async fn list(
        &self,
        project: Option<&str>,
        state: Option<ApprovalState>,
        limit: usize,
    ) -> Result<Vec<Approval>, CallError> {
        let book = self.book()?;
        book.sweep(process::may_live).await.map_err(refused)?;
        book.list(project, state, limit).await.map_err(refused)
    }

    pub async fn get(&self, id: &str) -> Result<Approval, CallError> {
        // No other character is in any id, and not every store takes every character.
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let found = match id.len() <= 64 && id.chars().all(plain) {
            true => {
                let book = self.book()?;
                book.sweep(process::may_live).await.map_err(refused)?;
                book.get(id).await.map_err(refused)?
            }
            false => None,
        };
        found.ok_or_else(|| {
            CallError::new(ErrorCode::NotFound, "there is no such approval")
                .hint("`toolcrib approvals` lists them")
        })
    }

    /// Takes a person's decision.
    pub async fn decide(
        &self,
        decider: &Decider,
        id: &str,
        decision: Decision,
    ) -> Result<Approval, CallError> {
        let approval = self.get(id).await?;
        if approval.state != ApprovalState::Pending {
            return Err(over(&approval));
        }
        let kind = decision.kind();
        if !approval.allowed.contains(&kind) {
            let allowed: Vec<&str> = approval.allowed.iter().map(|kind| kind.as_str()).collect();
            let message = format!("`{}` is not among what may be decided here", kind.as_str());
            return Err(CallError::new(ErrorCode::Forbidden, message)
                .hint(format!("use one of: {}", allowed.join(", "))));
        }
        let arguments = match &decision {
            Decision::Edit(arguments) => Some(self.edited(&approval, arguments)?),
            Decision::Approve | Decision::Reject(_) | Decision::Respond(_) => None,
        };
        let new = NewDecision {
            decision,
            arguments,
            by: decider.by().to_owned(),
            how: decider.how().to_owned(),
        };
        let book = self.book()?;
        match book.decide(id, new).await.map_err(refused)? {
            Some(decided) => {
                tracing::info!(
                    approval = id,
                    tool = &*decided.tool,
                    state = decided.state.as_str(),
                    by = decider.by(),
                    how = decider.how(),
                    "approval_decided"
                );
                Ok(decided)
            }
            None => Err(over(&self.get(id).await?)),
        }
    }

    /// Arguments that a person wrote, as they are hashed, if the tool takes them.
    fn edited(&self, approval: &Approval, arguments: &Object) -> Result<String, CallError> {
        let here = self.project.as_ref().map(|root| root.to_string_lossy());
        let view = self.crib.view(&approval.agent);
        let tool = view.get(&approval.tool);
        let Some(tool) = tool.filter(|_| here.as_deref() == approval.project.as_deref()) else {
            let message = format!(
                "the tool `{}` is not here to check the arguments",
                approval.tool
            );
            return Err(CallError::new(ErrorCode::Conflict, message)
                .hint("decide where its project is served, or in the project's folder"));
        };
        validated(tool, arguments)?;
        Ok(canonical(arguments))
    }
}

fn over(approval: &Approval) -> CallError {
    let state = approval.state;
    let message = match &approval.decided {
        Some(decided) => format!(
            "it was decided already, by {}: it is {state} now",
            decided.by
        ),
        None => format!("it can't be decided any more: it is {state}"),
    };
    CallError::new(ErrorCode::Conflict, message).hint("`toolcrib approvals` lists those that wait")
}
