//! Python files: where their imports lie, and with which interpreter they run.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::{BoxFuture, ErrorType, SourceKind};
use toolcrib_hosts::Host;
use toolcrib_sandbox::{Command, Exit, Policy};
use toolcrib_scan::python::{self, Import};
use toolcrib_scan::{Declared, SyntaxError};

use super::interpreter::{Interpreter, leads_into_project};
use super::language::{
    CannotLaunch, Language, Launch, Launching, NAMES_ONLY, Outline, Wanted, not_installing,
};
use super::texts::Script;
use crate::Place;
use crate::install::Install;
use crate::install::packages::Packages;
use crate::process::capture;

/// Functions in `.py` files.
#[derive(Debug)]
pub struct Python;

impl Language for Python {
    fn source(&self) -> SourceKind {
        SourceKind::Python
    }

    fn name(&self) -> &'static str {
        "Python"
    }

    fn takes(&self, _stem: &str, suffix: &str) -> bool {
        suffix == "py"
    }

    fn keeps(&self, name: &str) -> bool {
        name == "__pycache__"
    }

    fn host(&self) -> Result<&'static Host, &'static str> {
        Ok(&toolcrib_hosts::PYTHON)
    }

    fn host_program(&self) -> &'static str {
        "toolcrib_host"
    }

    fn packages_folder(&self) -> &'static str {
        ".venv"
    }

    fn requirements_file(&self) -> &'static str {
        "requirements.txt"
    }

    fn tool_name(&self, declared: &Declared, _stem: &str) -> String {
        declared.name.clone()
    }

    fn word(&self) -> &'static str {
        "tool"
    }

    fn without_tools(&self) -> (&'static str, &'static str) {
        (
            "it has no tool: none of its functions is marked with `@tool`",
            "write `from toolcrib import tool`, and `@tool` on the line above the function; a file that only helps others is called `_name.py`",
        )
    }

    fn outline(&self, text: &str, file: &Path, root: &Path) -> Result<Outline, SyntaxError> {
        outline(text, file, root)
    }

    fn packages(&self, script: &Script) -> Result<Option<Packages>, CannotLaunch> {
        let named = script.packages().transpose().map_err(|why| {
            let hint = "write `# /// script`, `# dependencies = [\"name\"]`, `# ///`, each on a line of its own";
            let message = format!("the packages it names can't be read: {why}");
            CannotLaunch::new(ErrorType::Validation, message, hint)
        })?;
        let packages = named.map(Packages::python).transpose();
        packages.map_err(|why| {
            let message = format!("the packages it names can't be installed: {why}");
            CannotLaunch::new(ErrorType::Validation, message, NAMES_ONLY)
        })
    }

    fn launch(&self, wanted: &Launching) -> Result<Launch, CannotLaunch> {
        let Launching { mode, place, .. } = *wanted;
        let base = interpreter(place, wanted.own).map_err(|why| {
            let hint =
                "install Python 3.9 or later, or name one with `python = \"…\"` in config.toml";
            let message = format!("no Python was found to run it: {why}");
            CannotLaunch::new(ErrorType::Io, message, hint)
        })?;
        let packages = wanted.packages;
        let environment = packages.map(|packages| {
            let installing = base.installing(place).map_err(|why| {
                let hint = "make `.venv` again with `python3 -m venv .venv`, so that its Python is a link to yours, or name one with `python = \"…\"` in config.toml";
                not_installing(&why, hint)
            })?;
            Ok(Install::python(packages, &installing, mode, place))
        });
        let environment = environment.transpose()?;
        let (program, identity) = match &environment {
            Some(environment) => (
                environment.folder.join("bin/python"),
                environment.identity().to_owned(),
            ),
            None => (base.program, base.identity),
        };
        Ok(Launch {
            program,
            identity,
            flags: vec!["-X".into(), "utf8".into()],
            environment,
        })
    }

    fn owner(&self, launch: &Launch) -> Option<String> {
        let digest = Sha256::digest(&launch.identity);
        Some(crate::hex(&digest[..8]))
    }

    fn warm_up<'a>(
        &'a self,
        interpreter: &'a Path,
        copy: &'a Path,
        place: &'a Place,
    ) -> BoxFuture<'a, ()> {
        Box::pin(compile(interpreter, copy, place))
    }

    fn load_request(&self, script: &Script, _environment: Option<&Path>) -> Map<String, Value> {
        let texts: Map<String, Value> = script
            .texts()
            .map(|(path, text)| (path.to_string_lossy().into_owned(), text.into()))
            .collect();
        Map::from_iter([("texts".to_owned(), Value::Object(texts))])
    }
}

