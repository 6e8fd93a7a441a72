//! The options that a tool takes in JSON, whatever kind it is: tags, limits, annotations, permissions, walls.

use std::time::Duration;

use serde_json::{Map, Value};
use toolcrib_core::options::Requirement;
use toolcrib_core::permit::limits::{MAX_CPU_PERCENT, MAX_MEMORY_MB};
use toolcrib_core::{
    Annotations, Json, Permissions, SandboxOptions, Schema, SchemaError, Spec, ToolName,
};

use crate::fields::{Fields, NAME_HINT, Report};
use crate::plugin::HostPattern;

/// No honest call takes longer than a day.
pub const MAX_TIMEOUT_MS: u64 = 24 * 60 * 60 * 1_000;

/// What `icons` and `_meta` of a tool may take each.
const MAX_LISTED: usize = 64 * 1_024;

const ANNOTATIONS: [&str; 5] = [
    "title",
    "readOnlyHint",
    "idempotentHint",
    "destructiveHint",
    "openWorldHint",
];
const PERMISSIONS: [&str; 6] = [
    "canReadFiles",
    "canWriteFiles",
    "canNetwork",
    "canExecuteCommands",
    "allowedEnvironmentVars",
    "required",
];
const SANDBOX: [&str; 6] = [
    "allowedPaths",
    "allowNetwork",
    "allowedHosts",
    "maxMemoryMB",
    "maxCpuPercent",
    "maxExecutionMs",
];

/// Reads every option into the spec.
pub fn read(fields: &Fields, spec: &mut Spec, report: &mut Report) {
    spec.tags = fields.texts(report, "tags");
    spec.aliases = aliases(fields, &spec.name, report);
    if let Some(metadata) = fields.object(report, "metadata") {
        spec.metadata = metadata.clone();
    }
    spec.title = fields.text(report, "title").map(str::to_owned);
    spec.icons = icons(fields, report);
    if let Some(meta) = fields.object(report, "_meta")
        && is_small(fields, "_meta", report)
    {
        spec.meta = Some(meta.clone().into());
    }
    if let Some(version) = fields.text(report, "version") {
        spec.version = Some(version.to_owned());
    }
    spec.timeout = fields
        .count(report, "timeoutMs", MAX_TIMEOUT_MS)
        .map(Duration::from_millis);
    if let Some(value) = fields.get("outputSchema") {
        let parsed = Schema::parse_result(value.clone());
        spec.output_schema = usable(parsed, &fields.at("outputSchema"), report);
    }
    if let Some(map) = fields.object(report, "annotations") {
        spec.annotations = annotations(&Fields::new(&fields.at("annotations"), map), report);
    }
    if let Some(map) = fields.object(report, "permissions") {
        spec.permissions = permissions(&Fields::new(&fields.at("permissions"), map), report);
    }
    if let Some(map) = fields.object(report, "sandbox") {
        spec.sandbox = sandbox(&Fields::new(&fields.at("sandbox"), map), report);
    }
}

/// MCP's icons: what they hold beside their source is for the client that draws them.
fn icons(fields: &Fields, report: &mut Report) -> Option<Json> {
    let value = fields.get("icons")?;
    let is_icon = |icon: &Value| icon.get("src").is_some_and(Value::is_string);
    let fits = value
        .as_array()
        .is_some_and(|icons| icons.iter().all(is_icon));
    if !fits {
        report.invalid(
            &fields.at("icons"),
            "must be a list of objects, each with a string `src`",
            "write \"icons\": [{\"src\": \"https://…/icon.png\", \"mimeType\": \"image/png\"}]",
        );
        return None;
    }
    is_small(fields, "icons", report).then(|| value.clone().into())
}

/// Agents are sent the list of all tools, so none of them may make it large.
fn is_small(fields: &Fields, key: &str, report: &mut Report) -> bool {
    let size = fields.get(key).map_or(0, |value| value.to_string().len());
    let small = size <= MAX_LISTED;
    if !small {
        report.invalid(
            &fields.at(key),
            &format!("takes {size} bytes; {MAX_LISTED} are taken"),
            "shorten it; an icon may be a URL instead of the image itself",
        );
    }
    small
}

/// Checks the schema of arguments and says at which place of it something is wrong.
pub fn schema(value: &Value, field: &str, report: &mut Report) -> Option<Schema> {
    usable(Schema::parse(value.clone()), field, report)
}

fn usable(parsed: Result<Schema, SchemaError>, field: &str, report: &mut Report) -> Option<Schema> {
    match parsed {
        Ok(schema) => Some(schema),
        Err(error) => {
            let place = if error.path.is_empty() {
                String::new()
            } else {
                format!("at `{}` ", error.path)
            };
            report.invalid(
                field,
                &format!("is not a usable schema: {place}{}", error.reason),
                "write JSON Schema 2020-12, such as {\"type\": \"object\", \"properties\": {\"name\": {\"type\": \"string\"}}}",
            );
            None
        }
    }
}

