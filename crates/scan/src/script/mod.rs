//! TypeScript and JavaScript files, by oxc's parser.

mod call;
mod export;
mod expression;
mod fold;
mod rules;
mod shape;
mod strip;
mod walk;

use std::cell::Cell;
use std::path::Path;

use oxc::allocator::Allocator;
use oxc::ast::ast::Program;
use oxc::ast_visit::Visit;
use oxc::diagnostics::OxcDiagnostic;
use oxc::parser::{ParseOptions, Parser};
use oxc::semantic::SemanticBuilder;
use oxc::span::SourceType;

use crate::budget::Excess;
use crate::place::{Lines, Position};
use crate::{Cause, Declared, Finding, SyntaxError, deep};

pub use strip::{Stripped, strip};

/// A kind of file, by its suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Ts,
    Mts,
    Cts,
    Js,
    Mjs,
    Cjs,
}

impl Dialect {
    /// The dialect of a file; declaration files (`.d.ts`) have none, because nothing in them runs.
    pub fn of(path: &Path) -> Option<Dialect> {
        let name = path.file_name()?.to_str()?;
        let (stem, suffix) = name.rsplit_once('.')?;
        let dialect = match suffix {
            "ts" => Dialect::Ts,
            "mts" => Dialect::Mts,
            "cts" => Dialect::Cts,
            "js" => Dialect::Js,
            "mjs" => Dialect::Mjs,
            "cjs" => Dialect::Cjs,
            _ => return None,
        };
        let declares = dialect.has_types() && (stem.ends_with(".d") || stem == "d");
        (!declares).then_some(dialect)
    }

    pub fn has_types(self) -> bool {
        matches!(self, Dialect::Ts | Dialect::Mts | Dialect::Cts)
    }

    fn source(self, format: Format) -> SourceType {
        let source = match format {
            Format::Module => SourceType::mjs(),
            Format::CommonJs => SourceType::cjs(),
        };
        source.with_typescript(self.has_types())
    }
}

/// How a file is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Module,
    CommonJs,
}

/// What the text of a TypeScript or JavaScript file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptReading {
    /// Exports that are tools; `name` is the export's name, `default` for the default export.
    pub tools: Vec<Declared>,
    pub findings: Vec<Finding>,
    pub imports: Vec<Import>,
    pub format: Format,
    /// Where the file first uses what only Bun has.
    pub bun: Option<Position>,
    /// Where the file first uses a decorator.
    pub decorators: Option<Position>,
}

/// One import whose module is known; imports of types alone are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    pub specifier: String,
    pub kind: ImportKind,
    pub at: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportKind {
    /// `import … from`, `export … from`
    Static,
    /// `import(…)`
    Dynamic,
    /// `require(…)`
    Require,
}

/// Reads a TypeScript or JavaScript file without running it.
pub fn read(text: &str, dialect: Dialect) -> Result<ScriptReading, SyntaxError> {
    let closed = Cell::new(true);
    let measure = |text: &str| {
        closed.set(shape::check(text, dialect.has_types())?);
        Ok(deep::tokens(text))
    };
    deep::read(text, measure, || {
        let lines = Lines::of(text);
        let arena = Allocator::default();
        let (program, format) = parse(&arena, text, dialect, &lines)?;
        if !closed.get() {
            // Then the measure is worth nothing.
            let message = "measuring the file lost its way in brackets and strings; please report it, and write it differently";
            return Err(Excess::new(0, message).error(&lines));
        }
        let checked = SemanticBuilder::new()
            .with_check_syntax_error(true)
            .build(&program);
        refuse(checked.diagnostics.iter().next(), &lines)?;
        let scoping = checked.semantic.into_scoping();
        let mut walk = walk::Walk::new(&scoping, &lines);
        // Once to learn what names stand for, wherever they are defined; once to tell.
        walk.visit_program(&program);
        walk.telling = true;
        walk.visit_program(&program);
        walk.meter.finish().map_err(|excess| excess.error(&lines))?;
        Ok(ScriptReading {
            tools: walk.tools,
            findings: walk.findings.list(&lines),
            imports: walk.imports,
            format,
            bun: walk.bun.map(|offset| lines.at(offset)),
            decorators: walk.decorators.map(|offset| lines.at(offset)),
        })
    })
}

/// Parses by the suffix; where that leaves the format open, by what is in the file.
fn parse<'a>(
    arena: &'a Allocator,
    text: &'a str,
    dialect: Dialect,
    lines: &Lines<'_>,
) -> Result<(Program<'a>, Format), SyntaxError> {
    let parse = |format: Format| {
        let options = ParseOptions {
            preserve_parens: false,
            allow_return_outside_function: format == Format::CommonJs,
            ..ParseOptions::default()
        };
        Parser::new(arena, text, dialect.source(format))
            .with_options(options)
            .parse()
    };
    let fixed = match dialect {
        Dialect::Mts | Dialect::Mjs => Some(Format::Module),
        Dialect::Cts | Dialect::Cjs => Some(Format::CommonJs),
        Dialect::Ts | Dialect::Js => None,
    };
    if let Some(format) = fixed {
        let parsed = parse(format);
        refuse(parsed.diagnostics.iter().next(), lines)?;
        return Ok((parsed.program, format));
    }
    let module = parse(Format::Module);
    let sound = module.diagnostics.is_empty();
    if module.module_record.has_module_syntax || (sound && walk::awaits(&module.program)) {
        refuse(module.diagnostics.iter().next(), lines)?;
        return Ok((module.program, Format::Module));
    }
    let script = parse(Format::CommonJs);
    if !script.diagnostics.is_empty() {
        // The module's words come first: a broken file says little about what it was meant to be.
        refuse(module.diagnostics.iter().next(), lines)?;
        refuse(script.diagnostics.iter().next(), lines)?;
    }
    Ok((script.program, Format::CommonJs))
}

fn refuse(first: Option<&OxcDiagnostic>, lines: &Lines<'_>) -> Result<(), SyntaxError> {
    let Some(error) = first else {
        return Ok(());
    };
    let offset = error.labels.first().map_or(0, |label| label.offset());
    let help = error.help.as_ref().map(|help| format!("; {help}"));
    Err(SyntaxError {
        cause: Cause::Language,
        message: format!("{}{}", error.message, help.unwrap_or_default()),
        at: lines.at(offset as usize),
    })
}