fn outline(text: &str, file: &Path, root: &Path) -> Result<Outline, SyntaxError> {
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
        only_in: None,
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

/// The interpreter of a file that brings no environment of its own. A project's is taken only for its `own` files, which
/// are trusted with it.
fn interpreter(place: &Place, own: bool) -> Result<Interpreter, String> {
    let settings = &place.scripts.settings;
    if let Some(named) = settings
        .python
        .as_deref()
        .filter(|named| own || !leads_into_project(named))
    {
        return Interpreter::named(named, "python", place, own);
    }
    let project = place.project.as_deref();
    let venv = project.filter(|_| own);
    let venv = venv.map(|project| project.join(".venv"));
    // The one in which the crib was started may be the project's own.
    let activated = settings.virtual_env.iter();
    let activated = activated.filter(|folder| own || !lies_in(folder, project));
    let environments = venv.iter().chain(activated);
    let mut found = environments.filter_map(|folder| Interpreter::at(folder.join("bin/python")));
    if let Some(interpreter) = found.next() {
        return Ok(interpreter);
    }
    let found = Interpreter::on_path("python3", place, own);
    found.ok_or_else(|| "there is no `python3` on the PATH".to_owned())
}

/// Does it lie in the project, by its path or by where that leads?
fn lies_in(folder: &Path, project: Option<&Path>) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    project.is_some_and(|project| {
        folder.starts_with(project) || real(folder).starts_with(real(project))
    })
}

/// Compiles this interpreter's own copy of the host, unless it has been done. Without it every start would compile it.
///
/// The interpreter may be a project's: of the copy it writes the folders for bytecode and nothing else, and what it puts
/// there only its own tools read. The mark that says it is done lies beside the copy, where it writes nothing.
async fn compile(interpreter: &Path, copy: &Path, place: &Place) {
    // What is written is named by where it really lies.
    let Ok(copy) = &copy.canonicalize() else {
        return;
    };
    let mark = PathBuf::from(format!("{}.compiled", copy.display()));
    let bytecode = toolcrib_hosts::PYTHON.bytecode_folders(copy);
    // A copy that was laid out anew has none.
    let is_done = || mark.exists() && bytecode.iter().all(|folder| folder.is_dir());
    if is_done() {
        return;
    }
    let _turn = place.scripts.making.lock().await;
    if is_done() {
        return;
    }
    for folder in &bytecode {
        if let Err(error) = std::fs::create_dir_all(folder) {
            tracing::debug!(%error, "the host could not be compiled");
            return;
        }
    }
    let policy = Policy {
        read: vec![copy.to_path_buf()],
        write: bytecode.clone(),
        ..Policy::default()
    };
    let command = Command::new(interpreter, copy, place.holding(policy))
        .args(["-I", "-S", "-X", "utf8", "-m", "compileall", "-q"])
        .args([copy]);
    let done = capture(command, place, "toolcrib").await;
    match done {
        Ok(done) if done.exit == Exit::Code(0) => {
            let _ = std::fs::write(mark, "");
        }
        Ok(done) => tracing::debug!(stderr = done.stderr, "the host could not be compiled"),
        Err(error) => tracing::debug!(%error, "the host could not be compiled"),
    }
}
