//! Kept outputs as resources: the whole text of what was cut.

use serde_json::{Value, json};
use toolcrib_core::OutputId;

use super::asker::Asker;
use super::message::Request;
use super::methods::{Reply, cached, finished};
use super::reply::Answer;
use super::{Mcp, codes};
use crate::serve::convert::TTL_MS;
use crate::wire::rfc3339;

/// How much of a kept output one `resources/read` gives.
const PAGE: usize = 1_024 * 1_024;
const OUTPUTS: &str = "toolcrib://outputs/";

pub fn templates() -> Value {
    let template = json!({
        "uriTemplate": format!("{OUTPUTS}{{id}}"),
        "name": "output",
        "title": "Whole output of a call",
        "description": "The whole text of an output that was truncated; its notice gives the id",
        "mimeType": "text/plain",
    });
    json!({"resourceTemplates": [template], "ttlMs": TTL_MS, "cacheScope": "private"})
}

/// How many kept outputs are listed, newest first.
const LISTED: usize = 100;

/// The kept outputs of whoever asks.
pub fn list(mcp: &Mcp, asker: &Asker, request: &Request) -> Reply {
    let (request_id, revision) = (request.id.clone(), asker.revision);
    let (outputs, agent) = (
        mcp.served.crib.outputs().clone(),
        asker.who.agent().to_owned(),
    );
    Reply::Later(Box::pin(async move {
        let kept = outputs.list(&agent, LISTED).await.into_iter();
        let resources = kept.map(|output| {
            let (id, size) = (&output.id, output.bytes);
            let kept = rfc3339(output.at_ms);
            json!({
                "uri": format!("{OUTPUTS}{id}"),
                "name": format!("output {id}"),
                "title": format!("Output of {size} bytes, kept at {kept}"),
                "mimeType": "text/plain",
                "size": size,
                "annotations": {"lastModified": kept},
            })
        });
        let resources: Vec<Value> = resources.collect();
        let result = cached(json!({"resources": resources}), revision);
        Some(Answer::result(&request_id, &finished(result, revision)))
    }))
}

pub fn read(mcp: &Mcp, asker: &Asker, request: &Request) -> Reply {
    let Some(uri) = request.params.text("uri") else {
        return Reply::error(request, codes::INVALID_PARAMS, "`uri` must be text");
    };
    let (uri, request_id, revision) = (uri.into_owned(), request.id.clone(), asker.revision);
    let (outputs, agent) = (
        mcp.served.crib.outputs().clone(),
        asker.who.agent().to_owned(),
    );
    Reply::Later(Box::pin(async move {
        let id = uri.strip_prefix(OUTPUTS).and_then(OutputId::parse);
        let page = match &id {
            Some(id) => outputs.read(&agent, id, 0, PAGE).await.ok(),
            None => None,
        };
        let Some(page) = page else {
            let shown: String = uri.chars().take(200).collect();
            let message = format!("there is no resource `{shown}`");
            let data = Some(json!({"uri": uri}));
            let code = codes::INVALID_PARAMS;
            return Some(Answer::error_with(Some(&request_id), code, &message, data));
        };
        let mut text = String::from_utf8_lossy(&page.bytes).into_owned();
        if (page.bytes.len() as u64) < page.total {
            text.push_str("\n[more: read on with the tool `read-output`]");
        }
        let contents = json!({"uri": uri, "mimeType": "text/plain", "text": text});
        let result = cached(json!({"contents": [contents]}), revision);
        Some(Answer::result(&request_id, &finished(result, revision)))
    }))
}