fn aliases(fields: &Fields, name: &ToolName, report: &mut Report) -> Vec<String> {
    let mut aliases = fields.texts(report, "aliases");
    for (index, alias) in aliases.iter().enumerate() {
        if let Err(error) = ToolName::new(alias) {
            let field = format!("{}[{index}]", fields.at("aliases"));
            report.invalid(&field, &format!("can't be a name: {error}"), NAME_HINT);
        }
    }
    aliases.retain(|alias| alias != name.as_str());
    aliases
}

fn annotations(fields: &Fields, report: &mut Report) -> Annotations {
    fields.unknown(&ANNOTATIONS, |field, what, hint| {
        report.warn(field, what, hint)
    });
    Annotations {
        title: fields.text(report, "title").map(str::to_owned),
        read_only_hint: fields.flag(report, "readOnlyHint"),
        idempotent_hint: fields.flag(report, "idempotentHint"),
        destructive_hint: fields.flag(report, "destructiveHint"),
        open_world_hint: fields.flag(report, "openWorldHint"),
    }
}

/// A misspelt permission or wall is an error: what a person will be asked to grant must be what was meant.
fn permissions(fields: &Fields, report: &mut Report) -> Permissions {
    fields.unknown(&PERMISSIONS, |field, what, hint| {
        report.invalid(field, what, hint)
    });
    let mut required = Vec::new();
    for (index, word) in fields.texts(report, "required").iter().enumerate() {
        match serde_json::from_value::<Requirement>(Value::from(word.as_str())) {
            Ok(requirement) => required.push(requirement),
            Err(_) => {
                let field = format!("{}[{index}]", fields.at("required"));
                report.invalid(
                    &field,
                    "is not a known permission",
                    "take from \"read\", \"write\", \"network\", \"exec\"",
                );
            }
        }
    }
    let allowed_environment_vars = fields.texts(report, "allowedEnvironmentVars");
    for (index, name) in allowed_environment_vars.iter().enumerate() {
        if !is_variable(name) {
            let field = format!("{}[{index}]", fields.at("allowedEnvironmentVars"));
            report.invalid(
                &field,
                "can't be a variable's name",
                "write the name alone, such as \"API_TOKEN\"",
            );
        }
    }
    let permissions = Permissions {
        can_read_files: fields.flag(report, "canReadFiles"),
        can_write_files: fields.flag(report, "canWriteFiles").unwrap_or_default(),
        can_network: fields.flag(report, "canNetwork").unwrap_or_default(),
        can_execute_commands: fields
            .flag(report, "canExecuteCommands")
            .unwrap_or_default(),
        allowed_environment_vars,
        required,
    };
    permissions.expanded()
}

fn sandbox(fields: &Fields, report: &mut Report) -> SandboxOptions {
    fields.unknown(&SANDBOX, |field, what, hint| {
        report.invalid(field, what, hint)
    });
    let allowed_hosts = fields.texts(report, "allowedHosts");
    host_patterns(&allowed_hosts, &fields.at("allowedHosts"), report);
    SandboxOptions {
        allowed_paths: fields.texts(report, "allowedPaths"),
        allow_network: fields.flag(report, "allowNetwork"),
        allowed_hosts,
        max_memory_mb: fields.count(report, "maxMemoryMB", MAX_MEMORY_MB),
        max_cpu_percent: fields
            .count(report, "maxCpuPercent", MAX_CPU_PERCENT.into())
            .and_then(|percent| u32::try_from(percent).ok()),
        max_execution_ms: fields.count(report, "maxExecutionMs", MAX_TIMEOUT_MS),
    }
}

/// Reads a list of hosts.
pub fn host_patterns(list: &[String], field: &str, report: &mut Report) -> Vec<HostPattern> {
    let mut patterns = Vec::new();
    for (index, text) in list.iter().enumerate() {
        match HostPattern::parse(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => report.invalid(
                &format!("{field}[{index}]"),
                &error.to_string(),
                HostPattern::HINT,
            ),
        }
    }
    patterns
}

/// Could an environment variable have this name?
pub fn is_variable(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(fits)
}

/// Says which placeholders no property of the schema describes.
pub fn undescribed<'s>(
    slots: impl Iterator<Item = &'s str>,
    schema: &Schema,
    field: &str,
    report: &mut Report,
) {
    let described: Vec<&str> = schema.properties().map(|(name, _)| name.as_str()).collect();
    let mut told = Map::new();
    for slot in slots.filter(|slot| !described.contains(slot)) {
        if told.insert(slot.to_owned(), Value::Null).is_none() {
            let hint = match crate::fields::nearest(slot, &described) {
                Some(meant) => format!("did you mean `{{{{{meant}}}}}`?"),
                None => format!(
                    "describe `{slot}` in `inputSchema.properties`, so that an agent knows of it"
                ),
            };
            report.warn(
                field,
                &format!("uses `{{{{{slot}}}}}`, which `inputSchema` does not describe"),
                &hint,
            );
        }
    }
}
