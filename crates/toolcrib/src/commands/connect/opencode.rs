//! OpenCode: `opencode.json` of the project or the user.

use serde_json::json;

use super::{Client, ClientName, pretty};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Opencode,
    project_file: "opencode.json",
    user_file: "~/.config/opencode/opencode.json",
    stdio: || {
        pretty(
            &json!({"mcp": {"toolcrib": {"type": "local", "command": ["toolcrib", "mcp"], "enabled": true}}}),
        )
    },
    http: |url| {
        pretty(
            &json!({"mcp": {"toolcrib": {"type": "remote", "url": url, "oauth": false, "enabled": true}}}),
        )
    },
    note: "`opencode mcp list` shows whether it connects",
};
