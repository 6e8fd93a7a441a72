//! The command line as a person meets it: messages, hints, exit codes.

use crate::support::{World, shell_tool};
use serde_json::json;

#[test]
fn init_makes_a_tool_that_can_be_called_at_once() {
    let world = World::new();
    let fresh = world.home().join("fresh");
    std::fs::create_dir(&fresh).unwrap();
    let run = |args: &[&str]| {
        let mut command = world.command(args);
        command.current_dir(&fresh);
        world.finish(command)
    };
    let init = run(&["init"]).exits(0);
    assert!(
        init.stdout.contains("toolcrib call hello name=you"),
        "{}",
        init.stdout
    );
    assert!(init.stdout.contains("toolcrib serve"), "{}", init.stdout);
    assert_eq!(
        run(&["call", "hello", "name=you"]).exits(0).stdout,
        "Hello, you!\n"
    );
    assert_eq!(run(&["call", "hello"]).exits(0).stdout, "Hello, world!\n");
    run(&["list"]).exits(0);
    // Twice is no harm, and overwrites nothing.
    std::fs::write(fresh.join(".toolcrib/tools/hello.json"), "{}").unwrap();
    run(&["init"]).exits(0);
    assert_eq!(
        std::fs::read_to_string(fresh.join(".toolcrib/tools/hello.json")).unwrap(),
        "{}"
    );
}

#[test]
fn init_does_not_trust_what_was_there_before() {
    let world = World::new();
    let said = world.run(&["init"]).exits(0);
    assert!(said.stdout.contains("not trusted yet"), "{}", said.stdout);
    assert_eq!(world.run(&["init", "--json"]).json()["trusted"], false);
    world.run(&["call", "hello"]).exits(3);
}

#[test]
fn a_home_directory_is_never_a_project() {
    let world = World::new();
    let mut command = world.command(&["init"]);
    command.current_dir(world.home());
    let ran = world.finish(command).exits(2);
    assert!(
        ran.stderr.contains("never a project") && ran.stderr.contains("hint:"),
        "{}",
        ran.stderr
    );
}

#[test]
fn exit_codes_follow_the_table() {
    let world = World::trusted();
    world.write_tool("a.json", shell_tool("fails", "false", json!({})));
    world.write_tool(
        "b.json",
        shell_tool("gone", "no-such-program-anywhere", json!({})),
    );
    let strict = shell_tool("typed", "echo {{n}}", json!({"n": {"type": "integer"}}));
    world.write_tool("c.json", strict);
    world.run(&["call", "fails"]).exits(1);
    world.run(&["call", "typed", "n=x"]).exits(2);
    world.run(&["call", "typed", "{"]).exits(2);
    world.run(&["nonsense"]).exits(2);
    let unknown = world.run(&["call", "typd"]).exits(3);
    assert!(
        unknown.stderr.contains("did you mean `typed`"),
        "{}",
        unknown.stderr
    );
    let missing = world.run(&["call", "gone"]).exits(4);
    assert!(
        missing.stderr.contains("was not found") && missing.stderr.contains("hint: install"),
        "{}",
        missing.stderr
    );
    assert_eq!(world.run(&["call", "typed", "n=3"]).exits(0).stdout, "3\n");
}

#[test]
fn json_is_printed_for_programs_errors_included() {
    let world = World::trusted();
    assert_eq!(
        world.run(&["list", "--json"]).exits(0).json()["counts"]["builtin"],
        8
    );
    assert_eq!(
        world.run(&["show", "git-status", "--json"]).exits(0).json()["source"],
        "builtin"
    );
    let error = world.run(&["call", "nothing", "--json"]).exits(3).json();
    assert_eq!(error["error"]["code"], "unknown_tool");
    let outcome = world
        .run(&["call", "workspace-info", "--json"])
        .exits(0)
        .json();
    assert_eq!(outcome["structured"]["projectPath"], json!(world.project()));
    assert_eq!(outcome["isError"], false);
}

#[test]
fn a_mistyped_setting_is_told_with_the_right_one() {
    let world = World::trusted();
    world.write(".toolcrib/config.toml", "tool_dir = []\n");
    let ran = world.run(&["list"]).exits(2);
    assert!(
        ran.stderr.contains("line 1") && ran.stderr.contains("did you mean `tool_dirs`?"),
        "{}",
        ran.stderr
    );
    world.write(".toolcrib/config.toml", "port = 1\n");
    let ran = world.run(&["list"]).exits(2);
    assert!(
        ran.stderr.contains("can't be set in a project's file"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_taken_port_names_the_fix() {
    let world = World::trusted();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ran = world.run(&["serve", "--port", &port]).exits(4);
    assert!(
        ran.stderr.contains("is taken") && ran.stderr.contains("--port"),
        "{}",
        ran.stderr
    );
    let open = world
        .run(&["serve", "--no-auth", "--host", "0.0.0.0", "--port", "0"])
        .exits(2);
    assert!(open.stderr.contains("loopback"), "{}", open.stderr);
}

#[tokio::test]
async fn commands_talk_to_a_crib_elsewhere() {
    let world = World::trusted();
    world.write_tool(
        "a.json",
        shell_tool("greet", "echo hi {{n}}", json!({"n": {"type": "integer"}})),
    );
    let crib = world.serve();
    let elsewhere = World::new();
    let port = crib.port().to_string();
    let there = |args: &[&str]| elsewhere.run(&[args, &["--port", &port]].concat());
    assert!(there(&["list"]).exits(0).stdout.contains("greet"));
    assert_eq!(there(&["call", "greet", "n=3"]).exits(0).stdout, "hi 3\n");
    assert_eq!(
        there(&["show", "greet", "--json"]).exits(0).json()["name"],
        "greet"
    );
    assert_eq!(
        there(&["reload", "--json"]).exits(0).json()["success"],
        true
    );
    there(&["errors"]).exits(0);
    there(&["call", "greet", "n=x"]).exits(2);
    there(&["call", "nothing"]).exits(3);
    assert_eq!(crib.stop(), Some(0));
    let silent = there(&["list"]).exits(4);
    assert!(
        silent.stderr.contains("no crib answers") && silent.stderr.contains("toolcrib serve"),
        "{}",
        silent.stderr
    );
}

#[test]
fn completions_are_printed_for_every_shell() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            world
                .run(&["completions", shell])
                .exits(0)
                .stdout
                .contains("toolcrib"),
            "{shell}"
        );
    }
}
