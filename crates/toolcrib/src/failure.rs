//! Why a command failed, as a person reads it: what failed, why, and what to do; with a stable exit code.

use serde_json::{Value, json};
use toolcrib_core::{CallError, ErrorCode, Hint};

use crate::config::{ConfigError, ProjectError};
use crate::error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: ErrorCode,
    pub message: String,
    pub causes: Vec<String>,
    pub hint: Option<Hint>,
}

impl Failure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    #[must_use]
    pub fn cause(mut self, cause: impl ToString) -> Failure {
        self.causes.push(cause.to_string());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    pub fn exit_code(&self) -> u8 {
        error::exit_code(self.code)
    }
}

/// Where an error of the wire keeps the causes of a failure.
const CAUSES: &str = "causes";

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let causes = error.data.as_deref().and_then(|data| data.get(CAUSES));
        let causes = causes.and_then(Value::as_array).into_iter().flatten();
        Failure {
            code: error.code,
            message: error.message,
            causes: causes
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            hint: error.hint,
        }
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> CallError {
        let mut error = CallError::new(failure.code, failure.message);
        error.hint = failure.hint;
        match failure.causes.is_empty() {
            true => error,
            false => error.data(json!({CAUSES: failure.causes})),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::new(ErrorCode::BadRequest, "the settings can't be used")
            .cause(&error)
            .hint(error.hint)
    }
}

impl From<ProjectError> for Failure {
    fn from(error: ProjectError) -> Failure {
        Failure::new(ErrorCode::BadRequest, error.to_string())
            .hint("name a project's folder with `--project DIR`, or run the command inside one")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_goes_over_the_wire_whole() {
        let failure = Failure::new(ErrorCode::Denied, "no")
            .cause("others may write")
            .cause("so they decide")
            .hint("ask");
        assert_eq!(Failure::from(CallError::from(failure.clone())), failure);
        let plain = Failure::new(ErrorCode::Conflict, "taken");
        assert_eq!(Failure::from(CallError::from(plain.clone())), plain);
    }
}
