//! Codex: `config.toml` of a trusted project or the user.

use super::{Client, ClientName};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Codex,
    project_file: ".codex/config.toml",
    user_file: "~/.codex/config.toml",
    // Codex hands a server only a few variables; what tools may see is passed by name.
    stdio: |args| {
        // A list of names reads the same in TOML.
        let args = serde_json::json!(args);
        format!(
            "[mcp_servers.toolcrib]\ncommand = \"toolcrib\"\nargs = {args}\n\
             env_vars = [\"HOME\", \"PATH\", \"XDG_CONFIG_HOME\", \"XDG_DATA_HOME\", \"XDG_CACHE_HOME\"]\n"
        )
    },
    http: |url| {
        format!(
            "[mcp_servers.toolcrib]\nurl = \"{url}\"\nbearer_token_env_var = \"TOOLCRIB_TOKEN\"\n"
        )
    },
    note: "Codex reads the project's file only in a project it trusts, and sees new tools from its next start on",
};
