//! Registered tools as people change them: read, checked by starting the program, kept, and shown to everybody at once.
//!
//! REST and the command line both come here, so a registration is the same thing wherever it is made.

mod store;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use toolcrib_core::grant::REGISTERED;
use toolcrib_core::store::{CustomTool, RegisteredHealth, RegisteredStatus};
use toolcrib_core::words::CommandLine;
use toolcrib_core::{
    Binding, CallError, Crib, ErrorCode, Grant, Health, Hint, NewGrant, Permit, Problem,
    SourceKind, Status, Tool,
};
use toolcrib_sources::registered::{self, Examination, RegistrationKind, Yes};
use toolcrib_sources::{Place, Sources};
use toolcrib_store::{CustomTools, ToolPage};

use crate::config::lets_out;
use crate::env::Env;
use crate::open::Opened;
use crate::store_handle::{StoreHandle, refused};
use crate::wire::{Asked, CheckView};

pub use store::changes;

/// How many programs are examined at once, and how long one may wait for its turn.
const AT_ONCE: usize = 8;
const TURN: Duration = Duration::from_secs(30);

/// What a registration is called as long as its program was not asked for its name.
const UNNAMED: &str = "unnamed";

/// What has to be looked at again when it is changed.
const EXAMINED: [&str; 8] = [
    "command",
    "args",
    "env",
    "workingDir",
    "inputSchema",
    "outputSchema",
    "permissions",
    "sandbox",
];

pub struct Registrar {
    store: Arc<StoreHandle>,
    env: Env,
    place: Arc<Place>,
    crib: Arc<Crib>,
    default_timeout_ms: u64,
    /// Whether there may be registered tools, as long as no source says otherwise.
    enabled: bool,
    sources: Arc<OnceLock<Sources>>,
    turns: Semaphore,
}

/// Who makes or changes a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The owner, at the command line.
    Owner,
    /// Whoever came to the port, with a token or without.
    Port,
}

/// A registration that was made or changed, and what is odd about it.
#[derive(Debug)]
pub struct SavedTool {
    pub tool: CustomTool,
    pub warnings: Vec<String>,
}

impl Registrar {
    /// `sources` may be filled later, or never where nothing runs on after the change.
    pub fn new(opened: &Opened, sources: Arc<OnceLock<Sources>>) -> Registrar {
        let limit = opened.settings.default_timeout.as_millis();
        Registrar {
            store: opened.store.clone(),
            env: opened.env.clone(),
            place: opened.place.clone(),
            crib: opened.crib.clone(),
            default_timeout_ms: u64::try_from(limit).unwrap_or(u64::MAX),
            enabled: opened.settings.custom_tools_enabled,
            sources,
            turns: Semaphore::new(AT_ONCE),
        }
    }

    fn tools(&self) -> Result<CustomTools, CallError> {
        Ok(self.store.ready().map_err(refused)?.custom_tools())
    }

    pub async fn list(
        &self,
        status: Option<RegisteredStatus>,
        offset: u64,
        limit: u64,
    ) -> Result<ToolPage, CallError> {
        let listed = self.tools()?.list(status, offset, limit).await;
        listed.map_err(refused)
    }

    pub async fn get(&self, name: &str) -> Result<CustomTool, CallError> {
        let found = self.tools()?.get(name).await.map_err(refused)?;
        found.ok_or_else(|| missing(name))
    }

    /// Keeps a new registration: `active` when its program is what it is said to be, `inactive` when nobody looked.
    pub async fn create(
        &self,
        mut body: Map<String, Value>,
        by: By,
    ) -> Result<SavedTool, CallError> {
        let validate = flag(&mut body, "validate")?.unwrap_or(true);
        if validate && body.get("name").is_none_or(Value::is_null) {
            let name = self.ask_name(&body).await?;
            body.insert("name".to_owned(), name.into());
        }
        let mut read = self.read(&body, &RegistrationKind::New)?;
        self.refuse_let_out(&read.tool.name, by)?;
        let taken = self.tools()?.get(&read.tool.name).await.map_err(refused)?;
        if taken.is_some() {
            return Err(conflict(&read.tool.name, "a registered tool"));
        }
        self.is_free(&read.tool.name)?;
        let mut warnings = with_hints(&read.warnings);
        let mut asks = Permit::default();
        if validate {
            let examined = self.examine(&read.tool, Yes::Declared).await?;
            warnings.extend(examined.warnings.clone());
            asks = examined.asks.clone();
            read.tool = valid(examined)?;
            read.tool.status = RegisteredStatus::Active;
        }
        let granted = self.grant(&read.tool, asks).await?;
        let kept = self.tools()?.create(read.tool).await;
        let kept = self.or_take_back(kept.map_err(refused), granted).await?;
        self.catch_up().await;
        Ok(SavedTool {
            tool: kept,
            warnings,
        })
    }

