//! Paths and variables of a tool's choosing: what they open, and when they take effect.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use toolcrib_sandbox::{Command, Policy, Rung, StartError};

use crate::arena::*;
use crate::attacks::expect_nothing_out;

const DEEP: &str = include_str!("attack_deep.py");

/// A library that leaves a mark when it is loaded, wherever that is.
fn library(arena: &Arena) -> (PathBuf, PathBuf) {
    let (source, library) = (arena.at("tools/mark.c"), arena.at("tools/mark.so"));
    let mark = arena.at("scratch/loaded-outside");
    let text = format!(
        "#include <fcntl.h>\n#include <unistd.h>\n\
         __attribute__((constructor)) void loaded(void) {{\n\
         int file = open(\"{}\", O_CREAT | O_WRONLY, 0600); if (file >= 0) close(file);\n\
         write(2, \"loaded\\n\", 7); }}\n\
         unsigned la_version(unsigned version) {{ return version; }}\n",
        mark.display()
    );
    std::fs::write(&source, text).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a compiler, not a tool")]
    let mut compiler = std::process::Command::new("cc");
    let built = compiler.args(["-shared", "-fPIC", "-w", "-o"]);
    let built = built.arg(&library).arg(&source).status().unwrap();
    assert!(built.success());
    (library, mark)
}

#[tokio::test]
async fn a_tools_variables_take_effect_behind_the_walls_only() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let (library, mark) = library(&arena);
        // Not the private tmp, which the tool may write.
        let mut policy = arena.policy();
        policy.read.push(library.clone());
        let command = Command::new("true", arena.at("project"), policy)
            .var("LD_PRELOAD", &library)
            .var("LD_AUDIT", &library)
            .var("LD_LIBRARY_PATH", arena.at("tools"))
            .var("GLIBC_TUNABLES", "glibc.malloc.check=3")
            .var("RUST_BACKTRACE", "full");
        let child = command
            .spawn(&launcher, &arena.environment())
            .await
            .unwrap();
        let (_, _, err) = finish(child).await;
        assert!(
            err.contains("loaded"),
            "{rung:?}: the tool itself has it: {err}"
        );
        assert!(
            !mark.exists(),
            "{rung:?}: it was loaded before the walls stood"
        );
    }
}

/// A program of the test's own in a prefix of the tool's own.
fn program(folder: &Path) -> PathBuf {
    let bin = folder.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy("/bin/cat", bin.join("cat")).unwrap();
    std::fs::set_permissions(bin.join("cat"), std::fs::Permissions::from_mode(0o755)).unwrap();
    bin.join("cat")
}

#[tokio::test]
async fn links_in_a_programs_prefix_open_nothing() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let (tool, venv) = (arena.at("tools/mine"), arena.at("project/.venv"));
        let base = arena.at("project/base");
        let programs = [program(&tool), program(&venv)];
        program(&base);
        std::fs::rename(base.join("bin/cat"), base.join("bin/python3")).unwrap();
        for (prefix, names) in [
            (
                &tool,
                &[
                    "lib", "lib64", "share", "opt", "include", "libexec", "Cellar",
                ][..],
            ),
            (&venv, &["lib", "share"]),
            (&base, &["lib"]),
        ] {
            for name in names {
                symlink(arena.at("home/.ssh"), prefix.join(name)).unwrap();
            }
        }
        let named = format!("home = {}\n", base.join("bin").display());
        std::fs::write(venv.join("pyvenv.cfg"), named).unwrap();
        symlink(arena.at("home/.ssh/id"), tool.join("pyvenv.cfg")).unwrap();
        for program in programs {
            let prefix = program.parent().unwrap().parent().unwrap();
            let command = Command::new(&program, arena.at("project"), arena.policy())
                .arg(arena.at("project/data.txt"))
                .arg(arena.at("home/.ssh/id"))
                .arg(prefix.join("lib/id"))
                .arg(prefix.join("share/id"))
                .arg(prefix.join("opt/id"))
                .arg(prefix.join("pyvenv.cfg"))
                .arg(arena.at("project/base/lib/id"));
            let child = command
                .spawn(&launcher, &arena.environment())
                .await
                .unwrap();
            let (_, said, _) = finish(child).await;
            assert!(said.contains("data"), "{rung:?}: it reads what it may");
            assert!(
                !said.contains("secret"),
                "{rung:?} {}: {said}",
                program.display()
            );
        }
    }
}

#[tokio::test]
async fn a_granted_folder_that_became_a_link_is_refused_and_said() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let shared = arena.at("project/shared");
        std::fs::create_dir_all(shared.join("sub")).unwrap();
        let granted = |write: bool| {
            let mut policy = arena.policy();
            let list = if write {
                &mut policy.write
            } else {
                &mut policy.granted
            };
            list.push(shared.join("sub"));
            policy
        };
        for (from, to) in [
            (shared.join("sub"), arena.at("home/.ssh")),
            (shared.clone(), arena.at("home")),
        ] {
            if from == shared {
                std::fs::create_dir_all(arena.at("home/sub")).unwrap();
            }
            std::fs::rename(&from, arena.at("project/before")).unwrap();
            symlink(&to, &from).unwrap();
            for write in [false, true] {
                let command = Command::new("true", arena.at("project"), granted(write));
                let told = command.spawn(&launcher, &arena.environment()).await;
                let Err(StartError::Refused(told)) = told else {
                    panic!("{rung:?} {from:?} {write}: it was started");
                };
                assert!(told.reason.contains("no longer the place"), "{told}");
                assert!(told.reason.contains(from.to_str().unwrap()), "{told}");
            }
            std::fs::remove_file(&from).unwrap();
            std::fs::rename(arena.at("project/before"), &from).unwrap();
        }
    }
}

