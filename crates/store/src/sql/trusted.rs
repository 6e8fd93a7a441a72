//! Which projects, and which single entries, a person said yes to.

use std::path::{Path, PathBuf};

use toolcrib_core::store::StoreError;

use super::changes::Kind;
use super::db::Db;
use super::value::{Line, Unreadable, values};
use super::{migrate, now_ms};
use crate::ownership::Ownership;
use crate::trust::TrustBook;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustKind {
    Project,
    Entry,
}

impl TrustKind {
    pub fn as_str(self) -> &'static str {
        match self {
            TrustKind::Project => "project",
            TrustKind::Entry => "entry",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedPath {
    pub path: String,
    pub kind: TrustKind,
    /// When yes was said: another time means that trust was gone in between.
    pub since_ms: u64,
    /// Who could change it then; nothing where that was not remembered yet.
    pub ownership: Option<Ownership>,
}

impl TrustedPath {
    /// Why the yes no longer counts for this user, if so: others than then can change what it was said to.
    /// `further` is what else decides what runs, beside what lies where it always does.
    pub fn lapsed(&self, user: u32, further: &[PathBuf]) -> Option<String> {
        match Ownership::of(Path::new(&self.path), further) {
            Ok(now) => now.change_since(&self.ownership.clone().unwrap_or_default(), user),
            Err(error) => Some(format!("its owner can't be determined: {error}")),
        }
    }
}

const INSERT: &str =
    "INSERT INTO trust (path, kind, since) VALUES ($1, $2, $3) ON CONFLICT (path) DO NOTHING";
/// A yes that is said again is for those who can change it now.
const TRUST: &str = "INSERT INTO trust (path, kind, since, ownership) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (path) DO UPDATE SET ownership = excluded.ownership, since = excluded.since \
    WHERE COALESCE(trust.ownership, '') <> excluded.ownership";
const IMPORTED: &str = "trust_imported";

#[derive(Clone)]
pub struct TrustedPaths {
    db: Db,
}

impl TrustedPaths {
    pub(super) fn new(db: Db) -> TrustedPaths {
        TrustedPaths { db }
    }

    /// Says yes, to those who can change it and what `further` decides what runs. Gives whether that is new.
    pub async fn trust(
        &self,
        path: &Path,
        kind: TrustKind,
        further: &[PathBuf],
    ) -> Result<bool, StoreError> {
        let ownership = Ownership::of(path, further).ok();
        let ownership = ownership.and_then(|one| serde_json::to_string(&one).ok());
        let path = text(path)?;
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Trust).await?;
        let values = values![path, kind.as_str(), now_ms(), ownership.as_deref()];
        if tx.run(TRUST, values).await? == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Remembers who can change what was said yes to before that was remembered.
    pub async fn remember(&self, path: &Path, further: &[PathBuf]) -> Result<(), StoreError> {
        let Ok(ownership) = Ownership::of(path, further) else {
            return Ok(());
        };
        let ownership = serde_json::to_string(&ownership).unwrap_or_default();
        let mut tx = self.db.begin().await?;
        let sql = "UPDATE trust SET ownership = $2 WHERE path = $1 AND ownership IS NULL";
        tx.run(sql, values![text(path)?, &ownership]).await?;
        tx.commit().await
    }

    /// Takes the yes back. Gives whether there was one.
    pub async fn revoke(&self, path: &Path) -> Result<bool, StoreError> {
        let path = text(path)?;
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Trust).await?;
        if tx
            .run("DELETE FROM trust WHERE path = $1", values![path])
            .await?
            == 0
        {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Takes the yes back from a project and from every entry below it. Gives whether there was any.
    pub async fn revoke_project(&self, root: &Path) -> Result<bool, StoreError> {
        let root = text(root)?;
        let below = format!("{}/", root.trim_end_matches('/'));
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Trust).await?;
        let had = tx
            .run("DELETE FROM trust WHERE path = $1", values![root])
            .await?;
        let entries = tx
            .run(
                "DELETE FROM trust WHERE kind = 'entry' AND substr(path, 1, length($1)) = $1",
                values![&below],
            )
            .await?;
        if had + entries == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    pub async fn get(&self, path: &Path) -> Result<Option<TrustedPath>, StoreError> {
        let Ok(path) = text(path) else {
            return Ok(None);
        };
        let row = self
            .db
            .row("SELECT * FROM trust WHERE path = $1", values![path])
            .await?;
        let read = row.as_ref().map(read).transpose();
        read.map_err(|error| self.db.unreadable("trust", error))
    }

    /// All, by path.
    pub async fn list(&self) -> Result<Vec<TrustedPath>, StoreError> {
        let rows = self
            .db
            .rows("SELECT * FROM trust ORDER BY path", values![])
            .await?;
        let read: Result<_, _> = rows.iter().map(read).collect();
        read.map_err(|error| self.db.unreadable("trust", error))
    }

    /// Takes over what `trust.json` says, once: trust that is taken back later does not come back with the next
    /// start. Gives how many are new. A book that can't be read is left for another time.
    pub async fn import(&self, book: &TrustBook) -> Result<u64, StoreError> {
        if migrate::read(&self.db, IMPORTED).await?.is_some() {
            return Ok(0);
        }
        let projects = book.list().map_err(|error| self.db.place().failed(error))?;
        let entries = book
            .list_entries()
            .map_err(|error| self.db.place().failed(error))?;
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Trust).await?;
        // Two who start at once came here both; the second finds the first one's mark.
        let marked = tx
            .rows("SELECT value FROM meta WHERE key = $1", values![IMPORTED])
            .await?;
        if !marked.is_empty() {
            tx.rollback().await?;
            return Ok(0);
        }
        let mut new = 0;
        let projects = projects.iter().map(|one| (TrustKind::Project, one));
        let entries = entries.iter().map(|one| (TrustKind::Entry, one));
        for (kind, one) in projects.chain(entries) {
            let values = values![&one.path, kind.as_str(), one.trusted_at_ms];
            new += tx.run(INSERT, values).await?;
        }
        migrate::write(&mut tx, IMPORTED, "yes").await?;
        tx.commit().await?;
        Ok(new)
    }
}

fn text(path: &Path) -> Result<&str, StoreError> {
    path.to_str().ok_or_else(|| StoreError::Unfit {
        what: format!("the path `{}`", path.display()),
        why: "it is not valid UTF-8",
    })
}

fn read(row: &Line) -> Result<TrustedPath, Unreadable> {
    Ok(TrustedPath {
        path: row.text("path")?,
        kind: match row.text("kind")?.as_str() {
            "project" => TrustKind::Project,
            "entry" => TrustKind::Entry,
            _ => return Err(Unreadable::Word("kind")),
        },
        since_ms: row.number("since")?,
        ownership: row.maybe_json("ownership")?,
    })
}
