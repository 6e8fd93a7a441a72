//! What is known of an executable tool becomes a tool.

use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolcrib_core::permit::secret_name;
use toolcrib_core::{LastWord, Permit, Reads, Retries, Schema, SourceKind, Spec, Tool, ToolName};

use super::Home;
use super::manifest::{self, Variables};
use super::run::{Executable, Which};
use crate::Place;
use crate::confine::Workshop;
use crate::fields::{Fields, NAME_HINT, Report};
use crate::permits::Wanted;
use crate::{options, permits};

/// The most tools that one program may have.
const MAX_TOOLS: usize = 256;
/// What one tool of several has of its own, whatever `tool.json` says of all.
const OWN: [&str; 6] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "aliases",
];

/// All that is known of one tool: what the program said, overruled by what `tool.json` says.
pub struct Definition<'a> {
    home: &'a Home,
    known: Map<String, Value>,
    which: Which,
    /// Where the fields stand, for problems.
    path: String,
    /// Has its program no other tool?
    alone: bool,
    /// Is another tool of its program called like the file? Then what was granted to that name is that tool's.
    outnamed: bool,
}

impl<'a> Definition<'a> {
    /// A tool that may not be asked: its manifest, or its file's name.
    pub fn unasked(home: &'a Home, manifest: &Map<String, Value>) -> Definition<'a> {
        let mut known = manifest.clone();
        known
            .entry("name")
            .or_insert_with(|| home.stem.clone().into());
        known
            .entry("description")
            .or_insert("A program; what it does is known once it may run.".into());
        known
            .entry("inputSchema")
            .or_insert(serde_json::json!({"type": "object"}));
        Definition {
            home,
            known,
            which: Which::Only,
            path: String::new(),
            alone: true,
            outnamed: false,
        }
    }

    /// A tool of which only this much is known.
    pub fn declared(home: &'a Home, name: &str, description: Option<&str>) -> Definition<'a> {
        let description = description.unwrap_or("What it does is known once it may run.");
        let known = serde_json::json!({
            "name": name, "description": description, "inputSchema": {"type": "object"},
        });
        Definition {
            home,
            known: known.as_object().cloned().unwrap_or_default(),
            which: Which::Only,
            path: String::new(),
            alone: true,
            outnamed: false,
        }
    }

    /// A tool of which all is known and remembered.
    pub fn remembered(home: &'a Home, known: Map<String, Value>) -> Definition<'a> {
        Definition {
            which: Which::asked(&home.stem),
            home,
            known,
            path: String::new(),
            alone: true,
            outnamed: false,
        }
    }

    /// The tools of a program that was asked, or whose manifest says all.
    pub fn all(
        home: &'a Home,
        manifest: &Map<String, Value>,
        hello: &Value,
        report: &mut Report,
    ) -> Vec<Definition<'a>> {
        let said = hello.as_object().cloned().unwrap_or_default();
        let Some(list) = said.get("tools").and_then(Value::as_array) else {
            let mut known = said;
            known.extend(manifest.clone());
            known
                .entry("name")
                .or_insert_with(|| home.stem.clone().into());
            return vec![Definition {
                home,
                known,
                which: Which::Only,
                path: String::new(),
                alone: true,
                outnamed: false,
            }];
        };
        if list.len() > MAX_TOOLS {
            report.invalid(
                "initialize.tools",
                &format!("has {} tools; {MAX_TOOLS} are taken", list.len()),
                "make several programs of it",
            );
        }
        let is_file = |one: &Value| one.get("name").and_then(Value::as_str) == Some(&home.stem);
        let has_file = list.iter().any(is_file);
        let mut definitions = Vec::new();
        for (index, one) in list.iter().take(MAX_TOOLS).enumerate() {
            let path = format!("initialize.tools[{index}]");
            let outnamed = has_file && !is_file(one);
            let Some(one) = one.as_object() else {
                report.invalid(
                    &path,
                    "must be an object",
                    "give name, description, inputSchema",
                );
                continue;
            };
            let mut known = one.clone();
            let alone = list.len() == 1;
            let shared = manifest
                .iter()
                .filter(|(key, _)| alone || !OWN.contains(&key.as_str()));
            known.extend(shared.map(|(key, value)| (key.clone(), value.clone())));
            if let Some(version) = said.get("version") {
                known.entry("version").or_insert_with(|| version.clone());
            }
            let name = one.get("name").and_then(Value::as_str).map(str::to_owned);
            definitions.push(Definition {
                home,
                known,
                which: name.map_or(Which::Only, Which::Named),
                path,
                alone,
                outnamed,
            });
        }
        definitions
    }

    /// The tool, or what keeps it from being one. `shown` is what it runs, for a person.
    pub fn tool(
        &self,
        shown: &str,
        retries: Retries,
        workshop: Option<&Workshop>,
        place: &Arc<Place>,
        report: &mut Report,
    ) -> Option<Arc<Tool>> {
        let mut spec = self.spec(report)?;
        spec.retries = retries;
        let spec_name = spec.name.as_str().to_owned();
        let run = |pool| Executable {
            pool,
            tool: self.which.clone(),
            name: spec_name.clone(),
            place: place.clone(),
        };
        let mut declared = Permit::declared(&spec.permissions, &spec.sandbox).join(&self.secrets());
        declared.install = self.home.packages.is_some();
        let reads = Reads::declared(&spec.permissions, &spec.sandbox);
        let Wanted { asks, reads } = permits::wanted(&declared, &reads, &self.home.access, place);
        let runs = (!shown.is_empty()).then(|| format!("runs `{shown}`"));
        let hash = self.hash(spec.name.as_str());
        let (source, access) = (self.home.source, self.home.access.clone());
        let mut tool = Tool {
            declares: runs
                .into_iter()
                .chain(permits::describe(&asks))
                .chain(self.packages())
                .collect(),
            asks,
            reads,
            scope: self.home.scope,
            file: self.home.file.clone(),
            module: self.home.module.clone(),
            ..Tool::new(spec, source, access, hash, Arc::new(run(None)))
        };
        if let Some(content) = &self.home.content {
            tool.content = content.as_str().into();
        }
        tool.confined = place.walls.are_up(&tool);
        let by_file = self.home.source == SourceKind::Executable && !self.outnamed;
        let file = by_file.then_some(self.home.stem.as_str());
        permits::judge_as(&mut tool, file, place);
        if let Some(workshop) = workshop {
            let pool = workshop.pool(&tool, place);
            if self.alone {
                pool.called(tool.name());
            }
            tool.run = Arc::new(run(Some(pool)));
        }
        Some(Arc::new(tool))
    }

    /// The variables that it sets for its process, and those that hold secrets. What can't be set is told, and then there
    /// is no tool.
    pub fn variables(&self, report: &mut Report) -> Variables {
        report.tool = self
            .known
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned);
        manifest::variables(&Fields::new(&self.path, &self.known), report)
    }

    /// What it says of itself, or nothing where that does not do.
    fn spec(&self, report: &mut Report) -> Option<Spec> {
        let fields = Fields::new(&self.path, &self.known);
        report.tool = None;
        let text = fields.required_text(report, "name", NAME_HINT)?;
        report.tool = Some(text.to_owned());
        let name = match ToolName::new(text) {
            Ok(name) => name,
            Err(error) => {
                let what = format!("can't be a name: {error}");
                report.invalid(&fields.at("name"), &what, NAME_HINT);
                return None;
            }
        };
        let hint = "say in one sentence what the tool does; agents choose by it";
        let description = fields.required_text(report, "description", hint);
        let hint = "give \"inputSchema\": {\"type\": \"object\", \"properties\": {}}";
        let schema = fields
            .required(report, "inputSchema", hint)
            .and_then(|value| options::schema(value, &fields.at("inputSchema"), report));
        let mut spec = Spec::new(
            name,
            description.unwrap_or_default(),
            schema.unwrap_or_else(Schema::any_object),
        );
        options::read(&fields, &mut spec, report);
        spec.last_word = last_word(self.known.get("checksArguments"));
        (!report.failed).then_some(spec)
    }

    /// Which packages would be installed, in words.
    fn packages(&self) -> Option<String> {
        let packages = self.home.packages.as_ref()?;
        Some(format!("needs the packages {packages}"))
    }

    /// The secrets that its file names.
    fn secrets(&self) -> Permit {
        let vars = self.known.get("env").and_then(Value::as_object);
        let values = vars.into_iter().flat_map(Map::values);
        let named = values.filter_map(Value::as_str);
        Permit {
            env: named
                .filter(|text| secret_name(text).is_some())
                .map(str::to_owned)
                .collect(),
            ..Permit::default()
        }
    }

    fn hash(&self, name: &str) -> Arc<str> {
        let known = Value::Object(self.known.clone()).to_string();
        let digest = Sha256::new()
            .chain_update(&self.home.hash)
            .chain_update([0])
            .chain_update(name)
            .chain_update([0])
            .chain_update(known)
            .finalize();
        crate::hex(&digest).into()
    }
}

/// Which arguments the program checks itself: all, or those of these names.
fn last_word(said: Option<&Value>) -> LastWord {
    match said {
        Some(Value::Bool(true)) => LastWord::Tool,
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            LastWord::ToolOn(names.map(str::to_owned).collect())
        }
        _ => LastWord::Schema,
    }
}
