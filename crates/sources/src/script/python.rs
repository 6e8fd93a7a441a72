//! Python files: where their imports lie, and with which interpreter they run.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::Scope;
use toolcrib_sandbox::{Command, Exit, Policy};
use toolcrib_scan::SyntaxError;
use toolcrib_scan::python::{self, Import};

use super::interpreter::Interpreter;
use super::language::{Outline, Wanted};
use super::texts::Script;
use crate::Place;
use crate::process::capture;

pub fn outline(text: &str, file: &Path, root: &Path) -> Result<Outline, SyntaxError> {
    let reading = python::read(text)?;
    let imports = reading.imports.iter();
    let requirements = reading.requirements.map(|metadata| match metadata {
        Ok(metadata) => Ok(metadata.dependencies.join("\n")),
        Err(error) => Err(error.message),
    });
    Ok(Outline {
        imports: imports
            .flat_map(|import| near(import, file, root))
            .filter(|path| path.starts_with(root))
            .map(|path| Wanted {
                specifier: None,
                choices: vec![path],
            })
            .collect(),
        tools: reading.tools,
        findings: reading.findings,
        requirements: requirements.filter(|one| one.as_ref().map_or(true, |text| !text.is_empty())),
        bun: None,
    })
}

/// The files that an import may mean, if they lie beside the script.
fn near(import: &Import, file: &Path, root: &Path) -> Vec<PathBuf> {
    let mut folder = match import.level {
        // An absolute import reaches what lies beside the script itself.
        0 => root,
        _ => file.parent().unwrap_or(root),
    };
    for _ in 1..import.level {
        folder = folder.parent().unwrap_or(folder);
    }
    // A dotted name brings all the packages on its way. What no file can be called is not looked for.
    let mut found = Vec::new();
    let mut module = folder.to_path_buf();
    for part in import.module.split('.').filter(|part| !part.is_empty()) {
        module.push(part);
        found.push(module.with_extension("py"));
        found.push(module.join("__init__.py"));
    }
    let names = import
        .names
        .iter()
        .filter(|name| *name != "*" && name.len() < 256);
    for name in names {
        found.push(module.join(name).with_extension("py"));
        found.push(module.join(name).join("__init__.py"));
    }
    found
}

/// The interpreter of a file that brings no environment of its own. A project's is taken only for files that are
/// trusted with it.
pub fn interpreter(place: &Place, scope: Scope, trusted: bool) -> Result<Interpreter, String> {
    let settings = &place.scripts.settings;
    if let Some(named) = &settings.python {
        return Interpreter::named(named, "python", place);
    }
    let project = place.project.as_deref();
    let venv = project.filter(|_| trusted && scope == Scope::Local);
    let venv = venv.map(|project| project.join(".venv"));
    let environments = venv.iter().chain(&settings.virtual_env);
    let mut found = environments.filter_map(|folder| Interpreter::at(folder.join("bin/python")));
    if let Some(interpreter) = found.next() {
        return Ok(interpreter);
    }
    let found = Interpreter::on_path("python3", place);
    found.ok_or_else(|| "there is no `python3` on the PATH".to_owned())
}

/// What the host is told of the texts.
pub fn told(script: &Script) -> Map<String, Value> {
    let texts: Map<String, Value> = script
        .texts()
        .map(|(path, text)| (path.to_string_lossy().into_owned(), text.into()))
        .collect();
    Map::from_iter([("texts".to_owned(), Value::Object(texts))])
}

/// Compiles the host's files for this interpreter, unless it has been done. Without it every start would compile them.
pub async fn compile(interpreter: &Path, host: &Path, place: &Place) {
    let Some(found) = Interpreter::at(interpreter.to_path_buf()) else {
        return;
    };
    let digest = Sha256::digest(&found.identity);
    let mark = host.join(format!(".compiled-{}", crate::folder::hex(&digest[..8])));
    if mark.exists() {
        return;
    }
    let _turn = place.scripts.making.lock().await;
    if mark.exists() {
        return;
    }
    let policy = Policy {
        write: vec![host.to_path_buf()],
        ..Policy::default()
    };
    let command = Command::new(interpreter, host, place.holding(policy))
        .args(["-X", "utf8", "-m", "compileall", "-q"])
        .args([host]);
    let done = capture(command, place, "toolcrib").await;
    match done {
        Ok(done) if done.exit == Exit::Code(0) => {
            let _ = std::fs::write(mark, "");
        }
        Ok(done) => tracing::debug!(stderr = done.stderr, "the host could not be compiled"),
        Err(error) => tracing::debug!(%error, "the host could not be compiled"),
    }
}
