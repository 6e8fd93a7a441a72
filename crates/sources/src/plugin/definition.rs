//! Makes one tool of one entry in a plugin file's `tools`.

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolcrib_core::{
    Access, ErrorType, Network, Permit, Reads, Run, SourceKind, Spec, Tool, ToolName,
};

use super::file_read::FileRead;
use super::http::Http;
use super::shell::Shell;
use super::{file_read, http, shell};
use crate::fields::{Fields, NAME_HINT, Report, nearest};
use crate::options::{self, MAX_TIMEOUT_MS};
use crate::permits::Wanted;
use crate::{Origin, Place, permits};

/// Some clients refuse longer names.
const MAX_MCP_NAME: usize = 64;
/// How much of a command or URL a person is shown.
const MAX_DECLARED: usize = 300;
const HANDLERS: [&str; 3] = ["shell", "http", "file-read"];
const TOOL_FIELDS: [&str; 16] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "handler",
    "tags",
    "aliases",
    "metadata",
    "icons",
    "_meta",
    "version",
    "timeoutMs",
    "outputSchema",
    "annotations",
    "permissions",
    "sandbox",
];

/// What all tools of one file have in common.
pub struct Collection<'a> {
    pub name: &'a str,
    pub version: Option<&'a str>,
    /// The file's text, hashed once for all its tools.
    pub text: Sha256,
    pub origin: &'a Origin<'a>,
    pub place: &'a Arc<Place>,
}

/// What a tool's handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shell,
    Http,
    FileRead,
}

/// A tool's handler, ready to run.
struct Ready {
    kind: Kind,
    /// What it asks for beyond what the tool declares.
    asks: Permit,
    /// What it does, for a person.
    does: String,
    timeout: Option<Duration>,
    run: Arc<dyn Run>,
}

