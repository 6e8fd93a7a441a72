//! A tools folder full of bad files: each is reported with its file, field and remedy, and no good tool suffers.

use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::plugin::{self, make_fifo, shell};
use crate::support::{World, shell_tool};
use serde_json::{Value, json};

/// One problem that must be told.
struct Expected {
    file: &'static str,
    kind: &'static str,
    tool: Option<&'static str>,
    words: String,
}

fn expect(
    file: &'static str,
    kind: &'static str,
    tool: Option<&'static str>,
    words: impl Into<String>,
) -> Expected {
    Expected {
        file,
        kind,
        tool,
        words: words.into(),
    }
}

/// Files that are no plugins at all.
fn broken_files(world: &World) -> Vec<Expected> {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let large = format!(
        "{{\"name\": \"large\", \"tools\": [{}]}}",
        " ".repeat(10_000_000)
    );
    let files: [(&str, Vec<u8>); 7] = [
        (
            "s-comma.json",
            b"{\"name\": \"x\",\n\"tools\": [],}".to_vec(),
        ),
        (
            "s-comment.json",
            b"// mine\n{\"name\": \"x\", \"tools\": []}".to_vec(),
        ),
        (
            "s-cut.json",
            b"{\"name\": \"x\", \"tools\": [{\"name\"".to_vec(),
        ),
        ("s-deep.json", deep.into_bytes()),
        ("s-empty.json", Vec::new()),
        ("s-large.json", large.into_bytes()),
        (
            "s-latin.json",
            b"{\"name\": \"caf\xe9\", \"tools\": []}".to_vec(),
        ),
    ];
    for (name, text) in files {
        world.write_tool(name, text);
    }
    world.write_tool("s-array.json", "[1, 2]");
    world.write_tool(
        "s-tools.json",
        json!({"name": "x", "tools": {"a": 1}}).to_string(),
    );
    world.write_tool(
        "s-noname.json",
        json!({"tools": [shell("noname", "echo x", json!({}))]}).to_string(),
    );
    vec![
        expect("s-comma.json", "SyntaxError", None, "trailing comma"),
        expect("s-comment.json", "SyntaxError", None, "not valid JSON"),
        expect("s-cut.json", "SyntaxError", None, "not valid JSON"),
        expect("s-deep.json", "SyntaxError", None, "nested too deeply"),
        expect("s-empty.json", "SyntaxError", None, "the file is empty"),
        expect(
            "s-large.json",
            "ValidationError",
            None,
            "more than the 1048576",
        ),
        expect("s-latin.json", "SyntaxError", None, "not UTF-8"),
        expect("s-array.json", "ValidationError", None, "not an object"),
        expect(
            "s-tools.json",
            "ValidationError",
            None,
            "`tools` must be a list",
        ),
        expect(
            "s-noname.json",
            "ValidationError",
            None,
            "`name` is missing",
        ),
    ]
}

/// Bad tools, one a line: its name, what is changed in a good one, the field, and what is said of it.
const BAD_TOOLS: &str = r#"
x|{"name": null}|.name|is missing
x|{"name": 5}|.name|must be a string, not a number
no spaces|{}|.name|can't be a name
reload|{}|.name|can't be a name
call_tool|{}|.name|can't be a name
t5|{"description": null}|.description|is missing
t6|{"description": " "}|.description|is empty
t7|{"inputSchema": null}|.inputSchema|is missing
t8|{"inputSchema": {"type": "objet"}}|.inputSchema|is not a usable schema
t9|{"inputSchema": "none"}|.inputSchema|is not a usable schema
t10|{"handler": null}|.handler|is missing
t11|{"handler": "echo"}|.handler|must be an object
t12|{"handler": {"command": "ls"}}|.handler.type|is missing
t13|{"handler": {"type": "shel", "command": "ls"}}|.handler.type|is `shel`, which is not a kind of handler
t14|{"handler": {"type": "shell"}}|.handler.command|is missing
t15|{"handler": {"type": "shell", "command": ["ls"]}}|.handler.command|must be a string, not a list
t16|{"handler": {"type": "shell", "command": "ls", "timeout": "5"}}|.handler.timeout|must be a whole number
t17|{"handler": {"type": "http"}}|.handler.url|is missing
t18|{"handler": {"type": "http", "url": "http://a.test/", "method": "TRACE"}}|.handler.method|is not a method
t19|{"inputSchema": {"properties": {"path": {}}}, "handler": {"type": "file-read"}}|.handler.basePath|is missing
t20|{"tags": "one"}|.tags|must be a list of strings
t21|{"timeoutMs": 0}|.timeoutMs|must be a whole number
t22|{"aliases": ["search_tools"]}|.aliases[0]|can't be a name
"#;

