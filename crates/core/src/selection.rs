//! Which tools an agent sees: patterns and namespaces, as settings say them. A tool outside is not there for the agent.
//!
//! All of it is pure: a selection and a tool in, yes or the reason out.

use std::fmt;
use std::str::FromStr;

use crate::{SourceKind, Tool};

/// The first word of every module that a tool of ours can have.
const ROOTS: [&str; 6] = ["builtin", "local", "global", "plugin", "registered", "mcp"];
/// No pattern and no namespace is longer.
const MAX_LENGTH: usize = 200;

/// What an agent sees: what every layer lets through. Without layers that is everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    layers: Vec<SelectionLayer>,
}

/// What one file says about which tools an agent sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectionLayer {
    pub said_by: SaidBy,
    /// Those that are named; all where nothing is said, and none where nobody is named.
    pub tools: Option<Vec<ToolPattern>>,
    /// Where they come from; from anywhere where nothing is said.
    pub namespaces: Vec<Namespace>,
}

/// Whose file said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    User,
    Project,
}

/// One entry of `tools`: what it matches, and whether it leaves that out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
    leaves_out: bool,
    matches: Subject,
}

/// What of a tool a pattern looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Name(Glob),
    Source(SourceKind),
    Tag(Glob),
    /// Its module and its name, with a dot between them.
    Path(Glob),
    /// The last part of a dotted name out of another system, in which `_` and `-` are alike.
    LastPart(String),
}

/// The beginning of a tool's `module`, in whole words: `local` and `local.build`, never `local.bui`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace(String);

/// Text with `*` (anything) and `?` (one character).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob(Vec<char>);

/// Why an agent does not see a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hiding<'a> {
    /// No entry of `tools` names it.
    NotNamed(SaidBy),
    /// This entry leaves it out.
    LeftOut(SaidBy, &'a ToolPattern),
    /// It comes from elsewhere than from the namespaces that are trusted.
    Elsewhere(SaidBy),
}

/// Why a pattern or a namespace can't be used, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct PatternError {
    pub reason: String,
    pub hint: String,
}

impl Selection {
    /// Nothing at all.
    pub fn nothing() -> Selection {
        Selection::default().within(SelectionLayer {
            tools: Some(Vec::new()),
            ..SelectionLayer::all(SaidBy::User)
        })
    }

    /// What is left of it when this layer decides too.
    #[must_use]
    pub fn within(mut self, layer: SelectionLayer) -> Selection {
        if layer.tools.is_some() || !layer.namespaces.is_empty() {
            self.layers.push(layer);
        }
        self
    }

    pub fn is_everything(&self) -> bool {
        self.layers.is_empty()
    }

    pub fn sees(&self, tool: &Tool) -> bool {
        self.hiding(tool).is_none()
    }

    /// Why it does not let this tool through; nothing where it does.
    pub fn hiding(&self, tool: &Tool) -> Option<Hiding<'_>> {
        self.layers.iter().find_map(|layer| layer.hiding(tool))
    }

    /// What settings say, layer by layer.
    pub fn layers(&self) -> &[SelectionLayer] {
        &self.layers
    }
}

impl SelectionLayer {
    /// A layer that says nothing.
    pub fn all(said_by: SaidBy) -> SelectionLayer {
        SelectionLayer {
            said_by,
            tools: None,
            namespaces: Vec::new(),
        }
    }

    fn hiding(&self, tool: &Tool) -> Option<Hiding<'_>> {
        let said_by = self.said_by;
        let trusted = |namespace: &Namespace| namespace.holds(&tool.module);
        if !self.namespaces.is_empty() && !self.namespaces.iter().any(trusted) {
            return Some(Hiding::Elsewhere(said_by));
        }
        let patterns = self.tools.as_ref()?;
        let (out, named): (Vec<_>, Vec<_>) = patterns.iter().partition(|one| one.leaves_out);
        if let Some(pattern) = out.iter().find(|pattern| pattern.matches(tool)) {
            return Some(Hiding::LeftOut(said_by, pattern));
        }
        // A list that only leaves out begins with everything.
        let begins_with_all = named.is_empty() && !out.is_empty();
        let is_named = || named.iter().any(|pattern| pattern.matches(tool));
        (!begins_with_all && !is_named()).then_some(Hiding::NotNamed(said_by))
    }
}

impl ToolPattern {
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Does it take tools away, and add none?
    pub fn leaves_out(&self) -> bool {
        self.leaves_out
    }

    /// Is this tool one of those that it is about?
    pub fn matches(&self, tool: &Tool) -> bool {
        match &self.matches {
            Subject::Name(glob) => glob.matches(tool.name()),
            Subject::Source(source) => tool.source == *source,
            Subject::Tag(glob) => tool.spec.tags.iter().any(|tag| glob.matches(tag)),
            Subject::Path(glob) => glob.matches(&format!("{}.{}", tool.module, tool.name())),
            Subject::LastPart(name) => kebab(tool.name()) == *name,
        }
    }
}

impl FromStr for ToolPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<ToolPattern, PatternError> {
        bounded(text)?;
        let (leaves_out, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        Ok(ToolPattern {
            text: text.to_owned(),
            leaves_out,
            matches: Subject::read(rest)?,
        })
    }
}

