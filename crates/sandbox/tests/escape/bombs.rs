//! Bombs: memory, processes, disk, processor, and daemons. Each is bounded in itself, and stops at its limit before.

use toolcrib_sandbox::{Breach, Exit, Launcher, Policy, Rung};

use crate::arena::*;

const BOMB: &str = include_str!("bomb.py");

struct Blast {
    exit: Exit,
    /// The words of the last line.
    last: Vec<String>,
    breach: Option<Breach>,
    all: String,
}

async fn blast(
    arena: &Arena,
    launcher: &Launcher,
    rung: Rung,
    kind: &str,
    policy: Policy,
) -> Blast {
    let text = format!("{GUARD}{BOMB}");
    let command = arena
        .command(Language::Python, &text, rung, policy)
        .var("TOOLCRIB_TEST_BOMB", kind);
    let mut child = command.spawn(launcher, &arena.environment()).await.unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (mut out, mut err) = (String::new(), String::new());
    let mut streams = (
        tokio::io::BufReader::new(stdout),
        tokio::io::BufReader::new(stderr),
    );
    let both = async {
        use tokio::io::AsyncReadExt;
        tokio::join!(
            streams.0.read_to_string(&mut out),
            streams.1.read_to_string(&mut err)
        )
    };
    let limit = std::time::Duration::from_secs(60);
    let (read, _) = tokio::time::timeout(limit, both).await.unwrap();
    read.unwrap();
    let exit = child.wait().await.unwrap();
    assert_ne!(exit, Exit::Code(99), "no walls stood: {err}");
    assert!(
        out.starts_with("canary\theld"),
        "{rung:?} {kind} {exit:?} {out}{err}"
    );
    let last = out.lines().last().unwrap_or_default();
    Blast {
        exit,
        last: last.split_whitespace().map(str::to_owned).collect(),
        breach: child.breach(),
        all: format!("{rung:?} {kind} {exit:?} {out}{err}"),
    }
}

fn number(blast: &Blast) -> u64 {
    blast
        .last
        .get(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

/// No bomb of forks as root unless the kernel counts.
async fn counts(launcher: &Launcher) -> bool {
    !is_root() || launcher.machine().await.unwrap().groups.processes
}

#[tokio::test]
async fn processes_are_limited() {
    for (rung, launcher) in launchers().await {
        if !counts(&launcher).await {
            continue;
        }
        for kind in ["forks", "threads"] {
            let arena = Arena::new();
            let policy = Policy {
                processes: 40,
                ..arena.policy()
            };
            let blast = blast(&arena, &launcher, rung, kind, policy).await;
            let refused =
                number(&blast) <= 40 && blast.last.last().is_some_and(|word| word != "none");
            let killed = blast.breach == Some(Breach::Processes) && blast.exit == Exit::Signal(9);
            assert!(refused || killed, "{}", blast.all);
        }
    }
}

#[tokio::test]
async fn memory_is_limited() {
    for (rung, launcher) in launchers().await {
        for kind in ["private", "shared", "dropped", "nameless", "several"] {
            let arena = Arena::new();
            let policy = Policy {
                memory_mb: 256,
                ..arena.policy()
            };
            let blast = blast(&arena, &launcher, rung, kind, policy).await;
            let refused =
                blast.last.last().is_some_and(|word| word == "refused") && number(&blast) <= 256;
            let killed = blast.exit == Exit::Signal(9) && blast.breach == Some(Breach::Memory);
            // Where the kernel kills one of several, the others live on with what is theirs.
            let bounded = kind == "several" && launcher.machine().await.unwrap().groups.memory;
            assert!(refused || killed || bounded, "{}", blast.all);
            assert!(number(&blast) <= 512 || bounded, "{}", blast.all);
        }
    }
}

#[tokio::test]
async fn what_lies_in_sockets_is_memory_too() {
    for (rung, launcher) in launchers().await {
        for kind in ["sockets", "packets"] {
            let arena = Arena::new();
            let policy = Policy {
                memory_mb: 64,
                ..arena.policy()
            };
            let blast = blast(&arena, &launcher, rung, kind, policy).await;
            let killed = blast.exit == Exit::Signal(9) && blast.breach == Some(Breach::Memory);
            // Or the kernel has no room for a whole packet, where it counts them itself.
            let refused = blast.exit == Exit::Code(0) && number(&blast) <= 64;
            assert!(killed || refused, "{}", blast.all);
            assert!(number(&blast) <= 150, "{}", blast.all);
        }
    }
}

#[tokio::test]
async fn the_time_of_children_that_nobody_waits_for_counts() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let policy = Policy {
            cpu_percent: 10,
            ..arena.policy()
        };
        let blast = blast(&arena, &launcher, rung, "unwaited", policy).await;
        // What it may use at once counts too: a second of eight.
        assert!((1..=35).contains(&number(&blast)), "{}", blast.all);
    }
}

