//! What a project or a tool chooses by names, schemas and folders that are not there yet: it decides about itself alone.
//! On every rung, as an ordinary user.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::ordinary::ordinary;
use crate::support::{World, eventually};
use crate::walls::{CURIOUS, HAND, executable, hand, text, worlds, written};

/// A Python tool whose parameter brings words of its own into the schema.
const NOTED: &str = r#"
from typing import Annotated
from toolcrib import tool

class Note:
    json_schema_extra = {"$id": "other"}

@tool
def noted(a: Annotated[str, Note()]) -> str:
    """Takes something."""
    return a
"#;

/// A part of a schema that names itself would be judged by references that nobody looked at.
#[test]
fn a_schema_in_a_schema_is_told_of_and_its_tool_is_not_there() {
    for (rung, mut world) in worlds() {
        let nested = json!({"type": "object", "properties": {
            "a": {"$id": "other", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        }});
        let mut plugin: Value =
            serde_json::from_str(&crate::support::shell_tool("planned", "echo x", json!({})))
                .unwrap();
        plugin["tools"][0]["inputSchema"] = nested.clone();
        let files = [
            world.write_tool("planned.json", plugin.to_string()),
            world.write_tool("noted.py", NOTED),
            world.write_tool("hand.py", HAND),
        ];
        let schema = nested.to_string().replace('"', "\\\"");
        let program = CURIOUS.replace(
            "{\"type\": \"object\"}",
            &format!("json.loads(\"{schema}\")"),
        );
        assert_ne!(program, CURIOUS);
        let program = world.write("curious/tool.py", program);
        written(&mut world);
        let list = world.run(&["list", "--json"]).exits(1).json();
        let problems = list["errors"].as_array().unwrap();
        for file in &files[..2] {
            let told = problems.iter().find(|told| told["file"] == json!(file));
            let told = told.unwrap_or_else(|| panic!("{rung} {file:?}: {list}"));
            let message = told["message"].as_str().unwrap();
            assert!(message.contains("/properties/a"), "{rung}: {told}");
            assert!(message.contains("has `$id`"), "{rung}: {told}");
        }
        let errors = problems.iter().filter(|told| told["severity"] == "error");
        assert_eq!(errors.count(), 2, "{rung}: {list}");
        for name in ["planned", "noted"] {
            let ran = world.run(&["call", name, "a=x"]);
            assert_ne!(ran.code, 0, "{rung} {name}: {ran:?}");
        }
        let fine = hand(&world, "read", &files[2], "");
        assert_eq!(fine["isError"], false, "{rung}: {fine}");
        // Nor is one registered.
        let paths = [&program, &world.project(), &world.home()].map(text);
        let mut all = vec!["register", "--", "python3"];
        all.extend(paths.iter().map(String::as_str));
        all.push("1");
        let refused = world.run(&all);
        assert_ne!(refused.code, 0, "{rung}: {refused:?}");
        let told = refused.stdout + &refused.stderr;
        assert!(told.contains("has `$id`"), "{rung}: {told}");
    }
}

const TYPESCRIPT: &str =
    r#"export default { description: "Says", args: {}, execute: () => "other" };"#;

/// Where tools of the project would take packages from, a tool that writes the project makes nothing, though nothing is
/// there yet.
#[test]
fn a_folder_for_packages_is_not_made_by_a_tool() {
    for (rung, mut world) in worlds() {
        world.write_tool("hand.py", HAND);
        world.write_tool("other.ts", TYPESCRIPT);
        world.write("src/packages/evil.pth", "");
        written(&mut world);
        world.run(&["grant", "hand", "--write", "."]).exits(0);
        let own = world.project();
        for folder in [".venv", "node_modules"] {
            let there = own.join(folder);
            for (what, path, to) in [
                ("make", there.join("evil"), "".into()),
                ("make", there.clone(), "".into()),
                ("link", there.clone(), own.join("src/packages")),
                ("rename", own.join("src/packages"), there.clone()),
                ("write", there.join("evil.pth"), "".into()),
                ("write", there.clone(), "".into()),
            ] {
                let tried = hand(&world, what, &path, &to);
                assert_eq!(tried["isError"], true, "{rung} {what} {folder}: {tried}");
                let kind = there.symlink_metadata().map(|meta| meta.is_dir());
                assert!(kind.unwrap_or(true), "{rung} {what} {folder}");
                let held = std::fs::read_dir(&there).map_or(0, Iterator::count);
                assert_eq!(held, 0, "{rung} {what} {folder}");
            }
        }
        assert!(own.join("src/packages").is_dir(), "{rung}");
        let fine = hand(&world, "write", own.join("src/made"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
        // What stands there for it is in nobody's way.
        let other = world.run(&["call", "other", "--json"]).exits(0).json();
        assert_eq!(other["output"], "other", "{rung}");
        // By that path it may.
        world.run(&["grant", "hand", "--write", ".venv"]).exits(0);
        let fine = hand(&world, "write", own.join(".venv/wanted"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
    }
}

/// What agents, editors, version control and shells run by themselves is no part of a project that a tool may write.
#[test]
fn settings_that_run_programs_outside_are_kept_in_a_writable_project() {
    for (rung, mut world) in worlds() {
        world.write_tool("hand.py", HAND);
        let kept = [
            ".claude/settings.json",
            ".mcp.json",
            ".hg/hgrc",
            ".envrc",
            ".husky/pre-commit",
            "opencode.json",
            "web/app/.vscode/tasks.json",
            "web/.cursor/mcp.json",
            "web/.kiro/settings/mcp.json",
            ".helix/languages.toml",
            // What git runs and reads by its settings.
            "scripts/hooks/pre-commit",
            "shared/git.ini",
        ];
        for file in kept {
            world.write(file, "as it was");
        }
        let settings =
            "[core]\n\thooksPath = scripts/hooks\n[include]\n\tpath = ../shared/git.ini\n";
        world.write(".git/config", settings);
        world.write("src/evil", "planted");
        written(&mut world);
        world.run(&["grant", "hand", "--write", "."]).exits(0);
        let own = world.project();
        for file in kept {
            let (file, gone) = (own.join(file), own.join("src/gone"));
            let folder = file.parent().unwrap().to_path_buf();
            for (what, path, to) in [
                ("write", file.clone(), "".into()),
                ("rename", own.join("src/evil"), file.clone()),
                ("rename", file.clone(), gone.clone()),
                ("rename", folder, gone.clone()),
            ] {
                let tried = hand(&world, what, &path, &to);
                assert_eq!(tried["isError"], true, "{rung} {what} {path:?}: {tried}");
            }
            assert_eq!(std::fs::read_to_string(file).unwrap(), "as it was");
        }
        for folder in ["web", "web/app"] {
            let tried = hand(&world, "rename", own.join(folder), own.join("src/web"));
            assert_eq!(tried["isError"], true, "{rung} {folder}: {tried}");
        }
        // Where nothing is mounted, there is nothing new beside what is kept.
        if rung == "B" {
            for (what, name) in [("write", "opencode.jsonc"), ("make", ".gemini")] {
                let tried = hand(&world, what, own.join(name), "");
                assert_eq!(tried["isError"], true, "{name}: {tried}");
            }
        }
        let fine = hand(&world, "write", own.join("src/made"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
        // By that very path they may be written.
        for named in [".claude", ".mcp.json"] {
            world.run(&["grant", "hand", "--write", named]).exits(0);
        }
        for file in [".claude/settings.json", ".mcp.json"] {
            let fine = hand(&world, "write", own.join(file), "");
            assert_eq!(fine["output"], "written", "{rung} {file}: {fine}");
        }
        let tried = hand(&world, "write", own.join(".hg/hgrc"), "");
        assert_eq!(tried["isError"], true, "{rung}: {tried}");
    }
}

/// Which interpreter a version manager runs the user's own tools with is the user's choice; a project chooses for its own
/// tools, once all of it is trusted.
#[test]
fn a_project_chooses_no_version_for_the_users_own_tools() {
    for rung in ["A", "B", "C"] {
        let mut world = World::new();
        world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
        let manager = world.home().join(".pyenv");
        for folder in ["shims", "versions/usual/bin", "versions/chosen/bin"] {
            let program = manager.join(folder).join("python3");
            std::fs::create_dir_all(program.parent().unwrap()).unwrap();
            std::fs::write(&program, format!("#!/bin/echo {folder}\n")).unwrap();
            executable(&program);
        }
        std::fs::write(manager.join("version"), "usual\n").unwrap();
        let global = world.global_folder().join("own.json");
        std::fs::create_dir_all(global.parent().unwrap()).unwrap();
        let plugin = |name: &str| crate::support::shell_tool(name, "python3 -c pass", json!({}));
        std::fs::write(&global, plugin("own")).unwrap();
        world.write(".python-version", "chosen\n");
        world.write_tool("theirs.json", plugin("theirs"));
        ordinary(&mut world);
        let path = format!("{}:/usr/bin:/bin", text(manager.join("shims")));
        world.vars.push(("PATH", path));
        let said = |name: &str| {
            let ran = world.run(&["call", name, "--json"]);
            ran.stdout + &ran.stderr
        };
        assert!(
            said("own").contains("versions/usual"),
            "{rung}: {}",
            said("own")
        );
        world.run(&["trust"]).exits(0);
        assert!(
            said("own").contains("versions/usual"),
            "{rung}: {}",
            said("own")
        );
        let theirs = said("theirs");
        assert!(theirs.contains("versions/chosen"), "{rung}: {theirs}");
        // One that is trusted by itself sees nothing around it.
        world.run(&["trust", "--revoke"]).exits(0);
        world.run(&["new", "mine", "--template", "plugin"]).exits(0);
        world.write_tool("mine.json", plugin("mine"));
        let mine = said("mine");
        assert!(mine.contains("versions/usual"), "{rung}: {mine}");
    }
}

/// Makes folders in folders, and dies: then its private folder is cleared.
const DEEP: &str = r#"
from toolcrib import tool

@tool
def deep(depth: int) -> str:
    """Makes folders in folders."""
    import os
    os.chdir(os.environ["TMPDIR"])
    os.mkdir("0")
    for number in range(1, depth):
        os.mkdir(str(number))
        os.rename(str(number - 1), f"{number}/d")
    if depth > 1: os._exit(3)
    return "made"
"#;

/// What a tool leaves in its private folder goes with it, however deep it is, and the crib lives on.
#[tokio::test]
async fn a_private_folder_deeper_than_any_path_is_cleared() {
    for (rung, mut world) in worlds() {
        let tmp = world.root().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        world.vars.push(("TMPDIR", text(&tmp)));
        world.write_tool("deep.py", DEEP);
        written(&mut world);
        let crib = world.serve();
        let (_, died) = crib.call("deep", json!({"depth": 20_000})).await;
        let told = died.to_string();
        assert!(told.contains("code 3"), "{rung}: {died}");
        let holds = |folder: &Path| {
            let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
            inside.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        // A worker that was started in its place may have one, with nothing in it.
        eventually("it is cleared", async || {
            let mut private = holds(&tmp).into_iter();
            private.all(|folder| holds(&folder) == [folder.join("home")])
        })
        .await;
        let (_, fine) = crib.call("deep", json!({"depth": 1})).await;
        assert_eq!(fine["output"], "made", "{rung}: {fine}");
        assert_eq!(crib.stop(), Some(0), "{rung}");
    }
}

/// The user's settings with walls taken away for what is named so.
fn let_out(world: &mut World, name: &str) {
    let config = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&config).unwrap();
    let settings = format!("[tools.{name:?}]\nsandbox = \"off\"\n");
    std::fs::write(config.join("config.toml"), settings).unwrap();
    written(world);
}

/// A project chooses the names of its tools, so no name lets one of them out: only the path of its file does.
#[test]
fn a_projects_tool_is_let_out_by_its_path_alone() {
    for (rung, mut world) in worlds() {
        let file = world.write_tool("hand.py", HAND);
        let script = CURIOUS.replace("import json, os", "#!/usr/bin/python3\nimport json, os");
        let program = world.write_tool("curious", script.trim_start());
        executable(&program);
        written(&mut world);
        let secret = world.home().join("secret");
        let reads = |world: &World| hand(world, "read", &secret, "")["output"] == "hidden";
        let beside = world.tools_folder().join("other.py");
        for name in [
            "hand",
            "hand.py",
            ".toolcrib/tools/hand.py",
            "./.toolcrib/tools/hand.py",
            &text(world.tools_folder()),
            &text(world.project()),
            &text(&beside),
            "*",
        ] {
            let_out(&mut world, name);
            assert!(!reads(&world), "{rung}: let out by {name}");
        }
        let_out(&mut world, &text(&file));
        assert!(reads(&world), "{rung}");
        // The user's own tool of a name is let out by it; one of a project that takes the name is not.
        std::fs::remove_file(&file).unwrap();
        let global = world.global_folder().join("hand.py");
        std::fs::create_dir_all(global.parent().unwrap()).unwrap();
        std::fs::write(&global, HAND).unwrap();
        let_out(&mut world, "hand");
        assert!(reads(&world), "{rung}");
        world.write_tool("hand.py", HAND);
        written(&mut world);
        let shown = world.run(&["show", "hand", "--json"]).exits(0).json();
        let of_project = shown["file"] == json!(file);
        assert_eq!(reads(&world), !of_project, "{rung}: {shown}");
        assert!(of_project, "{rung}: {shown}");
        assert!(Path::new(&global).exists());
    }
}

/// The user lets a program out by the name of its tool. Who holds a token does not say which program has that name.
#[tokio::test]
async fn a_name_that_is_let_out_is_registered_by_the_owner_alone() {
    for (rung, mut world) in worlds() {
        let program = world.write("curious/tool.py", CURIOUS);
        let_out(&mut world, "curious");
        let (project, home) = (text(world.project()), text(world.home()));
        let args = [&text(&program), &project, &home, "1"].map(str::to_owned);
        let at_cli = |name: &str| {
            let mut all = vec!["register", "--name", name, "--json", "--", "python3"];
            all.extend(args.iter().map(String::as_str));
            world.run(&all)
        };
        let crib = world.serve();
        let body = json!({"name": "curious", "command": "python3", "args": args});
        let canary = world.project().join("canary");
        let denied = async |what: &str| {
            let (status, told) = crib.post("/custom-tools", body.clone()).await;
            assert_eq!(status, 403, "{rung} {what}: {told}");
            assert_eq!(told["error"]["code"], "denied", "{rung}: {told}");
            let hint = told["error"]["hint"].as_str().unwrap();
            assert!(hint.contains("toolcrib register"), "{rung}: {told}");
            assert!(!canary.exists(), "{rung} {what}: nothing ran");
        };
        denied("before it is there").await;
        let mut other = body.clone();
        other["name"] = json!("other");
        let (status, made) = crib.post("/custom-tools", other).await;
        assert_eq!(
            (status, &made["description"]),
            (201, &json!("It got: nothing")),
            "{rung}"
        );
        // At the command line it is the owner's word, through the crib too.
        at_cli("curious").exits(0);
        assert!(canary.exists(), "{rung}: it was let out");
        std::fs::remove_file(&canary).unwrap();
        let changed = json!({"args": args, "tags": ["x"]});
        let (status, told) = crib.patch("curious", changed).await;
        assert_eq!(status, 403, "{rung}: {told}");
        // Nor is it taken away and made anew.
        assert_eq!(crib.delete("curious").await, 204, "{rung}");
        denied("after it was taken away").await;
    }
}
