//! Grants: a person's yes to what one tool may do beyond the default.

use std::path::Path;

use toolcrib_core::store::StoreError;
use toolcrib_core::{Binding, Grant, NewGrant};

use super::changes::Kind;
use super::db::Db;
use super::tx::Tx;
use super::value::{Line, Unreadable, values};
use super::{new_id, now_ms};

const INSERT: &str = "INSERT INTO grants (id, tool, origin, content_hash, what, created_at) VALUES ($1, $2, $3, $4, $5, $6)";
const OF_TOOL: &str = "SELECT * FROM grants WHERE tool = $1 AND origin = $2";

#[derive(Clone)]
pub struct GrantBook {
    db: Db,
}

impl GrantBook {
    pub(super) fn new(db: Db) -> GrantBook {
        GrantBook { db }
    }

    /// Keeps a grant, and says whether it is new: what was granted already, word for word, is not kept twice.
    pub async fn add(&self, new: NewGrant) -> Result<(Grant, bool), StoreError> {
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Grants).await?;
        let (grant, is_new) = self.keep(&mut tx, new).await?;
        match is_new {
            true => tx.commit().await?,
            false => tx.rollback().await?,
        }
        Ok((grant, is_new))
    }

    /// Keeps all of these grants, or none.
    pub async fn add_all(&self, all: Vec<NewGrant>) -> Result<Vec<Grant>, StoreError> {
        let mut kept = Vec::new();
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Grants).await?;
        let mut any_new = false;
        for one in all {
            let (grant, is_new) = self.keep(&mut tx, one).await?;
            kept.push(grant);
            any_new |= is_new;
        }
        match any_new {
            true => tx.commit().await?,
            false => tx.rollback().await?,
        }
        Ok(kept)
    }

    async fn keep(&self, tx: &mut Tx<'_>, new: NewGrant) -> Result<(Grant, bool), StoreError> {
        let rows = tx.rows(OF_TOOL, values![&new.tool, &new.origin]).await?;
        let before = self.read(&rows)?;
        let same = |grant: &Grant| grant.binding == new.binding && grant.permit == new.permit;
        match before.into_iter().find(same) {
            Some(grant) => Ok((grant, false)),
            None => Ok((insert(tx, new).await?, true)),
        }
    }

    /// All grants, or those of the tools of one name, oldest first within a tool.
    pub async fn list(&self, tool: Option<&str>) -> Result<Vec<Grant>, StoreError> {
        let sql = "SELECT * FROM grants WHERE ($1 IS NULL OR tool = $1) ORDER BY tool, origin, created_at, id";
        let rows = self.db.rows(sql, values![tool]).await?;
        self.read(&rows)
    }

    /// Gives whether there was one.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        Ok(self.revoke_all(&[id.to_owned()]).await? > 0)
    }

    /// Takes back all that was granted to one tool; gives how many grants that were.
    pub async fn revoke_tool(&self, tool: &str, origin: &str) -> Result<u64, StoreError> {
        let all = self.list(Some(tool)).await?;
        let own = all.into_iter().filter(|grant| grant.origin == origin);
        self.revoke_all(&own.map(|grant| grant.id).collect::<Vec<_>>())
            .await
    }

    /// Takes back all that was granted to tools whose file is this path or lies below it; gives how many grants that were.
    pub async fn revoke_below(&self, path: &Path) -> Result<u64, StoreError> {
        let all = self.list(None).await?;
        let below = |grant: &Grant| Path::new(&grant.origin).starts_with(path);
        let ids: Vec<String> = all
            .into_iter()
            .filter(below)
            .map(|grant| grant.id)
            .collect();
        self.revoke_all(&ids).await
    }

    async fn revoke_all(&self, ids: &[String]) -> Result<u64, StoreError> {
        if ids.is_empty() {
            return Ok(0);
        }
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Grants).await?;
        let mut gone = 0;
        for id in ids {
            gone += tx
                .run("DELETE FROM grants WHERE id = $1", values![id])
                .await?;
        }
        match gone {
            0 => tx.rollback().await?,
            _ => tx.commit().await?,
        }
        Ok(gone)
    }

    fn read(&self, rows: &[Line]) -> Result<Vec<Grant>, StoreError> {
        let read: Result<_, _> = rows.iter().map(read).collect();
        read.map_err(|error| self.db.unreadable("grants", error))
    }
}

async fn insert(tx: &mut Tx<'_>, new: NewGrant) -> Result<Grant, StoreError> {
    let grant = Grant {
        id: new_id(),
        tool: new.tool,
        origin: new.origin,
        binding: new.binding,
        permit: new.permit,
        created_ms: now_ms(),
    };
    let hash = match &grant.binding {
        Binding::Content(hash) => Some(hash.as_str()),
        Binding::Follow => None,
    };
    let what = serde_json::to_string(&grant.permit).map_err(|_| StoreError::Unfit {
        what: "a grant".to_owned(),
        why: "it can't be written as JSON",
    })?;
    let values = values![
        &grant.id,
        &grant.tool,
        &grant.origin,
        hash,
        &what,
        grant.created_ms
    ];
    tx.run(INSERT, values).await?;
    Ok(grant)
}

fn read(row: &Line) -> Result<Grant, Unreadable> {
    Ok(Grant {
        id: row.text("id")?,
        tool: row.text("tool")?,
        origin: row.text("origin")?,
        binding: match row.maybe_text("content_hash")? {
            Some(hash) => Binding::Content(hash),
            None => Binding::Follow,
        },
        permit: serde_json::from_value(row.json("what")?)
            .map_err(|error| Unreadable::Json("what", error))?,
        created_ms: row.number("created_at")?,
    })
}
