//! The two databases behind one face: statements with their values in, rows out. Nothing else here knows which it is.
//!
//! SQLite: one connection writes, a few read, several processes share the file. A write begins with `BEGIN
//! IMMEDIATE`, so it waits for the lock where waiting is safe, and can't find later that its snapshot is old.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{Access, access};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection as _, Postgres, Sqlite};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use toolcrib_core::store::StoreError;

use super::error::{StoreLocation, is_busy};
use super::tx::{Connection, Tx};
use super::value::{Bound, Line, Unreadable, bind, check, values};
use crate::file;

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
        write: SqlitePool,
        read: SqlitePool,
        /// For a connection of one's own.
        options: Box<SqliteConnectOptions>,
        /// Which file it was when it was opened.
        file: FileId,
    },
    Postgres(PgPool),
}

/// Device and number of a file: another one at the same path has others.
type FileId = (u64, u64);

fn file_id(meta: &std::fs::Metadata) -> FileId {
    (meta.dev(), meta.ino())
}

/// A file of SQLite's is made by us, because SQLite would make it for everybody to read.
///
/// A file that is there is never opened here: closing it would let go of every lock that this process holds on it,
/// those of SQLite's connections included, and another process could then take the journal away under them. The
/// guard keeps a second thread from opening what the first is just making.
fn prepare(path: &Path) -> std::io::Result<FileId> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _guard = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = path.parent() {
        file::make_folder(folder)?;
    }
    match file::create_private(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => drop(made?),
    }
    let meta = path.metadata()?;
    if !meta.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    access(path, Access::READ_OK | Access::WRITE_OK)?;
    let mut permissions = meta.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        // Somebody else's file stays as its owner made it.
        let _ = std::fs::set_permissions(path, permissions);
    }
    Ok(file_id(&meta))
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
    pub(super) async fn sqlite(path: &Path, name: String) -> Result<Db, StoreError> {
        // Whole from now on: it is looked at again before each write, wherever the process is then.
        let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let place = StoreLocation {
            name,
            folder: Some(path.parent().unwrap_or(path).into()),
        };
        let file = prepare(path).map_err(|error| place.io(&error))?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .busy_timeout(BUSY)
            .synchronous(SqliteSynchronous::Full)
            .pragma("journal_size_limit", "67108864")
            .disable_statement_logging();
        let deadline = Instant::now() + PATIENCE;
        let write = loop {
            let opened = SqlitePoolOptions::new()
                .max_connections(1)
                .idle_timeout(None)
                .max_lifetime(None)
                .acquire_timeout(PATIENCE)
                .connect_with(options.clone().journal_mode(SqliteJournalMode::Wal));
            match opened.await {
                Ok(pool) => break pool,
                // Going over to WAL needs the file alone, and SQLite does not wait for that.
                Err(error) if is_busy(&error) && Instant::now() < deadline => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => return Err(place.error(error)),
            }
        };
        let read = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(options.clone().pragma("query_only", "ON"));
        let pools = Pools::Sqlite {
            write,
            read,
            options: Box::new(options),
            file,
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
            Pools::Sqlite {
                write,
                options,
                file,
                ..
            } => {
                self.is_still(options.get_filename(), *file)?;
                let mut tx = Tx::new(self, Connection::Sqlite(self.soon(write.acquire()).await?));
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

    /// See [`Db::is_still`]; a server's database is always in its place.
    pub(super) fn is_in_place(&self) -> Result<(), StoreError> {
        match self.pools() {
            Pools::Sqlite { options, file, .. } => self.is_still(options.get_filename(), *file),
            Pools::Postgres(_) => Ok(()),
        }
    }

    /// Whoever removes or replaces the file of an open store would let us write to nowhere and say that it is kept.
    fn is_still(&self, path: &Path, file: FileId) -> Result<(), StoreError> {
        let now = std::fs::metadata(path);
        if now.is_ok_and(|meta| file_id(&meta) == file) {
            return Ok(());
        }
        Err(self
            .place()
            .unreachable("its file was removed or replaced while it was open"))
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

    pub(super) async fn close(&self) {
        match self.pools() {
            Pools::Sqlite { write, read, .. } => {
                read.close().await;
                write.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}
