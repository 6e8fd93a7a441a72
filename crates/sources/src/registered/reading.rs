//! A registration as JSON: read field by field, so that every mistake is named, and written back.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use toolcrib_core::store::{CustomTool, EnvVars};
use toolcrib_core::{Problem, Schema, Severity, SourceKind, Spec, ToolName};

use super::manifest;
use crate::Place;
use crate::executable::manifest::FIELDS;
use crate::fields::{Fields, NAME_HINT, Report};
use crate::options;

/// What stands for the value of a variable in every answer; sent back, it leaves the value as it is.
pub const HIDDEN: &str = "***";

/// How a path is put right that starts nowhere.
const PATH_HINT: &str = "write the path in full: there is no project here that it could start at";

/// What is read into a registration.
pub enum RegistrationKind<'a> {
    /// A new one.
    New,
    /// Changes to this one; `null` takes a field back to what it is without being said.
    Change(&'a CustomTool),
}

/// A registration that was read, and what is odd about it.
pub struct Read {
    pub tool: CustomTool,
    pub warnings: Vec<Problem>,
}

/// Reads a body. Nothing is started; what the program itself has to say is left empty.
pub fn read(
    body: &Map<String, Value>,
    into: &RegistrationKind,
    default_timeout_ms: u64,
    place: &Place,
) -> Result<Read, Vec<Problem>> {
    let mut report = Report::without_file(SourceKind::Registered);
    let known: Vec<&str> = FIELDS.into_iter().filter(|one| *one != "$schema").collect();
    let given = Fields::new("", body);
    given.unknown(&known, |field, what, hint| {
        report.invalid(field, what, hint);
    });
    let mut map = match into {
        RegistrationKind::New => Map::new(),
        RegistrationKind::Change(tool) => {
            let name = body.get("name").filter(|name| !name.is_null());
            if name.is_some_and(|name| *name != tool.name.as_str()) {
                let hint = "register it again under the other name, then remove this one";
                report.invalid("name", "can't be changed", hint);
            }
            written(tool)
        }
    };
    for (key, value) in body.iter().filter(|(key, _)| known.contains(&key.as_str())) {
        match value {
            Value::Null if key == "name" || key == "command" => {}
            Value::Null => {
                map.remove(key);
            }
            value => {
                map.insert(key.clone(), value.clone());
            }
        }
    }
    reveal(&mut map, into, &mut report);
    make_absolute(&mut map, place, &mut report);
    let tool = take(&map, default_timeout_ms, place, &mut report);
    let failed = report.failed;
    let mut problems = report.finish();
    // A field that two look at is reported once.
    problems.dedup_by(|later, first| later.message == first.message);
    match tool {
        Some(tool) if !failed => Ok(Read {
            tool: carried(tool, into),
            warnings: problems,
        }),
        _ => {
            problems.retain(|problem| problem.severity == Severity::Error);
            Err(problems)
        }
    }
}

/// What a change does not touch.
fn carried(mut tool: CustomTool, into: &RegistrationKind) -> CustomTool {
    if let RegistrationKind::Change(before) = into {
        tool.id = before.id.clone();
        tool.name = before.name.clone();
        tool.status = before.status;
        tool.error_message = before.error_message.clone();
        tool.health = before.health;
        tool.last_health_check_ms = before.last_health_check_ms;
        tool.content_hash = before.content_hash.clone();
        tool.created_ms = before.created_ms;
        tool.updated_ms = before.updated_ms;
        tool.revision = before.revision;
    }
    tool
}

fn take(
    map: &Map<String, Value>,
    default_timeout_ms: u64,
    place: &Place,
    report: &mut Report,
) -> Option<CustomTool> {
    let fields = Fields::new("", map);
    let name = fields.required_text(report, "name", NAME_HINT);
    let name = name.and_then(|text| match ToolName::new(text) {
        Ok(name) => Some(name),
        Err(error) => {
            report.invalid("name", &format!("can't be a name: {error}"), NAME_HINT);
            None
        }
    });
    let hint = "name the program, such as \"python3\" or \"./tools/weather\"";
    let command = fields.required_text(report, "command", hint);
    if command.is_some() {
        manifest(map, place, report);
    }
    let description = fields.text(report, "description").unwrap_or_default();
    let version = fields.text(report, "version").unwrap_or_default();
    let input_schema = fields.get("inputSchema");
    if let Some(value) = input_schema {
        options::schema(value, "inputSchema", report);
    }
    // Of a name that is none the other fields are still worth a look.
    let any = || ToolName::new("unnamed").ok();
    let mut spec = Spec::new(name.clone().or_else(any)?, "", Schema::any_object());
    options::read(&fields, &mut spec, report);
    let mut tool = CustomTool::new(name.as_ref().map_or("", ToolName::as_str), command?);
    let number = |key: &str| map.get(key).and_then(Value::as_u64);
    let small = |key: &str| number(key).and_then(|number| u32::try_from(number).ok());
    tool.description = description.trim().to_owned();
    tool.version = version.to_owned();
    tool.input_schema = input_schema.cloned().unwrap_or(Value::Null);
    tool.output_schema = fields.get("outputSchema").cloned();
    tool.timeout_ms = number("timeoutMs").unwrap_or(default_timeout_ms);
    tool.max_retries = small("maxRetries").unwrap_or(tool.max_retries);
    tool.retry_delay_ms = number("retryDelayMs").unwrap_or(tool.retry_delay_ms);
    tool.pool_size = small("poolSize").unwrap_or(tool.pool_size);
    tool.keep_alive = map
        .get("keepAlive")
        .and_then(Value::as_bool)
        .unwrap_or(true);
    tool.tags = spec.tags;
    tool.aliases = spec.aliases;
    tool.metadata = spec.metadata;
    for (key, kept) in [
        ("annotations", &mut tool.annotations),
        ("permissions", &mut tool.permissions),
        ("sandbox", &mut tool.sandbox),
    ] {
        *kept = fields.get(key).cloned();
    }
    let args = map.get("args").and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(Value::as_str);
    tool.args = args.map(str::to_owned).collect();
    let dir = map.get("workingDir").and_then(Value::as_str);
    tool.working_dir = dir.map(str::to_owned);
    let vars = map
        .get("env")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let vars = vars.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    tool.env = EnvVars(vars.collect());
    Some(tool)
}

