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
    /// What it imports that may lie beside it.
    pub imports: Vec<Wanted>,
    /// The packages that it names itself, one to a line, or why they can't be read.
    pub requirements: Option<Result<String, String>>,
}

/// An import that may lie beside a script.
pub struct Wanted {
    /// As it is written, where the host has to be told which file it means.
    pub specifier: Option<String>,
    /// The files that it may mean: the first that is there.
    pub choices: Vec<PathBuf>,
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
