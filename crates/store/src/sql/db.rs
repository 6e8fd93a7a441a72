//! The two databases behind one face: statements with their values in, rows out. Nothing else here knows which it is.
//!
//! SQLite: one connection writes, a few read, several processes share the file. A write begins with `BEGIN
//! IMMEDIATE`, so it waits for the lock where waiting is safe, and can't find later that its snapshot is old.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection as _, Postgres, Sqlite};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use toolcrib_core::store::StoreError;

use super::database_file::{DatabaseFile, journal_of, length, take_over_journal};
use super::error::{StoreLocation, is_busy};
use super::tx::{Connection, Tx};
use super::value::{Bound, Line, Unreadable, bind, check, values};

/// The longest that anything waits for the store.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest that SQLite itself waits before it says busy; then we try again until [`PATIENCE`] ends.
const BUSY: Duration = Duration::from_secs(3);
const READERS: u32 = 4;
const POSTGRES_CONNECTIONS: u32 = 8;

#[derive(Clone)]
pub(super) struct Db(Arc<Inner>);

struct Inner {
    place: StoreLocation,
    pools: Pools,
    /// Rung when something of this process changed.
    nudge: Notify,
}

pub(super) enum Pools {
    Sqlite {
        /// None is there where the file is only to be read; then why.
        write: Result<SqlitePool, StoreError>,
        read: SqlitePool,
        /// For a connection of one's own.
        options: Box<SqliteConnectOptions>,
        file: Box<DatabaseFile>,
    },
    Postgres(PgPool),
}

/// Has Postgres plan each statement with its values. One plan for all of them can't know that `$2 IS NULL` makes a
/// filter void, and reads half the table where an index holds the page. A server too old to know this only is slower.
async fn plan_anew(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let set = sqlx::query("SET plan_cache_mode = force_custom_plan");
    match set.execute(connection).await {
        Err(error) if error.as_database_error().is_none() => Err(error),
        _ => Ok(()),
    }
}

