//! One transaction that writes, on either database.

use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Postgres, SqlSafeStr, Sqlite};
use toolcrib_core::store::StoreError;

use super::changes::Kind;
use super::db::Db;
use super::value::{Bound, Line, Unreadable, bind, check, values};

/// The channel on which Postgres tells of changes.
pub(super) const CHANNEL: &str = "toolcrib_changes";
/// Any number of ours: who migrates holds it.
const MIGRATION_LOCK: u64 = 0x746f_6f6c_6372_6962;

pub(super) enum Connection {
    Sqlite(PoolConnection<Sqlite>),
    Postgres(PoolConnection<Postgres>),
}

/// A transaction that writes. Dropped, its connection is closed, and the database undoes what was done: that holds
/// after every kind of error, where a `ROLLBACK` may itself fail and leave the connection in doubt.
pub(super) struct Tx<'a> {
    db: &'a Db,
    connection: Option<Connection>,
    changed: bool,
}

impl<'a> Tx<'a> {
    pub(super) fn new(db: &'a Db, connection: Connection) -> Tx<'a> {
        Tx {
            db,
            connection: Some(connection),
            changed: false,
        }
    }

    /// The connection itself, where the store is a file.
    pub(super) fn sqlite(&mut self) -> Option<&mut SqliteConnection> {
        match &mut self.connection {
            Some(Connection::Sqlite(connection)) => Some(connection),
            Some(Connection::Postgres(_)) | None => None,
        }
    }

    /// Keeps two migrations apart. SQLite's write lock does that already.
    pub(super) async fn lock_migrations(&mut self) -> Result<(), StoreError> {
        if let Some(Connection::Postgres(_)) = self.connection {
            self.rows(
                "SELECT CAST(pg_advisory_xact_lock($1) AS TEXT) AS done",
                values![MIGRATION_LOCK],
            )
            .await?;
        }
        Ok(())
    }

    /// Runs a text of several statements.
    pub(super) async fn script(&mut self, text: &str) -> Result<(), StoreError> {
        let db = self.db;
        match &mut self.connection {
            Some(Connection::Sqlite(connection)) => {
                let text = text.replace("COLLATE \"C\"", "COLLATE BINARY");
                let script = sqlx::raw_sql(AssertSqlSafe(text));
                db.soon(script.execute(&mut **connection)).await?;
            }
            Some(Connection::Postgres(connection)) => {
                let script = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
                db.soon(script.execute(&mut **connection)).await?;
            }
            None => {}
        }
        Ok(())
    }

    pub(super) async fn run(
        &mut self,
        sql: impl SqlSafeStr,
        values: &[Bound<'_>],
    ) -> Result<u64, StoreError> {
        check(values)?;
        let db = self.db;
        match &mut self.connection {
            Some(Connection::Sqlite(connection)) => {
                let query = bind::<Sqlite>(sqlx::query(sql), values);
                Ok(db
                    .soon(query.execute(&mut **connection))
                    .await?
                    .rows_affected())
            }
            Some(Connection::Postgres(connection)) => {
                let query = bind::<Postgres>(sqlx::query(sql), values);
                Ok(db
                    .soon(query.execute(&mut **connection))
                    .await?
                    .rows_affected())
            }
            None => Ok(0),
        }
    }

    pub(super) async fn rows(
        &mut self,
        sql: &'static str,
        values: &[Bound<'_>],
    ) -> Result<Vec<Line>, StoreError> {
        check(values)?;
        let db = self.db;
        match &mut self.connection {
            Some(Connection::Sqlite(connection)) => {
                let query = bind::<Sqlite>(sqlx::query(sql), values);
                let rows = db.soon(query.fetch_all(&mut **connection)).await?;
                Ok(rows.into_iter().map(Line::Sqlite).collect())
            }
            Some(Connection::Postgres(connection)) => {
                let query = bind::<Postgres>(sqlx::query(sql), values);
                let rows = db.soon(query.fetch_all(&mut **connection)).await?;
                Ok(rows.into_iter().map(Line::Postgres).collect())
            }
            None => Ok(Vec::new()),
        }
    }

    /// Says that something of this kind changes; gives the number of the change. Two who change the same kind go
    /// one after the other from here on, so numbers are in the order in which changes become visible.
    pub(super) async fn change(&mut self, kind: Kind) -> Result<u64, StoreError> {
        let sql = "UPDATE changes SET revision = revision + 1 WHERE kind = $1 RETURNING revision";
        let rows = self.rows(sql, values![kind.as_str()]).await?;
        let revision = match rows.first() {
            Some(row) => row.number("revision"),
            None => Err(Unreadable::Word("kind")),
        };
        let revision = revision.map_err(|error| self.db.unreadable("changes", error))?;
        if let Some(Connection::Postgres(_)) = self.connection {
            let sql = "SELECT CAST(pg_notify($1, $2) AS TEXT) AS done";
            self.rows(sql, values![CHANNEL, kind.as_str()]).await?;
        }
        self.changed = true;
        Ok(revision)
    }

    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        self.end("COMMIT").await?;
        if self.changed {
            self.db.nudge().notify_one();
        }
        Ok(())
    }

    /// Gives up in good order, where nothing failed.
    pub(super) async fn rollback(mut self) -> Result<(), StoreError> {
        self.end("ROLLBACK").await
    }

    async fn end(&mut self, word: &'static str) -> Result<(), StoreError> {
        self.run(word, values![]).await?;
        // Only now is the connection fit for others.
        self.connection.take();
        Ok(())
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        match &mut self.connection {
            Some(Connection::Sqlite(connection)) => connection.close_on_drop(),
            Some(Connection::Postgres(connection)) => connection.close_on_drop(),
            None => {}
        }
    }
}
