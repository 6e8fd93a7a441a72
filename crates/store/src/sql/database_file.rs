//! The file of a SQLite store: made whole or not at all, known again when it was replaced, and never read through the
//! journal of another file.
//!
//! SQLite lays a journal (`-wal`) beside the file and applies it to whatever file is there. So that a copy that a person
//! put in place is not covered by the journal of its predecessor, the file holds a number (`user_version`), and
//! `toolcrib.db-lock` beside it says for which number the journal is. The first write into an empty journal draws a new
//! number; a journal for another number is moved aside.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{Access, FlockOperation, access, flock};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};
use tokio::time::{Instant, sleep};
use toolcrib_core::store::StoreError;

use super::error::StoreLocation;
use super::hash::random;
use super::now_ms;
use crate::file;

/// What the file says it is: "TCRB".
const APPLICATION: i32 = 0x5443_5242;
/// How long somebody else may hold the lock, which is for a few file operations.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How often a file that seems damaged is looked at again, and how long after.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// How long a write waits for somebody who holds it.
const LOOK_PATIENCE: Duration = Duration::from_millis(500);

/// May there be no store yet?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Making {
    /// Then one is made.
    IfMissing,
    /// There was one, so its absence is an error: an empty store that looks fine would hide that.
    Never,
}

/// Device and number of a file: another one at the same path has others.
type FileId = (u64, u64);

/// The files that this process has open, once for each opening.
static OPEN: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

/// The file of an open store.
pub(super) struct DatabaseFile {
    path: PathBuf,
    id: FileId,
    place: StoreLocation,
    /// The file as it was when it was last looked into: it changes only when a journal is taken over.
    seen: Mutex<Option<Stamp>>,
    /// For good: whatever is there later, what is open here is of another file.
    overwritten: AtomicBool,
    released: AtomicBool,
}

type Stamp = (SystemTime, u64);

/// What stands in the first bytes of the file itself, whatever its journal says.
struct Header {
    application: i32,
    number: i32,
}

impl DatabaseFile {
    /// Looks at the file before anybody opens it, and moves a journal aside that is not its own.
    pub(super) async fn claim(
        path: &Path,
        place: &StoreLocation,
    ) -> Result<DatabaseFile, StoreError> {
        let meta = path.metadata().map_err(|error| place.io(&error))?;
        if !meta.is_file() {
            return Err(place.unreachable("it is not a file"));
        }
        access(path, Access::READ_OK).map_err(|error| place.io(&error.into()))?;
        keep_private(path, &meta);
        // Where nothing can be written nothing is moved, either.
        let lock = Lock::wait(path).await.ok();
        let header = header(path, place).await?;
        if ![0, APPLICATION].contains(&header.application) {
            return Err(place.damaged("it is the database of another program"));
        }
        let id = file_id(&meta);
        if let Some(mut lock) = lock
            && let Some(journal) = lock.journal()
            && !journal.is_for(id, &header, path)
        {
            if all_open().contains(&id) {
                return Err(overwritten(place));
            }
            let own = Journal {
                file: id,
                numbers: vec![header.number],
            };
            let moved = move_aside(path).and_then(|()| lock.note(&own));
            moved.map_err(|error| place.io(&error))?;
        }
        Ok(DatabaseFile::new(path, id, place))
    }

    /// A file that is still empty, because it is just made.
    pub(super) fn draft(path: &Path, place: &StoreLocation) -> Result<DatabaseFile, StoreError> {
        let meta = path.metadata().map_err(|error| place.io(&error))?;
        Ok(DatabaseFile::new(path, file_id(&meta), place))
    }

