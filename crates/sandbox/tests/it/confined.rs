//! A confined process is started, spoken to and ended like any other, and leaves nothing behind.

use std::path::Path;

use tokio::io::AsyncWriteExt;
use toolcrib_sandbox::{
    Child, Command, Environment, Exec, Exit, Launcher, Policy, Rung, StartError,
};

use crate::support::*;

/// Launchers of the rungs that this machine has.
async fn confining() -> Vec<(Rung, Launcher)> {
    let mut found = Vec::new();
    for letter in ["A", "C", "B"] {
        let rung = Rung::from_letter(letter).unwrap();
        let launcher = Launcher::at(example("launcher")).at_most(rung);
        if launcher.survey().await.unwrap().rung == Some(rung) {
            found.push((rung, launcher));
        }
    }
    found
}

fn shell(script: &str, mark: &str) -> Command {
    let policy = Policy {
        exec: Exec::Allowed,
        ..Policy::default()
    };
    Command::new("sh", "/usr", policy)
        .arg("-c")
        .arg(script)
        .var(MARK, mark)
        .piped_stdin()
}

async fn start(launcher: &Launcher, script: &str, mark: &str) -> Child {
    let command = shell(script, mark);
    command.spawn(launcher, &environment()).await.unwrap()
}

#[tokio::test]
async fn exits_streams_and_variables_are_as_ever() {
    for (rung, launcher) in confining().await {
        let mark = mark("confined-life");
        let script = "read word; echo \"$word $HOME $TMPDIR $SECRET\"; exit 5";
        let mut child = start(&launcher, script, &mark).await;
        assert_eq!(child.account().unwrap().rung, rung);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"hello\n").await.unwrap();
        let said = output(&mut child).await;
        let [word, home, tmp] = said.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{said}");
        };
        assert_eq!(
            (word, Path::new(home)),
            ("hello", &*Path::new(tmp).join("home"))
        );
        assert_eq!(child.wait().await.unwrap(), Exit::Code(5));
        assert_eq!((count(&mark), child.breach()), (0, None));
    }
}

#[tokio::test]
async fn nothing_of_a_confined_tree_survives() {
    let daemons =
        "(sh -c 'trap \"\" TERM HUP; sleep 600; :' &); (setsid sleep 600 2>/dev/null &); read line";
    for (rung, launcher) in confining().await {
        for end in ["drop", "kill", "launcher"] {
            let mark = mark(&format!("confined-{end}-{}", rung.letter()));
            let mut child = start(&launcher, daemons, &mark).await;
            wait_until("a daemon runs", || sleeping(&mark) >= 1).await;
            match end {
                "drop" => drop(child),
                "kill" => {
                    child.kill();
                    assert_eq!(child.wait().await.unwrap(), Exit::Signal(9));
                    assert_eq!(count(&mark), 0, "{rung:?}");
                }
                _ => {
                    kill(child.launcher_id().unwrap(), libc::SIGKILL);
                    assert_eq!(child.wait().await.unwrap(), Exit::Lost);
                }
            }
            all_gone(&mark).await;
        }
    }
}

