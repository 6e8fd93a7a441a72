//! `[agents.NAME]`: which tools an agent sees, and what its calls pass. A project's file narrows and adds, and no more.

use std::ops::Range;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;
use toolcrib_core::call::DEFAULT_AGENT;
use toolcrib_core::profile::MiddlewareError;
use toolcrib_core::selection::{PatternError, SaidBy, SelectionLayer};
use toolcrib_core::{
    ListedLink, MiddlewareTable, Mode, Namespace, Selection, Surface, SurfaceRule, ToolPattern,
    middleware,
};

use super::ConfigError;
use super::file::{ConfigFile, nearest};

/// The longest name of an agent, as of a tool.
const MAX_NAME: usize = 64;

/// Which tools one agent sees, and what its calls pass. `[agents.default]` is for whoever chooses no agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSection {
    /// The tools it sees (all): names with `*` and `?`, "source:builtin", "tag:web", "local.build.*" (module and name); a
    /// `-` in front leaves out. A project may only narrow it.
    #[schemars(with = "Option<Vec<String>>")]
    pub tools: Option<Vec<Spanned<String>>>,
    /// What its calls pass besides what all calls pass: tables such as { name = "pii", pii_types = ["email"] }. A project
    /// may only add some.
    #[schemars(with = "Option<Vec<MiddlewareForm>>")]
    pub middleware: Option<Vec<Spanned<MiddlewareTable>>>,
    /// The modules that its tools come from, by their beginnings, such as "builtin" or "local.build" (all). A project may
    /// only narrow it.
    #[schemars(with = "Option<Vec<String>>")]
    pub trusted_tool_namespaces: Option<Vec<Spanned<String>>>,
    /// Who may be this agent: whoever chooses it ("primary"), or sessions alone ("subagent"). A project may only say
    /// "subagent".
    pub mode: Option<ModeWord>,
    /// What it is handed of its tools over MCP: all of them ("list"), a few and a search for the others ("search"), or whichever
    /// costs fewer tokens ("auto", the default).
    pub surface: Option<SurfaceWord>,
    /// The tools that a search lists all the same, as in `tools`.
    #[schemars(with = "Option<Vec<String>>")]
    pub pinned: Option<Vec<Spanned<String>>>,
}

/// One table of `middleware`, for the schema.
#[derive(JsonSchema)]
#[schemars(inline)]
struct MiddlewareForm {
    #[expect(dead_code, reason = "only its schema is used")]
    name: String,
    #[serde(flatten)]
    #[expect(dead_code, reason = "only its schema is used")]
    parameters: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ModeWord {
    Primary,
    Subagent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SurfaceWord {
    Auto,
    List,
    Search,
}

impl From<SurfaceWord> for Surface {
    fn from(word: SurfaceWord) -> Surface {
        match word {
            SurfaceWord::Auto => Surface::Auto,
            SurfaceWord::List => Surface::List,
            SurfaceWord::Search => Surface::Search,
        }
    }
}

/// What holds for one agent, after all files were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSettings {
    pub name: String,
    pub mode: Mode,
    pub sees: Selection,
    pub middleware: Vec<ListedLink>,
    pub surface: SurfaceRule,
}

/// What is wrong with a section, and where in the file's text it stands, if anywhere.
pub(super) struct SectionError {
    pub at: Option<Range<usize>>,
    pub reason: String,
    pub hint: String,
}

/// Looks at all that a file says about agents, before anybody needs it.
pub(super) fn check(file: &ConfigFile) -> Result<(), SectionError> {
    layer(file, None, SaidBy::User)?;
    for (name, section) in file.agents.iter().flatten() {
        is_name(name)?;
        layer(file, Some(section), SaidBy::User)?;
        links(section)?;
        pinned(section)?;
        if name == DEFAULT_AGENT && section.mode == Some(ModeWord::Subagent) {
            return Err(SectionError {
                at: None,
                reason: format!("`agents.{DEFAULT_AGENT}` is no subagent"),
                hint: "it is there for whoever chooses no agent".to_owned(),
            });
        }
    }
    Ok(())
}

/// All agents, the default one first. `own` is the file of a trusted project, which lies at `path`.
pub(super) fn agents(
    user: &ConfigFile,
    own: &ConfigFile,
    path: Option<&Path>,
) -> Result<Vec<AgentSettings>, ConfigError> {
    let sections = user.agents.clone().unwrap_or_default();
    let narrowed = own.agents.clone().unwrap_or_default();
    let others = sections.keys().filter(|name| *name != DEFAULT_AGENT);
    let names: Vec<&str> = std::iter::once(DEFAULT_AGENT)
        .chain(others.map(String::as_str))
        .collect();
    if let (Some(unknown), Some(path)) = (
        narrowed.keys().find(|name| !names.contains(&name.as_str())),
        path,
    ) {
        return Err(undefined(path, unknown, &names));
    }
    let settings = names.iter().map(|&name| {
        let (theirs, own_section) = (sections.get(name), narrowed.get(name));
        settings(user, own, name, theirs, own_section)
    });
    let settings: Result<Vec<_>, SectionError> = settings.collect();
    // Each file was checked by itself when it was read.
    settings.map_err(|error| ConfigError::new("setting `agents`", error.reason, error.hint))
}

fn settings(
    user: &ConfigFile,
    own: &ConfigFile,
    name: &str,
    theirs: Option<&AgentSection>,
    narrowed: Option<&AgentSection>,
) -> Result<AgentSettings, SectionError> {
    let mut sees = Selection::default();
    for (file, section, said_by) in [
        (user, theirs, SaidBy::User),
        (own, narrowed, SaidBy::Project),
    ] {
        // Both must hold: what is said for all agents, and what is said for this one.
        sees = sees.within(layer(file, None, said_by)?);
        if section.is_some() {
            sees = sees.within(layer(&ConfigFile::default(), section, said_by)?);
        }
    }
    let mut middleware = Vec::new();
    let mut mode = Mode::Primary;
    let mut surface = SurfaceRule::default();
    for section in [theirs, narrowed].into_iter().flatten() {
        middleware.extend(links(section)?);
        surface.pinned.extend(pinned(section)?);
        surface.surface = section.surface.map_or(surface.surface, Surface::from);
        if section.mode == Some(ModeWord::Subagent) {
            mode = Mode::Subagent;
        }
    }
    Ok(AgentSettings {
        name: name.to_owned(),
        mode,
        sees,
        middleware,
        surface,
    })
}

fn undefined(path: &Path, unknown: &str, names: &[&str]) -> ConfigError {
    let reason = format!("`agents.{unknown}`: there is no such agent to narrow");
    let hint = match nearest(unknown, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let first = "a project narrows the agents that you have, and makes none";
            format!("{first}; define it in `~/.config/toolcrib/config.toml`")
        }
    };
    ConfigError::in_file(path, reason, hint)
}

