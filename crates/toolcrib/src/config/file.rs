//! `config.toml` as it is written: every key optional, unknown ones refused with "did you mean".

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::ConfigError;
use super::agents::{self, AgentSection};
use super::approvals::ApprovalsSection;
use super::audit::{AuditForm, AuditSection, either};
use super::limits::LimitsSection;
use super::remotes::{EmailSection, WebSearchSection, WebhookSection};
use super::secrets::SecretSection;

/// No settings are longer.
const MAX_SIZE: u64 = 1_024 * 1_024;

/// Settings of Toolcrib. The user's file is `~/.config/toolcrib/config.toml`; a trusted project's
/// `.toolcrib/config.toml` may only tighten them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Toolcrib settings")]
pub struct ConfigFile {
    /// One tools folder that replaces the default ones. User's file only. Variable: TOOLCRIB_TOOLS_DIR.
    pub tools_dir: Option<String>,
    /// Further tools folders, after the default ones. A relative path starts at the project, such as
    /// ".opencode/tools"; a project's own file takes only those. Variable: TOOLCRIB_TOOL_DIRS.
    pub tool_dirs: Option<Vec<String>>,
    /// Milliseconds a call may take where the tool sets no limit of its own (30000). A project may only lower it.
    /// Variable: TOOLCRIB_DEFAULT_TIMEOUT.
    #[schemars(range(min = 1))]
    pub default_timeout: Option<u64>,
    /// Where registrations, trust, tokens and calls are kept: "sqlite:PATH" or "postgres://…" (a file in the data
    /// folder). User's file only. Variable: TOOLCRIB_STORE.
    pub store: Option<String>,
    /// Milliseconds for which known trust, tokens and grants stay valid while the store does not answer (600000). A known
    /// revocation takes effect at once. User's file only. Variable: TOOLCRIB_STORE_GRACE.
    pub store_grace: Option<u64>,
    /// How calls are recorded: "best-effort", "required", or a table. User's file only.
    #[serde(default, deserialize_with = "either")]
    #[schemars(with = "AuditForm")]
    pub audit: Option<AuditSection>,
    /// Whether programs and registered tools are tools at all (true). A project may only say false.
    /// Variable: TOOLCRIB_CUSTOM_TOOLS_ENABLED.
    pub custom_tools_enabled: Option<bool>,
    /// The built-in tools there are, by name (all of them); [] switches them off. A project may only leave some out.
    pub builtins: Option<Vec<String>>,
    /// The most workers one tool may have (10). A project may only lower it. Variable: TOOLCRIB_MAX_POOL_SIZE.
    #[schemars(range(min = 1, max = 64))]
    pub max_pool_size: Option<u64>,
    /// The most workers that all tools together may have (64). A project may only lower it. Variable: TOOLCRIB_MAX_WORKERS.
    #[schemars(range(min = 1, max = 1024))]
    pub max_workers: Option<u64>,
    /// Megabytes of memory that idle workers of all tools may keep together with the busy ones (half of the machine's
    /// memory): beyond it, those that were not used for longest are stopped. A project may only lower it.
    /// Variable: TOOLCRIB_MAX_WORKER_MEMORY.
    #[schemars(range(min = 1))]
    pub max_worker_memory: Option<u64>,
    /// Milliseconds without a call after which a worker is stopped (300000); a tenth of it while memory is scarce. User's
    /// file only. Variable: TOOLCRIB_WORKER_IDLE.
    #[schemars(range(min = 1))]
    pub worker_idle: Option<u64>,
    /// The Python that runs tool files which bring no environment of their own: a name on the PATH or a path. User's
    /// file only. Variable: TOOLCRIB_PYTHON.
    pub python: Option<String>,
    /// What runs TypeScript and JavaScript tool files: `node`, `bun`, `deno` or a path (the first of them on the PATH).
    /// User's file only. Variable: TOOLCRIB_JAVASCRIPT.
    pub javascript: Option<String>,
    /// What a finding of the scan of a tool file means: "warn" (it is reported) or "strict" (the file is not loaded). A
    /// project may only say "strict". Variable: TOOLCRIB_SCAN.
    pub scan: Option<ScanMode>,
    /// What decides whether a changed tool file goes live: "examples" tries those of its tools that only read, and holds it
    /// back if one no longer gives what it gave; "off" (the default). A project may only say "examples".
    pub gate: Option<GateMode>,
    /// Whether tools are confined (true). User's file only; false is loud. Variable: TOOLCRIB_SANDBOX_ENABLED.
    pub sandbox_enabled: Option<bool>,
    /// What holds for one tool, by its name. User's file only.
    pub tools: Option<BTreeMap<String, ToolSection>>,
    /// Where each secret is stored that tools name as `secret://NAME`. User's file only.
    pub secrets: Option<BTreeMap<String, SecretSection>>,
    /// Where `web-search` looks. User's file only.
    pub web_search: Option<WebSearchSection>,
    /// Whom `send-webhook` may tell, by name. User's file only.
    pub webhooks: Option<BTreeMap<String, WebhookSection>>,
    /// Who sends mail for `send-email`. User's file only.
    pub email: Option<EmailSection>,
    /// Milliseconds between two health checks of a running worker (60000). User's file only.
    /// Variable: TOOLCRIB_HEALTH_CHECK_INTERVAL.
    #[schemars(range(min = 100))]
    pub health_check_interval: Option<u64>,
    /// Milliseconds that a list of tools waits for those that are being loaded (5000); the rest comes later. It never waits
    /// for packages. A project may only lower it. Variable: TOOLCRIB_LIST_WAIT.
    #[schemars(range(max = 60000))]
    pub list_wait: Option<u64>,
    /// The address `serve` listens on (127.0.0.1). User's file only. Variable: TOOLCRIB_HOST.
    pub host: Option<String>,
    /// The port `serve` listens on (7717). User's file only. Variable: TOOLCRIB_PORT.
    pub port: Option<u16>,
    /// Which tools each agent sees, and what its calls pass. A project may only narrow what is seen, and add to what calls
    /// pass.
    pub agents: Option<BTreeMap<String, AgentSection>>,
    /// The modules that tools of all agents come from, by their beginnings, such as "builtin" or "local.build" (all). A
    /// project may only narrow it.
    #[schemars(with = "Option<Vec<String>>")]
    pub trusted_tool_namespaces: Option<Vec<Spanned<String>>>,
    /// How people decide on calls that wait. User's file only.
    pub approvals: Option<ApprovalsSection>,
    /// How much of large outputs is kept.
    pub outputs: Option<OutputsSection>,
    /// How much text of one call is handed over at once; the rest is read with `read-output`.
    pub output_limit: Option<OutputLimitSection>,
    /// How much each token and each agent may ask for. User's file only.
    pub limits: Option<LimitsSection>,
}

