//! The record of calls: read by page, newest first, and let go when it is old.

use std::fmt;
use std::str::FromStr;

use toolcrib_core::ErrorCode;
use toolcrib_core::store::{CallRecord, Level, StoreError};

use super::db::Db;
use super::marks;
use super::now_ms;
use super::value::{Line, Unreadable, values};

/// How a call ended, taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All went well on every level that was reached.
    Ok,
    /// Something failed on some level.
    Failed,
    /// It failed with this code.
    Code(ErrorCode),
}

/// Which calls are asked for. A field that is not set excludes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallFilter {
    pub tool: Option<String>,
    pub client: Option<String>,
    pub agent: Option<String>,
    /// The root of the project that it was made in.
    pub project: Option<String>,
    pub ending: Option<Ending>,
    /// Began at this moment or later, in milliseconds since the epoch.
    pub since_ms: Option<u64>,
    /// Began before this moment.
    pub until_ms: Option<u64>,
}

/// Where a page ended. New calls do not shift the pages behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCursor {
    at_ms: u64,
    id: String,
}

impl fmt::Display for CallCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at_ms, self.id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is not the cursor of a page of calls")]
pub struct NoCursor;

impl FromStr for CallCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<CallCursor, NoCursor> {
        let (at, id) = text.split_once('.').ok_or(NoCursor)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if id.is_empty() || id.len() > 128 || !id.chars().all(plain) {
            return Err(NoCursor);
        }
        Ok(CallCursor {
            at_ms: at.parse().map_err(|_| NoCursor)?,
            id: id.to_owned(),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallPage {
    pub calls: Vec<CallRecord>,
    /// For the next page, where there is one.
    pub next: Option<CallCursor>,
}

/// How long calls are kept. `None` sets no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub days: Option<u32>,
    pub rows: Option<u64>,
}

/// What every list asks, after the tool.
macro_rules! list_where {
    ($first:literal) => {
        concat!(
            "SELECT * FROM calls WHERE ",
            $first,
            " AND ($2 IS NULL OR client = $2) AND ($3 IS NULL OR agent = $3)",
            " AND ($4 IS NULL OR ($4 = 'ok') = (COALESCE(transport, 'ok') = 'ok'",
            " AND COALESCE(protocol, 'ok') = 'ok' AND COALESCE(outcome, 'ok') = 'ok'))",
            " AND ($11 IS NULL OR project = $11) AND ($5 IS NULL OR error = $5) AND at_ms >= $6 AND at_ms < $7 AND (at_ms, id) < ($8, $9)",
            " ORDER BY at_ms DESC, id DESC LIMIT $10"
        )
    };
}

/// Two texts, because an index serves `tool = $1` and does not serve "any tool, or this one".
const LIST: &str = list_where!("$1 IS NULL");
const LIST_OF_TOOL: &str = list_where!("tool = $1");

/// Old calls go a few at a time, so that nobody waits long for the lock in between.
const AT_ONCE: u64 = 500;
const FORGET: &str = "DELETE FROM calls WHERE id IN \
    (SELECT id FROM calls WHERE (at_ms, id) <= ($1, $2) ORDER BY at_ms, id LIMIT $3)";
const NTH: &str = "SELECT at_ms, id FROM calls ORDER BY at_ms DESC, id DESC LIMIT 1 OFFSET $1";

const OLDEST: &str = "SELECT at_ms FROM calls ORDER BY at_ms, id LIMIT 1";
const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// Behind every id, in the order of bytes.
const LAST_ID: &str = "~";
const END_OF_TIME: u64 = i64::MAX as u64;

#[derive(Clone)]
pub struct Calls {
    db: Db,
}

impl Calls {
    pub(super) fn new(db: Db) -> Calls {
        Calls { db }
    }

    pub async fn get(&self, id: &str) -> Result<Option<CallRecord>, StoreError> {
        let row = self
            .db
            .row("SELECT * FROM calls WHERE id = $1", values![id])
            .await?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Newest first, at most `limit` and never more than 1,000.
    pub async fn list(
        &self,
        filter: &CallFilter,
        after: Option<&CallCursor>,
        limit: usize,
    ) -> Result<CallPage, StoreError> {
        let limit = limit.clamp(1, 1_000);
        let (ending, code) = match filter.ending {
            None => (None, None),
            Some(Ending::Ok) => (Some("ok"), None),
            Some(Ending::Failed) => (Some("failed"), None),
            Some(Ending::Code(code)) => (None, Some(code.as_str())),
        };
        let (at_ms, id) = match after {
            Some(cursor) => (cursor.at_ms, cursor.id.as_str()),
            None => (END_OF_TIME, LAST_ID),
        };
        // Where the page begins is said twice: databases find their place in the index by a plain bound only.
        let until_ms = filter.until_ms.unwrap_or(END_OF_TIME);
        let until_ms = until_ms.min(at_ms.saturating_add(1));
        let sql = match filter.tool {
            Some(_) => LIST_OF_TOOL,
            None => LIST,
        };
        let values = values![
            &filter.tool,
            &filter.client,
            &filter.agent,
            ending,
            code,
            filter.since_ms.unwrap_or(0),
            until_ms,
            at_ms,
            id,
            limit as u64 + 1,
            &filter.project,
        ];
        let rows = self.db.rows(sql, values).await?;
        let read: Result<Vec<_>, _> = rows.iter().map(|row| self.read(row)).collect();
        let mut calls = read?;
        let more = calls.len() > limit;
        calls.truncate(limit);
        let last = calls.last().filter(|_| more);
        Ok(CallPage {
            next: last.map(|call| CallCursor {
                at_ms: call.at_ms,
                id: call.id.to_string(),
            }),
            calls,
        })
    }

    /// Lets go of what is too old or too much; gives how many went. Of what is too old the oldest day goes, and the rest
    /// another time: a clock that jumped ahead makes all look old, and must not cost the whole record before somebody
    /// sets it right.
    pub async fn forget(&self, retention: Retention) -> Result<u64, StoreError> {
        let mut gone = 0;
        if let Some(days) = retention.days
            && let Some(oldest) = self.oldest().await?
        {
            let before = now_ms().saturating_sub(u64::from(days) * DAY_MS);
            let before = before.min(oldest.saturating_add(DAY_MS));
            gone += self.forget_until(before.saturating_sub(1), LAST_ID).await?;
        }
        if let Some(rows) = retention.rows
            && let Some(row) = self.db.row(NTH, values![rows]).await?
        {
            let last = (|| Ok((row.number("at_ms")?, row.text("id")?)))();
            let (at_ms, id) = last.map_err(|error| self.db.unreadable("calls", error))?;
            gone += self.forget_until(at_ms, &id).await?;
        }
        Ok(gone)
    }

    async fn oldest(&self) -> Result<Option<u64>, StoreError> {
        let row = self.db.row(OLDEST, values![]).await?;
        let at_ms = row.map(|row| row.number("at_ms")).transpose();
        at_ms.map_err(|error| self.db.unreadable("calls", error))
    }

    async fn forget_until(&self, at_ms: u64, id: &str) -> Result<u64, StoreError> {
        let mut gone = 0;
        loop {
            let now = self.db.run(FORGET, values![at_ms, id, AT_ONCE]).await?;
            gone += now;
            if now < AT_ONCE {
                return Ok(gone);
            }
            tokio::task::yield_now().await;
        }
    }

    fn read(&self, row: &Line) -> Result<CallRecord, StoreError> {
        read(row).map_err(|error| self.db.unreadable("calls", error))
    }
}

fn read(row: &Line) -> Result<CallRecord, Unreadable> {
    let error = row.maybe_text("error")?;
    Ok(CallRecord {
        id: row.text("id")?.into(),
        at_ms: row.number("at_ms")?,
        client: row.text("client")?.into(),
        agent: row.text("agent")?.into(),
        session: row.maybe_text("session")?.map(Into::into),
        project: row.maybe_text("project")?.map(Into::into),
        token: row.maybe_text("token")?.map(Into::into),
        tool: row.text("tool")?.into(),
        tool_version: row.maybe_text("tool_version")?.map(Into::into),
        tool_hash: row.maybe_text("tool_hash")?.map(Into::into),
        argument_hash: row.maybe_text("argument_hash")?,
        transport: Level::from_word(row.maybe_text("transport")?),
        protocol: Level::from_word(row.maybe_text("protocol")?),
        outcome: Level::from_word(row.maybe_text("outcome")?),
        error: error.and_then(|code| ErrorCode::parse(&code)),
        duration_us: row.number("duration_us")?,
        output_bytes: row.number("output_bytes")?,
        marks: marks::read(row.maybe_text("middleware")?),
        decision: marks::decision(row)?,
    })
}