    fn new(path: &Path, id: FileId, place: &StoreLocation) -> DatabaseFile {
        all_open().push(id);
        DatabaseFile {
            path: path.to_owned(),
            id,
            place: place.clone(),
            seen: Mutex::new(None),
            overwritten: AtomicBool::new(false),
            released: AtomicBool::new(false),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Why the file can't be written, if so.
    pub(super) fn closed_to_writing(&self) -> Option<StoreError> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let shut = access(&self.path, Access::WRITE_OK).map_err(io::Error::from);
        let shut = shut.err().map(|error| self.place.io(&error));
        shut.or_else(|| {
            let error = access(folder, Access::WRITE_OK).err()?;
            let why = format!("its folder {} takes no new files", folder.display());
            Some(match self.place.io(&error.into()) {
                StoreError::ReadOnly { .. } => self.place.read_only(why),
                other => other,
            })
        })
    }

    /// Whoever removes or replaces the file of an open store would let us write to nowhere and say that it is kept.
    pub(super) async fn is_in_place(&self) -> Result<(), StoreError> {
        let Some(meta) = self.metadata_here() else {
            let why = match self.path.exists() {
                true => "its file was replaced while it was open",
                false => {
                    "its file was removed while it was open; put it back, or restart Toolcrib to begin a new store"
                }
            };
            return Err(self.place.unreachable(why));
        };
        if self.is_overwritten() {
            return Err(overwritten(&self.place));
        }
        let stamp = meta.modified().ok().map(|at| (at, meta.len()));
        if *self.seen() == stamp {
            return Ok(());
        }
        if meta.len() == 0 {
            return Err(empty(&self.place));
        }
        // Somebody who holds the lock is just writing there; the next look sees what became of it.
        let Some(mut lock) = Lock::try_now(&self.path) else {
            return Ok(());
        };
        let header = header(&self.path, &self.place).await?;
        match lock.journal() {
            Some(journal) if !journal.numbers.contains(&header.number) => {
                self.overwritten.store(true, Ordering::Relaxed);
                Err(overwritten(&self.place))
            }
            _ => {
                *self.seen() = stamp;
                Ok(())
            }
        }
    }

    /// Is another file at its path, or none, so that this one can be closed without harm to what is there?
    pub(super) fn is_elsewhere(&self) -> bool {
        self.metadata_here().is_none()
    }

    /// Was it overwritten under us? Then what is open here must never be written back to it.
    pub(super) fn is_overwritten(&self) -> bool {
        self.overwritten.load(Ordering::Relaxed)
    }

    /// Draws a new number, where the journal is empty and nobody else writes.
    pub(super) async fn renew(&self, connection: &mut SqliteConnection) {
        if length(&journal_of(&self.path)) > 0 {
            return;
        }
        // Who looks into the file holds the lock for a moment; a write without a new number would not tell copies apart.
        let lock = Lock::wait_at_most(&self.path, LOOK_PATIENCE).await;
        let (Ok(mut lock), Ok(random)) = (lock, random::<4>()) else {
            return;
        };
        // Another one may have drawn meanwhile, and what it drew may still be in the journal alone: the file then has a
        // number that neither of ours would be.
        if length(&journal_of(&self.path)) > 0 {
            return;
        }
        let number = (i32::from_ne_bytes(random) & i32::MAX).max(1);
        let asked = sqlx::query("PRAGMA user_version").fetch_one(&mut *connection);
        let Ok(Ok(before)) = asked.await.map(|row| row.try_get::<i32, _>(0)) else {
            return;
        };
        let journal = |numbers: &[i32]| Journal {
            file: self.id,
            numbers: numbers.to_vec(),
        };
        // Both count until it is sure which of them the file holds.
        if lock.note(&journal(&[before, number])).is_err() {
            return;
        }
        let draw = format!(
            "PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION}; \
             PRAGMA user_version = {number}; COMMIT"
        );
        let drawn = sqlx::raw_sql(AssertSqlSafe(draw)).execute(&mut *connection);
        if drawn.await.is_err() {
            let _ = sqlx::query("ROLLBACK").execute(&mut *connection).await;
        } else if take_over_journal(connection).await {
            let _ = lock.note(&journal(&[number]));
        }
        let patient = "PRAGMA busy_timeout = 3000";
        let _ = sqlx::query(patient).execute(&mut *connection).await;
    }

    /// Nobody here has it open any more.
    pub(super) fn release(&self) {
        let mut all = all_open();
        let found = all.iter().position(|id| *id == self.id);
        if let Some(at) = found.filter(|_| !self.released.swap(true, Ordering::Relaxed)) {
            all.swap_remove(at);
        }
    }

    fn metadata_here(&self) -> Option<Metadata> {
        let meta = self.path.metadata().ok()?;
        (file_id(&meta) == self.id).then_some(meta)
    }

    fn seen(&self) -> MutexGuard<'_, Option<Stamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        self.release();
    }
}

/// Takes all that is in the journal over into the file and empties it. Gives whether nothing is left in it.
pub(super) async fn take_over_journal(connection: &mut SqliteConnection) -> bool {
    let done = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(connection);
    matches!(done.await.map(|row| row.try_get::<i64, _>(0)), Ok(Ok(0)))
}

/// Makes a new store by `fill`, which gets the path of a draft. Nobody ever sees half of it.
pub(super) async fn make(
    path: &Path,
    place: &StoreLocation,
    fill: impl AsyncFnOnce(&Path) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let io = |error: io::Error| place.io(&error);
    let folder = path.parent().unwrap_or(Path::new("/"));
    file::make_folder(folder).map_err(io)?;
    let _lock = Lock::wait(path).await.map_err(io)?;
    // Whoever held the lock may have made it; a link that leads nowhere is not made to lead somewhere.
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    move_aside(path).map_err(io)?;
    let draft = folder.join(format!(".toolcrib.{}", uuid::Uuid::now_v7().simple()));
    let made = async {
        drop(file::create_private(&draft).map_err(io)?);
        fill(&draft).await?;
        std::fs::hard_link(&draft, path).map_err(io)
    };
    let made = made.await;
    for part in ["", "-wal", "-shm", "-lock"] {
        let _ = std::fs::remove_file(beside(&draft, part));
    }
    made
}

/// A 0-byte file is what is left of a store: one of ours is never so, not even while it is made.
pub(super) fn is_empty(path: &Path) -> bool {
    let meta = path.metadata();
    meta.is_ok_and(|meta| meta.is_file() && meta.len() == 0)
}

pub(super) fn empty(place: &StoreLocation) -> StoreError {
    place.damaged("its file is empty")
}