/// What a section says about tools; without one, what the file says for all agents.
fn layer(
    file: &ConfigFile,
    section: Option<&AgentSection>,
    said_by: SaidBy,
) -> Result<SelectionLayer, SectionError> {
    let (tools, namespaces) = match section {
        Some(section) => (section.tools.as_ref(), &section.trusted_tool_namespaces),
        None => (None, &file.trusted_tool_namespaces),
    };
    let tools = tools.map(|tools| tools.iter().map(parsed::<ToolPattern>).collect());
    let namespaces = namespaces.iter().flatten().map(parsed::<Namespace>);
    Ok(SelectionLayer {
        said_by,
        tools: tools.transpose()?,
        namespaces: namespaces.collect::<Result<_, _>>()?,
    })
}

fn pinned(section: &AgentSection) -> Result<Vec<ToolPattern>, SectionError> {
    section.pinned.iter().flatten().map(parsed).collect()
}

fn parsed<T: std::str::FromStr<Err = PatternError>>(
    text: &Spanned<String>,
) -> Result<T, SectionError> {
    text.as_ref()
        .parse()
        .map_err(|error: PatternError| SectionError {
            at: Some(text.span()),
            reason: error.reason,
            hint: error.hint,
        })
}

fn links(section: &AgentSection) -> Result<Vec<ListedLink>, SectionError> {
    let tables = section.middleware.iter().flatten();
    let read = |table: &Spanned<MiddlewareTable>| {
        ListedLink::read(table.as_ref()).map_err(|error| {
            let (reason, hint) = in_words(&error);
            SectionError {
                at: Some(table.span()),
                reason,
                hint,
            }
        })
    };
    tables.map(read).collect()
}

/// What is wrong with a link, and what helps.
fn in_words(error: &MiddlewareError) -> (String, String) {
    let reason = error.to_string();
    match error {
        MiddlewareError::Unknown(name) => {
            let known = middleware::names();
            let hint = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use one of: {}", known.join(", ")),
            };
            (reason, hint)
        }
        MiddlewareError::Parameters { .. } => match reason.rsplit_once("; did you mean ") {
            Some((reason, near)) => (reason.to_owned(), format!("did you mean {near}")),
            None => (
                reason,
                "`toolcrib help profiles` shows a table that works".to_owned(),
            ),
        },
    }
}

fn is_name(name: &str) -> Result<(), SectionError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(SectionError {
        at: None,
        reason: format!("`{name}` can't be an agent's name"),
        hint: format!("names take up to {MAX_NAME} letters, digits, `_` and `-`"),
    })
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