    /// Changes a registration. What says how its program runs is looked at again before it counts.
    pub async fn change(
        &self,
        name: &str,
        mut body: Map<String, Value>,
        by: By,
    ) -> Result<SavedTool, CallError> {
        self.refuse_let_out(name, by)?;
        let validate = flag(&mut body, "validate")?;
        let wanted = status(&mut body)?;
        let before = self.get(name).await?;
        let mut read = self.read(&body, &RegistrationKind::Change(&before))?;
        let touched = EXAMINED.iter().any(|key| body.contains_key(*key));
        let incomplete = read.tool.description.is_empty() || read.tool.input_schema.is_null();
        let serves = wanted.unwrap_or(before.status) == RegisteredStatus::Active;
        if serves && validate == Some(false) && (wanted.is_some() || incomplete) {
            return Err(bad("a tool can't be `active` without being validated")
                .hint("leave `validate` out, or leave `status` out to store it `inactive`"));
        }
        let mut warnings = with_hints(&read.warnings);
        let mut asks = Permit::default();
        let matters = touched || wanted.is_some() || (incomplete && serves);
        let inactive = wanted == Some(RegisteredStatus::Inactive);
        let tool = &mut read.tool;
        if matters && !inactive && validate != Some(false) {
            let examined = self.examine(tool, Yes::Declared).await?;
            warnings.extend(examined.warnings.clone());
            asks = examined.asks.clone();
            *tool = valid(examined)?;
            tool.error_message = None;
            // What failed and was mended serves again; what a person took out stays out.
            tool.status = wanted.unwrap_or(match before.status {
                RegisteredStatus::Error => RegisteredStatus::Active,
                other => other,
            });
        } else if inactive || (touched && validate == Some(false)) {
            tool.status = RegisteredStatus::Inactive;
            tool.error_message = None;
        }
        let granted = self.grant(&read.tool, asks).await?;
        let kept = self.tools()?.update(read.tool).await;
        let kept = self.or_take_back(kept.map_err(refused), granted).await?;
        self.catch_up().await;
        Ok(SavedTool {
            tool: kept,
            warnings,
        })
    }

    /// The user's settings let a tool out of its walls by name, and meant the program that has it. Nobody else says which
    /// program that is.
    fn refuse_let_out(&self, name: &str, by: By) -> Result<(), CallError> {
        let let_out = self.place.walls.let_out(name) || lets_out(&self.env, name);
        if by == By::Owner || !let_out {
            return Ok(());
        }
        let shown: String = name.chars().take(100).collect();
        Err(CallError::denied(format!(
            "your settings take the walls away from `{shown}`, so only you say which program that is"
        ))
        .hint("register or change it with `toolcrib register` on this machine, without `--host` and `--port`; or take another name, or `sandbox = \"off\"` out of your config.toml"))
    }

    /// Grants what a registration asks for, in the content that was looked at: who registers it says yes to it. Gives
    /// the grant, if it is new.
    async fn grant(&self, tool: &CustomTool, asks: Permit) -> Result<Option<Grant>, CallError> {
        if asks.is_empty() {
            return Ok(None);
        }
        let new = NewGrant {
            tool: tool.name.clone(),
            origin: REGISTERED.to_owned(),
            binding: Binding::Content(tool.content_hash.clone()),
            permit: asks,
        };
        let book = self.store.ready().map_err(refused)?.grants();
        let (grant, is_new) = book.add(new).await.map_err(refused)?;
        self.regrant().await;
        Ok(is_new.then_some(grant))
    }

    /// What was granted to a registration that was not kept is taken back.
    async fn or_take_back(
        &self,
        kept: Result<CustomTool, CallError>,
        granted: Option<Grant>,
    ) -> Result<CustomTool, CallError> {
        if let (Err(_), Some(grant)) = (&kept, granted) {
            let book = self.store.ready().map_err(refused)?.grants();
            book.revoke(&grant.id).await.map_err(refused)?;
            self.regrant().await;
        }
        kept
    }

