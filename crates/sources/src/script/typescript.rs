//! TypeScript and JavaScript files: what their imports mean, and which runtime runs them.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use toolcrib_core::{ErrorType, SourceKind};
use toolcrib_hosts::Host;
use toolcrib_scan::script::{self, Dialect, Format};
use toolcrib_scan::{Cause, Declared, Position, SyntaxError};

use super::interpreter::{Interpreter, leads_into_project};
use super::language::{
    CannotLaunch, Language, Launch, Launching, NAMES_ONLY, OnlyIn, Outline, Wanted, not_installing,
};
use super::texts::Script;
use crate::Place;
use crate::install::Install;
use crate::install::packages::Packages;

/// The name of the runtime that has more than the others.
const BUN: &str = "bun";

/// Suffixes that an import without one may stand for, in this order.
const SUFFIXES: [&str; 7] = ["ts", "mts", "cts", "js", "mjs", "cjs", "json"];
/// Packages that the host itself stands for.
const OURS: [&str; 4] = [
    "@toolcrib/plugin",
    "@opencode-ai/plugin",
    "@atomic/plugin",
    "zod",
];

/// Exports of TypeScript and JavaScript files.
#[derive(Debug)]
pub struct TypeScript;

impl Language for TypeScript {
    fn source(&self) -> SourceKind {
        SourceKind::TypeScript
    }

    fn name(&self) -> &'static str {
        "TypeScript or JavaScript"
    }

    fn takes(&self, stem: &str, suffix: &str) -> bool {
        match suffix {
            // Declarations hold nothing that runs.
            "ts" | "mts" | "cts" => !stem.ends_with(".d"),
            "js" | "mjs" | "cjs" => true,
            _ => false,
        }
    }

    fn keeps(&self, name: &str) -> bool {
        let settings = ["package", "tsconfig"];
        let is_settings = || settings.iter().any(|start| name.starts_with(start));
        name == "node_modules"
            || name.starts_with("deno.json")
            || (name.ends_with(".json") && is_settings())
    }

    fn host(&self) -> Result<&'static Host, &'static str> {
        let host = toolcrib_hosts::TYPESCRIPT.as_ref();
        host.ok_or("build Toolcrib on a machine that has Node.js and npm")
    }

    fn host_program(&self) -> &'static str {
        "host.mjs"
    }

    fn packages_folder(&self) -> &'static str {
        "node_modules"
    }

    fn requirements_file(&self) -> &'static str {
        "package.json"
    }

    fn tool_name(&self, declared: &Declared, stem: &str) -> String {
        match declared.name.as_str() {
            "default" => stem.to_owned(),
            name => format!("{stem}_{name}"),
        }
    }

    fn word(&self) -> &'static str {
        "export"
    }

    fn without_tools(&self) -> (&'static str, &'static str) {
        (
            "it has no tool: nothing that it exports is one",
            "write `export default tool({ description, args, execute })`; a file that only helps others has a name that begins with `_`",
        )
    }

    fn outline(&self, text: &str, file: &Path, _root: &Path) -> Result<Outline, SyntaxError> {
        outline(text, file)
    }

    fn packages(&self, script: &Script) -> Result<Option<Packages>, CannotLaunch> {
        let Some(text) = package_json(script) else {
            return Ok(None);
        };
        let wrong = |why: String, hint: &'static str| {
            let message = format!("the package.json beside it can't be taken: {why}");
            CannotLaunch::new(ErrorType::Validation, message, hint)
        };
        let dependencies = dependencies(text).map_err(|why| wrong(why, "fix it and save"))?;
        let packages = Packages::node(&dependencies).map_err(|why| wrong(why, NAMES_ONLY))?;
        Ok(Some(packages))
    }

    fn launch(&self, wanted: &Launching) -> Result<Launch, CannotLaunch> {
        let Launching {
            script,
            mode,
            place,
            ..
        } = *wanted;
        let bun = script.only_in(BUN);
        let runtime = runtime(place, bun, wanted.own).map_err(|why| {
            let message = format!("nothing was found to run it: {}", why.message);
            CannotLaunch::new(ErrorType::Import, message, why.hint)
        })?;
        let environment = wanted.packages.map(|packages| {
            let written = package_json(script).map(dependencies);
            // They were read before, to know the packages.
            let dependencies = written.and_then(Result::ok).unwrap_or_default();
            let installing = runtime.interpreter.installing(place).map_err(|why| {
                not_installing(&why, "install Node, Bun or Deno outside of the project, or name one with `javascript = \"…\"` in config.toml")
            })?;
            Ok(Install::node(packages, &dependencies, &installing, mode, place))
        });
        let environment = environment.transpose()?;
        let mut identity = runtime.interpreter.identity.clone();
        if let Some(environment) = &environment {
            identity.push_str(environment.identity());
        }
        Ok(Launch {
            program: runtime.interpreter.program,
            identity,
            flags: runtime.flags,
            environment,
        })
    }

    fn load_request(&self, script: &Script, environment: Option<&Path>) -> Map<String, Value> {
        let mut told = load_request(script);
        if let Some(environment) = environment {
            let modules = environment.join(self.packages_folder());
            told.insert("modules".to_owned(), json!(modules));
        }
        told
    }
}

fn outline(text: &str, file: &Path) -> Result<Outline, SyntaxError> {
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
        only_in: reading.bun.map(|at| OnlyIn { runtime: BUN, at }),
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
struct Runtime {
    interpreter: Interpreter,
    flags: Vec<OsString>,
}

/// Why there is none.
struct NoRuntime {
    message: String,
    hint: &'static str,
}

/// The runtime of a file; `bun` is where it uses what only Bun has, `own` whether it is trusted with all of its project.
fn runtime(place: &Place, bun: Option<Position>, own: bool) -> Result<Runtime, NoRuntime> {
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
                Some(_) => [BUN, "node", "deno"],
                None => ["node", BUN, "deno"],
            };
            let mut found = order.iter();
            found
                .find_map(|name| Interpreter::on_path(name, place, own))
                .ok_or_else(|| {
                    missing("there is no `node`, `bun` or `deno` on the PATH".to_owned())
                })?
        }
    };
    let is_bun = found.name().contains(BUN);
    if let (Some(at), false) = (bun, is_bun) {
        return Err(NoRuntime {
            message: format!(
                "it uses `Bun` in line {}, and would run with `{}`",
                at.line,
                found.name()
            ),
            hint: "install Bun, for instance with `npm install -g bun`, or use Node's way to do it",
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

/// The `package.json` beside a script, unless somebody has installed packages there: those are taken as they are.
fn package_json(script: &Script) -> Option<&str> {
    let own = script.file.with_file_name("node_modules");
    script.requirements.as_deref().filter(|_| !own.is_dir())
}

/// The packages that a `package.json` names, but for those that the host stands for.
fn dependencies(text: &str) -> Result<Map<String, Value>, String> {
    let package: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let named = package.get("dependencies").and_then(Value::as_object);
    let mut named = named.cloned().unwrap_or_default();
    named.retain(|name, _| !OURS.contains(&name.as_str()));
    Ok(named)
}

/// What the host gets of the texts: JavaScript, and which file each import means.
fn load_request(script: &Script) -> Map<String, Value> {
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
