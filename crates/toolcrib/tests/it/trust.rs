//! Trust: said once for a project, followed by every process, remembered for the user alone.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use crate::support::{TestCrib, World, eventually, shell_tool};

fn speak() -> String {
    shell_tool("speak", "echo hello", json!({}))
}

async fn until(crib: &TestCrib, tool: &str, status: &str) {
    let what = format!("`{tool}` is {status}");
    eventually(&what, async || {
        crib.status_of(tool).await.as_deref() == Some(status)
    })
    .await;
}

async fn ready(crib: &TestCrib) -> (u16, serde_json::Value) {
    let answer = crib.client.get(format!("{}/readyz", crib.url)).send();
    let answer = answer.await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn an_untrusted_projects_tools_are_listed_and_denied() {
    let world = World::new();
    world.write_tool("a.json", speak());
    let list = world.run(&["list"]).exits(0);
    assert!(list.stdout.contains("untrusted"), "{}", list.stdout);
    assert!(
        list.stderr.contains("not trusted") && list.stderr.contains("`toolcrib trust`"),
        "{}",
        list.stderr
    );
    let call = world.run(&["call", "speak"]).exits(3);
    assert!(
        call.stdout.is_empty() && call.stderr.contains("toolcrib trust"),
        "{call:?}"
    );
    let crib = world.serve();
    let (_, view) = crib.get("/tools/speak").await;
    assert_eq!(view["status"], "untrusted");
    let (status, error) = crib.call("speak", json!({})).await;
    assert_eq!((status, &error["error"]["code"]), (403, &json!("denied")));
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("toolcrib trust"), "{hint}");
    let (_, health) = crib.get("/health").await;
    assert_eq!(health["counts"]["untrusted"], 1, "{health}");
}

#[tokio::test]
async fn the_config_of_an_untrusted_project_is_not_read() {
    let world = World::new();
    world.write_tool("a.json", speak());
    world.write(".toolcrib/config.toml", "nonsense nonsense [[[");
    world.run(&["list"]).exits(0);
    let crib = world.serve();
    eventually("it is ready", async || {
        ready(&crib).await == (200, json!({"status": "ready", "reasons": []}))
    })
    .await;
    // Read once it is trusted: then the nonsense is told, and nothing of it is taken for granted.
    world.run(&["trust"]).exits(0);
    eventually("the crib says what is wrong", async || {
        ready(&crib).await.1["status"] == "degraded"
    })
    .await;
    let (status, said) = ready(&crib).await;
    assert_eq!(status, 200);
    assert!(
        said["reasons"][0].as_str().unwrap().contains("config.toml"),
        "{said}"
    );
    let list = world.run(&["list", "--standalone"]).exits(2);
    assert!(list.stderr.contains("config.toml"), "{}", list.stderr);
    // The crib that serves goes on with what it has, and says so.
    let list = world.run(&["list"]).exits(0);
    assert!(list.stderr.contains("config.toml"), "{}", list.stderr);
    // Mended, all is well.
    world.write(".toolcrib/config.toml", "# nothing\n");
    until(&crib, "speak", "active").await;
    eventually("it is ready again", async || {
        ready(&crib).await.1["status"] == "ready"
    })
    .await;
}

#[tokio::test]
async fn a_running_crib_follows_trust_that_another_process_gives_and_takes() {
    let world = World::new();
    world.write_tool("a.json", speak());
    let crib = world.serve();
    assert_eq!(crib.status_of("speak").await.as_deref(), Some("untrusted"));
    let mut slowest = 0;
    for _ in 0..3 {
        world.run(&["trust"]).exits(0);
        let said = Instant::now();
        until(&crib, "speak", "active").await;
        slowest = slowest.max(said.elapsed().as_millis());
        assert_eq!(crib.output_of("speak").await, "hello");
        world.run(&["trust", "--revoke"]).exits(0);
        let said = Instant::now();
        until(&crib, "speak", "untrusted").await;
        slowest = slowest.max(said.elapsed().as_millis());
        let (status, _) = crib.call("speak", json!({})).await;
        assert_eq!(status, 403);
    }
    tell(&format!("trust was followed within {slowest} ms"));
    assert!(slowest < 5_000, "{slowest} ms");
}

