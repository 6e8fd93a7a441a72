//! What is listed and told: pages and cursors, kept outputs, counts, titles, built-in tools by choice, events that go on
//! where they broke off.

use serde_json::{Value, json};

use crate::support::mcp::{Piped, call, request};
use crate::support::plugin::{file, shell};
use crate::support::{PATIENCE, TestCrib, World, eventually, shell_tool};

fn user_settings(world: &World, text: &str) {
    let folder = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), text).unwrap();
}

fn names(list: &Value) -> Vec<&str> {
    crate::support::mcp::names(list)
}

#[test]
fn many_tools_come_in_pages_and_a_made_up_cursor_is_refused() {
    let world = World::trusted();
    user_settings(&world, "[agents.default]\nsurface = \"list\"\n");
    let tools: Vec<Value> = (0..600)
        .map(|at| shell(&format!("t{at:03}"), "true", json!({})))
        .collect();
    world.write_tool("many.json", file(&tools));
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    let list = |piped: &mut Piped, cursor: Option<&Value>| {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        piped.ask(&request(7, "tools/list", params))
    };
    let first = list(&mut piped, None);
    let cursor = first["result"]["nextCursor"].clone();
    let second = list(&mut piped, Some(&cursor));
    assert_eq!(second["result"].get("nextCursor"), None, "{second}");
    let all = [names(&first), names(&second)].concat();
    assert_eq!((names(&first).len(), all.len()), (500, 608));
    assert!(all.is_sorted() && all.contains(&"t599"));
    for made_up in [
        json!("x"),
        json!("page-0"),
        json!("page-2"),
        json!("page-01"),
        json!(""),
        json!(3),
    ] {
        let refused = list(&mut piped, Some(&made_up));
        assert_eq!(refused["error"]["code"], -32602, "{made_up}: {refused}");
    }
    for method in ["resources/list", "resources/templates/list"] {
        let refused = piped.ask(&request(8, method, json!({"cursor": "x"})));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
}

#[test]
fn kept_outputs_are_listed_to_whose_they_are() {
    let world = World::trusted();
    world.write("long.txt", "a line\n".repeat(9_000));
    world.write_tool("long.json", shell_tool("long", "cat long.txt", json!({})));
    let mut piped = Piped::greeted(world.command(&["mcp"]));
    let list = |piped: &mut Piped| {
        piped.ask(&request(7, "resources/list", json!({})))["result"]["resources"].take()
    };
    assert_eq!(list(&mut piped), json!([]));
    let mut ids = Vec::new();
    for at in 1..=2 {
        let answer = piped.ask(&call(at, "long", json!({})));
        let id = &answer["result"]["_meta"]["toolcrib/metadata"]["outputId"];
        ids.insert(0, format!("toolcrib://outputs/{}", id.as_str().unwrap()));
    }
    let listed = list(&mut piped);
    let uris: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ids, "newest first");
    assert_eq!(listed[0]["size"], 63_000, "{listed}");
    let read = piped.ask(&request(9, "resources/read", json!({"uri": uris[0]})));
    assert!(
        read["result"]["contents"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("a line\n")
    );
}

#[tokio::test]
async fn counts_have_every_source_and_titles_are_never_missing() {
    let world = World::trusted();
    let mut titled = shell("titled", "true", json!({}));
    titled["title"] = json!("A title");
    let python = "from toolcrib import tool\n\n@tool\ndef plain() -> str:\n    \"Say a word.\"\n    return 'word'\n\n\
                  @tool(title='By its tool')\ndef named() -> str:\n    \"Say a word.\"\n    return 'word'\n";
    world.write_tool("a.json", file(&[titled]));
    world.write_tool("plain.py", python);
    let crib = world.serve();
    let (_, list) = crib.get("/tools").await;
    for source in [
        "builtin",
        "plugin",
        "python",
        "typescript",
        "executable",
        "registered",
    ] {
        assert!(
            list["counts"][source].is_u64(),
            "{source}: {}",
            list["counts"]
        );
    }
    assert_eq!(list["counts"]["typescript"], 0);
    let (_, health) = crib.get("/health").await;
    for status in ["active", "untrusted", "denied", "error"] {
        assert!(health["counts"][status].is_u64(), "{status}: {health}");
    }
    for (tool, title) in [("plain", "plain"), ("named", "By its tool")] {
        let (_, outcome) = crib.call(tool, json!({})).await;
        assert_eq!(outcome["title"], title, "{outcome}");
    }
}

#[tokio::test]
async fn built_in_tools_are_there_by_choice() {
    let world = World::trusted();
    user_settings(&world, "builtins = [\"read-output\", \"git-status\"]\n");
    let crib = world.serve();
    assert_eq!(crib.names().await, ["git-status", "read-output"]);
    user_settings(&world, "builtins = []\n");
    eventually("there are none", async || crib.names().await.is_empty()).await;
    user_settings(&world, "");
    eventually("there are all", async || crib.names().await.len() == 8).await;
    drop(crib);
    world.write(
        ".toolcrib/config.toml",
        "builtins = [\"git-status\", \"file-reader\"]\n",
    );
    user_settings(&world, "builtins = [\"read-output\", \"git-status\"]\n");
    assert_eq!(world.serve().names().await, ["git-status"], "what both say");
    user_settings(&world, "builtins = [\"git-statuss\"]\n");
    let refused = world.run(&["list"]).exits(2);
    assert!(
        refused.stderr.contains("did you mean `git-status`?"),
        "{}",
        refused.stderr
    );
}

/// The next event of a stream: its id, its name, its data.
struct Listener(reqwest::Response, String);

impl Listener {
    async fn start(crib: &TestCrib, after: Option<&str>) -> Listener {
        let mut request = crib.client.get(format!("{}/api/events", crib.url));
        if let Some(after) = after {
            request = request.header("Last-Event-ID", after);
        }
        Listener(request.send().await.unwrap(), String::new())
    }

    async fn next(&mut self) -> (String, String, Value) {
        let come = async {
            loop {
                if let Some(end) = self.1.find("\n\n") {
                    let block: String = self.1.drain(..end + 2).collect();
                    let field = |key: &str| {
                        let mut lines = block.lines();
                        let found = lines.find_map(|line| line.strip_prefix(key));
                        found.map(|text| text.trim().to_owned()).unwrap_or_default()
                    };
                    if field("event:").is_empty() {
                        continue;
                    }
                    let data = serde_json::from_str(&field("data:")).unwrap();
                    return (field("id:"), field("event:"), data);
                }
                let chunk = self.0.chunk().await.unwrap().expect("the stream goes on");
                self.1.push_str(std::str::from_utf8(&chunk).unwrap());
            }
        };
        tokio::time::timeout(PATIENCE, come)
            .await
            .expect("an event in time")
    }

    /// The next catalog's added tools, and the id of the event.
    async fn added(&mut self) -> (String, Value) {
        loop {
            let (id, name, data) = self.next().await;
            if name == "tools_changed" {
                return (id, data["added"].clone());
            }
        }
    }
}

#[tokio::test]
async fn events_go_on_where_they_broke_off() {
    let world = World::trusted();
    let crib = world.serve();
    let mut listener = Listener::start(&crib, None).await;
    world.write_tool("one.json", shell_tool("one", "true", json!({})));
    let (id, added) = listener.added().await;
    assert_eq!(added, json!(["one"]));
    assert!(!id.is_empty());
    drop(listener);
    for name in ["two", "three"] {
        world.write_tool(&format!("{name}.json"), shell_tool(name, "true", json!({})));
        eventually(name, async || crib.names().await.contains(&name.to_owned())).await;
    }
    let mut again = Listener::start(&crib, Some(&id)).await;
    let (second, added) = again.added().await;
    assert_eq!(added, json!(["two"]));
    assert_ne!(second, id);
    assert_eq!(again.added().await.1, json!(["three"]));
    // What another process numbered, or nobody, is not known; that is said.
    for unknown in ["nonsense", "0123.4"] {
        let (id, name, _) = Listener::start(&crib, Some(unknown)).await.next().await;
        assert_eq!((&*id, &*name), ("", "lagged"));
    }
}
