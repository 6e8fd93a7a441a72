//! Opening a cloned repository runs nothing of it, whatever it holds.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{World, descendants, eventually, shell_tool};

/// A file that exists only if something of the project ran.
fn canary(world: &World) -> PathBuf {
    world.root().join("canary")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test prepares a repository by hand"
)]
fn git(world: &World, args: &[&str]) -> bool {
    let mut git = Command::new("git");
    git.args(args)
        .current_dir(world.project())
        .env_clear()
        .env("HOME", world.home())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    git.status().unwrap().success()
}

/// A repository that tries to run something at every turn.
fn hostile() -> World {
    let world = World::new();
    let canary = canary(&world);
    let canary = canary.display();
    let user = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    assert!(git(&world, &["init", "-q"]));
    world.write("tracked.txt", "one\n");
    assert!(git(&world, &["add", "tracked.txt"]));
    assert!(git(
        &world,
        &[&user[..], &["commit", "-q", "-m", "one"]].concat()
    ));
    world.write("tracked.txt", "two\n");
    world.write(".gitattributes", "* filter=evil diff=evil\n");

    world.write_tool(
        "a.json",
        shell_tool("evil", &format!("touch {canary}"), json!({})),
    );
    world.write(
        ".toolcrib/config.toml",
        format!("[mcp.evil]\ncommand = \"touch\"\nargs = [\"{canary}\"]\n"),
    );
    let run = format!("touch {canary};");
    let config = format!(
        "[core]\n\tfsmonitor = \"{run} false\"\n\thooksPath = .git/hooks\n\tpager = \"{run} cat\"\n\
         \tsshCommand = \"{run}\"\n\teditor = \"{run}\"\n\taskPass = \"{run}\"\n\
         [filter \"evil\"]\n\tclean = \"{run} cat\"\n\tsmudge = \"{run} cat\"\n\tprocess = \"{run} false\"\n\trequired = true\n\
         [diff]\n\texternal = \"{run}\"\n[diff \"evil\"]\n\tcommand = \"{run}\"\n\ttextconv = \"{run} cat\"\n\
         [alias]\n\tstatus = \"!{run}\"\n\tdiff = \"!{run}\"\n"
    );
    let file = world.project().join(".git/config");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, before + &config).unwrap();
    for hook in [
        "post-index-change",
        "pre-commit",
        "post-checkout",
        "fsmonitor-watchman",
    ] {
        let hook = world.write(format!(".git/hooks/{hook}"), format!("#!/bin/sh\n{run}\n"));
        std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    world
}

#[tokio::test]
async fn a_hostile_clone_runs_nothing_until_it_is_trusted() {
    let world = hostile();
    let canary = canary(&world);
    let silent = |what: &str| assert!(!canary.exists(), "something ran at `{what}`");
    for (args, code) in [
        (&["list"][..], 0),
        (&["list", "--all"], 0),
        (&["show", "evil"], 0),
        (&["errors"], 0),
        (&["reload"], 0),
        (&["call", "evil"], 3),
        (&["call", "git-status"], 0),
        (&["call", "git-diff-summary"], 0),
        (&["call", "workspace-info"], 0),
        (&["init"], 0),
    ] {
        world.run(args).exits(code);
        silent(&args.join(" "));
    }
    let crib = world.serve();
    crib.get("/tools").await;
    crib.get("/tools/evil").await;
    crib.post("/tools/reload", json!({})).await;
    silent("GET /tools");
    assert!(descendants(crib.pid()).is_empty());
    let (status, _) = crib.call("evil", json!({})).await;
    assert_eq!(status, 403);
    assert!(descendants(crib.pid()).is_empty());
    for tool in ["git-status", "git-diff-summary", "workspace-info"] {
        let output = crib.output_of(tool).await;
        assert!(!output.is_empty());
        silent(tool);
        assert!(descendants(crib.pid()).is_empty(), "{tool} left a process");
    }
    // The traps are real: git by itself walks into them.
    git(&world, &["-c", "core.pager=cat", "diff"]);
    assert!(canary.exists(), "the traps are blunt");
    std::fs::remove_file(&canary).unwrap();

    // And trust is what it waits for. The config names what this version does not know, so it goes first.
    std::fs::remove_file(world.project().join(".toolcrib/config.toml")).unwrap();
    world.run(&["trust"]).exits(0);
    silent("trust");
    eventually("the tool is active", async || {
        crib.status_of("evil").await.as_deref() == Some("active")
    })
    .await;
    silent("trust, followed");
    // It runs now, and even so it does not get at what was not granted.
    let (status, outcome) = crib.call("evil", json!({})).await;
    assert_eq!(status, 200, "{outcome}");
    assert!(!canary.exists());
}

