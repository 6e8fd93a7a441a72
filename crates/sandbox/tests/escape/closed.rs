//! What a tool leaves behind that others come upon: closed folders, links in a folder for temporary files, depths that no
//! path can say.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use toolcrib_sandbox::{Command, Environment, Exec, Exit, Launcher, Policy, Rung, StartError};

use crate::arena::*;

const DEEP: &str = include_str!("deep.py");
/// Deeper than a stack of any thread is large, if each folder took a step on it.
const DEPTH: u32 = 20_000;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a shell's script behind walls, where it is not refused.
async fn run(
    arena: &Arena,
    launcher: &Launcher,
    dir: &Path,
    policy: Policy,
    script: &str,
) -> Result<(Exit, String, String), String> {
    let command = Command::new("sh", dir, policy).args(["-c", script]);
    match command.spawn(launcher, &arena.environment()).await {
        Ok(child) => Ok(finish(child).await),
        Err(StartError::Refused(told)) => Err(told.to_string()),
        Err(other) => panic!("{other}"),
    }
}

/// A folder that nobody may look into hides no repository: where it can't be looked into, nothing is started.
#[tokio::test]
async fn a_closed_folder_hides_no_repository() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let closed = arena.at("project/vendor/one");
        let git = closed.join("deep/.git");
        std::fs::create_dir_all(&git).unwrap();
        std::fs::write(git.join("config"), "as it was").unwrap();
        let policy = Policy {
            write: vec![arena.at("project")],
            exec: Exec::Allowed,
            ..arena.policy()
        };
        let dir = arena.at("project");
        let again = async |script: &str| run(&arena, &launcher, &dir, policy.clone(), script).await;
        // A tool closes it itself, where modes can be changed.
        again("chmod 000 vendor/one; true").await.unwrap();
        let planting = "chmod 755 vendor/one; cd vendor/one/deep; echo x > .git/config; echo x > .git/planted; \
                        mv .git gone; mkdir .git; true";
        let mut modes = vec![closed.metadata().unwrap().permissions().mode() & 0o777];
        assert_eq!(modes[0] == 0, rung != Rung::Group, "{rung:?}");
        modes.extend([0o311, 0o600, 0o000]);
        for mode in modes {
            set_mode(&closed, mode);
            let ran = again(planting).await;
            let now = closed.metadata().unwrap().permissions().mode() & 0o777;
            set_mode(&closed, 0o755);
            let shown = format!("{rung:?} {mode:o}: {ran:?}");
            let config = std::fs::read_to_string(git.join("config"));
            assert_eq!(config.unwrap(), "as it was", "{shown}");
            assert!(!git.join("planted").exists(), "{shown}");
            // Root looks into everything, and what nobody closed is looked into.
            if !is_root() && mode != 0o755 {
                let told = ran.unwrap_err();
                assert!(told.contains("can't be looked into"), "{rung:?}: {told}");
                assert!(told.contains(closed.to_str().unwrap()), "{told}");
                assert_eq!(now, mode, "{rung:?}: nothing ran");
            }
        }
    }
}

/// A project that lies in the folder for temporary files, where a tool has one of its own: links in it lead nowhere.
#[tokio::test]
async fn links_below_tmp_lead_nowhere() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        set_mode(folder.path(), 0o755);
        let project = folder.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(project.join("environment")).unwrap();
        std::fs::create_dir(project.join("src")).unwrap();
        std::fs::write(project.join("data.txt"), "data").unwrap();
        for (link, to) in [("key", "home/.ssh/id"), ("keys", "home/.ssh")] {
            symlink(arena.at(to), project.join(link)).unwrap();
            symlink(arena.at(to), folder.path().join(link)).unwrap();
        }
        let policy = Policy {
            exec: Exec::Allowed,
            ..Policy::default_for(&arena.at("tools"), Some(&project))
        };
        let reading = format!(
            "cat data.txt key keys/id ../key ../keys/id; ln -s '{0}' \"$TMPDIR/key\"; cat \"$TMPDIR/key\"; \
             ln -s '{0}' \"$HOME/key\"; cat \"$HOME/key\"; true",
            arena.at("home/.ssh/id").display()
        );
        let mut writing = policy.clone();
        writing.write.push(project.clone());
        for policy in [policy, writing.clone()] {
            let (_, said, err) = run(&arena, &launcher, &project, policy, &reading)
                .await
                .unwrap();
            assert_eq!(said, "data", "{rung:?}: {err}");
        }
        // One that a tool wants opened is refused, and one on the way to a grant is no way.
        let lists: [fn(&mut Policy) -> &mut Vec<PathBuf>; 3] = [
            |policy| &mut policy.read,
            |policy| &mut policy.granted,
            |policy| &mut policy.write,
        ];
        for list in lists {
            let mut policy = writing.clone();
            list(&mut policy).push(project.join("keys"));
            let ran = run(&arena, &launcher, &project, policy, &reading).await;
            let told = ran.unwrap_err();
            assert!(told.contains("project/keys"), "{rung:?}: {told}");
        }
        // One in place of what is kept could be replaced: by mounts it can't be held there.
        symlink("environment", project.join(".venv")).unwrap();
        let replacing = "rm -f .venv; ln -sfn src .venv; mv .venv src/; echo x > .venv/planted; \
                         echo x > environment/planted; echo x > src/made; true";
        let ran = run(&arena, &launcher, &project, writing, replacing).await;
        let link = std::fs::read_link(project.join(".venv")).unwrap();
        assert_eq!(link, Path::new("environment"), "{rung:?} {ran:?}");
        let planted = project.join("environment/planted");
        assert!(!planted.exists(), "{rung:?} {ran:?}");
        match (rung, ran) {
            (Rung::Group, ran) => {
                ran.unwrap();
                assert!(project.join("src/made").exists());
            }
            (_, ran) => {
                let told = ran.unwrap_err();
                assert!(told.contains(".venv") && told.contains("link"), "{told}");
            }
        }
    }
}

/// However deep a tool's private folder is, it is cleared, and nothing that links in it lead to.
#[tokio::test]
async fn what_is_deep_is_cleared_away() {
    for (rung, launcher) in launchers().await {
        let mut arena = Arena::new();
        arena.more = serde_json::json!({"depth": DEPTH});
        let scratch = arena.at("scratch");
        let vars = [
            ("PATH", "/usr/bin:/bin"),
            ("TMPDIR", scratch.to_str().unwrap()),
        ];
        let environment =
            Environment::from_vars(vars.map(|(name, value)| (name.into(), value.into())));
        let text = format!("{GUARD}{DEEP}");
        let command = arena.command(Language::Python, &text, rung, arena.policy());
        let child = command.spawn(&launcher, &environment).await.unwrap();
        let (exit, said, err) = finish(child).await;
        let made = format!("made\theld\t{DEPTH}\n");
        assert_eq!(exit, Exit::Code(0), "{rung:?} {said}{err}");
        assert!(said.ends_with(&made), "{rung:?} {said}{err}");
        let limit = Instant::now() + Duration::from_secs(90);
        let left = || std::fs::read_dir(&scratch).unwrap().count();
        while left() > 0 {
            assert!(Instant::now() < limit, "{rung:?}: {} left", left());
            // sleeps: how often it is looked at; nothing depends on it
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        for (file, text) in [
            ("project/data.txt", "data"),
            ("home/.ssh/id", "secret"),
            ("secret/hidden", "secret"),
        ] {
            let now = std::fs::read_to_string(arena.at(file)).unwrap();
            assert_eq!(now, text, "{rung:?} {file}");
        }
    }
}
