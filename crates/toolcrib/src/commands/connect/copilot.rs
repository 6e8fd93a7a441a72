//! GitHub Copilot CLI: `.mcp.json` of a trusted folder, or its own file for the user.

use super::{Client, ClientName, claude};

pub(super) const CLIENT: Client = Client {
    name: ClientName::Copilot,
    project_file: ".mcp.json",
    user_file: "~/.copilot/mcp-config.json",
    // The project's file is Claude Code's too, which drops a server with Copilot's own words in it; Copilot takes both.
    stdio: claude::CLIENT.stdio,
    http: claude::CLIENT.http,
    note: "Copilot reads the project's file only once the folder is trusted in Copilot itself",
};
