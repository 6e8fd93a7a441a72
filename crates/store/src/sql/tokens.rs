//! Tokens: what a client shows to be let in. Only their hashes are kept.
//!
//! A secret is 32 random bytes, so nobody can guess it and a plain SHA-256 is enough: slow hashes are for what people
//! think up.

use toolcrib_core::store::StoreError;

use super::changes::Kind;
use super::db::Db;
use super::hash::{random, same, sha256};
use super::value::{Line, Unreadable, values};
use super::{new_id, now_ms};
use crate::file::hex;

/// What tokens begin with, so that scanners for leaked secrets know one.
const PREFIX: &str = "tcrib_";
/// When a token was last used is known to the minute.
const TOUCH_EVERY_MS: u64 = 60_000;

/// What a token is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    pub name: String,
    pub scopes: Vec<String>,
    /// Our profile; none means whichever the client names.
    pub agent: Option<String>,
    /// In milliseconds since the epoch.
    pub expires_ms: Option<u64>,
    /// The id of the token that it is made with; it ends with that one.
    pub made_by: Option<String>,
}

/// A token without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub scopes: Vec<String>,
    pub agent: Option<String>,
    pub expires_ms: Option<u64>,
    pub created_ms: u64,
    pub last_used_ms: Option<u64>,
    pub revoked_ms: Option<u64>,
    /// The id of the token that it was made with.
    pub made_by: Option<String>,
}

/// What is said of a secret that was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Valid(Token),
    Expired,
    Revoked,
    Unknown,
}

const INSERT: &str = "INSERT INTO tokens (id, name, hash, scopes, agent, expires_at, created_at, made_by) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
/// A token and all that were made with it, and with those.
const REVOKE: &str = "WITH RECURSIVE family (id) AS (SELECT id FROM tokens WHERE id = $2 \
    UNION SELECT tokens.id FROM tokens JOIN family ON tokens.made_by = family.id) \
    UPDATE tokens SET revoked_at = $1 WHERE revoked_at IS NULL AND id IN (SELECT id FROM family)";
/// Does the token still count that this one is made with? Who takes it back at the same time goes before or after.
const MAKER: &str = "SELECT id FROM tokens WHERE id = $1 AND revoked_at IS NULL";

#[derive(Clone)]
pub struct Tokens {
    db: Db,
}

impl Tokens {
    pub(super) fn new(db: Db) -> Tokens {
        Tokens { db }
    }

    /// Makes a token. The secret is given here, and never again.
    pub async fn create(&self, new: NewToken) -> Result<(Token, String), StoreError> {
        let random = random::<32>().map_err(|error| self.db.place().failed(error))?;
        let secret = format!("{PREFIX}{}", hex(&random));
        let token = Token {
            id: new_id(),
            name: new.name,
            scopes: new.scopes,
            agent: new.agent,
            expires_ms: new.expires_ms,
            created_ms: now_ms(),
            last_used_ms: None,
            revoked_ms: None,
            made_by: new.made_by,
        };
        let scopes = serde_json::Value::from(token.scopes.clone()).to_string();
        let hash = sha256(secret.as_bytes());
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Tokens).await?;
        if let Some(maker) = &token.made_by
            && tx.rows(MAKER, values![maker]).await?.is_empty()
        {
            return Err(StoreError::Missing {
                kind: "valid token",
                name: maker.clone(),
            });
        }
        let values = values![
            &token.id,
            &token.name,
            &hash,
            &scopes,
            &token.agent,
            token.expires_ms,
            token.created_ms,
            &token.made_by,
        ];
        tx.run(INSERT, values).await?;
        tx.commit().await?;
        Ok((token, secret))
    }

    /// Could this be a token's secret? What is not need not be looked for.
    pub fn is_secret(text: &str) -> bool {
        let digits = text.strip_prefix(PREFIX);
        digits.is_some_and(|digits| {
            digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        })
    }

    /// Is this a token, and does it still count?
    pub async fn verify(&self, secret: &str) -> Result<Verdict, StoreError> {
        let hash = sha256(secret.as_bytes());
        let sql = "SELECT * FROM tokens WHERE hash = $1";
        let Some(row) = self.db.row(sql, values![&hash]).await? else {
            return Ok(Verdict::Unknown);
        };
        let token = self.read(&row)?;
        let kept = row
            .text("hash")
            .map_err(|error| self.db.unreadable("tokens", error))?;
        // The database compared hashes, whose prefixes tell nothing of the secret; this holds whatever it does.
        if !same(&hash, &kept) {
            return Ok(Verdict::Unknown);
        }
        if token.revoked_ms.is_some() {
            return Ok(Verdict::Revoked);
        }
        if token.expires_ms.is_some_and(|expires| expires <= now_ms()) {
            return Ok(Verdict::Expired);
        }
        Ok(Verdict::Valid(token))
    }

    /// Notes that a token was used, at most once a minute. Nobody is told.
    pub async fn touch(&self, token: &Token) -> Result<(), StoreError> {
        let now = now_ms();
        let before = now.saturating_sub(TOUCH_EVERY_MS);
        if token.last_used_ms.is_some_and(|used| used > before) {
            return Ok(());
        }
        let sql = "UPDATE tokens SET last_used = $1 WHERE id = $2 AND (last_used IS NULL OR last_used <= $3)";
        self.db.run(sql, values![now, &token.id, before]).await?;
        Ok(())
    }

    /// All, by name; also those that no longer count.
    pub async fn list(&self) -> Result<Vec<Token>, StoreError> {
        let sql = "SELECT * FROM tokens ORDER BY name, created_at, id";
        let rows = self.db.rows(sql, values![]).await?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    pub async fn get(&self, id: &str) -> Result<Option<Token>, StoreError> {
        let row = self
            .db
            .row("SELECT * FROM tokens WHERE id = $1", values![id])
            .await?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Takes a token back for good, and with it all that were made with it. Gives whether any counted until now.
    pub async fn revoke(&self, id: &str) -> Result<bool, StoreError> {
        let mut tx = self.db.begin().await?;
        tx.change(Kind::Tokens).await?;
        if tx.run(REVOKE, values![now_ms(), id]).await? == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    fn read(&self, row: &Line) -> Result<Token, StoreError> {
        read(row).map_err(|error| self.db.unreadable("tokens", error))
    }
}

fn read(row: &Line) -> Result<Token, Unreadable> {
    Ok(Token {
        id: row.text("id")?,
        name: row.text("name")?,
        scopes: row.json("scopes")?,
        agent: row.maybe_text("agent")?,
        expires_ms: row.maybe_number("expires_at")?,
        created_ms: row.number("created_at")?,
        last_used_ms: row.maybe_number("last_used")?,
        revoked_ms: row.maybe_number("revoked_at")?,
        made_by: row.maybe_text("made_by")?,
    })
}
