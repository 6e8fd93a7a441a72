//! What is remembered of one approval, and the book that approvals are kept in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::StoreError;
use crate::{BoxFuture, Object};

/// How far an approval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// A yes that no call has used yet.
    Approved,
    /// A yes with other arguments.
    Edited,
    Rejected,
    /// A person answered in the tool's place.
    Responded,
    /// Nobody decided, or nobody used the decision, in time; or the tool has changed.
    Expired,
    /// The call runs.
    Executing,
    /// The call ran, or the answer was handed over.
    Used,
    /// The call began, and nobody knows how far it came.
    Interrupted,
}

impl ApprovalState {
    pub const ALL: [ApprovalState; 9] = [
        ApprovalState::Pending,
        ApprovalState::Approved,
        ApprovalState::Edited,
        ApprovalState::Rejected,
        ApprovalState::Responded,
        ApprovalState::Expired,
        ApprovalState::Executing,
        ApprovalState::Used,
        ApprovalState::Interrupted,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalState::Pending => "pending",
            ApprovalState::Approved => "approved",
            ApprovalState::Edited => "edited",
            ApprovalState::Rejected => "rejected",
            ApprovalState::Responded => "responded",
            ApprovalState::Expired => "expired",
            ApprovalState::Executing => "executing",
            ApprovalState::Used => "used",
            ApprovalState::Interrupted => "interrupted",
        }
    }

    pub fn parse(text: &str) -> Option<ApprovalState> {
        ApprovalState::ALL
            .into_iter()
            .find(|state| state.as_str() == text)
    }

    /// May the same call still find it?
    pub fn is_open(self) -> bool {
        matches!(
            self,
            ApprovalState::Pending
                | ApprovalState::Approved
                | ApprovalState::Edited
                | ApprovalState::Rejected
                | ApprovalState::Responded
        )
    }
}

/// What a person may decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecisionKind {
    Approve,
    Edit,
    Reject,
    Respond,
}

impl DecisionKind {
    pub const ALL: [DecisionKind; 4] = [
        DecisionKind::Approve,
        DecisionKind::Edit,
        DecisionKind::Reject,
        DecisionKind::Respond,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            DecisionKind::Approve => "approve",
            DecisionKind::Edit => "edit",
            DecisionKind::Reject => "reject",
            DecisionKind::Respond => "respond",
        }
    }

    pub fn parse(text: &str) -> Option<DecisionKind> {
        DecisionKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }

    /// What the approval is afterwards.
    pub fn state(self) -> ApprovalState {
        match self {
            DecisionKind::Approve => ApprovalState::Approved,
            DecisionKind::Edit => ApprovalState::Edited,
            DecisionKind::Reject => ApprovalState::Rejected,
            DecisionKind::Respond => ApprovalState::Responded,
        }
    }
}

/// A person's decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    Approve,
    /// Run it with these arguments instead.
    Edit(Object),
    Reject(Option<String>),
    /// The tool does not run, and this is its result.
    Respond(String),
}

impl Decision {
    pub fn kind(&self) -> DecisionKind {
        match self {
            Decision::Approve => DecisionKind::Approve,
            Decision::Edit(_) => DecisionKind::Edit,
            Decision::Reject(_) => DecisionKind::Reject,
            Decision::Respond(_) => DecisionKind::Respond,
        }
    }
}

/// Whose call it is, and of what: an approval holds for nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The root of the project.
    pub project: Option<Arc<str>>,
    pub agent: Arc<str>,
    /// The id of the token that was shown.
    pub token: Option<Arc<str>>,
    pub tool: Arc<str>,
    /// What the tool is made of and what it may do, as text that differs when either does.
    pub content: String,
}

/// A question that a call asks.
#[derive(Debug, Clone)]
pub struct NewApproval {
    pub subject: Subject,
    /// The program that asks, by its own word.
    pub client: Arc<str>,
    /// The arguments in the one way in which they are hashed: [`crate::approval::canonical`].
    pub arguments: String,
    /// The arguments as people see them, secrets covered.
    pub shown: String,
    /// Why a person is asked, in the words of whoever set it up.
    pub note: Option<String>,
    pub allowed: Vec<DecisionKind>,
    /// How long it waits for a decision, and a decision for its call.
    pub life: Duration,
}

/// Who decided, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub at_ms: u64,
    pub by: String,
    pub how: String,
}

/// An approval on record.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// A UUID of version 7.
    pub id: Arc<str>,
    pub state: ApprovalState,
    pub project: Option<Arc<str>>,
    pub agent: Arc<str>,
    pub token: Option<Arc<str>>,
    pub client: Arc<str>,
    pub tool: Arc<str>,
    /// The keyed hash of [`Subject::content`].
    pub content: String,
    /// The arguments that were asked for, secrets covered.
    pub shown: String,
    pub note: Option<String>,
    /// The arguments of an edit, until they were used.
    pub edited: Option<Object>,
    pub allowed: Vec<DecisionKind>,
    /// Why it was rejected, or what was answered.
    pub words: Option<String>,
    pub created_ms: u64,
    pub expires_ms: u64,
    pub decided: Option<Decided>,
    /// The record of the call that ran.
    pub call: Option<String>,
    pub ended_ms: Option<u64>,
    /// The number of its last change.
    pub revision: u64,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    New(Approval),
    /// The same call had asked before.
    Known(Approval),
    /// Too many wait already.
    Full,
}

/// What is about to run.
#[derive(Debug, Clone)]
pub struct Claim {
    pub id: Arc<str>,
    pub subject: Subject,
    /// See [`NewApproval::arguments`].
    pub arguments: String,
    /// The record of the call that runs.
    pub call: Arc<str>,
    /// The longest that it may run.
    pub limit: Duration,
}

/// How a call that was approved ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It came to its end, well or not.
    Used,
    /// It was given up on its way.
    Interrupted,
}

/// Tells when an approval may have changed.
pub type ApprovalNews = watch::Receiver<u64>;

/// Where approvals are kept. Each step is taken once, whoever tries it.
pub trait ApprovalBook: Send + Sync {
    /// Notes a question, or finds the one that the same call asked before.
    fn ask(&self, new: NewApproval) -> BoxFuture<'_, Result<Asked, StoreError>>;

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<Approval>, StoreError>>;

    /// Changes whenever the approval may have: it is to be read again then.
    fn news(&self, id: &str) -> ApprovalNews;

    /// Takes a yes for what is about to run. True for one of all who try.
    fn claim(&self, claim: Claim) -> BoxFuture<'_, Result<bool, StoreError>>;

    /// Takes an answer that a person gave in the tool's place. True for one of all who try.
    fn take_answer<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Notes how a call ended that was claimed.
    fn end<'a>(&'a self, id: &'a str, end: RunEnd) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The same where nobody can wait for it.
    fn end_soon(&self, id: &str, end: RunEnd);

    /// The content of a subject as [`Approval::content`] has it.
    fn content(&self, subject: &Subject) -> Option<String>;

    /// The page where a person decides, if there is one.
    fn url(&self, id: &str) -> Option<String>;
}

impl fmt::Display for ApprovalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        for state in ApprovalState::ALL {
            assert_eq!(ApprovalState::parse(state.as_str()), Some(state));
        }
        for kind in DecisionKind::ALL {
            assert_eq!(DecisionKind::parse(kind.as_str()), Some(kind));
            assert!(kind.state().is_open());
        }
        assert_eq!(ApprovalState::parse("yes"), None);
    }
}
