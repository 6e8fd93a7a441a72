//! `write-file`: what it writes, and every way to make it write elsewhere.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use toolcrib_core::{Access, ErrorCode, Permit};

use crate::support::World;

#[tokio::test]
async fn it_is_off_until_something_is_granted() {
    let world = World::new();
    let error = world
        .call("write-file", json!({"path": "a", "content": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    let hint = error.hint.unwrap();
    assert_eq!(
        hint.command().unwrap().to_string(),
        "toolcrib grant write-file --write PATH"
    );
    assert!(!world.project.join("a").exists());
    // What has nothing to do with files switches nothing on.
    let memory = Permit {
        memory_mb: Some(2048),
        ..Permit::default()
    };
    world.grant("write-file", memory);
    assert!(
        world
            .call("write-file", json!({"path": "a", "content": "x"}))
            .await
            .is_err()
    );
    world.writable(&["."]);
    let view = world.crib.owners_view();
    assert_eq!(view.get("write-file").unwrap().access, Access::Open);
    world
        .call("write-file", json!({"path": "a", "content": "x"}))
        .await
        .unwrap();
}

#[tokio::test]
async fn files_are_written_whole_and_added_to() {
    let world = World::new();
    world.writable(&["."]);
    let new = world
        .call(
            "write-file",
            json!({"path": "new/deep/a.txt", "content": "one\n"}),
        )
        .await
        .unwrap();
    assert_eq!(
        (&new.metadata["isNew"], &new.metadata["bytes"]),
        (&json!(true), &json!(4))
    );
    let added = world
        .call(
            "write-file",
            json!({"path": "new/deep/a.txt", "content": "two\n", "append": true}),
        )
        .await
        .unwrap();
    assert_eq!(
        (&added.metadata["isNew"], &added.metadata["bytes"]),
        (&json!(false), &json!(8))
    );
    assert_eq!(world.read("new/deep/a.txt"), "one\ntwo\n");
    let file = world.project.join("new/deep/a.txt");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o750)).unwrap();
    std::fs::hard_link(&file, world.project.join("other-name")).unwrap();
    let absolute = file.display().to_string();
    world
        .call("write-file", json!({"path": absolute, "content": "ä"}))
        .await
        .unwrap();
    assert_eq!(world.read("new/deep/a.txt"), "ä");
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o750);
    assert_eq!(
        world.read("other-name"),
        "one\ntwo\n",
        "another name is another file from then on"
    );
    let left: Vec<_> = std::fs::read_dir(world.project.join("new/deep"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "nothing else is left: {left:?}");
    for bad in [
        json!({"path": "new", "content": ""}),
        json!({"path": "x/", "content": ""}),
        json!({"path": "other-name/x", "content": ""}),
        json!({"path": "a\0", "content": ""}),
        json!({"path": "x"}),
    ] {
        let error = world.call("write-file", bad.clone()).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArguments, "{bad}: {error}");
    }
}

