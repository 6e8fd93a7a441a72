//! Repositories that name programs wherever git lets them: none of them may run.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::World;
use crate::trap::{Trap, by_config};

#[tokio::test]
async fn programs_in_the_config_do_not_run() {
    let cases: [(&str, &str, &str); 12] = [
        ("fsmonitor", "[core]\nfsmonitor = EVIL\n", ""),
        (
            "clean filter",
            "[filter \"x\"]\nclean = EVIL\nrequired = true\n",
            "* filter=x\n",
        ),
        (
            "process filter",
            "[filter \"x\"]\nprocess = EVIL\nrequired\n",
            "* filter=x\n",
        ),
        (
            "clean and process",
            "[filter \"x\"]\nprocess = EVIL\nclean = EVIL\nsmudge = EVIL\n",
            "* filter=x\n",
        ),
        (
            "filter named with =",
            "[filter \"a=b.c\"]\nclean = EVIL\n",
            "* filter=a=b.c\n",
        ),
        (
            "filter named with quotes",
            "[filter \"a\\\"'\\\\$(x)\"]\nclean = EVIL\n",
            "* filter=a\"'\\$(x)\n",
        ),
        (
            "filter named in old style",
            "[filter.OLD]\nclean = EVIL\n",
            "* filter=old\n",
        ),
        (
            "filter with an upper-case section",
            "[FILTER \"Up\"]\nCLEAN = EVIL\n",
            "* filter=Up\n",
        ),
        (
            "filter without a name",
            "[filter \"\"]\nclean = EVIL\n",
            "* filter=\n",
        ),
        (
            "filter named in UTF-8",
            "[filter \"ä\"]\nclean = EVIL\n",
            "* filter=ä\n",
        ),
        ("external diff", "[diff]\nexternal = EVIL\n", ""),
        (
            "textconv",
            "[diff \"x\"]\ntextconv = EVIL\ncommand = EVIL\n",
            "* diff=x\n",
        ),
    ];
    for (name, config, attributes) in cases {
        let (trap, errors) = by_config(name, config.as_bytes(), attributes.as_bytes()).await;
        assert!(errors.is_empty(), "{name}: {errors:?}");
        let status = trap.world.call("git-status", json!({})).await.unwrap();
        assert!(
            status.output.contains(" M a.txt"),
            "{name}: the tools must still work: {}",
            status.output
        );
        trap.bites(name).await;
    }
}

#[tokio::test]
async fn programs_that_only_other_commands_use_do_not_run_either() {
    let config = b"[core]\npager = EVIL\neditor = EVIL\nsshCommand = EVIL\ngitProxy = EVIL\naskPass = EVIL\n\
        alternateRefsCommand = EVIL\nvirtualFilesystem = EVIL\n[pager]\nstatus = EVIL\ndiff = EVIL\n\
        [alias]\nstatus = !EVIL\ndiff = !EVIL\nrev-parse = !EVIL\n[credential]\nhelper = EVIL\n\
        [uploadpack]\npackObjectsHook = EVIL\n[sequence]\neditor = EVIL\n[gpg]\nprogram = EVIL\n\
        [merge \"x\"]\ndriver = EVIL\n[hook \"x\"]\ncommand = EVIL\nevent = post-index-change\n\
        [status]\nsubmoduleSummary = true\n[color]\nui = always\n";
    let (trap, errors) = by_config("other commands", config, b"* merge=x\n").await;
    assert!(errors.is_empty(), "{errors:?}");
    let traced = trap.world.root.join("canary").display().to_string();
    let trace = format!(
        "[trace2]\nnormalTarget = {traced}\neventTarget = {traced}\nperfTarget = {traced}\n"
    );
    trap.config(trace.as_bytes());
    trap.tools("trace2").await;
    let summary = trap
        .world
        .call("git-diff-summary", json!({}))
        .await
        .unwrap();
    assert!(
        !summary.output.contains('\u{1b}'),
        "no colours: {}",
        summary.output
    );
}

#[tokio::test]
async fn filters_from_other_files_do_not_run() {
    for name in [
        "include.path",
        "includeIf",
        "info/attributes",
        "worktree config",
        "home",
    ] {
        let trap = Trap::new().await;
        trap.change().await;
        let evil = format!("[filter \"x\"]\nclean = {}\n", trap.evil);
        let attributes = if name == "info/attributes" {
            ".git/info/attributes"
        } else {
            ".gitattributes"
        };
        trap.world.write(attributes, "* filter=x\n");
        match name {
            "include.path" => {
                trap.world.write(".git/more", "[include]\npath = deeper\n");
                trap.world.write(".git/deeper", &evil);
                trap.config(b"[include]\npath = more\n");
            }
            "includeIf" => {
                trap.world.write(".git/more", &evil);
                trap.config(b"[includeIf \"onbranch:main\"]\npath = more\n");
            }
            "worktree config" => {
                trap.config(
                    b"[core]\nrepositoryformatversion = 1\n[extensions]\nworktreeConfig = true\n",
                );
                trap.world.write(".git/config.worktree", &evil);
            }
            "home" => std::fs::write(trap.world.root.join("home/.gitconfig"), &evil).unwrap(),
            _ => trap.config(evil.as_bytes()),
        }
        let errors = trap.tools(name).await;
        assert!(errors.is_empty(), "{name}: {errors:?}");
        trap.bites(name).await;
    }
}

