//! Fills in the schema's defaults and refuses arguments that the schema refuses, where the tool itself has not the last word.

use serde_json::{Value, json};

use super::{Always, Middleware, Next};
use crate::profile::ChainSettings;
use crate::words::CommandLine;
use crate::{BoxFuture, Call, CallError, CallResult, Hint};

pub(super) struct Validate;

impl Always for Validate {
    fn of(_: &ChainSettings) -> Validate {
        Validate
    }
}

impl Middleware for Validate {
    fn handle<'a>(&'a self, call: &'a mut Call, next: Next<'a>) -> BoxFuture<'a, CallResult> {
        match check(call) {
            Ok(()) => {
                call.context.admitted = true;
                next.run(call)
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

fn check(call: &mut Call) -> Result<(), CallError> {
    let schema = &call.tool.spec.input_schema;
    if let Err(error) = schema.fill_defaults(&mut call.arguments) {
        let message = format!("the arguments can't be taken with the schema's defaults: {error}");
        return Err(CallError::invalid(message).hint("nest the arguments less deeply"));
    }
    if schema.accepts_any() {
        return Ok(());
    }
    let mut violations = schema.violations(call.arguments.json().value());
    let last_word = &call.tool.spec.last_word;
    violations.retain(|violation| !last_word.is_the_tools(&violation.path));
    if violations.is_empty() {
        return Ok(());
    }
    let name = call.tool.name();
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
