//! `toolcrib connect`: what each coding agent needs to use the tools, and where it goes.
//!
//! A new client is a file here with one [`Client`] and a line in [`CLIENTS`].

use clap::{Args, ValueEnum};
use serde_json::json;

use super::{Done, Scene};
use crate::config::users_profiles;
use crate::printer::{BOLD, DIM};

mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;

/// How a client is connected.
struct Client {
    name: ClientName,
    /// The file in the project, and the user's own.
    project_file: &'static str,
    user_file: &'static str,
    /// What goes there when the client starts `toolcrib` with these arguments itself.
    stdio: fn(args: &[&str]) -> String,
    /// What goes there when it talks to `toolcrib serve`.
    http: fn(url: &str) -> String,
    /// A word on this client.
    note: &'static str,
}

/// Every client that is known.
const CLIENTS: [&Client; 5] = [
    &claude::CLIENT,
    &codex::CLIENT,
    &copilot::CLIENT,
    &gemini::CLIENT,
    &opencode::CLIENT,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClientName {
    Claude,
    Codex,
    Copilot,
    Gemini,
    Opencode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// The client starts `toolcrib mcp` itself
    Stdio,
    /// The client talks to a running `toolcrib serve`
    Http,
}

/// Print what a coding agent needs to use the tools
#[derive(Debug, Args)]
#[command(
    after_help = "Prints only; copy the text into the file it names. Writing files comes with a later version."
)]
pub struct Connect {
    /// Which agent
    pub client: ClientName,
    /// Print the snippet and where it goes
    #[arg(long, required = true)]
    pub print: bool,
    /// How the agent reaches the tools
    #[arg(long, value_enum, default_value = "stdio")]
    pub transport: Transport,
    /// The crib's address, for `--transport http`
    #[arg(long, default_value = "http://127.0.0.1:7717/mcp")]
    pub url: String,
    /// One of your agents: its tools and no others
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
}

impl Connect {
    pub fn run(self, scene: &Scene) -> Done {
        let Some(client) = CLIENTS
            .into_iter()
            .find(|client| client.name == self.client)
        else {
            return Ok(70);
        };
        let mut args = vec!["mcp"];
        let mut url = self.url.clone();
        let mut for_agent = String::new();
        if let Some(agent) = &self.agent {
            users_profiles(&scene.env)?.admits(agent)?;
            args.extend(["--agent", agent]);
            url = format!("{}/{agent}", url.trim_end_matches('/'));
            for_agent = format!(" --agent {agent}");
        }
        let mut command = format!("toolcrib mcp{for_agent}");
        if client.name == ClientName::Claude {
            // It puts tools aside by itself, and searches among them.
            args.extend(["--surface", "list"]);
            url.push_str("?surface=list");
            command.push_str(" --surface list");
        }
        let snippet = match self.transport {
            Transport::Stdio => (client.stdio)(&args),
            Transport::Http => (client.http)(&url),
        };
        let note = client.note.replace("toolcrib mcp", &command);
        let printer = scene.printer;
        let name = client.name.to_possible_value();
        let name = name.as_ref().map_or("the agent", |name| name.get_name());
        if printer.is_json() {
            printer.json(&json!({
                "projectFile": client.project_file,
                "userFile": client.user_file,
                "snippet": snippet,
                "note": note,
            }));
            return Ok(0);
        }
        printer.note(format!(
            "{BOLD}{}{BOLD:#} in this project, or {BOLD}{}{BOLD:#} for all of them:",
            client.project_file, client.user_file
        ));
        printer.text(&snippet);
        printer.note(format!("{DIM}{note}{DIM:#}"));
        if self.transport == Transport::Http {
            printer.note(format!(
                "{DIM}the token stays out of the file: export TOOLCRIB_TOKEN=$(toolcrib token create {name}{for_agent}), then \
                 start {name} from that shell{DIM:#}"
            ));
        }
        Ok(0)
    }
}

/// JSON as it stands in a config file.
fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_known_and_its_snippets_parse() {
        for name in ClientName::value_variants() {
            let client = CLIENTS
                .into_iter()
                .find(|client| client.name == *name)
                .unwrap();
            let url = "http://127.0.0.1:1/mcp";
            for text in [(client.stdio)(&["mcp"]), (client.http)(url)] {
                if client.project_file.ends_with(".toml") {
                    toml::from_str::<toml::Table>(&text).unwrap();
                } else {
                    serde_json::from_str::<serde_json::Value>(&text).unwrap();
                }
                assert!(text.contains("toolcrib"), "{text}");
            }
            let http = (client.http)(url);
            assert!(
                http.contains(url) && http.contains("TOOLCRIB_TOKEN"),
                "{http}"
            );
            let own = (client.stdio)(&["mcp", "--agent", "reviewer"]);
            assert!(own.contains("reviewer") && !own.contains("TOKEN"));
        }
    }

    #[test]
    fn clients_that_read_the_same_file_are_told_the_same() {
        for one in CLIENTS {
            for other in CLIENTS {
                if one.project_file == other.project_file {
                    assert_eq!((one.stdio)(&["mcp"]), (other.stdio)(&["mcp"]));
                    assert_eq!((one.http)("u"), (other.http)("u"));
                }
            }
        }
    }
}
