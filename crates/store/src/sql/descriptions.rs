//! What tool files said of themselves when they were last asked, so that a start need not ask again.
//!
//! A key is a hash of all that the answer depends on. What is here can be made again at any time.

use serde_json::Value;
use toolcrib_core::store::StoreError;

use super::db::Db;
use super::now_ms;
use super::value::values;

#[derive(Clone)]
pub struct Descriptions {
    db: Db,
}

impl Descriptions {
    pub(super) fn new(db: Db) -> Descriptions {
        Descriptions { db }
    }

    pub async fn get(&self, key: &str) -> Result<Option<Value>, StoreError> {
        let sql = "SELECT value FROM descriptions WHERE key = $1";
        let row = self.db.row(sql, values![key]).await?;
        // A text that is no JSON is no answer: it is asked for again, and replaced.
        Ok(row.and_then(|row| row.json("value").ok()))
    }

    pub async fn put(&self, key: &str, value: &Value) -> Result<(), StoreError> {
        let sql = "INSERT INTO descriptions (key, value, created_at) VALUES ($1, $2, $3) \
            ON CONFLICT (key) DO UPDATE SET value = excluded.value, created_at = excluded.created_at";
        self.db
            .run(sql, values![key, &value.to_string(), now_ms()])
            .await?;
        Ok(())
    }

    /// Lets go of what was put before this moment; gives how many went.
    pub async fn forget_before(&self, ms: u64) -> Result<u64, StoreError> {
        self.db
            .run(
                "DELETE FROM descriptions WHERE created_at < $1",
                values![ms],
            )
            .await
    }
}
