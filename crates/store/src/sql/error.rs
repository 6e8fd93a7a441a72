//! What a database's error means for a person: damaged, read-only, full, locked, or out of reach.

use std::io;
use std::path::Path;

use rustix::fs::{Access, access, statvfs};
use toolcrib_core::store::StoreError;

/// What is said where a store was, and its tables are not there.
pub(super) const NO_TABLES: &str = "it has no tables of Toolcrib: it is empty, it is another database, or it was copied without its journal";

/// Where an error comes from, which is half of what it means.
#[derive(Debug, Clone)]
pub(super) struct StoreLocation {
    pub(super) name: String,
    /// The folder of the file, where the store is one.
    pub(super) folder: Option<Box<Path>>,
}

impl StoreLocation {
    pub(super) fn locked(&self, why: impl ToString) -> StoreError {
        StoreError::Locked {
            place: self.name.clone(),
            why: why.to_string(),
        }
    }

    pub(super) fn unreachable(&self, why: impl ToString) -> StoreError {
        StoreError::Unreachable {
            place: self.name.clone(),
            why: why.to_string(),
        }
    }

    pub(super) fn damaged(&self, why: impl ToString) -> StoreError {
        StoreError::Damaged {
            place: self.name.clone(),
            why: why.to_string(),
        }
    }

    pub(super) fn failed(&self, why: impl ToString) -> StoreError {
        StoreError::Failed {
            place: self.name.clone(),
            why: why.to_string(),
        }
    }

    pub(super) fn read_only(&self, why: impl ToString) -> StoreError {
        StoreError::ReadOnly {
            place: self.name.clone(),
            why: why.to_string(),
        }
    }

    fn full(&self, why: impl ToString) -> StoreError {
        StoreError::Full {
            place: self.name.clone(),
            why: why.to_string(),
        }
    }

    /// Somebody waited as long as anybody waits.
    pub(super) fn too_late(&self) -> StoreError {
        match self.folder {
            Some(_) => self.locked("it took too long"),
            None => self.unreachable("it does not answer"),
        }
    }

    pub(super) fn io(&self, error: &io::Error) -> StoreError {
        use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        match error.kind() {
            PermissionDenied | ReadOnlyFilesystem => self.read_only(error),
            StorageFull | QuotaExceeded => self.full(error),
            _ => self.unreachable(error),
        }
    }

    pub(super) fn error(&self, error: sqlx::Error) -> StoreError {
        match error {
            sqlx::Error::Database(error) => {
                let code = error.code().unwrap_or_default();
                match (&self.folder, code.parse()) {
                    (Some(folder), Ok(code)) => self.sqlite(folder, code, error.message()),
                    _ => self.postgres(&code, error.message()),
                }
            }
            sqlx::Error::Io(error) => self.io(&error),
            sqlx::Error::PoolTimedOut => self.too_late(),
            sqlx::Error::PoolClosed => self.unreachable("it was closed"),
            error @ (sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::Configuration(_)) => self.unreachable(error),
            error => self.failed(error),
        }
    }

    /// By SQLite's extended result code; its last byte is the plain one.
    fn sqlite(&self, folder: &Path, code: u32, message: &str) -> StoreError {
        match code & 0xff {
            5 | 6 | 15 => self.locked(message),
            8 => self.read_only(message),
            11 | 26 => self.damaged(message),
            13 => self.full(message),
            // An error of reading or writing does not say why; the disk does.
            10 | 14 if no_room(folder) => self.full(message),
            14 if access(folder, Access::WRITE_OK).is_err() => self.read_only(format!(
                "its folder {} takes no new files",
                folder.display()
            )),
            10 | 14 => self.unreachable(message),
            _ => self.failed(message),
        }
    }

    fn postgres(&self, code: &str, message: &str) -> StoreError {
        match code {
            "53100" => self.full(message),
            "42P01" => self.failed(NO_TABLES),
            "25006" | "42501" => self.read_only(message),
            "55P03" | "40001" | "40P01" | "57014" => self.locked(message),
            "XX001" | "XX002" => self.damaged(message),
            _ if ["08", "28", "3D", "53", "57"].contains(&code.get(..2).unwrap_or_default()) => {
                self.unreachable(message)
            }
            _ => self.failed(message),
        }
    }
}

/// SQLite's page and a bit: less than that, and nothing can be written.
fn no_room(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < 64 * 1_024)
}

/// May the same be tried again, because somebody else held the file for a moment?
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code: Option<u32> = error.code().and_then(|code| code.parse().ok());
    code.is_some_and(|code| [5, 6, 15].contains(&(code & 0xff)))
}
