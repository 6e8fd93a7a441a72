//! Where the store is: a file of SQLite's, or a Postgres database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    #[error(
        "a store is `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`, and this begins otherwise"
    )]
    Scheme,
    #[error("`sqlite:` needs a path behind it")]
    NoPath,
    /// Says nothing of the URL itself, which may hold a password.
    #[error("the `postgres://` URL can't be read: {0}")]
    Postgres(String),
}

/// Where the store is. Shows no password.
#[derive(Clone)]
pub struct StoreUrl(pub(super) Kind);

#[derive(Clone)]
pub(super) enum Kind {
    Sqlite(PathBuf),
    Postgres(Box<PgConnectOptions>),
}

impl StoreUrl {
    pub fn sqlite(path: impl Into<PathBuf>) -> StoreUrl {
        StoreUrl(Kind::Sqlite(path.into()))
    }

    /// The store when none is named: `toolcrib.db` in the data folder.
    pub fn in_folder(data: &Path) -> StoreUrl {
        StoreUrl::sqlite(data.join("toolcrib.db"))
    }

    /// The file, where the store is one.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Kind::Sqlite(path) => Some(path),
            Kind::Postgres(_) => None,
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<StoreUrl, StoreUrlError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            // `sqlite:///a/b` and `sqlite:/a/b` are the same file; `sqlite://a` is `a`, as others read it.
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(StoreUrlError::NoPath);
            }
            return Ok(StoreUrl::sqlite(path));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let options = PgConnectOptions::from_str(text)
                .map_err(|error| StoreUrlError::Postgres(error.to_string()))?;
            return Ok(StoreUrl(Kind::Postgres(Box::new(options))));
        }
        Err(StoreUrlError::Scheme)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Sqlite(path) => write!(f, "{}", path.display()),
            Kind::Postgres(options) => {
                let database = options.get_database().unwrap_or_default();
                match options.get_socket() {
                    Some(socket) => write!(f, "postgres://{}/{database}", socket.display()),
                    None => {
                        let (host, port) = (options.get_host(), options.get_port());
                        write!(f, "postgres://{host}:{port}/{database}")
                    }
                }
            }
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_read() {
        for (text, shown) in [
            ("sqlite:data/a.db", "data/a.db"),
            ("sqlite:/x/a.db", "/x/a.db"),
            ("sqlite:///x/a.db", "/x/a.db"),
            (
                "postgres://u:s3cret@db.example:5433/crib",
                "postgres://db.example:5433/crib",
            ),
            (
                "postgresql://u@db.example/crib",
                "postgres://db.example:5432/crib",
            ),
        ] {
            let url: StoreUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), shown);
            assert!(!format!("{url:?}").contains("s3cret"));
        }
    }

    #[test]
    fn others_are_refused_without_repeating_them() {
        for text in [
            "",
            "a.db",
            "sqlite:",
            "mysql://u:s3cret@x/y",
            "postgres://u:s3cret@:x:/y",
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
