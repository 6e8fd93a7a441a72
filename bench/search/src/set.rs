//! Tools and queries of one set, and a crib that has these tools.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_core::{
    Access, BoxFuture, Call, CallResult, ChainSettings, Crib, Outcome, OutputId, Outputs, Page,
    Profiles, Rank, Run, Schema, SourceKey, SourceKind, Spec, Spool, Tool, ToolName, Update, Whole,
};

pub struct Set {
    pub name: String,
    pub tools: usize,
    /// Each query with the labels of the tools that fit.
    pub queries: Vec<(String, Vec<String>)>,
    pub crib: Crib,
    pub made: Vec<Arc<Tool>>,
    /// What the set calls a tool, by the name that it got.
    labels: HashMap<String, String>,
}

impl Set {
    pub fn read(folder: &Path) -> Option<Set> {
        let lines = |file: &str| -> Option<Vec<Value>> {
            let text = std::fs::read_to_string(folder.join(file)).ok()?;
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            lines.map(|line| serde_json::from_str(line).ok()).collect()
        };
        let (described, queries) = (lines("tools.jsonl")?, lines("queries.jsonl")?);
        let mut labels = HashMap::new();
        let mut made = Vec::new();
        for row in &described {
            let tool = tool(row, &labels)?;
            labels.insert(tool.name().to_owned(), row["name"].as_str()?.to_owned());
            made.push(Arc::new(tool));
        }
        let crib = crib(vec![update("set", made.clone())]);
        let queries = queries.iter().filter_map(|row| {
            let relevant = row["relevant"].as_array()?.iter();
            let relevant: Vec<String> = relevant
                .filter_map(|name| Some(name.as_str()?.to_owned()))
                .collect();
            (!relevant.is_empty()).then(|| Some((row["query"].as_str()?.to_owned(), relevant)))?
        });
        Some(Set {
            name: folder.file_name()?.to_string_lossy().into_owned(),
            tools: made.len(),
            queries: queries.collect(),
            crib,
            made,
            labels,
        })
    }

    pub fn label(&self, name: &str) -> String {
        self.labels.get(name).cloned().unwrap_or_default()
    }
}

/// A tool as an upstream server would bring it.
fn tool(row: &Value, taken: &HashMap<String, String>) -> Option<Tool> {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let server = text("server");
    let own = match text("tool") {
        "" => text("name"),
        own => own,
    };
    let whole = match server {
        "" => own.to_owned(),
        server => format!("{server}_{own}"),
    };
    let clean = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    let mut name: String = whole.chars().map(clean).take(60).collect();
    while taken.contains_key(&name) || ToolName::new(&name).is_err() {
        name.push('_');
    }
    let mut schema = row["input_schema"].clone();
    plain_types(&mut schema);
    let schema = Schema::parse(schema).unwrap_or_else(|_| Schema::any_object());
    let mut spec = Spec::new(ToolName::new(&name).ok()?, text("description"), schema);
    spec.tags
        .extend(Some(text("category").to_owned()).filter(|tag| !tag.is_empty()));
    let mut tool = Tool::new(
        spec,
        SourceKind::Registered,
        Access::Open,
        row.to_string(),
        Arc::new(Nothing),
    );
    tool.module = match server {
        "" => "registered".to_owned(),
        server => format!("mcp.{}", server.chars().map(clean).collect::<String>()),
    };
    Some(tool)
}

/// Some sets write types as Python has them, which no client would send.
fn plain_types(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::String(kind)) = map.get_mut("type") {
                let plain = match kind.as_str() {
                    "dict" => "object",
                    "float" => "number",
                    "tuple" | "list" => "array",
                    "any" => "string",
                    other => other,
                };
                *kind = plain.to_owned();
            }
            map.values_mut().for_each(plain_types);
        }
        Value::Array(items) => items.iter_mut().for_each(plain_types),
        _ => {}
    }
}

pub fn update(key: &str, tools: Vec<Arc<Tool>>) -> Update {
    Update {
        key: SourceKey(key.into()),
        rank: Rank::Registered,
        file: None,
        tools,
        problems: Vec::new(),
    }
}

pub fn crib(updates: Vec<Update>) -> Crib {
    let settings = ChainSettings::new(Duration::from_secs(1));
    let crib = Crib::new(Arc::new(Nothing), || 0, Profiles::everybody(settings));
    crib.apply(updates);
    crib
}

/// A description without a tool behind it.
pub fn changed(tool: &Tool, number: usize) -> Tool {
    let mut changed = tool.clone();
    changed.spec.description += &format!(" Changed {number} times {}", json!(number));
    changed.hash = format!("{number}").into();
    changed
}

/// Does nothing, and keeps nothing.
pub struct Nothing;

impl Run for Nothing {
    fn run<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, CallResult> {
        Box::pin(async { Ok(Outcome::text("")) })
    }
}

impl Outputs for Nothing {
    fn keep<'a>(&'a self, _: &'a str, _: &'a [u8]) -> BoxFuture<'a, io::Result<Whole>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::StorageFull.into())))
    }

    fn spool<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Box<dyn Spool>>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::StorageFull.into())))
    }

    fn read<'a>(
        &'a self,
        _: &'a str,
        _: &'a OutputId,
        _: u64,
        _: usize,
    ) -> BoxFuture<'a, io::Result<Page>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
    }

    fn remove<'a>(&'a self, _: &'a str, _: &'a OutputId) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
    }
}