/// The inodes that a process watches.
fn watched(pid: u32) -> Vec<u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fdinfo"))
        .unwrap()
        .flatten();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let inode = |line: &str| {
        let words = line.strip_prefix("inotify ")?;
        let hex = words
            .split(' ')
            .find_map(|word| word.strip_prefix("ino:"))?;
        u64::from_str_radix(hex, 16).ok()
    };
    texts
        .flat_map(|text| text.lines().filter_map(inode).collect::<Vec<_>>())
        .collect()
}

#[tokio::test]
async fn a_tools_folder_that_leads_elsewhere_is_not_walked_and_not_watched() {
    let world = World::new();
    std::fs::remove_dir(world.tools_folder()).unwrap();
    let secret = world.home().join("secret");
    std::fs::create_dir(&secret).unwrap();
    for folder in [world.home(), secret.clone()] {
        std::fs::write(folder.join("x.json"), shell_tool("x", "true", json!({}))).unwrap();
    }
    for target in [Path::new("/"), &world.home(), &secret] {
        let _ = std::fs::remove_file(world.tools_folder());
        symlink(target, world.tools_folder()).unwrap();
        let list = world.run(&["list", "--json"]).exits(1).json();
        assert_eq!(
            list["counts"],
            json!({"total": 8, "builtin": 8, "plugin": 0, "executable": 0, "python": 0, "registered": 0, "typescript": 0}),
            "{target:?}"
        );
        assert_eq!(list["errors"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list["errors"][0]["errorType"], "IoError");
        let crib = world.serve();
        assert_eq!(crib.names().await.len(), 8);
        let inode = target.metadata().unwrap().ino();
        assert!(
            !watched(crib.pid()).contains(&inode),
            "{target:?} is watched"
        );
    }
}

#[tokio::test]
async fn a_trusted_projects_folder_is_watched_and_a_home_directory_still_is_not() {
    let world = World::trusted();
    let crib = world.serve();
    let inode = world.tools_folder().metadata().unwrap().ino();
    assert!(watched(crib.pid()).contains(&inode));
    drop(crib);
    std::fs::remove_dir(world.tools_folder()).unwrap();
    symlink(world.home(), world.tools_folder()).unwrap();
    let crib = world.serve();
    let inode = world.home().metadata().unwrap().ino();
    assert!(!watched(crib.pid()).contains(&inode));
    world.run(&["list"]).exits(1);
}

#[tokio::test]
async fn a_file_that_leads_out_of_an_untrusted_project_is_not_read() {
    let world = World::new();
    let outside = world.home().join("outside.json");
    std::fs::write(&outside, shell_tool("outside", "true", json!({}))).unwrap();
    symlink(&outside, world.tools_folder().join("a.json")).unwrap();
    let list = world.run(&["list", "--json"]).exits(1).json();
    assert_eq!(list["counts"]["total"], 8, "{list}");
    assert_eq!(list["errors"][0]["errorType"], "IoError");
    // A person who trusts it trusts its links.
    world.run(&["trust"]).exits(0);
    world.run(&["call", "outside"]).exits(0);
}

/// A clone may bring a folder of tools that is a link to one of the user's: nothing is written there before it is trusted.
#[test]
fn nothing_is_made_where_a_link_of_an_untrusted_project_leads() {
    for name in [".toolcrib", ".toolcrib/tools"] {
        let world = World::new();
        let (link, outside) = (world.project().join(name), world.home().join("outside"));
        std::fs::remove_dir_all(world.project().join(".toolcrib")).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&outside, &link).unwrap();
        for args in [&["init"][..], &["new", "mine"]] {
            let ran = world.run(args).exits(3);
            assert!(ran.stderr.contains("leads out of the project"), "{ran:?}");
        }
        assert!(std::fs::read_dir(&outside).unwrap().next().is_none());
    }
}

