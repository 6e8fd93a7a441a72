//! Exits, signals, variables, descriptors and the three streams.

use std::os::fd::AsRawFd;
use std::time::Duration;

use tokio::io::{AsyncWriteExt, BufReader};
use toolcrib_sandbox::{Command, Exit};

use crate::support::*;

#[tokio::test]
async fn exits_are_told_as_they_were() {
    for launcher in launchers() {
        for (script, exit) in [
            ("exit 0", Exit::Code(0)),
            ("exit 7", Exit::Code(7)),
            ("exit 255", Exit::Code(255)),
            ("kill -9 $$", Exit::Signal(9)),
            ("kill -15 $$", Exit::Signal(15)),
            ("kill -13 $$", Exit::Signal(13)),
        ] {
            let mut child = sh(&launcher, script).await;
            assert_eq!(child.wait().await.unwrap(), exit, "{script}");
            assert_eq!(child.wait().await.unwrap(), exit, "asked again: {script}");
            assert_eq!(child.launcher_id(), None);
        }
    }
}

#[tokio::test]
async fn the_environment_is_the_allow_list() {
    for launcher in launchers() {
        let command = Command::new("env", "/", free()).var("EXTRA", "1");
        let mut child = command.spawn(&launcher, &environment()).await.unwrap();
        let text = output(&mut child).await;
        assert!(text.contains("PATH=") && text.contains("EXTRA=1"), "{text}");
        assert!(
            !text.contains("SECRET") && !text.contains("CARGO"),
            "{text}"
        );
    }
}

#[tokio::test]
#[expect(unsafe_code, reason = "std opens nothing that exec leaves open")]
async fn no_descriptor_is_inherited() {
    let file = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: no memory is touched. The copy, which exec would hand on, is left open until the test process ends.
    assert!(unsafe { libc::dup(file.as_raw_fd()) } > 2);
    for launcher in launchers() {
        for script in ["ls /proc/self/fd", "exec ls /proc/self/fd"] {
            for mut child in [
                sh(&launcher, script).await,
                run(&launcher, script, "fd").await,
            ] {
                let text = output(&mut child).await;
                // 3 is `ls` reading the folder itself.
                assert_eq!(text.lines().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
            }
        }
    }
}

#[tokio::test]
async fn signals_start_as_they_are_by_default() {
    for launcher in launchers() {
        let text = output(&mut sh(&launcher, "exec cat /proc/self/status").await).await;
        for kind in ["SigBlk", "SigIgn", "SigCgt"] {
            let none = format!("\n{kind}:\t0000000000000000\n");
            assert!(text.contains(&none), "{kind} in {text}");
        }
    }
}

#[tokio::test]
async fn a_process_knows_its_number() {
    for launcher in launchers() {
        let text = output(&mut sh(&launcher, "echo $$; exec readlink /proc/self").await).await;
        let [own, shown] = text.lines().collect::<Vec<_>>()[..] else {
            panic!("{text}");
        };
        assert_eq!(own, shown);
        assert_ne!(own, "1", "a first process would not hear signals");
    }
}

#[tokio::test]
async fn others_are_not_seen_from_a_namespace() {
    let launcher = namespaced().await;
    let text = output(&mut sh(&launcher, "cd /proc; echo [0-9]*; echo $PPID").await).await;
    assert_eq!(text, "1 2\n1\n");
}

#[tokio::test]
async fn stdin_is_empty_unless_piped() {
    for launcher in launchers() {
        let mut child = sh(&launcher, "cat; echo end; readlink /proc/$$/fd/0").await;
        assert!(child.stdin.is_none());
        assert_eq!(output(&mut child).await, "end\n/dev/null\n");
    }
}

#[tokio::test]
async fn stdin_is_delivered_and_ends_when_dropped() {
    let sent = "0123456789abcde\n".repeat(64 * 1_024);
    for launcher in launchers() {
        let mut child = run(&launcher, "cat; echo end", "stdin").await;
        let mut stdin = child.stdin.take().unwrap();
        let write = async {
            stdin.write_all(sent.as_bytes()).await.unwrap();
            drop(stdin);
        };
        let (text, ()) = tokio::join!(output(&mut child), write);
        assert!(text == format!("{sent}end\n"), "{} bytes", text.len());
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
    }
}

#[tokio::test]
async fn a_tool_that_does_not_read_breaks_the_pipe() {
    for launcher in launchers() {
        let mut child = run(&launcher, "exec <&-; echo closed; sleep 600", "deaf").await;
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut stdout).await, "closed");
        let mut stdin = child.stdin.take().unwrap();
        let error = stdin.write_all(b"x").await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    }
}

#[tokio::test]
async fn terminating_lets_a_tool_end_in_its_own_way() {
    for launcher in launchers() {
        for (script, exit) in [
            (
                "trap 'exit 9' TERM; echo ready; sleep 600 & wait",
                Exit::Code(9),
            ),
            ("echo ready; exec sleep 600", Exit::Signal(15)),
        ] {
            let mark = mark("terminate");
            let mut child = run(&launcher, script, &mark).await;
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            assert_eq!(line(&mut stdout).await, "ready");
            child.terminate();
            assert_eq!(child.wait().await.unwrap(), exit, "{script}");
            assert_eq!(count(&mark), 0);
            child.terminate();
        }
    }
}

#[tokio::test]
async fn a_tool_that_ignores_it_is_killed() {
    for launcher in launchers() {
        let mark = mark("stubborn");
        let script = "trap '' TERM INT HUP; echo ready; while :; do sleep 600; done";
        let mut child = run(&launcher, script, &mark).await;
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut stdout).await, "ready");
        child.terminate();
        let ended = tokio::time::timeout(Duration::from_millis(100), child.wait()).await;
        assert!(ended.is_err(), "it goes on");
        child.kill();
        assert_eq!(child.wait().await.unwrap(), Exit::Signal(9));
        assert_eq!(count(&mark), 0);
        child.kill();
    }
}
