//! Agents on the wire: which tools each sees and why not, and what its calls pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::selection::{SaidBy, SelectionLayer};
use toolcrib_core::{Access, Audit, Caller, MiddlewareTable, Tool, View};
use utoipa::ToSchema;

/// One agent, as far as whoever asks may know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    #[schema(example = "reviewer")]
    pub name: String,
    /// `primary`, or `subagent`: only sessions use it.
    #[schema(example = "primary")]
    pub mode: String,
    /// The names of the tools that it sees in lists, sorted.
    pub tools: Vec<String>,
    /// The other tools, and why it does not see them. Only for who keeps the crib, as everything below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<HiddenToolView>,
    /// What its calls pass besides what all calls pass: tables of the settings, in the order of the chain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<BTreeMap<String, Value>>)]
    pub middleware: Vec<BTreeMap<String, Value>>,
    /// Entries of `tools` and of `trusted_tool_namespaces` that no tool fits now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
}

/// A tool that an agent does not see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HiddenToolView {
    pub name: String,
    #[schema(example = "`tools` does not name it")]
    pub reason: String,
}

/// All agents that whoever asks may be, the default one first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentList {
    pub agents: Vec<AgentView>,
    pub count: usize,
}

impl AgentView {
    /// What the agent itself may know.
    pub fn own(view: &View) -> AgentView {
        let profile = view.profile();
        AgentView {
            name: profile.name().to_owned(),
            mode: profile.mode().as_str().to_owned(),
            tools: view.listed().map(|tool| tool.name().to_owned()).collect(),
            hidden: Vec::new(),
            middleware: Vec::new(),
            unmatched: Vec::new(),
        }
    }

    /// All there is to say of it, where `all` shows everything there is.
    pub fn whole(view: &View, all: &View) -> AgentView {
        let profile = view.profile();
        let hidden = all.tools().filter_map(|tool| {
            Some(HiddenToolView {
                name: tool.name().to_owned(),
                reason: reason(view, tool)?,
            })
        });
        let layers = profile.sees().layers().iter();
        AgentView {
            hidden: hidden.collect(),
            middleware: profile.listed().map(table).collect(),
            unmatched: layers.flat_map(|layer| unmatched(layer, all)).collect(),
            ..AgentView::own(view)
        }
    }
}

/// What a call of one agent passes, in the order of the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassView {
    #[schema(example = "reviewer")]
    pub agent: String,
    /// In words, one sentence each.
    pub passes: Vec<String>,
}

impl PassView {
    /// What a call of this tool would pass in this view.
    pub fn of(view: &View, tool: &Tool) -> PassView {
        let profile = view.profile();
        let settings = profile.settings();
        let mut caller = Caller::new("cli");
        caller.agent = profile.name().into();
        let limit = settings.output.limit(&caller);
        let timeout = tool.spec.time_limit(settings.default_timeout);
        let mut passes = vec![
            match settings.audit {
                Audit::BestEffort => "it is recorded".to_owned(),
                Audit::Required => {
                    "it is recorded, and refused where that can't be done".to_owned()
                }
            },
            match &tool.access {
                Access::Open => "it may run".to_owned(),
                Access::Untrusted { .. } => "it is denied: its project is not trusted".to_owned(),
                Access::NeedsGrant(_) => "it is denied: it needs a grant".to_owned(),
                Access::Off(error) => format!("it is refused: {}", error.message),
            },
            "its arguments must fit the input schema".to_owned(),
            format!(
                "at most {} bytes and {} lines of what it gives are handed over at once",
                limit.bytes, limit.lines
            ),
        ];
        if tool.spec.output_schema.is_some() {
            passes.push("what it gives must fit the output schema".to_owned());
        }
        passes.push("secrets that the tool was handed are hidden in what it gives".to_owned());
        passes.extend(profile.listed().map(|link| in_words(&table(link))));
        passes.push(format!("it ends after {} ms", timeout.as_millis()));
        PassView {
            agent: profile.name().to_owned(),
            passes,
        }
    }
}

/// A table of settings on one line: its name, then its parameters.
pub fn in_words(link: &BTreeMap<String, Value>) -> String {
    let name = link.get("name").and_then(Value::as_str).unwrap_or_default();
    let parameters = link.iter().filter(|(key, _)| *key != "name");
    let parameters: Vec<String> = parameters
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    match parameters.is_empty() {
        true => name.to_owned(),
        false => format!("{name}: {}", parameters.join(", ")),
    }
}

/// Why an agent does not see a tool in lists; nothing where it does.
fn reason(view: &View, tool: &Tool) -> Option<String> {
    if let Some(hiding) = view.profile().sees().hiding(tool) {
        return Some(hiding.to_string());
    }
    match tool.access {
        Access::Untrusted { .. } => Some("its project is not trusted".to_owned()),
        Access::Off(_) => Some("it is off until it is granted or set up".to_owned()),
        Access::Open | Access::NeedsGrant(_) => None,
    }
}

fn table(table: &MiddlewareTable) -> BTreeMap<String, Value> {
    let parameters = table.parameters.clone().into_iter();
    let name = ("name".to_owned(), table.name.clone().into());
    std::iter::once(name).chain(parameters).collect()
}

/// What of a layer fits no tool at all: most likely a slip of the pen.
fn unmatched(layer: &SelectionLayer, all: &View) -> Vec<String> {
    let where_said = match layer.said_by {
        SaidBy::User => "",
        SaidBy::Project => " (in the project's file)",
    };
    let patterns = layer.tools.iter().flatten();
    let patterns = patterns
        .filter(|pattern| !all.tools().any(|tool| pattern.matches(tool)))
        .map(|pattern| pattern.as_str());
    let namespaces = layer.namespaces.iter();
    let namespaces = namespaces
        .filter(|namespace| !all.tools().any(|tool| namespace.holds(&tool.module)))
        .map(|namespace| namespace.as_str());
    let all = patterns.chain(namespaces);
    all.map(|text| format!("{text}{where_said}")).collect()
}
