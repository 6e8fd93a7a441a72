//! Lets a call through only to a tool that a person said yes to: trust for its folder, grants for its needs.
//!
//! Why: `docs/design/0006-trust-before-anything.md`.

use super::{Always, Middleware, Next};
use crate::profile::ChainSettings;
use crate::words::{CommandLine, inline};
use crate::{Access, BoxFuture, Call, CallError, CallResult, Hint, Ungranted};

pub(super) struct Authorize;

impl Always for Authorize {
    fn of(_: &ChainSettings) -> Authorize {
        Authorize
    }
}

impl Middleware for Authorize {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        match refusal(call) {
            None => next.run(call),
            Some(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

fn refusal(call: &Call) -> Option<CallError> {
    let name = call.tool.name();
    match &call.tool.access {
        Access::Open => None,
        Access::Untrusted { project } => {
            let trust = CommandLine::new("toolcrib trust").operand(project.display());
            let project = inline(&project.display().to_string());
            Some(
                CallError::denied(format!(
                    "tool `{name}` belongs to {project}, which is not trusted"
                ))
                .hint(Hint::run(trust).before("look at its tools, then run ")),
            )
        }
        Access::NeedsGrant(ungranted) => Some(ungranted_tool(name, ungranted)),
    }
}

fn ungranted_tool(name: &str, ungranted: &Ungranted) -> CallError {
    let needs = ungranted.needs.join("; ");
    match &ungranted.unknown {
        None => {
            let show = CommandLine::new("toolcrib show").operand(name);
            let grant = CommandLine::new("toolcrib grant")
                .operand(name)
                .switch("--all");
            CallError::denied(format!(
                "tool `{name}` needs permissions it hasn't been granted: {needs}"
            ))
            .hint(Hint::run(grant).before(format!("look at it with `{show}`, then run ")))
        }
        Some(reason) => CallError::denied(format!(
            "tool `{name}` needs {needs}; whether that was granted is not known: {reason}"
        ))
        .hint("repair the store, then call again; `toolcrib list` says when it answers"),
    }
}
