//! Starts a registration's program to see whether it is what it is said to be, and fills in what it alone knows.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolcrib_core::grant::REGISTERED;
use toolcrib_core::store::CustomTool;
use toolcrib_core::words::counted;
use toolcrib_core::{Access, Permit, Problem, Severity, SourceKind};

use super::{Naming, content_hash, manifest, recipe, wanted, written};
use crate::Place;
use crate::denied::Lacking;
use crate::executable::definition::Definition;
use crate::executable::run::one_of;
use crate::executable::{Home, warned};
use crate::fields::Report;
use crate::worker::AT_MOST;
use crate::{options, permits};

/// Beyond the handshake's own limit: starting, and ending what was started.
const MARGIN: Duration = Duration::from_secs(10);

/// What an examination gave.
#[derive(Debug, Clone)]
pub struct Examination {
    /// The registration, with what the program said where it said nothing itself.
    pub tool: CustomTool,
    /// What it asks for beyond the default.
    pub asks: Permit,
    /// Why it is not valid; none when it is.
    pub errors: Vec<String>,
    /// What is odd, and stands as it is stored.
    pub warnings: Vec<String>,
}

impl Examination {
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// What a program may do while it is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Yes {
    /// What it declares: who examines it is about to register it, which grants that.
    Declared,
    /// What was granted to it before.
    Granted,
}

impl Yes {
    /// The same as a call would have.
    async fn permit(self, tool: &CustomTool, naming: Naming, place: &Place) -> Permit {
        let looked_at = tool.clone();
        let content = tokio::task::spawn_blocking(move || content_hash(&looked_at)).await;
        let granted = {
            let grants = place.grants.borrow();
            grants.for_tool(REGISTERED, &tool.name, &content.unwrap_or_default())
        };
        let permit = match self {
            // What has no name yet was granted nothing.
            Yes::Declared if naming == Naming::Unnamed => wanted(tool, place).asks,
            Yes::Declared => wanted(tool, place).asks.join(&granted),
            Yes::Granted => granted,
        };
        permits::located(&permit, place)
    }

    /// What to do about what the walls kept a program from.
    fn remedy(self, lacking: &Lacking, tool: &CustomTool) -> String {
        let kept = format!("the sandbox kept it from {}", lacking.words());
        match (self, lacking.is_exec()) {
            (Yes::Granted, _) => lacking.hint(&tool.name).to_string(),
            (Yes::Declared, true) => format!(
                "{kept}; if it should, register it with `--exec`, or with \"permissions\": {{\"canExecuteCommands\": true}}"
            ),
            (Yes::Declared, false) => format!(
                "{kept}; if it should, declare that in \"permissions\" and \"sandbox\" when you register it"
            ),
        }
    }
}

/// Starts the program behind walls, hears what it says of itself, and ends it.
pub async fn examine(tool: &CustomTool, yes: Yes, place: &Arc<Place>) -> Examination {
    let mut found = Examination {
        tool: tool.clone(),
        asks: Permit::default(),
        errors: Vec::new(),
        warnings: Vec::new(),
    };
    let mut report = Report::without_file(SourceKind::Registered);
    match said(tool, yes, Naming::ByName, place, &mut report).await {
        Ok(Some(said)) => complete(&mut found, &said, &mut report),
        Ok(None) => {}
        Err(error) => found.errors.push(error),
    }
    if found.errors.is_empty() && !report.failed {
        found
            .warnings
            .extend(will_start_others(tool, yes, place).await);
        found.asks = usable(&found.tool, place, &mut report).unwrap_or_default();
    }
    for problem in report.finish() {
        match problem.severity {
            Severity::Error => found.errors.push(with_hint(&problem)),
            Severity::Warning | Severity::Note => found.warnings.push(with_hint(&problem)),
        }
    }
    if found.is_valid() {
        let tool = found.tool.clone();
        let hashed = tokio::task::spawn_blocking(move || content_hash(&tool));
        found.tool.content_hash = hashed.await.unwrap_or_default();
    }
    found
}

/// The name that a program gives itself, for whoever registers it without one.
pub async fn described_name(tool: &CustomTool, place: &Arc<Place>) -> Result<String, Vec<String>> {
    let mut report = Report::without_file(SourceKind::Registered);
    let said = said(tool, Yes::Declared, Naming::Unnamed, place, &mut report)
        .await
        .map_err(|error| vec![error])?;
    let problems = report.finish();
    match said
        .as_ref()
        .and_then(|said| said.get("name"))
        .and_then(Value::as_str)
    {
        Some(name) => Ok(name.to_owned()),
        None if problems.is_empty() => {
            Err(vec!["its answer to `initialize` has no `name`".to_owned()])
        }
        None => Err(problems.iter().map(with_hint).collect()),
    }
}

