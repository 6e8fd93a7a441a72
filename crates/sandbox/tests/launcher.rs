//! What the launcher promises: right exits, no inherited secrets, and nothing left behind.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use toolcrib_sandbox::{Child, Command, Environment, Exit, Launcher, StartError};

/// Cargo builds examples before it runs tests; they lie beside the test binary's folder.
fn launcher() -> Launcher {
    let test = std::env::current_exe().unwrap();
    let built: PathBuf = test
        .parent()
        .and_then(|deps| deps.parent())
        .unwrap()
        .join("examples/launcher");
    assert!(
        built.exists(),
        "{} is built by `cargo test`",
        built.display()
    );
    Launcher::at(built)
}

fn environment() -> Environment {
    Environment::from_vars([
        ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
        ("SECRET".into(), "x".into()),
    ])
}

async fn sh(script: &str) -> Child {
    let command = Command::new("sh", "/").arg("-c").arg(script);
    command.spawn(&launcher(), &environment()).await.unwrap()
}

async fn output(child: &mut Child) -> String {
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .await
        .unwrap();
    text
}

/// Counts processes whose command line holds the marker.
fn count(marker: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.windows(marker.len())
                .any(|part| part == marker.as_bytes())
        })
        .count()
}

async fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn marker(name: &str) -> String {
    format!("toolcrib-test-{name}-{}", std::process::id())
}

#[tokio::test]
async fn exits_are_told_as_they_were() {
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("kill -9 $$", Exit::Signal(9)),
    ] {
        assert_eq!(sh(script).await.wait().await.unwrap(), exit, "{script}");
    }
}

#[tokio::test]
async fn the_environment_is_the_allow_list() {
    let mut child = Command::new("env", "/")
        .var("EXTRA", "1")
        .spawn(&launcher(), &environment())
        .await
        .unwrap();
    let text = output(&mut child).await;
    assert!(text.contains("PATH=") && text.contains("EXTRA=1"), "{text}");
    assert!(
        !text.contains("SECRET") && !text.contains("CARGO"),
        "{text}"
    );
}

#[tokio::test]
async fn no_descriptor_is_inherited() {
    let mut child = sh("ls /proc/self/fd").await;
    let open: Vec<String> = output(&mut child)
        .await
        .lines()
        .map(str::to_owned)
        .collect();
    // 3 is `ls` reading the folder itself.
    assert_eq!(open, ["0", "1", "2", "3"]);
}

#[tokio::test]
async fn programs_that_cannot_start_say_why() {
    let spawn = |program: &str| {
        let command = Command::new(program, "/");
        async move {
            command
                .spawn(&launcher(), &environment())
                .await
                .map(|_| ())
                .unwrap_err()
        }
    };
    assert!(matches!(
        spawn("no-such-program-here").await,
        StartError::NotFound(_)
    ));
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken");
    std::fs::write(&broken, "\u{7f}ELFnonsense").unwrap();
    assert!(matches!(
        spawn(broken.to_str().unwrap()).await,
        StartError::NotExecutable(_)
    ));
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert!(matches!(
        spawn(broken.to_str().unwrap()).await,
        StartError::Exec { .. }
    ));
    let gone = Command::new("true", "/no/such/folder")
        .spawn(&launcher(), &environment())
        .await;
    assert!(matches!(gone, Err(StartError::Directory(_))));
}

#[tokio::test]
async fn a_background_child_dies_with_the_tool_and_the_stream_ends() {
    let marker = marker("background");
    let mut child = sh(&format!("sh -c 'sleep 600; : {marker}' & echo out")).await;
    assert_eq!(output(&mut child).await, "out\n");
    assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
    assert_eq!(count(&marker), 0);
}

#[tokio::test]
async fn a_daemon_that_left_the_group_dies_too() {
    let marker = marker("daemon");
    let script =
        format!("setsid sh -c 'setsid sh -c \"sleep 600; : {marker}\" & sleep 600' & sleep 600");
    let child = sh(&script).await;
    wait_until("the daemon runs", || count(&marker) >= 3).await;
    drop(child);
    wait_until("the whole tree is gone", || count(&marker) == 0).await;
}

#[tokio::test]
async fn a_tool_that_ignores_signals_dies_on_drop() {
    let marker = marker("stubborn");
    let child = sh(&format!(
        "trap '' TERM INT HUP; while :; do sleep 600; done; : {marker}"
    ))
    .await;
    wait_until("it runs", || count(&marker) >= 1).await;
    drop(child);
    wait_until("it is gone", || count(&marker) == 0).await;
}

#[tokio::test]
async fn killing_the_launcher_kills_the_tool() {
    let marker = marker("orphan");
    let mut child = sh(&format!("sleep 600; : {marker}")).await;
    wait_until("it runs", || count(&marker) >= 1).await;
    let launcher = child.launcher_id().unwrap() as libc::pid_t;
    kill(launcher);
    assert_eq!(child.wait().await.unwrap(), Exit::Lost);
    wait_until("it is gone", || count(&marker) == 0).await;
}

#[expect(unsafe_code, reason = "a signal to a process of this test's own")]
fn kill(pid: libc::pid_t) {
    // SAFETY: no memory is touched; the pid is a child that was not waited for yet.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}
