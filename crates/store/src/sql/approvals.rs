//! Approvals: a person's yes to one call. Each step is one statement that says from which state it goes.
//!
//! Why: `docs/design/0018-approvals.md`.

use std::time::Duration;

use toolcrib_core::store::{
    Approval, ApprovalState, Asked, Claim, Decided, Decision, DecisionKind, NewApproval, RunEnd,
    StoreError, Subject,
};

use super::changes::Kind;
use super::db::Db;
use super::hash::{ApprovalKey, hashed};
use super::tx::Tx;
use super::value::{Line, Unreadable, values};
use super::{new_id, now_ms};

/// More questions than this do not wait at the same time.
const MAX_PENDING: u64 = 10_000;
/// A no holds this long for the same call, or as long as a yes would if that is less.
const REJECTED_MS: u64 = 10 * 60 * 1_000;
/// What a page of a list holds at most.
const MAX_LIST: usize = 1_000;
/// Old ones go a few at a time.
const AT_ONCE: u64 = 500;

/// The states in which the same call finds it.
macro_rules! open {
    () => {
        "state IN ('pending', 'approved', 'edited', 'rejected', 'responded')"
    };
}

/// What is over, or about another version of the tool, is no answer to who asks now.
const LAPSE: &str = concat!(
    "UPDATE approvals SET state = 'expired', ended_at = $2, edited = NULL, revision = $4 WHERE asked_hash = $1 AND ",
    open!(),
    " AND (expires_at <= $2 OR content <> $3)"
);
const FIND: &str = concat!(
    "SELECT * FROM approvals WHERE asked_hash = $1 AND ",
    open!()
);
const PENDING: &str =
    "SELECT COUNT(*) AS count FROM approvals WHERE state = 'pending' AND expires_at > $1";
const INSERT: &str = "INSERT INTO approvals (id, state, asked_hash, run_hash, project, agent, token, client, tool, content, \
    shown, note, allowed, life_ms, created_at, expires_at, revision) \
    VALUES ($1, 'pending', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
const DECIDE: &str = "UPDATE approvals SET state = $2, run_hash = $3, edited = $4, words = $5, decided_at = $6, \
    decided_by = $7, decided_how = $8, expires_at = $9, revision = $10 \
    WHERE id = $1 AND state = 'pending' AND expires_at > $6 AND allowed LIKE $11";
const CLAIM: &str = "UPDATE approvals SET state = 'executing', runner = $3, runs_until = $4, call = $5, revision = $7 \
    WHERE id = $1 AND run_hash = $2 AND state IN ('approved', 'edited') AND expires_at > $6";
const TAKE_ANSWER: &str = "UPDATE approvals SET state = 'used', ended_at = $2, revision = $3 \
    WHERE id = $1 AND state = 'responded' AND expires_at > $2";
const END: &str = "UPDATE approvals SET state = $2, ended_at = $3, edited = NULL, revision = $5 \
    WHERE id = $1 AND state = 'executing' AND runner = $4";
const EXPIRE: &str = concat!(
    "UPDATE approvals SET state = 'expired', ended_at = $1, edited = NULL, revision = $2 WHERE ",
    open!(),
    " AND expires_at <= $1"
);
const INTERRUPT: &str = "UPDATE approvals SET state = 'interrupted', ended_at = $1, edited = NULL, revision = $2 \
    WHERE state = 'executing' AND runs_until <= $1";
const LIST: &str = "SELECT * FROM approvals WHERE ($1 IS NULL OR project = $1) AND ($2 IS NULL OR state = $2) \
    ORDER BY created_at DESC, id DESC LIMIT $3";
const CHANGED: &str =
    "SELECT * FROM approvals WHERE revision > $1 ORDER BY revision, id LIMIT 1000";
const RUNNERS: &str = "SELECT DISTINCT runner FROM approvals WHERE state = 'executing'";
const FORGET: &str = concat!(
    "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE created_at < $1 AND state <> 'executing' AND NOT ",
    open!(),
    " ORDER BY created_at LIMIT $2)"
);

/// A decision as it is to be noted, and whose it is.
#[derive(Debug, Clone)]
pub struct NewDecision {
    pub decision: Decision,
    /// See [`NewApproval::arguments`]; those of an edit.
    pub arguments: Option<String>,
    pub by: String,
    pub how: String,
}

