//! The numbers of JSON-RPC's and MCP's errors.

/// The text is no JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is no message, or not one that may come here.
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
pub const INTERNAL: i32 = -32603;
/// A header says something else than the message.
pub const HEADER_MISMATCH: i32 = -32020;
/// The message names a revision that is not spoken here.
pub const UNSUPPORTED_REVISION: i32 = -32022;
/// The session has ended, or never was.
pub const NO_SESSION: i32 = -32001;
