//! `search_tools`: what an agent that lists few tools asks for the others.

use serde_json::Value;
use toolcrib_core::search::Query;
use toolcrib_core::{CallError, ErrorCode, Json, Object, View};

use crate::wire::{Detail, SearchView};

const DEFAULT_LIMIT: u64 = 5;
const MAX_LIMIT: u64 = 20;
/// So many tools are given by name at once.
const MAX_SELECTED: usize = 10;
const SELECT: &str = "select:";

/// What the arguments of a search find in this view.
pub fn find(view: &View, arguments: &Object) -> Result<Json, CallError> {
    let text = match arguments.get("query") {
        Some(Value::String(text)) => text,
        _ => {
            return Err(refused(
                "`query` must be text: what you want to do, or a name",
            ));
        }
    };
    let limit = match arguments.get("limit") {
        None | Some(Value::Null) => DEFAULT_LIMIT,
        Some(limit) => limit
            .as_u64()
            .filter(|limit| *limit > 0)
            .ok_or_else(|| refused("`limit` must be a number from 1 to 20"))?
            .min(MAX_LIMIT),
    };
    let detail = match arguments.get("detail") {
        None | Some(Value::Null) => Detail::default(),
        Some(said) => said
            .as_str()
            .and_then(Detail::named)
            .ok_or_else(|| refused("`detail` must be `names`, `brief` or `full`"))?,
    };
    let namespace = match arguments.get("namespace") {
        None | Some(Value::Null) => None,
        Some(Value::String(namespace)) if namespace.is_empty() => None,
        Some(Value::String(namespace)) => Some(namespace.as_str()),
        Some(_) => return Err(refused("`namespace` must be text")),
    };
    let found = match text.trim().strip_prefix(SELECT) {
        Some(names) => selected(view, names),
        None => SearchView::of(
            view,
            &Query {
                text,
                limit: limit as usize,
                namespace,
            },
            detail,
        ),
    };
    let value = serde_json::to_value(&found);
    value.map(Json::from).map_err(|error| {
        CallError::new(
            ErrorCode::Internal,
            format!("what was found can't be written: {error}"),
        )
    })
}

/// The tools of these names, in this order, in full.
fn selected(view: &View, names: &str) -> SearchView {
    let names = names.split([',', ' ']).map(str::trim);
    let names: Vec<&str> = names
        .filter(|name| !name.is_empty())
        .take(MAX_SELECTED)
        .collect();
    let mut tools = Vec::new();
    let mut missing = Vec::new();
    for name in names {
        let query = Query {
            text: name,
            limit: 1,
            namespace: None,
        };
        match view
            .search(&query)
            .hits
            .into_iter()
            .next()
            .filter(|hit| hit.exact)
        {
            Some(hit) => tools.push(hit.tool),
            None => missing.push(name),
        }
    }
    let mut found = SearchView::named(tools.iter().map(|tool| &**tool));
    if !missing.is_empty() {
        let said: String = missing.join(", ").chars().take(300).collect();
        found.message = Some(format!("no tool is called: {said}"));
    }
    found
}

fn refused(message: &str) -> CallError {
    CallError::new(ErrorCode::InvalidArguments, message)
}