/// What the program says of the tool; nothing where the report says why it can't be asked.
async fn said(
    tool: &CustomTool,
    yes: Yes,
    naming: Naming,
    place: &Arc<Place>,
    report: &mut Report<'_>,
) -> Result<Option<Value>, String> {
    let Some(manifest) = manifest(&written(tool), place, report).filter(|_| !report.failed) else {
        return Ok(None);
    };
    let permit = yes.permit(tool, naming, place).await;
    let recipe = recipe(tool, &manifest, &permit, naming, place);
    // The handshake has a clock of its own, and ends before this.
    let limit = place.workers.limits().handshake * AT_MOST + MARGIN;
    let hello = match tokio::time::timeout(limit, place.workers.try_out(&recipe)).await {
        Ok(Ok(hello)) => hello,
        Ok(Err(fault)) => {
            let lacking = recipe.held(&place.launcher).and_then(|held| {
                let told = fault.lacking(&tool.name, place.directory(), &held);
                told.or_else(|| Lacking::other_program(&recipe.starts_other()?, &held))
            });
            let why = format!("the program can't be used: {}", fault.message());
            return Err(match lacking {
                Some(lacking) => format!("{}; {}", why.trim_end(), yes.remedy(&lacking, tool)),
                None => why,
            });
        }
        Err(_) => {
            return Err(format!(
                "the program did not start and end within {} s",
                limit.as_secs()
            ));
        }
    };
    match hello.get("tools").and_then(Value::as_array) {
        None => Ok(Some(hello)),
        Some(tools) => match one_of(&hello, &tool.name) {
            Some(one) => {
                let mut one = one.clone();
                if let (Some(one), Some(version)) = (one.as_object_mut(), hello.get("version")) {
                    one.entry("version").or_insert_with(|| version.clone());
                }
                Ok(Some(one))
            }
            None => {
                let names = tools.iter().filter_map(|one| one.get("name")?.as_str());
                let names: Vec<&str> = names.take(10).collect();
                Err(format!(
                    "the program has {} and none named `{}`; register it under one of these names: {}",
                    counted(tools.len(), "tool"),
                    tool.name,
                    names.join(", ")
                ))
            }
        },
    }
}

/// What is to be said of a script that starts other programs, and may not.
async fn will_start_others(tool: &CustomTool, yes: Yes, place: &Arc<Place>) -> Option<String> {
    let mut report = Report::without_file(SourceKind::Registered);
    let manifest = manifest(&written(tool), place, &mut report)?;
    let permit = yes.permit(tool, Naming::ByName, place).await;
    let recipe = recipe(tool, &manifest, &permit, Naming::ByName, place);
    let (what, hint) = warned(&recipe, &tool.name, place)?;
    Some(format!("{what}; {hint}"))
}

/// Fills in what is missing and compares the rest. What is stored stands.
fn complete(found: &mut Examination, said: &Value, report: &mut Report) {
    let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::trim);
    let Examination { tool, warnings, .. } = found;
    let mut differs = |what: &str| {
        warnings.push(format!(
            "the program says another {what} than the stored one; the stored one is used"
        ));
    };
    if let Some(name) = text("name").filter(|name| *name != tool.name) {
        let name: String = name.chars().take(64).collect();
        differs(&format!("name (`{name}`)"));
    }
    for (key, kept) in [
        ("description", &mut tool.description),
        ("version", &mut tool.version),
    ] {
        match text(key) {
            Some(said) if kept.is_empty() => *kept = said.to_owned(),
            Some(said) if said != kept.as_str() => differs(key),
            _ => {}
        }
    }
    if let Some(schema) = said.get("inputSchema").filter(|schema| !schema.is_null()) {
        options::schema(schema, "initialize.inputSchema", report);
        match &tool.input_schema {
            Value::Null => tool.input_schema = schema.clone(),
            kept if kept != schema => differs("inputSchema"),
            _ => {}
        }
    }
}

/// Would it make a tool? Gives what that asks for.
fn usable(tool: &CustomTool, place: &Arc<Place>, report: &mut Report) -> Option<Permit> {
    let mut known = written(tool);
    let manifest = manifest(&known, place, report)?;
    known.remove("env");
    let home = Home {
        source: SourceKind::Registered,
        file: None,
        scope: None,
        module: String::new(),
        access: Access::Open,
        stem: tool.name.clone(),
        hash: String::new(),
        content: None,
        packages: None,
    };
    let definition = Definition::remembered(&home, known);
    let tool = definition.tool(&manifest.shown, manifest.retries, None, place, report)?;
    Some(tool.asks.clone())
}

fn with_hint(problem: &Problem) -> String {
    match problem.hint.is_empty() {
        true => problem.message.clone(),
        false => format!("{}: {}", problem.message, problem.hint),
    }
}
