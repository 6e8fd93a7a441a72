//! The small surface: a search and two ways to call what it finds stand for all tools, so that a model pays for those
//! that it needs.
//!
//! A call through it is a call of its target, on the one path of all calls: `call.rs` only takes the target out.
//! Why: `docs/design/0017-tool-search.md`.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use toolcrib_core::{Loading, Surface, View, tokens};

use super::Mcp;
use crate::serve::auth::Who;
use crate::serve::convert;

pub const SEARCH: &str = "search_tools";
pub const CALL: &str = "call_tool";
pub const CALL_READ: &str = "call_tool_read";

/// About what the small surface costs with its instructions and nothing pinned, at most.
pub const SMALL_SURFACE: usize = 1_300;

const UNKNOWN: &str = " If `search_tools` is in the list, most tools are not: search before you say that there is no tool for something.";

/// The index of namespaces in the instructions takes no more tokens than this.
const MAX_INDEX: usize = 800;

/// Which agents were handed a search the last time: an agent near the limit is not handed one thing and another by turns.
#[derive(Debug, Default)]
pub struct Handed(Mutex<HashMap<Arc<str>, bool>>);

impl Mcp {
    /// Is whoever asks handed the small surface?
    pub fn is_searched(&self, view: &View, who: &Who) -> bool {
        let surface = surface(view, who);
        if surface != Surface::Auto {
            return surface == Surface::Search;
        }
        let mut handed = self.handed.0.lock().unwrap_or_else(PoisonError::into_inner);
        let did = handed.get(who.agent()).copied().unwrap_or_default();
        let does = surface.searches(view.list_tokens(), did);
        if does != did {
            handed.insert(who.agent().into(), does);
        }
        does
    }

    /// What the crib says about itself to a model.
    pub fn instructions(&self, who: &Who) -> String {
        let view = self.served.view(who);
        let mut text = convert::instructions(&view);
        if self.is_searched(&view, who) {
            text.push_str(&index(&view));
        } else if self.served.crib.loading() != Loading::Done
            && surface(&view, who) == Surface::Auto
        {
            // Nobody knows yet how many there are.
            text.push_str(UNKNOWN);
        }
        text
    }
}

/// What whoever asks wants to be handed.
fn surface(view: &View, who: &Who) -> Surface {
    who.surface().unwrap_or(view.profile().surface().surface)
}

/// The tools of the list: those that are pinned, and the three that stand for all others. Sorted by name.
pub fn tools(view: &View) -> Vec<Value> {
    let pins = view.profile().surface();
    let pinned = view.listed().filter(|tool| pins.pins(tool));
    let mut tools: Vec<Value> = pinned.map(|tool| convert::tool(tool)).collect();
    tools.extend(own());
    tools.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    tools
}

fn own() -> [Value; 3] {
    let object = json!({"type": "object", "description": "The tool's own arguments"});
    let call = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "description": "The tool's name, as search_tools told it"},
        "arguments": object,
    }});
    [
        json!({
            "name": SEARCH,
            "title": "Search tools",
            "description": "Finds tools by what you want to do. Search before you say that there is no tool for something.",
            "inputSchema": {"type": "object", "required": ["query"], "properties": {
                "query": {"type": "string", "description": "What to do, in words, or a name; select:a,b gives tools by their names"},
                "namespace": {"type": "string", "description": "Only tools of this namespace"},
                "limit": {"type": "integer", "description": "How many, 1 to 20", "default": 5},
                "detail": {"type": "string", "enum": ["names", "brief", "full"], "description": "How much to say of each"},
            }},
            "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
        }),
        json!({
            "name": CALL_READ,
            "title": "Call a tool that only reads",
            "description": "Calls a tool that search_tools marks readOnly; refuses all others.",
            "inputSchema": call,
            "annotations": {"readOnlyHint": true},
        }),
        json!({
            "name": CALL,
            "title": "Call a tool",
            "description": "Calls any tool that search_tools finds.",
            "inputSchema": call,
            "annotations": {"readOnlyHint": false, "destructiveHint": true},
        }),
    ]
}

/// What there is to search for: namespaces, how many tools each has, and as many of their names as there is room for.
fn index(view: &View) -> String {
    let mut text = format!(
        " {} tools are here, and few of them are in the list: find the others with `{SEARCH}`, call what it finds with `{CALL_READ}` \
         or `{CALL}`, and search before you say that there is no tool for something. Namespaces:",
        view.listed().count()
    );
    let with_names = [4, 2, 1]
        .into_iter()
        .map(|each| namespaces(view, each).concat());
    let mut fitting = with_names.filter(|lines| tokens::estimate(lines) <= MAX_INDEX);
    if let Some(lines) = fitting.next() {
        return text + &lines;
    }
    let lines = namespaces(view, 0);
    let mut left = MAX_INDEX;
    for (place, line) in lines.iter().enumerate() {
        match left.checked_sub(tokens::estimate(line)) {
            Some(rest) => left = rest,
            None => {
                text.push_str(&format!("\nand {} more", lines.len() - place));
                break;
            }
        }
        text.push_str(line);
    }
    text
}

/// A line for each namespace, with so many names of its tools.
fn namespaces(view: &View, names: usize) -> Vec<String> {
    let mut by_module: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in view.listed() {
        by_module.entry(&tool.module).or_default().push(tool.name());
    }
    let line = |(module, tools): (&str, Vec<&str>)| {
        let more = if tools.len() > names { ", …" } else { "" };
        match tools[..names.min(tools.len())].join(", ").as_str() {
            "" => format!("\n{module} ({})", tools.len()),
            named => format!("\n{module} ({}): {named}{more}", tools.len()),
        }
    };
    by_module.into_iter().map(line).collect()
}
