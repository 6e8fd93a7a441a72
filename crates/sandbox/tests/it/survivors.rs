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
        Rung::Namespaces | Rung::NamespacesOnly => 2,
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
    let launcher = namespaced().await;
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
async fn the_tool_can_not_kill_its_parent() {
    for launcher in launchers() {
        let mark = mark("parent");
        // Among them STOP, after which it would hear of nothing.
        let script = "read line; for s in HUP INT TERM USR1 SEGV STOP KILL; do \
                      kill -$s $PPID 2>/dev/null; [ $PPID = 1 ] || kill -$s -$PPID 2>/dev/null; done; \
                      echo still; read line; exit 4";
        let mut child = start(&launcher, script, &mark).await;
        go_on(&mut child).await;
        go_on(&mut child).await;
        assert_eq!(output(&mut child).await, "still\n");
        assert_eq!(child.wait().await.unwrap(), Exit::Code(4));
        assert_eq!(count(&mark), 0);
    }
}

#[tokio::test]
async fn the_launcher_is_killed_and_nobody_waits() {
    for launcher in launchers() {
        let mark = mark("nobody");
        let mut child = start(&launcher, "read line", &mark).await;
        kill(child.launcher_id().unwrap(), libc::SIGKILL);
        // A daemon holds the stream.
        assert_eq!(output(&mut child).await, "");
        all_gone(&mark).await;
    }
}

#[tokio::test]
async fn the_launcher_is_killed_and_the_runtime_goes_down() {
    for launcher in launchers() {
        let mark = mark("runtime");
        let marked = mark.clone();
        let owner = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            let child = runtime.block_on(start(&launcher, "read line", &marked));
            let id = child.launcher_id().unwrap();
            kill(id, libc::SIGKILL);
            while !has_ended(id) {
                // sleeps: how often it is looked at; nothing depends on it
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            runtime.block_on(async { drop(child) });
        });
        owner.join().unwrap();
        all_gone(&mark).await;
    }
}

async fn stop_the_launcher(launcher: &Launcher, mark: String) {
    let mut child = start(launcher, "read line", &mark).await;
    kill(child.launcher_id().unwrap(), libc::SIGSTOP);
    child.kill();
    // It is given some seconds to do its work, and is killed then.
    let exit = child.wait().await.unwrap();
    assert!(matches!(exit, Exit::Lost | Exit::Signal(9)), "{exit:?}");
    all_gone(&mark).await;
}

#[tokio::test]
async fn the_launcher_is_stopped() {
    let [first, second] = launchers();
    tokio::join!(
        stop_the_launcher(&first, mark("stopped")),
        stop_the_launcher(&second, mark("stopped-group")),
    );
}

#[tokio::test]
async fn the_first_process_hears_nothing_from_inside() {
    let launcher = namespaced().await;
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
                                    awk '/^NoNewPrivs/ { print $2 } /^Seccomp:/ { print $2 }' /proc/self/status";
    let mut child = sh(&launcher, script).await;
    assert_eq!(output(&mut child).await, "1\n2\n");
}
