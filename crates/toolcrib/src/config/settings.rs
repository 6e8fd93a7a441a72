//! Settings as they hold, after all layers are laid on one another.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use toolcrib_core::{Audit, Limits, OutputRules, Scope};
use toolcrib_sandbox::Consent;
use toolcrib_sources::builtin::NAMES;
use toolcrib_sources::remotes::Remotes;
use toolcrib_sources::script::Scan;
use toolcrib_sources::worker::WorkerBudget;
use toolcrib_sources::{Folder, SecretSources, Walls};
use toolcrib_store::{OutputLimits, Retention, StoreUrl, StoreUrlError};

use super::agents::{AgentSettings, agents};
use super::approvals::{ApprovalSettings, approval_settings};
use super::audit::{AuditMode, AuditSection};
use super::file::{self, ConfigFile, GateMode, SandboxMode, ScanMode};
use super::folders::{expand, folders};
use super::limits::limits;
use super::output_limit::output_rules;
use super::private::{check_named, real, user_config};
use super::tighten::{at_most, tightening_only};
use super::{ConfigError, Project, project_config, remotes, secrets};
use crate::env::{self, Env};

/// What flags say; they come last.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub host: Option<String>,
    pub port: Option<u16>,
}

/// Settings as they hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub host: IpAddr,
    pub port: u16,
    /// Where records lie, without a password.
    pub store: String,
    /// How long what is known of trust, tokens and grants counts while the store does not answer.
    pub store_grace: Duration,
    pub default_timeout: Duration,
    /// Whether programs and registered tools are tools at all.
    pub custom_tools_enabled: bool,
    /// The built-in tools there are; all where nothing is said.
    pub builtins: Option<Vec<String>>,
    /// The most workers one tool may have.
    pub max_pool_size: usize,
    /// What the workers of all tools together may use.
    pub budget: WorkerBudget,
    /// How long a worker is kept without a call.
    pub worker_idle: Duration,
    pub health_check_interval: Duration,
    /// How long a list waits for tools that are being loaded.
    pub list_wait: Duration,
    /// The Python of tool files that bring no environment of their own.
    pub python: Option<String>,
    /// What runs TypeScript and JavaScript tool files.
    pub javascript: Option<String>,
    pub scan: Scan,
    /// Do examples decide whether a changed file goes live?
    pub gate: bool,
    /// Which tools are confined.
    pub walls: Walls,
    /// Where each secret lies.
    pub secrets: SecretSources,
    /// The servers elsewhere that built-in tools may use.
    pub remotes: Remotes,
    pub outputs: OutputLimits,
    /// How much text is handed over at once.
    pub output_limit: OutputRules,
    /// How much each token and agent may ask for.
    pub limits: Limits,
    pub audit: Audit,
    /// Where people decide on calls that wait.
    pub approvals: ApprovalSettings,
    /// How long calls stay on record.
    pub retention: Retention,
    /// What holds for each agent, the default one first.
    pub agents: Vec<AgentSettings>,
    /// The tools folders, highest priority first.
    pub folders: Vec<Folder>,
}

pub const DEFAULT_PORT: u16 = 7717;
const DEFAULT_STORE_GRACE_MS: u64 = 600_000;
const DEFAULT_TIMEOUT_MS: u64 = 30_000;
const DEFAULT_POOL_SIZE: u64 = 10;
const MAX_POOL_SIZE: u64 = 64;
const DEFAULT_WORKER_IDLE_MS: u64 = 300_000;
const MEGABYTE: u64 = 1_024 * 1_024;
const MAX_WORKERS: u64 = 1_024;
const DEFAULT_HEALTH_MS: u64 = 60_000;
const MIN_HEALTH_MS: u64 = 100;
const DEFAULT_LIST_WAIT_MS: u64 = 5_000;
const MAX_LIST_WAIT_MS: u64 = 60_000;
const DEFAULT_AUDIT_DAYS: u32 = 90;
const DEFAULT_AUDIT_ROWS: u64 = 1_000_000;
/// No call waits longer than a day.
const MAX_TIMEOUT_MS: u64 = 24 * 3_600 * 1_000;

