//! The `execute` request: what a tool is given.

use std::path::Path;

use serde::Serialize;
use tokio::time::Instant;
use toolcrib_core::{Call, Object, client};

/// The parameters of `execute`.
#[derive(Debug, Serialize)]
pub struct Execute<'a> {
    /// As the caller wrote it.
    pub input: &'a Object,
    pub context: About<'a>,
    /// Which tool, for a worker that has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
}

/// What a tool knows about its call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct About<'a> {
    run_id: &'a str,
    execution_id: &'a str,
    working_dir: &'a Path,
    /// Milliseconds left.
    timeout: u64,
    call_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    /// What people call the client.
    agent: &'a str,
    /// What it calls itself.
    client: &'a str,
    profile: &'a str,
    directory: &'a Path,
    /// A person said yes to this call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    approved: bool,
}

impl<'a> Execute<'a> {
    pub fn new(call: &'a Call, directory: &'a Path, tool: Option<&'a str>) -> Execute<'a> {
        let context = &call.context;
        let left = context
            .deadline
            .map(|end| end.saturating_duration_since(Instant::now()));
        let about = About {
            run_id: context.session_id.as_deref().unwrap_or(&context.call_id),
            execution_id: &context.call_id,
            working_dir: directory,
            timeout: left.map_or(0, |left| left.as_millis() as u64),
            call_id: &context.call_id,
            session_id: context.session_id.as_deref(),
            message_id: context.message_id.as_deref(),
            agent: client::known_name(&call.caller.client),
            client: &call.caller.client,
            profile: &call.caller.agent,
            directory,
            approved: context.approved.is_some(),
        };
        Execute {
            input: &call.arguments,
            context: about,
            tool,
        }
    }
}