#[tokio::test]
async fn pipes_and_devices_in_the_folder_hold_nobody_up() {
    let world = World::trusted();
    let pipe = world.tools_folder().join("pipe.json");
    assert!(mkfifo(&pipe));
    symlink("/dev/zero", world.tools_folder().join("zero.json")).unwrap();
    world.write_tool("good.json", shell_tool("good", "echo fine", json!({})));
    let list = world.run(&["list", "--json"]).exits(1).json();
    assert_eq!(list["errors"].as_array().unwrap().len(), 2, "{list}");
    assert_eq!(world.run(&["call", "good"]).exits(0).stdout, "fine\n");
}

#[expect(unsafe_code, reason = "std makes no pipes with names")]
fn mkfifo(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a C string that lives across the call.
    unsafe { libc::mkfifo(path.as_ptr(), 0o600) == 0 }
}

/// A program that answers, and imports `json` from wherever Python looks first.
const ANSWERS: &str = r#"
import json, sys
about = {"name": "own", "description": "d", "version": "1", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    asked = json.loads(line)
    result = about if asked["method"] == "initialize" else {"status": "healthy", "output": "fine"}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

/// A program that answers, and tells whether a package of that name was found.
const REQUIRES: &str = r#"
const said = (() => { try { return require("dep"); } catch { return "fine"; } })();
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const asked = JSON.parse(line);
  const about = { name: "node", description: "d", version: "1", inputSchema: { type: "object" } };
  const result = asked.method === "initialize" ? about : { status: "healthy", output: said };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: asked.id, result }));
});
"#;

/// The user's own tools start in whatever project this is: no module of it stands in for one that they import.
#[test]
fn a_users_own_tools_import_nothing_from_a_project_that_nobody_trusts() {
    for rung in ["A", "B", "C"] {
        let mut world = World::new();
        world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        world.vars.push(("PATH", path));
        world.write("json.py", "raise SystemExit('the clone ran')\n");
        let registered = world.run(&["register", "--name", "own", "--", "python3", "-c", ANSWERS]);
        registered.exits(0);
        world.write(
            "node_modules/dep/index.js",
            "module.exports = 'the clone ran';",
        );
        let node = ["register", "--name", "node", "--", "node", "-e", REQUIRES];
        world.run(&node).exits(0);
        let ran = world.run(&["call", "node"]).exits(0);
        assert_eq!(ran.stdout.trim(), "fine", "{rung}");
        let ran = world.run(&["call", "own"]).exits(0);
        assert_eq!(ran.stdout.trim(), "fine", "{rung}");
        let global = world.global_folder();
        std::fs::create_dir_all(&global).unwrap();
        let shell = shell_tool("tool", "python3 -m json.tool --help", json!({}));
        std::fs::write(global.join("tool.json"), &shell).unwrap();
        let ran = world.run(&["call", "tool"]).exits(0);
        assert!(ran.stdout.contains("usage"), "{rung}: {}", ran.stdout);
        let by_env = shell_tool("by-env", "env python3 -m json.tool --help", json!({}));
        std::fs::write(global.join("by-env.json"), by_env).unwrap();
        let dep = shell_tool("dep", "node -p 'require(\"dep\")'", json!({}));
        std::fs::write(global.join("dep.json"), &dep).unwrap();
        world.run(&["grant", "by-env", "--exec"]).exits(0);
        let ran = world.run(&["call", "by-env"]).exits(0);
        assert!(ran.stdout.contains("usage"), "{rung}: {}", ran.stdout);
        let ran = world.run(&["call", "dep"]);
        assert!(
            ran.code != 0 && !ran.stdout.contains("the clone ran"),
            "{rung}: {ran:?}"
        );
        std::fs::remove_file(global.join("dep.json")).unwrap();
        // A project's own tool takes what lies in the project.
        std::fs::remove_file(global.join("tool.json")).unwrap();
        world.write_tool("tool.json", shell);
        world.write_tool("dep.json", dep);
        world.run(&["trust"]).exits(0);
        let ran = world.run(&["call", "dep"]).exits(0);
        assert_eq!(ran.stdout.trim(), "the clone ran", "{rung}");
        let ran = world.run(&["call", "tool"]);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("the clone ran"), "{rung}: {said}");
    }
}