impl Db {
    /// Opens the file of a store. Where it can't be written it is read.
    pub(super) async fn sqlite(file: DatabaseFile, place: StoreLocation) -> Result<Db, StoreError> {
        let path = file.path();
        let shut = file.closed_to_writing();
        // Without a journal, and without a place for one, SQLite reads only what it is told never to change.
        let still = shut.is_some() && length(&journal_of(path)) == 0;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY)
            .synchronous(SqliteSynchronous::Full)
            .pragma("journal_size_limit", "67108864")
            .read_only(shut.is_some())
            .immutable(still)
            .disable_statement_logging();
        let write = match shut {
            Some(why) => Err(why),
            None => Ok(open_writer(&options, &place).await?),
        };
        let read = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(options.clone().pragma("query_only", "ON"));
        let pools = Pools::Sqlite {
            write,
            read,
            options: Box::new(options),
            file: Box::new(file),
        };
        Ok(Db::new(place, pools))
    }

    pub(super) async fn postgres(
        options: PgConnectOptions,
        name: String,
    ) -> Result<Db, StoreError> {
        let place = StoreLocation { name, folder: None };
        let options = options.disable_statement_logging();
        // Asked once by hand, because a pool goes on asking where nobody answers, and then only says that it waited.
        let first = timeout_at(Instant::now() + PATIENCE, options.connect()).await;
        let first = first.map_err(|_| place.too_late())?;
        let first = first.map_err(|error| place.error(error))?;
        let pool = PgPoolOptions::new()
            .max_connections(POSTGRES_CONNECTIONS)
            .acquire_timeout(PATIENCE)
            .after_connect(|connection, _| Box::pin(plan_anew(connection)))
            .connect_lazy_with(options);
        let _ = first.close().await;
        Ok(Db::new(place, Pools::Postgres(pool)))
    }

    fn new(place: StoreLocation, pools: Pools) -> Db {
        Db(Arc::new(Inner {
            place,
            pools,
            nudge: Notify::new(),
        }))
    }

    pub(super) fn place(&self) -> &StoreLocation {
        &self.0.place
    }

    pub(super) fn pools(&self) -> &Pools {
        &self.0.pools
    }

    pub(super) fn nudge(&self) -> &Notify {
        &self.0.nudge
    }

    /// A row that can't be read is damage, and says which table it lies in.
    pub(super) fn unreadable(&self, table: &str, error: Unreadable) -> StoreError {
        match error {
            Unreadable::Column(error @ sqlx::Error::Database(_)) => self.place().error(error),
            error => self.place().damaged(format!("table {table}: {error}")),
        }
    }

    /// Nothing waits longer than [`PATIENCE`], whatever the database does.
    pub(super) async fn soon<T>(
        &self,
        work: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, StoreError> {
        match timeout_at(Instant::now() + PATIENCE, work).await {
            Ok(done) => done.map_err(|error| self.place().error(error)),
            Err(_) => Err(self.place().too_late()),
        }
    }

    /// Why nobody answers, as one finds out who asks by himself; a pool only says that it waited.
    pub(super) async fn asked_by_hand(&self, longest: Duration) -> Option<StoreError> {
        let Pools::Postgres(pool) = self.pools() else {
            return None;
        };
        let options = pool.connect_options();
        let connected = timeout_at(Instant::now() + longest, options.connect());
        match connected.await.ok()? {
            Ok(_) => None,
            Err(error) => Some(self.place().error(error)),
        }
    }

    /// Reads.
    pub(super) async fn rows(
        &self,
        sql: &'static str,
        values: &[Bound<'_>],
    ) -> Result<Vec<Line>, StoreError> {
        check(values)?;
        match self.pools() {
            Pools::Sqlite { read, .. } => {
                let query = bind::<Sqlite>(sqlx::query(sql), values);
                let rows = self.soon(query.fetch_all(read)).await?;
                Ok(rows.into_iter().map(Line::Sqlite).collect())
            }
            Pools::Postgres(pool) => {
                let query = bind::<Postgres>(sqlx::query(sql), values);
                let rows = self.soon(query.fetch_all(pool)).await?;
                Ok(rows.into_iter().map(Line::Postgres).collect())
            }
        }
    }

    pub(super) async fn row(
        &self,
        sql: &'static str,
        values: &[Bound<'_>],
    ) -> Result<Option<Line>, StoreError> {
        Ok(self.rows(sql, values).await?.pop())
    }

    /// Begins to write. What is not committed is as if it had never been.
    pub(super) async fn begin(&self) -> Result<Tx<'_>, StoreError> {
        match self.pools() {
            Pools::Sqlite { write, file, .. } => {
                let write = write.as_ref().map_err(Clone::clone)?;
                file.is_in_place().await?;
                let mut tx = Tx::new(self, Connection::Sqlite(self.soon(write.acquire()).await?));
                if let Some(connection) = tx.sqlite() {
                    file.renew(connection).await;
                }
                let deadline = Instant::now() + PATIENCE;
                loop {
                    match tx.run("BEGIN IMMEDIATE", values![]).await {
                        Ok(_) => return Ok(tx),
                        Err(StoreError::Locked { .. }) if Instant::now() < deadline => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Pools::Postgres(pool) => {
                let mut tx = Tx::new(self, Connection::Postgres(self.soon(pool.acquire()).await?));
                tx.run("BEGIN", values![]).await?;
                Ok(tx)
            }
        }
    }

    /// Is the open store still the one at its place? A server's database always is.
    pub(super) async fn is_in_place(&self) -> Result<(), StoreError> {
        match self.pools() {
            Pools::Sqlite { file, .. } => file.is_in_place().await,
            Pools::Postgres(_) => Ok(()),
        }
    }

    /// Why it is only read, where it is.
    pub(super) fn read_only(&self) -> Option<&StoreError> {
        match self.pools() {
            Pools::Sqlite { write, .. } => write.as_ref().err(),
            Pools::Postgres(_) => None,
        }
    }

    pub(super) fn is_overwritten(&self) -> bool {
        match self.pools() {
            Pools::Sqlite { file, .. } => file.is_overwritten(),
            Pools::Postgres(_) => false,
        }
    }

    /// Takes over what is in the journal, so that the file alone is the whole store.
    pub(super) async fn take_over_journal(&self) {
        if let Pools::Sqlite {
            write: Ok(write),
            file,
            ..
        } = self.pools()
            && !file.is_overwritten()
            && length(&journal_of(file.path())) > 0
            && let Ok(mut connection) = self.soon(write.acquire()).await
        {
            take_over_journal(&mut connection).await;
        }
    }

    /// One statement that writes; gives how many rows it touched.
    pub(super) async fn run(
        &self,
        sql: &'static str,
        values: &[Bound<'_>],
    ) -> Result<u64, StoreError> {
        let mut tx = self.begin().await?;
        let touched = tx.run(sql, values).await?;
        tx.commit().await?;
        Ok(touched)
    }

    /// What was written is in the file itself afterwards, and the journal is gone with whoever goes last.
    pub(super) async fn close(&self) {
        match self.pools() {
            Pools::Sqlite {
                write, read, file, ..
            } => {
                // To look once more may find that the file is another one. SQLite writes into that, and takes the
                // journal of that away, when the last connection goes: so one stays for as long as the process.
                let _ = file.is_in_place().await;
                self.take_over_journal().await;
                if (file.is_elsewhere() || file.is_overwritten())
                    && let Ok(write) = write
                    && let Ok(last) = self.soon(write.acquire()).await
                {
                    Box::leak(Box::new(last.detach()));
                }
                read.close().await;
                if let Ok(write) = write {
                    write.close().await;
                }
                if !file.is_overwritten() {
                    file.release();
                }
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}

/// The one connection that writes.
async fn open_writer(
    options: &SqliteConnectOptions,
    place: &StoreLocation,
) -> Result<SqlitePool, StoreError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let opened = SqlitePoolOptions::new()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(PATIENCE)
            .connect_with(options.clone().journal_mode(SqliteJournalMode::Wal));
        match opened.await {
            Ok(pool) => return Ok(pool),
            // Going over to WAL needs the file alone, and SQLite does not wait for that.
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => return Err(place.error(error)),
        }
    }
}
