//! What people and programs see in a terminal: tables that fit, completed names, guides and manual pages, JSON on stderr.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::tool::python;
use crate::support::{Ran, World, eventually, shell_tool};

/// Runs a command of the crib in a terminal with so many columns, and gives what it shows.
fn in_terminal(world: &World, columns: u16, args: &[&str]) -> String {
    answering(world, columns, "", args).exits(0).stdout
}

/// The same for one that asks: each letter answers one question.
fn answering(world: &World, columns: u16, answers: &str, args: &[&str]) -> Ran {
    const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
columns, answers, command = int(sys.argv[1]), list(sys.argv[2]), sys.argv[3:]
child, screen = pty.fork()
if child == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    os.execv(command[0], command)
shown = b""
while True:
    try:
        part = os.read(screen, 4096)
    except OSError:
        break
    if not part:
        break
    shown += part
    if shown.endswith(b"[y/N] ") and answers:
        os.write(screen, answers.pop(0).encode() + b"\n")
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.stdout.buffer.write(shown)
sys.stdout.flush()
os._exit(code)
"#;
    let columns = columns.to_string();
    let wrapper = [python(), "-c", TERMINAL, &columns, answers];
    let command = world.wrapped(&wrapper, &world.binary, args);
    world.finish(command)
}

#[test]
fn trust_shows_what_there_is_and_asks_who_is_there() {
    let mut world = World::new();
    world.vars.push(("TRACKER", "a-secret-word".to_owned()));
    let settings = world.home().join(".config/toolcrib");
    std::fs::create_dir_all(&settings).unwrap();
    std::fs::write(
        settings.join("config.toml"),
        "[secrets.tickets]\nenv = \"TRACKER\"\n",
    )
    .unwrap();
    world.write_tool("tickets.py", "import os, subprocess\nfrom toolcrib import tool\n\n@tool(env={'TOKEN': 'secret://tickets'}, permissions={'allowed_environment_vars': ['LC_X']}, sandbox={'max_memory_mb': 1024})\ndef tickets() -> str:\n    \"\"\"Lists tickets.\"\"\"\n    return str('TOKEN' in os.environ)\n\ndef run():\n    subprocess.run(['ls'])\n");
    world.write_tool("say.json", shell_tool("say", "echo hi", json!({})));
    let no = answering(&world, 120, "n", &["trust"]);
    for words in [
        "is not trusted yet",
        "runs `echo hi`",
        "Lists tickets.",
        "subprocess.run",
        "Trust this project?",
        "nothing was trusted",
    ] {
        assert!(no.stdout.contains(words), "{words}: {no:?}");
    }
    assert_eq!(no.code, 1);
    world.run(&["call", "say"]).exits(3);
    // A yes to the code is none to what it declares.
    let half = answering(&world, 120, "yn", &["trust"]);
    for words in [
        "to use 1024 MB",
        "to be given the secret `tickets`",
        "Grant what they ask for to tickets?",
    ] {
        assert!(half.stdout.contains(words), "{words}: {half:?}");
    }
    assert_eq!(half.code, 0);
    world.run(&["call", "say"]).exits(0);
    world.run(&["call", "tickets"]).exits(3);
    let whole = answering(&world, 120, "y", &["trust"]);
    assert!(
        whole.stdout.contains("was trusted already") && whole.code == 0,
        "{whole:?}"
    );
    assert_eq!(
        world.run(&["call", "tickets"]).exits(0).stdout.trim(),
        "True"
    );
    world.run(&["trust", "--revoke"]).exits(0);
    let unasked = answering(&world, 120, "", &["trust", "--yes"]);
    assert!(
        unasked.code == 0 && !unasked.stdout.contains("[y/N]"),
        "{unasked:?}"
    );
}

