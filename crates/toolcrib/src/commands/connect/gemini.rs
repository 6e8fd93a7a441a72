//! Gemini CLI: `settings.json` of the project or the user.

use serde_json::json;

use super::{Client, ClientName, pretty};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Gemini,
    project_file: ".gemini/settings.json",
    user_file: "~/.gemini/settings.json",
    stdio: |args| {
        pretty(&json!({"mcpServers": {"toolcrib": {"command": "toolcrib", "args": args}}}))
    },
    http: |url| {
        let headers = json!({"Authorization": "Bearer $TOOLCRIB_TOKEN"});
        pretty(
            &json!({"mcpServers": {"toolcrib": {"type": "http", "url": url, "headers": headers}}}),
        )
    },
    note: "`gemini mcp list` shows whether it connects",
};
