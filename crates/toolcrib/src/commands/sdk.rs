//! `toolcrib sdk`: the Python or TypeScript SDK as a package file, for people's editors and tests.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use toolcrib_core::words::CommandLine;
use toolcrib_core::{ErrorCode, Hint};
use toolcrib_hosts::package::{self, Package};

use super::{Done, Scene};
use crate::failure::Failure;
use crate::printer::{BOLD, GREEN, plain};
use crate::whole_file;

/// Write the Python or TypeScript SDK as a package, for your editor and your tests
#[derive(Debug, Args)]
#[command(
    after_help = "Writes a wheel for pip, or a tarball for npm. Both install without a network and depend on nothing. \
    Tools don't need them: Toolcrib brings the SDK along when it runs a tool. A package from an earlier run is replaced; \
    anything else of that name only with --force."
)]
pub struct Sdk {
    /// Which SDK
    pub language: Language,
    /// The folder to write into; without one, the working directory
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Replace a file of that name, whatever it is
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Language {
    Python,
    Typescript,
}

/// What became of the package's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Written,
    Replaced,
    /// It was there already, byte for byte.
    Unchanged,
}

impl Sdk {
    pub fn run(self, scene: &Scene) -> Done {
        let package = self.language.package()?;
        let dir = self.dir.as_deref().unwrap_or(Path::new("."));
        let file = scene.env.directory.join(dir).join(&package.file);
        // Without the dots of the folder that was named: people copy this path.
        let file: PathBuf = file.components().collect();
        let change = match Change::needed(&file, &package.bytes) {
            Ok(change) => change,
            Err(_) if self.force => Change::Replaced,
            Err(what) => return Err(self.taken(&file, what)),
        };
        if change != Change::Unchanged {
            whole_file::write(&file, &package.bytes).map_err(|error| {
                let message = format!("can't write `{}`", file.display());
                let failure = Failure::new(ErrorCode::Unavailable, message).cause(error);
                failure.hint("name a folder that you may write")
            })?;
        }
        self.tell(scene, &package, &file, change);
        Ok(0)
    }

    fn taken(&self, file: &Path, what: &str) -> Failure {
        let message = format!("`{}` is {what}", file.display());
        let again = CommandLine::new("toolcrib sdk").operand(self.language.as_str());
        let again = match &self.dir {
            Some(dir) => again.operand(dir.display()),
            None => again,
        };
        let hint = Hint::run(again.switch("--force")).after(" replaces it, or name another folder");
        Failure::new(ErrorCode::Conflict, message).hint(hint)
    }

    fn tell(&self, scene: &Scene, package: &Package, file: &Path, change: Change) {
        let next = self.language.install(file).to_string();
        let printer = scene.printer;
        if printer.is_json() {
            printer.json(&json!({
                "language": self.language.as_str(),
                "package": package.name,
                "version": package.version,
                "file": file,
                "change": change.as_str(),
                "next": next,
            }));
            return;
        }
        let (word, path) = (change.as_str(), file.display().to_string());
        printer.line(format!("{GREEN}{word}{GREEN:#}  {}", plain(&path)));
        printer.line("");
        printer.line("Next:");
        printer.line(format!("  {BOLD}{}{BOLD:#}", plain(&next)));
    }
}

impl Language {
    fn as_str(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Typescript => "typescript",
        }
    }

    fn package(self) -> Result<Package, Failure> {
        match self {
            Language::Python => Ok(package::python()),
            Language::Typescript => package::typescript().ok_or_else(|| {
                let message = "this toolcrib was built without the TypeScript SDK";
                Failure::new(ErrorCode::Unavailable, message)
                    .hint("build it again where Node and npm are on PATH: `make install`")
            }),
        }
    }

    /// What installs the file; over an earlier build of the same version too.
    fn install(self, file: &Path) -> CommandLine {
        let head = match self {
            Language::Python => "python3 -m pip install --force-reinstall",
            Language::Typescript => "npm install --save-dev",
        };
        CommandLine::new(head).operand(file.display())
    }
}

impl Change {
    /// What has to be done for these bytes to be in the file, or what else is there.
    fn needed(file: &Path, bytes: &[u8]) -> Result<Change, &'static str> {
        match file.symlink_metadata() {
            Err(_) => Ok(Change::Written),
            Ok(about) if !about.is_file() => Err("there already, and is no file"),
            Ok(_) => match std::fs::read(file) {
                Ok(there) if there == bytes => Ok(Change::Unchanged),
                Ok(there) if package::is_ours(&there) => Ok(Change::Replaced),
                _ => Err("there already, and Toolcrib did not write it"),
            },
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Change::Written => "written",
            Change::Replaced => "replaced",
            Change::Unchanged => "unchanged",
        }
    }
}
