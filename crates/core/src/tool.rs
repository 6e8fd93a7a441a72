//! A tool: its spec, where it came from, whether it may run, and the thing that runs it.

use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::grant::REGISTERED;
use crate::options::{Annotations, Permissions, Retries, SandboxOptions};
use crate::standing::{Health, Standing, Status};
use crate::{
    Access, BoxFuture, Call, CallError, CallResult, Hidden, Json, Object, Permit, Reads, Schema,
    Scope, SourceKind,
};

/// The longest name a tool may have.
pub const MAX_NAME: usize = 64;

/// Names that routes and the search surface need for themselves.
pub const RESERVED_NAMES: [&str; 6] = [
    "errors",
    "reload",
    "definitions",
    "search_tools",
    "call_tool",
    "call_tool_read",
];

/// A tool's name: `^[a-zA-Z0-9_-]{1,64}$`, and not a reserved one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(Arc<str>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("the name is empty")]
    Empty,
    #[error("the name `{0}…` is longer than {MAX_NAME} characters")]
    TooLong(String),
    #[error("the name `{name}` holds `{character}`; names take letters, digits, `_` and `-`")]
    Character { name: String, character: char },
    #[error("the name `{0}` is reserved")]
    Reserved(String),
}

impl ToolName {
    pub fn new(name: &str) -> Result<ToolName, NameError> {
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        let allowed = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
        if let Some(character) = name.chars().find(|c| !allowed(c)) {
            let name = name.chars().take(MAX_NAME).collect();
            return Err(NameError::Character { name, character });
        }
        if name.len() > MAX_NAME {
            return Err(NameError::TooLong(name.chars().take(20).collect()));
        }
        if RESERVED_NAMES.contains(&name) {
            return Err(NameError::Reserved(name.to_owned()));
        }
        Ok(ToolName(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text, for those who keep it.
    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl std::fmt::Display for ToolName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// What an agent reads about a tool, and the options that govern its calls.
#[derive(Debug, Clone)]
pub struct Spec {
    pub name: ToolName,
    pub description: String,
    pub input_schema: Schema,
    pub output_schema: Option<Schema>,
    pub version: Option<String>,
    pub tags: Vec<String>,
    pub aliases: Vec<String>,
    pub metadata: Map<String, Value>,
    /// What a person reads instead of the name.
    pub title: Option<String>,
    /// MCP's icons of the tool: a list, listed as it is.
    pub icons: Option<Json>,
    /// MCP's `_meta` of the tool, listed as it is.
    pub meta: Option<Object>,
    /// The tool's own time limit; the crib's default holds where it is unset.
    pub timeout: Option<Duration>,
    pub retries: Retries,
    pub annotations: Annotations,
    pub permissions: Permissions,
    pub sandbox: SandboxOptions,
    pub last_word: LastWord,
}

/// Who decides whether arguments will do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LastWord {
    /// The schema that is published.
    #[default]
    Schema,
    /// The tool: it checks all of them, and may take more than a schema can say.
    Tool,
    /// The tool, for arguments of these names.
    ToolOn(Vec<String>),
}

impl LastWord {
    /// Does the tool itself decide about what lies at this JSON pointer of its arguments?
    pub fn is_the_tools(&self, path: &str) -> bool {
        let first = path
            .strip_prefix('/')
            .and_then(|path| path.split('/').next());
        match (self, first) {
            (LastWord::Schema, _) | (LastWord::ToolOn(_), None) => false,
            (LastWord::Tool, _) => true,
            (LastWord::ToolOn(names), Some(first)) => names.iter().any(|name| name == first),
        }
    }
}

impl Spec {
    /// A spec with every option unset.
    pub fn new(name: ToolName, description: impl Into<String>, input_schema: Schema) -> Spec {
        Spec {
            name,
            description: description.into(),
            input_schema,
            output_schema: None,
            version: None,
            tags: Vec::new(),
            aliases: Vec::new(),
            metadata: Map::new(),
            title: None,
            icons: None,
            meta: None,
            timeout: None,
            retries: Retries::default(),
            annotations: Annotations::default(),
            permissions: Permissions::default(),
            sandbox: SandboxOptions::default(),
            last_word: LastWord::default(),
        }
    }

    /// What an agent reads of it in a list.
    pub(crate) fn as_listed(&self) -> impl Hash {
        let Spec {
            name,
            description,
            input_schema,
            output_schema,
            annotations,
            title,
            icons,
            meta,
            version: _,
            tags: _,
            aliases: _,
            metadata: _,
            timeout: _,
            retries: _,
            permissions: _,
            sandbox: _,
            last_word: _,
        } = self;
        let output_schema = output_schema.as_ref().map(Schema::hash);
        let input_schema = input_schema.hash();
        let icons = icons.as_ref().map(Json::text);
        let meta = meta.as_ref().map(Object::text);
        let words = (name, title, description, annotations);
        (words, input_schema, output_schema, icons, meta)
    }

    /// How long one call may take: the tool's limit or the default, never more than `maxExecutionMs`.
    pub fn time_limit(&self, default: Duration) -> Duration {
        let limit = self.timeout.unwrap_or(default);
        match self.sandbox.max_execution_ms {
            Some(cap) => limit.min(Duration::from_millis(cap)),
            None => limit,
        }
    }
}

/// What keeps a tool from what it may not do, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walled {
    /// It runs no process of its own.
    NotAtAll,
    /// Nothing: the user has said so.
    Open,
    Confined {
        /// What enforces what: `read=… write=…`.
        enforced: String,
        /// What can't be promised here.
        lost: Vec<String>,
    },
    /// It can't be confined here, and so does not run.
    Refused(String),
}

/// The thing that does the work of a call. Cancelling is dropping the future.
pub trait Run: Send + Sync {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, CallResult>;

    /// How the process behind the tool is doing, as far as is known. Tools without one say nothing.
    fn standing(&self) -> Standing {
        Standing::default()
    }

    /// The program that it runs and that is not there, if so, in words. Only asked where the tool may run.
    fn missing(&self) -> Option<String> {
        None
    }

    /// What keeps the tool from what it may not do. Starts nothing.
    fn walled<'a>(&'a self, _: &'a Tool) -> BoxFuture<'a, Walled> {
        Box::pin(async { Walled::NotAtAll })
    }

    /// What must not be seen in what the tool gives: all that the crib handed to it. Nothing where it gets nothing.
    fn hidden(&self, _: &Tool) -> Option<Hidden> {
        None
    }

    /// Asks the process behind the tool how it is, and starts one if need be.
    fn check(&self) -> Option<BoxFuture<'_, Standing>> {
        None
    }

    /// Starts the process behind the tool, unless one runs; or says why that can't be. Nothing where there is none.
    fn warm_up(&self) -> Option<BoxFuture<'_, Result<(), CallError>>> {
        None
    }