impl Subject {
    fn read(text: &str) -> Result<Subject, PatternError> {
        if let Some((kind, rest)) = text.split_once(':') {
            return Subject::of_kind(kind, rest);
        }
        let wild = |text: &str| text.contains(['*', '?']);
        let Some((front, last)) = text.rsplit_once('.') else {
            named(text)?;
            return Ok(Subject::Name(Glob::new(text)));
        };
        named(last)?;
        let root = front.split('.').next().unwrap_or_default();
        if ROOTS.contains(&root) || wild(root) {
            return Ok(Subject::Path(Glob::new(text)));
        }
        if wild(text) {
            return Err(PatternError::new(
                format!("`{text}` begins with no module of a tool here"),
                format!("modules begin with {}", ROOTS.join(", ")),
            ));
        }
        Ok(Subject::LastPart(kebab(last)))
    }

    fn of_kind(kind: &str, rest: &str) -> Result<Subject, PatternError> {
        match kind {
            "tag" if !rest.is_empty() => Ok(Subject::Tag(Glob::new(rest))),
            "tag" => Err(PatternError::new("`tag:` names no tag", "write `tag:web`")),
            "source" => {
                let known = |source: &SourceKind| source.as_str() == rest;
                let source = SourceKind::ALL.into_iter().find(known);
                source.map(Subject::Source).ok_or_else(|| {
                    let all = SourceKind::ALL.map(SourceKind::as_str);
                    let reason = format!("there is no source `{rest}`");
                    PatternError::new(reason, did_you_mean(rest, &all))
                })
            }
            _ => Err(PatternError::new(
                format!("`{kind}:` is no kind of pattern"),
                did_you_mean(kind, &["source", "tag"]),
            )),
        }
    }
}

impl Namespace {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Does this module lie in it?
    pub fn holds(&self, module: &str) -> bool {
        let rest = module.strip_prefix(self.0.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl FromStr for Namespace {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Namespace, PatternError> {
        bounded(text)?;
        let whole = text.split('.').all(|word| !word.trim().is_empty());
        if !whole || text.contains(['*', '?', ':']) || text.starts_with('-') {
            return Err(PatternError::new(
                format!("`{text}` is no namespace"),
                "write the beginning of a module in whole words, such as `local` or `plugin.garden`",
            ));
        }
        Ok(Namespace(text.to_owned()))
    }
}

impl Glob {
    fn new(text: &str) -> Glob {
        Glob(text.chars().collect())
    }

    /// In time that is at most the product of both lengths.
    fn matches(&self, text: &str) -> bool {
        let (pattern, text): (&[char], Vec<char>) = (&self.0, text.chars().collect());
        let (mut at, mut read) = (0, 0);
        // Where the last `*` stands, and how far it reached.
        let mut star: Option<(usize, usize)> = None;
        while read < text.len() {
            match pattern.get(at) {
                Some('*') => {
                    star = Some((at, read));
                    at += 1;
                }
                Some(one) if *one == '?' || *one == text[read] => {
                    at += 1;
                    read += 1;
                }
                _ => {
                    let Some((place, reached)) = star else {
                        return false;
                    };
                    star = Some((place, reached + 1));
                    (at, read) = (place + 1, reached + 1);
                }
            }
        }
        pattern[at..].iter().all(|rest| *rest == '*')
    }
}

impl PatternError {
    fn new(reason: impl Into<String>, hint: impl Into<String>) -> PatternError {
        PatternError {
            reason: reason.into(),
            hint: hint.into(),
        }
    }
}

impl SaidBy {
    /// To be added to a sentence about what was said.
    fn suffix(self) -> &'static str {
        match self {
            SaidBy::User => "",
            SaidBy::Project => ", says the project's file",
        }
    }
}

impl fmt::Display for Hiding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hiding::NotNamed(by) => write!(f, "`tools` does not name it{}", by.suffix()),
            Hiding::LeftOut(by, pattern) => {
                write!(f, "`{}` leaves it out{}", pattern.as_str(), by.suffix())
            }
            Hiding::Elsewhere(by) => {
                let by = by.suffix();
                write!(f, "its module is in no trusted namespace{by}")
            }
        }
    }
}

fn bounded(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(PatternError::new("it is empty", "take it out"));
    }
    if text.len() > MAX_LENGTH || text.chars().any(char::is_control) {
        let reason = format!("it is no line of at most {MAX_LENGTH} bytes");
        return Err(PatternError::new(reason, "shorten it"));
    }
    Ok(())
}

/// Refuses what no name of a tool holds, but for `*` and `?`.
fn named(text: &str) -> Result<(), PatternError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-*?".contains(c);
    match text.chars().find(|c| !fits(*c)) {
        None if !text.is_empty() => Ok(()),
        None => Err(PatternError::new(
            "a name is missing",
            "write a tool's name, in which `*` stands for anything",
        )),
        Some(odd) => Err(PatternError::new(
            format!("`{text}` holds `{odd}`, which no name of a tool holds"),
            "write a tool's name, in which `*` stands for anything and `?` for one character",
        )),
    }
}

fn kebab(name: &str) -> String {
    name.replace('_', "-")
}

fn did_you_mean(word: &str, known: &[&str]) -> String {
    let score = |one: &str| strsim::jaro_winkler(word, one);
    let near = known.iter().filter(|one| score(one) > 0.75);
    match near.max_by(|a, b| score(a).total_cmp(&score(b))) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of: {}", known.join(", ")),
    }
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
