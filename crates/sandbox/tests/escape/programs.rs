//! What a program names itself: the interpreter in its first line, the base of its environment. Nothing of it is opened
//! that could not be read anyway, and nobody waits for it.

use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib_sandbox::{Command, Exec, Policy, StartError};

use crate::arena::*;

fn write(path: &Path, text: impl AsRef<[u8]>, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn c_string(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap()
}

#[expect(unsafe_code, reason = "std makes no pipes with names")]
fn make_pipe(path: &Path) {
    // SAFETY: the name ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(c_string(path).as_ptr(), 0o755) }, 0);
}

/// Sees who opens a file, whoever it is.
struct Observer(std::fs::File);

impl Observer {
    #[expect(unsafe_code, reason = "std does not watch files")]
    fn of(path: &Path) -> Observer {
        // SAFETY: the descriptor is new, and the name ends with a zero.
        let observer = unsafe {
            let made = libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC);
            assert!(made >= 0);
            let seen = libc::inotify_add_watch(made, c_string(path).as_ptr(), libc::IN_OPEN);
            assert!(seen >= 0);
            OwnedFd::from_raw_fd(made)
        };
        Observer(observer.into())
    }

    fn has_seen_any(&mut self) -> bool {
        use std::io::Read;
        matches!(self.0.read(&mut [0; 4_096]), Ok(read) if read > 0)
    }
}

/// A script's first line names what is no program: it is not started, nobody waits, and nothing is opened for it.
#[tokio::test]
async fn a_first_line_that_names_no_program_is_refused_at_once() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let (pipe, folder) = (arena.at("tools/pipe"), arena.at("tools/folder"));
        let (secret, script) = (arena.at("home/.ssh/id"), arena.at("tools/odd"));
        make_pipe(&pipe);
        std::fs::create_dir(&folder).unwrap();
        symlink(&secret, arena.at("tools/link")).unwrap();
        // It looks like a script itself: who followed it would come to a program.
        write(&secret, "#!/bin/cat\nsecret", 0o600);
        let mut observers = [Observer::of(&pipe), Observer::of(&secret)];
        let named = [
            pipe.clone(),
            "/proc/self/fd/0".into(),
            "/proc/self/fd/1".into(),
            "/dev/stdin".into(),
            "/dev/tty".into(),
            folder,
            script.clone(),
            secret.clone(),
            arena.at("tools/link"),
        ];
        for exec in [Exec::Once, Exec::Allowed] {
            for named in &named {
                for line in ["#!", "#!/usr/bin/env "] {
                    write(&script, format!("{line}{}\n", named.display()), 0o755);
                    let policy = Policy {
                        exec,
                        ..arena.policy()
                    };
                    let command = Command::new(&script, arena.at("project"), policy).arg(&secret);
                    let environment = arena.environment();
                    let started = command.spawn(&launcher, &environment);
                    let started = tokio::time::timeout(Duration::from_secs(30), started).await;
                    let shown = format!("{rung:?} {exec:?} {line}{}", named.display());
                    let told = match started {
                        Err(_) => panic!("{shown}: somebody waits"),
                        Ok(Ok(_)) => panic!("{shown}: it was started"),
                        Ok(Err(told)) => told,
                    };
                    let StartError::Refused(told) = told else {
                        panic!("{shown}: {told}");
                    };
                    let told = told.to_string();
                    let file = script.to_str().unwrap();
                    assert!(told.contains(file), "{shown}: {told}");
                    assert!(told.contains("first line"), "{shown}: {told}");
                    assert!(!told.contains("/bin/cat"), "{shown}: {told}");
                }
            }
        }
        for observer in &mut observers {
            assert!(!observer.has_seen_any(), "{rung:?}: it was opened");
        }
        // They do see.
        drop(std::fs::File::open(&secret).unwrap());
        assert!(observers[1].has_seen_any());
    }
}

/// The folders that a `pyvenv.cfg` names as what its environment was made from, and what must stay closed for each.
fn bases(arena: &Arena) -> Vec<(PathBuf, Vec<PathBuf>)> {
    let python = |folder: &str| {
        let folder = arena.at(folder);
        write(&folder.join("python3"), "secret: no program's", 0o755);
        folder
    };
    let canary = |path: &str| {
        let path = arena.at(path);
        write(&path, "secret", 0o644);
        path
    };
    let parts = |prefix: &str| -> Vec<PathBuf> {
        let names = ["lib", "lib64", "share", "opt", "include", "libexec", "bin"];
        let mut all: Vec<PathBuf> = names
            .into_iter()
            .map(|name| canary(&format!("{prefix}/{name}/canary")))
            .collect();
        all.push(canary(&format!("{prefix}/canary")));
        all
    };
    let ssh = arena.at("home/.ssh/id");
    let mut cases = vec![
        (
            python("home/.ssh"),
            vec![ssh, arena.at("home/.ssh/python3")],
        ),
        (python("home/bin"), parts("home")),
        (python("home/keys/bin"), parts("home/keys")),
        (python("vault/bin"), parts("vault")),
        (python("vault"), vec![arena.at("vault/python3")]),
    ];
    // What is an installation has its own parts opened, and nothing beside them.
    let other = python("other-python/bin");
    canary("other-python/private/canary");
    write(
        &arena.at("other-python/lib/python3.11/os.py"),
        "library",
        0o644,
    );
    symlink(arena.at("home/.ssh"), arena.at("other-python/share")).unwrap();
    let closed = ["canary", "private/canary", "share/id"];
    let closed = closed.map(|path| arena.at("other-python").join(path));
    cases.push((other, closed.to_vec()));
    // A link in the project is where it leads.
    let led = arena.at("project/led");
    symlink(arena.at("vault"), &led).unwrap();
    cases.push((led.join("bin"), vec![led.join("lib/canary")]));
    let base = arena.at("project/base/bin");
    std::fs::create_dir_all(&base).unwrap();
    symlink(arena.at("home/.ssh/id"), base.join("python3")).unwrap();
    cases.push((base.clone(), vec![base.join("python3")]));
    cases
}

#[tokio::test]
async fn the_base_that_an_environment_names_opens_no_other_folder() {
    for (rung, launcher) in launchers().await {
        let arena = Arena::new();
        let cat = arena.at("project/.venv/bin/cat");
        std::fs::create_dir_all(cat.parent().unwrap()).unwrap();
        std::fs::copy("/bin/cat", &cat).unwrap();
        let library = arena.at("other-python/lib/python3.11/os.py");
        for (base, closed) in bases(&arena) {
            let named = format!("home = {}\n", base.display());
            write(&arena.at("project/.venv/pyvenv.cfg"), named, 0o644);
            let command = Command::new(&cat, arena.at("project"), arena.policy())
                .args(&closed)
                .arg(&library)
                .arg(arena.at("project/data.txt"));
            let child = command
                .spawn(&launcher, &arena.environment())
                .await
                .unwrap();
            let (_, said, err) = finish(child).await;
            let shown = format!("{rung:?} {}: {said} {err}", base.display());
            assert!(!said.contains("secret"), "{shown}");
            assert!(said.ends_with("data"), "{shown}");
            let installed = base.starts_with(arena.at("other-python"));
            assert_eq!(said.contains("library"), installed, "{shown}");
        }
    }
}
