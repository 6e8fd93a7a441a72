//! Programs that can't be started say why.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toolcrib_sandbox::{Command, StartError};

use crate::support::*;

async fn error(program: &Path, args: &[&str]) -> StartError {
    let mut errors = Vec::new();
    for launcher in launchers() {
        let command = Command::new(program, "/", free()).args(args.iter().copied());
        let started = command.spawn(&launcher, &environment()).await;
        errors.push(started.map(|_| ()).unwrap_err());
        assert_eq!(launcher.rung(), None);
    }
    assert_eq!(errors[0].to_string(), errors[1].to_string());
    errors.remove(0)
}

fn script(folder: &Path, text: &str) -> std::path::PathBuf {
    let path = folder.join("script");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn programs_that_are_not_there_or_not_programs() {
    let missing = error(Path::new("no-such-program-here"), &[]).await;
    assert!(matches!(missing, StartError::NotFound(_)));
    let dir = tempfile::tempdir().unwrap();
    let broken = script(dir.path(), "\u{7f}ELFnonsense");
    assert!(matches!(error(&broken, &[]).await, StartError::Exec { .. }));
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o644)).unwrap();
    let plain = error(&broken, &[]).await;
    assert!(matches!(plain, StartError::NotExecutable(_)));
    let [launcher, _] = launchers();
    let gone = Command::new("true", "/no/such/folder", free())
        .spawn(&launcher, &environment())
        .await;
    assert!(matches!(gone, Err(StartError::Directory(_))));
}

#[tokio::test]
async fn a_missing_interpreter_is_named() {
    let dir = tempfile::tempdir().unwrap();
    for (line, interpreter) in [
        ("#!/no/such/python", "/no/such/python"),
        ("#!/usr/bin/env no-such-python", "no-such-python"),
    ] {
        let path = script(dir.path(), line);
        let words = format!(
            "the interpreter `{interpreter}` that `{}` names in its first line was not found",
            path.display()
        );
        assert_eq!(error(&path, &[]).await.to_string(), words);
    }
}

#[tokio::test]
async fn too_large_arguments_are_told() {
    let large = "x".repeat(200_000);
    let told = error(Path::new("true"), &[&large]).await;
    assert!(matches!(told, StartError::TooLarge(_)), "{told:?}");
    let end = "its arguments and environment are larger than the system allows";
    assert!(told.to_string().ends_with(end), "{told}");
    let many: Vec<&str> = std::iter::repeat_n("0123456789abcdef", 400_000).collect();
    let told = error(Path::new("true"), &many).await;
    assert!(matches!(told, StartError::TooLarge(_)), "{told:?}");
}

#[tokio::test]
async fn null_bytes_are_refused() {
    let told = error(Path::new("true"), &["a\0b"]).await;
    assert!(matches!(told, StartError::NullByte), "{told:?}");
}