    pub async fn remove(&self, name: &str) -> Result<(), CallError> {
        self.get(name).await?;
        // Another tool of this name must not find what this one was granted.
        let book = self.store.ready().map_err(refused)?.grants();
        let gone = book.revoke_tool(name, REGISTERED).await;
        if gone.map_err(refused)? > 0 {
            self.regrant().await;
        }
        if !self.tools()?.delete(name).await.map_err(refused)? {
            return Err(missing(name));
        }
        self.catch_up().await;
        Ok(())
    }

    /// Starts the program to see whether it is what is stored. A tool that had failed and is well again serves again.
    pub async fn validate(&self, name: &str) -> Result<Examination, CallError> {
        let tool = self.get(name).await?;
        let examined = self.examine(&tool, Yes::Granted).await?;
        if examined.is_valid() && tool.status == RegisteredStatus::Error {
            let tools = self.tools()?;
            let set = tools.set_status(name, RegisteredStatus::Active, None);
            set.await.map_err(refused)?;
            self.catch_up().await;
        }
        Ok(examined)
    }

    /// How the tool's process is doing. Of a tool that does not serve, what is remembered is told.
    pub async fn health(&self, name: &str, asked: Asked) -> Result<CheckView, CallError> {
        let stored = self.get(name).await?;
        let Some(tool) = self.serving(name) else {
            return Ok(CheckView {
                name: stored.name,
                status: stored.status.as_str().to_owned(),
                health_status: stored.health.as_str().to_owned(),
                last_health_check: stored.last_health_check_ms,
                message: stored.error_message,
            });
        };
        let mut view = CheckView::of(&tool, asked).await;
        if view.last_health_check.is_none() && asked == Asked::Before {
            // What another process of ours found, or this one before it was restarted.
            view.last_health_check = stored.last_health_check_ms;
            if view.health_status == Health::Unknown.as_str() {
                view.health_status = stored.health.as_str().to_owned();
            }
            return Ok(view);
        }
        let health = RegisteredHealth::parse(&view.health_status).unwrap_or_default();
        if let Some(at) = view.last_health_check {
            let noted = self.tools()?.set_health(name, health, at).await;
            if let Err(error) = noted {
                tracing::debug!(%error, tool = name, "its health could not be noted");
            }
        }
        Ok(view)
    }

    /// The tool of this registration in the catalog; none when it is not offered, or another took its name.
    pub fn serving(&self, name: &str) -> Option<Arc<Tool>> {
        let view = self.crib.owners_view();
        let tool = view.get(name)?;
        (tool.source == SourceKind::Registered).then(|| tool.clone())
    }

    /// How a tool is doing right now, where it serves.
    pub fn live_health(&self, name: &str) -> Option<(Health, Option<u64>)> {
        let standing = self.serving(name)?.run.standing();
        (standing.health != Health::Unknown).then_some((standing.health, standing.checked_ms))
    }

    /// A tool that is registered, for a call of it.
    pub async fn callable(&self, name: &str) -> Result<(), CallError> {
        let stored = self.get(name).await?;
        if self.serving(name).is_some() {
            return Ok(());
        }
        let why = match stored.status {
            RegisteredStatus::Active => format!("`{name}` is not in the catalog"),
            status => format!("`{name}` is {}", status.as_str()),
        };
        let hint = match stored.status {
            RegisteredStatus::Active => "`toolcrib errors` says why".into(),
            _ => {
                let validate = CommandLine::new("toolcrib validate");
                let validate = validate.operand(name).switch("--activate");
                Hint::run(validate).after(" makes it active")
            }
        };
        Err(CallError::new(ErrorCode::Conflict, why).hint(hint))
    }

    fn read(
        &self,
        body: &Map<String, Value>,
        into: &RegistrationKind,
    ) -> Result<registered::Read, CallError> {
        registered::read(body, into, self.default_timeout_ms, &self.place).map_err(|problems| {
            let errors = with_hints(&problems);
            let messages: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
            let shown = messages[..messages.len().min(5)].join("; ");
            let hint = problems.first().map(|one| one.hint.clone());
            bad(shown)
                .hint(hint.unwrap_or_default())
                .data(json!({"errors": errors}))
        })
    }

    /// A name that a file or the binary holds is not free.
    fn is_free(&self, name: &str) -> Result<(), CallError> {
        let view = self.crib.owners_view();
        match view.get(name) {
            Some(tool) if tool.source == SourceKind::Builtin => {
                Err(conflict(name, "a built-in tool"))
            }
            // What nobody trusted yet takes no name from what may run.
            Some(tool)
                if tool.source != SourceKind::Registered && tool.status() != Status::Untrusted =>
            {
                let file = tool.file.as_ref().map(|file| file.display().to_string());
                Err(conflict(name, &format!("`{}`", file.unwrap_or_default())))
            }
            _ => Ok(()),
        }
    }

