//! Agents: who may be which one, what each sees, and that nothing else is there for it.

mod choosing;
mod heard;
mod hidden;

use serde_json::json;

use crate::support::plugin::{file, shell};
use crate::support::{TestCrib, World};

/// What `bound` sees. Everything that it does not see has a name that begins with `hush`.
const SEEN: [&str; 2] = ["read-output", "visible"];

const SETTINGS: &str = "[agents.bound]\ntools = [\"visible\", \"read-output\"]\n[agents.other]\n\
                        [agents.inner]\nmode = \"subagent\"\n";

/// A trusted project in which an agent named `bound` sees a tool, and does not see another.
fn world() -> World {
    let world = World::trusted();
    world.settings(SETTINGS);
    world.write_tool(
        "seen.json",
        file(&[shell("visible", "echo seen", json!({}))]),
    );
    let mut hidden = shell("hushhush", "seq 1 100000", json!({}));
    hidden["description"] = "hush: nobody is to know".into();
    world.write_tool("hush.json", file(&[hidden]));
    world.write_tool("hushbroken.json", "{");
    world
}

impl World {
    /// The secret of a token for one agent.
    fn bound(&self, name: &str, agent: &str, scopes: &str) -> String {
        let args = [
            "token", "create", name, "--agent", agent, "--scope", scopes, "--json",
        ];
        // Whoever is to decide on calls is let in by a person.
        let made = match scopes.contains("approve") {
            true => self.person(&args),
            false => self.run(&args),
        };
        made.exits(0).json()["token"].as_str().unwrap().to_owned()
    }
}

/// The names that `tools/list` gives at this address, with this token.
async fn listed_at(crib: &TestCrib, path: &str, token: &str) -> Vec<String> {
    let list = crate::support::mcp::stateless(1, "tools/list", json!({}));
    let request = crib.client.post(format!("{}{path}", crib.url));
    let request = request
        .bearer_auth(token)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", crate::support::mcp::STATELESS)
        .header("mcp-method", "tools/list");
    let (status, answer) =
        crate::support::answer(request.body(list.to_string()).send().await.unwrap()).await;
    assert_eq!(status, 200, "{path}: {answer}");
    let names = crate::support::mcp::names(&answer);
    names.into_iter().map(str::to_owned).collect()
}
