//! Lets a call through only to a tool that a person said yes to: trust for its folder, grants for its needs.
//!
//! Why: `docs/design/0006-trust-before-anything.md`.

use super::{Always, Middleware, Next};
use crate::profile::ChainSettings;
use crate::words::{CommandLine, inline};
use crate::{Access, BoxFuture, Call, CallError, CallResult, Hint, Ungranted};

const REPAIR: &str = "repair the store, then call again; `toolcrib list` says when it answers";

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

/// Why this call's tool may not run, if so.
pub(super) fn refusal(call: &Call) -> Option<CallError> {
    let name = call.tool.name();
    if call.context.reads_only && !call.tool.spec.annotations.only_reads() {
        let message = format!("tool `{name}` is not known to only read");
        return Some(CallError::denied(message).hint("call it with `call_tool`"));
    }
    match &call.tool.access {
        Access::Open => None,
        Access::Untrusted {
            project,
            unknown: Some(reason),
        } => {
            let project = inline(&project.display().to_string());
            let message = format!(
                "tool `{name}` belongs to {project}; whether that is trusted is not known: {reason}"
            );
            Some(CallError::denied(message).hint(REPAIR))
        }
        Access::Untrusted {
            project,
            unknown: None,
        } => {
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
        Access::Off(error) => Some((**error).clone()),
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
            let hint = Hint::run(grant).before(format!("look at it with `{show}`, then run "));
            let (message, hint) = match &ungranted.earlier {
                None => (
                    format!("tool `{name}` needs permissions it hasn't been granted: {needs}"),
                    hint,
                ),
                Some(earlier) => {
                    let asks = match earlier.new.is_empty() {
                        true => format!("It asks for the same as then: {needs}"),
                        false => format!(
                            "It asks for more than then: {}. All that it needs: {needs}",
                            earlier.new.join("; ")
                        ),
                    };
                    (
                        format!(
                            "the grant of tool `{name}` was for an earlier version: its files have changed since. {asks}"
                        ),
                        hint.after("; with `--follow` the grant holds over edits"),
                    )
                }
            };
            CallError::denied(message).hint(hint)
        }
        Some(reason) => CallError::denied(format!(
            "tool `{name}` needs {needs}; whether that was granted is not known: {reason}"
        ))
        .hint(REPAIR),
    }
}