    /// The name that a program gives itself, for a registration without one.
    async fn ask_name(&self, body: &Map<String, Value>) -> Result<String, CallError> {
        let mut body = body.clone();
        body.insert("name".to_owned(), UNNAMED.into());
        let read = self.read(&body, &RegistrationKind::New)?;
        let _turn = self.turn().await?;
        let said = registered::described_name(&read.tool, &self.place).await;
        said.map_err(|errors| {
            bad(format!("the program could not be asked for its name: {}", errors.join("; ")))
                .hint("it must answer `initialize` (`toolcrib help worker-protocol`); or give a name, and \"validate\": false (`--name NAME --no-validate`)")
                .data(json!({"errors": errors}))
        })
    }

    async fn examine(&self, tool: &CustomTool, yes: Yes) -> Result<Examination, CallError> {
        let _turn = self.turn().await?;
        Ok(registered::examine(tool, yes, &self.place).await)
    }

    /// Waits until a program may be started to be looked at, where there may be registered tools at all.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, CallError> {
        let enabled = match self.sources.get() {
            Some(sources) => sources.configuration().registered,
            None => self.enabled,
        };
        if !enabled {
            return Err(CallError::denied("programs and registered tools are turned off")
                .hint("set `custom_tools_enabled` to true in your config.toml, and check whether TOOLCRIB_CUSTOM_TOOLS_ENABLED or the project's config says false"));
        }
        let turn = tokio::time::timeout(TURN, self.turns.acquire()).await;
        let Ok(Ok(turn)) = turn else {
            let error = CallError::new(
                ErrorCode::LimitReached,
                format!("{AT_ONCE} other programs are being validated"),
            );
            return Err(error.hint("try again in a moment"));
        };
        Ok(turn)
    }

    async fn regrant(&self) {
        if let Some(sources) = self.sources.get() {
            sources.regrant(self.store.grants()).await;
        }
    }

    /// Waits until the catalog has what was just changed.
    async fn catch_up(&self) {
        if let Some(sources) = self.sources.get() {
            sources.refresh().await;
        }
    }
}

fn valid(examined: Examination) -> Result<CustomTool, CallError> {
    if examined.is_valid() {
        return Ok(examined.tool);
    }
    let message = format!(
        "`{}` is not valid: {}",
        examined.tool.name,
        examined.errors.join("; ")
    );
    let data = json!({"errors": examined.errors, "warnings": examined.warnings});
    Err(bad(message)
        .hint("the program must answer `initialize`, `execute` and `health` (`toolcrib help worker-protocol`); \"validate\": false stores it `inactive`")
        .data(data))
}

fn with_hints(problems: &[Problem]) -> Vec<String> {
    let one = |problem: &Problem| match problem.hint.is_empty() {
        true => problem.message.clone(),
        false => format!("{}: {}", problem.message, problem.hint),
    };
    problems.iter().map(one).collect()
}

fn bad(message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::BadRequest, message)
}

fn conflict(name: &str, holder: &str) -> CallError {
    let message = format!("the name `{name}` is taken by {holder}");
    CallError::new(ErrorCode::Conflict, message)
        .hint("take another name, or change the one there is")
}

/// The same words, whether there is none or who asks does not see it.
pub fn missing(name: &str) -> CallError {
    let name: String = name.chars().take(64).collect();
    let message = format!("there is no registered tool named `{name}`");
    CallError::new(ErrorCode::NotFound, message)
        .hint("GET /api/custom-tools lists them, and so does `toolcrib list`")
}

fn flag(body: &mut Map<String, Value>, key: &str) -> Result<Option<bool>, CallError> {
    match body.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(value)) => Ok(Some(value)),
        Some(_) => Err(bad(format!("`{key}` must be true or false"))
            .hint(format!("write \"{key}\": true or false, without quotes"))),
    }
}

fn status(body: &mut Map<String, Value>) -> Result<Option<RegisteredStatus>, CallError> {
    let hint = "write \"status\": \"active\" or \"inactive\"";
    let value = match body.remove("status") {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    match value.as_str().and_then(RegisteredStatus::parse) {
        Some(RegisteredStatus::Error) => {
            Err(bad("`status` can't be set to `error`: the crib sets it").hint(hint))
        }
        Some(status) => Ok(Some(status)),
        None => Err(bad("`status` must be \"active\" or \"inactive\"").hint(hint)),
    }
}
