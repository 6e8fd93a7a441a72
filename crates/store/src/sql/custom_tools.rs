//! Registered tools. A name is taken once; an update names the revision it was made from, so nobody's is lost.

use serde::Serialize;
use toolcrib_core::BoxFuture;
use toolcrib_core::store::{
    CustomTool, EnvVars, RegisteredHealth, RegisteredStatus, Registrations, StoreError,
};

use super::changes::Kind;
use super::db::Db;
use super::value::{Line, Unreadable, values};
use super::{new_id, now_ms};

const KIND: &str = "registered tool";

const INSERT: &str = "INSERT INTO custom_tools (id, name, description, version, command, args, working_dir, env, \
    input_schema, output_schema, timeout_ms, max_retries, retry_delay_ms, pool_size, keep_alive, status, \
    last_health_check, health_status, error_message, tags, metadata, annotations, permissions, sandbox, aliases, \
    content_hash, created_at, updated_at, revision) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, \
    $23, $24, $25, $26, $27, $28, $29) ON CONFLICT (name) DO NOTHING";

/// All but what names it, what the store gives, and what health checks write.
const UPDATE: &str = "UPDATE custom_tools SET description = $1, version = $2, command = $3, args = $4, \
    working_dir = $5, env = $6, input_schema = $7, output_schema = $8, timeout_ms = $9, max_retries = $10, \
    retry_delay_ms = $11, pool_size = $12, keep_alive = $13, status = $14, error_message = $15, tags = $16, \
    metadata = $17, annotations = $18, permissions = $19, sandbox = $20, aliases = $21, content_hash = $22, \
    updated_at = $23, revision = $24 WHERE name = $25 AND id = $26 AND revision = $27";

const GET: &str = "SELECT * FROM custom_tools WHERE name = $1";
const LIST: &str =
    "SELECT * FROM custom_tools WHERE ($1 IS NULL OR status = $1) ORDER BY name LIMIT $2 OFFSET $3";
const COUNT: &str = "SELECT COUNT(*) AS number FROM custom_tools WHERE ($1 IS NULL OR status = $1)";
const SET_STATUS: &str = "UPDATE custom_tools SET status = $1, error_message = $2, updated_at = $3, revision = $4 \
    WHERE name = $5 RETURNING *";
const SET_HEALTH: &str =
    "UPDATE custom_tools SET health_status = $1, last_health_check = $2 WHERE name = $3";

/// One page of registrations, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolPage {
    pub tools: Vec<CustomTool>,
    /// How many there are on all pages.
    pub total: u64,
}

#[derive(Clone)]
pub struct CustomTools {
    db: Db,
}

impl CustomTools {
    pub(super) fn new(db: Db) -> CustomTools {
        CustomTools { db }
    }

    /// Keeps a new registration; gives it with its id, times and revision. `Taken` when the name is.
    pub async fn create(&self, mut tool: CustomTool) -> Result<CustomTool, StoreError> {
        tool.id = new_id();
        tool.created_ms = now_ms();
        tool.updated_ms = tool.created_ms;
        let mut tx = self.db.begin().await?;
        tool.revision = tx.change(Kind::CustomTools).await?;
        let texts = Texts::of(&tool);
        let made = tx
            .run(
                INSERT,
                values![
                    &tool.id,
                    &tool.name,
                    &tool.description,
                    &tool.version,
                    &tool.command,
                    &texts.args,
                    &tool.working_dir,
                    &texts.env,
                    &texts.input_schema,
                    &texts.output_schema,
                    tool.timeout_ms,
                    u64::from(tool.max_retries),
                    tool.retry_delay_ms,
                    u64::from(tool.pool_size),
                    u64::from(tool.keep_alive),
                    tool.status.as_str(),
                    tool.last_health_check_ms,
                    tool.health.as_str(),
                    &tool.error_message,
                    &texts.tags,
                    &texts.metadata,
                    &texts.annotations,
                    &texts.permissions,
                    &texts.sandbox,
                    &texts.aliases,
                    &tool.content_hash,
                    tool.created_ms,
                    tool.updated_ms,
                    tool.revision,
                ],
            )
            .await?;
        if made == 0 {
            tx.rollback().await?;
            return Err(StoreError::Taken {
                kind: KIND,
                name: tool.name,
            });
        }
        tx.commit().await?;
        Ok(tool)
    }

