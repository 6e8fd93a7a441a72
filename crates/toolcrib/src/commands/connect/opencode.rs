//! OpenCode: `opencode.json` of the project or the user.

use serde_json::json;

use super::{Client, ClientName, pretty};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Opencode,
    project_file: "opencode.json",
    user_file: "~/.config/opencode/opencode.json",
    stdio: |args| {
        let command = [&["toolcrib"], args].concat();
        pretty(
            &json!({"mcp": {"toolcrib": {"type": "local", "command": command, "enabled": true}}}),
        )
    },
    http: |url| {
        let headers = json!({"Authorization": "Bearer {env:TOOLCRIB_TOKEN}"});
        pretty(&json!({"mcp": {"toolcrib": {
            "type": "remote", "url": url, "headers": headers, "oauth": false, "enabled": true,
        }}}))
    },
    note: "`opencode mcp list` shows whether it connects",
};
