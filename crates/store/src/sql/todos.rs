//! What agents have to do: a list per thread.

use toolcrib_core::BoxFuture;
use toolcrib_core::store::{StoreError, Todos};

use super::db::Db;
use super::now_ms;
use super::value::values;

/// A list that nobody touched for so long is forgotten: 30 days.
const KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

const READ: &str = "SELECT list FROM todos WHERE thread = $1";
const WRITE: &str = "INSERT INTO todos (thread, list, updated_at) VALUES ($1, $2, $3) ON CONFLICT (thread) DO UPDATE SET list = excluded.list, updated_at = excluded.updated_at";
const FORGET: &str = "DELETE FROM todos WHERE updated_at < $1";

#[derive(Clone)]
pub struct TodoLists {
    db: Db,
}

impl TodoLists {
    pub(super) fn new(db: Db) -> TodoLists {
        TodoLists { db }
    }

    async fn kept(&self, thread: &str, list: &str, now: u64) -> Result<Option<String>, StoreError> {
        let mut tx = self.db.begin().await?;
        let rows = tx.rows(READ, values![thread]).await?;
        let before = rows
            .first()
            .map(|row| row.text("list").map(|list| list.to_string()));
        let before = before.transpose();
        let before = before.map_err(|error| self.db.unreadable("todos", error))?;
        tx.run(WRITE, values![thread, list, now]).await?;
        tx.run(FORGET, values![now.saturating_sub(KEPT_MS)]).await?;
        tx.commit().await?;
        Ok(before)
    }
}

impl Todos for TodoLists {
    fn replace<'a>(
        &'a self,
        thread: &'a str,
        list: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(self.kept(thread, list, now_ms()))
    }
}
