//! The git tools in honest repositories.

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::World;

#[tokio::test]
async fn status_is_what_git_says() {
    let world = World::repository().await;
    let clean = world.call("git-status", json!({})).await.unwrap();
    assert_eq!(
        (clean.output.as_str(), clean.title.as_deref()),
        ("", Some("clean"))
    );

    world.write("a.txt", "two\n");
    world.write("sub/new.txt", "new\n");
    world.write("[odd*]/x", "new\n");
    world.write("staged.txt", "new\n");
    world.git(&["add", "staged.txt"]).await;
    let status = world.call("git-status", json!({})).await.unwrap();
    assert_eq!(status.output, world.git(&["status", "--porcelain"]).await);
    assert_eq!(
        status.output,
        " M a.txt\nA  staged.txt\n?? [odd*]/\n?? sub/\n"
    );
    assert_eq!(status.title.as_deref(), Some("4 changes"));

    let absolute = world.project.join("sub").display().to_string();
    for path in ["sub", "./sub/", &absolute] {
        let status = world
            .call("git-status", json!({"path": path}))
            .await
            .unwrap();
        assert_eq!(status.output, "?? sub/\n", "{path}");
    }
    let odd = world
        .call("git-status", json!({"path": "[odd*]"}))
        .await
        .unwrap();
    assert_eq!(odd.output, "?? [odd*]/\n");
    let whole = world
        .call(
            "git-status",
            json!({"path": world.project.display().to_string()}),
        )
        .await
        .unwrap();
    assert_eq!(whole.output, status.output);
}

#[tokio::test]
async fn status_stays_inside_the_project() {
    let world = World::repository().await;
    std::os::unix::fs::symlink(&world.root, world.project.join("out")).unwrap();
    for (path, code) in [
        ("..", ErrorCode::Denied),
        ("/", ErrorCode::Denied),
        ("out", ErrorCode::Denied),
        ("sub/../..", ErrorCode::InvalidArguments),
        ("none", ErrorCode::InvalidArguments),
        ("a.txt", ErrorCode::InvalidArguments),
        ("a\0b", ErrorCode::InvalidArguments),
        ("--help", ErrorCode::InvalidArguments),
        (":(top)", ErrorCode::InvalidArguments),
    ] {
        let error = world
            .call("git-status", json!({"path": path}))
            .await
            .unwrap_err();
        assert_eq!(error.code, code, "{path:?}: {error}");
    }
}

#[tokio::test]
async fn a_long_status_is_kept_whole() {
    let world = World::repository().await;
    for i in 0..3_000 {
        world.write(&format!("a-file-with-a-rather-long-name-{i:04}"), "");
    }
    let status = world.call("git-status", json!({})).await.unwrap();
    assert_eq!(status.metadata["totalLines"], 3_000);
    let id = status.metadata["outputId"].as_str().unwrap();
    let last = world
        .call("read-output", json!({"id": id, "offset": 0}))
        .await
        .unwrap();
    assert!(
        last.output
            .starts_with("?? a-file-with-a-rather-long-name-0000\n")
    );
}

#[tokio::test]
async fn diff_summary_tells_staged_from_unstaged() {
    let world = World::repository().await;
    let none = world.call("git-diff-summary", json!({})).await.unwrap();
    assert_eq!(
        (none.output.as_str(), none.title.as_deref()),
        ("", Some("no changes"))
    );
    world.write("a.txt", "one\ntwo\n");
    world.git(&["add", "a.txt"]).await;
    world.write("b.txt", "two\n");
    let unstaged = world.call("git-diff-summary", json!({})).await.unwrap();
    assert!(
        unstaged.output.contains("b.txt | 2 +-") && !unstaged.output.contains("a.txt"),
        "{}",
        unstaged.output
    );
    assert_eq!(
        unstaged.title.as_deref(),
        Some("1 file changed, 1 insertion(+), 1 deletion(-)")
    );
    let staged = world
        .call("git-diff-summary", json!({"staged": true}))
        .await
        .unwrap();
    assert!(
        staged.output.contains("a.txt | 1 +") && !staged.output.contains("b.txt"),
        "{}",
        staged.output
    );
}

#[tokio::test]
async fn a_folder_without_git_is_told() {
    let world = World::new();
    for tool in ["git-status", "git-diff-summary"] {
        let error = world.call(tool, json!({})).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Unavailable);
        assert!(
            error.message.contains("not in a git repository") && error.hint.is_some(),
            "{error}"
        );
    }
    let info = world
        .call("workspace-info", json!({}))
        .await
        .unwrap()
        .structured
        .unwrap();
    assert_eq!(info["projectPath"], world.project.to_str().unwrap());
    assert_eq!(info["gitBranch"], json!(null));
}

#[tokio::test]
async fn workspace_info_knows_unborn_named_and_detached_heads() {
    let world = World::new();
    world.git(&["init", "--quiet", "-b", "main"]).await;
    let info = async || {
        world
            .call("workspace-info", json!({}))
            .await
            .unwrap()
            .structured
            .unwrap()
    };
    let project = world.project.to_str().unwrap();
    let expected =
        json!({"projectPath": project, "gitBranch": "main", "gitCommit": null, "remoteUrl": null});
    assert_eq!(info().await, expected);
    let unborn = world
        .call("git-diff-summary", json!({"staged": true}))
        .await
        .unwrap();
    assert_eq!(unborn.output, "");

    world.write("a.txt", "one\n");
    world.git(&["add", "."]).await;
    world.commit().await;
    world.git(&["checkout", "--quiet", "-b", "feature/x"]).await;
    world
        .git(&[
            "remote",
            "add",
            "origin",
            "https://me:secret-token@example.org/a/b.git",
        ])
        .await;
    let named = world.call("workspace-info", json!({})).await.unwrap();
    assert!(!named.output.contains("secret-token"));
    let named = named.structured.unwrap();
    assert_eq!(named["gitBranch"], "feature/x");
    assert_eq!(named["remoteUrl"], "https://example.org/a/b.git");
    let commit = world.git(&["rev-parse", "--short", "HEAD"]).await;

    world.git(&["checkout", "--quiet", "--detach"]).await;
    let detached = info().await;
    assert_eq!(detached["gitBranch"], json!(null));
    assert_eq!(detached["gitCommit"], commit.trim());
}

#[tokio::test]
async fn a_project_inside_a_repository_sees_only_itself() {
    let world = World::with(
        |project| Some(project.join("inner")),
        "/usr/local/bin:/usr/bin:/bin",
    );
    world.git(&["init", "--quiet", "-b", "main"]).await;
    world.write("inner/a.txt", "one\n");
    world.write("outer.txt", "one\n");
    let status = world.call("git-status", json!({})).await.unwrap();
    assert_eq!(status.output, "?? inner/\n");
    world.git(&["add", "."]).await;
    let summary = world
        .call("git-diff-summary", json!({"staged": true}))
        .await
        .unwrap();
    assert!(
        summary.output.contains("a.txt") && !summary.output.contains("outer.txt"),
        "{}",
        summary.output
    );
}