#[tokio::test]
async fn private_folders_are_cleared_away() {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::set_permissions(
        tmp.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    for (_, launcher) in confining().await {
        let environment = toolcrib_sandbox::Environment::from_vars([
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("TMPDIR".into(), tmp.path().into()),
        ]);
        let command = shell(
            "mkdir $TMPDIR/a && echo x > $TMPDIR/a/b && echo made",
            "tmp",
        );
        let mut child = command.spawn(&launcher, &environment).await.unwrap();
        assert_eq!(output(&mut child).await, "made\n");
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
        let left = || std::fs::read_dir(tmp.path()).unwrap().count();
        wait_until("nothing is left", || left() == 0).await;
    }
}

#[tokio::test]
async fn what_can_not_be_executed_is_told_as_ever() {
    for (_, launcher) in confining().await {
        let confined = |program: &str| Command::new(program, "/usr", Policy::default());
        let missing = confined("no-such-program")
            .spawn(&launcher, &environment())
            .await;
        assert!(matches!(missing, Err(StartError::NotFound(_))));
        let plain = confined("/etc/passwd")
            .spawn(&launcher, &environment())
            .await;
        assert!(matches!(plain, Err(StartError::NotExecutable(_))));
        let args = vec!["x".repeat(200_000)];
        let large = confined("true")
            .args(args)
            .spawn(&launcher, &environment())
            .await;
        assert!(matches!(large, Err(StartError::TooLarge(_))));
    }
}

#[tokio::test]
async fn what_is_hidden_is_not_read() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(
        folder.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    std::fs::create_dir_all(at("inner/own/deep")).unwrap();
    std::fs::create_dir(at("beside")).unwrap();
    for (name, text) in [
        ("open", "open "),
        ("beside/open", "beside "),
        ("hidden", "hidden"),
        ("inner/file", "hidden"),
        ("inner/own/deep/file", "named "),
        ("inner/one", "one"),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    for (rung, launcher) in confining().await {
        for write in [vec![], vec![at("")]] {
            let policy = Policy {
                read: vec![at(""), at("inner/own"), at("inner/one")],
                write: write.clone(),
                hide: vec![at("hidden"), at("inner")],
                ..Policy::default()
            };
            let files = [
                "open",
                "beside/open",
                "hidden",
                "inner/file",
                "inner/own/deep/file",
                "inner/one",
            ];
            let command = Command::new("cat", at(""), policy.clone()).args(files.map(at));
            let mut child = command.spawn(&launcher, &environment()).await.unwrap();
            let told = format!("{rung:?} {write:?}");
            assert_eq!(output(&mut child).await, "open beside named one", "{told}");
            let made = at("inner/made");
            let command = Command::new("touch", at(""), policy).args([&made]);
            let mut child = command.spawn(&launcher, &environment()).await.unwrap();
            child.wait().await.unwrap();
            assert!(!made.exists(), "{told}");
        }
    }
}

#[tokio::test]
async fn the_machine_is_surveyed_and_tools_are_accounted_for() {
    for (rung, launcher) in confining().await {
        let survey = launcher.survey().await.unwrap();
        assert_eq!(survey.rung, Some(rung));
        assert!(survey.features.len() >= 6 && !survey.reason.is_empty());
        let command = Command::new("true", "/usr", Policy::default());
        let account = command
            .account(&launcher, &environment())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(account.rung, rung);
        assert_eq!(account.enforced.exec, "seccomp");
        let unconfined = Command::new("true", "/usr", free());
        assert!(
            unconfined
                .account(&launcher, &environment())
                .await
                .unwrap()
                .is_none()
        );
    }
}

/// Where the user can't make `.git`, the tool can't either.
#[tokio::test]
async fn a_project_of_somebody_else_can_be_named() {
    if is_root() {
        return;
    }
    for (_, launcher) in confining().await {
        let mut policy = Policy::default_for(Path::new("/usr/share"), Some(Path::new("/usr")));
        policy.write.push("/usr".into());
        let command = Command::new("true", "/usr", policy);
        let mut child = command.spawn(&launcher, &environment()).await.unwrap();
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
    }
}

/// To ask what would hold, and to be refused, leaves the disk as it was.
#[tokio::test]
async fn deciding_makes_no_file() {
    for (rung, launcher) in confining().await {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let tmp = root.join("tmp");
        std::fs::create_dir(&tmp).unwrap();
        let environment = Environment::from_vars([
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("TMPDIR".into(), tmp.clone().into()),
        ]);
        let entries = || {
            let count = |path: &Path| std::fs::read_dir(path).unwrap().count();
            (count(&root), count(&tmp))
        };
        let policy = |never: &Path| Policy {
            exec: Exec::Allowed,
            write: vec![root.join("new/out"), root.join("note.txt")],
            never: vec![never.to_path_buf()],
            ..Policy::default()
        };
        let command = |policy| Command::new("sh", "/usr", policy).arg("-c").arg("exit 0");
        let account = command(policy(&root.join("other")));
        let account = account.account(&launcher, &environment).await.unwrap();
        assert_eq!((account.unwrap().rung, entries()), (rung, (1, 0)));
        let refused = command(policy(&root)).spawn(&launcher, &environment).await;
        assert!(matches!(refused, Err(StartError::Refused(_))), "{rung:?}");
        assert_eq!(entries(), (1, 0), "{rung:?}");
        // Who is started finds what it may write.
        let started = command(policy(&root.join("other")));
        let mut child = started.spawn(&launcher, &environment).await.unwrap();
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
        assert!(root.join("new/out").is_dir() && root.join("note.txt").is_file());
    }
}

/// A large tree is looked through while everything else goes on, on the one thread that there is.
#[tokio::test]
async fn trees_are_walked_off_the_runtime() {
    for (rung, launcher) in confining().await {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for n in 0..2_000 {
            std::fs::create_dir(root.join(format!("folder-{n}"))).unwrap();
        }
        let policy = Policy {
            write: vec![root.clone()],
            ..Policy::default()
        };
        let command = Command::new("sh", "/usr", policy);
        let environment = environment();
        let account = command.account(&launcher, &environment);
        tokio::pin!(account);
        tokio::select! {
            biased;
            _ = &mut account => panic!("{rung:?}: the thread was held up"),
            () = std::future::ready(()) => {}
        }
        assert_eq!(account.await.unwrap().unwrap().rung, rung);
    }
}
