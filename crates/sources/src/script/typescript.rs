//! TypeScript and JavaScript files: what their imports mean, and which runtime runs them.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use toolcrib_scan::script::{self, Dialect, Format};
use toolcrib_scan::{Cause, Position, SyntaxError};

use super::interpreter::{Interpreter, leads_into_project};
use super::language::{Outline, Wanted};
use super::texts::Script;
use crate::Place;

/// Suffixes that an import without one may stand for, in this order.
const SUFFIXES: [&str; 7] = ["ts", "mts", "cts", "js", "mjs", "cjs", "json"];
/// Packages that the host itself stands for.
const OURS: [&str; 4] = [
    "@toolcrib/plugin",
    "@opencode-ai/plugin",
    "@atomic/plugin",
    "zod",
];

pub fn outline(text: &str, file: &Path) -> Result<Outline, SyntaxError> {
    let Some(dialect) = Dialect::of(file) else {
        // JSON, or what the runtime may make of it.
        return Ok(Outline::default());
    };
    let reading = script::read(text, dialect)?;
    if let (Some(at), true) = (reading.decorators, dialect.has_types()) {
        let message =
            "decorators can't be run here; call the function around the class or method instead";
        return Err(SyntaxError {
            cause: Cause::Language,
            message: message.to_owned(),
            at,
        });
    }
    let imports = reading.imports.iter();
    Ok(Outline {
        imports: imports
            .filter_map(|import| wanted(&import.specifier, file))
            .collect(),
        tools: reading.tools,
        findings: reading.findings,
        requirements: None,
        bun: reading.bun,
    })
}

/// What an import beside the file may mean, as TypeScript's people write it.
fn wanted(specifier: &str, file: &Path) -> Option<Wanted> {
    let near = ["./", "../"]
        .iter()
        .any(|start| specifier.starts_with(start));
    if !near && ![".", ".."].contains(&specifier) {
        return None;
    }
    let bare = specifier.split(['?', '#']).next().unwrap_or(specifier);
    let target = plain(&file.parent()?.join(bare));
    let text = target.to_str()?;
    let mut choices = Vec::new();
    // `./x.js` is how TypeScript writes an import of `./x.ts`; what is really there comes first.
    if !bare.ends_with(['/', '.']) {
        choices.push(target.clone());
        for (written, meant) in [("js", "ts"), ("mjs", "mts"), ("cjs", "cts")] {
            if let Some(stem) = text.strip_suffix(&format!(".{written}")) {
                choices.push(PathBuf::from(format!("{stem}.{meant}")));
            }
        }
        choices.extend(
            SUFFIXES
                .iter()
                .map(|suffix| PathBuf::from(format!("{text}.{suffix}"))),
        );
    }
    let index = SUFFIXES
        .iter()
        .map(|suffix| target.join(format!("index.{suffix}")));
    choices.extend(index);
    Some(Wanted {
        specifier: Some(specifier.to_owned()),
        choices,
    })
}

/// A path without `.` and `..`, by its text.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// A program that runs TypeScript files, and with which flags.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub interpreter: Interpreter,
    pub flags: Vec<OsString>,
}

/// Why there is none.
pub struct NoRuntime {
    pub message: String,
    pub hint: &'static str,
}

/// The runtime of a file; `bun` is where it uses what only Bun has, `own` whether it is trusted with all of its project.
pub fn runtime(place: &Place, bun: Option<Position>, own: bool) -> Result<Runtime, NoRuntime> {
    let missing = |message: String| NoRuntime {
        message,
        hint: "install Node.js 20 or later, Bun or Deno, or name one with `javascript = \"…\"` in config.toml",
    };
    let named = place.scripts.settings.javascript.as_deref();
    let found = match named.filter(|named| own || !leads_into_project(named)) {
        Some(named) => Interpreter::named(named, "javascript", place, own).map_err(missing)?,
        None => {
            // What only Bun has is for Bun; for the rest what most people have comes first.
            let order = match bun {
                Some(_) => ["bun", "node", "deno"],
                None => ["node", "bun", "deno"],
            };
            let mut found = order.iter();
            found
                .find_map(|name| Interpreter::on_path(name, place, own))
                .ok_or_else(|| {
                    missing("there is no `node`, `bun` or `deno` on the PATH".to_owned())
                })?
        }
    };
    let is_bun = found.name().contains("bun");
    if let (Some(at), false) = (bun, is_bun) {
        return Err(NoRuntime {
            message: format!(
                "it uses `Bun` in line {}, and would run with `{}`",
                at.line,
                found.name()
            ),
            hint: "install Bun, for instance with `npm install -g bun`, or take Node's way to do it",
        });
    }
    // None of them reads settings of the folder that it starts in: those may preload code, map names of packages to other
    // files, or set variables, and whoever may write the folder would choose what a tool runs.
    let flags: &[&str] = match found.name() {
        _ if is_bun => &[
            "--no-install",
            "--config=/dev/null",
            "--env-file=/dev/null",
            "--tsconfig-override=/dev/null",
        ],
        name if name.contains("deno") => &[
            "run",
            "--allow-all",
            "--no-config",
            "--no-lock",
            "--no-remote",
            "--no-npm",
            "--quiet",
        ],
        _ => &["--experimental-vm-modules", "--no-warnings"],
    };
    Ok(Runtime {
        interpreter: found,
        flags: flags.iter().map(OsString::from).collect(),
    })
}

/// The packages that a `package.json` names, but for those that the host stands for.
pub fn dependencies(text: &str) -> Result<Map<String, Value>, String> {
    let package: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let named = package.get("dependencies").and_then(Value::as_object);
    let mut named = named.cloned().unwrap_or_default();
    named.retain(|name, _| !OURS.contains(&name.as_str()));
    Ok(named)
}

/// What the host is told of the texts: JavaScript, and which file each import means.
pub fn load_request(script: &Script) -> Map<String, Value> {
    let mut texts = Map::new();
    let mut resolved = Map::new();
    for (path, text) in script.texts() {
        let key = path.to_string_lossy().into_owned();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stripped = Dialect::of(path).map(|dialect| script::strip(text, dialect, &name));
        let (text, format) = match stripped {
            Some(Ok(stripped)) => {
                let format = match stripped.format {
                    Format::Module => "module",
                    Format::CommonJs => "commonjs",
                };
                (stripped.text, format)
            }
            // It was read before; the host says what it thinks of it.
            Some(Err(_)) => (text.to_owned(), "module"),
            None => (text.to_owned(), "json"),
        };
        texts.insert(key, json!({"text": text, "format": format}));
    }
    for (path, specifier, meant) in script.resolved() {
        let importer = path.to_string_lossy().into_owned();
        let all = resolved.entry(importer).or_insert_with(|| json!({}));
        all[specifier] = meant.to_string_lossy().into();
    }
    Map::from_iter([
        ("texts".to_owned(), Value::Object(texts)),
        ("resolved".to_owned(), Value::Object(resolved)),
    ])
}
