//! `toolcrib new`: what it writes, what it refuses, and that it trusts its own tool and nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{World, program, shell_tool};

const TEMPLATES: [&str; 7] = [
    "python",
    "typescript",
    "node",
    "bash",
    "rust",
    "python-rpc",
    "plugin",
];

fn lists(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_template_is_written_whole_and_the_next_command_named() {
    let world = World::trusted();
    for template in TEMPLATES {
        let name = format!("my-{template}");
        let ran = program::new_tool(&world, &["new", &name, "--template", template]).exits(0);
        let next = format!("toolcrib test {name} '{{\"text\": \"hi\"}}'");
        assert!(ran.stdout.contains(&next), "{}", ran.stdout);
        // The project is trusted already.
        assert!(!ran.stdout.contains("trusted"), "{}", ran.stdout);
        assert_eq!(ran.stderr.contains("building"), template == "rust");
        assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    }
    assert_eq!(
        lists(&world.tools_folder()),
        [
            "my-bash",
            "my-node",
            "my-plugin.json",
            "my-python-rpc",
            "my-python.py",
            "my-rust",
            "my-typescript.ts"
        ],
        "and no draft is left behind"
    );
    let files = |name: &str| lists(&world.tools_folder().join(name));
    assert_eq!(files("my-node"), ["tool.json", "tool.mjs"]);
    assert_eq!(
        files("my-rust"),
        ["json.rs", "main.rs", "tool", "tool.json"]
    );
    for file in [
        "my-node/tool.mjs",
        "my-bash/tool.sh",
        "my-python-rpc/tool.py",
        "my-rust/tool",
    ] {
        let meta = world.tools_folder().join(file).metadata().unwrap();
        assert_eq!(meta.permissions().mode() & 0o100, 0o100, "{file}");
    }
    let text = std::fs::read_to_string(world.tools_folder().join("my-bash/tool.json")).unwrap();
    let spec: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(spec["name"], "my-bash");
}

#[test]
fn the_plugin_template_can_be_called_at_once() {
    let world = World::new();
    world.write_tool("other.json", shell_tool("other", "echo no", json!({})));
    let ran = world.run(&["new", "say", "--template", "plugin", "--json"]);
    let said = ran.exits(0).json();
    let entry = world.tools_folder().join("say.json");
    assert_eq!(said["written"], json!([entry]));
    assert_eq!(said["trustedEntry"], json!(entry));
    assert_eq!(said["scope"], "local");
    world.run(&["trust"]).exits(0);
    let call = |arguments: Value| {
        let ran = world.run(&["call", "say", &arguments.to_string(), "--json"]);
        ran.exits(0).json()["output"].as_str().unwrap().to_owned()
    };
    assert_eq!(call(json!({"text": "hi"})), "hi\n");
    let hostile = "-n \"$(id)\" '; %s \\n {{times}} ä😀\nb";
    assert_eq!(
        call(json!({"text": hostile, "times": 2})),
        format!("{hostile}\n{hostile}\n")
    );
    world.run(&["call", "say"]).exits(2);
    assert_eq!(
        world.run(&["errors", "--json"]).exits(0).json()["errors"],
        json!([]),
        "not even a warning"
    );
}

#[test]
fn in_an_untrusted_project_the_new_tool_alone_is_trusted() {
    let world = World::new();
    world.write_tool("other.json", shell_tool("other", "echo no", json!({})));
    let ran = world.run(&["new", "mine"]).exits(0);
    assert!(
        ran.stdout.contains("this tool alone") && ran.stdout.contains("not trusted"),
        "{}",
        ran.stdout
    );
    let entry = world.tools_folder().join("mine.py");
    let listed = || world.run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(listed()["projects"], json!([]));
    assert_eq!(listed()["entries"][0]["path"], json!(entry));
    assert_eq!(listed()["entries"].as_array().unwrap().len(), 1);
    let shown = world.run(&["trust", "--list"]).exits(0).stdout;
    assert!(shown.contains("mine.py (this tool alone)"), "{shown}");
    world.run(&["call", "other"]).exits(3);
    // Taken back singly, by a path of any form.
    let path = ".toolcrib/../.toolcrib/tools/mine.py";
    let gone = world.run(&["trust", "--revoke", path]).exits(0).stdout;
    assert!(
        gone.contains("no longer trusted") && gone.contains("mine"),
        "{gone}"
    );
    assert_eq!(listed()["entries"], json!([]));
    // And with its project.
    world.run(&["new", "second"]).exits(0);
    let gone = world.run(&["trust", "--revoke"]).exits(0).stdout;
    assert!(gone.contains("no longer trusted"), "{gone}");
    assert_eq!(listed()["entries"], json!([]));
}

#[test]
fn a_name_that_is_taken_or_cannot_be_one_is_refused_and_nothing_is_written() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("inside", "echo", json!({})));
    world.write_tool("b.py", "# not a tool yet");
    std::fs::create_dir(world.tools_folder().join("c")).unwrap();
    let before = lists(&world.tools_folder());
    for (name, why) in [
        ("a", "taken by"),
        ("b", "taken by"),
        ("c", "taken by"),
        ("inside", "a.json"),
        ("git-status", "comes with Toolcrib"),
    ] {
        for template in ["plugin", "bash"] {
            let ran = world.run(&["new", name, "--template", template]).exits(3);
            assert!(ran.stderr.contains(why), "{name}: {}", ran.stderr);
            assert!(ran.stderr.contains("hint:"), "{name}: {}", ran.stderr);
        }
    }
    let long = "x".repeat(65);
    for name in ["", "a b", "../up", "a/b", "ä", "errors", "_hidden", &long] {
        world.run(&["new", name]).exits(2);
    }
    let ran = world.run(&["new", "packages", "--template", "plugin"]);
    assert!(ran.exits(2).stderr.contains("not be looked at"));
    world.run(&["new", "x", "--template", "cobol"]).exits(2);
    assert_eq!(lists(&world.tools_folder()), before);
    assert_eq!(
        world.run(&["new", "a", "--json"]).exits(3).json()["error"]["code"],
        "conflict"
    );
}