    /// Does a process run behind the tool, ready for a call?
    fn is_warm(&self) -> bool {
        false
    }
}

/// Why a tool can't be called yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Its program is being asked what it is, which takes a moment: who calls it waits for that.
    Description,
    /// Something has to happen first that nobody waits for, such as an install.
    Preparation,
}

/// Something an agent can call.
#[derive(Clone)]
pub struct Tool {
    pub spec: Spec,
    pub source: SourceKind,
    /// Local or global, for tools out of a folder.
    pub scope: Option<Scope>,
    /// The file it was read from.
    pub file: Option<PathBuf>,
    /// `builtin`, `local.<file>`, `global.<file>`, `plugin.<collection>` …
    pub module: String,
    /// The interpreter that runs it, for tools that need one.
    pub interpreter: Option<PathBuf>,
    /// False where the user has said that it may do what the user may.
    pub confined: bool,
    /// The collection's name, for plugin tools.
    pub plugin_name: Option<String>,
    pub access: Access,
    /// What it does beyond looking at the project, in words for the person who is asked to trust it.
    pub declares: Vec<String>,
    /// What it asks for beyond the default; paths that it names relative to the project stay so where they lie in it.
    pub asks: Permit,
    /// What it reads of the project without any grant.
    pub reads: Reads,
    /// What it may do beyond the default, because it was granted; every path is absolute.
    pub permit: Permit,
    /// Served from the last good version, because the file is broken now.
    pub stale: bool,
    /// Only as much is known of it as can be told without running it.
    pub pending: Option<Pending>,
    /// Files whose tool of the same name this one hides; set by the registry.
    pub shadows: Vec<String>,
    /// Hash of the text the tool was made from: two tools with equal hashes behave alike.
    pub hash: Arc<str>,
    /// Hash of what a person says yes to with a grant.
    pub content: Arc<str>,
    pub run: Arc<dyn Run>,
}