#[tokio::test]
async fn nothing_that_decides_what_runs_is_written() {
    let world = World::repository().await;
    world.git(&["config", "core.hooksPath", "run/hooks"]).await;
    world.git(&["init", "--quiet", "--bare", "bare"]).await;
    world.write("sub/.git/config", "[include]\n\tpath = ../../shared.ini\n");
    world.write("shared.ini", "");
    world.write("tools/tool.py", "");
    std::fs::hard_link(
        world.project.join("tools/tool.py"),
        world.project.join("alias.py"),
    )
    .unwrap();
    std::fs::create_dir(world.root.join("own")).unwrap();
    world.note(&["tools/tool.py"]);
    world.hold("later");
    world.writable(&["."]);
    for path in [
        ".git/config",
        ".git/hooks/pre-commit",
        ".GIT/config",
        "./src/../.git/config",
        ".toolcrib/tools/x.py",
        "new/.toolcrib/config.toml",
        ".claude/settings.json",
        ".mcp.json",
        "deep/.vscode/tasks.json",
        ".envrc",
        "node_modules/x/index.js",
        ".venv/bin/python",
        "run/hooks/pre-commit",
        "shared.ini",
        "sub/.git/config",
        "bare/hooks/post-receive",
        "bare/config",
        "tools/tool.py",
        "alias.py",
        "later/index.js",
    ] {
        let before = std::fs::read(world.project.join(path)).ok();
        let call = json!({"path": path, "content": "ATTACK"});
        let error = world.call("write-file", call).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{path}: {error}");
        assert_eq!(
            std::fs::read(world.project.join(path)).ok(),
            before,
            "{path}"
        );
    }
    world
        .call(
            "write-file",
            json!({"path": "tools/data.txt", "content": "x"}),
        )
        .await
        .unwrap();
    // Who names such a place means it.
    world.writable(&[".claude"]);
    world
        .call("write-file", json!({"path": ".claude/a", "content": "x"}))
        .await
        .unwrap();
    let error = world
        .call("write-file", json!({"path": "b", "content": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied);
    // The crib's own folders are nobody's.
    world.writable(&["../own"]);
    let own = world.root.join("own/tokens").display().to_string();
    let error = world
        .call("write-file", json!({"path": own, "content": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied, "{error}");
}

#[tokio::test]
async fn nothing_outside_of_the_grant_is_written() {
    let world = World::new();
    let outside = world.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    world.write("docs/a.md", "a");
    world.write("src/a.rs", "a");
    symlink(&outside, world.project.join("docs/out")).unwrap();
    symlink("../src", world.project.join("docs/side")).unwrap();
    symlink("a.md", world.project.join("docs/link")).unwrap();
    world.writable(&["docs"]);
    for path in [
        "src/a.rs",
        "docs/../src/a.rs",
        "docs/out/x",
        "docs/out/new/x",
        "docs/side/a.rs",
        "../outside/x",
        "/etc/toolcrib-test",
        "docs/../../outside/x",
    ] {
        let error = world
            .call("write-file", json!({"path": path, "content": "ATTACK"}))
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied, "{path}: {error}");
    }
    assert!(std::fs::read_dir(&outside).unwrap().next().is_none());
    assert_eq!(world.read("src/a.rs"), "a");
    world.run("mkfifo", &["docs/pipe"]).await;
    for path in ["docs/link", "docs/pipe", "docs"] {
        let error = world
            .call(
                "write-file",
                json!({"path": path, "content": "x", "append": true}),
            )
            .await
            .unwrap_err();
        let expected = [ErrorCode::InvalidArguments, ErrorCode::Denied];
        assert!(expected.contains(&error.code), "{path}: {error}");
    }
    assert_eq!(world.read("docs/a.md"), "a");
    // What was granted and leads elsewhere now is not written.
    std::fs::rename(world.project.join("docs"), world.project.join("was")).unwrap();
    symlink(&outside, world.project.join("docs")).unwrap();
    let error = world
        .call("write-file", json!({"path": "docs/x", "content": "x"}))
        .await
        .unwrap_err();
    assert_eq!(error.code, ErrorCode::Denied, "{error}");
}

#[tokio::test]
async fn a_file_that_was_granted_is_that_file_alone() {
    let world = World::new();
    world.write("notes.md", "a");
    world.writable(&["notes.md"]);
    world
        .call(
            "write-file",
            json!({"path": "notes.md", "content": "b", "append": true}),
        )
        .await
        .unwrap();
    assert_eq!(world.read("notes.md"), "ab");
    for path in ["notes.md2", "other.md", "notes.md/x"] {
        assert!(
            world
                .call("write-file", json!({"path": path, "content": "x"}))
                .await
                .is_err(),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_swapped_folder_never_leads_out_or_into_what_is_guarded() {
    let world = World::repository().await;
    let outside = world.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    world.write("inside/keep", "");
    symlink("inside", world.project.join("link")).unwrap();
    world.writable(&["."]);
    let done = Arc::new(AtomicBool::new(false));
    let swapper = {
        let (done, project, outside) = (done.clone(), world.project.clone(), outside.clone());
        std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                for target in [
                    outside.as_path(),
                    Path::new(".git/hooks"),
                    Path::new("inside"),
                ] {
                    symlink(target, project.join("next")).unwrap();
                    std::fs::rename(project.join("next"), project.join("link")).unwrap();
                }
            }
        })
    };
    let (mut written, mut refused) = (0, 0);
    for _ in 0..150 {
        match world
            .call(
                "write-file",
                json!({"path": "link/planted", "content": "ATTACK"}),
            )
            .await
        {
            Ok(_) => written += 1,
            Err(_) => refused += 1,
        }
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(!outside.join("planted").exists());
    assert!(!world.project.join(".git/hooks/planted").exists());
    let settled = world
        .call(
            "write-file",
            json!({"path": "link/planted", "content": "fine"}),
        )
        .await;
    settled.unwrap();
    assert_eq!(
        world.read("inside/planted"),
        "fine",
        "{written} written, {refused} refused"
    );
}

#[tokio::test]
async fn calls_at_the_same_time_lose_nothing() {
    let world = World::new();
    world.writable(&["."]);
    let calls = (0..20).map(|n| {
        let content = format!("line {n}\n");
        world.call(
            "write-file",
            json!({"path": "log", "content": content, "append": true}),
        )
    });
    for outcome in futures_util::future::join_all(calls).await {
        outcome.unwrap();
    }
    assert_eq!(world.read("log").lines().count(), 20);
}
