//! What differs between the languages of scripts.

use std::path::{Path, PathBuf};

use toolcrib_core::SourceKind;
use toolcrib_scan::{Declared, Finding, SyntaxError};

use super::python;

/// A language that has a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
}

/// What a text tells without being run.
pub struct Outline {
    pub tools: Vec<Declared>,
    pub findings: Vec<Finding>,
    /// Files that it may import, each an ordered choice: the first that is there is meant.
    pub imports: Vec<PathBuf>,
    /// The packages that it names itself, one to a line, or why they can't be read.
    pub requirements: Option<Result<String, String>>,
}

impl Language {
    /// The language of a file with this suffix.
    pub fn of_suffix(suffix: &str) -> Option<Language> {
        match suffix {
            "py" => Some(Language::Python),
            _ => None,
        }
    }

    pub fn source(self) -> SourceKind {
        match self {
            Language::Python => SourceKind::Python,
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Language::Python => "Python",
        }
    }

    /// The file beside a script that names the packages it needs.
    pub fn requirements_file(self) -> &'static str {
        match self {
            Language::Python => "requirements.txt",
        }
    }

    /// Reads a text that lies at `file`; `root` is the folder of the script that it belongs to.
    pub fn outline(self, text: &str, file: &Path, root: &Path) -> Result<Outline, SyntaxError> {
        match self {
            Language::Python => python::outline(text, file, root),
        }
    }
}
