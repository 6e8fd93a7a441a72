//! Fills in the schema's defaults and refuses arguments that the schema refuses, where the tool itself has not the last word.

use serde_json::{Value, json};

use super::approve::Approve;
use super::{Always, Listed, Middleware, Next};
use crate::profile::ChainSettings;
use crate::words::CommandLine;
use crate::{BoxFuture, Call, CallError, CallResult, Hint, Object, Tool};

pub(super) struct Validate {
    /// A person may change the arguments further in; they come back here then.
    may_be_edited: bool,
}

impl Always for Validate {
    fn of(settings: &ChainSettings) -> Validate {
        let mut links = settings.middleware.iter();
        Validate {
            may_be_edited: links.any(|link| link.name() == Approve::NAME),
        }
    }
}

impl Middleware for Validate {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        match check(call) {
            Ok(()) if self.may_be_edited => Box::pin(until_unedited(call, next)),
            Ok(()) => {
                call.context.admitted = true;
                next.run(call)
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// Runs the call. Where a person changed its arguments on the way, it begins anew with those.
async fn until_unedited(call: &mut Call, next: Next<'_>) -> CallResult {
    call.context.admitted = true;
    let result = next.run(call).await;
    let Some(edit) = call.context.edit.as_mut().filter(|edit| !edit.is_checked) else {
        return result;
    };
    edit.is_checked = true;
    call.arguments = edit.arguments.clone();
    check(call).map_err(|error| CallError {
        message: format!("a person changed the arguments, and now: {}", error.message),
        ..error
    })?;
    next.run(call).await
}

fn check(call: &mut Call) -> Result<(), CallError> {
    checked(&call.tool, &mut call.arguments)
}

/// Refuses arguments that a call of this tool would be refused for.
pub fn validated(tool: &Tool, arguments: &Object) -> Result<(), CallError> {
    checked(tool, &mut arguments.clone())
}

fn checked(tool: &Tool, arguments: &mut Object) -> Result<(), CallError> {
    let schema = &tool.spec.input_schema;
    if let Err(error) = schema.fill_defaults(arguments) {
        let message = format!("the arguments can't be taken with the schema's defaults: {error}");
        return Err(CallError::invalid(message).hint("nest the arguments less deeply"));
    }
    if schema.accepts_any() {
        return Ok(());
    }
    let mut violations = schema.violations(arguments.json().value());
    let last_word = &tool.spec.last_word;
    violations.retain(|violation| !last_word.is_the_tools(&violation.path));
    if violations.is_empty() {
        return Ok(());
    }
    let name = tool.name();
    let said: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let errors: Vec<Value> = violations
        .iter()
        .map(|v| json!({"path": v.path, "message": v.message}))
        .collect();
    Err(CallError::invalid(format!(
        "arguments for `{name}` do not fit its schema: {}",
        said.join("; ")
    ))
    .hint(Hint::run(CommandLine::new("toolcrib show").operand(name)).after(" prints the schema"))
    .data(json!({"errors": errors, "schema": schema.value()})))
}
