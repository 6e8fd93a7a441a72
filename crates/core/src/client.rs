//! The clients that are known by name: what people call each, and how much text of a tool it shows its model.

use crate::OutputLimit;

/// A client that many people use.
struct KnownClient {
    /// What people call it, and what tools are told.
    name: &'static str,
    /// What the names begin with that it gives itself, in lower case.
    begins: &'static [&'static str],
    /// Less than what it shows whole.
    limit: OutputLimit,
    /// Does it bring a list of its own of what its model has to do?
    todo_list: bool,
}

/// THE LIST. Where a client cuts a text itself, its model reads neither the notice nor how to go on.
const CLIENTS: [KnownClient; 5] = [
    KnownClient {
        name: "claude",
        begins: &["claude"],
        limit: OutputLimit::DEFAULT,
        todo_list: true,
    },
    KnownClient {
        name: "copilot",
        begins: &["copilot", "github-copilot", "github copilot"],
        limit: OutputLimit::of(19_000, 2_000),
        todo_list: true,
    },
    KnownClient {
        name: "opencode",
        begins: &["opencode"],
        limit: OutputLimit::DEFAULT,
        todo_list: true,
    },
    KnownClient {
        name: "codex",
        begins: &["codex"],
        limit: OutputLimit::of(9_000, 2_000),
        todo_list: true,
    },
    KnownClient {
        name: "gemini",
        begins: &["gemini"],
        limit: OutputLimit::of(38_000, 2_000),
        todo_list: true,
    },
];

fn known(client: &str) -> Option<&'static KnownClient> {
    let begins = |one: &&str| {
        let head = client.get(..one.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(one))
    };
    let is_it = |known: &&KnownClient| known.begins.iter().any(&begins);
    CLIENTS.iter().find(is_it)
}

/// What people call the client of this name; its own name where it is not known.
pub fn known_name(client: &str) -> &str {
    known(client).map_or(client, |known| known.name)
}

/// How much text the client of this name shows its model, where that is known.
pub fn shown(client: &str) -> Option<OutputLimit> {
    known(client).map(|known| known.limit)
}

/// Does the client of this name bring a list of its own of what its model has to do?
pub fn has_todo_list(client: &str) -> bool {
    known(client).is_some_and(|known| known.todo_list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_the_names_they_give_themselves() {
        for (own, name) in [
            ("claude-code", "claude"),
            ("claude-ai", "claude"),
            ("copilot-cli", "copilot"),
            ("GitHub Copilot", "copilot"),
            ("github-copilot-developer", "copilot"),
            ("opencode", "opencode"),
            ("codex-mcp-client", "codex"),
            ("gemini-cli-mcp-client", "gemini"),
            ("gemini-cli-mcp-client-toolcrib", "gemini"),
            ("Claude-Code", "claude"),
            ("rest", "rest"),
            ("my-codex", "my-codex"),
            ("", ""),
        ] {
            assert_eq!(known_name(own), name, "{own}");
        }
    }
}