impl Tool {
    /// What a person reads instead of the name; the name where there is nothing.
    pub fn title(&self) -> &str {
        let title = self.spec.title.as_deref();
        let title = title.or(self.spec.annotations.title.as_deref());
        title.unwrap_or_else(|| self.name())
    }

    /// A tool that asks for nothing and came out of no file; whoever knows more sets the fields. `hash` is of what it
    /// was made from, see [`Tool::hash`].
    pub fn new(
        spec: Spec,
        source: SourceKind,
        access: Access,
        hash: impl Into<Arc<str>>,
        run: Arc<dyn Run>,
    ) -> Tool {
        let hash = hash.into();
        Tool {
            spec,
            source,
            scope: None,
            file: None,
            module: source.as_str().to_owned(),
            interpreter: None,
            confined: true,
            plugin_name: None,
            access,
            declares: Vec::new(),
            asks: Permit::default(),
            reads: Reads::default(),
            permit: Permit::default(),
            stale: false,
            pending: None,
            shadows: Vec::new(),
            content: hash.clone(),
            hash,
            run,
        }
    }

    pub fn name(&self) -> &str {
        self.spec.name.as_str()
    }

    /// What tells it from others of its name: its file, or what it comes from where that is no file, such as the store.
    /// None where no text can say that, and of built-in tools that need no grant.
    ///
    /// The module of a built-in tool is [`crate::grant::BUILTIN`].
    pub fn origin(&self) -> Option<&str> {
        match &self.file {
            Some(file) => file.to_str(),
            None if self.source == SourceKind::Registered => Some(REGISTERED),
            None if self.source == SourceKind::Builtin && self.asks.is_empty() => None,
            None => Some(self.module.as_str()),
        }
    }

    /// Is it hidden from agents until a person wants it?
    pub fn is_off(&self) -> bool {
        matches!(self.access, Access::Off(_))
    }

    /// The name under which agents see it over MCP.
    pub fn mcp_name(&self) -> String {
        format!("mcp__toolcrib__{}", self.name())
    }

    pub fn status(&self) -> Status {
        match self.access {
            Access::Open if self.pending.is_some() => Status::Loading,
            Access::Open if self.run.missing().is_some() => Status::Unavailable,
            Access::Open if self.run.standing().failed => Status::Error,
            Access::Open => Status::Active,
            Access::Untrusted { .. } => Status::Untrusted,
            Access::NeedsGrant(_) => Status::Denied,
            Access::Off(_) => Status::Off,
        }
    }

    pub fn health(&self) -> Health {
        self.run.standing().health
    }

    /// Would a caller notice if `other` stood in this tool's place?
    pub fn same_as(&self, other: &Tool) -> bool {
        self.hash == other.hash
            && self.source == other.source
            && self.file == other.file
            && self.stale == other.stale
            && self.pending == other.pending
            && self.access == other.access
            && self.permit == other.permit
            && self.reads == other.reads
            && self.shadows == other.shadows
            && self.module == other.module
            && self.interpreter == other.interpreter
            && self.confined == other.confined
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name())
            .field("source", &self.source)
            .field("file", &self.file)
            .field("access", &self.access)
            .field("stale", &self.stale)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_pattern() {
        for good in ["a", "list-todos", "A_9", &"x".repeat(64)] {
            assert!(ToolName::new(good).is_ok(), "{good}");
        }
        let too_long = "x".repeat(65);
        for bad in [
            "",
            "a b",
            "a.b",
            "ä",
            "a/b",
            "a\0",
            &too_long,
            "errors",
            "call_tool",
        ] {
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_sandbox_caps_the_timeout() {
        let mut spec = Spec::new(ToolName::new("a").unwrap(), "", Schema::any_object());
        let default = Duration::from_secs(30);
        assert_eq!(spec.time_limit(default), default);
        spec.sandbox.max_execution_ms = Some(100);
        assert_eq!(spec.time_limit(default), Duration::from_millis(100));
        spec.timeout = Some(Duration::from_millis(50));
        assert_eq!(spec.time_limit(default), Duration::from_millis(50));
    }
}
