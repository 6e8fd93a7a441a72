//! Claude Code: `.mcp.json`, or its own file for the user.

use serde_json::json;

use super::{Client, ClientName, pretty};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Claude,
    project_file: ".mcp.json",
    user_file: "~/.claude.json",
    stdio: |args| {
        pretty(
            &json!({"mcpServers": {"toolcrib": {"type": "stdio", "command": "toolcrib", "args": args}}}),
        )
    },
    http: |url| {
        let headers = json!({"Authorization": "Bearer ${TOOLCRIB_TOKEN}"});
        pretty(
            &json!({"mcpServers": {"toolcrib": {"type": "http", "url": url, "headers": headers}}}),
        )
    },
    note: "or: claude mcp add --scope project toolcrib -- toolcrib mcp",
};