#[derive(Clone)]
pub struct Approvals {
    db: Db,
    key: ApprovalKey,
}

impl Approvals {
    pub(super) fn new(db: Db, key: ApprovalKey) -> Approvals {
        Approvals { db, key }
    }

    /// Notes a question, or finds the one that the same call asked before.
    pub async fn ask(&self, new: NewApproval) -> Result<Asked, StoreError> {
        let subject = &new.subject;
        let asked = self.key.asked(subject, &new.arguments);
        let content = self.content(subject);
        // Most often it waits already: who asks again changes nothing.
        if let Some(known) = self.find(&asked, &content).await? {
            return Ok(Asked::Known(known));
        }
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::Approvals).await?;
        let now = now_ms();
        tx.run(LAPSE, values![&asked, now, &content, revision])
            .await?;
        if let Some(row) = tx.rows(FIND, values![&asked]).await?.first() {
            let known = self.read(row)?;
            tx.commit().await?;
            return Ok(Asked::Known(known));
        }
        if self.pending(&mut tx, now).await? >= MAX_PENDING {
            tx.commit().await?;
            return Ok(Asked::Full);
        }
        let id = new_id();
        let words: Vec<&str> = new.allowed.iter().map(|kind| kind.as_str()).collect();
        let allowed = format!(" {} ", words.join(" "));
        let life = millis(new.life);
        let run = self.key.run(subject, &content, &new.arguments);
        let values = values![
            &id,
            &asked,
            &run,
            subject.project.as_deref(),
            &*subject.agent,
            subject.token.as_deref(),
            &*new.client,
            &*subject.tool,
            &content,
            &new.shown,
            &new.note,
            &allowed,
            life,
            now,
            now.saturating_add(life),
            revision,
        ];
        tx.run(INSERT, values).await?;
        let rows = tx
            .rows("SELECT * FROM approvals WHERE id = $1", values![&id])
            .await?;
        let approval = rows.first().map(|row| self.read(row)).transpose()?;
        tx.commit().await?;
        let gone = || self.db.place().failed("an approval was not kept");
        Ok(Asked::New(approval.ok_or_else(gone)?))
    }

    async fn find(&self, asked: &str, content: &str) -> Result<Option<Approval>, StoreError> {
        let Some(row) = self.db.row(FIND, values![asked]).await? else {
            return Ok(None);
        };
        let found = self.read(&row)?;
        let holds = found.expires_ms > now_ms() && found.content == content;
        Ok(holds.then_some(found))
    }

    async fn pending(&self, tx: &mut Tx<'_>, now: u64) -> Result<u64, StoreError> {
        let rows = tx.rows(PENDING, values![now]).await?;
        let count = rows.first().map(|row| row.number("count")).transpose();
        count
            .map(Option::unwrap_or_default)
            .map_err(|error| self.db.unreadable("approvals", error))
    }

    /// Notes a decision. Gives what it is now; nothing where it does not wait any more, or may not be decided so.
    pub async fn decide(&self, id: &str, new: NewDecision) -> Result<Option<Approval>, StoreError> {
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::Approvals).await?;
        let by_id = "SELECT * FROM approvals WHERE id = $1";
        let rows = tx.rows(by_id, values![id]).await?;
        let Some(row) = rows.first() else {
            tx.rollback().await?;
            return Ok(None);
        };
        let unreadable = |error| self.db.unreadable("approvals", error);
        let before = self.read(row)?;
        let life = row.number("life_ms").map_err(unreadable)?;
        let (mut run, now) = (row.text("run_hash").map_err(unreadable)?, now_ms());
        let kind = new.decision.kind();
        let (edited, words) = match new.decision {
            Decision::Approve => (None, None),
            Decision::Edit(arguments) => (Some(arguments.text().to_owned()), None),
            Decision::Reject(words) => (None, words),
            Decision::Respond(words) => (None, Some(words)),
        };
        if kind == DecisionKind::Edit {
            let arguments = new.arguments.ok_or_else(|| StoreError::Unfit {
                what: "an edit".to_owned(),
                why: "it holds no arguments",
            })?;
            run = self.key.run_of(&before, &arguments);
        }
        let life = match kind {
            DecisionKind::Reject => life.min(REJECTED_MS),
            DecisionKind::Approve | DecisionKind::Edit | DecisionKind::Respond => life,
        };
        let allowed = format!("% {} %", kind.as_str());
        let values = values![
            id,
            kind.state().as_str(),
            &run,
            &edited,
            &words,
            now,
            &new.by,
            &new.how,
            now.saturating_add(life),
            revision,
            &allowed,
        ];
        if tx.run(DECIDE, values).await? == 0 {
            tx.rollback().await?;
            return Ok(None);
        }
        let rows = tx.rows(by_id, values![id]).await?;
        let after = rows.first().map(|row| self.read(row)).transpose()?;
        tx.commit().await?;
        Ok(after)
    }

    /// Takes a yes for what is about to run. True for one of all who try.
    pub async fn claim(&self, claim: &Claim, runner: &str) -> Result<bool, StoreError> {
        let content = self.content(&claim.subject);
        let run = self.key.run(&claim.subject, &content, &claim.arguments);
        let now = now_ms();
        let until = now.saturating_add(millis(claim.limit));
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::Approvals).await?;
        let values = values![&*claim.id, &run, runner, until, &*claim.call, now, revision];
        let touched = tx.run(CLAIM, values).await?;
        ended(tx, touched).await
    }

    /// Takes an answer that a person gave in the tool's place. True for one of all who try.
    pub async fn take_answer(&self, id: &str) -> Result<bool, StoreError> {
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::Approvals).await?;
        let touched = tx.run(TAKE_ANSWER, values![id, now_ms(), revision]).await?;
        ended(tx, touched).await
    }

    /// Notes how a call ended that this runner had claimed.
    pub async fn end(&self, id: &str, runner: &str, end: RunEnd) -> Result<bool, StoreError> {
        let state = match end {
            RunEnd::Used => ApprovalState::Used,
            RunEnd::Interrupted => ApprovalState::Interrupted,
        };
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::Approvals).await?;
        let values = values![id, state.as_str(), now_ms(), runner, revision];
        let touched = tx.run(END, values).await?;
        ended(tx, touched).await
    }

    /// Notes what has ended by itself: what nobody decided or used in time, and runs whose runner is gone. `lives` says of a
    /// runner whether it may still run; one that nobody can tell of has the time that its call may take.
    pub async fn sweep(&self, lives: impl Fn(&str) -> bool) -> Result<u64, StoreError> {
        let rows = self.db.rows(RUNNERS, values![]).await?;
        let runners: Result<Vec<String>, _> = rows.iter().map(|row| row.text("runner")).collect();
        let runners = runners.map_err(|error| self.db.unreadable("approvals", error))?;
        let gone: Vec<&String> = runners.iter().filter(|runner| !lives(runner)).collect();
        let now = now_ms();
        let due = concat!(
            "SELECT id FROM approvals WHERE (state = 'executing' AND runs_until <= $1) OR (expires_at <= $1 AND ",
            open!(),
            ") LIMIT 1"
        );
        if gone.is_empty() && self.db.row(due, values![now]).await?.is_none() {
            return Ok(0);
        }
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::Approvals).await?;
        let mut touched = tx.run(EXPIRE, values![now, revision]).await?;
        touched += tx.run(INTERRUPT, values![now, revision]).await?;
        let dead = "UPDATE approvals SET state = 'interrupted', ended_at = $1, edited = NULL, revision = $2 \
            WHERE state = 'executing' AND runner = $3";
        for runner in gone {
            touched += tx.run(dead, values![now, revision, runner]).await?;
        }
        ended(tx, touched).await?;
        Ok(touched)
    }

    pub async fn get(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        let sql = "SELECT * FROM approvals WHERE id = $1";
        let row = self.db.row(sql, values![id]).await?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Newest first, at most `limit`.
    pub async fn list(
        &self,
        project: Option<&str>,
        state: Option<ApprovalState>,
        limit: usize,
    ) -> Result<Vec<Approval>, StoreError> {
        let limit = limit.clamp(1, MAX_LIST) as u64;
        let state = state.map(ApprovalState::as_str);
        let rows = self.db.rows(LIST, values![project, state, limit]).await?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    /// What was changed after the change of this number, in the order in which it was.
    pub async fn changed_since(&self, revision: u64) -> Result<Vec<Approval>, StoreError> {
        let rows = self.db.rows(CHANGED, values![revision]).await?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    /// Lets go of what ended and was asked before this moment; gives how many went.
    pub async fn forget(&self, before_ms: u64) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let now = self.db.run(FORGET, values![before_ms, AT_ONCE]).await?;
            gone += now;
            if now < AT_ONCE {
                return Ok(gone);
            }
        }
    }

    /// The keyed hash of a subject's content.
    pub fn content(&self, subject: &Subject) -> String {
        self.key.content(subject)
    }

    fn read(&self, row: &Line) -> Result<Approval, StoreError> {
        read(row).map_err(|error| self.db.unreadable("approvals", error))
    }
}

