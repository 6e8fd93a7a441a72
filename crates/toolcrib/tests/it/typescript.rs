//! TypeScript and JavaScript files as people use them: the binary alone, in a project and for all projects.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{World, eventually, signal};
use crate::tidy::root;

fn call(world: &World, tool: &str, arguments: Value) -> Value {
    let arguments = arguments.to_string();
    world
        .run(&["call", tool, &arguments, "--json"])
        .exits(0)
        .json()
}

fn says(word: &str) -> String {
    format!(
        r#"
import {{ tool }} from "@atomic/plugin";
export default tool({{ description: "Says it", args: {{}}, execute: async () => "{word}" }});
"#
    )
}

/// Local and global files resolve the same imports with nothing but the binary, and the local one wins a name.
#[test]
fn local_files_win_over_global_ones() {
    let world = World::trusted();
    std::fs::create_dir_all(world.global_folder()).unwrap();
    std::fs::write(world.global_folder().join("say.ts"), says("global")).unwrap();
    std::fs::write(world.global_folder().join("other.ts"), says("other")).unwrap();
    assert_eq!(call(&world, "say", json!({}))["output"], "global");
    world.write_tool("say.ts", says("local"));
    assert_eq!(call(&world, "say", json!({}))["output"], "local");
    assert_eq!(call(&world, "other", json!({}))["output"], "other");
    let shown = world.run(&["show", "say", "--json"]).exits(0).json();
    assert!(shown["shadows"][0].as_str().unwrap().ends_with("say.ts"));
    for folder in [world.global_folder(), world.tools_folder()] {
        let names: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(
            names.len() <= 2,
            "nothing is written beside the files: {names:?}"
        );
    }
}

#[test]
fn the_context_says_who_where_and_what() {
    let world = World::trusted();
    world.write_tool(
        "who.ts",
        r#"
export default {
  description: "Says what it knows",
  args: {},
  execute: async (_: unknown, c: any) => ({
    directory: c.directory, worktree: c.worktree, agent: c.agent,
    ids: [c.sessionID, c.messageID, c.callID].every((id) => typeof id === "string"),
    abort: c.abort instanceof AbortSignal, metadata: typeof c.metadata, ask: typeof c.ask,
    here: import.meta.url.endsWith("/tools/who.ts"),
  }),
};
"#,
    );
    let known = &call(&world, "who", json!({}))["structured"];
    let project = world.project().display().to_string();
    assert_eq!(known["directory"], json!(project), "{known}");
    assert_eq!(known["worktree"], json!(project), "{known}");
    assert!(!known["agent"].as_str().unwrap().is_empty(), "{known}");
    for (key, value) in [
        ("ids", json!(true)),
        ("abort", json!(true)),
        ("metadata", json!("function")),
        ("ask", json!("function")),
        ("here", json!(true)),
    ] {
        assert_eq!(known[key], value, "{key}: {known}");
    }
}

#[test]
fn every_kind_of_schema_becomes_one() {
    let world = World::trusted();
    world.write_tool(
        "kinds.ts",
        r#"
import { tool } from "@toolcrib/plugin";
const z = tool.schema;
export default tool({
  description: "Takes everything",
  args: {
    text: z.string().describe("A text"), number: z.number(), flag: z.boolean(),
    list: z.array(z.string()), object: z.object({ a: z.number().optional() }), choice: z.enum(["x", "y"]),
    maybe: z.string().optional(), usual: z.number().default(3),
  },
  execute: async (args) => args,
});
"#,
    );
    let shown = world.run(&["show", "kinds", "--json"]).exits(0).json();
    let schema = &shown["inputSchema"];
    let kind = |name: &str| schema["properties"][name]["type"].clone();
    for (name, wanted) in [
        ("text", "string"),
        ("number", "number"),
        ("flag", "boolean"),
        ("list", "array"),
        ("object", "object"),
        ("choice", "string"),
        ("maybe", "string"),
        ("usual", "number"),
    ] {
        assert_eq!(kind(name), wanted, "{name}: {schema}");
    }
    assert_eq!(schema["properties"]["text"]["description"], "A text");
    assert_eq!(schema["properties"]["choice"]["enum"], json!(["x", "y"]));
    let required = json!(["text", "number", "flag", "list", "object", "choice"]);
    assert_eq!(schema["required"], required);
    let given = json!({"text": "t", "number": 1.5, "flag": true, "list": ["a"], "object": {}, "choice": "x"});
    let back = &call(&world, "kinds", given)["structured"];
    assert_eq!(
        (&back["usual"], &back["text"]),
        (&json!(3), &json!("t")),
        "{back}"
    );
}

