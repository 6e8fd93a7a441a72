//! A repository that names a program, which would leave a trace if it ran.
//!
//! The program only touches a canary file in the test's own temporary folder.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;
use toolcrib_core::CallError;

use crate::support::World;

/// A repository with changes, and a program that leaves a trace when it is run.
pub struct Trap {
    pub world: World,
    canary: PathBuf,
    pub evil: String,
}

impl Trap {
    pub async fn new() -> Trap {
        let world = World::repository().await;
        let (canary, script) = (world.root.join("canary"), world.root.join("evil"));
        std::fs::write(
            &script,
            format!("#!/bin/sh\ntouch '{}'\n", canary.display()),
        )
        .unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let evil = script.display().to_string();
        Trap {
            world,
            canary,
            evil,
        }
    }

    /// Appends to `.git/config`; `EVIL` stands for the program.
    pub fn config(&self, text: &[u8]) {
        let file = self.world.project.join(".git/config");
        let mut config = std::fs::read(&file).unwrap();
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            let line = part
                .strip_suffix(b"EVIL\n")
                .map(|key| [key, self.evil.as_bytes(), b"\n"].concat());
            config.extend_from_slice(line.as_deref().unwrap_or(part));
        }
        std::fs::write(file, config).unwrap();
    }

    /// Changes that make git look into files, so that filters and diffs would run.
    pub async fn change(&self) {
        self.world.write("staged.txt", "new\n");
        self.world
            .git(&["-c", "core.fsmonitor=false", "add", "staged.txt"])
            .await;
        self.world.write("a.txt", "two\n");
        self.world.write("b.txt", "one\nand more\n");
    }

    fn sprung(&self) -> bool {
        self.canary.exists()
    }

    /// Runs every git tool; none may spring the trap. Gives the errors they answered.
    pub async fn tools(&self, name: &str) -> Vec<CallError> {
        let calls = [
            ("git-status", json!({})),
            ("git-status", json!({"path": "."})),
            ("git-diff-summary", json!({})),
            ("git-diff-summary", json!({"staged": true})),
            ("workspace-info", json!({})),
        ];
        let mut errors = Vec::new();
        for (tool, arguments) in calls {
            errors.extend(self.world.call(tool, arguments).await.err());
            assert!(!self.sprung(), "{name}: sprung by {tool}");
        }
        errors
    }

    /// The same trap does spring under plain git, so it is a real one.
    pub async fn bites(&self, name: &str) {
        self.world.git(&["status"]).await;
        self.world.git(&["diff"]).await;
        assert!(
            self.sprung(),
            "{name}: plain git does not spring this trap, so it proves nothing"
        );
    }
}

/// Sets a trap that springs by config alone, and tells what the tools said to it.
pub async fn by_config(name: &str, config: &[u8], attributes: &[u8]) -> (Trap, Vec<CallError>) {
    let trap = Trap::new().await;
    trap.change().await;
    trap.config(config);
    if !attributes.is_empty() {
        trap.world.write(".gitattributes", attributes);
    }
    let errors = trap.tools(name).await;
    (trap, errors)
}