#[expect(
    clippy::print_stdout,
    reason = "a figure for whoever reads the test's output"
)]
fn tell(figure: &str) {
    println!("{figure}");
}

#[test]
fn trust_is_listed_and_taken_back_even_from_a_project_that_is_gone() {
    let world = World::trusted();
    let project = world.project();
    let listed = || world.run(&["trust", "--list", "--json"]).exits(0).json();
    assert_eq!(listed()["projects"][0]["path"], json!(project));
    let again = world.run(&["trust", "--json"]).exits(0).json();
    assert_eq!(
        (&again["trusted"], &again["new"]),
        (&json!(true), &json!(false))
    );
    let from_home = |args: &[&str]| {
        let mut command = world.command(args);
        command.current_dir(world.home());
        world.finish(command)
    };
    std::fs::remove_dir_all(&project).unwrap();
    let gone = from_home(&["trust", "--revoke", project.to_str().unwrap()]).exits(0);
    assert!(gone.stdout.contains("no longer trusted"), "{}", gone.stdout);
    let list = from_home(&["trust", "--list"]).exits(0);
    assert_eq!(list.stdout, "no project is trusted\n");
    let never = from_home(&["trust", "--revoke", project.to_str().unwrap()]).exits(0);
    assert!(never.stdout.contains("was not trusted"), "{}", never.stdout);
    // Where there is no project there is nothing to trust.
    from_home(&["trust"]).exits(2);
    from_home(&["trust", "."]).exits(2);
}

#[test]
fn trust_says_what_each_tool_declares() {
    let world = World::new();
    world.write_tool("a.json", speak());
    let fetch = json!({"name": "net", "tools": [{
        "name": "fetch", "description": "Asks a host", "inputSchema": {"type": "object"},
        "handler": {"type": "http", "url": "https://api.example.com/x", "method": "GET"}}]});
    world.write_tool("b.json", fetch.to_string());
    let said = world.run(&["trust"]).exits(0).stdout;
    for part in ["speak", "echo", "fetch", "api.example.com"] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    let json = world.run(&["trust", "--json"]).exits(0).json();
    assert_eq!(json["tools"].as_array().unwrap().len(), 2, "{json}");
}

#[test]
fn trust_also_names_the_tools_of_folders_that_only_the_config_names() {
    let world = World::new();
    world.write(".toolcrib/config.toml", "tool_dirs = [\"hidden\"]");
    world.write("hidden/a.json", speak());
    assert!(!world.run(&["list"]).exits(0).stdout.contains("speak"));
    let said = world.run(&["trust"]).exits(0).stdout;
    assert!(
        said.contains("speak") && said.contains("echo hello"),
        "{said}"
    );
}

#[tokio::test]
async fn what_is_remembered_is_for_the_user_alone() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("count", "seq 1 5000", json!({})));
    let outcome = world.run(&["call", "count", "--json"]).exits(0).json();
    assert_eq!(outcome["metadata"]["truncated"], true);
    let crib = world.serve();
    crib.output_of("count").await;
    let mut seen = Vec::new();
    for folder in [".local/share/toolcrib", ".cache/toolcrib"] {
        walk(&world.home().join(folder), &mut seen);
    }
    let files = seen.iter().filter(|path| path.is_file()).count();
    assert!(
        files >= 3,
        "trust, an output and a last good version: {seen:?}"
    );
    for path in seen {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{} has {mode:o}", path.display());
    }
}

fn walk(path: &Path, seen: &mut Vec<PathBuf>) {
    seen.push(path.to_owned());
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            walk(&entry.unwrap().path(), seen);
        }
    }
}