impl Settings {
    /// The keys that differ and take effect at the next start only; `docs/guides/settings.md` names them.
    pub fn changed_at_restart(&self, now: &Settings) -> Vec<&'static str> {
        let Settings {
            host,
            port,
            store,
            store_grace,
            max_pool_size,
            budget,
            worker_idle,
            health_check_interval,
            list_wait,
            python,
            javascript,
            scan,
            walls,
            outputs,
            retention,
            approvals,
            // These are followed while the crib runs.
            default_timeout: _,
            custom_tools_enabled: _,
            builtins: _,
            secrets: _,
            remotes: _,
            gate: _,
            audit: _,
            output_limit: _,
            limits: _,
            agents: _,
            folders: _,
        } = self;
        let differs = [
            ("host", *host != now.host),
            ("port", *port != now.port),
            ("store", *store != now.store),
            ("store_grace", *store_grace != now.store_grace),
            ("max_pool_size", *max_pool_size != now.max_pool_size),
            ("max_workers, max_worker_memory", *budget != now.budget),
            ("worker_idle", *worker_idle != now.worker_idle),
            (
                "health_check_interval",
                *health_check_interval != now.health_check_interval,
            ),
            ("list_wait", *list_wait != now.list_wait),
            ("python", *python != now.python),
            ("javascript", *javascript != now.javascript),
            ("scan", *scan != now.scan),
            ("sandbox_enabled, tools", *walls != now.walls),
            ("outputs", *outputs != now.outputs),
            ("audit.days, audit.max_rows", *retention != now.retention),
            (
                "approvals.url, approvals.webhook",
                *approvals != now.approvals,
            ),
        ];
        let differs = differs.into_iter().filter(|(_, differs)| *differs);
        differs.map(|(key, _)| key).collect()
    }

    /// Lays the layers on one another. The project's own file is read only when the project is trusted.
    pub fn load(
        env: &Env,
        flags: &Flags,
        project: Option<&Project>,
        trusted: bool,
    ) -> Result<Settings, ConfigError> {
        let user = user_config(env)?;
        let own_file = project.filter(|_| trusted).map(project_config);
        let own = match &own_file {
            Some(path) => tightening_only(path, file::read(path)?)?,
            None => ConfigFile::default(),
        };
        let user_audit = user.audit.clone().unwrap_or_default();

        let timeout = number(env, env::DEFAULT_TIMEOUT)?
            .or(user.default_timeout)
            .unwrap_or(DEFAULT_TIMEOUT_MS);
        let timeout = at_most(timeout, own.default_timeout).clamp(1, MAX_TIMEOUT_MS);
        let custom_tools = flag(env, env::CUSTOM_TOOLS_ENABLED)?
            .or(user.custom_tools_enabled)
            .unwrap_or(true)
            && own.custom_tools_enabled.unwrap_or(true);
        let pool_size = number(env, env::MAX_POOL_SIZE)?
            .or(user.max_pool_size)
            .unwrap_or(DEFAULT_POOL_SIZE);
        let pool_size = at_most(pool_size, own.max_pool_size).clamp(1, MAX_POOL_SIZE);
        let health = number(env, env::HEALTH_CHECK_INTERVAL)?
            .or(user.health_check_interval)
            .unwrap_or(DEFAULT_HEALTH_MS);
        let idle = number(env, env::WORKER_IDLE)?
            .or(user.worker_idle)
            .unwrap_or(DEFAULT_WORKER_IDLE_MS);
        let list_wait = number(env, env::LIST_WAIT)?
            .or(user.list_wait)
            .unwrap_or(DEFAULT_LIST_WAIT_MS);
        let list_wait = at_most(list_wait, own.list_wait).min(MAX_LIST_WAIT_MS);
        let folders = folders(env, project, trusted, custom_tools, &user, &own);
        for folder in folders.iter().filter(|one| one.scope == Scope::Global) {
            check_named(&folder.path)?;
        }
        let data = env.data_folder().unwrap_or_default();
        Ok(Settings {
            host: host(env, flags, &user)?,
            port: port(env, flags, &user)?,
            approvals: approval_settings(&user)?,
            store: store_named(env, &data, user.store.clone())?.to_string(),
            store_grace: grace_named(env, user.store_grace)?,
            default_timeout: Duration::from_millis(timeout),
            custom_tools_enabled: custom_tools,
            builtins: builtins(&user, &own)?,
            max_pool_size: pool_size as usize,
            budget: budget(env, &user, &own)?,
            worker_idle: Duration::from_millis(idle.max(1)),
            health_check_interval: Duration::from_millis(health.max(MIN_HEALTH_MS)),
            list_wait: Duration::from_millis(list_wait),
            python: env
                .text(env::PYTHON)
                .map(str::to_owned)
                .or(user.python.clone()),
            javascript: env
                .text(env::JAVASCRIPT)
                .map(str::to_owned)
                .or(user.javascript.clone()),
            scan: scan(env, &user, &own)?,
            gate: [user.gate, own.gate].contains(&Some(GateMode::Examples)),
            walls: walls(env, &user)?,
            secrets: secrets::sources(&user.secrets.clone().unwrap_or_default(), |path| {
                expand(env, path)
            })?,
            remotes: remotes::remotes(&user)?,
            outputs: output_limits(&user, &own),
            output_limit: output_rules(&user, &own),
            limits: limits(&user),
            audit: match audit_variable(env)?.or(user_audit.mode) {
                Some(AuditMode::Required) => Audit::Required,
                Some(AuditMode::BestEffort) | None => Audit::BestEffort,
            },
            retention: retention(&user_audit),
            agents: agents(&user, &own, own_file.as_deref())?,
            folders,
        })
    }
}

