//! Normal life under the default policy: what honest tools do works on every rung.

use std::path::Path;
use std::process::Stdio;

use toolcrib_sandbox::{Command, Exec, Exit, Policy};

use crate::arena::*;

const PYTHON: &str = include_str!("life.py");
const NODE: &str = include_str!("life.mjs");

#[tokio::test]
async fn honest_tools_work() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        for (language, text, exec) in [
            (Language::Python, PYTHON, Exec::Once),
            (Language::Python, PYTHON, Exec::Allowed),
            (Language::Node, NODE, Exec::Once),
        ] {
            let policy = Policy {
                exec,
                ..arena.policy()
            };
            let mut command = arena.command(language, text, rung, policy);
            if exec == Exec::Allowed {
                command = command.var("TOOLCRIB_TEST_EXEC", "1");
            }
            let child = command
                .spawn(&launcher, &arena.environment())
                .await
                .unwrap();
            let (exit, said, err) = finish(child).await;
            let lines = read(&said);
            assert_eq!(exit, Exit::Code(0), "{rung:?} {language:?} {said}{err}");
            assert_eq!(out(&lines), [] as [String; 0], "{rung:?} {language:?}");
            assert!(lines.len() > 12, "{rung:?} {said}");
        }
    }
}

#[tokio::test]
async fn virtual_environments_work() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let prefix = arena.at("project/.venv");
        #[expect(clippy::disallowed_methods, reason = "set up from outside")]
        let made = std::process::Command::new("python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(&prefix)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .output()
            .expect("python3 is installed");
        assert!(made.status.success(), "no python3-venv? {made:?}");
        let packages = std::fs::read_dir(prefix.join("lib"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let module = packages
            .path()
            .join("site-packages/inside_the_environment.py");
        std::fs::write(module, "WORD = 'here'\n").unwrap();
        let file = arena.at("tools/life.py");
        std::fs::write(&file, PYTHON).unwrap();
        let places = serde_json::json!({"project": arena.at("project")}).to_string();
        let command = Command::new(
            prefix.join("bin/python"),
            arena.at("project"),
            arena.policy(),
        )
        .arg(&file)
        .var("TOOLCRIB_TEST_PLACES", places)
        .var("TOOLCRIB_TEST_PREFIX", &prefix);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (exit, said, err) = finish(child).await;
        assert_eq!(exit, Exit::Code(0), "{rung:?} {said}{err}");
        assert_eq!(out(&read(&said)), [] as [String; 0], "{rung:?}");
    }
}

/// Scripts by their first lines: the kernel's rules, followed by us.
#[tokio::test]
async fn scripts_run_though_nothing_else_may() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        for (line, words) in [
            ("#!/bin/sh", "echo \"$0 $1\""),
            ("#!/usr/bin/env sh", "echo \"$0 $1\""),
            ("#!/usr/bin/env -S sh -u", "echo \"$0 $1\""),
            (
                "#!/usr/bin/env python3",
                "import sys; print(sys.argv[0], sys.argv[1])",
            ),
        ] {
            let file = arena.at("tools/script");
            // By another name: one that runs can't be written.
            let fresh = arena.at("tools/fresh");
            std::fs::write(&fresh, format!("{line}\n{words}\n")).unwrap();
            std::fs::set_permissions(&fresh, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            std::fs::rename(&fresh, &file).unwrap();
            let command = Command::new(&file, arena.at("project"), arena.policy()).arg("x");
            let child = command
                .spawn(&launcher, &arena.environment())
                .await
                .unwrap();
            let (_, said, err) = finish(child).await;
            assert_eq!(
                said,
                format!("{} x\n", file.display()),
                "{rung:?} {line} {err}"
            );
        }
    }
}

#[tokio::test]
async fn an_install_works_where_modes_stay_as_they_are() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let cache = arena.at("home/cache");
        std::fs::create_dir(&cache).unwrap();
        let script = "touch a && chmod 755 a && mkdir b && cp a b/ && ln -s a c && rm a && ls b";
        let policy = Policy {
            write: vec![cache.clone()],
            exec: Exec::Allowed,
            ..Policy::default()
        };
        let command = Command::new("sh", &cache, policy).args(["-c", script]);
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (exit, said, err) = finish(child).await;
        assert_eq!(
            (exit, said.as_str()),
            (Exit::Code(0), "a\n"),
            "{rung:?} {err}"
        );
        assert!(Path::new(&cache).join("b/a").exists());
    }
}