    pub async fn get(&self, name: &str) -> Result<Option<CustomTool>, StoreError> {
        let row = self.db.row(GET, values![name]).await?;
        row.map(|row| self.read(&row)).transpose()
    }

    pub async fn list(
        &self,
        status: Option<RegisteredStatus>,
        offset: u64,
        limit: u64,
    ) -> Result<ToolPage, StoreError> {
        let status = status.map(RegisteredStatus::as_str);
        let rows = self.db.rows(LIST, values![status, limit, offset]).await?;
        let tools: Result<_, _> = rows.iter().map(|row| self.read(row)).collect();
        let count = self.db.row(COUNT, values![status]).await?;
        let total = count.map_or(Ok(0), |row| row.number("number"));
        Ok(ToolPage {
            tools: tools?,
            total: total.map_err(|error| self.db.unreadable("custom_tools", error))?,
        })
    }

    /// Replaces what a registration says, if it is still the one of `tool.revision`: `Changed` when somebody was
    /// faster, `Missing` when it is gone. Its name, its times and its health stay as they are.
    pub async fn update(&self, mut tool: CustomTool) -> Result<CustomTool, StoreError> {
        let from = tool.revision;
        let mut tx = self.db.begin().await?;
        tool.revision = tx.change(Kind::CustomTools).await?;
        tool.updated_ms = now_ms();
        let texts = Texts::of(&tool);
        let made = tx
            .run(
                UPDATE,
                values![
                    &tool.description,
                    &tool.version,
                    &tool.command,
                    &texts.args,
                    &tool.working_dir,
                    &texts.env,
                    &texts.input_schema,
                    &texts.output_schema,
                    tool.timeout_ms,
                    u64::from(tool.max_retries),
                    tool.retry_delay_ms,
                    u64::from(tool.pool_size),
                    u64::from(tool.keep_alive),
                    tool.status.as_str(),
                    &tool.error_message,
                    &texts.tags,
                    &texts.metadata,
                    &texts.annotations,
                    &texts.permissions,
                    &texts.sandbox,
                    &texts.aliases,
                    &tool.content_hash,
                    tool.updated_ms,
                    tool.revision,
                    &tool.name,
                    &tool.id,
                    from,
                ],
            )
            .await?;
        if made == 0 {
            let there = !tx.rows(GET, values![&tool.name]).await?.is_empty();
            tx.rollback().await?;
            return Err(gone(&tool.name, there));
        }
        let row = tx.rows(GET, values![&tool.name]).await?.pop();
        tx.commit().await?;
        match row {
            Some(row) => self.read(&row),
            None => Err(gone(&tool.name, false)),
        }
    }