#[test]
fn in_eighty_columns_no_id_and_no_date_is_split() {
    let world = World::trusted();
    let name = "a-tool-with-a-rather-long-name";
    world.write_tool("one.json", shell_tool(name, "true", json!({})));
    world.run(&["call", name]).exits(0);
    world
        .run(&["token", "create", "reader", "--expires", "30d"])
        .exits(0);
    world
        .run(&[
            "grant",
            name,
            "--read",
            "/usr/share/doc",
            "--env",
            "SOME_VARIABLE",
        ])
        .exits(0);
    for args in [
        &["list"][..],
        &["logs", "--calls"],
        &["token", "list"],
        &["grant", "--list"],
    ] {
        let shown = in_terminal(&world, 80, args);
        let rows: Vec<&str> = shown
            .lines()
            .map(str::trim_end)
            .filter(|line| line.contains(name) || line.starts_with("reader"))
            .collect();
        assert_eq!(rows.len(), 1, "{args:?}: {shown}");
        let wide: Vec<&str> = shown
            .lines()
            .filter(|line| line.trim_end().chars().count() > 90)
            .collect();
        assert!(wide.is_empty(), "{args:?}: {wide:?}");
    }
    let calls = in_terminal(&world, 160, &["logs", "--calls"]);
    assert!(calls.contains("AGENT") && calls.contains(" ID"), "{calls}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "tests start a shell by hand")]
fn bash_completes_the_names_of_tools() {
    let world = World::trusted();
    world.write_tool("one.json", shell_tool("water-the-beans", "true", json!({})));
    let script = world.run(&["completions", "bash"]).exits(0).stdout;
    let complete = "COMP_WORDS=(toolcrib call wat); COMP_CWORD=2; _toolcrib_with_tools toolcrib wat call; echo \"${COMPREPLY[@]}\"";
    let path = world.write(
        "completions.sh",
        format!(
            "{script}\ntoolcrib() {{ {} \"$@\"; }}\n{complete}\n",
            world.binary.display()
        ),
    );
    let mut bash = Command::new("bash");
    bash.arg(path)
        .current_dir(world.project())
        .env("HOME", world.home());
    assert_eq!(world.finish(bash).exits(0).stdout, "water-the-beans\n");
}

#[test]
fn help_has_the_guides_and_man_the_commands() {
    let world = World::new();
    let topics = world.run(&["help"]).exits(0).stdout;
    assert!(
        topics.contains("first-tool") && topics.contains("glossary"),
        "{topics}"
    );
    let guide = world.run(&["help", "grants"]).exits(0).stdout;
    assert!(
        guide.starts_with("# Grants") && !guide.contains("<!--"),
        "{guide}"
    );
    let command = world.run(&["help", "token", "create"]).exits(0).stdout;
    assert!(command.contains("--scope"), "{command}");
    let wrong = world.run(&["help", "sandbx"]).exits(2).stderr;
    assert!(
        wrong.contains("did you mean `toolcrib help sandbox`?"),
        "{wrong}"
    );
    let page = world.run(&["man", "call"]).exits(0).stdout;
    assert!(page.starts_with(".TH TOOLCRIB-CALL 1"), "{page}");
    world.run(&["man", "--dir", "pages"]).exits(0);
    assert!(
        world
            .project()
            .join("pages/toolcrib-token-create.1")
            .is_file()
    );
}

#[test]
fn every_line_of_stderr_is_json_where_json_was_asked_for() {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_LOG", "debug".to_owned()));
    world.write_tool("broken.json", "{");
    world.write_tool("one.json", shell_tool("one", "false", json!({})));
    let mut said = 0;
    for args in [
        &["list", "--json"][..],
        &["call", "one", "--json"],
        &["call", "none", "--json"],
        &["test", "one", "--json"],
        &["trust", "--json"],
        &["grant", "one", "--read", "/usr/share/doc", "--json"],
        &["token", "create", "t", "--json"],
        &["init", "--json"],
        &["new", "two", "--json"],
        &["errors", "--json"],
        &["doctor", "--json"],
        &["reload", "--json"],
        &["connect", "claude", "--print", "--json"],
        &["logs", "--calls", "--json"],
        &["list", "--no-such-flag", "--json"],
        &["no-such-command", "--json"],
    ] {
        let ran: Ran = world.run(args);
        for line in ran.stderr.lines() {
            let read: Result<Value, _> = serde_json::from_str(line);
            assert!(
                read.is_ok_and(|value| value.is_object()),
                "{args:?}: {line}"
            );
            said += 1;
        }
        let read: Result<Value, _> = serde_json::from_str(&ran.stdout);
        assert!(
            read.is_ok() || ran.stdout.is_empty(),
            "{args:?}: {}",
            ran.stdout
        );
    }
    assert!(said > 0, "nothing was said on stderr");
}

#[tokio::test]
async fn libraries_say_nothing_in_the_log() {
    let mut world = World::trusted();
    world.vars.push(("TOOLCRIB_LOG", "trace".to_owned()));
    world.write_tool("one.json", shell_tool("one", "true", json!({})));
    let crib = world.serve();
    crib.call("one", json!({})).await;
    eventually("the call is in the log", async || {
        crib.log().contains("tool.complete")
    })
    .await;
    let log = crib.log();
    for library in [
        "hyper",
        "sqlx",
        "h2::",
        "rustls",
        "mio::",
        "event source",
        "notify::",
        "PRAGMA",
        "SELECT",
    ] {
        assert!(!log.contains(library), "{library}: {log}");
    }
}