/// How much text of one call is handed over at once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputLimitSection {
    /// The most bytes (50000; less for clients that show their models less). A project may only lower it.
    #[schemars(range(min = 4000, max = 1000000))]
    pub bytes: Option<u64>,
    /// The most lines (2000). A project may only lower it.
    #[schemars(range(min = 20, max = 100000))]
    pub lines: Option<u64>,
    /// Show a preview of what is too long, instead of its beginning (false; true for an agent with a lower limit than usual).
    pub preview: Option<bool>,
    /// What holds for one client: "claude", "copilot", "opencode", "codex", "gemini", or the name that it gives itself.
    /// User's file only.
    pub clients: Option<BTreeMap<String, OutputRuleSection>>,
    /// What holds for one agent, by the name that its token has. User's file only.
    pub agents: Option<BTreeMap<String, OutputRuleSection>>,
}

/// How much text one client or agent is handed at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputRuleSection {
    /// The most bytes.
    #[schemars(range(min = 4000, max = 1000000))]
    pub bytes: Option<u64>,
    /// The most lines.
    #[schemars(range(min = 20, max = 100000))]
    pub lines: Option<u64>,
    /// Show a preview of what is too long, instead of its beginning (false; true for an agent with a lower limit than usual).
    pub preview: Option<bool>,
}

/// What holds for one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSection {
    /// "off": this tool is not confined, and may do what you may. `list` and `doctor` show that.
    pub sandbox: Option<SandboxMode>,
}

/// Whether a tool is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SandboxMode {
    On,
    Off,
}

/// What a finding of the scan means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ScanMode {
    Warn,
    Strict,
}

/// What decides whether a changed tool file goes live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GateMode {
    Off,
    Examples,
}

/// How much of large outputs is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputsSection {
    /// The most bytes that one call keeps (268435456). A project may only lower it.
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
    /// The most bytes that all kept outputs take together (1073741824). User's file only.
    #[schemars(range(min = 1))]
    pub quota_bytes: Option<u64>,
}