#[tokio::test]
async fn no_tool_takes_all_watches_of_the_user() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let blast = blast(&arena, &launcher, rung, "watches", arena.policy()).await;
        assert!(number(&blast) <= 16, "{}", blast.all);
    }
}

#[tokio::test]
async fn what_the_kernel_keeps_for_a_tool_is_memory_too() {
    for (rung, launcher) in launchers().await {
        // Where the kernel itself counts, it counts these in.
        if launcher.machine().await.unwrap().groups.memory {
            continue;
        }
        for (kind, most) in [("tables", 500), ("waiting", 1_000_000)] {
            let arena = Arena::new();
            let policy = Policy {
                memory_mb: 128,
                ..arena.policy()
            };
            let blast = blast(&arena, &launcher, rung, kind, policy).await;
            let killed = blast.exit == Exit::Signal(9) && blast.breach == Some(Breach::Memory);
            assert!(killed && number(&blast) <= most, "{}", blast.all);
        }
    }
}

#[tokio::test]
async fn what_all_programs_share_is_not_taken_by_one() {
    for (rung, launcher) in launchers().await {
        for (kind, most) in [
            ("timers", 1_024),
            ("requests", 0),
            ("futexes", 0),
            ("leases", 0),
        ] {
            let arena = Arena::new();
            let blast = blast(&arena, &launcher, rung, kind, arena.policy()).await;
            assert_eq!(blast.exit, Exit::Code(0), "{}", blast.all);
            assert!(number(&blast) <= most, "{}", blast.all);
        }
    }
}

#[tokio::test]
async fn files_are_limited() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let policy = Policy {
            file_mb: 20,
            tmp_mb: 30,
            ..arena.policy()
        };
        let one = blast(&arena, &launcher, rung, "disk", policy.clone()).await;
        assert_eq!(one.last, ["disk", "20", "EFBIG"], "{}", one.all);
        if rung == Rung::Group {
            continue;
        }
        let policy = Policy {
            file_mb: 100,
            ..policy
        };
        for kind in ["disk", "shm"] {
            let all = blast(&arena, &launcher, rung, kind, policy.clone()).await;
            assert!(number(&all) <= 30 && all.last[2] == "ENOSPC", "{}", all.all);
        }
        let many = blast(&arena, &launcher, rung, "files", policy.clone()).await;
        assert!(many.last[2] == "ENOSPC", "{}", many.all);
        let empty = blast(&arena, &launcher, rung, "entries", policy).await;
        assert!(
            number(&empty) <= 30 * 1_024 && empty.last[2] == "ENOSPC",
            "{}",
            empty.all
        );
    }
}

#[tokio::test]
async fn the_processor_is_shared() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let policy = Policy {
            cpu_percent: 40,
            ..arena.policy()
        };
        let blast = blast(&arena, &launcher, rung, "processor", policy).await;
        // What it may use at once counts too: a second of four.
        assert!((1..=95).contains(&number(&blast)), "{}", blast.all);
    }
}

#[tokio::test]
async fn no_daemon_stays() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let blast = blast(&arena, &launcher, rung, "daemon", arena.policy()).await;
        assert_eq!(blast.last, ["daemon", "left"], "{}", blast.all);
        let canary = format!(
            "TOOLCRIB_TEST_MARKER={}",
            arena.at("secret/marker").display()
        );
        let left = std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|process| {
                std::fs::read(process.path().join("environ"))
                    .is_ok_and(|environ| String::from_utf8_lossy(&environ).contains(&canary))
            });
        assert_eq!(left.count(), 0, "{}", blast.all);
        let kept = std::fs::read_dir(arena.at("scratch")).unwrap().count();
        assert!(kept <= 1, "{rung:?}: private folders are left");
    }
}
