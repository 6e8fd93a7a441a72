//! Nothing survives: whoever ends, and however, all the tool's processes end.

use tokio::io::AsyncWriteExt;
use toolcrib_sandbox::{Child, Exit, Launcher, Rung};

use crate::support::*;

/// Starts two daemons that ignore signals, one of them in a session of its own where that is allowed, and goes on
/// with `then`.
fn with_daemons(then: &str) -> String {
    let stubborn = "sh -c 'trap \"\" TERM HUP INT; sleep 600; :'";
    format!("({stubborn} &); (setsid {stubborn} 2>/dev/null &); {then}")
}

/// Starts the script and waits for its daemons.
async fn start(launcher: &Launcher, then: &str, mark: &str) -> Child {
    let child = run(launcher, &with_daemons(then), mark).await;
    let daemons = match launcher.rung().unwrap() {
        Rung::Namespaces => 2,
        Rung::Group => 1,
    };
    wait_until("the daemons run", || sleeping(mark) >= daemons).await;
    child
}

async fn go_on(child: &mut Child) {
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"\n")
        .await
        .unwrap();
}

#[tokio::test]
async fn the_tool_exits() {
    for launcher in launchers() {
        let mark = mark("exits");
        let mut child = start(&launcher, "read line; exit 3", &mark).await;
        go_on(&mut child).await;
        assert_eq!(child.wait().await.unwrap(), Exit::Code(3));
        assert_eq!(count(&mark), 0, "nothing is left when wait returns");
    }
}

#[tokio::test]
async fn streams_end_with_the_tool() {
    for launcher in launchers() {
        let mark = mark("streams");
        let mut child = start(&launcher, "read line; echo out", &mark).await;
        go_on(&mut child).await;
        assert_eq!(output(&mut child).await, "out\n");
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
        assert_eq!(count(&mark), 0);
    }
}

#[tokio::test]
async fn the_child_is_dropped() {
    for launcher in launchers() {
        let mark = mark("dropped");
        drop(start(&launcher, "read line", &mark).await);
        all_gone(&mark).await;
    }
}

#[tokio::test]
async fn the_child_is_killed() {
    for launcher in launchers() {
        let mark = mark("killed");
        let mut child = start(&launcher, "read line", &mark).await;
        child.kill();
        assert_eq!(child.wait().await.unwrap(), Exit::Signal(9));
        assert_eq!(count(&mark), 0);
    }
}

#[tokio::test]
async fn spawning_is_given_up() {
    for launcher in launchers() {
        let mark = mark("given-up");
        let rung = rung(&launcher).await;
        for micros in (0..8_000).step_by(400) {
            let started = run(&launcher, "sleep 600", &mark);
            let limit = std::time::Duration::from_micros(micros);
            let _ = tokio::time::timeout(limit, started).await;
        }
        all_gone(&mark).await;
        assert_eq!(launcher.rung(), Some(rung));
    }
}

#[tokio::test]
async fn the_launcher_is_killed() {
    for launcher in launchers() {
        let mark = mark("launcher");
        let mut child = start(&launcher, "read line", &mark).await;
        kill(child.launcher_id().unwrap(), libc::SIGKILL);
        assert_eq!(child.wait().await.unwrap(), Exit::Lost);
        all_gone(&mark).await;
    }
}

#[tokio::test]
async fn the_first_process_is_killed() {
    let [launcher, _] = launchers();
    if rung(&launcher).await != Rung::Namespaces {
        return;
    }
    let mark = mark("first");
    let mut child = start(&launcher, "read line", &mark).await;
    let first = child_of(child.launcher_id().unwrap()).unwrap();
    kill(first, libc::SIGTERM);
    go_on(&mut child).await;
    assert_eq!(
        child.wait().await.unwrap(),
        Exit::Code(0),
        "it heard nothing"
    );

    let mut child = start(&launcher, "read line", &mark).await;
    let first = child_of(child.launcher_id().unwrap()).unwrap();
    kill(first, libc::SIGKILL);
    assert_eq!(child.wait().await.unwrap(), Exit::Lost);
    assert_eq!(count(&mark), 0);
}

#[tokio::test]
async fn the_tool_kills_its_parent() {
    for launcher in launchers() {
        let mark = mark("parent");
        // The launcher hears nothing but SIGKILL; and in a namespace not even that.
        let script = "read line; for s in HUP INT TERM USR1 SEGV; do kill -$s $PPID; done; \
                      echo still; kill -9 $PPID; read line; exit 4";
        let mut child = start(&launcher, script, &mark).await;
        go_on(&mut child).await;
        go_on(&mut child).await;
        assert_eq!(output(&mut child).await, "still\n");
        let exit = match launcher.rung().unwrap() {
            Rung::Namespaces => Exit::Code(4),
            Rung::Group => Exit::Lost,
        };
        assert_eq!(child.wait().await.unwrap(), exit);
        all_gone(&mark).await;
    }
}

#[tokio::test]
async fn a_daemon_kills_the_launcher_and_nobody_waits() {
    let [_, launcher] = launchers();
    let mark = mark("nobody");
    let script = "p=$PPID; read line; (sh -c \"kill -9 $p; sleep 600; :\" &); read line; read line";
    let mut child = start(&launcher, script, &mark).await;
    go_on(&mut child).await;
    // The daemon holds the stream; nobody but the crib is left to end it.
    assert_eq!(output(&mut child).await, "");
    all_gone(&mark).await;
}

#[tokio::test]
async fn the_first_process_hears_nothing_from_inside() {
    let [launcher, _] = launchers();
    if rung(&launcher).await != Rung::Namespaces {
        return;
    }
    let mark = mark("inside");
    let outside = std::fs::read_link("/proc/self/ns/pid").unwrap();
    // Whatever went wrong, a signal to number 1 must not leave this test.
    let guard = format!(
        "[ \"$(readlink /proc/self/ns/pid)\" != '{}' ]",
        outside.display()
    );
    let script = format!(
        "{guard} || exit 99; for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; read line; exit 5"
    );
    let mut child = start(&launcher, &script, &mark).await;
    go_on(&mut child).await;
    assert_eq!(child.wait().await.unwrap(), Exit::Code(5));
    assert_eq!(count(&mark), 0);
}

#[tokio::test]
async fn a_group_can_not_be_left() {
    let [_, launcher] = launchers();
    let script = "setsid true 2>/dev/null && echo session; \
                  (set -m; sleep 0.01 & wait) 2>/dev/null; \
                  awk '/^NoNewPrivs/ { print $2 } /^Seccomp:/ { print $2 }' /proc/self/status";
    let mut child = sh(&launcher, script).await;
    assert_eq!(output(&mut child).await, "1\n2\n");
}
