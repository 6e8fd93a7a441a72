//! What goes into a statement and comes out of a row, the same for both databases: texts and numbers.

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Database, Encode, Row, Type};
use toolcrib_core::store::StoreError;

/// One bound value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bound<'a> {
    Text(Option<&'a str>),
    Number(Option<i64>),
}

impl<'a> From<&'a str> for Bound<'a> {
    fn from(text: &'a str) -> Bound<'a> {
        Bound::Text(Some(text))
    }
}

impl<'a> From<&'a String> for Bound<'a> {
    fn from(text: &'a String) -> Bound<'a> {
        Bound::Text(Some(text))
    }
}

impl<'a> From<Option<&'a str>> for Bound<'a> {
    fn from(text: Option<&'a str>) -> Bound<'a> {
        Bound::Text(text)
    }
}

impl<'a> From<&'a Option<String>> for Bound<'a> {
    fn from(text: &'a Option<String>) -> Bound<'a> {
        Bound::Text(text.as_deref())
    }
}

impl From<u64> for Bound<'_> {
    fn from(number: u64) -> Self {
        Bound::Number(Some(signed(number)))
    }
}

impl From<Option<u64>> for Bound<'_> {
    fn from(number: Option<u64>) -> Self {
        Bound::Number(number.map(signed))
    }
}

/// Databases have no unsigned numbers; nothing we count comes near the limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// `values![a, b]` is what a statement's `$1` and `$2` stand for.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::value::Bound::from($value)),*] };
}
pub(super) use values;

/// Postgres takes no NUL in a text; neither do we, so that both stores take the same.
pub(super) fn check(values: &[Bound<'_>]) -> Result<(), StoreError> {
    let nul = values
        .iter()
        .any(|value| matches!(value, Bound::Text(Some(text)) if text.contains('\0')));
    if nul {
        return Err(StoreError::Unfit {
            what: "a text".to_owned(),
            why: "it holds a NUL character",
        });
    }
    Ok(())
}

pub(super) type Query<DB> = sqlx::query::Query<'static, DB, <DB as Database>::Arguments>;

pub(super) fn bind<DB>(mut query: Query<DB>, values: &[Bound<'_>]) -> Query<DB>
where
    DB: Database,
    for<'t> Option<&'t str>: Encode<'t, DB> + Type<DB>,
    Option<i64>: for<'t> Encode<'t, DB> + Type<DB>,
{
    for value in values {
        query = match *value {
            Bound::Text(text) => query.bind(text),
            Bound::Number(number) => query.bind(number),
        };
    }
    query
}

/// One row of an answer.
pub(super) enum Line {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

/// Why a row can't be read. Nobody but us writes here, so the store is damaged or was tampered with.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("{0}")]
    Column(#[from] sqlx::Error),
    #[error("column `{0}` is not JSON of its kind: {1}")]
    Json(&'static str, serde_json::Error),
    #[error("column `{0}` holds an unknown word")]
    Word(&'static str),
}

impl Line {
    pub(super) fn text(&self, column: &'static str) -> Result<String, Unreadable> {
        Ok(match self {
            Line::Sqlite(row) => row.try_get(column)?,
            Line::Postgres(row) => row.try_get(column)?,
        })
    }

    pub(super) fn maybe_text(&self, column: &'static str) -> Result<Option<String>, Unreadable> {
        Ok(match self {
            Line::Sqlite(row) => row.try_get(column)?,
            Line::Postgres(row) => row.try_get(column)?,
        })
    }

    pub(super) fn maybe_number(&self, column: &'static str) -> Result<Option<u64>, Unreadable> {
        let number: Option<i64> = match self {
            Line::Sqlite(row) => row.try_get(column)?,
            Line::Postgres(row) => row.try_get(column)?,
        };
        Ok(number.map(|number| u64::try_from(number).unwrap_or(0)))
    }

    pub(super) fn number(&self, column: &'static str) -> Result<u64, Unreadable> {
        Ok(self.maybe_number(column)?.unwrap_or(0))
    }

    pub(super) fn small(&self, column: &'static str) -> Result<u32, Unreadable> {
        Ok(u32::try_from(self.number(column)?).unwrap_or(u32::MAX))
    }

    pub(super) fn json<T: serde::de::DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<T, Unreadable> {
        let text = self.text(column)?;
        serde_json::from_str(&text).map_err(|error| Unreadable::Json(column, error))
    }

    pub(super) fn maybe_json<T: serde::de::DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, Unreadable> {
        let Some(text) = self.maybe_text(column)? else {
            return Ok(None);
        };
        let value = serde_json::from_str(&text);
        value
            .map(Some)
            .map_err(|error| Unreadable::Json(column, error))
    }
}