/// Where the parent of a project is written, what is executed later is kept however deep it lies.
#[tokio::test]
async fn repositories_and_packages_are_kept_in_every_writable_folder() {
    for (rung, launcher) in launchers().await {
        let mut arena = Arena::new();
        let kept = [
            "project/.git",
            "project/.toolcrib",
            "project/.venv",
            "project/web/app/node_modules",
            "project/vendor/one/.git",
            "beside/deep/er/.git",
            "beside/.venv",
            "project/.claude",
            "project/web/app/.vscode",
            "beside/deep/.hg",
            "bare",
            "project/scripts/hooks",
        ];
        let root = arena.at("work");
        for folder in kept {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("config"), "as it was").unwrap();
        }
        for name in ["HEAD", "objects", "refs"] {
            std::fs::create_dir(root.join("bare").join(name)).unwrap();
        }
        std::fs::create_dir(root.join("free")).unwrap();
        let settings = root.join("project/.git/config.worktree");
        std::fs::write(settings, "[core]\n\thooksPath = scripts/hooks\n").unwrap();
        arena.more = serde_json::json!({"writable": root, "kept": kept});
        let mut policy = Policy {
            write: vec![root.clone()],
            ..Policy::default_for(&arena.at("tools"), Some(&root.join("project")))
        };
        // Where it starts.
        policy.read.push(arena.at("project"));
        let text = format!("{GUARD}{ATTACK}{DEEP}");
        let lines = arena
            .attack(&launcher, rung, Language::Python, &text, policy)
            .await;
        expect_nothing_out(rung, lines, 9);
        for folder in kept {
            let config = std::fs::read_to_string(root.join(folder).join("config"));
            assert_eq!(config.unwrap(), "as it was", "{rung:?} {folder}");
            let planted = root.join(folder).join("planted");
            assert!(!planted.exists(), "{rung:?} {folder}");
        }
    }
}

#[tokio::test]
async fn a_link_to_an_environment_can_not_be_replaced() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        std::fs::create_dir(arena.at("project/environment")).unwrap();
        symlink("environment", arena.at("project/.venv")).unwrap();
        let policy = Policy {
            write: vec![arena.at("project")],
            exec: toolcrib_sandbox::Exec::Allowed,
            ..arena.policy()
        };
        let script = "rm -f .venv; ln -sfn src .venv; mv .venv src/; echo x > .venv/planted; \
                      echo x > environment/planted; echo x > src/made; true";
        let command = Command::new("sh", arena.at("project"), policy).args(["-c", script]);
        let started = command.spawn(&launcher, &arena.environment()).await;
        let child = match started {
            // Nothing can be mounted over a link.
            Err(StartError::Refused(told)) if rung == Rung::NamespacesOnly => {
                assert!(told.reason.contains(".venv"), "{told}");
                continue;
            }
            started => started.unwrap(),
        };
        finish(child).await;
        let link = std::fs::read_link(arena.at("project/.venv")).unwrap();
        assert_eq!(link, Path::new("environment"), "{rung:?}");
        assert!(
            !arena.at("project/environment/planted").exists(),
            "{rung:?}"
        );
        assert!(arena.at("project/src/made").exists(), "{rung:?}");
    }
}

/// Whatever a program names as its loader is not opened for it, though it could load it.
#[tokio::test]
async fn a_program_can_not_name_a_secret_as_its_loader() {
    const LOADER: &[u8] = match cfg!(target_arch = "aarch64") {
        true => b"/lib/ld-linux-aarch64.so.1\0",
        false => b"/lib64/ld-linux-x86-64.so.2\0",
    };
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let mut bytes = std::fs::read("/bin/cat").unwrap();
        let at = bytes.windows(LOADER.len()).position(|part| part == LOADER);
        let at = at.expect("/bin/cat names the usual loader of this architecture");
        let secret = arena.at("home/.ssh/loader");
        let usual = std::ffi::CStr::from_bytes_with_nul(LOADER).unwrap();
        std::fs::copy(usual.to_str().unwrap(), &secret).unwrap();
        // Room for a path of the same length only: by a link of that name.
        let link = tempfile::Builder::new()
            .prefix("")
            .rand_bytes(LOADER.len() - 1 - "/var/tmp/".len())
            .make_in("/var/tmp", |path| symlink(&secret, path))
            .unwrap();
        let name = link.path().as_os_str().as_encoded_bytes();
        bytes[at..at + LOADER.len() - 1].copy_from_slice(name);
        let program = arena.at("tools/odd");
        std::fs::write(&program, bytes).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let data = arena.at("project/data.txt");
        let start = async |policy: Policy| {
            let command = Command::new(&program, arena.at("project"), policy).arg(&data);
            command.spawn(&launcher, &arena.environment()).await
        };
        let started = start(arena.policy()).await;
        assert!(
            started.is_err(),
            "{rung:?}: it has no loader that it may read"
        );
        // Who may read it anyway is loaded by it.
        let mut open = arena.policy();
        open.read.push(link.path().to_path_buf());
        let (_, said, err) = finish(start(open).await.unwrap()).await;
        assert_eq!(said, "data", "{rung:?}: {err}");
    }
}