#[tokio::test]
async fn filters_that_cannot_be_overridden_are_refused() {
    let name = "filter named in no encoding";
    let (trap, errors) = by_config(
        name,
        b"[filter \"\xff\"]\nclean = EVIL\n",
        b"* filter=\xff\n",
    )
    .await;
    assert_eq!(errors.len(), 5);
    assert!(
        errors
            .iter()
            .all(|error| error.code == ErrorCode::Denied && error.hint.is_some()),
        "{errors:?}"
    );
    trap.bites(name).await;

    // A config file can't hold a newline in a name; git itself refuses it, and so nothing runs.
    let (_, errors) = by_config(
        "newline",
        b"[filter \"a\nb\"]\nclean = EVIL\n",
        b"* filter=a\n",
    )
    .await;
    assert!(
        errors
            .iter()
            .all(|error| error.code == ErrorCode::Unavailable),
        "{errors:?}"
    );
    let (_, errors) = by_config(
        "null byte",
        b"[filter \"a\0b\"]\nclean = EVIL\n",
        b"* filter=a\n",
    )
    .await;
    assert!(
        errors
            .iter()
            .all(|error| error.code == ErrorCode::Unavailable),
        "{errors:?}"
    );

    let many: String = (0..=200)
        .map(|i| format!("[filter \"f{i}\"]\nclean = EVIL\n"))
        .collect();
    let (_, errors) = by_config("many", many.as_bytes(), b"* filter=f200\n").await;
    assert!(
        errors.len() == 5 && errors.iter().all(|error| error.code == ErrorCode::Denied),
        "{errors:?}"
    );
    let long: String = (0..100)
        .map(|i| format!("[filter \"{i}{}\"]\nclean = EVIL\n", "x".repeat(900)))
        .collect();
    let (_, errors) = by_config("long", long.as_bytes(), b"* filter=x\n").await;
    assert!(
        errors.len() == 5 && errors.iter().all(|error| error.code == ErrorCode::Denied),
        "{errors:?}"
    );
}