/// An entry of the PATH that is empty or relative means the folder that a tool starts in: the project. What lies there
/// runs no tool of the user's.
#[test]
fn no_entry_of_the_path_leads_into_a_project_that_nobody_trusts() {
    let stolen = format!("#!/usr/bin/python3\n{}", ANSWERS.replace("fine", "stolen"));
    for rung in ["A", "B", "C"] {
        for entry in ["", ".", "bin"] {
            let mut world = World::new();
            world.vars.push(("TOOLCRIB_MAX_RUNG", rung.to_owned()));
            let path = format!("{entry}:/usr/local/bin:/usr/bin:/bin");
            world.vars.push(("PATH", path));
            let program = |path: &Path, text: &str| {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
                std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
            };
            program(&world.project().join("python3"), &stolen);
            program(&world.project().join("bin/python3"), &stolen);
            let own = format!("#!/usr/bin/env python3\n{ANSWERS}");
            program(&world.global_folder().join("own"), &own);
            let ran = world.run(&["call", "own"]).exits(0);
            assert_eq!(ran.stdout.trim(), "fine", "{rung} {entry:?}");
            // The crib may stand elsewhere than in the project.
            let project = world.project().display().to_string();
            let mut elsewhere = world.command(&["call", "own", "--project", &project]);
            elsewhere.current_dir(world.home());
            let ran = world.finish(elsewhere).exits(0);
            assert_eq!(ran.stdout.trim(), "fine", "{rung} {entry:?} elsewhere");
        }
    }
}

/// Variables of a session may point into a clone. What lies there is the clone's: neither settings nor trust, and no tools
/// of the user's.
#[test]
fn a_clone_brings_no_settings_trust_or_tools_of_the_users() {
    let mut world = World::new();
    let own = world.project().join(".own/toolcrib");
    std::fs::create_dir_all(own.join("tools")).unwrap();
    std::fs::write(own.join("config.toml"), "sandbox_enabled = false\n").unwrap();
    let mark = canary(&world);
    let touch = shell_tool("evil", &format!("touch {}", mark.display()), json!({}));
    std::fs::write(own.join("tools/evil.json"), &touch).unwrap();
    let inside = own.parent().unwrap().display().to_string();
    let link = world.root().join("link");
    symlink(own.parent().unwrap(), &link).unwrap();
    let store = format!("sqlite:{}/store.db", world.project().display());
    for (variable, value) in [
        ("XDG_CONFIG_HOME", inside.clone()),
        ("XDG_CONFIG_HOME", link.display().to_string()),
        ("XDG_DATA_HOME", inside.clone()),
        ("XDG_CACHE_HOME", inside.clone()),
        ("XDG_RUNTIME_DIR", inside.clone()),
        ("HOME", inside.clone()),
        ("TOOLCRIB_STORE", store),
    ] {
        world.vars = vec![(variable, value)];
        for args in [
            &["list"][..],
            &["call", "evil"],
            &["trust"],
            &["grant", "--list"],
        ] {
            let refused = world.run(args).exits(2);
            let told = &refused.stderr;
            assert!(told.contains(variable), "{args:?}: {told}");
            assert!(told.contains("the project"), "{args:?}: {told}");
        }
        assert!(!mark.exists(), "{variable}");
    }
    // From elsewhere, too.
    world.vars = vec![("XDG_CONFIG_HOME", inside.clone())];
    let mut list = world.command(&["list", "--project", world.project().to_str().unwrap()]);
    list.current_dir(world.root());
    world.finish(list).exits(2);
    // A folder of tools in it is the project's own.
    let tools = own.join("tools").display().to_string();
    for variable in ["TOOLCRIB_TOOL_DIRS", "TOOLCRIB_TOOLS_DIR"] {
        world.vars = vec![(variable, tools.clone())];
        let shown = world.run(&["show", "evil", "--json"]).exits(0).json();
        assert_eq!(shown["status"], "untrusted", "{variable}: {shown}");
    }
    // The home's own folders are the user's, though they be a repository.
    world.vars.clear();
    let config = world.home().join(".config");
    std::fs::create_dir_all(config.join(".git")).unwrap();
    std::fs::create_dir_all(config.join("toolcrib")).unwrap();
    for named in [false, true] {
        let mut list = world.command(&["list"]);
        list.current_dir(&config);
        if named {
            list.env("XDG_CONFIG_HOME", &config);
        }
        world.finish(list).exits(0);
    }
}
