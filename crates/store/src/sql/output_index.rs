//! Which whole outputs are kept, whose they are and how large; the texts themselves lie in files.

use toolcrib_core::store::StoreError;

use super::db::Db;
use super::value::{Line, Unreadable, values};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedOutput {
    pub id: String,
    /// The agent it belongs to.
    pub owner: String,
    pub bytes: u64,
    pub lines: u64,
    pub created_ms: u64,
}

#[derive(Clone)]
pub struct OutputIndex {
    db: Db,
}

impl OutputIndex {
    pub(super) fn new(db: Db) -> OutputIndex {
        OutputIndex { db }
    }

    /// Notes an output, in place of one with the same id.
    pub async fn put(&self, output: &IndexedOutput) -> Result<(), StoreError> {
        let sql = "INSERT INTO outputs (id, owner, bytes, lines, created_at) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, bytes = excluded.bytes, \
            lines = excluded.lines, created_at = excluded.created_at";
        let values = values![
            &output.id,
            &output.owner,
            output.bytes,
            output.lines,
            output.created_ms
        ];
        self.db.run(sql, values).await?;
        Ok(())
    }

    /// Only for its owner.
    pub async fn get(&self, owner: &str, id: &str) -> Result<Option<IndexedOutput>, StoreError> {
        let sql = "SELECT * FROM outputs WHERE id = $1 AND owner = $2";
        let row = self.db.row(sql, values![id, owner]).await?;
        let read = row.as_ref().map(read).transpose();
        read.map_err(|error| self.db.unreadable("outputs", error))
    }

    /// The oldest first: those that go when room is needed.
    pub async fn oldest(&self, limit: u64) -> Result<Vec<IndexedOutput>, StoreError> {
        let sql = "SELECT * FROM outputs ORDER BY created_at, id LIMIT $1";
        let rows = self.db.rows(sql, values![limit]).await?;
        let read: Result<_, _> = rows.iter().map(read).collect();
        read.map_err(|error| self.db.unreadable("outputs", error))
    }

    /// What all outputs take together.
    pub async fn total_bytes(&self) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS total FROM outputs";
        let row = self.db.row(sql, values![]).await?;
        let total = row.map_or(Ok(0), |row| row.number("total"));
        total.map_err(|error| self.db.unreadable("outputs", error))
    }

    /// Gives whether it was there.
    pub async fn remove(&self, id: &str) -> Result<bool, StoreError> {
        let gone = self
            .db
            .run("DELETE FROM outputs WHERE id = $1", values![id])
            .await?;
        Ok(gone > 0)
    }
}

fn read(row: &Line) -> Result<IndexedOutput, Unreadable> {
    Ok(IndexedOutput {
        id: row.text("id")?,
        owner: row.text("owner")?,
        bytes: row.number("bytes")?,
        lines: row.number("lines")?,
        created_ms: row.number("created_at")?,
    })
}