#[tokio::test]
async fn hooks_do_not_run_and_nothing_is_written() {
    for folder in [".git/hooks", "myhooks"] {
        let trap = Trap::new().await;
        trap.change().await;
        for hook in [
            "post-index-change",
            "fsmonitor-watchman",
            "pre-auto-gc",
            "reference-transaction",
        ] {
            trap.world.write(
                &format!("{folder}/{hook}"),
                format!("#!/bin/sh\nexec {}\n", trap.evil),
            );
            let file = trap.world.project.join(folder).join(hook);
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        if folder == "myhooks" {
            trap.config(b"[core]\nhooksPath = myhooks\n");
        }
        // Same content, new stamp: plain git now wants to refresh the index.
        trap.world
            .run("touch", &["-d", "2001-01-01", "b.txt"])
            .await;
        trap.world.write("b.txt", "one\n");
        trap.world
            .run("touch", &["-d", "2001-01-01", "b.txt"])
            .await;
        let index = || std::fs::read(trap.world.project.join(".git/index")).unwrap();
        let before = index();
        let errors = trap.tools(folder).await;
        assert!(errors.is_empty(), "{errors:?}");
        assert!(before == index(), "the index was written");
        trap.bites(folder).await;
    }
}

#[tokio::test]
async fn missing_objects_are_not_fetched() {
    let remotes = [
        ("ext", "url = ext::EVIL\n"),
        ("uploadpack", "url = .\nuploadpack = EVIL\n"),
        ("ssh", "url = ssh://example.invalid/x\n"),
        ("vcs", "url = x\nvcs = ext\n"),
    ];
    for (name, remote) in remotes {
        let trap = Trap::new().await;
        trap.change().await;
        let config = format!(
            "[core]\nrepositoryformatversion = 1\nsshCommand = EVIL\n[extensions]\npartialClone = evil\n\
             [protocol]\nallow = always\n[protocol \"ext\"]\nallow = always\n\
             [remote \"evil\"]\npromisor = true\npartialclonefilter = blob:none\n{}",
            remote.replace("EVIL\n", &format!("{}\n", trap.evil)),
        );
        trap.config(config.as_bytes());
        // The committed content of the changed files goes missing.
        let blob = trap.world.git(&["rev-parse", "HEAD:a.txt"]).await;
        let (folder, file) = blob.trim().split_at(2);
        std::fs::remove_file(
            trap.world
                .project
                .join(".git/objects")
                .join(folder)
                .join(file),
        )
        .unwrap();
        let errors = trap.tools(name).await;
        assert!(
            errors
                .iter()
                .all(|error| error.code == ErrorCode::Unavailable),
            "{name}: {errors:?}"
        );
        if name != "vcs" {
            trap.bites(name).await;
        }
    }
}

#[tokio::test]
async fn submodules_bring_no_config_of_their_own() {
    let trap = Trap::new().await;
    let inner = async |args: &[&str]| trap.world.git(&[&["-C", "sub"], args].concat()).await;
    trap.world.write("sub/inner.txt", "one\n");
    inner(&["init", "--quiet", "-b", "main"]).await;
    inner(&["add", "."]).await;
    inner(&[
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "--quiet",
        "-m",
        "x",
    ])
    .await;
    trap.world.git(&["add", "sub"]).await;
    trap.world.commit().await;
    trap.change().await;
    trap.world.write("sub/inner.txt", "two\n");
    trap.world.write("sub/.gitattributes", "* filter=x\n");
    let config = format!(
        "[core]\nfsmonitor = {0}\n[filter \"x\"]\nclean = {0}\n",
        trap.evil
    );
    let file = trap.world.project.join("sub/.git/config");
    let before = std::fs::read_to_string(&file).unwrap();
    std::fs::write(file, before + &config).unwrap();
    trap.config(
        b"[diff]\nsubmodule = diff\nignoreSubmodules = none\n[submodule]\nrecurse = true\n",
    );
    trap.config(b"[submodule \"sub\"]\nignore = none\nurl = .\nactive = true\n");
    trap.world.write(
        ".gitmodules",
        "[submodule \"sub\"]\npath = sub\nurl = .\nignore = none\n",
    );
    let errors = trap.tools("submodule").await;
    assert!(errors.is_empty(), "{errors:?}");
    trap.bites("submodule").await;
}

#[tokio::test]
async fn a_work_tree_elsewhere_is_refused() {
    let trap = Trap::new().await;
    let other = trap.world.root.join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("secret-name"), "x").unwrap();
    std::fs::write(trap.world.root.join("secret-beside"), "x").unwrap();
    let config = trap.world.project.join(".git/config");
    let before = std::fs::read_to_string(&config).unwrap();
    std::os::unix::fs::symlink(&other, trap.world.project.join("link")).unwrap();
    for worktree in [
        other.display().to_string(),
        "../../other".into(),
        "../link".into(),
    ] {
        std::fs::write(&config, format!("{before}[core]\nworktree = {worktree}\n")).unwrap();
        assert!(
            trap.world
                .git(&["status", "--porcelain"])
                .await
                .contains("secret-name"),
            "{worktree}"
        );
        for error in trap.tools("worktree").await {
            assert_eq!(error.code, ErrorCode::Denied, "{worktree}: {error}");
            assert!(error.message.contains("outside the project"), "{error}");
        }
        assert_eq!(trap.tools("worktree").await.len(), 5);
    }
    // An ancestor is a legal work tree, but only the project's part of it is shown.
    std::fs::write(
        &config,
        format!("{before}[core]\nworktree = {}\n", trap.world.root.display()),
    )
    .unwrap();
    assert!(
        trap.world
            .git(&["status", "--porcelain"])
            .await
            .contains("secret-beside")
    );
    let status = trap.world.call("git-status", json!({})).await.unwrap();
    assert!(
        status.output.contains("project/") && !status.output.contains("secret"),
        "{}",
        status.output
    );
}

#[tokio::test]
async fn a_bare_repository_among_the_files_is_not_used() {
    let world = World::new();
    world.git(&["init", "--quiet", "--bare", "."]).await;
    let trap_config = format!(
        "[core]\nbare = false\nworktree = {}\nfsmonitor = false\n",
        world.project.display()
    );
    world.write("config", trap_config);
    let error = world.call("git-status", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unavailable, "{error}");
}

/// A pipe gives no end: whatever git would open, it is named at once.
#[tokio::test]
async fn pipes_in_a_repository_are_named_and_nobody_waits() {
    for file in [
        ".git/HEAD",
        ".git/config",
        ".git/index",
        ".git/packed-refs",
        ".git/objects/info/alternates",
        ".git/refs/heads/main",
        ".git/info/exclude",
        ".gitattributes",
    ] {
        let world = World::repository().await;
        let _ = std::fs::remove_file(world.project.join(file));
        world.run("mkfifo", &[file]).await;
        for tool in ["git-status", "git-diff-summary"] {
            let error = world.call(tool, json!({})).await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Unavailable, "{file}: {error:?}");
            assert!(
                error.message.contains(file) && error.message.contains("is a pipe"),
                "{file}: {error:?}"
            );
        }
    }
    // A link to one is one; a link to nothing at all is none.
    let world = World::repository().await;
    world.run("mkfifo", &["pipe"]).await;
    let head = world.project.join(".git/HEAD");
    std::fs::rename(&head, world.project.join(".git/old")).unwrap();
    std::os::unix::fs::symlink("../pipe", &head).unwrap();
    let error = world.call("git-status", json!({})).await.unwrap_err();
    assert!(error.message.contains("is a pipe"), "{error:?}");
    std::fs::rename(world.project.join(".git/old"), &head).unwrap();
    let exclude = world.project.join(".git/info/exclude");
    let _ = std::fs::remove_file(&exclude);
    std::os::unix::fs::symlink("/dev/null", &exclude).unwrap();
    world.call("git-status", json!({})).await.unwrap();
}
