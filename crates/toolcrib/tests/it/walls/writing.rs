//! What a tool does not write, whatever it was granted: its neighbours, what decides about tools, another place.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{CURIOUS, HAND, hand, text, worlds, written};
use crate::support::{World, shell_tool};

/// What one tool was granted, another can't move elsewhere; nor does a link that came later.
#[test]
fn a_grant_stays_the_place_that_was_granted() {
    for (rung, mut world) in worlds() {
        world.write_tool("hand.py", HAND);
        let shared = world
            .write("shared/sub/file", "shared")
            .parent()
            .unwrap()
            .to_path_buf();
        written(&mut world);
        world
            .run(&["grant", "hand", "--write", "shared/sub"])
            .exits(0);
        let fine = hand(&world, "write", shared.join("made"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
        std::fs::rename(&shared, world.project().join("shared/before")).unwrap();
        symlink(world.home(), &shared).unwrap();
        let tried = hand(&world, "read", shared.join("secret"), "");
        assert_eq!(tried["isError"], true, "{rung}: {tried}");
        let told = tried.to_string();
        assert!(
            told.contains("no longer the place that was granted"),
            "{rung}: {told}"
        );
        // A link to what is guarded is not its name.
        symlink(".toolcrib", world.project().join("way")).unwrap();
        let refused = world.run(&["grant", "hand", "--write", "way"]).exits(2);
        assert!(
            refused.stderr.contains("must be named itself"),
            "{rung}: {refused:?}"
        );
        // And a link to another place is a grant of that place, as it is shown.
        symlink("shared/before", world.project().join("short")).unwrap();
        let given = world
            .run(&["grant", "hand", "--read", "short", "--json"])
            .exits(0);
        assert!(given.stdout.contains("shared/before"), "{rung}: {given:?}");
    }
}

/// A writer of the project does not become its neighbours.
#[test]
fn a_tool_that_writes_the_project_takes_over_no_other() {
    for (rung, mut world) in worlds() {
        world.write_tool("hand.py", HAND);
        let own = world.project();
        world.write(
            "opencode/tools/other.json",
            shell_tool("other", "echo other", json!({})),
        );
        let config = "tool_dirs = [\"opencode/tools\"]\n";
        world.write(".toolcrib/config.toml", config);
        world.write(".venv/lib/python3.11/site-packages/x.py", "");
        world.write("web/node_modules/zod/index.js", "");
        world.write("vendor/lib/.git/config", "");
        let program = world.write("tools/registered.py", CURIOUS);
        world.write("tools/helper.py", "");
        // What a script imports lies deep in what is kept.
        let import = "from lib.deep.mod import value\nfrom toolcrib import tool\n\n@tool\ndef importing() -> str:\n    \"\"\"Imports.\"\"\"\n    return value\n";
        world.write_tool("importing.py", import);
        let lib = ".toolcrib/tools/lib";
        world.write(format!("{lib}/__init__.py"), "");
        world.write(format!("{lib}/deep/__init__.py"), "");
        world.write(format!("{lib}/deep/mod.py"), "value = 'fine'\n");
        world.write("src/free", "");
        written(&mut world);
        world.run(&["trust"]).exits(0);
        let args = [
            text(&program),
            text(&own),
            text(world.home()),
            "1".to_owned(),
        ];
        let mut all = vec!["register", "--", "python3"];
        all.extend(args.iter().map(String::as_str));
        world.run(&all).exits(0);
        world.run(&["grant", "hand", "--write", "."]).exits(0);
        for path in [
            ".venv/lib/python3.11/site-packages/evil.pth",
            "web/node_modules/zod/index.js",
            "web/node_modules/evil.js",
            "vendor/lib/.git/hooks",
            ".toolcrib/tools/evil.json",
            ".toolcrib/tools/hand.py",
            ".toolcrib/tools/lib/tool.json",
            ".toolcrib/tools/lib/deep/evil.py",
            ".toolcrib/tools/lib/deep/mod.py",
            ".toolcrib/config.toml",
            "opencode/tools/evil.json",
            "opencode/tools/other.json",
            "tools/registered.py",
            "tools/helper.py",
        ] {
            let before = std::fs::read(own.join(path)).ok();
            let tried = hand(&world, "write", own.join(path), "");
            assert_eq!(tried["isError"], true, "{rung} {path}: {tried}");
            assert_eq!(std::fs::read(own.join(path)).ok(), before, "{rung} {path}");
        }
        for folder in ["web", "vendor", "vendor/lib", "opencode", "tools"] {
            let to = own.join("src/moved");
            let tried = hand(&world, "rename", own.join(folder), to);
            assert_eq!(tried["isError"], true, "{rung} {folder}: {tried}");
        }
        let fine = hand(&world, "write", own.join("src/made"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
        // By that path it may.
        world.run(&["grant", "hand", "--write", ".venv"]).exits(0);
        let path = own.join(".venv/lib/python3.11/site-packages/wanted.py");
        let fine = hand(&world, "write", path, "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
        // What is granted inside of what is kept keeps repositories in its turn.
        let inside = "web/node_modules/own";
        world.write(format!("{inside}/.git/config"), "");
        world.write(format!("{inside}/free/file"), "");
        written(&mut world);
        world.run(&["grant", "hand", "--write", inside]).exits(0);
        let tried = hand(&world, "write", own.join(inside).join(".git/config"), "");
        assert_eq!(tried["isError"], true, "{rung}: {tried}");
        let fine = hand(&world, "write", own.join(inside).join("free/file"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
    }
}

/// A second name of a file that became a tool is no way to write it, and a tool makes no such name.
#[test]
fn a_tools_file_is_kept_under_all_of_its_names() {
    for (rung, mut world) in worlds() {
        let own = world.project();
        world.write_tool("hand.py", HAND);
        let program = world.write("src/program.py", CURIOUS);
        world.write("docs/free", "free");
        world.write("other/there", "");
        for (file, name) in [
            ("src/program.py", "src/alias.py"),
            ("src/program.py", "other/deep.py"),
            ("docs/free", "other/free"),
            (".toolcrib/tools/hand.py", "other/hand.py"),
        ] {
            std::fs::hard_link(own.join(file), own.join(name)).unwrap();
        }
        written(&mut world);
        world.run(&["trust"]).exits(0);
        let args = [text(&program), text(&own), text(world.home()), "1".into()];
        let mut all = vec!["register", "--", "python3"];
        all.extend(args.iter().map(String::as_str));
        world.run(&all).exits(0);
        world.run(&["grant", "hand", "--write", "."]).exits(0);
        for path in ["src/alias.py", "other/deep.py", "other/hand.py"] {
            let before = std::fs::read(own.join(path)).unwrap();
            let tried = hand(&world, "write", own.join(path), "");
            assert_eq!(tried["isError"], true, "{rung} {path}: {tried}");
            assert_eq!(std::fs::read(own.join(path)).unwrap(), before, "{rung}");
        }
        let fine = hand(&world, "write", own.join("other/free"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
        for file in ["src/program.py", ".toolcrib/tools/hand.py"] {
            let tried = hand(&world, "name", own.join("new"), own.join(file));
            assert_eq!(tried["isError"], true, "{rung} {file}: {tried}");
        }
    }
}

/// Whatever was granted, a tool does not write what decides about tools.
#[test]
fn nobody_grants_the_cribs_own_folders() {
    for (rung, mut world) in worlds() {
        world.write_tool("hand.py", HAND);
        written(&mut world);
        let home = text(world.home());
        world.run(&["grant", "hand", "--write", &home]).exits(0);
        let fine = hand(&world, "write", world.home().join("notes"), "");
        // Without mounts new entries beside what is kept are refused.
        assert!(rung == "B" || fine["output"] == "written", "{rung}: {fine}");
        for path in [
            ".config/toolcrib/config.toml",
            ".config/toolcrib/tools/evil.json",
            ".local/share/toolcrib/toolcrib.db",
            ".cache/toolcrib/evil",
        ] {
            let path = world.home().join(path);
            let tried = hand(&world, "write", &path, "");
            assert_eq!(tried["isError"], true, "{rung} {}: {tried}", text(&path));
            let now = std::fs::read(&path).unwrap_or_default();
            assert_ne!(now, b"by the hand", "{rung}");
        }
    }
}

/// Nor to read them: not by the name of a file in there, and not by what a tool declares.
#[test]
fn nobody_grants_to_read_the_cribs_own_files() {
    for (rung, mut world) in worlds() {
        let canary = world.home().join(".local/share/toolcrib/kept/canary");
        std::fs::create_dir_all(canary.parent().unwrap()).unwrap();
        std::fs::write(&canary, "hidden").unwrap();
        std::fs::write(world.home().join("open"), "open").unwrap();
        let declared = format!("@tool(sandbox={{'allowedPaths': ['{}']}})", text(&canary));
        let declares = HAND.replace("@tool", &declared);
        world.write_tool("declares.py", declares.replace("def hand", "def declares"));
        world.write_tool("hand.py", HAND);
        written(&mut world);
        world.run(&["trust"]);
        let read = |tool: &str, path: &Path| {
            let arguments = json!({"what": "read", "path": text(path)});
            let ran = world.run(&["call", tool, &arguments.to_string()]);
            format!("{}{}", ran.stdout, ran.stderr)
        };
        let told = read("declares", &canary);
        assert!(!told.contains("hidden"), "{rung}: {told}");
        assert!(told.contains("no tool may read"), "{rung}: {told}");
        for granted in [canary.clone(), canary.parent().unwrap().to_path_buf()] {
            world.run(&["grant", "hand", "--read", &text(granted)]);
            let told = read("hand", &canary);
            assert!(!told.contains("hidden"), "{rung}: {told}");
            world.run(&["grant", "hand", "--revoke"]);
        }
        // All around them may be read, and a store that lies elsewhere is not.
        let home = text(world.home());
        world
            .run(&["grant", "hand", "--read", &home, "--follow"])
            .exits(0);
        assert_eq!(
            read("hand", &world.home().join("open")).trim(),
            "open",
            "{rung}"
        );
        assert!(!read("hand", &canary).contains("hidden"), "{rung}");
        let store = world.home().join("records/crib.db");
        std::fs::create_dir(store.parent().unwrap()).unwrap();
        written(&mut world);
        let url = format!("sqlite:{}", text(&store));
        world.vars.push(("TOOLCRIB_STORE", url));
        world.run(&["trust"]).exits(0);
        world.run(&["grant", "hand", "--read", &home]).exits(0);
        let said = read_bytes(&world, &store);
        assert!(!said.contains("SQLite"), "{rung}: {said}");
    }
}

/// What a tool that was granted the home says of a file's beginning.
fn read_bytes(world: &World, path: &Path) -> String {
    let text_of = HAND.replace("open(path).read()", "str(open(path, 'rb').read(16))");
    world.write_tool("hand.py", text_of);
    let mut again = ["grant", "hand", "--read"].map(str::to_owned).to_vec();
    again.push(text(world.home()));
    world
        .run(&again.iter().map(String::as_str).collect::<Vec<_>>())
        .exits(0);
    let arguments = json!({"what": "read", "path": text(path)});
    let ran = world.run(&["call", "hand", &arguments.to_string()]);
    format!("{}{}", ran.stdout, ran.stderr)
}

/// Trust and grants may lie in a file elsewhere: what holds that file can't be granted either.
#[test]
fn nobody_grants_the_folder_of_a_store_that_lies_elsewhere() {
    for (rung, mut world) in worlds() {
        let store = world.home().join("records/crib.db");
        let url = format!("sqlite:{}", text(&store));
        world.vars.push(("TOOLCRIB_STORE", url));
        std::fs::create_dir_all(world.home().join("records/free")).unwrap();
        world.write_tool("hand.py", HAND);
        written(&mut world);
        world.run(&["trust"]).exits(0);
        for folder in [world.home(), world.home().join("records")] {
            world.run(&["grant", "hand", "--revoke"]);
            let granted = world.run(&["grant", "hand", "--write", &text(folder)]);
            granted.exits(0);
            for path in ["records/crib.db-wal", "records/crib.db", "records/free/x"] {
                let tried = hand(&world, "write", world.home().join(path), "");
                assert_eq!(tried["isError"], true, "{rung} {path}: {tried}");
            }
        }
        world.run(&["grant", "hand", "--revoke"]).exits(0);
        let free = world.home().join("records/free");
        let granted = world.run(&["grant", "hand", "--write", &text(&free)]);
        granted.exits(0);
        let fine = hand(&world, "write", free.join("x"), "");
        assert_eq!(fine["output"], "written", "{rung}: {fine}");
    }
}

/// A store by a relative path would be a clone's own file, which says that the clone is trusted.
#[test]
fn a_store_is_never_a_file_of_the_folder_one_is_in() {
    let world = World::new();
    for url in ["sqlite:crib.db", "sqlite://crib.db", "sqlite:./crib.db"] {
        let mut command = world.command(&["list"]);
        command.env("TOOLCRIB_STORE", url);
        let ran = world.finish(command);
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.contains("is a relative path"), "{}", ran.stderr);
    }
}

/// Where nothing is mounted, every process has its home in the same folder as the others.
#[test]
fn a_tool_that_writes_the_tmp_folder_reaches_no_others_home() {
    for (rung, mut world) in worlds() {
        let tmp = world.home().join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        world.vars.push(("TMPDIR", text(&tmp)));
        world.write_tool("hand.py", HAND);
        let home = "from toolcrib import tool\n\n@tool\ndef home() -> str:\n    \"\"\"Its home.\"\"\"\n    import os\n    return os.environ['HOME']\n";
        world.write_tool("own.py", home);
        written(&mut world);
        world.run(&["trust"]).exits(0);
        let grant = ["grant", "hand", "--write", &text(world.home())];
        world.run(&grant).exits(0);
        let _crib = world.serve();
        let own = || {
            let ran = world.run(&["call", "home", "--json"]).exits(0).json();
            PathBuf::from(ran["output"].as_str().unwrap())
        };
        // The hand's process starts before the other has its home, and once more after.
        hand(&world, "read", tmp.join("none"), "");
        for _ in 0..2 {
            let path = own().join("evil.pth");
            let tried = hand(&world, "write", &path, "");
            let fine = rung != "B" && path.starts_with("/tmp/home");
            assert!(fine || tried["isError"] == true, "{rung}: {tried}");
            assert!(!path.exists(), "{rung}: {}", text(&path));
            world.write_tool("hand.py", format!("{HAND}\n# Started anew.\n"));
            world.run(&["grant", "hand", "--write", &text(world.home())]);
        }
    }
}
