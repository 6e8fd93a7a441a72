//! Lets a call through only to a tool that a person said yes to: trust for its folder, grants for its needs.
//!
//! Why: `docs/design/0006-trust-before-anything.md`.

use super::{Middleware, Next};
use crate::{Access, BoxFuture, Call, CallError, CallResult};

pub(super) struct Authorize;

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
            let command = format!("toolcrib trust {}", quoted(&project.display().to_string()));
            let project = project.display();
            Some(
                CallError::denied(format!(
                    "tool `{name}` belongs to `{project}`, which is not trusted"
                ))
                .hint(format!("look at its tools, then run `{command}`")),
            )
        }
        Access::NeedsGrant { needs } => Some(
            CallError::denied(format!(
                "tool `{name}` needs what nobody granted: {}",
                needs.join("; ")
            ))
            .hint("grants come with a later version; until then make the tool ask for less"),
        ),
    }
}

/// A path as a shell takes it for one word, because hints are copied.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_one_harmless_command() {
        assert_eq!(quoted("/work/a-b_c.d"), "/work/a-b_c.d");
        assert_eq!(quoted("/a; touch x"), "'/a; touch x'");
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
    }
}
