//! Who runs the attacks: an ordinary user, and only when nothing got out there, root.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::arena::*;

/// The user `nobody`.
const ORDINARY: &str = "65534";

#[expect(clippy::disallowed_methods, reason = "this program again, not a tool")]
fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null());
    command
}

/// Copies this program and its launcher to where every user may execute them.
fn copies(folder: &Path) {
    let allow =
        |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    allow(folder);
    for (from, to) in [
        (std::env::current_exe().unwrap(), "deps/escape"),
        (example("launcher"), "examples/launcher"),
    ] {
        let to = folder.join(to);
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        allow(to.parent().unwrap());
        // Not by this process: while it writes, another thread's child would hold the file open, and it could not run.
        assert!(program("cp").args([&from, &to]).status().unwrap().success());
        allow(&to);
    }
    std::fs::create_dir(folder.join("small")).unwrap();
}

fn run(mut command: Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(!text.contains("running 0 tests"), "{text}");
}

#[test]
fn nothing_gets_out_whoever_runs_it() {
    if !is_root() || var(AS_ROOT).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    copies(folder.path());
    let at = |name: &str| folder.path().join(name);
    let small = format!(
        "mount -t tmpfs -o size=150m,mode=1777 tmpfs '{}'",
        at("small").display()
    );
    let tests = format!(
        "'{}' --skip users:: --test-threads 2",
        at("deps/escape").display()
    );

    let mut ordinary = program("unshare");
    let user =
        format!("setpriv --reuid {ORDINARY} --regid {ORDINARY} --clear-groups --inh-caps=-all");
    ordinary
        .args(["--mount", "--propagation", "private", "sh", "-c"])
        .arg(format!("{small} && cd / && exec {user} {tests}"))
        .env(SMALL, at("small"));
    run(ordinary);

    // Far from the numbers that processes have in namespaces of their own.
    let high = "echo 20000 > /proc/sys/kernel/ns_last_pid";
    let loopback = "python3 -c 'import fcntl, socket, struct; \
        fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, struct.pack(\"16sH14s\", b\"lo\", 0x49, b\"\"))'";
    let mut root = program("unshare");
    root.args([
        "--mount",
        "--propagation",
        "private",
        "--pid",
        "--fork",
        "--mount-proc",
    ])
    .args(["--net", "--ipc", "sh", "-c"])
    .arg(format!(
        "{small} && {loopback} && {high} && cd / && {tests}"
    ))
    .env(SMALL, at("small"))
    .env(AS_ROOT, "1");
    run(root);
}
