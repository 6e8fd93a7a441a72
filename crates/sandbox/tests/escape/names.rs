//! Files that are executed later and have further names, or are links: who writes there writes them.

use std::os::unix::fs::symlink;
use std::path::Path;

use toolcrib_sandbox::{Command, Exec, Policy, StartError};

use crate::arena::*;

fn place(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A script that writes to each of these, and to what is free.
fn writing(paths: &[&str]) -> String {
    let lines = paths
        .iter()
        .map(|path| format!("echo planted >> '{path}'; "));
    lines.collect::<String>() + "echo made > free/made; true"
}

/// A setting or a hook that has a second name elsewhere in the project is not written under that name.
#[tokio::test]
async fn what_is_guarded_is_kept_under_all_of_its_names() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let project = arena.at("project");
        let kept = [
            (".mcp.json", "src/notes.json"),
            ("web/.claude/settings.json", "src/deep/settings"),
            (".git/hooks/pre-commit", "src/commit"),
            (".git/config", "src/config"),
            ("vendor/.git/hooks/post-merge", "src/merge"),
            (".husky/pre-push", "src/push"),
        ];
        std::fs::create_dir_all(project.join("free")).unwrap();
        for (name, alias) in kept {
            place(&project.join(name), "as it was\n");
            let alias = project.join(alias);
            std::fs::create_dir_all(alias.parent().unwrap()).unwrap();
            std::fs::hard_link(project.join(name), alias).unwrap();
        }
        let policy = Policy {
            write: vec![project.clone()],
            exec: Exec::Allowed,
            ..arena.policy()
        };
        let script = writing(&kept.map(|(_, alias)| alias));
        let command = Command::new("sh", &project, policy).args(["-c", &script]);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (_, _, err) = finish(child).await;
        for (name, _) in kept {
            let text = std::fs::read_to_string(project.join(name)).unwrap();
            assert_eq!(text, "as it was\n", "{rung:?} {name}: {err}");
        }
        assert!(project.join("free/made").exists(), "{rung:?}: {err}");
    }
}

/// A hook, or a setting, that is a link: what it leads to is what is executed.
#[tokio::test]
async fn what_guarded_links_lead_to_is_kept() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let project = arena.at("project");
        let kept = [
            (".git/hooks/pre-commit", "src/commit.sh", false),
            (".husky/pre-push", "src/push.sh", false),
            (".claude/hooks/after", "src/after.sh", false),
            (".claude/skills", "src/skills", true),
        ];
        std::fs::create_dir_all(project.join("free")).unwrap();
        for (link, leads, folder) in kept {
            let file = match folder {
                true => project.join(leads).join("file"),
                false => project.join(leads),
            };
            place(&file, "as it was\n");
            let link = project.join(link);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(project.join(leads), link).unwrap();
        }
        // Sources that a package's link leads to are the project's own.
        place(&project.join("packages/one/index.js"), "");
        std::fs::create_dir(project.join("node_modules")).unwrap();
        symlink("../packages/one", project.join("node_modules/one")).unwrap();
        let policy = Policy {
            write: vec![project.clone()],
            exec: Exec::Allowed,
            ..arena.policy()
        };
        let script = writing(&[
            "src/commit.sh",
            "src/push.sh",
            "src/after.sh",
            "src/skills/file",
            "packages/one/index.js",
        ]);
        let command = Command::new("sh", &project, policy).args(["-c", &script]);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (_, _, err) = finish(child).await;
        // The hooks are made for this test; nothing else may have come.
        std::fs::remove_file(project.join(".git/hooks/pre-commit")).unwrap();
        for (_, leads, folder) in kept {
            let file = match folder {
                true => project.join(leads).join("file"),
                false => project.join(leads),
            };
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text, "as it was\n", "{rung:?} {leads}: {err}");
        }
        let source = std::fs::read_to_string(project.join("packages/one/index.js"));
        assert_eq!(source.unwrap(), "planted\n", "{rung:?}: {err}");
        assert!(project.join("free/made").exists(), "{rung:?}: {err}");
    }
}

/// A yes to one file is none to another tool's code that has the same file under another name.
#[tokio::test]
async fn a_granted_file_is_no_other_tools_code() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let (code, alias) = (arena.at("project/src/code.py"), arena.at("project/out.txt"));
        place(&code, "as it was\n");
        std::fs::hard_link(&code, &alias).unwrap();
        let policy = Policy {
            write: vec![alias.clone()],
            keep: vec![code.clone()],
            exec: Exec::Allowed,
            ..arena.policy()
        };
        let start = async |policy: Policy| {
            let command = Command::new("sh", arena.at("project"), policy);
            let command = command.args(["-c", "echo planted >> out.txt"]);
            command.spawn(&launcher, &arena.environment()).await
        };
        let Err(StartError::Refused(told)) = start(policy.clone()).await else {
            panic!("{rung:?}: it was started");
        };
        assert!(told.reason.contains("out.txt"), "{told}");
        // Who was granted the code itself writes it.
        let named = Policy {
            write: vec![alias.clone(), code.clone()],
            ..policy
        };
        finish(start(named).await.unwrap()).await;
        let text = std::fs::read_to_string(&code).unwrap();
        assert_eq!(text, "as it was\nplanted\n", "{rung:?}");
    }
}

/// No program outside of the walls is handed a picture of the tool's memory when it crashes.
#[tokio::test]
async fn a_crash_is_handed_to_nobody() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let text = format!(
            "{GUARD}\nimport resource\nprint('core\\theld\\t', resource.getrlimit(resource.RLIMIT_CORE))\nprint('end\\theld\\t')\n"
        );
        let lines = arena
            .attack(&launcher, rung, Language::Python, &text, arena.policy())
            .await;
        // Zero is no limit for programs that the kernel hands pictures to; one is none for files either.
        let shown = lines.iter().find(|line| line.name == "core").unwrap();
        assert_eq!(shown.shown.trim(), "(1, 1)", "{rung:?}");
    }
}
