//! `toolcrib register`: a program becomes a tool by its name and command, in every project.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolcrib_core::ErrorCode;
use toolcrib_core::words::CommandLine;
use toolcrib_sources::registered;

use super::reach::Reach;
use super::{Done, Scene, Target};
use crate::failure::Failure;
use crate::printer::{GREEN, YELLOW, plain};
use crate::wire::{CustomToolCreate, CustomToolFields, CustomToolView};

/// Which program runs a file that can't be run by itself.
const INTERPRETERS: [(&str, &str); 5] = [
    ("py", "python3"),
    ("js", "node"),
    ("mjs", "node"),
    ("cjs", "node"),
    ("sh", "bash"),
];

/// Register a program as a tool, in every project
#[derive(Debug, Args)]
#[command(
    override_usage = "toolcrib register [OPTIONS] <PATH>\n       toolcrib register [OPTIONS] -- <COMMAND>...",
    after_help = "The program is started once and asked what it is; it must answer `initialize`, `execute` and `health`.\n\n  \
    toolcrib register ./weather.py\n  toolcrib register --name weather --env API_KEY=… -- python3 -u ./weather.py"
)]
pub struct Register {
    /// The program; an interpreter is taken from its `#!` line or its suffix
    #[arg(
        value_name = "PATH",
        required_unless_present = "command",
        conflicts_with = "command"
    )]
    pub path: Option<PathBuf>,
    /// The program and its arguments, as a shell would start it
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The tool's name, instead of the one that the program gives itself
    #[arg(long)]
    pub name: Option<String>,
    /// What agents read, instead of what the program says of itself
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Milliseconds that a call may take
    #[arg(long, value_name = "MS")]
    pub timeout_ms: Option<u64>,
    /// How many processes there may be at once
    #[arg(long, value_name = "COUNT")]
    pub pool_size: Option<u32>,
    /// A tag; may be given several times
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// A variable for the program; its value is kept and never shown again
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// It may run other programs, as most shell scripts do
    #[arg(long)]
    pub exec: bool,
    /// Start nothing, and keep the tool `inactive`
    #[arg(long)]
    pub no_validate: bool,
    #[command(flatten)]
    pub target: Target,
}

impl Register {
    pub async fn run(self, scene: &Scene) -> Done {
        let (command, args) = self.program(&scene.env.directory)?;
        let env = variables(&self.env)?;
        let create = CustomToolCreate {
            name: self.chosen_name()?,
            command,
            fields: CustomToolFields {
                args: Some(args),
                env: (!env.is_empty()).then_some(env),
                description: self.description.clone(),
                timeout_ms: self.timeout_ms,
                pool_size: self.pool_size,
                tags: (!self.tag.is_empty()).then(|| self.tag.clone()),
                validate: self.no_validate.then_some(false),
                permissions: self.permissions(),
                ..CustomToolFields::default()
            },
        };
        let reach = Reach::open(scene, &self.target).await?;
        let kept = reach.post("/custom-tools", &create).await;
        reach.close().await;
        print(scene, &kept?);
        Ok(0)
    }

    /// What the tool declares that it needs.
    fn permissions(&self) -> Option<Value> {
        self.exec.then(|| json!({"canExecuteCommands": true}))
    }

    /// The command and its arguments, with paths that hold wherever the tool is called from.
    fn program(&self, here: &Path) -> Result<(String, Vec<String>), Failure> {
        if let Some(path) = &self.path {
            return interpreted(&here.join(path));
        }
        let relative = |word: &str| {
            let said = word.starts_with("./") || word.starts_with("../");
            match said {
                true => clean(&here.join(word)),
                false => word.to_owned(),
            }
        };
        let mut words = self.command.iter();
        let command = words.next().map(String::as_str).unwrap_or_default();
        let command = match command.contains('/') {
            true => clean(&here.join(command)),
            false => command.to_owned(),
        };
        let mut args: Vec<String> = words.map(|word| relative(word)).collect();
        // The first that is no option is an interpreter's program, if such a file is there.
        let first = args.iter_mut().find(|word| !word.starts_with('-'));
        if let Some(script) = first.filter(|word| here.join(word.as_str()).is_file()) {
            *script = clean(&here.join(script.as_str()));
        }
        Ok((command, args))
    }

    /// The name that was given. Who names none leaves it to the program; where that is not started, its file's name has to do.
    fn chosen_name(&self) -> Result<Option<String>, Failure> {
        if self.name.is_some() || !self.no_validate {
            return Ok(self.name.clone());
        }
        let stem = self.path.as_deref().and_then(Path::file_stem);
        let stem = stem.ok_or_else(|| {
            let message = "a command that is not started has no name";
            Failure::new(ErrorCode::BadRequest, message).hint("give one with `--name NAME`")
        })?;
        Ok(Some(stem.to_string_lossy().into_owned()))
    }
}