#[tokio::test]
async fn a_damaged_record_trusts_nobody_and_says_so() {
    let world = World::trusted();
    world.write_tool("a.json", speak());
    let data = world.home().join(".local/share/toolcrib");
    let store = data.join("toolcrib.db");
    let aside = world.root().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let parts = ["toolcrib.db", "toolcrib.db-wal", "toolcrib.db-shm"];
    for part in parts.iter().filter(|part| data.join(part).exists()) {
        std::fs::rename(data.join(part), aside.join(part)).unwrap();
    }
    let damaged = "nonsense".repeat(1_000);
    std::fs::write(&store, &damaged).unwrap();
    let running = world.serve();
    assert_eq!(
        running.status_of("speak").await.as_deref(),
        Some("untrusted")
    );
    let (status, said) = ready(&running).await;
    assert_eq!((status, &said["status"]), (200, &json!("degraded")));
    assert!(
        said["reasons"][0].as_str().unwrap().contains("toolcrib.db"),
        "{said}"
    );
    let list = world.run(&["list"]).exits(0);
    assert!(list.stderr.contains("damaged"), "{}", list.stderr);
    world.run(&["call", "speak"]).exits(3);
    for command in [&["trust"][..], &["trust", "--list"], &["trust", "--revoke"]] {
        let refused = world.run(command).exits(4);
        assert!(refused.stderr.contains("hint:"), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&store).unwrap(), damaged);

    for part in parts.iter().rev().filter(|part| aside.join(part).exists()) {
        std::fs::rename(aside.join(part), data.join(part)).unwrap();
    }
    until(&running, "speak", "active").await;
    running.becomes("ready").await;
}

#[test]
fn trust_of_an_earlier_version_is_taken_over_once() {
    let world = World::new();
    world.write_tool("a.json", speak());
    let data = world.home().join(".local/share/toolcrib");
    std::fs::create_dir_all(&data).unwrap();
    let page = json!({"version": 1, "projects": [{"path": world.project(), "trustedAtMs": 1}]});
    std::fs::write(data.join("trust.json"), page.to_string()).unwrap();
    world.run(&["call", "speak"]).exits(0);
    world.run(&["trust", "--revoke"]).exits(0);
    world.run(&["call", "speak"]).exits(3);
}

/// A user whom nobody here is.
const OTHER: u32 = 54_321;