#[test]
fn without_a_project_there_is_a_hint_and_a_way() {
    let world = World::new();
    let alone = world.root().join("alone");
    std::fs::create_dir(&alone).unwrap();
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command.current_dir(&alone);
        world.finish(command)
    };
    let ran = run(&["new", "greet"]).exits(2);
    assert!(
        ran.stderr.contains("toolcrib init") && ran.stderr.contains("new greet --global"),
        "{}",
        ran.stderr
    );
    let ran = run(&["new", "greet", "--global", "--template", "plugin"]).exits(0);
    assert!(!ran.stdout.contains("trusted"), "{}", ran.stdout);
    assert!(world.global_folder().join("greet.json").exists());
    assert_eq!(run(&["call", "greet", "text=hi"]).exits(0).stdout, "hi\n");
    run(&["new", "greet", "--global", "--template", "bash"]).exits(3);
    // A git checkout is a project, and gets its folder.
    std::fs::create_dir(alone.join(".git")).unwrap();
    run(&["new", "greet", "--template", "plugin"]).exits(0);
    assert!(alone.join(".toolcrib/tools/greet.json").exists());
    let listed = run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(
        listed["projects"],
        json!([]),
        "the project itself is not trusted"
    );
    assert_eq!(listed["entries"].as_array().unwrap().len(), 1);
}

#[test]
fn where_trust_cannot_be_remembered_nothing_is_written() {
    let world = World::new();
    let data = world.home().join(".local/share/toolcrib");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(data.join("toolcrib.db"), "nonsense".repeat(1_000)).unwrap();
    let ran = world.run(&["new", "x"]).exits(4);
    assert!(ran.stderr.contains("is damaged"), "{}", ran.stderr);
    assert_eq!(lists(&world.tools_folder()), Vec::<String>::new());
    // The user's own folder needs no trust.
    world.run(&["new", "x", "--global"]).exits(0);
}

#[test]
fn a_link_out_of_an_untrusted_project_is_not_written_through() {
    let world = World::new();
    let outside = world.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir(world.tools_folder()).unwrap();
    std::os::unix::fs::symlink(&outside, world.tools_folder()).unwrap();
    let ran = world.run(&["new", "x"]).exits(3);
    assert!(ran.stderr.contains("leads out"), "{}", ran.stderr);
    assert_eq!(lists(&outside), Vec::<String>::new());
    world.run(&["trust"]).exits(0);
    world.run(&["new", "x"]).exits(0);
    assert_eq!(lists(&outside), ["x.py"]);
}

