//! What needs an owner of its own: one that is killed, that counts its descriptors, or that is another user.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use toolcrib_sandbox::Command;

use crate::support::*;

/// The user `nobody`.
const ORDINARY: u32 = 65_534;

#[expect(clippy::disallowed_methods, reason = "the owner is not a tool")]
fn program(path: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    let mut command = std::process::Command::new(path);
    command.stdin(Stdio::null());
    command
}

#[tokio::test]
async fn the_owner_is_killed() {
    for rung in ["namespaces", "group"] {
        let mark = mark(&format!("owner-{rung}"));
        let script = "(sh -c 'trap \"\" TERM HUP; sleep 600; :' &); sleep 600; :";
        let mut owner = program(example("owner"))
            .args(["own", rung, script])
            .env(MARK, &mark)
            .process_group(0)
            .spawn()
            .unwrap();
        wait_until("tool and daemon run", || sleeping(&mark) == 2).await;
        owner.kill().unwrap();
        owner.wait().unwrap();
        all_gone(&mark).await;
    }
}

#[tokio::test]
async fn the_owner_is_killed_together_with_the_launcher() {
    for rung in ["namespaces", "group"] {
        let mark = mark(&format!("both-{rung}"));
        let script = "(sh -c 'trap \"\" TERM HUP; sleep 600; :' &); sleep 600; :";
        let mut owner = program(example("owner"))
            .args(["own", rung, script])
            .env(MARK, &mark)
            .process_group(0)
            .spawn()
            .unwrap();
        wait_until("tool and daemon run", || sleeping(&mark) == 2).await;
        let launcher = child_of(owner.id()).unwrap();
        // Stopped, it can do nothing about the launcher's end.
        kill(owner.id(), libc::SIGSTOP);
        kill(launcher, libc::SIGKILL);
        owner.kill().unwrap();
        owner.wait().unwrap();
        all_gone(&mark).await;
    }
}

#[test]
fn the_owner_keeps_no_descriptors_and_no_processes() {
    for rung in ["namespaces", "group"] {
        let output = program(example("owner")).args(["count", rung]).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        assert_eq!(text, "0 more descriptors, 0 children\n", "{rung}");
    }
}

/// What a script says in a user namespace of its own, where the limits are its own too.
fn apart(script: &str) -> String {
    let output = program("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .env("OWNER", example("owner"))
        .output()
        .expect("unshare is installed");
    assert!(output.status.success(), "no user namespace? {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn where_namespaces_are_forbidden_a_group_is_found() {
    let forbid = "echo 0 > /proc/sys/user/max_pid_namespaces || exit 1";
    assert_eq!(apart(&format!("{forbid}; $OWNER rung")), "Some(Group)\n");
}

#[test]
fn namespaces_that_end_are_an_error_in_words() {
    assert_eq!(apart("$OWNER rung"), "Some(Namespaces)\n");
    let text = apart("$OWNER exhaust /proc/sys/user/max_pid_namespaces");
    assert_eq!(
        text,
        "no process could be started: the system allows no more namespaces now \
         (user.max_pid_namespaces, user.max_user_namespaces)\n"
    );
}

#[tokio::test]
async fn a_tool_may_be_an_owner_too() {
    for launcher in launchers() {
        for rung in ["namespaces", "group"] {
            let command = Command::new(example("owner"), "/", free()).args(["count", rung]);
            let mut child = command.spawn(&launcher, &environment()).await.unwrap();
            let text = output(&mut child).await;
            assert_eq!(
                text, "0 more descriptors, 0 children\n",
                "{launcher:?} {rung}"
            );
        }
    }
}

/// Runs all other tests again as a user without rights, who needs a user namespace to make others.
#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let allow = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    allow(folder.path());
    for (from, to) in [
        (std::env::current_exe().unwrap(), "deps/it"),
        (example("launcher"), "examples/launcher"),
        (example("owner"), "examples/owner"),
    ] {
        let to = folder.path().join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        allow(to.parent().unwrap());
        // Not by this process: while it writes, another thread's child would hold the file open, and it could not run.
        assert!(program("cp").args([&from, &to]).status().unwrap().success());
        allow(&to);
    }
    let output = program(folder.path().join("deps/it"))
        .args(["--skip", "ordinary_user", "--test-threads", "4"])
        .current_dir("/")
        .uid(ORDINARY)
        .gid(ORDINARY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(!text.contains("running 0 tests"), "{text}");
}
