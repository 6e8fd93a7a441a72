//! Which file gives a name its tool, which files are no tools at all, and which project this is.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ran, World, shell_tool};

fn saying(name: &str, word: &str) -> String {
    shell_tool(name, &format!("echo {word}"), json!({}))
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn plugin_names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap();
    let plugins = tools.iter().filter(|tool| tool["source"] == "plugin");
    plugins.map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_local_tool_hides_a_global_one_silently_and_show_says_so() {
    let world = World::trusted();
    let hidden = world.global_folder().join("g.json");
    write(&hidden, &saying("speak", "global"));
    assert_eq!(world.run(&["call", "speak"]).exits(0).stdout, "global\n");
    world.write_tool("l.json", saying("speak", "local"));
    assert_eq!(world.run(&["call", "speak"]).exits(0).stdout, "local\n");
    world.run(&["list"]).exits(0);
    let show = world.run(&["show", "speak"]).exits(0).stdout;
    assert!(
        show.contains("shadows") && show.contains(hidden.to_str().unwrap()),
        "{show}"
    );
    let crib = world.serve();
    let (_, view) = crib.get("/tools/speak").await;
    assert_eq!(view["shadows"], json!([hidden]));
    assert_eq!(
        (&view["scope"], &view["status"]),
        (&json!("local"), &json!("active"))
    );
    // What was hidden comes forth when what hid it goes.
    let mut events = crib.events().await;
    std::fs::remove_file(world.tools_folder().join("l.json")).unwrap();
    assert_eq!(
        events.next("tools_changed").await["changed"],
        json!(["speak"])
    );
    assert_eq!(crib.output_of("speak").await, "global");
}

#[test]
fn of_two_files_in_one_folder_the_earlier_name_wins_and_the_later_has_a_problem() {
    let world = World::trusted();
    world.write_tool("b.json", saying("speak", "b"));
    world.write_tool("a.json", saying("speak", "a"));
    assert_eq!(world.run(&["call", "speak"]).exits(0).stdout, "a\n");
    let list = world.run(&["list", "--json"]).exits(1).json();
    let problem = &list["errors"][0];
    assert_eq!(list["errors"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(problem["errorType"], "NameClash");
    assert_eq!(problem["file"], json!(world.tools_folder().join("b.json")));
    assert_eq!(problem["toolName"], "speak");
    assert!(
        problem["message"].as_str().unwrap().contains("a.json"),
        "{problem}"
    );
}

#[test]
fn a_built_in_name_cant_be_taken_and_reserved_names_are_refused() {
    let world = World::trusted();
    world.write_tool("a.json", saying("git-status", "mine"));
    let list = world.run(&["list", "--json"]).exits(1).json();
    assert_eq!(list["errors"][0]["errorType"], "NameClash", "{list}");
    let show = world.run(&["show", "git-status", "--json"]).exits(0).json();
    assert_eq!(show["source"], "builtin");
    for name in [
        "errors",
        "reload",
        "definitions",
        "search_tools",
        "call_tool",
        "call_tool_read",
        "with space",
        "",
        &"x".repeat(65),
    ] {
        world.write_tool("a.json", saying(name, "mine"));
        let list = world.run(&["list", "--json"]).exits(1).json();
        assert_eq!(plugin_names(&list), Vec::<&str>::new(), "{name}");
        assert_eq!(list["errors"][0]["errorType"], "ValidationError", "{list}");
        assert_ne!(list["errors"][0]["hint"], "");
    }
    world.write_tool("a.json", saying(&"x".repeat(64), "mine"));
    world.run(&["list"]).exits(0);
}

#[test]
fn some_files_are_passed_over_without_a_word() {
    let world = World::trusted();
    let broken = "{ nonsense";
    for name in [
        "_x.json",
        ".x.json",
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "tsconfig.base.json",
        "deno.json",
        "deno.jsonc",
        "readme.md",
        "x.json.bak",
        "x.json~",
        "node_modules/x.json",
        "__pycache__/x.json",
        "folder.json/x.json",
    ] {
        write(&world.tools_folder().join(name), broken);
    }
    let list = world.run(&["list", "--all", "--json"]).exits(0).json();
    assert_eq!(plugin_names(&list), Vec::<&str>::new());
    assert_eq!(
        (&list["errors"], &list["idleFiles"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn a_file_without_tools_is_no_problem_and_can_be_seen() {
    let world = World::trusted();
    let data = world.write_tool("data.json", r#"{"rows": [1, 2, 3]}"#);
    let empty = world.write_tool("empty.json", r#"{"name": "none", "tools": []}"#);
    let plain = world.run(&["list"]).exits(0);
    assert!(!plain.stdout.contains("data.json"), "{}", plain.stdout);
    let all = world.run(&["list", "--all"]).exits(0);
    for file in [&data, &empty] {
        let said = format!("{} holds no tool", file.display());
        assert!(all.stdout.contains(&said), "{}", all.stdout);
    }
    let json = world.run(&["list", "--all", "--json"]).exits(0).json();
    assert_eq!(json["idleFiles"], json!([data, empty]));
}

#[test]
fn further_folders_follow_in_order_relative_ones_local_and_absolute_ones_global() {
    let world = World::trusted();
    let shared = world.root().join("shared");
    let config = world.home().join(".config/toolcrib/config.toml");
    let dirs = json!([".opencode/tools", shared]);
    write(&config, &format!("tool_dirs = {dirs}\n"));
    write(&shared.join("s.json"), &saying("shared", "shared"));
    world.write(".opencode/tools/o.json", saying("open", "opencode"));
    let scope = |name: &str| {
        let view = world.run(&["show", name, "--json"]).exits(0).json();
        view["scope"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (scope("open"), scope("shared")),
        ("local".into(), "global".into())
    );
    // Each folder hides the ones after it.
    let said = || world.run(&["call", "shared"]).exits(0).stdout;
    assert_eq!(said(), "shared\n");
    world.write(".opencode/tools/s.json", saying("shared", "opencode"));
    assert_eq!(said(), "opencode\n");
    write(
        &world.global_folder().join("s.json"),
        &saying("shared", "global"),
    );
    assert_eq!(said(), "global\n");
    world.write_tool("s.json", saying("shared", "local"));
    assert_eq!(said(), "local\n");
    let shadows = world.run(&["show", "shared", "--json"]).json()["shadows"].clone();
    assert_eq!(shadows.as_array().unwrap().len(), 3, "{shadows}");
    // A relative folder belongs to the project and waits for its trust; an absolute one is the user's own.
    world.run(&["trust", "--revoke"]).exits(0);
    world.run(&["call", "open"]).exits(3);
    std::fs::remove_dir_all(world.global_folder()).unwrap();
    std::fs::remove_file(world.project().join(".opencode/tools/s.json")).unwrap();
    std::fs::remove_file(world.tools_folder().join("s.json")).unwrap();
    assert_eq!(said(), "shared\n");
}

#[test]
fn a_folder_given_by_variable_replaces_the_default_ones() {
    let world = World::trusted();
    let only = world.root().join("only");
    write(&only.join("o.json"), &saying("only", "only"));
    write(
        &world.global_folder().join("g.json"),
        &saying("global", "global"),
    );
    world.write_tool("l.json", saying("local", "local"));
    let list = |only: Option<&Path>| {
        let mut command = world.command(&["list", "--json"]);
        if let Some(only) = only {
            command.env("TOOLCRIB_TOOLS_DIR", only);
        }
        world.finish(command).exits(0).json()
    };
    assert_eq!(plugin_names(&list(None)), ["global", "local"]);
    assert_eq!(plugin_names(&list(Some(&only))), ["only"]);
}

#[tokio::test]
async fn an_unknown_name_gets_the_three_nearest() {
    let world = World::trusted();
    for name in [
        "list-todos",
        "list-todo",
        "list-today",
        "list-tomorrow",
        "zebra",
    ] {
        world.write_tool(&format!("{name}.json"), saying(name, "x"));
    }
    let crib = world.serve();
    let (status, error) = crib.call("list-tods", json!({})).await;
    assert_eq!(
        (status, &error["error"]["code"]),
        (404, &json!("unknown_tool"))
    );
    let hint = error["error"]["hint"].as_str().unwrap();
    let near: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
    assert_eq!(near.len(), 3, "{hint}");
    assert_eq!(near[0], "list-todos", "{hint}");
    assert!(near.iter().all(|name| name.starts_with("list-")), "{hint}");
    let cli = world.run(&["show", "list-tods"]).exits(3);
    assert!(cli.stderr.contains(hint), "{}", cli.stderr);
    let (_, error) = crib.call("qqqq", json!({})).await;
    assert!(
        error["error"]["hint"]
            .as_str()
            .unwrap()
            .contains("toolcrib list"),
        "{error}"
    );
}

#[test]
fn the_project_is_found_by_flag_variable_marker_or_git_and_named() {
    let world = World::new();
    let root = world.root();
    for folder in [
        "flag",
        "ours",
        "claude",
        "repo/.git",
        "repo/deep",
        "marked/.toolcrib/x",
        "bare",
    ] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    let list = |at: &str, vars: &[(&str, &str)], args: &[&str]| -> Ran {
        let mut command = world.command(&[&["list"], args].concat());
        command.current_dir(root.join(at));
        for (name, folder) in vars {
            command.env(name, root.join(folder));
        }
        world.finish(command).exits(0)
    };
    let both = [
        ("TOOLCRIB_PROJECT", "ours"),
        ("CLAUDE_PROJECT_DIR", "claude"),
    ];
    let flag = root.join("flag");
    let flag = ["--project", flag.to_str().unwrap()];
    for (at, vars, args, wanted) in [
        ("repo", &both[..], &flag[..], "flag"),
        ("repo", &both, &[], "ours"),
        ("repo", &both[1..], &[], "claude"),
        ("marked/.toolcrib/x", &[], &[], "marked"),
        ("repo/deep", &[], &[], "repo"),
    ] {
        let ran = list(at, vars, args);
        let named = format!("project {} ", root.join(wanted).display());
        assert!(ran.stderr.contains(&named), "{wanted}: {}", ran.stderr);
        assert!(
            !ran.stdout.contains(root.to_str().unwrap()),
            "{}",
            ran.stdout
        );
    }
    assert!(list("bare", &[], &[]).stderr.contains("no project"));
    assert!(list("home", &[], &[]).stderr.contains("no project"));
}