/// One file in which all tools but two are bad, each in a way of its own.
fn bad_fields(world: &World) -> Vec<Expected> {
    let (mut tools, mut expected) = (Vec::new(), Vec::new());
    for (index, line) in BAD_TOOLS.trim().lines().enumerate() {
        let cells: Vec<&'static str> = line.split('|').collect();
        let [name, changes, field, said] = cells[..] else {
            panic!("{line}");
        };
        let mut tool = shell(name, "echo x", json!({}));
        let changes: Value = serde_json::from_str(changes).unwrap();
        for (key, value) in changes.as_object().unwrap() {
            tool[key] = value.clone();
        }
        let told = tool["name"].is_string().then_some(name);
        let words = format!("`tools[{index}]{field}` {said}");
        expected.push(expect("f-fields.json", "ValidationError", told, words));
        tools.push(tool);
    }
    let twin = |command: &str| shell("twin", command, json!({}));
    tools.extend([twin("echo first"), twin("echo second"), json!("text")]);
    tools.push(shell("neighbour", "echo good", json!({})));
    world.write_tool("f-fields.json", plugin::file(&tools));
    let (file, at) = ("f-fields.json", tools.len() - 3);
    let clash = format!("`tools[{at}].name` is `twin`, as an earlier tool");
    expected.push(expect(file, "NameClash", Some("twin"), clash));
    let text = format!("`tools[{}]` must be an object", at + 1);
    expected.push(expect(file, "ValidationError", None, text));
    expected
}

/// Names that belong to somebody else.
fn clashes(world: &World) -> Vec<Expected> {
    world.write_tool("c-1.json", shell_tool("shared", "echo first", json!({})));
    world.write_tool("c-2.json", shell_tool("shared", "echo second", json!({})));
    world.write_tool(
        "c-builtin.json",
        shell_tool("git-status", "echo mine", json!({})),
    );
    vec![
        expect("c-2.json", "NameClash", Some("shared"), "c-1.json"),
        expect(
            "c-builtin.json",
            "NameClash",
            Some("git-status"),
            "a built-in tool",
        ),
    ]
}

/// Things with a tool file's name that can't be read.
fn unreadable(world: &World) -> Vec<Expected> {
    let folder = world.tools_folder();
    make_fifo(&folder.join("u-pipe.json"));
    // The name of the socket stays when the listener goes.
    drop(std::os::unix::net::UnixListener::bind(folder.join("u-socket.json")).unwrap());
    symlink("u-loop.json", folder.join("u-loop.json")).unwrap();
    symlink("nowhere", folder.join("u-dangling.json")).unwrap();
    symlink("/dev/zero", folder.join("u-device.json")).unwrap();
    let mut expected = vec![
        expect("u-pipe.json", "IoError", None, "not a regular file"),
        expect("u-socket.json", "IoError", None, "can't be read"),
        expect("u-loop.json", "IoError", None, "can't be read"),
        expect("u-dangling.json", "IoError", None, "can't be read"),
        expect("u-device.json", "IoError", None, "not a regular file"),
    ];
    let locked = world.write_tool("u-locked.json", "{}");
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o0)).unwrap();
    if std::fs::read(&locked).is_ok() {
        // Root reads everything; then this is a file without tools.
        std::fs::remove_file(locked).unwrap();
    } else {
        expected.push(expect("u-locked.json", "IoError", None, "can't be read"));
    }
    expected
}

/// Files that look odd and are none of the above: no problem, and those with tools work.
fn harmless(world: &World) {
    std::fs::create_dir(world.tools_folder().join("folder.json")).unwrap();
    let good = shell_tool("with-mark", "echo good", json!({}));
    world.write_tool("mark.json", format!("\u{feff}{good}"));
    world.write_tool("other.json", "{\"compilerOptions\": {}}");
    world.write_tool("no-tools.json", "{\"name\": \"x\", \"tools\": []}");
    world.write_tool("_draft.json", "{");
    world.write_tool(".hidden.json", "{");
    world.write_tool("package.json", "{");
    world.write_tool("notes.txt", "{");
    world.write_tool("z-good.json", shell_tool("good", "echo good", json!({})));
}

fn full_of_bad_files() -> (World, Vec<Expected>) {
    let world = World::trusted();
    harmless(&world);
    let expected = [
        broken_files(&world),
        bad_fields(&world),
        clashes(&world),
        unreadable(&world),
    ];
    (world, expected.into_iter().flatten().collect())
}