async fn ended(tx: Tx<'_>, touched: u64) -> Result<bool, StoreError> {
    match touched {
        0 => tx.rollback().await?,
        _ => tx.commit().await?,
    }
    Ok(touched > 0)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn read(row: &Line) -> Result<Approval, Unreadable> {
    let state = ApprovalState::parse(&row.text("state")?).ok_or(Unreadable::Word("state"))?;
    let allowed = row.text("allowed")?;
    let allowed = allowed.split_whitespace().map(DecisionKind::parse);
    let allowed: Option<Vec<DecisionKind>> = allowed.collect();
    let decided = match (
        row.maybe_number("decided_at")?,
        row.maybe_text("decided_by")?,
    ) {
        (Some(at_ms), Some(by)) => Some(Decided {
            at_ms,
            by,
            how: row.maybe_text("decided_how")?.unwrap_or_default(),
        }),
        _ => None,
    };
    Ok(Approval {
        id: row.text("id")?.into(),
        state,
        project: row.maybe_text("project")?.map(Into::into),
        agent: row.text("agent")?.into(),
        token: row.maybe_text("token")?.map(Into::into),
        client: row.text("client")?.into(),
        tool: row.text("tool")?.into(),
        content: row.text("content")?,
        shown: row.text("shown")?,
        note: row.maybe_text("note")?,
        edited: row.maybe_json("edited")?,
        allowed: allowed.ok_or(Unreadable::Word("allowed"))?,
        words: row.maybe_text("words")?,
        created_ms: row.number("created_at")?,
        expires_ms: row.number("expires_at")?,
        decided,
        call: row.maybe_text("call")?,
        ended_ms: row.maybe_number("ended_at")?,
        revision: row.number("revision")?,
    })
}

impl ApprovalKey {
    /// By what the same call finds its question.
    fn asked(&self, subject: &Subject, arguments: &str) -> String {
        let Subject {
            project,
            agent,
            token,
            tool,
            content: _,
        } = subject;
        let parts = [
            project.as_deref(),
            Some(agent),
            token.as_deref(),
            Some(tool),
            Some(arguments),
        ];
        self.sign("asked", &parts)
    }

    fn content(&self, subject: &Subject) -> String {
        self.sign("content", &[Some(&subject.content)])
    }

    /// What runs. `content` is the keyed hash of the tool's.
    fn run(&self, subject: &Subject, content: &str, arguments: &str) -> String {
        let Subject {
            project,
            agent,
            token,
            tool,
            content: _,
        } = subject;
        self.sign(
            "run",
            &[
                project.as_deref(),
                Some(agent),
                token.as_deref(),
                Some(tool),
                Some(content),
                Some(arguments),
            ],
        )
    }

    fn run_of(&self, of: &Approval, arguments: &str) -> String {
        let subject = Subject {
            project: of.project.clone(),
            agent: of.agent.clone(),
            token: of.token.clone(),
            tool: of.tool.clone(),
            content: String::new(),
        };
        self.run(&subject, &of.content, arguments)
    }

    /// Each part with its length, so that no two lists of parts are one text.
    fn sign(&self, what: &str, parts: &[Option<&str>]) -> String {
        let mut text = what.to_owned();
        for part in parts {
            match part {
                Some(part) => text.push_str(&format!("\n{}:{part}", part.len())),
                None => text.push_str("\n-"),
            }
        }
        hashed(self, &text)
    }
}
