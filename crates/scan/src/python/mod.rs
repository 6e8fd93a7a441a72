//! Python files, by ruff's parser.

mod access;
mod call;
mod expression;
mod fold;
mod import;
mod metadata;
mod rules;
mod shape;
mod statement;
mod tool;
mod walk;

use ruff_text_size::Ranged;

use crate::place::{Lines, Position};
use crate::{Cause, Declared, Finding, SyntaxError, deep};

/// What the text of a Python file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonReading {
    pub tools: Vec<Declared>,
    pub findings: Vec<Finding>,
    pub imports: Vec<Import>,
    /// The block `# /// script`, if there is one; an error where it says something that can't be read.
    pub requirements: Option<Result<Metadata, SyntaxError>>,
}

/// One import statement, or one module of it, wherever it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// How many dots: 0 for an absolute import.
    pub level: u32,
    /// Without the dots; empty in `from . import x`.
    pub module: String,
    /// What `from` takes; empty in `import x`, `*` for all.
    pub names: Vec<String>,
    pub at: Position,
}

/// What a file needs, in its own words (PEP 723).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    pub dependencies: Vec<String>,
    pub requires_python: Option<String>,
}

/// Reads a Python file without running it.
pub fn read(text: &str) -> Result<PythonReading, SyntaxError> {
    deep::read(text, shape::check, || {
        let lines = Lines::of(text);
        let parsed = ruff_python_parser::parse_module(text).map_err(|error| SyntaxError {
            cause: Cause::Language,
            message: error.error.to_string(),
            at: lines.at(error.location.start().to_usize()),
        })?;
        let mut walk = walk::Walk::new(&lines);
        walk.module(parsed.suite());
        walk.meter.finish().map_err(|excess| excess.error(&lines))?;
        Ok(PythonReading {
            tools: walk.tools,
            findings: walk.findings.list(&lines),
            imports: walk.imports,
            requirements: metadata::read(text, &lines),
        })
    })
}

/// The names of the file itself, as a namespace.
const OWN: &str = "globals()";
/// The table of loaded modules, as a namespace.
const MODULES: &str = "sys.modules";

/// Where a node begins.
fn start(node: &impl Ranged) -> usize {
    node.start().to_usize()
}
