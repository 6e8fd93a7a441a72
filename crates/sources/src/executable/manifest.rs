//! `tool.json`: what the tool is, how its program is started and kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::permit::{SECRET, secret_name};
use toolcrib_core::{ErrorType, Mask, Problem, Retries, SourceKind};

use crate::Place;
use crate::directory::Apart;
use crate::fields::{Fields, Report};
use crate::options::{self, MAX_TIMEOUT_MS};
use crate::worker::{Blueprint, Keep};

pub const FIELDS: [&str; 24] = [
    "$schema",
    "name",
    "title",
    "description",
    "version",
    "command",
    "args",
    "workingDir",
    "env",
    "inputSchema",
    "outputSchema",
    "timeoutMs",
    "maxRetries",
    "retryDelayMs",
    "poolSize",
    "keepAlive",
    "tags",
    "aliases",
    "metadata",
    "icons",
    "_meta",
    "annotations",
    "permissions",
    "sandbox",
];
/// How often a program may be started again in a row.
const MAX_RETRIES: u64 = 10;
const MAX_RETRY_DELAY_MS: u64 = 60_000;
/// What all variables of one tool may take together.
const MAX_ENVIRONMENT: usize = 64 * 1_024;

/// How a secret is referred to.
pub const SECRET_HINT: &str =
    "write `secret://NAME` and nothing else; names take letters, digits, `_`, `-` and `.`";

/// Where what a manifest names is looked for.
pub struct Start<'a> {
    /// Relative paths start here.
    pub home: &'a Path,
    /// The program starts here, unless told otherwise.
    pub start: &'a Path,
    /// What is run where no command is named.
    pub program: Option<&'a Path>,
}

/// How a tool's program is started and kept.
pub struct Manifest {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    dir: PathBuf,
    vars: Vec<(String, String)>,
    /// Variables that hold secrets, and the names of those.
    pub secrets: Vec<(String, String)>,
    size: usize,
    keep: Keep,
    pub retries: Retries,
    /// The command as a person reads it.
    pub shown: String,
    /// What its processes do not see of the folder that they start in.
    pub hidden: Vec<PathBuf>,
}

/// The object in `tool.json`; an empty one where there is no such file.
pub fn parse(text: Option<&[u8]>, report: &mut Report) -> Option<Map<String, Value>> {
    let Some(text) = text else {
        return Some(Map::new());
    };
    let problem = |what: String, hint: &str| {
        Problem::error(SourceKind::Executable, ErrorType::Syntax, what).hint(hint)
    };
    match serde_json::from_slice(text) {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) => {
            let hint = "write {\"name\": \"my-tool\", \"command\": \"./program\"}";
            report.push(problem(
                "the file is JSON, but not an object".to_owned(),
                hint,
            ));
            None
        }
        Err(error) => {
            let said = error.to_string();
            let reason = said.split(" at line ").next().unwrap_or_default();
            let hint = "check this line for a missing or extra comma, quote or bracket; JSON has no comments";
            let told = problem(format!("the file is not valid JSON: {reason}"), hint);
            report.push(told.at(error.line(), error.column()));
            None
        }
    }
}

