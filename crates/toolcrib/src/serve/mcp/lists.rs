//! What the front knows of the tools: the only file of it that looks into the catalog.
//!
//! What is derived from the catalog is made once per version of it, when first asked for.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_core::{Catalog, Crib, Tool};

use super::headers::{ParamHeader, param_headers};
use super::older;
use super::revision::Revision;
use crate::serve::PerVersion;
use crate::serve::convert::{self, TTL_MS};

#[derive(Default)]
pub struct Lists {
    newest: PerVersion<Bytes>,
    older: PerVersion<Bytes>,
    headers: PerVersion<HashMap<String, Vec<ParamHeader>>>,
}

impl Lists {
    /// The result of `tools/list` as bytes.
    pub fn tools(&self, crib: &Crib, revision: Revision) -> Bytes {
        let catalog = crib.tools();
        let made = match revision.is_stateless() {
            true => self.newest.of(&catalog, || {
                let mut result = result(convert::tools(&catalog));
                result["resultType"] = super::COMPLETE.into();
                Bytes::from(result.to_string())
            }),
            false => self.older.of(&catalog, || {
                let tools = convert::tools(&catalog).into_iter().map(older::tool);
                Bytes::from(result(tools.collect()).to_string())
            }),
        };
        made.1.clone()
    }

    /// Calls `check` with the arguments of a tool that travel in headers too, if it has any.
    pub fn with_headers<T>(
        &self,
        crib: &Crib,
        tool: &str,
        check: impl FnOnce(&[ParamHeader]) -> T,
    ) -> Option<T> {
        let catalog = crib.tools();
        let headers = self.headers.of(&catalog, || in_headers(&catalog));
        headers.1.get(tool).map(|headers| check(headers))
    }
}

pub fn find(crib: &Crib, tool: &str) -> Option<Arc<Tool>> {
    crib.tools().get(tool).cloned()
}

pub fn instructions(crib: &Crib) -> String {
    convert::instructions(&crib.tools())
}

fn result(tools: Vec<Value>) -> Value {
    json!({"tools": tools, "ttlMs": TTL_MS, "cacheScope": "private"})
}

fn in_headers(catalog: &Catalog) -> HashMap<String, Vec<ParamHeader>> {
    let tools = catalog.tools().map(|tool| {
        let headers = param_headers(tool.spec.input_schema.value());
        (tool.name().to_owned(), headers)
    });
    tools.filter(|(_, headers)| !headers.is_empty()).collect()
}
