//! Why a command failed, as a person reads it: what failed, why, and what to do; with a stable exit code.

use toolcrib_core::{CallError, ErrorCode};

use crate::config::{ConfigError, ProjectError};
use crate::error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: ErrorCode,
    pub message: String,
    pub causes: Vec<String>,
    pub hint: Option<String>,
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
    pub fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }

    pub fn exit_code(&self) -> u8 {
        error::exit_code(self.code)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        Failure {
            code: error.code,
            message: error.message,
            causes: Vec::new(),
            hint: error.hint,
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
