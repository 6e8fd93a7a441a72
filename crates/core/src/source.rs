//! Where tools come from, and what loading gives: tools *and* problems.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{Hint, Tool};

/// The kinds of sources, in the order in which they win a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceKind {
    Builtin,
    Plugin,
    Python,
    TypeScript,
    Executable,
    /// Kept in the store, by name and command.
    Registered,
}

impl SourceKind {
    pub const ALL: [SourceKind; 6] = [
        SourceKind::Builtin,
        SourceKind::Plugin,
        SourceKind::Python,
        SourceKind::TypeScript,
        SourceKind::Executable,
        SourceKind::Registered,
    ];

    /// What the option that bounds a call's time is called where such a tool is written.
    pub fn timeout_option(self) -> &'static str {
        match self {
            SourceKind::Python => "timeout_ms",
            SourceKind::Plugin => "handler.timeout",
            _ => "timeoutMs",
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            SourceKind::Builtin => "builtin",
            SourceKind::Plugin => "plugin",
            SourceKind::Python => "python",
            SourceKind::TypeScript => "typescript",
            SourceKind::Executable => "executable",
            SourceKind::Registered => "registered",
        }
    }
}

/// Whose folder a tool lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    Local,
    Global,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Local => "local",
            Scope::Global => "global",
        }
    }
}

/// What one part of a source is called: a file's path, `builtin`, or `registered:<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceKey(pub Arc<str>);

/// Who wins a name: the lower rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rank {
    /// In the binary: its names can't be taken.
    Builtin,
    /// In the tools folder with this place in the list of folders. Hiding a lower folder's tool is the feature.
    Folder(u16),
    /// In the store. It loses a name to every file that may run, and is told so.
    Registered,
}

/// The whole present content of one part of a source.
#[derive(Debug, Clone)]
pub struct Update {
    pub key: SourceKey,
    pub rank: Rank,
    /// The file that was read, for sources made of files.
    pub file: Option<PathBuf>,
    pub tools: Vec<Arc<Tool>>,
    pub problems: Vec<Problem>,
}

impl Update {
    /// The update that takes a part away.
    pub fn gone(key: SourceKey, rank: Rank) -> Update {
        Update {
            key,
            rank,
            file: None,
            tools: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Does this update leave nothing behind? A file without any tool in it still is a file.
    pub fn is_gone(&self) -> bool {
        self.tools.is_empty() && self.problems.is_empty() && self.file.is_none()
    }
}

/// What kind of trouble a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorType {
    Syntax,
    Import,
    Security,
    Validation,
    NameClash,
    Timeout,
    Io,
}

impl ErrorType {
    const ALL: [ErrorType; 7] = [
        ErrorType::Syntax,
        ErrorType::Import,
        ErrorType::Security,
        ErrorType::Validation,
        ErrorType::NameClash,
        ErrorType::Timeout,
        ErrorType::Io,
    ];

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<ErrorType> {
        ErrorType::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ErrorType::Syntax => "SyntaxError",
            ErrorType::Import => "ImportError",
            ErrorType::Security => "SecurityError",
            ErrorType::Validation => "ValidationError",
            ErrorType::NameClash => "NameClash",
            ErrorType::Timeout => "Timeout",
            ErrorType::Io => "IoError",
        }
    }
}

/// Does a problem keep something from working, is it advice, or only good to know?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    Error,
    Warning,
    Note,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Why something did not load: where, what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub source: SourceKind,
    pub file: Option<PathBuf>,
    pub tool_name: Option<String>,
    pub error_type: ErrorType,
    pub severity: Severity,
    pub message: String,
    pub hint: Hint,
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// When it was found, in milliseconds since the epoch; stamped by the registry.
    pub timestamp_ms: u64,
}

/// The longest message a problem carries; foreign text in it is cut there.
pub const MAX_MESSAGE: usize = 2_000;

impl Problem {
    pub fn error(source: SourceKind, error_type: ErrorType, message: impl Into<String>) -> Problem {
        let mut message = message.into();
        cut(&mut message);
        Problem {
            source,
            file: None,
            tool_name: None,
            error_type,
            severity: Severity::Error,
            message,
            hint: Hint::default(),
            line: None,
            column: None,
            timestamp_ms: 0,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Problem {
        self.hint = hint.into();
        self.hint.edit(cut);
        self
    }

    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Problem {
        self.file = Some(file.into());
        self
    }

    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Problem {
        self.tool_name = Some(name.into().chars().take(crate::tool::MAX_NAME).collect());
        self
    }

    #[must_use]
    pub fn at(mut self, line: usize, column: usize) -> Problem {
        self.line = u32::try_from(line).ok();
        self.column = u32::try_from(column).ok();
        self
    }

    #[must_use]
    pub fn warning(mut self) -> Problem {
        self.severity = Severity::Warning;
        self
    }

    #[must_use]
    pub fn note(mut self) -> Problem {
        self.severity = Severity::Note;
        self
    }

    /// The same trouble, whenever it was seen?
    pub fn same_as(&self, other: &Problem) -> bool {
        let (mut a, mut b) = (self.clone(), other.clone());
        (a.timestamp_ms, b.timestamp_ms) = (0, 0);
        a == b
    }
}

fn cut(text: &mut String) {
    if text.len() > MAX_MESSAGE {
        let end = (0..=MAX_MESSAGE)
            .rev()
            .find(|i| text.is_char_boundary(*i))
            .unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}
