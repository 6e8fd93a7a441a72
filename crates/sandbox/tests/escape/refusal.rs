//! What can't be confined is not started, and says why and what helps.

use std::process::Stdio;

use toolcrib_sandbox::{Command, Exit, Launcher, Policy, Rung, StartError};

use crate::arena::*;

async fn refused(launcher: &Launcher, arena: &Arena, command: Command) -> String {
    match command.spawn(launcher, &arena.environment()).await {
        Err(StartError::Refused(refusal)) => {
            assert!(!refusal.remedy.is_empty());
            refusal.to_string()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn impossible_policies_are_refused() {
    for (_, launcher) in launchers().await {
        let arena = Arena::new();
        let with = |policy: Policy| Command::new("true", arena.at("project"), policy);
        let mut all = arena.policy();
        all.read.push("/".into());
        assert!(
            refused(&launcher, &arena, with(all))
                .await
                .contains("kept apart")
        );
        let mut outward = arena.policy();
        outward.write.push(arena.at("project/outward"));
        assert!(
            refused(&launcher, &arena, with(outward))
                .await
                .contains("no longer the place that was granted")
        );
        let elsewhere = Command::new("true", arena.at("home"), arena.policy());
        assert!(
            refused(&launcher, &arena, elsewhere)
                .await
                .contains("working directory")
        );
    }
}

/// A crib whose kernel knows neither namespaces nor Landlock, as far as it can see: this program once more, under a
/// filter.
#[tokio::test]
async fn where_nothing_can_be_confined_nothing_runs() {
    if !may_attack() {
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "this program again, not a tool")]
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again
        .args(["refusal::the_crib_without", "--nocapture"])
        .env("TOOLCRIB_TEST_WITHOUT", "1")
        .stdin(Stdio::null());
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("2 passed"), "{said}");
}

#[tokio::test]
async fn the_crib_without_anything() {
    if var("TOOLCRIB_TEST_WITHOUT").is_none() {
        return;
    }
    take_away(&[libc::SYS_unshare as u32, 444, 445, 446]);
    let arena = Arena::new();
    let launcher = Launcher::at(example("launcher"));
    let marker = arena.at("scratch/ran");
    let command = Command::new("touch", arena.at("project"), arena.policy()).arg(&marker);
    let told = refused(&launcher, &arena, command).await;
    assert!(
        told.contains("namespaces can't be made") && told.contains("Landlock is not there"),
        "{told}"
    );
    assert!(told.contains("allow user namespaces"), "{told}");
    assert!(!marker.exists());
    let survey = launcher.survey().await.unwrap();
    assert!(survey.rung.is_none() && survey.remedy.is_some());
}

/// As in most containers.
#[tokio::test]
async fn the_crib_without_namespaces() {
    if var("TOOLCRIB_TEST_WITHOUT").is_none() {
        return;
    }
    take_away(&[libc::SYS_unshare as u32, libc::SYS_mount as u32]);
    let arena = Arena::new();
    let launcher = Launcher::at(example("launcher"));
    let command = Command::new("cat", arena.at("project"), arena.policy()).arg("data.txt");
    let child = command.spawn(&launcher, &arena.environment()).await;
    let child = child.unwrap();
    let account = child.account().unwrap().clone();
    assert_eq!(account.rung, Rung::Group);
    assert!(account.lost.iter().any(|lost| lost.contains("names")));
    let (exit, said, _) = finish(child).await;
    assert_eq!((exit, said.as_str()), (Exit::Code(0), "data"));
    let survey = launcher.survey().await.unwrap();
    assert!(survey.reason.contains("namespaces can't be made: unshare"));
}

/// Denies calls to this thread and all that comes from it: here every test has a thread of its own.
#[expect(unsafe_code, reason = "filters have no safe interface")]
fn take_away(calls: &[u32]) {
    let instruction = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![instruction(0x20, 0, 0, 0)];
    for call in calls {
        program.push(instruction(0x15, *call, 0, 1));
        program.push(instruction(
            0x06,
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            0,
            0,
        ));
    }
    program.push(instruction(0x06, libc::SECCOMP_RET_ALLOW, 0, 0));
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter lives across the call.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(libc::SYS_seccomp, 1, 0, &raw const filter)
    };
    assert_eq!(done, 0);
}
