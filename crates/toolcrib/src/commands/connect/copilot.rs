//! GitHub Copilot CLI: `.mcp.json` of a trusted folder, or its own file for the user.

use serde_json::json;

use super::{Client, ClientName, pretty};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Copilot,
    project_file: ".mcp.json",
    user_file: "~/.copilot/mcp-config.json",
    stdio: || {
        pretty(&json!({"mcpServers": {"toolcrib": {
            "type": "local", "command": "toolcrib", "args": ["mcp"], "tools": ["*"],
        }}}))
    },
    http: |url| {
        pretty(&json!({"mcpServers": {"toolcrib": {"type": "http", "url": url, "tools": ["*"]}}}))
    },
    note: "Copilot reads the project's file only once the folder is trusted in Copilot itself",
};