fn overwritten(place: &StoreLocation) -> StoreError {
    place.unreachable(
        "its file was overwritten while it was open; restart Toolcrib to take up what is there now",
    )
}

/// Reads the file itself, without its journal. Not by opening it ourselves: closing it would let go of every lock that
/// this process holds on it, and another process could then take the journal away under us. SQLite knows better.
async fn header(path: &Path, place: &StoreLocation) -> Result<Header, StoreError> {
    let mut looks = 0;
    loop {
        // No lock is taken, so who takes a journal over at this moment shows half of a page: damage stays, that does not.
        match header_now(path, place).await {
            Err(StoreError::Damaged { .. }) if looks < LOOKS => looks += 1,
            read => return read,
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

async fn header_now(path: &Path, place: &StoreLocation) -> Result<Header, StoreError> {
    if is_empty(path) {
        return Err(empty(place));
    }
    let options = SqliteConnectOptions::new().filename(path);
    // The file alone may be behind its journal: who died while it took one over has written the first page, which counts
    // pages that are in the journal only. SQLite calls that damage, unless it is told to count for itself.
    let options = options.read_only(true).immutable(true);
    let options = options.pragma("writable_schema", "ON");
    let read = async {
        let mut connection = options.disable_statement_logging().connect().await?;
        let application = sqlx::query("PRAGMA application_id");
        let application = application.fetch_one(&mut connection).await?.try_get(0)?;
        let number = sqlx::query("PRAGMA user_version");
        let number = number.fetch_one(&mut connection).await?.try_get(0)?;
        connection.close().await?;
        Ok(Header {
            application,
            number,
        })
    };
    read.await.map_err(|error| place.error(error))
}

/// A journal that covers what it does not belong to stays for whoever wants to look into it; one that holds nothing goes.
fn move_aside(path: &Path) -> io::Result<()> {
    let journal = journal_of(path);
    if length(&journal) > 0 {
        let aside = beside(path, &format!("-wal.{}", now_ms()));
        std::fs::rename(&journal, &aside)?;
        let (journal, aside) = (journal.display(), aside.display());
        tracing::warn!(%journal, %aside, "this journal belongs to another file than the one in place, and was moved aside");
    }
    for part in ["-wal", "-shm"] {
        match std::fs::remove_file(beside(path, part)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn keep_private(path: &Path, meta: &Metadata) {
    let mut permissions = meta.permissions();
    if permissions.mode() & 0o077 != 0 {
        permissions.set_mode(0o600);
        // Somebody else's file stays as its owner made it.
        let _ = std::fs::set_permissions(path, permissions);
    }
}

fn file_id(meta: &Metadata) -> FileId {
    (meta.dev(), meta.ino())
}

pub(super) fn journal_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

pub(super) fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |meta| meta.len())
}

fn all_open() -> MutexGuard<'static, Vec<FileId>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the journal belongs to.
struct Journal {
    file: FileId,
    numbers: Vec<i32>,
}

impl Journal {
    fn is_for(&self, file: FileId, header: &Header, path: &Path) -> bool {
        // An empty journal is nobody's loss, and whoever still has the other file open goes on using it.
        let held_by_others = self.file != file && length(&journal_of(path)) == 0;
        self.numbers.contains(&header.number) && !held_by_others
    }
}

/// `toolcrib.db-lock`, held among processes until it is dropped. It says what the journal belongs to.
struct Lock(File);

impl Lock {
    async fn wait(path: &Path) -> io::Result<Lock> {
        Lock::wait_at_most(path, LOCK_PATIENCE).await
    }

    async fn wait_at_most(path: &Path, patience: Duration) -> io::Result<Lock> {
        let deadline = Instant::now() + patience;
        loop {
            match Lock::take(path) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() > deadline {
                        return Err(error);
                    }
                    sleep(Duration::from_millis(2)).await;
                }
                taken => return taken,
            }
        }
    }

    fn try_now(path: &Path) -> Option<Lock> {
        Lock::take(path).ok()
    }

    fn take(path: &Path) -> io::Result<Lock> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(beside(path, "-lock"))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Lock(file))
    }

    /// What is noted; nothing where nobody noted it, as earlier versions did.
    fn journal(&mut self) -> Option<Journal> {
        let mut text = String::new();
        self.0.rewind().ok()?;
        (&mut self.0).take(256).read_to_string(&mut text).ok()?;
        let mut words = text.split_whitespace();
        let (device, number) = words.next()?.split_once(':')?;
        let file = (device.parse().ok()?, number.parse().ok()?);
        let numbers: Result<_, _> = words.map(str::parse).collect();
        Some(Journal {
            file,
            numbers: numbers.ok()?,
        })
    }

    fn note(&mut self, journal: &Journal) -> io::Result<()> {
        let (device, number) = journal.file;
        let numbers: String = journal.numbers.iter().map(|n| format!(" {n}")).collect();
        self.0.set_len(0)?;
        self.0.rewind()?;
        let line = format!("{device}:{number}{numbers}\n");
        self.0.write_all(line.as_bytes())?;
        // It is on the disk before any number that it speaks of: else a loss of power makes a good journal look foreign.
        self.0.sync_data()
    }
}