/// Where the store is: the variable, the user's own file, else a file in the data folder. Asked before anything else,
/// because trust lies there, and a project's file is read only after trust.
pub fn store_url(env: &Env, data: &Path) -> Result<StoreUrl, ConfigError> {
    store_named(env, data, user_config(env)?.store)
}

/// How long what is known counts while the store does not answer; asked with the store itself.
pub fn store_grace(env: &Env) -> Result<Duration, ConfigError> {
    grace_named(env, user_config(env)?.store_grace)
}

/// How long calls stay on record, and how many.
fn retention(audit: &AuditSection) -> Retention {
    Retention {
        days: Some(audit.days.unwrap_or(DEFAULT_AUDIT_DAYS).max(1)),
        rows: Some(audit.max_rows.unwrap_or(DEFAULT_AUDIT_ROWS).max(1)),
    }
}

fn grace_named(env: &Env, written: Option<u64>) -> Result<Duration, ConfigError> {
    let grace = number(env, env::STORE_GRACE)?.or(written);
    Ok(Duration::from_millis(
        grace.unwrap_or(DEFAULT_STORE_GRACE_MS),
    ))
}

fn store_named(env: &Env, data: &Path, written: Option<String>) -> Result<StoreUrl, ConfigError> {
    let (place, url) = match (env.text(env::STORE), written) {
        (Some(url), _) => (format!("variable {}", env::STORE), url.to_owned()),
        (None, Some(url)) => ("setting `store`".to_owned(), url),
        (None, None) => return Ok(StoreUrl::in_folder(data)),
    };
    let hint =
        "write \"sqlite:/path/to/toolcrib.db\" or \"postgres://user:password@host/database\"";
    let url: StoreUrl = url
        .parse()
        .map_err(|error: StoreUrlError| ConfigError::new(&*place, error.to_string(), hint))?;
    // It would be another file in every folder, and in a clone one that came with it: trust lies there.
    if url.path().is_some_and(Path::is_relative) {
        return Err(ConfigError::new(place, "is a relative path", hint));
    }
    let project = super::project::find(None, env).ok().flatten();
    let root = project.map(|project| project.root);
    let inside = |path: &Path| root.is_some_and(|root| real(path).starts_with(root));
    match url.path().is_some_and(inside) {
        true => Err(ConfigError::new(
            place,
            "is in the project, where a clone could bring it along",
            "name a file outside of the project",
        )),
        false => Ok(url),
    }
}

/// Does the user's own file, as it is now, let a tool of this name out of its walls? Where it can't be read it may.
pub fn lets_out(env: &Env, name: &str) -> bool {
    let is_off = |user: ConfigFile| {
        let tools = user.tools.unwrap_or_default();
        let tool = tools.get(name);
        tool.is_some_and(|tool| tool.sandbox == Some(SandboxMode::Off))
    };
    user_config(env).map_or(true, is_off)
}

fn number(env: &Env, name: &str) -> Result<Option<u64>, ConfigError> {
    let Some(value) = env.get(name) else {
        return Ok(None);
    };
    let parsed = value.to_str().and_then(|text| text.parse().ok());
    parsed
        .map(Some)
        .ok_or_else(|| bad_variable(name, "a whole number"))
}

/// What the workers of all tools together may use.
fn budget(env: &Env, user: &ConfigFile, own: &ConfigFile) -> Result<WorkerBudget, ConfigError> {
    let workers = number(env, env::MAX_WORKERS)?.or(user.max_workers);
    let workers = workers.unwrap_or(WorkerBudget::default().workers as u64);
    let workers = at_most(workers, own.max_workers).clamp(1, MAX_WORKERS);
    let memory = number(env, env::MAX_WORKER_MEMORY)?.or(user.max_worker_memory);
    let memory = match own.max_worker_memory {
        Some(own) => Some(at_most(own, memory)),
        None => memory,
    };
    Ok(WorkerBudget {
        workers: workers as usize,
        memory: memory.map(|megabytes| megabytes.max(1).saturating_mul(MEGABYTE)),
    })
}