/// How a file is run: by itself, by the program in its `#!` line, or by that of its suffix.
fn interpreted(path: &Path) -> Result<(String, Vec<String>), Failure> {
    let refuse = |why: String, hint: &str| {
        let message = format!("`{}` can't be registered", path.display());
        Err(Failure::new(ErrorCode::BadRequest, message)
            .cause(why)
            .hint(hint))
    };
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) => return refuse(error.to_string(), "check the path"),
    };
    if !meta.is_file() {
        return refuse(
            "it is not a file".to_owned(),
            "name the program itself; a folder with `tool.json` belongs into a tools folder",
        );
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(256).read_to_end(&mut head));
    if let Err(error) = read {
        return refuse(error.to_string(), "make it readable for this user");
    }
    let script = head.starts_with(b"#!");
    let own = clean(path);
    if meta.permissions().mode() & 0o111 != 0 && (script || head.starts_with(b"\x7fELF")) {
        return Ok((own, Vec::new()));
    }
    if script {
        let line = head[2..]
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut program = words.next().unwrap_or_default();
        let mut args: Vec<String> = words.collect();
        if program.ends_with("/env") && !args.is_empty() {
            args.retain(|word| word != "-S");
            program = args.remove(0);
        }
        args.push(own);
        return Ok((program, args));
    }
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let known = INTERPRETERS
        .iter()
        .find(|(known, _)| Some(*known) == suffix);
    match known {
        Some((_, program)) => Ok(((*program).to_owned(), vec![own])),
        None if meta.permissions().mode() & 0o111 != 0 => Ok((own, Vec::new())),
        None => refuse(
            "it has neither the run bit, nor a `#!` line, nor a suffix that says what runs it"
                .to_owned(),
            "make it runnable with `chmod +x`, or name the command: `toolcrib register -- PROGRAM FILE`",
        ),
    }
}

/// A path without the dots that say nothing.
fn clean(path: &Path) -> String {
    registered::absolute(path).to_string_lossy().into_owned()
}

fn variables(pairs: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut vars = BTreeMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        // The pair itself is not repeated: its value is nobody's business.
        let Some((name, value)) = pair.split_once('=') else {
            let message = format!("`--env` number {} is not NAME=VALUE", index + 1);
            return Err(
                Failure::new(ErrorCode::BadRequest, message).hint("write `--env API_KEY=…`")
            );
        };
        vars.insert(name.to_owned(), value.to_owned());
    }
    Ok(vars)
}

/// What was registered, for a person.
pub fn print(scene: &Scene, tool: &CustomToolView) {
    let printer = scene.printer;
    if printer.is_json() {
        printer.json(tool);
        return;
    }
    let style = if tool.status == "active" {
        GREEN
    } else {
        YELLOW
    };
    printer.line(format!(
        "{style}{}{style:#} {}  {}",
        tool.status,
        plain(&tool.name),
        plain(&tool.description)
    ));
    for warning in &tool.warnings {
        printer.note(format!("{YELLOW}warning{YELLOW:#} {}", plain(warning)));
    }
    match tool.status.as_str() {
        "active" => printer.hint(format!(
            "`{}` calls it, `{}` removes it",
            CommandLine::new("toolcrib call").operand(&tool.name),
            CommandLine::new("toolcrib unregister").operand(&tool.name)
        )),
        _ => printer.hint(format!(
            "`{}` starts it and makes it active",
            CommandLine::new("toolcrib validate")
                .operand(&tool.name)
                .switch("--activate")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_run_as_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, mode: u32| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let words = |path: &Path| {
            let (command, args) = interpreted(path).unwrap();
            let own = path.to_string_lossy().into_owned();
            let all = std::iter::once(command).chain(args);
            let all: Vec<String> = all.map(|word| word.replace(&own, "FILE")).collect();
            all.join(" ")
        };
        for (name, text, mode, wanted) in [
            ("a.py", "print(1)", 0o644, "python3 FILE"),
            ("a.js", "1", 0o644, "node FILE"),
            ("a.mjs", "1", 0o644, "node FILE"),
            ("a.sh", "echo", 0o644, "bash FILE"),
            ("b.py", "#!/usr/bin/env python3\n", 0o755, "FILE"),
            (
                "c.py",
                "#!/usr/bin/env python3.12\n",
                0o644,
                "python3.12 FILE",
            ),
            ("d", "#!/bin/bash -e\n", 0o644, "/bin/bash -e FILE"),
            (
                "e",
                "#!/usr/bin/env -S node --no-warnings\n",
                0o644,
                "node --no-warnings FILE",
            ),
            ("f", "\x7fELF", 0o755, "FILE"),
            ("g", "anything", 0o755, "FILE"),
        ] {
            assert_eq!(words(&file(name, text, mode)), wanted, "{name}");
        }
        assert!(interpreted(&file("h.txt", "x", 0o644)).is_err());
        assert!(interpreted(dir.path()).is_err());
        assert!(interpreted(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_bad_variable_is_not_repeated() {
        let failure = variables(&["s3cret".to_owned()]).unwrap_err();
        assert!(!format!("{failure:?}").contains("s3cret"));
        let vars = variables(&["A=b=c".to_owned(), "B=".to_owned()]).unwrap();
        assert_eq!(vars["A"], "b=c");
        assert_eq!(vars["B"], "");
    }
}