/// Reads a config file; a missing one is an empty one.
pub fn read(path: &Path) -> Result<ConfigFile, ConfigError> {
    let text = match read_text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(ConfigFile::default());
        }
        Err(error) => {
            let hint = "make it readable for this user and valid UTF-8, or remove it";
            return Err(ConfigError::in_file(
                path,
                format!("can't be read: {error}"),
                hint,
            ));
        }
    };
    parse(&text).map_err(|ParseError { line, reason, hint }| {
        let place = match line {
            Some(line) => format!("`{}` line {line}", path.display()),
            None => format!("`{}`", path.display()),
        };
        ConfigError::new(place, reason, hint)
    })
}

/// The text of a regular file of bounded size. A pipe in its place must not make anyone wait: `trust --revoke` reads
/// this file too.
fn read_text(path: &Path) -> io::Result<String> {
    let file = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.take(MAX_SIZE + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SIZE {
        return Err(io::Error::other("it is larger than 1 MB"));
    }
    Ok(text)
}

#[derive(Debug)]
struct ParseError {
    line: Option<usize>,
    reason: String,
    hint: String,
}

fn parse(text: &str) -> Result<ConfigFile, ParseError> {
    let line_of = |span: Range<usize>| {
        let before = &text.as_bytes()[..span.start.min(text.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    };
    let file = toml::from_str(text).map_err(|error: toml::de::Error| {
        let line = error.span().map(line_of);
        let message = error.message();
        let Some((unknown, known)) = unknown_field(message) else {
            let hint =
                "write numbers plainly (30000), text in quotes, lists in brackets".to_owned();
            return ParseError {
                line,
                reason: in_plain_words(message),
                hint,
            };
        };
        let hint = match nearest(unknown, &known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys here are {}", known.join(", ")),
        };
        ParseError {
            line,
            reason: format!("unknown key `{unknown}`"),
            hint,
        }
    })?;
    agents::check(&file).map_err(|error| ParseError {
        line: error.at.map(line_of),
        reason: error.reason,
        hint: error.hint,
    })?;
    Ok(file)
}

/// The parser's names of types, as a person says them.
fn in_plain_words(message: &str) -> String {
    let words = [
        ("u64", "a whole number"),
        ("u16", "a whole number up to 65535"),
        ("a sequence", "a list"),
        ("a string", "text"),
    ];
    words.iter().fold(message.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    })
}

/// Takes serde's words apart: "unknown field `x`, expected one of `a`, `b`".
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = message
        .strip_prefix("unknown field ")?
        .split('`')
        .skip(1)
        .step_by(2);
    let unknown = quoted.next()?;
    Some((unknown, quoted.collect()))
}

/// The known word most like `word`, if any is like it at all.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let score = |candidate: &&str| strsim::jaro_winkler(word, candidate);
    known
        .iter()
        .copied()
        .filter(|c| score(c) > 0.75)
        .max_by(|a, b| score(a).total_cmp(&score(b)))
}

/// The JSON Schema of the file, for editors.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(ConfigFile);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        assert_eq!(read(&path).unwrap(), ConfigFile::default());
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(read(&path).unwrap_err().reason.contains("not a regular"));
    }

    #[test]
    fn a_mistyped_key_gets_the_right_one() {
        let refusal = parse("port = 1\ntool_dir = []\n").unwrap_err();
        assert_eq!(refusal.line, Some(2));
        assert_eq!(refusal.reason, "unknown key `tool_dir`");
        assert_eq!(refusal.hint, "did you mean `tool_dirs`?");
        let refusal = parse("[outputs]\nmax_byte = 3\n").unwrap_err();
        assert_eq!(refusal.hint, "did you mean `max_bytes`?");
        assert!(
            parse("zzz = 1")
                .unwrap_err()
                .hint
                .contains("the keys here are")
        );
    }

    #[test]
    fn a_wrong_type_names_its_line() {
        let refusal = parse("\nport = \"x\"\n").unwrap_err();
        assert_eq!(refusal.line, Some(2));
        assert!(
            refusal.reason.contains("a whole number"),
            "{}",
            refusal.reason
        );
        assert!(parse("port = 70000").is_err());
        assert!(parse("nonsense").is_err());
    }

    #[test]
    fn an_empty_file_is_fine() {
        assert_eq!(parse("# only a comment\n").unwrap(), ConfigFile::default());
    }

    #[test]
    fn every_key_is_in_the_schema() {
        let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
        for key in [
            "tools_dir",
            "tool_dirs",
            "default_timeout",
            "custom_tools_enabled",
            "host",
            "port",
            "outputs",
        ] {
            assert!(schema["properties"].get(key).is_some(), "{key}");
        }
        assert_eq!(schema["additionalProperties"], false);
    }
}