/// Which tools are confined, by the user alone.
fn walls(env: &Env, user: &ConfigFile) -> Result<Walls, ConfigError> {
    let enabled = flag(env, env::SANDBOX_ENABLED)?.or(user.sandbox_enabled);
    let tools = user.tools.iter().flatten();
    let off = tools.filter(|(_, section)| section.sandbox == Some(SandboxMode::Off));
    #[expect(
        clippy::disallowed_methods,
        reason = "what was read is the user's own file and variables"
    )]
    let consent = Consent::from_user_settings();
    Ok(Walls {
        none: (enabled == Some(false)).then_some(consent),
        off: off.map(|(name, _)| (name.clone(), consent)).collect(),
    })
}

/// The stricter of what the user and the project say.
fn scan(env: &Env, user: &ConfigFile, own: &ConfigFile) -> Result<Scan, ConfigError> {
    let said = match env.get(env::SCAN).map(|value| value.to_str()) {
        None => user.scan,
        Some(Some("warn")) => Some(ScanMode::Warn),
        Some(Some("strict")) => Some(ScanMode::Strict),
        Some(_) => return Err(bad_variable(env::SCAN, "`warn` or `strict`")),
    };
    match [said, own.scan].contains(&Some(ScanMode::Strict)) {
        true => Ok(Scan::Strict),
        false => Ok(Scan::Warn),
    }
}

/// The built-in tools that the user wants and the project does not leave out.
fn builtins(user: &ConfigFile, own: &ConfigFile) -> Result<Option<Vec<String>>, ConfigError> {
    let mut named = user.builtins.iter().chain(&own.builtins).flatten();
    if let Some(unknown) = named.find(|name| !NAMES.contains(&name.as_str())) {
        let hint = match file::nearest(unknown, &NAMES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("they are {}", NAMES.join(", ")),
        };
        let reason = format!("there is no built-in tool `{unknown}`");
        return Err(ConfigError::new("setting `builtins`", reason, hint));
    }
    Ok(match (&user.builtins, &own.builtins) {
        (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (Some(user), Some(own)) => {
            let both = user.iter().filter(|name| own.contains(name));
            Some(both.cloned().collect())
        }
    })
}

fn audit_variable(env: &Env) -> Result<Option<AuditMode>, ConfigError> {
    match env.get(env::AUDIT).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Some("required")) => Ok(Some(AuditMode::Required)),
        Some(Some("best-effort")) => Ok(Some(AuditMode::BestEffort)),
        Some(_) => Err(bad_variable(env::AUDIT, "`best-effort` or `required`")),
    }
}

fn flag(env: &Env, name: &str) -> Result<Option<bool>, ConfigError> {
    let Some(value) = env.get(name) else {
        return Ok(None);
    };
    match value.to_str() {
        Some("true" | "1") => Ok(Some(true)),
        Some("false" | "0") => Ok(Some(false)),
        _ => Err(bad_variable(name, "true or false")),
    }
}

fn bad_variable(name: &str, wanted: &str) -> ConfigError {
    ConfigError::new(
        format!("variable {name}"),
        format!("is not {wanted}"),
        "correct it or unset it",
    )
}

fn output_limits(user: &ConfigFile, own: &ConfigFile) -> OutputLimits {
    let user = user.outputs.clone().unwrap_or_default();
    let own = own.outputs.clone().unwrap_or_default();
    let default = OutputLimits::default();
    OutputLimits {
        max_bytes: at_most(user.max_bytes.unwrap_or(default.max_bytes), own.max_bytes),
        quota_bytes: user.quota_bytes.unwrap_or(default.quota_bytes),
        ..default
    }
}

fn port(env: &Env, flags: &Flags, user: &ConfigFile) -> Result<u16, ConfigError> {
    match (flags.port, number(env, env::PORT)?) {
        (Some(port), _) => Ok(port),
        (None, Some(port)) => {
            u16::try_from(port).map_err(|_| bad_variable(env::PORT, "a port, 0 to 65535"))
        }
        (None, None) => Ok(user.port.unwrap_or(DEFAULT_PORT)),
    }
}

fn host(env: &Env, flags: &Flags, user: &ConfigFile) -> Result<IpAddr, ConfigError> {
    let said = flags.host.as_deref().or(env.text(env::HOST));
    address(said.or(user.host.as_deref()).unwrap_or("127.0.0.1"))
}

/// Any address of this machine; `serve` asks for tokens, and does not start without them anywhere but on loopback.
fn address(host: &str) -> Result<IpAddr, ConfigError> {
    let parsed = match host {
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        other => other.trim_matches(['[', ']']).parse().ok(),
    };
    let hint = "use 127.0.0.1, ::1 or localhost, or another address of this machine";
    parsed.ok_or_else(|| ConfigError::new(format!("host `{host}`"), "is not an IP address", hint))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