#[test]
fn a_missing_interpreter_and_a_folder_nobody_looks_at_are_told_of() {
    let world = World::trusted();
    let nowhere = world.root().join("bin");
    std::fs::create_dir(&nowhere).unwrap();
    for (template, program) in [
        ("node", "node"),
        ("bash", "jq"),
        ("python-rpc", "python3"),
        ("rust", "rustc"),
    ] {
        let mut command = world.command(&["new", template, "--template", template]);
        command.env("PATH", &nowhere);
        let ran = world.finish(command).exits(0);
        let warning = format!("`{program}` is not on PATH: install");
        assert!(ran.stderr.contains(&warning), "{}", ran.stderr);
    }
    let mut command = world.command(&["new", "later", "--template", "rust", "--json"]);
    command.env("PATH", &nowhere);
    let warnings = world.finish(command).exits(0).json()["warnings"].to_string();
    assert!(
        warnings.contains("rustc --edition 2021 -O -o tool main.rs"),
        "{warnings}"
    );
    let mut command = world.command(&["new", "unseen", "--template", "plugin"]);
    command.env("TOOLCRIB_TOOLS_DIR", &nowhere);
    let ran = world.finish(command).exits(0);
    assert!(
        ran.stderr.contains("`tools_dir` replaces"),
        "{}",
        ran.stderr
    );
}

/// A project's own toolchain file would name the compiler that rustup runs.
#[test]
fn a_project_does_not_choose_the_compiler() {
    let world = World::new();
    let evil = world.write("evil/bin/rustc", "#!/bin/sh\ntouch \"$0.ran\"\n");
    std::fs::set_permissions(&evil, std::fs::Permissions::from_mode(0o755)).unwrap();
    let toolchain = format!("[toolchain]\npath = {:?}\n", world.project().join("evil"));
    world.write("rust-toolchain.toml", toolchain);
    let mut command = world.command(&["new", "x", "--template", "rust"]);
    program::name_compiler(&mut command);
    world.finish(command);
    assert!(!world.project().join("evil/bin/rustc.ran").exists());
    assert!(world.tools_folder().join("x/main.rs").exists());
}

/// The two templates that need no protocol: a tool of exactly that name, described as the others are.
#[test]
fn a_script_answers_at_once() {
    let world = World::trusted();
    world.run(&["new", "say-it"]).exits(0);
    world
        .run(&["new", "say-too", "--template", "typescript"])
        .exits(0);
    world
        .run(&["new", "say-rpc", "--template", "python-rpc"])
        .exits(0);
    let show = |name: &str| world.run(&["show", name, "--json"]).exits(0).json();
    let first = show("say-rpc");
    for (name, file, source) in [
        ("say-it", "say-it.py", "python"),
        ("say-too", "say-too.ts", "typescript"),
    ] {
        let tool = show(name);
        assert_eq!(tool["source"], source);
        assert!(tool["file"].as_str().unwrap().ends_with(file));
        assert!(tool["interpreter"].is_string());
        let (schema, wanted) = (&tool["inputSchema"], &first["inputSchema"]);
        assert_eq!(schema["properties"]["text"]["type"], "string");
        assert_eq!(schema["required"], wanted["required"], "{tool}");
        let ran = world
            .run(&["test", name, "text=hi", "times=2", "--json"])
            .exits(0);
        let told = ran.json().to_string();
        assert!(told.contains("hi\\nhi"), "{told}");
        let ran = world.run(&["call", name, "text=hi", "times=101"]).exits(1);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("a hundred times is enough"), "{said}");
    }
    let list = world.run(&["list"]).exits(0);
    assert!(list.stdout.contains("say-it"), "{}", list.stdout);
}

/// Confined as every tool is, with what its template declares and `new` grants.
#[test]
fn every_template_answers_in_the_sandbox() {
    for rung in ["A", "B"] {
        let mut world = World::trusted();
        world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
        for template in ["node", "bash", "python-rpc", "plugin"] {
            let name = format!("my-{template}");
            world.run(&["new", &name, "--template", template]).exits(0);
            let said = world.run(&["call", &name, "text=hi", "times=2"]).exits(0);
            assert_eq!(said.stdout, "hi\nhi\n", "rung {rung}, {template}");
        }
    }
}