/// Puts the values back that an answer had hidden.
fn reveal(map: &mut Map<String, Value>, into: &RegistrationKind, report: &mut Report) {
    let Some(Value::Object(vars)) = map.get_mut("env") else {
        return;
    };
    for (name, value) in vars.iter_mut().filter(|(_, value)| **value == HIDDEN) {
        let before = match into {
            RegistrationKind::Change(tool) => tool.env.0.get(name),
            RegistrationKind::New => None,
        };
        match before {
            Some(kept) => *value = kept.as_str().into(),
            None => {
                let shown: String = name.chars().take(60).collect();
                let what = format!("is `{HIDDEN}`, which means a stored value, and there is none");
                report.invalid(&format!("env.{shown}"), &what, "give the value itself");
            }
        }
    }
}

/// A registration is there in every project, so what it names by a relative path is settled now: from the root of the
/// project it is registered in.
fn make_absolute(map: &mut Map<String, Value>, place: &Place, report: &mut Report) {
    let root = place.project.as_deref();
    let mut settle = |field: &str, value: &mut Value| {
        let Some(text) = value.as_str().filter(|text| Path::new(text).is_relative()) else {
            return;
        };
        match root {
            Some(root) => *value = below(root, text).to_string_lossy().into(),
            None => report.invalid(field, "is a relative path", PATH_HINT),
        }
    };
    if let Some(command) = map.get_mut("command")
        && command.as_str().is_some_and(|text| text.contains('/'))
    {
        settle("command", command);
    }
    if let Some(dir) = map.get_mut("workingDir")
        && dir.as_str().is_some_and(|text| !text.is_empty())
    {
        settle("workingDir", dir);
    }
    let sandbox = map.get_mut("sandbox").and_then(Value::as_object_mut);
    let paths = sandbox.and_then(|sandbox| sandbox.get_mut("allowedPaths")?.as_array_mut());
    for (index, path) in paths.into_iter().flatten().enumerate() {
        settle(&format!("sandbox.allowedPaths[{index}]"), path);
    }
    let Some(Value::Array(args)) = map.get_mut("args") else {
        return;
    };
    // The first that is no option is an interpreter's program, if such a file is there.
    let first = args
        .iter()
        .position(|arg| arg.as_str().is_some_and(|text| !text.starts_with('-')));
    for (index, arg) in args.iter_mut().enumerate() {
        let Some(text) = arg.as_str() else { continue };
        let said = text.starts_with("./") || text.starts_with("../");
        let script = Some(index) == first
            && !text.is_empty()
            && root.is_some_and(|root| root.join(text).is_file());
        if said || script {
            settle(&format!("args[{index}]"), arg);
        }
        // A script is the file that it is now, whatever its path leads to later.
        if Some(index) == first {
            let file = arg.as_str().map(Path::new);
            let file = file.filter(|file| file.is_absolute() && file.is_file());
            let real = file.and_then(|file| file.canonicalize().ok());
            if let Some(real) = real.as_deref().and_then(Path::to_str) {
                *arg = real.into();
            }
        }
    }
}

/// `./a` from here, without the dot that says nothing.
fn below(root: &Path, path: &str) -> PathBuf {
    absolute(&root.join(path))
}

/// A path without `.`, and without `..` where its folder is there: a confined process does not see what lies in between.
/// What it names itself may be a link, and stays one.
pub fn absolute(path: &Path) -> PathBuf {
    let parts = path.components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    let winds = path.components().any(|part| part == Component::ParentDir);
    let folder = path.parent().filter(|_| winds);
    match (
        folder.and_then(|folder| folder.canonicalize().ok()),
        path.file_name(),
    ) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// A registration as the fields of `tool.json`. What only its program knows and has not said yet is left out.
pub fn written(tool: &CustomTool) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    put("name", tool.name.as_str().into());
    put("command", tool.command.as_str().into());
    put("args", json!(tool.args));
    put("timeoutMs", tool.timeout_ms.into());
    put("maxRetries", tool.max_retries.into());
    put("retryDelayMs", tool.retry_delay_ms.into());
    put("poolSize", tool.pool_size.into());
    put("keepAlive", tool.keep_alive.into());
    put("tags", json!(tool.tags));
    put("aliases", json!(tool.aliases));
    put("metadata", Value::Object(tool.metadata.clone()));
    put("env", json!(tool.env.0));
    if !tool.description.is_empty() {
        put("description", tool.description.as_str().into());
    }
    if !tool.version.is_empty() {
        put("version", tool.version.as_str().into());
    }
    if !tool.input_schema.is_null() {
        put("inputSchema", tool.input_schema.clone());
    }
    if let Some(dir) = &tool.working_dir {
        put("workingDir", dir.as_str().into());
    }
    for (key, value) in [
        ("outputSchema", &tool.output_schema),
        ("annotations", &tool.annotations),
        ("permissions", &tool.permissions),
        ("sandbox", &tool.sandbox),
    ] {
        if let Some(value) = value {
            put(key, value.clone());
        }
    }
    map
}