    /// Gives whether there was one.
    pub async fn delete(&self, name: &str) -> Result<bool, StoreError> {
        let mut tx = self.db.begin().await?;
        tx.change(Kind::CustomTools).await?;
        let sql = "DELETE FROM custom_tools WHERE name = $1";
        if tx.run(sql, values![name]).await? == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Takes a tool into the catalog or out of it, with the reason. `Missing` when it is gone.
    pub async fn set_status(
        &self,
        name: &str,
        status: RegisteredStatus,
        error_message: Option<&str>,
    ) -> Result<CustomTool, StoreError> {
        let mut tx = self.db.begin().await?;
        let revision = tx.change(Kind::CustomTools).await?;
        let values = values![status.as_str(), error_message, now_ms(), revision, name];
        let Some(row) = tx.rows(SET_STATUS, values).await?.pop() else {
            tx.rollback().await?;
            return Err(gone(name, false));
        };
        tx.commit().await?;
        self.read(&row)
    }

    /// Notes how a tool is doing. This is no change: it has no revision, and nobody is told.
    pub async fn set_health(
        &self,
        name: &str,
        health: RegisteredHealth,
        at_ms: u64,
    ) -> Result<(), StoreError> {
        let touched = self
            .db
            .run(SET_HEALTH, values![health.as_str(), at_ms, name])
            .await?;
        match touched {
            0 => Err(gone(name, false)),
            _ => Ok(()),
        }
    }

    fn read(&self, row: &Line) -> Result<CustomTool, StoreError> {
        read(row).map_err(|error| self.db.unreadable("custom_tools", error))
    }
}

fn gone(name: &str, there: bool) -> StoreError {
    let name = name.to_owned();
    match there {
        true => StoreError::Changed { kind: KIND, name },
        false => StoreError::Missing { kind: KIND, name },
    }
}

/// What is kept as JSON.
struct Texts {
    args: String,
    env: String,
    input_schema: String,
    output_schema: Option<String>,
    tags: String,
    metadata: String,
    annotations: Option<String>,
    permissions: Option<String>,
    sandbox: Option<String>,
    aliases: String,
}

impl Texts {
    fn of(tool: &CustomTool) -> Texts {
        Texts {
            args: json(&tool.args),
            env: json(&tool.env.0),
            input_schema: json(&tool.input_schema),
            output_schema: tool.output_schema.as_ref().map(json),
            tags: json(&tool.tags),
            metadata: json(&tool.metadata),
            annotations: tool.annotations.as_ref().map(json),
            permissions: tool.permissions.as_ref().map(json),
            sandbox: tool.sandbox.as_ref().map(json),
            aliases: json(&tool.aliases),
        }
    }
}

/// Strings, and maps of strings to JSON, can always be written.
fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn read(row: &Line) -> Result<CustomTool, Unreadable> {
    let status = RegisteredStatus::parse(&row.text("status")?);
    let health = RegisteredHealth::parse(&row.text("health_status")?);
    Ok(CustomTool {
        id: row.text("id")?,
        name: row.text("name")?,
        description: row.text("description")?,
        version: row.text("version")?,
        command: row.text("command")?,
        args: row.json("args")?,
        working_dir: row.maybe_text("working_dir")?,
        env: EnvVars(row.json("env")?),
        input_schema: row.json("input_schema")?,
        output_schema: row.maybe_json("output_schema")?,
        timeout_ms: row.number("timeout_ms")?,
        max_retries: row.small("max_retries")?,
        retry_delay_ms: row.number("retry_delay_ms")?,
        pool_size: row.small("pool_size")?,
        keep_alive: row.number("keep_alive")? != 0,
        status: status.ok_or(Unreadable::Word("status"))?,
        last_health_check_ms: row.maybe_number("last_health_check")?,
        health: health.ok_or(Unreadable::Word("health_status"))?,
        error_message: row.maybe_text("error_message")?,
        tags: row.json("tags")?,
        metadata: row.json("metadata")?,
        annotations: row.maybe_json("annotations")?,
        permissions: row.maybe_json("permissions")?,
        sandbox: row.maybe_json("sandbox")?,
        aliases: row.json("aliases")?,
        content_hash: row.text("content_hash")?,
        created_ms: row.number("created_at")?,
        updated_ms: row.number("updated_at")?,
        revision: row.number("revision")?,
    })
}

impl Registrations for CustomTools {
    fn active(&self) -> BoxFuture<'_, Result<Vec<CustomTool>, StoreError>> {
        Box::pin(async {
            let all = self
                .list(Some(RegisteredStatus::Active), 0, u64::MAX)
                .await?;
            Ok(all.tools)
        })
    }

    fn set_status<'a>(
        &'a self,
        name: &'a str,
        status: RegisteredStatus,
        error_message: Option<&'a str>,
    ) -> BoxFuture<'a, Result<CustomTool, StoreError>> {
        Box::pin(CustomTools::set_status(self, name, status, error_message))
    }

    fn set_health<'a>(
        &'a self,
        name: &'a str,
        health: RegisteredHealth,
        at_ms: u64,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(CustomTools::set_health(self, name, health, at_ms))
    }
}
