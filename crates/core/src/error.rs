//! The one table of errors: a code, what failed, and what to do about it.
//!
//! Surfaces map a code once (HTTP status, exit code, MCP form); nothing else decides what an error looks like.

use serde_json::{Value, json};

use crate::Hint;

/// What the data of a call says that ended because the crib was stopped.
pub const STOPPED: &str = "stopped";

/// Why a call, or a request on another route, did not give an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    UnknownTool,
    InvalidArguments,
    Denied,
    ApprovalPending,
    LimitReached,
    TimedOut,
    Crashed,
    Unavailable,
    Internal,
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    TooLarge,
}

impl ErrorCode {
    /// Every code, in the order of the documented table.
    pub const ALL: [ErrorCode; 15] = [
        ErrorCode::UnknownTool,
        ErrorCode::InvalidArguments,
        ErrorCode::Denied,
        ErrorCode::ApprovalPending,
        ErrorCode::LimitReached,
        ErrorCode::TimedOut,
        ErrorCode::Crashed,
        ErrorCode::Unavailable,
        ErrorCode::Internal,
        ErrorCode::BadRequest,
        ErrorCode::Unauthorized,
        ErrorCode::Forbidden,
        ErrorCode::NotFound,
        ErrorCode::Conflict,
        ErrorCode::TooLarge,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::UnknownTool => "unknown_tool",
            ErrorCode::InvalidArguments => "invalid_arguments",
            ErrorCode::Denied => "denied",
            ErrorCode::ApprovalPending => "approval_pending",
            ErrorCode::LimitReached => "limit_reached",
            ErrorCode::TimedOut => "timed_out",
            ErrorCode::Crashed => "crashed",
            ErrorCode::Unavailable => "unavailable",
            ErrorCode::Internal => "internal",
            ErrorCode::BadRequest => "bad_request",
            ErrorCode::Unauthorized => "unauthorized",
            ErrorCode::Forbidden => "forbidden",
            ErrorCode::NotFound => "not_found",
            ErrorCode::Conflict => "conflict",
            ErrorCode::TooLarge => "too_large",
        }
    }

    pub fn parse(text: &str) -> Option<ErrorCode> {
        ErrorCode::ALL
            .into_iter()
            .find(|code| code.as_str() == text)
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call that gave no outcome: what failed and why (`message`), and what to do (`hint`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    pub code: ErrorCode,
    pub message: String,
    pub hint: Option<Hint>,
    /// Details for programs, such as the paths a schema refused. Never secret, always bounded.
    pub data: Option<Box<Value>>,
    /// The call never reached the tool, so repeating it does nothing twice.
    pub unreached: bool,
}

impl CallError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> CallError {
        CallError {
            code,
            message: message.into(),
            hint: None,
            data: None,
            unreached: false,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Hint>) -> CallError {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn data(mut self, data: Value) -> CallError {
        self.data = Some(Box::new(data));
        self
    }

    #[must_use]
    pub fn unreached(mut self) -> CallError {
        self.unreached = true;
        self
    }

    /// The crib was stopped while the tool ran. Who may ask again finds that out from the data.
    pub fn stopped(tool: &str) -> CallError {
        let message = format!("the crib was stopped while `{tool}` ran; how far it got is unknown");
        CallError::unavailable(message)
            .hint("check what it did, then call again")
            .data(json!({STOPPED: true}))
    }

    pub fn invalid(message: impl Into<String>) -> CallError {
        CallError::new(ErrorCode::InvalidArguments, message)
    }

    pub fn denied(message: impl Into<String>) -> CallError {
        CallError::new(ErrorCode::Denied, message)
    }

    pub fn unavailable(message: impl Into<String>) -> CallError {
        CallError::new(ErrorCode::Unavailable, message)
    }

    pub fn internal(message: impl Into<String>) -> CallError {
        CallError::new(ErrorCode::Internal, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_reads_back() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(code));
        }
    }
}