/// Gives a file or folder to another user; false where this user may not.
fn give_away(path: &Path) -> bool {
    std::os::unix::fs::chown(path, Some(OTHER), None).is_ok()
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn trust_ends_when_others_can_change_the_project() {
    let world = World::trusted();
    world.write_tool("a.json", speak());
    let crib = world.serve();
    until(&crib, "speak", "active").await;
    for folder in [world.tools_folder(), world.project().join(".toolcrib")] {
        mode(&folder, 0o777);
        until(&crib, "speak", "untrusted").await;
        let list = world.run(&["list"]).exits(0);
        let told = "no longer trusted: every user of this machine may write to it";
        assert!(list.stderr.contains(told), "{}", list.stderr);
        let doctor = world.run(&["doctor"]);
        assert!(doctor.stderr.contains(told), "{}", doctor.stderr);
        let listed = world.run(&["trust", "--list"]).exits(0);
        assert!(listed.stdout.contains("(no longer: "), "{listed:?}");
        world.run(&["call", "speak"]).exits(3);
        mode(&folder, 0o755);
        until(&crib, "speak", "active").await;
    }
    let project = world.project();
    if give_away(&project) {
        until(&crib, "speak", "untrusted").await;
        let list = world.run(&["list"]).exits(0);
        assert!(
            list.stderr.contains(&format!("uid {OTHER}")),
            "{}",
            list.stderr
        );
    }
}

#[test]
fn what_others_can_change_is_trusted_with_one_word_more() {
    let world = World::new();
    world.write_tool("a.json", speak());
    let tools = world.tools_folder();
    mode(&tools, 0o777);
    let refused = world.run(&["trust"]).exits(3);
    assert!(
        refused.stderr.contains("may write to it") && refused.stderr.contains("--shared"),
        "{refused:?}"
    );
    world.run(&["call", "speak"]).exits(3);
    world.run(&["trust", "--shared"]).exits(0);
    world.run(&["call", "speak"]).exits(0);
    mode(&tools, 0o755);
    world.run(&["call", "speak"]).exits(0);
    // A yes to one owner is none to the next.
    if give_away(&world.project()) {
        world.run(&["call", "speak"]).exits(3);
        let refused = world.run(&["trust"]).exits(3);
        assert!(refused.stderr.contains("another user"), "{refused:?}");
        world.run(&["trust", "--shared"]).exits(0);
        world.run(&["call", "speak"]).exits(0);
        std::os::unix::fs::chown(world.project(), Some(OTHER + 1), None).unwrap();
        world.run(&["call", "speak"]).exits(3);
    }
}

/// Tools folders that settings name, environments and packages decide what runs as well as the usual folders do.
#[tokio::test]
async fn trust_ends_when_others_can_change_a_folder_that_settings_name() {
    let world = World::new();
    world.write(".toolcrib/config.toml", "tool_dirs = [\"scripts/tools\"]\n");
    world.write("scripts/tools/a.json", speak());
    for folder in [".venv", "node_modules"] {
        std::fs::create_dir(world.project().join(folder)).unwrap();
    }
    let named = ["scripts/tools", "scripts", ".venv", "node_modules"];
    for folder in named.map(|folder| world.project().join(folder)) {
        mode(&folder, 0o777);
        let refused = world.run(&["trust"]).exits(3);
        assert!(refused.stderr.contains("every user"), "{refused:?}");
        mode(&folder, 0o755);
    }
    world.run(&["trust"]).exits(0);
    let crib = world.serve();
    until(&crib, "speak", "active").await;
    // The config that names its folder is no longer read then.
    let gone = async || {
        eventually("the tool is gone", async || {
            crib.status_of("speak").await.is_none()
        })
        .await;
    };
    for folder in named.map(|folder| world.project().join(folder)) {
        mode(&folder, 0o777);
        gone().await;
        world.run(&["call", "speak"]).exits(3);
        let listed = world.run(&["trust", "--list"]).exits(0);
        assert!(listed.stdout.contains("(no longer: "), "{listed:?}");
        mode(&folder, 0o755);
        until(&crib, "speak", "active").await;
    }
    // A group of others, too.
    let tools = world.project().join("scripts/tools");
    if std::os::unix::fs::chown(&tools, None, Some(OTHER)).is_ok() {
        world.run(&["call", "speak"]).exits(0);
        mode(&tools, 0o775);
        gone().await;
        let list = world.run(&["list"]).exits(0);
        assert!(list.stderr.contains(&format!("gid {OTHER}")), "{list:?}");
        world.run(&["trust", "--shared"]).exits(0);
        until(&crib, "speak", "active").await;
    }
}

/// A folder that the user names counts as the user's own, unless everybody may write there.
#[test]
fn a_folder_that_everybody_may_write_holds_no_tools_of_the_users() {
    let world = World::new();
    let (config, tools) = (
        world.home().join(".config/toolcrib"),
        world.root().join("tools"),
    );
    std::fs::create_dir_all(&config).unwrap();
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("a.json"), speak()).unwrap();
    let named = format!("tool_dirs = [{:?}]\n", tools.display().to_string());
    std::fs::write(config.join("config.toml"), named).unwrap();
    world.run(&["call", "speak"]).exits(0);
    for open in [0o777, 0o1777] {
        mode(&tools, open);
        let refused = world.run(&["call", "speak"]).exits(2);
        assert!(
            refused.stderr.contains("every user") && refused.stderr.contains("tool_dirs"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_single_tool_is_trusted_as_long_as_it_is_its_makers() {
    let world = World::new();
    world.run(&["new", "mine", "--template", "plugin"]).exits(0);
    world.run(&["call", "mine", "text=x"]).exits(0);
    let file = world.tools_folder().join("mine.json");
    mode(&file, 0o666);
    world.run(&["call", "mine", "text=x"]).exits(3);
}

#[test]
fn settings_that_others_can_write_are_not_the_users() {
    let world = World::new();
    let folder = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(folder.join("tools")).unwrap();
    std::fs::write(folder.join("config.toml"), "").unwrap();
    world.run(&["list"]).exits(0);
    for path in [
        folder.clone(),
        folder.join("tools"),
        folder.join("config.toml"),
    ] {
        mode(&path, 0o777);
        let refused = world.run(&["list"]).exits(2);
        assert!(
            refused.stderr.contains("every user") && refused.stderr.contains("chmod go-w"),
            "{refused:?}"
        );
        mode(&path, 0o755);
        if give_away(&path) {
            let refused = world.run(&["list"]).exits(2);
            assert!(refused.stderr.contains("another user"), "{refused:?}");
            let me = world.home().metadata().unwrap();
            use std::os::unix::fs::MetadataExt;
            std::os::unix::fs::chown(&path, Some(me.uid()), None).unwrap();
        }
    }
    world.run(&["list"]).exits(0);
}
