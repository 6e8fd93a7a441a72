//! Grants: a person's yes to what one tool may do beyond the default.

use serde_json::Value;
use toolcrib_core::store::StoreError;

use super::changes::Kind;
use super::db::Db;
use super::value::{Line, Unreadable, values};
use super::{new_id, now_ms};

/// Which versions of the tool a grant is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Binding {
    /// Only the content with this hash.
    Content(String),
    /// Whatever the tool becomes.
    Follow,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    pub id: String,
    pub tool: String,
    pub binding: Binding,
    /// What is granted, as it was said.
    pub what: Value,
    pub created_ms: u64,
}

#[derive(Clone)]
pub struct Grants {
    db: Db,
}

impl Grants {
    pub(super) fn new(db: Db) -> Grants {
        Grants { db }
    }

    pub async fn add(
        &self,
        tool: &str,
        binding: Binding,
        what: Value,
    ) -> Result<Grant, StoreError> {
        let grant = Grant {
            id: new_id(),
            tool: tool.to_owned(),
            binding,
            what,
            created_ms: now_ms(),
        };
        let hash = match &grant.binding {
            Binding::Content(hash) => Some(hash.as_str()),
            Binding::Follow => None,
        };
        let sql = "INSERT INTO grants (id, tool, content_hash, what, created_at) VALUES ($1, $2, $3, $4, $5)";
        let what = grant.what.to_string();
        let values = values![&grant.id, tool, hash, &what, grant.created_ms];
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Grants).await?;
        tx.run(sql, values).await?;
        tx.commit().await?;
        Ok(grant)
    }

    /// All grants, or those of one tool, oldest first within a tool.
    pub async fn list(&self, tool: Option<&str>) -> Result<Vec<Grant>, StoreError> {
        let sql =
            "SELECT * FROM grants WHERE ($1 IS NULL OR tool = $1) ORDER BY tool, created_at, id";
        let rows = self.db.rows(sql, values![tool]).await?;
        let read: Result<_, _> = rows.iter().map(read).collect();
        read.map_err(|error| self.db.unreadable("grants", error))
    }

    /// Gives whether there was one.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Grants).await?;
        if tx
            .run("DELETE FROM grants WHERE id = $1", values![id])
            .await?
            == 0
        {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Takes back all that was granted to a tool; gives how many grants that were.
    pub async fn revoke_tool(&self, tool: &str) -> Result<u64, StoreError> {
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Grants).await?;
        let gone = tx
            .run("DELETE FROM grants WHERE tool = $1", values![tool])
            .await?;
        match gone {
            0 => tx.rollback().await?,
            _ => tx.commit().await?,
        }
        Ok(gone)
    }
}

fn read(row: &Line) -> Result<Grant, Unreadable> {
    Ok(Grant {
        id: row.text("id")?,
        tool: row.text("tool")?,
        binding: match row.maybe_text("content_hash")? {
            Some(hash) => Binding::Content(hash),
            None => Binding::Follow,
        },
        what: row.json("what")?,
        created_ms: row.number("created_at")?,
    })
}