/// Each problem that was expected, and no other.
fn check(world: &World, told: &[Value], expected: &[Expected]) {
    for Expected {
        file,
        kind,
        tool,
        words,
    } in expected
    {
        let path = json!(world.tools_folder().join(file));
        let fits = |problem: &&Value| {
            problem["file"] == path
                && problem["errorType"] == *kind
                && problem.get("toolName").and_then(Value::as_str) == *tool
                && problem["message"].as_str().unwrap().contains(words)
        };
        let of_file: Vec<&Value> = told
            .iter()
            .filter(|problem| problem["file"] == path)
            .collect();
        let Some(problem) = told.iter().find(fits) else {
            panic!("{file} ({words}) is not reported as {kind}: {of_file:#?}");
        };
        assert_eq!(problem["severity"], "error");
        assert_eq!(problem["source"], "plugin");
        assert!(!problem["hint"].as_str().unwrap().is_empty(), "{problem}");
        assert_eq!(
            problem.get("line").is_some(),
            *kind == "SyntaxError",
            "{problem}"
        );
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
}

#[tokio::test]
async fn the_server_tells_every_problem_and_serves_every_good_tool() {
    let (world, expected) = full_of_bad_files();
    let crib = world.serve();
    let (status, problems) = crib.get("/tools/errors").await;
    assert_eq!(status, 200);
    check(&world, problems["errors"].as_array().unwrap(), &expected);
    let (_, list) = crib.get("/tools?source=plugin").await;
    let names: Vec<&str> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["good", "neighbour", "shared", "twin", "with-mark"]);
    for name in ["good", "neighbour", "with-mark"] {
        assert_eq!(crib.output(name, json!({})).await, "good\n");
    }
    for name in ["shared", "twin"] {
        assert_eq!(crib.output(name, json!({})).await, "first\n");
    }
    let (_, builtin) = crib.get("/tools/git-status").await;
    assert_eq!(builtin["source"], "builtin");
    let (_, reloaded) = crib.post("/tools/reload", json!({})).await;
    assert_eq!(reloaded["success"], false);
    check(&world, reloaded["errors"].as_array().unwrap(), &expected);
}

#[test]
fn the_command_line_tells_every_problem_and_exits_so() {
    let (world, expected) = full_of_bad_files();
    let listed = world.run(&["list"]).exits(1);
    assert!(listed.stdout.contains("neighbour"), "{}", listed.stdout);
    assert!(
        listed
            .stderr
            .contains(&format!("{} problems", expected.len())),
        "{}",
        listed.stderr
    );
    let json = world.run(&["list", "--json"]).exits(1).json();
    check(&world, json["errors"].as_array().unwrap(), &expected);
    let printed = world.run(&["errors"]).exits(1).stdout;
    for Expected {
        file, words, kind, ..
    } in &expected
    {
        assert!(
            printed.contains(&world.tools_folder().join(file).display().to_string()),
            "{file}: {printed}"
        );
        assert!(
            printed.contains(words) && printed.contains(kind),
            "{words}: {printed}"
        );
    }
    assert_eq!(
        printed.matches("\n  hint: ").count(),
        expected.len(),
        "{printed}"
    );
    let told = world.run(&["errors", "--json"]).exits(1).json();
    assert_eq!(told["count"], expected.len());
    assert_eq!(world.run(&["call", "good"]).exits(0).stdout, "good\n");
}

#[test]
fn files_without_tools_are_shown_when_asked_for_and_are_no_problem() {
    let world = World::trusted();
    harmless(&world);
    let listed = world.run(&["list", "--all", "--json"]).exits(0).json();
    assert_eq!(listed["errors"], json!([]));
    let idle = [
        world.tools_folder().join("no-tools.json"),
        world.tools_folder().join("other.json"),
    ];
    assert_eq!(listed["idleFiles"], json!(idle));
}

#[tokio::test]
async fn a_link_to_a_file_that_goes_takes_its_tool_along() {
    let world = World::trusted();
    let target = world.write(
        "elsewhere.json",
        shell_tool("linked", "echo here", json!({})),
    );
    let link = world.tools_folder().join("linked.json");
    symlink(&target, &link).unwrap();
    let crib = world.serve();
    assert_eq!(crib.output("linked", json!({})).await, "here\n");
    std::fs::remove_file(target).unwrap();
    let (_, reloaded) = crib.post("/tools/reload", json!({})).await;
    assert_eq!(reloaded["errors"][0]["file"], json!(link), "{reloaded}");
    crib.refused("linked", json!({}), 404, "unknown_tool").await;
    assert_eq!(crib.stop(), Some(0));
    // Nor does it come back from the versions that are kept.
    let crib = world.serve();
    crib.refused("linked", json!({}), 404, "unknown_tool").await;
}
