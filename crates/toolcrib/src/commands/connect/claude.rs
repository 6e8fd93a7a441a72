//! Claude Code: `.mcp.json`, or its own file for the user.

use serde_json::json;

use super::{Client, ClientName, pretty};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Claude,
    project_file: ".mcp.json",
    user_file: "~/.claude.json",
    stdio: || {
        pretty(
            &json!({"mcpServers": {"toolcrib": {"type": "stdio", "command": "toolcrib", "args": ["mcp"]}}}),
        )
    },
    http: |url| pretty(&json!({"mcpServers": {"toolcrib": {"type": "http", "url": url}}})),
    note: "or: claude mcp add --scope project toolcrib -- toolcrib mcp",
};
