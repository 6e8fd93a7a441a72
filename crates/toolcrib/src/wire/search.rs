//! What a search found, on the wire.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib_core::search::{Found, Hit, Query};
use toolcrib_core::{Tool, View};
use utoipa::ToSchema;

/// The tools that fit, best first; or that none does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchView {
    pub matches: Vec<MatchView>,
    /// How many tools have anything in common with what was asked for.
    pub total: usize,
    /// Why there is no match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where there is no match: the names that come nearest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<String>,
    /// Where there is no match: where tools come from, and how many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<NamespaceView>,
}

/// A tool that fits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MatchView {
    pub name: String,
    /// The name with its arguments, in one line; where the schema is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Set where it is known that a call changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Orders the matches of one search, and says nothing across searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

/// Where some tools come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamespaceView {
    pub name: String,
    pub tools: usize,
}

/// How much is said about each match.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// The first three in full, the others in brief.
    #[default]
    Some,
    Names,
    Brief,
    Full,
}

/// So many of the first matches are told in full.
const IN_FULL: usize = 3;
/// So many names are told where nothing matches.
const NEAREST: usize = 3;
const NAMESPACES: usize = 30;
/// No description in brief is longer.
const MAX_BRIEF: usize = 160;
const MAX_SIGNATURE: usize = 240;

const NO_MATCH: &str =
    "no good match: there is probably no tool for this. Other words or a `namespace` may find one.";

impl Detail {
    pub fn named(name: &str) -> Option<Detail> {
        match name {
            "names" => Some(Detail::Names),
            "brief" => Some(Detail::Brief),
            "full" => Some(Detail::Full),
            _ => None,
        }
    }
}

impl SearchView {
    /// What a view has for a query.
    pub fn of(view: &View, query: &Query<'_>, detail: Detail) -> SearchView {
        let found = view.search(query);
        match found.is_good {
            true => SearchView::found(&found, detail),
            false => SearchView::nothing(view, &found),
        }
    }

    /// These tools, as if they had been found.
    pub fn named<'a>(tools: impl Iterator<Item = &'a Tool>) -> SearchView {
        let matches: Vec<MatchView> = tools.map(MatchView::full).collect();
        SearchView {
            total: matches.len(),
            matches,
            message: None,
            nearest: Vec::new(),
            namespaces: Vec::new(),
        }
    }

    fn found(found: &Found, detail: Detail) -> SearchView {
        let hits = found.hits.iter().enumerate();
        let one = |(place, hit): (usize, &Hit)| {
            let tool = &hit.tool;
            let made = match detail {
                Detail::Full => MatchView::full(tool),
                Detail::Some if place < IN_FULL => MatchView::full(tool),
                Detail::Some | Detail::Brief => MatchView::brief(tool),
                Detail::Names => MatchView::name_of(tool),
            };
            MatchView {
                score: Some((f64::from(hit.score) * 10.0).round() / 10.0),
                ..made
            }
        };
        SearchView {
            matches: hits.map(one).collect(),
            total: found.total,
            message: None,
            nearest: Vec::new(),
            namespaces: Vec::new(),
        }
    }

    fn nothing(view: &View, found: &Found) -> SearchView {
        let nearest = found.hits.iter().take(NEAREST);
        let namespaces = view.modules().iter().take(NAMESPACES);
        SearchView {
            matches: Vec::new(),
            total: found.total,
            message: Some(NO_MATCH.to_owned()),
            nearest: nearest.map(|hit| hit.tool.name().to_owned()).collect(),
            namespaces: namespaces
                .map(|module| NamespaceView {
                    name: module.name.clone(),
                    tools: module.tools,
                })
                .collect(),
        }
    }
}

impl MatchView {
    fn name_of(tool: &Tool) -> MatchView {
        MatchView {
            name: tool.name().to_owned(),
            signature: None,
            description: None,
            module: None,
            read_only: None,
            score: None,
            input_schema: None,
        }
    }

    fn brief(tool: &Tool) -> MatchView {
        MatchView {
            signature: Some(signature(tool)),
            description: Some(brief(&tool.spec.description)),
            ..MatchView::of(tool)
        }
    }

    fn full(tool: &Tool) -> MatchView {
        MatchView {
            description: Some(tool.spec.description.clone()),
            input_schema: Some(tool.spec.input_schema.value().clone()),
            ..MatchView::of(tool)
        }
    }

    fn of(tool: &Tool) -> MatchView {
        MatchView {
            module: Some(tool.module.clone()),
            read_only: tool.spec.annotations.only_reads().then_some(true),
            ..MatchView::name_of(tool)
        }
    }
}

/// `get_weather(city: string, days?: integer)`.
fn signature(tool: &Tool) -> String {
    let schema = &tool.spec.input_schema;
    let required = schema.value()["required"].as_array();
    let is_required = |name: &str| {
        let names = required.into_iter().flatten();
        names.filter_map(Value::as_str).any(|other| other == name)
    };
    let parameters = schema.properties().map(|(name, property)| {
        let optional = if is_required(name) { "" } else { "?" };
        let kind = property["type"].as_str().unwrap_or("any");
        format!("{name}{optional}: {kind}")
    });
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    cut(&format!("{}({parameters})", tool.name()), MAX_SIGNATURE)
}

/// The first sentence.
fn brief(description: &str) -> String {
    let line = description.trim().lines().next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |end| end + 1);
    cut(&line[..end], MAX_BRIEF)
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