/// A dozen tools in the manner of OpenCode's documentation, from OpenCode's own folder, as they are.
#[test]
fn tools_written_for_opencode_run_unchanged() {
    let world = World::trusted();
    let from = root().join("sdk/typescript/tests/opencode");
    let to = world.project().join(".opencode/tools");
    copy(&from, &to);
    world.write(
        ".toolcrib/config.toml",
        "tool_dirs = [\".opencode/tools\"]\n",
    );
    world.write("README.md", "# A garden\n");
    let list = world.run(&["list", "--json"]).exits(0).json();
    let errors = list["errors"].as_array().unwrap();
    let broken: Vec<&Value> = errors
        .iter()
        .filter(|one| one["severity"] == "error")
        .collect();
    assert!(broken.is_empty(), "{broken:?}");
    let tools = list["tools"].as_array().unwrap();
    let ours = tools.iter().filter(|tool| tool["source"] == "typescript");
    assert!(ours.count() >= 12, "{list}");
    assert_eq!(
        call(&world, "add", json!({"a": 2, "b": 40}))["output"],
        "42"
    );
    let length = call(&world, "convert_length", json!({"metres": 10}));
    assert_eq!(length["output"], "32.81 ft");
    let chart = call(&world, "chart", json!({"title": "Beans"}));
    assert_eq!(
        chart["attachments"].as_array().map(Vec::len),
        Some(2),
        "{chart}"
    );
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => std::fs::copy(entry.path(), target).map(drop).unwrap(),
        }
    }
}

/// However a crib ends, nothing of ours is left in the folder for temporary files.
#[tokio::test]
async fn no_temporary_file_outlives_the_crib() {
    for by in [libc::SIGINT, libc::SIGTERM] {
        let mut world = World::trusted();
        let tmp = world.root().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        world.vars.push(("TMPDIR", tmp.display().to_string()));
        world.write_tool("say.ts", says("hi"));
        world.write_tool(
            "say-py.py",
            "from toolcrib import tool\n@tool('say-py')\ndef say() -> str:\n    'Says it.'\n    return 'hi'\n",
        );
        for rung in ["A", "B"] {
            world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
            let crib = world.serve();
            for tool in ["say", "say-py"] {
                assert_eq!(crib.output_of(tool).await, "hi");
            }
            signal(crib.pid(), by);
            assert_eq!(crib.wait(), Some(0));
            world.vars.pop();
            let left = || {
                std::fs::read_dir(&tmp)
                    .unwrap()
                    .flatten()
                    .map(|entry| entry.path())
            };
            eventually("the folder is empty", async || left().next().is_none()).await;
        }
    }
    // A command of one call, too.
    let mut world = World::trusted();
    let tmp = world.root().join("tmp");
    std::fs::create_dir(&tmp).unwrap();
    world.vars.push(("TMPDIR", tmp.display().to_string()));
    world.write_tool("say.ts", says("hi"));
    assert_eq!(call(&world, "say", json!({}))["output"], "hi");
    assert_eq!(std::fs::read_dir(&tmp).unwrap().count(), 0);
}

/// Copies of hosts and environments that nobody used for a month go when a crib starts to serve; those in use stay.
#[tokio::test]
async fn what_nobody_uses_any_more_is_removed_from_the_cache() {
    let world = World::trusted();
    world.write_tool("say.ts", says("hi"));
    assert_eq!(call(&world, "say", json!({}))["output"], "hi");
    let cache = world.home().join(".cache/toolcrib");
    let old = ["hosts/typescript-old", "environments/old"].map(|name| cache.join(name));
    let month = std::time::Duration::from_secs(31 * 24 * 3_600);
    let age = |folder: &Path| {
        let file = std::fs::File::create(format!("{}.use", folder.display())).unwrap();
        let then = std::time::SystemTime::now() - month;
        file.set_modified(then).unwrap();
    };
    let entries = std::fs::read_dir(cache.join("hosts")).unwrap().flatten();
    let hosts: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    assert!(!hosts.is_empty());
    hosts.iter().for_each(|host| age(host));
    for folder in &old {
        std::fs::create_dir_all(folder.join("inside")).unwrap();
        age(folder);
    }
    let crib = world.serve();
    assert_eq!(crib.output_of("say").await, "hi");
    eventually("the old ones are gone", async || {
        old.iter().all(|folder| !folder.exists())
    })
    .await;
    assert!(hosts.iter().all(|host| host.is_dir()), "{hosts:?}");
}

/// The crib's own check does not refuse what Zod, or pydantic, would take; what they refuse is refused.
#[test]
fn zod_has_the_last_word_about_arguments() {
    let world = World::trusted();
    let text = r#"
import { tool } from "@toolcrib/plugin";
const z = tool.schema;
export default tool({ description: "Takes much", args: {
  n: z.coerce.number().max(10),
  list: z.preprocess((given) => (typeof given === "string" ? given.split(",") : given), z.array(z.string())).optional(),
  kind: z.enum(["a", "b"]).catch("a"),
  even: z.int().optional(),
}, execute: (args) => args });
"#;
    world.write_tool("take.ts", text);
    let taken = call(
        &world,
        "take",
        json!({"n": "7", "list": "x,y", "kind": 5, "more": true}),
    );
    assert_eq!(
        taken["structured"],
        json!({"n": 7, "list": ["x", "y"], "kind": "a"})
    );
    for refused in [
        json!({"n": "11"}),
        json!({"n": "x"}),
        json!({"n": 1, "even": 1.5}),
    ] {
        let ran = world.run(&["call", "take", &refused.to_string()]).exits(2);
        assert!(
            ran.stderr.contains("refuses the arguments"),
            "{}",
            ran.stderr
        );
    }
}