impl Collection<'_> {
    /// The tool at `index`, or the problems that keep it from being one.
    pub fn tool(
        &self,
        index: usize,
        entry: &Value,
        seen: &mut HashSet<ToolName>,
        report: &mut Report,
    ) -> Option<Arc<Tool>> {
        let path = format!("tools[{index}]");
        let Some(map) = entry.as_object() else {
            report.invalid(
                &path,
                "must be an object",
                "write {\"name\": …, \"description\": …, \"inputSchema\": …, \"handler\": …}",
            );
            return None;
        };
        let fields = Fields::new(&path, map);
        let name = name(&fields, seen, report);
        fields.unknown(&TOOL_FIELDS, |field, what, hint| {
            report.warn(field, what, hint)
        });
        let hint = "say in one sentence what the tool does; agents choose by it";
        let description = fields.required_text(report, "description", hint);
        let hint = "write \"inputSchema\": {\"type\": \"object\", \"properties\": {}}";
        let schema = fields
            .required(report, "inputSchema", hint)
            .and_then(|value| options::schema(value, &fields.at("inputSchema"), report));
        // A stand-in lets the rest be read, so that all problems of a tool are told at once.
        let stand_in = || ToolName::new("unnamed").ok();
        let complete = name.is_some() && schema.is_some();
        let mut spec = Spec::new(
            name.or_else(stand_in)?,
            description.unwrap_or_default(),
            schema.unwrap_or_else(toolcrib_core::Schema::any_object),
        );
        spec.version = self.version.map(str::to_owned);
        options::read(&fields, &mut spec, report);
        let handler_path = fields.at("handler");
        let hint = "write \"handler\": {\"type\": \"shell\", \"command\": …}, or `http` with `url`, or `file-read` with `basePath`";
        fields.required(report, "handler", hint);
        let handler = fields.object(report, "handler")?;
        let ready = self.handler(&Fields::new(&handler_path, handler), &spec, report)?;
        if report.failed || !complete {
            return None;
        }
        spec.timeout = spec.timeout.or(ready.timeout);
        let tool = self.finished(spec, ready);
        let missing = match tool.access {
            Access::Open => tool.run.missing(),
            _ => None,
        };
        if let Some(missing) = missing {
            report.absent(&format!("{handler_path}.command"), &missing);
        }
        let mcp_name = tool.mcp_name();
        if mcp_name.len() > MAX_MCP_NAME {
            let length = mcp_name.len();
            let what = format!(
                "makes `{mcp_name}`, {length} characters, and some clients take only {MAX_MCP_NAME}"
            );
            let hint = format!(
                "shorten the name to {} characters",
                tool.name().len() + MAX_MCP_NAME - length
            );
            report.warn(&fields.at("name"), &what, &hint);
        }
        Some(Arc::new(tool))
    }

    fn handler(&self, fields: &Fields, spec: &Spec, report: &mut Report) -> Option<Ready> {
        let hint = "take \"shell\", \"http\" or \"file-read\"";
        let kind = fields.required_text(report, "type", hint)?;
        let mut unknown = |known: &[&str]| {
            fields.unknown(known, |field, what, hint| report.warn(field, what, hint))
        };
        match kind {
            "shell" => unknown(&shell::FIELDS),
            "http" => unknown(&http::FIELDS),
            "file-read" => unknown(&file_read::FIELDS),
            other => {
                let meant =
                    nearest(other, &HANDLERS).map(|meant| format!("did you mean \"{meant}\"?"));
                let shown: String = other.chars().take(60).collect();
                report.invalid(
                    &fields.at("type"),
                    &format!("is `{shown}`, which is not a kind of handler"),
                    &meant.unwrap_or(hint.to_owned()),
                );
                return None;
            }
        }
        let timeout = fields
            .count(report, "timeout", MAX_TIMEOUT_MS)
            .map(Duration::from_millis);
        let place = self.place;
        let (kind, timeout, asks, run): (_, _, _, Arc<dyn Run>) = match kind {
            "shell" => {
                let shell = Shell::read(fields, spec, self.origin, place, report)?;
                (
                    Kind::Shell,
                    timeout.or(Some(Duration::from_secs(30))),
                    shell.asks(),
                    Arc::new(shell),
                )
            }
            "http" => {
                let http = Http::read(fields, spec, place, report)?;
                (
                    Kind::Http,
                    timeout.or(Some(Duration::from_secs(10))),
                    http.asks(),
                    Arc::new(http),
                )
            }
            _ => {
                let file_read = FileRead::read(fields, spec, place, report)?;
                (
                    Kind::FileRead,
                    timeout,
                    file_read.asks(),
                    Arc::new(file_read),
                )
            }
        };
        Some(Ready {
            kind,
            asks,
            does: does(kind, fields),
            timeout,
            run,
        })
    }

    /// What the tool asks for. Paths are found by looking at the disk, which must not happen before trust.
    fn wanted(&self, spec: &Spec, ready: &Ready) -> Wanted {
        let mut declared = Permit::declared(&spec.permissions, &spec.sandbox);
        if ready.kind != Kind::Shell {
            // Only a program can run others or take memory, and the hosts of `http` are its URL's.
            declared = Permit {
                network: Network::None,
                exec: false,
                memory_mb: None,
                cpu_percent: None,
                ..declared
            };
        }
        let declared = declared.join(&ready.asks);
        let reads = Reads::declared(&spec.permissions, &spec.sandbox);
        let mut wanted = permits::wanted(&declared, &reads, &self.origin.access, self.place);
        if ready.kind == Kind::FileRead {
            // Where it reads a part of its folder only, each file is looked at when it is called.
            let Wanted { asks, reads } = &mut wanted;
            asks.read.retain(|path| !reads.touches(path));
        }
        wanted
    }

    fn finished(&self, spec: Spec, ready: Ready) -> Tool {
        let Wanted { asks, reads } = self.wanted(&spec, &ready);
        let hash = self.hash(spec.name.as_str());
        let declares = std::iter::once(ready.does).chain(permits::describe(&asks));
        let mut tool = Tool {
            declares: declares.collect(),
            asks,
            reads,
            scope: Some(self.origin.scope),
            file: Some(self.origin.file.to_path_buf()),
            module: format!("plugin.{}", self.name),
            plugin_name: Some(self.name.to_owned()),
            ..Tool::new(
                spec,
                SourceKind::Plugin,
                self.origin.access.clone(),
                hash,
                ready.run,
            )
        };
        tool.confined = self.place.walls.are_up(&tool);
        permits::judge(&mut tool, self.place);
        tool
    }

    /// Two tools with equal hashes behave alike: the same text, and the same entry of it.
    fn hash(&self, name: &str) -> Arc<str> {
        let digest = self
            .text
            .clone()
            .chain_update([0])
            .chain_update(name)
            .finalize();
        let mut hex = String::with_capacity(64);
        for byte in digest {
            // Writing into a string can't fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex.into()
    }
}

/// What the handler itself does, as a person reads it before saying yes.
fn does(kind: Kind, fields: &Fields) -> String {
    let text = |key: &str| -> String {
        let text = fields.get(key).and_then(Value::as_str);
        text.unwrap_or_default()
            .chars()
            .take(MAX_DECLARED)
            .collect()
    };
    match kind {
        Kind::Shell => format!("runs `{}`", text("command")),
        Kind::Http => format!("calls `{}`", text("url")),
        Kind::FileRead => format!("reads files below `{}`", text("basePath")),
    }
}

fn name(fields: &Fields, seen: &mut HashSet<ToolName>, report: &mut Report) -> Option<ToolName> {
    let text = fields.required_text(report, "name", NAME_HINT)?;
    report.tool = Some(text.to_owned());
    match ToolName::new(text) {
        Err(error) => {
            report.invalid(
                &fields.at("name"),
                &format!("can't be a name: {error}"),
                NAME_HINT,
            );
            None
        }
        Ok(name) if !seen.insert(name.clone()) => {
            let what = format!("is `{name}`, as an earlier tool in this file");
            report.error(
                ErrorType::NameClash,
                &fields.at("name"),
                &what,
                "rename one of the two",
            );
            None
        }
        Ok(name) => Some(name),
    }
}
