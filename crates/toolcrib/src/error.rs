//! The one mapping of error codes to what HTTP clients and shells see: status and exit code.

use toolcrib_core::ErrorCode;

/// Exit code when the tool itself reports failure: the call went well, its outcome says no.
pub const EXIT_TOOL_FAILED: u8 = 1;
/// Exit code when a person cancelled the call, as shells have it for Ctrl-C.
pub const EXIT_INTERRUPTED: u8 = 130;

/// The HTTP status that stands for `code`.
pub fn http_status(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::UnknownTool => 404,
        ErrorCode::InvalidArguments => 422,
        ErrorCode::Denied => 403,
        ErrorCode::ApprovalPending => 202,
        ErrorCode::LimitReached => 429,
        ErrorCode::TimedOut => 504,
        ErrorCode::Crashed => 502,
        ErrorCode::Unavailable => 503,
        ErrorCode::Internal => 500,
        ErrorCode::BadRequest => 400,
        ErrorCode::Unauthorized => 401,
        ErrorCode::Forbidden => 403,
        ErrorCode::NotFound => 404,
        ErrorCode::Conflict => 409,
        ErrorCode::TooLarge => 413,
    }
}

/// The exit code of a command that ended with `code`. Scripts rely on these: 2 says "you asked wrongly",
/// 3 "not like this", 4 "the tool could not be run", 70 "a bug of ours".
pub fn exit_code(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::InvalidArguments | ErrorCode::BadRequest | ErrorCode::TooLarge => 2,
        ErrorCode::UnknownTool
        | ErrorCode::Denied
        | ErrorCode::ApprovalPending
        | ErrorCode::LimitReached
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::NotFound
        | ErrorCode::Conflict => 3,
        ErrorCode::TimedOut | ErrorCode::Crashed | ErrorCode::Unavailable => 4,
        ErrorCode::Internal => 70,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_the_documented_one() {
        let documented = [
            ("unknown_tool", 404, 3),
            ("invalid_arguments", 422, 2),
            ("denied", 403, 3),
            ("approval_pending", 202, 3),
            ("limit_reached", 429, 3),
            ("timed_out", 504, 4),
            ("crashed", 502, 4),
            ("unavailable", 503, 4),
            ("internal", 500, 70),
            ("bad_request", 400, 2),
            ("unauthorized", 401, 3),
            ("forbidden", 403, 3),
            ("not_found", 404, 3),
            ("conflict", 409, 3),
            ("too_large", 413, 2),
        ];
        assert_eq!(documented.len(), ErrorCode::ALL.len());
        for (name, status, exit) in documented {
            let code = ErrorCode::parse(name).unwrap();
            assert_eq!(
                (http_status(code), exit_code(code)),
                (status, exit),
                "{name}"
            );
        }
    }
}
