//! What the front makes of an agent's view: once, when first asked for.

use std::collections::HashMap;

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::View;

use super::headers::{ParamHeader, param_headers};
use super::older;
use super::revision::Revision;
use crate::serve::convert::{self, TTL_MS};

struct NewestList(Bytes);

struct OlderList(Bytes);

/// The arguments of each tool that travel in headers too.
struct HeaderIndex(HashMap<String, Vec<ParamHeader>>);

/// The result of `tools/list` as bytes.
pub fn tools(view: &View, revision: Revision) -> &Bytes {
    match revision.is_stateless() {
        true => &view.derived(newest_list).0,
        false => &view.derived(older_list).0,
    }
}

/// The arguments of a tool that travel in headers too.
pub fn headers_of<'a>(view: &'a View, tool: &str) -> &'a [ParamHeader] {
    let index = view.derived(in_headers);
    index.0.get(tool).map_or(&[], Vec::as_slice)
}

fn newest_list(view: &View) -> NewestList {
    let mut result = result(convert::tools(view));
    result["resultType"] = super::COMPLETE.into();
    NewestList(Bytes::from(result.to_string()))
}

fn older_list(view: &View) -> OlderList {
    let tools = convert::tools(view).into_iter().map(older::tool);
    OlderList(Bytes::from(result(tools.collect()).to_string()))
}

fn result(tools: Vec<Value>) -> Value {
    json!({"tools": tools, "ttlMs": TTL_MS, "cacheScope": "private"})
}

fn in_headers(view: &View) -> HeaderIndex {
    let tools = view.tools().map(|tool| {
        let headers = param_headers(tool.spec.input_schema.value());
        (tool.name().to_owned(), headers)
    });
    HeaderIndex(tools.filter(|(_, headers)| !headers.is_empty()).collect())
}