impl Manifest {
    /// Reads how the program is started. Nothing is looked up or opened: that happens when it starts.
    pub fn read(
        map: &Map<String, Value>,
        base: &Start,
        place: &Place,
        report: &mut Report,
    ) -> Option<Manifest> {
        let fields = Fields::new("", map);
        fields.unknown(&FIELDS, |field, what, hint| report.warn(field, what, hint));
        let home = base.home;
        let dir = match fields.text(report, "workingDir") {
            Some(named) => home.join(named),
            None => base.start.to_path_buf(),
        };
        let args = arguments(&fields, report);
        let (program, shown) = match fields.text(report, "command") {
            Some("") => {
                report.invalid(
                    "command",
                    "is empty",
                    "name the program, such as \"./tool.py\"",
                );
                return None;
            }
            Some(command) if command.contains('/') => {
                (home.join(command).into_os_string(), command.to_owned())
            }
            Some(command) => (command.into(), command.to_owned()),
            // It is there and no text, which was told.
            None if map.get("command").is_some_and(|value| !value.is_null()) => return None,
            None => match base.program {
                Some(program) => {
                    let name = program.file_name().unwrap_or_default();
                    (program.into(), name.to_string_lossy().into_owned())
                }
                None => {
                    report.invalid(
                        "command",
                        "is missing, and the folder has no one `tool.*` file to run",
                        "write \"command\": \"python3\", \"args\": [\"./program.py\"], or name the program `tool` with any suffix",
                    );
                    return None;
                }
            },
        };
        let shown = std::iter::once(shown.as_str())
            .chain(args.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ");
        let (vars, secrets) = variables(&fields, report);
        let mut manifest = Manifest::options(map);
        options_in_range(&fields, place, &mut manifest, report);
        manifest.program = program;
        manifest.args = args
            .into_iter()
            .map(|arg| from_home(arg, home, &dir))
            .collect();
        manifest.dir = dir;
        manifest.vars = vars;
        manifest.secrets = secrets;
        manifest.shown = shown.chars().take(300).collect();
        Some(manifest)
    }

    /// The options alone; how the program is started comes on top.
    fn options(map: &Map<String, Value>) -> Manifest {
        let number = |key: &str| map.get(key).and_then(Value::as_u64);
        let default = Retries::default();
        let max = number("maxRetries").unwrap_or(u64::from(default.max));
        let keep = match map.get("keepAlive").and_then(Value::as_bool) {
            Some(false) => Keep::Never,
            _ => Keep::Warm,
        };
        Manifest {
            program: OsString::new(),
            args: Vec::new(),
            dir: PathBuf::new(),
            vars: Vec::new(),
            secrets: Vec::new(),
            size: number("poolSize").unwrap_or(1).min(64) as usize,
            keep,
            retries: Retries {
                max: max.min(MAX_RETRIES) as u32,
                delay: number("retryDelayMs").map_or(default.delay, Duration::from_millis),
            },
            shown: String::new(),
            hidden: Vec::new(),
        }
    }

    /// The same for a program that starts in a folder which is not its own.
    #[must_use]
    pub fn in_a_foreign_folder(mut self) -> Manifest {
        let apart = Apart::of(&self.program, &self.args, &self.dir);
        let is_set = |name: &str| self.vars.iter().any(|(known, _)| known == name);
        if let Some((name, value)) = apart.var.filter(|(name, _)| !is_set(name)) {
            self.vars.push((name.to_owned(), value.to_owned()));
        }
        self.hidden = apart.hidden;
        self
    }

    /// How the program is started, without the secrets that it names. The values of its variables are hidden.
    pub fn blueprint(&self, name: &str) -> Blueprint {
        Blueprint {
            name: name.to_owned(),
            program: self.program.clone(),
            args: self.args.clone(),
            dir: self.dir.clone(),
            versions: None,
            vars: self.vars.clone(),
            size: self.size,
            keep: self.keep,
            retries: self.retries,
            secrets: Vec::new(),
            mask: Mask::of(self.vars.iter().map(|(_, value)| value.as_str())),
            greeting: None,
        }
    }

    /// Differs wherever the program would be started or kept in another way.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        add(self.program.as_encoded_bytes());
        add(self.dir.as_os_str().as_encoded_bytes());
        self.args.iter().for_each(|arg| add(arg.as_encoded_bytes()));
        for (name, value) in self.vars.iter().chain(&self.secrets) {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        let kept = (self.size, self.keep, self.retries);
        add(format!("{kept:?}").as_bytes());
        crate::hex(&hash.finalize()[..8])
    }
}

fn options_in_range(fields: &Fields, place: &Place, manifest: &mut Manifest, report: &mut Report) {
    fields.number(report, "maxRetries", 0, MAX_RETRIES);
    fields.number(report, "retryDelayMs", 0, MAX_RETRY_DELAY_MS);
    fields.count(report, "timeoutMs", MAX_TIMEOUT_MS);
    fields.flag(report, "keepAlive");
    let most = place.workers.limits().pool_size;
    if let Some(size) = fields.count(report, "poolSize", 64)
        && size > most as u64
    {
        report.warn(
            "poolSize",
            &format!("is more than the {most} that `max_pool_size` allows; {most} it is"),
            "lower it, or raise `max_pool_size` in your config.toml",
        );
        manifest.size = most;
    }
}

/// The program's arguments; an empty one is one too.
fn arguments(fields: &Fields, report: &mut Report) -> Vec<String> {
    let hint = "write \"args\": [\"…\"]";
    let items = match fields.get("args") {
        None => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            report.invalid(&fields.at("args"), "must be a list of strings", hint);
            return Vec::new();
        }
    };
    let mut args = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.as_str().filter(|text| !text.contains('\0')) {
            Some(text) => args.push(text.to_owned()),
            None => {
                let field = format!("{}[{index}]", fields.at("args"));
                report.invalid(&field, "must be a string without null bytes", hint);
            }
        }
    }
    args
}

/// What the tool's process gets beside the allow-list: variables with their values, and those that hold secrets with the
/// secrets' names.
pub type Variables = (Vec<(String, String)>, Vec<(String, String)>);

/// The variables that `env` names; what can't be one is told.
pub fn variables(fields: &Fields, report: &mut Report) -> Variables {
    let Some(map) = fields.object(report, "env") else {
        return Variables::default();
    };
    let mut vars = Vec::new();
    let mut secrets = Vec::new();
    for (name, value) in map {
        let field = format!("{}.{name}", fields.at("env"));
        if !options::is_variable(name) {
            report.invalid(
                &field,
                "can't be a variable's name",
                "take letters, digits and `_`",
            );
            continue;
        }
        let text = value.as_str().unwrap_or_default();
        if let Some((what, hint)) = super::variables::refused(name, text) {
            report.invalid(&field, &what, &hint);
            continue;
        }
        match value.as_str().filter(|text| !text.contains('\0')) {
            Some(text) if text.contains(SECRET) => match secret_name(text) {
                Some(secret) => secrets.push((name.clone(), secret.to_owned())),
                None => report.invalid(&field, "is not a reference to a secret", SECRET_HINT),
            },
            Some(text) => vars.push((name.clone(), text.to_owned())),
            None => report.invalid(&field, "must be a string", "put the value in quotes"),
        }
    }
    let size: usize = vars
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    if size > MAX_ENVIRONMENT {
        report.invalid(
            &fields.at("env"),
            &format!("holds {size} bytes, more than the {MAX_ENVIRONMENT} that a tool may have"),
            "put large values into a file and give its path",
        );
    }
    (vars, secrets)
}

/// An argument that names a file beside the manifest stays that file, wherever the program starts.
fn from_home(arg: String, home: &Path, dir: &Path) -> OsString {
    let relative = arg.starts_with("./") || arg.starts_with("../");
    if dir != home && relative {
        return home.join(arg).into_os_string();
    }
    arg.into()
}
